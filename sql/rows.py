"""Small reads from a connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

#: Ids up to here are for rows that are shipped.
SHIPPED_IDS = 1000


def first_row(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> tuple[Any, ...] | None:
    """The first row of a query, or None.

    Reads the result to its end: DuckDB refuses other work on a connection with an unfinished result.
    """
    rows = connection.execute(query, list(parameters)).fetchall()
    return rows[0] if rows else None


def next_own_id(connection: duckdb.DuckDBPyConnection, column: str, tables: Iterable[str]) -> int:
    """The next id of a row that is not shipped, in tables whose ids are of one sequence."""
    union = " UNION ALL ".join(f"SELECT {column} FROM main.{table}" for table in tables)
    row = first_row(
        connection, f"SELECT greatest(COALESCE(MAX({column}), 0), {SHIPPED_IDS}) + 1 FROM ({union})"
    )
    assert row is not None
    return int(row[0])
