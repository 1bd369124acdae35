"""Query views of some runs without reading the events of others.

A view that sums captures up by run hides capture_id, so that a filter on its run_id would be asked only
after every capture of the warehouse is read. Here the filter is put where captures still are: around each
table, and each view without a run_id, that the views of runs read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from tracewh.sql.rows import first_row
from tracewh.views.catalog import View, load_views

# How views refer to relations; the lint sees to it that they do so in no other way.
REFERENCE = re.compile(r"\b(FROM|JOIN) ((v1|main)\.\w+) AS\b")
_COLUMNS = "SELECT column_name FROM duckdb_columns() WHERE schema_name || '.' || table_name = $1"
_MAY_LACK_CAPTURE = (
    "SELECT 1 FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_oid) "
    "WHERE c.schema_name || '.' || c.table_name = $1 AND column_name = 'capture_id' AND is_nullable"
)


class RunScope:
    """Views of some runs; each with a run_id is computed once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, run_ids: Sequence[int]) -> None:
        self._connection = connection
        self._run_ids = list(run_ids)
        self._views = {view.name: view for view in load_views()}
        self._kept: dict[str, str] = {}
        bounds = first_row(
            connection,
            "SELECT MIN(capture_id), MAX(capture_id) FROM main.captures WHERE list_contains($1, run_id)",
            [self._run_ids],
        )
        # One range, since DuckDB carries it through joins to every scan, but no list of ids. What other runs
        # have between is taken out at the end.
        first, last = bounds if bounds is not None and bounds[0] is not None else (0, -1)
        self._condition = f"capture_id BETWEEN {first} AND {last}"

    def rows(self, view: View, order: str) -> list[tuple[Any, ...]]:
        """The rows that a view with a run_id has of the runs."""
        query = f"SELECT s.* FROM {self._of_runs(view)} ORDER BY {order}"
        return self._connection.execute(query, [self._run_ids]).fetchall()

    def insert(self, view: View, table: str) -> None:
        """Add the rows that a view with a run_id has of the runs to a table with the same columns."""
        self._connection.execute(
            f"INSERT INTO {table} BY NAME SELECT s.* FROM {self._of_runs(view)}", [self._run_ids]
        )

    def close(self) -> None:
        """Drop what was computed."""
        for table in self._kept.values():
            self._connection.execute(f"DROP TABLE {table}")
        self._kept.clear()

    def _of_runs(self, view: View) -> str:
        return f"{self._relation(view.name)} AS s WHERE list_contains($1, s.run_id)"

    def _narrowed(self, view: View) -> str:
        return REFERENCE.sub(lambda found: f"{found[1]} {self._relation(found[2])} AS", view.sql)

    def _relation(self, name: str) -> str:
        columns = self._columns(name)
        if name not in self._views or "run_id" not in columns:
            return f"(SELECT * FROM {name} WHERE {self._scope_of(name)})" if "capture_id" in columns else name
        if name not in self._kept:
            table = f"temp.run_scope_{name.partition('.')[2]}"
            self._connection.execute(f"CREATE TEMP TABLE {table} AS {self._narrowed(self._views[name])}")
            self._kept[name] = table
        return self._kept[name]

    def _scope_of(self, name: str) -> str:
        # Rows without a capture are of the run as a whole, or of every run: its files, peaks of devices.
        found = first_row(self._connection, _MAY_LACK_CAPTURE, [name])
        return self._condition if found is None else f"({self._condition} OR capture_id IS NULL)"

    def _columns(self, name: str) -> set[str]:
        if name in self._views:
            return {column.name for column in self._views[name].columns}
        return {column for (column,) in self._connection.execute(_COLUMNS, [name]).fetchall()}


@contextmanager
def run_scope(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[int]) -> Iterator[RunScope]:
    """The views of some runs, best without captures of others between theirs, while the context lasts."""
    scope = RunScope(connection, run_ids)
    try:
        yield scope
    finally:
        scope.close()
