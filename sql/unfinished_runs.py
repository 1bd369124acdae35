"""Runs whose ingest is under way, or ended before it was done.

Each file is loaded in a transaction of its own, and what is kept of the run as a whole is computed after the
last. Until then the run is marked, so that nobody takes what is there for all of it.
"""

from __future__ import annotations

import duckdb

from tracewh.ingest.capture import Problem
from tracewh.sql.counter_passes import count_mismatches
from tracewh.sql.kept_metrics import mark_metrics_outdated
from tracewh.sql.kept_views import keep_rows_of_op_names, keep_rows_of_run
from tracewh.sql.loading import load_problems
from tracewh.sql.pattern_answers import remember_matches
from tracewh.sql.rows import first_row
from tracewh.sql.step_markers import mark_texts

_PROBLEM = "interrupted_ingest"
_DETAIL = "its ingest ended before all of its files were read; ingest it again"


def mark_unfinished(connection: duckdb.DuckDBPyConnection, run_id: int) -> None:
    """Mark a run until `finish_run`, in the transaction that changes its rows."""
    known = first_row(connection, "SELECT 1 FROM main.unfinished_runs WHERE run_id = ?", [run_id])
    if known is None:
        connection.execute("INSERT INTO main.unfinished_runs VALUES (?)", [run_id])


def finish_run(connection: duckdb.DuckDBPyConnection, run_id: int) -> int:
    """Bring what is kept of a run up to date and take its mark away, in the caller's transaction.

    Returns the number of problems between its captures.
    """
    remember_matches(connection)
    keep_rows_of_op_names(connection)
    mark_texts(connection, run_id)
    keep_rows_of_run(connection, run_id)
    mark_metrics_outdated(connection, run_id)
    connection.execute("DELETE FROM main.unfinished_runs WHERE run_id = ?", [run_id])
    connection.execute(
        "DELETE FROM main.ingest_problems WHERE run_id = ? AND problem = ?", [run_id, _PROBLEM]
    )
    return count_mismatches(connection, run_id)


def finish_interrupted_runs(connection: duckdb.DuckDBPyConnection) -> None:
    """Make what is kept of marked runs that of the files that they have, in the caller's transaction.

    That files are missing becomes a problem of the run, which stays until an ingest of it ends well.
    """
    marked = connection.execute(
        "SELECT r.run_id, r.path FROM main.unfinished_runs JOIN main.runs AS r USING (run_id)"
    ).fetchall()
    for run_id, path in marked:
        finish_run(connection, run_id)
        load_problems(connection, run_id, None, None, [Problem(_PROBLEM, path, _DETAIL)])
