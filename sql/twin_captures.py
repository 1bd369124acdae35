"""One process, given in two formats, is one capture: finding the twin, and keeping the richer."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from tracewh.ingest.capture import Problem
from tracewh.sql.rows import first_row
from tracewh.sql.warehouse import delete_everywhere

# What tells most of a process comes first.
_RICHEST_FIRST = ("xspace", "rocpd", "rocprof_json", "rpd", "rocprof_csv", "rocprof_compute")
_COMPARED_TABLES = ("device_events", "host_events", "memory_allocations", "counter_values", "pc_samples")


@dataclass(frozen=True)
class Twin:
    """A capture of the same process, from another file; `run_name` holds it."""

    capture_id: int
    run_id: int
    run_name: str
    path: str
    source_kind: str


def find_twin(connection: duckdb.DuckDBPyConnection, capture_id: int) -> Twin | None:
    """Find an older capture whose work began and ended at the same times.

    Process, host and, in files of one format, guid are the same as far as both files tell. One of the same
    run comes first.
    """
    row = first_row(
        connection,
        "SELECT t.capture_id, t.run_id, r.run_name, a.path, t.source_kind "
        "FROM main.captures AS c JOIN main.captures AS t "
        "ON t.fingerprint = c.fingerprint AND t.artifact_id <> c.artifact_id "
        "JOIN main.runs AS r ON r.run_id = t.run_id "
        "LEFT JOIN main.artifacts AS a ON a.artifact_id = t.artifact_id "
        "WHERE c.capture_id = ? "
        "AND COALESCE(t.process_id, c.process_id) IS NOT DISTINCT FROM COALESCE(c.process_id, t.process_id) "
        "AND (t.hostname = c.hostname OR COALESCE(t.hostname, '') = '' OR COALESCE(c.hostname, '') = '') "
        # A converter may write the guid in another way.
        "AND (t.source_kind <> c.source_kind OR NOT EXISTS (SELECT 1 FROM main.capture_attributes AS x "
        "JOIN main.capture_attributes AS y ON y.attribute = x.attribute AND y.value <> x.value "
        "WHERE x.capture_id = t.capture_id AND y.capture_id = c.capture_id AND x.attribute = 'guid')) "
        "ORDER BY t.run_id <> c.run_id, t.capture_id LIMIT 1",
        [capture_id],
    )
    return None if row is None else Twin(*row)


def keep_richer(
    connection: duckdb.DuckDBPyConnection, capture_id: int, source_kind: str, twin: Twin
) -> tuple[int, list[Problem]]:
    """Delete the capture of the two whose format tells less.

    Returns the one that stays, and what it lacks of the other: rows that had no counterpart there. Runs in
    the caller's transaction.
    """
    is_richer = _RICHEST_FIRST.index(source_kind) < _RICHEST_FIRST.index(twin.source_kind)
    kept, dropped = (capture_id, twin.capture_id) if is_richer else (twin.capture_id, capture_id)
    problems = []
    for table in _COMPARED_TABLES:
        more = _count(connection, table, dropped) - _count(connection, table, kept)
        if more > 0:
            detail = "rows rejected: the other file about this process, which was kept, has fewer of them"
            problems.append(Problem("rows_of_twin", table, detail, more))
    if is_richer:
        connection.execute(
            "UPDATE main.artifacts SET status = 'merged', detail = 'the same process as another file' "
            "WHERE artifact_id IN (SELECT artifact_id FROM main.captures WHERE capture_id = ?)",
            [dropped],
        )
        # A file that is read alone does not tell the rank of its process.
        connection.execute(
            "UPDATE main.captures AS c SET process_index = d.process_index FROM main.captures AS d "
            "WHERE c.capture_id = ? AND d.capture_id = ? AND c.process_index IS NULL",
            [kept, dropped],
        )
        for table in ("artifacts", "hlo_programs"):
            connection.execute(
                f"UPDATE main.{table} SET capture_id = ? WHERE capture_id = ?", [kept, dropped]
            )
    delete_everywhere(connection, "capture_id", dropped)
    return kept, problems


def _count(connection: duckdb.DuckDBPyConnection, table: str, capture_id: int) -> int:
    row = first_row(connection, f"SELECT COUNT(*) FROM main.{table} WHERE capture_id = ?", [capture_id])
    assert row is not None
    return int(row[0])
