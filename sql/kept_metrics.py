"""Metrics of runs, kept in tables: what comparisons of many runs read without the events of any.

v1._run_metrics, v1._metric_samples, v1._step_parts and v1._run_modules stay the definition. Rows of a run
whose rules, steps or views have changed since are told by v1.metrics (is_current) until they are computed
anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import duckdb

from tracewh.sql.run_scope import run_scope
from tracewh.views.catalog import load_views

_DEFINITION = "v1._run_metrics"
_TABLES = ("run_metrics", "metric_samples", "step_parts", "run_modules")
# Runs are computed together, since planning the views takes longer than small captures do; not too many
# events at once, though.
_MOST_EVENTS = 1_000_000
# In the order of their captures, those without any first.
_RUNS = """
    SELECT r.run_id, coalesce(k.is_current AND k.view_version = $1, FALSE)
    FROM main.runs AS r
    LEFT JOIN main.kept_metrics AS k USING (run_id)
    LEFT JOIN main.captures AS c USING (run_id)
    GROUP BY ALL
    ORDER BY min(c.capture_id) NULLS FIRST, r.run_id
"""
_EVENTS = """
    SELECT c.run_id, count(*) FROM main.device_events AS e JOIN main.captures AS c USING (capture_id)
    WHERE list_contains($1, c.run_id) GROUP BY c.run_id
"""


def keep_metrics(connection: duckdb.DuckDBPyConnection, run_ids: Iterable[int]) -> None:
    """Compute the metrics of these runs anew, in the caller's transaction."""
    wanted = set(run_ids)
    for batch in _batches(connection, wanted):
        _keep_batch(connection, batch)


def outdated_metrics(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """The runs whose metrics are not kept, or not as this version and the warehouse's rules define them."""
    return [run_id for run_id, is_current in _runs(connection) if not is_current]


def mark_metrics_outdated(connection: duckdb.DuckDBPyConnection, run_id: int | None = None) -> None:
    """Say that what the metrics of a run are made of has changed; of all runs where `run_id` is None."""
    connection.execute(
        "UPDATE main.kept_metrics SET is_current = FALSE WHERE is_current AND ($1 IS NULL OR run_id = $1)",
        [run_id],
    )


def mark_metrics_of_new_views(connection: duckdb.DuckDBPyConnection, installed: Collection[str]) -> None:
    """Say that metrics are outdated where a definition of what is kept with them was just installed."""
    if any(f"v1._{table}" in installed for table in _TABLES):
        mark_metrics_outdated(connection)


def metrics_version() -> str:
    """Version and fingerprint of the definition, with those of all views that it reads."""
    view = next(view for view in load_views() if view.name == _DEFINITION)
    return f"{view.version}:{view.fingerprint}"


def _batches(connection: duckdb.DuckDBPyConnection, wanted: Collection[int]) -> Iterator[list[int]]:
    """The wanted runs, together where no other run's captures are between theirs."""
    event_counts: dict[int, int] = dict(connection.execute(_EVENTS, [list(wanted)]).fetchall())
    batch: list[int] = []
    for run_id, _ in _runs(connection):
        events = sum(event_counts.get(other, 0) for other in [*batch, run_id])
        if batch and (run_id not in wanted or events > _MOST_EVENTS):
            yield batch
            batch = []
        if run_id in wanted:
            batch.append(run_id)
    if batch:
        yield batch


def _runs(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, bool]]:
    return connection.execute(_RUNS, [metrics_version()]).fetchall()


def _keep_batch(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[int]) -> None:
    views = {view.name: view for view in load_views()}
    for table in (*_TABLES, "kept_metrics"):
        connection.execute(f"DELETE FROM main.{table} WHERE list_contains($1, run_id)", [run_ids])
    with run_scope(connection, run_ids) as scope:
        for table in _TABLES:
            scope.insert(views[f"v1._{table}"], f"main.{table}")
    connection.execute(
        "INSERT INTO main.kept_metrics SELECT unnest($1), $2, TRUE", [run_ids, metrics_version()]
    )
