"""`tracewh views`."""

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.views.catalog import load_views
from tracewh.views.macro_catalog import load_macros

from .small_warehouse import make_small_warehouse

PUBLIC = sorted(view.name for view in load_views() if not view.is_private)
MACROS = [macro.name for macro in load_macros()]


def views(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["views", *arguments])


def test_list_has_the_public_views_and_the_macros_with_their_grain() -> None:
    result = views()
    assert (result.exit_code, result.stderr) == (0, "")
    tables = [table.splitlines()[2:] for table in result.stdout.split("\n\n")]
    assert [[line.split()[0] for line in lines] for lines in tables] == [PUBLIC, MACROS]
    grains = {item.name: item.grain for item in (*load_views(), *load_macros())}
    for lines, names in zip(tables, (PUBLIC, MACROS), strict=True):
        assert [line.split("  ", 1)[1].strip() for line in lines] == [grains[name] for name in names]


def test_list_as_json() -> None:
    records = json.loads(views("--json").stdout)
    assert [record["name"] for record in records] == PUBLIC + MACROS
    assert set(records[0]) == {"name", "kind", "version", "grain", "summary", "evidence"}
    assert set(records[-1]) == {"name", "kind", "version", "grain", "summary"}
    assert [record["kind"] for record in records] == ["view"] * len(PUBLIC) + ["macro"] * len(MACROS)


def test_no_warehouse_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEWH_DB", str(tmp_path / "absent.duckdb"))
    assert views().exit_code == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_a_view_shows_the_columns_that_it_has(name: str, tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with duckdb.connect(str(path), read_only=True) as connection:
        described = connection.execute(f"DESCRIBE {name}").fetchall()
    shown = json.loads(views(name, "--json").stdout)["columns"]
    assert [(column["name"], column["type"]) for column in shown] == [row[:2] for row in described]
    text = views(name).stdout
    assert text.startswith(f"{name}, version ")
    for column in shown:
        assert column["description"] in text


def test_the_short_name_will_do() -> None:
    assert views("captures").stdout == views("v1.captures").stdout


def test_sql_runs_as_it_is_printed(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    sql = views("v1.captures", "--sql").stdout
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute(sql).fetchall() == connection.execute("FROM v1.captures").fetchall()


@pytest.mark.parametrize("name", MACROS)
def test_a_macro_shows_how_it_is_called(name: str) -> None:
    record = json.loads(views(name, "--json").stdout)
    text = views(name).stdout
    assert text.startswith(f"{name}, version ")
    assert f"Call:    FROM {name}({record['parameters'][0]['name']}, " in text
    assert f"Example: {record['example'].splitlines()[0]}\n" in text
    for shown in (*record["parameters"], *record["columns"]):
        assert shown["name"] in text
        assert shown["description"] in text
    assert views(name.removeprefix("v1.")).stdout == text


def test_the_sql_of_a_macro_creates_it() -> None:
    sql = views("v1.interval_union", "--sql").stdout
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA v1")
        connection.execute(sql)
        connection.execute(
            "CREATE TABLE t AS SELECT 1 AS capture_id, 2 AS device_id, 3 AS start_ps, 7 AS end_ps"
        )
        assert connection.execute("SELECT u.union_ps FROM v1.interval_union('t') AS u").fetchall() == [(4,)]


def test_an_unknown_view_is_an_error() -> None:
    result = views("v1.nothing")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: There is no view or macro v1.nothing; `tracewh views` lists them.\n"


@pytest.mark.parametrize("arguments", [["--sql"], ["captures", "--sql", "--json"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert views(*arguments).exit_code == 2


def test_a_table_of_facts_is_shown_with_its_comments() -> None:
    shown = CliRunner().invoke(main, ["views", "memory_allocations"])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("CREATE TABLE memory_allocations (")
    assert "address BIGINT" in shown.stdout
    assert shown.stdout.rstrip().endswith(");")
    assert CliRunner().invoke(main, ["views", "main.names"]).exit_code == 0
    missing = CliRunner().invoke(main, ["views", "no_such_table"])
    assert missing.exit_code != 0
