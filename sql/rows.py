"""Small reads from a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb


def first_row(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()
) -> tuple[Any, ...] | None:
    """The first row of a query, or None.

    Reads the result to its end: DuckDB refuses other work on a connection with an unfinished result.
    """
    rows = connection.execute(query, list(parameters)).fetchall()
    return rows[0] if rows else None
