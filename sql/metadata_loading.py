"""A run's metadata file into the warehouse: parameters, memory figures, step times, rules."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.run_metadata import RunMetadata
from tracewh.sql.loading import insert_rows
from tracewh.sql.rules import insert_rules


def load_metadata(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    artifact_id: int,
    metadata: RunMetadata,
    problems: ProblemCounter,
) -> None:
    """Insert the rows of run_params and of the other tables of metadata, in the caller's transaction."""
    owner = {"run_id": run_id, "artifact_id": artifact_id}
    params = [{"param": param, "value": value} for param, value in metadata.params]
    _insert(connection, "run_params", owner, params)
    devices = _devices_by_ordinal(connection, run_id)
    for ordinal in {ordinal for _, ordinal, *_ in metadata.memory if ordinal is not None} - set(devices):
        problems.add("unknown_device", f"device {ordinal}", "not exactly one device of the run has it")
    memory = [
        {
            "device_id": None if ordinal is None else devices.get(ordinal),
            "sample_label": label,
            "kind": kind,
            "bytes": size,
            "evidence": evidence,
        }
        for label, ordinal, kind, size, evidence in metadata.memory
    ]
    _insert(connection, "memory_samples", owner, memory)
    timing = [
        {
            "sample_index": index,
            "step_num": sample.step_num,
            "metric": sample.metric,
            "value": sample.value,
            "is_profiled": sample.is_profiled,
            "is_warmup": sample.is_warmup,
        }
        for index, sample in enumerate(metadata.timing)
    ]
    _insert(connection, "timing_samples", owner, timing)
    ledger = [
        {"component": row.component, "useful_flops": row.useful_flops, "formula": row.formula}
        for row in metadata.flop_ledger
    ]
    _insert(connection, "model_flop_ledger", owner, ledger)
    insert_rules(connection, metadata.rules, run_id, artifact_id)


def _devices_by_ordinal(connection: duckdb.DuckDBPyConnection, run_id: int) -> dict[int, int]:
    """Device id by ordinal, for ordinals that only one device of the run has."""
    rows = connection.execute(
        "SELECT device_ordinal, MIN(device_id) FROM main.devices WHERE run_id = ? "
        "GROUP BY 1 HAVING COUNT(*) = 1",
        [run_id],
    ).fetchall()
    return {int(ordinal): int(device_id) for ordinal, device_id in rows}


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, owner: dict[str, int], rows: list[dict[str, Any]]
) -> None:
    if rows:
        insert_rows(connection, table, pa.Table.from_pylist([owner | row for row in rows]))
