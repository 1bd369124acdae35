"""Loads synthetic XSpaces, and reads back what became of them; for tests of one property each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

import tracewh

from .xspace_expected import DEVICE_QUERY, HOST_QUERY, STATS_QUERY, Row, rows_of, stored
from .xspace_oracle import SpaceBuilder

Ingest = Callable[[SpaceBuilder], duckdb.DuckDBPyConnection]


def ingesting(tmp_path: Path) -> Iterator[Ingest]:
    """A function that loads a space into a new warehouse and opens that without tracewh."""
    opened = []

    def load(space: SpaceBuilder) -> duckdb.DuckDBPyConnection:
        path = tmp_path / f"{len(opened)}.xplane.pb"
        path.write_bytes(space.serialize())
        warehouse = tmp_path / f"{len(opened)}.duckdb"
        tracewh.ingest_run(path, warehouse=warehouse)
        opened.append(duckdb.connect(str(warehouse), read_only=True))
        return opened[-1]

    yield load
    for connection in opened:
        connection.close()


def problems_of(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    rows = connection.execute("SELECT problem, SUM(occurrences) FROM ingest_problems GROUP BY 1").fetchall()
    return {name: int(count) for name, count in rows}


def stats_of(connection: duckdb.DuckDBPyConnection, *owners: str) -> list[tuple[str, int, str, str, Any]]:
    """Rows of event_stats, those of events where no other owners are named."""
    owners = owners or ("device_event", "host_event")
    return sorted(
        (row["owner"], row["owner_id"], *stored(row))
        for row in rows_of(connection, STATS_QUERY, 1)
        if row["owner"] in owners
    )


def device_rows(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(connection, DEVICE_QUERY, 1)


def host_rows(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(connection, HOST_QUERY, 1)
