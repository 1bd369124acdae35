"""Views of one run, read without the events of others: the same rows as the view itself gives."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh
from tracewh.sql.run_report import SECTIONS
from tracewh.sql.run_scope import run_scope
from tracewh.views.catalog import View, load_views

FIXTURES = Path(__file__).parents[1] / "fixtures"
# Views of runs: those of the report, and the public ones that have a run_id and no capture_id.
VIEWS = [
    view
    for view in load_views()
    if view.name in SECTIONS
    or (
        not view.name.startswith("v1._")
        and {"run_id", "capture_id"} & {column.name for column in view.columns} == {"run_id"}
    )
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Captures of run `a` lie before and after those of run `b`."""
    folder = tmp_path_factory.mktemp("scope")
    warehouse = folder / "w.duckdb"
    for number, name in enumerate(("h200_graphs", "cpu_train", "h200_moe")):
        run = folder / str(number)
        shutil.copytree(FIXTURES / name, run)
        tracewh.ingest_run(run, warehouse=warehouse, run_name="b" if name == "cpu_train" else "a")
    with tracewh.open(warehouse) as opened:
        yield opened.connection


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_rows_are_those_of_the_view(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    ids = connection.execute("SELECT run_id FROM main.runs ORDER BY run_id").fetchall()
    assert len(ids) == 2
    for (run_id,) in ids:
        order = ", ".join(f"s.{column.name}" for column in view.columns)
        with run_scope(connection, [run_id]) as scope:
            found = scope.rows(view, order)
        query = f"SELECT * FROM {view.name} AS s WHERE s.run_id = {run_id} ORDER BY {order}"
        assert rounded(found) == rounded(connection.execute(query).fetchall())


def rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Doubles to 12 digits: the order in which they are added is not fixed."""
    return [
        tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row) for row in rows
    ]


def test_nothing_stays_behind(connection: duckdb.DuckDBPyConnection) -> None:
    views = {view.name: view for view in load_views()}
    with run_scope(connection, [1]) as scope:
        scope.rows(views["v1._report_timeline"], "s.line")
        assert connection.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE temporary").fetchone() != (0,)
    assert connection.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)


def test_a_run_without_captures_has_no_rows(connection: duckdb.DuckDBPyConnection) -> None:
    views = {view.name: view for view in load_views()}
    with run_scope(connection, [99]) as scope:
        assert scope.rows(views["v1._report_timeline"], "s.line") == []
