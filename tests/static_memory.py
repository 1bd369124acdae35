"""What v1._static_memory makes of the rows of one module, as an object with a field for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from tracewh.sql.loading import insert_rows

from .live_views import new_warehouse


@dataclass(frozen=True)
class StaticMemory:
    memory_space: int
    argument_bytes: int
    alias_bytes: int
    output_bytes: int
    constant_bytes: int
    temporary_bytes: int
    thread_local_bytes: int
    heap_peak_bytes: int | None
    peak_bytes: int | None
    reserved_bytes: int

    @property
    def live_out_bytes(self) -> int:
        """All that is handed out; here no argument or constant is returned as it is."""
        return self.output_bytes + self.alias_bytes

    @property
    def allocated_bytes(self) -> int:
        return self.reserved_bytes + self.thread_local_bytes


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return new_warehouse()


def static_memory(tables: Mapping[str, list[dict[str, Any]]]) -> list[StaticMemory]:
    """One per memory space, of rows of hlo_buffers and hlo_heap_events."""
    connection = _connection()
    for table, rows in tables.items():
        connection.execute(f"DELETE FROM main.{table}")
        if rows:
            insert_rows(connection, table, pa.Table.from_pylist([row | {"module_id": 1} for row in rows]))
    found: dict[int, dict[str, int | None]] = {}
    for space, kind, amount in connection.execute(
        "SELECT memory_space, kind, bytes FROM v1._static_memory ORDER BY memory_space"
    ).fetchall():
        found.setdefault(space, {})[f"{kind}_bytes"] = amount
    return [StaticMemory(space, **amounts) for space, amounts in found.items()]  # type: ignore[arg-type]
