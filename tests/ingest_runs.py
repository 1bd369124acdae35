"""Runs to ingest and warehouses to look into, for the tests of ingest."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from .xspace_oracle import SpaceBuilder, Unsigned

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURES = {
    "cpu_train": FIXTURES / "cpu_train" / "profile" / "cpu.xplane.pb.gz",
    "h200_moe": FIXTURES / "h200_moe" / "profile" / "vm.xplane.pb.gz",
    "h200_moe_direct": FIXTURES / "h200_moe_direct" / "profile" / "vm.xplane.pb.gz",
}
# Ids that the warehouse gives out; loading again may give others.
SURROGATES = {"run_id", "capture_id", "artifact_id", "module_id"}

Hashes = dict[str, tuple[int, str]]


@contextmanager
def reading(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        yield connection


def query(warehouse: Path, text: str) -> list[tuple[Any, ...]]:
    with reading(warehouse) as connection:
        return connection.execute(text).fetchall()


def content(warehouse: Path, without: Collection[str] = ()) -> Hashes:
    """Row count and order-independent hash of every table, leaving out the columns `without`."""
    result = {}
    with reading(warehouse) as connection:
        tables = connection.execute(
            "SELECT c.table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() AS c "
            "JOIN duckdb_tables() AS t USING (table_oid) WHERE c.schema_name = 'main' GROUP BY 1"
        ).fetchall()
        for table, columns in tables:
            kept = ", ".join(f'"{column}"' for column in columns if column not in without)
            row = connection.execute(
                f"SELECT COUNT(*), COALESCE(SUM(hash(row({kept}))::HUGEINT), 0)::VARCHAR FROM main.{table}"
            ).fetchone()
            assert row is not None
            result[table] = row
    return result


def statuses(report: Any) -> dict[str, str]:
    return {artifact.path: artifact.status for artifact in report.artifacts}


def small_capture(kernel: str = "k", steps: int = 1) -> bytes:
    """An XSpace with one kernel for each step."""
    space = SpaceBuilder()
    stream = space.gpu().line("Stream #1")
    thread = space.plane("/host:CPU").line("python")
    for step in range(steps):
        launch = {"correlation_id": Unsigned(step + 1)}
        stream.event(kernel, 1000 * step + 100, 50, launch)
        thread.event("train", 1000 * step, 90, {"_r": 1, "step_num": step})
        thread.event("cuLaunchKernel", 1000 * step + 10, 5, launch)
    return space.serialize()


def write_run(folder: Path, captures: dict[str, bytes], files: dict[str, Any] | None = None) -> Path:
    """A run directory; values of `files` that are no text are written as JSON."""
    for name, data in captures.items():
        path = folder / "profile" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, value in (files or {}).items():
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def commits(warehouse: Path) -> list[tuple[Any, ...]]:
    return query(warehouse, "SELECT commit_sha, commit_source FROM runs ORDER BY run_id")
