"""`tracewh rm`."""

from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main

from .small_warehouse import EVIL_NAME, make_small_warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return make_small_warehouse(tmp_path / "small.duckdb")


def rm(warehouse: Path, *arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, ["rm", "-w", str(warehouse), *arguments], input=answer)


def runs(warehouse: Path) -> list[str]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return [
            name for (name,) in connection.execute("SELECT run_name FROM runs ORDER BY run_id").fetchall()
        ]


def test_it_asks_and_removes(warehouse: Path) -> None:
    result = rm(warehouse, "base", answer="y\n")
    assert result.exit_code == 0
    assert "Remove base from" in result.stderr
    assert result.stdout.startswith("Removed base: 2 captures, ")
    assert runs(warehouse) == [EVIL_NAME]
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        left = connection.execute("SELECT count(*) FROM device_events").fetchall()
    assert left == [(0,)]


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_anything_but_yes_removes_nothing(warehouse: Path, answer: str) -> None:
    result = rm(warehouse, "base", answer=answer)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Nothing was removed." in result.stderr
    assert runs(warehouse) == ["base", EVIL_NAME]


def test_no_answer_is_wrong_usage(warehouse: Path) -> None:
    result = rm(warehouse, "base", answer="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--yes" in result.stderr
    assert runs(warehouse) == ["base", EVIL_NAME]


def test_yes_does_not_ask(warehouse: Path) -> None:
    result = rm(warehouse, "base", EVIL_NAME, "base", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [
        "Removed base",
        "Removed evil\\x1b[31m",
    ]
    assert runs(warehouse) == []


def test_an_unknown_run_stops_it_before_anything_is_removed(warehouse: Path) -> None:
    result = rm(warehouse, "base", "basis", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "basis" in result.stderr
    assert "base" in result.stderr
    assert runs(warehouse) == ["base", EVIL_NAME]


def test_a_missing_warehouse_is_not_made(tmp_path: Path) -> None:
    result = rm(tmp_path / "typo.duckdb", "base", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert list(tmp_path.iterdir()) == []
