"""Passes of a counter run that do not show the same dispatches, as problems of the run."""

from __future__ import annotations

import duckdb

from tracewh.ingest.capture import Problem
from tracewh.sql.loading import load_problems
from tracewh.sql.rows import first_row

_PROBLEM = "pass_mismatch"


def count_mismatches(connection: duckdb.DuckDBPyConnection, run_id: int) -> int:
    """Bring the problems of the passes of a run up to date; return how many dispatches they are about.

    Runs in the caller's transaction.
    """
    connection.execute(
        "DELETE FROM main.ingest_problems WHERE run_id = ? AND problem = ?", [run_id, _PROBLEM]
    )
    counted = first_row(
        connection,
        "SELECT COUNT(DISTINCT capture_id) FROM main.counters JOIN main.captures USING (capture_id) "
        "WHERE run_id = ?",
        [run_id],
    )
    if counted is None or not counted[0]:
        return 0
    found = connection.execute(
        "SELECT m.capture_id, a.path, m.kernel_name, m.pass_index, m.grid, m.block, m.device_ordinal, "
        "m.first_dispatch_count, m.dispatch_count FROM v1._counter_pass_mismatches AS m "
        "LEFT JOIN main.captures AS c ON c.capture_id = m.capture_id "
        "LEFT JOIN main.artifacts AS a ON a.artifact_id = c.artifact_id WHERE m.run_id = ? "
        # Within one process some kernels are run again and others are not: that is no difference of passes.
        "AND m.capture_id <> m.first_capture_id "
        "ORDER BY ALL",
        [run_id],
    ).fetchall()
    occurrences = 0
    for capture_id, path, kernel, run_pass, grid, block, ordinal, expected, actual in found:
        detail = (
            f"{kernel} (grid {grid}, block {block}) ran {actual} times on device {ordinal} in pass "
            f"{run_pass}, and {expected} times in the first: no formula that needs both is computed for it"
        )
        problem = Problem(_PROBLEM, str(path), detail, abs(actual - expected))
        occurrences += load_problems(connection, run_id, capture_id, None, [problem])
    return occurrences
