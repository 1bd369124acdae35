"""Rows of private views that are kept in tables of the same names.

What every other view asks for would be planned and computed again with each query. The view stays the
definition; its rows are computed anew when what they are made of changes: when a run is ingested, a rule or a
choice of steps is made, or a new version of the view is installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import duckdb

from tracewh.sql.rows import first_row


@dataclass(frozen=True)
class _Kept:
    """A table of main with the rows of the view v1._<table>; a capture has some only if `where` finds any."""

    table: str
    where: str

    @property
    def view(self) -> str:
        return f"v1._{self.table}"


# Of single captures, in the order in which they read each other.
_OF_CAPTURES = (
    _Kept("flow_chains", "SELECT 1 FROM main.host_flows WHERE capture_id = $1"),
    _Kept(
        "numbered_marks",
        "SELECT 1 FROM v1._unmarked_captures WHERE capture_id = $1 UNION ALL "
        "SELECT 1 FROM v1._step_choices WHERE capture_id = $1 AND marker_pattern IS NOT NULL",
    ),
    _Kept("event_links", "SELECT 1 FROM main.device_events WHERE capture_id = $1 AND role = 'work'"),
    _Kept(
        "missing_launches",
        "SELECT 1 FROM main.steps WHERE capture_id = $1 UNION ALL "
        "SELECT 1 FROM main.numbered_marks WHERE capture_id = $1",
    ),
    _Kept(
        "allocator_events",
        "SELECT 1 FROM main.host_events AS e JOIN main.names AS n USING (name_id) "
        "WHERE e.capture_id = $1 AND n.name IN ('MemoryAllocation', 'MemoryDeallocation')",
    ),
    _Kept("graph_ops", "SELECT 1 FROM main.ops WHERE capture_id = $1 AND graph_node_index IS NOT NULL"),
    _Kept("aligned_events", "SELECT 1 FROM main.hlo_programs WHERE capture_id = $1"),
)
_OP_NAMES = _Kept("op_name_classes", "")
KEPT_TABLES = tuple(kept.table for kept in (*_OF_CAPTURES, _OP_NAMES))
"""Names of the tables; their views are called the same in v1, behind an underscore."""


def keep_rows_of_captures(
    connection: duckdb.DuckDBPyConnection, capture_ids: Iterable[int], tables: Collection[str] = KEPT_TABLES
) -> None:
    """Compute the rows of these captures in `tables` anew, in the caller's transaction."""
    chosen = [kept for kept in _OF_CAPTURES if kept.table in tables]
    for capture_id in capture_ids:
        for kept in chosen:
            connection.execute(f"DELETE FROM main.{kept.table} WHERE capture_id = $1", [capture_id])
            if first_row(connection, f"{kept.where} LIMIT 1", [capture_id]) is not None:
                connection.execute(
                    f"INSERT INTO main.{kept.table} BY NAME SELECT * FROM {kept.view} WHERE capture_id = $1",
                    [capture_id],
                )


def keep_rows_of_run(
    connection: duckdb.DuckDBPyConnection, run_id: int, tables: Collection[str] = KEPT_TABLES
) -> None:
    """Compute the rows of the run's captures in `tables` anew, in the caller's transaction."""
    captures = _captures(connection, "SELECT capture_id FROM main.captures WHERE run_id = $1", run_id)
    keep_rows_of_captures(connection, captures, tables)


def keep_rows_of_op_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute the rows of op_names anew, in the caller's transaction: after new op_names or rules."""
    connection.execute(f"DELETE FROM main.{_OP_NAMES.table}")
    connection.execute(f"INSERT INTO main.{_OP_NAMES.table} BY NAME SELECT * FROM {_OP_NAMES.view}")


def keep_all_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute all kept rows anew, in the caller's transaction."""
    keep_rows_of_op_names(connection)
    keep_rows_of_captures(connection, _captures(connection, "SELECT capture_id FROM main.captures"))


def keep_rows_of_new_views(connection: duckdb.DuckDBPyConnection, installed: Collection[str]) -> None:
    """Compute all kept rows anew where one of the views just installed defines some."""
    if any(kept.view in installed for kept in (*_OF_CAPTURES, _OP_NAMES)):
        keep_all_rows(connection)


def _captures(connection: duckdb.DuckDBPyConnection, query: str, *parameters: int) -> list[int]:
    return [int(capture_id) for (capture_id,) in connection.execute(query, list(parameters)).fetchall()]
