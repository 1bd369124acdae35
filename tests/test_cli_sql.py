"""`tracewh sql`: where a query comes from, where its result goes, and that nothing is changed."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main

from .small_warehouse import KERNEL, make_small_warehouse

COUNT_EVENTS = "SELECT capture_id, count(*) AS events FROM device_events GROUP BY ALL ORDER BY ALL"
EVENTS = [{"capture_id": 1, "events": 10}, {"capture_id": 2, "events": 20}]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")


def invoke(warehouse: Path, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["sql", "-w", str(warehouse), *arguments], input=stdin)


def test_query_as_argument(warehouse: Path) -> None:
    result = invoke(warehouse, COUNT_EVENTS, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == EVENTS


def test_query_on_stdin(warehouse: Path) -> None:
    result = invoke(warehouse, "--format", "json", stdin=f"{COUNT_EVENTS};\n")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == EVENTS


def test_query_in_a_file(warehouse: Path, tmp_path: Path) -> None:
    file = tmp_path / "question.sql"
    file.write_text(f"-- how many?\n{COUNT_EVENTS};\n", encoding="utf-8")
    result = invoke(warehouse, "-f", str(file), "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == EVENTS


def test_warehouse_from_the_environment(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWH_DB", str(warehouse))
    result = CliRunner().invoke(main, ["sql", COUNT_EVENTS, "--format", "json"])
    assert json.loads(result.stdout) == EVENTS


def test_views_and_names_are_there(warehouse: Path) -> None:
    query = "SELECT n.name, count(*) AS n FROM device_events JOIN names AS n USING (name_id) GROUP BY ALL"
    assert invoke(warehouse, query).stdout.splitlines()[2] == f"{KERNEL}  30"
    captures = "SELECT run_name, device_event_count FROM v1.captures ORDER BY capture_id"
    assert invoke(warehouse, captures, "--format", "csv").stdout.splitlines()[1:] == ["base,10", "base,20"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM runs",
        "CREATE TABLE t (a INTEGER)",
        "UPDATE runs SET run_name = 'x'",
        "DROP VIEW v1.captures",
    ],
)
def test_a_warehouse_is_not_changed(warehouse: Path, statement: str) -> None:
    before = warehouse.read_bytes()
    result = invoke(warehouse, statement)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "read-only" in result.stderr
    assert warehouse.read_bytes() == before


@pytest.mark.parametrize(
    "query", ["SELEC 1", "SELECT nothing FROM runs", "SELECT * FROM nowhere", "SELECT (1"]
)
def test_a_wrong_query_is_one_line(warehouse: Path, query: str) -> None:
    result = invoke(warehouse, query)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_the_line_of_a_long_query_is_named(warehouse: Path) -> None:
    result = invoke(warehouse, "SELECT 1\n\n) FROM runs")
    assert result.stderr.rstrip().endswith("(line 3)")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["SELECT 1", "-f", "-"], "not both"),
        ([], "There is no query"),
        (["SELECT 1", "--format", "xml"], "'xml' is not one of"),
        (["-f", "missing.sql"], "missing.sql"),
    ],
)
def test_wrong_usage(warehouse: Path, arguments: list[str], complaint: str) -> None:
    result = invoke(warehouse, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr


def test_parquet_is_not_written_to_a_terminal(warehouse: Path) -> None:
    controller, terminal = pty.openpty()
    try:
        command = [
            sys.executable,
            "-m",
            "tracewh.cli",
            "sql",
            "-w",
            warehouse,
            "SELECT 1",
            "--format",
            "parquet",
        ]
        result = subprocess.run(command, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(terminal)
        os.close(controller)
    assert result.returncode == 2
    assert b"name a file with -o" in result.stderr
