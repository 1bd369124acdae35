"""Runs and kept metrics, written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from tracewh.sql.kept_metrics import metrics_version


def add_run(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    name: str,
    commit: str | None = None,
    *,
    device_kind: str = "NVIDIA H200",
    unix_ns: int | None = None,
    tokens: int | None = None,
    is_current: bool = True,
) -> None:
    """A run with one capture on one device, whose metrics are kept."""
    connection.execute(
        "INSERT INTO main.runs VALUES ($1, $2, $3, $4, NULL)", [run_id, name, f"/{name}", commit]
    )
    connection.execute(
        "INSERT INTO main.captures (capture_id, run_id, artifact_id, source_kind, origin_unix_ns) "
        "VALUES ($1, $1, $1, 'xspace', $2)",
        [run_id, unix_ns],
    )
    connection.execute(
        "INSERT INTO main.devices (device_id, run_id, hostname, device_type, device_ordinal, device_kind) "
        "VALUES ($1, $1, '', 'GPU', 0, $2)",
        [run_id, device_kind],
    )
    if tokens is not None:
        connection.execute(
            "INSERT INTO main.run_params VALUES ($1, $1, 'tokens_per_update', $2)", [run_id, str(tokens)]
        )
    connection.execute(
        "INSERT INTO main.kept_metrics VALUES ($1, $2, $3)", [run_id, metrics_version(), is_current]
    )


def add_metric(
    connection: duckdb.DuckDBPyConnection,
    metric: str,
    values: Sequence[float | None],
    *,
    first_run: int = 1,
    scope: str = "",
    unit: str = "ms",
    polarity: str = "lower",
    evidence: str = "measured",
    timing: str | None = "unprofiled",
) -> None:
    """One value for each run from `first_run` on; None leaves a run out."""
    connection.executemany(
        "INSERT INTO main.run_metrics VALUES ($1, $1, $2, $3, $4, $5, $6, $7, $8, 'median', 10)",
        [
            [run_id, metric, scope, value, unit, polarity, evidence, timing]
            for run_id, value in enumerate(values, start=first_run)
            if value is not None
        ],
    )
