"""A run's metadata file into the warehouse: parameters, memory figures, step times, rules."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import duckdb
import pyarrow as pa

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.device_labels import device_number
from tracewh.ingest.memory_profile import MemoryProfile
from tracewh.ingest.run_metadata import RunMetadata
from tracewh.ingest.xla_flags import held_flags
from tracewh.sql.loading import insert_rows
from tracewh.sql.rules import insert_rules


def load_metadata(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    artifact_id: int,
    metadata: RunMetadata,
    problems: ProblemCounter,
) -> None:
    """Insert the rows of run_params, run_flags and the other tables, in the caller's transaction."""
    owner = {"run_id": run_id, "artifact_id": artifact_id}
    params = [{"param": param, "value": value} for param, value in metadata.params]
    _insert(connection, "run_params", owner, params)
    flags = [
        {"param": param, "flag": flag, "value": value} for param, flag, value in held_flags(metadata.params)
    ]
    _insert(connection, "run_flags", owner, flags)
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
    if metadata.memory_profile is not None:
        _insert_profile(connection, owner, metadata.memory_profile, devices, problems)
    insert_rules(connection, metadata.rules, run_id, artifact_id)


def _insert_profile(
    connection: duckdb.DuckDBPyConnection,
    owner: dict[str, int],
    profile: MemoryProfile,
    devices: dict[int, int],
    problems: ProblemCounter,
) -> None:
    """Insert rows of memory_profile_samples and memory_profile_frames."""
    samples = []
    for index, sample in enumerate(profile.samples):
        number = None if sample.device_label is None else device_number(sample.device_label)
        device_id = None if number is None else devices.get(number)
        if sample.device_label is not None and device_id is None:
            detail = "not exactly one device of the run has it"
            problems.add("unknown_device", f"device {sample.device_label[:40]}", detail)
        samples.append({"sample_index": index, "device_id": device_id, **asdict(sample)})
    _insert(connection, "memory_profile_samples", owner, samples)
    frames = [
        {"stack_id": stack_id, "frame_index": index, **asdict(frame)}
        for stack_id, stack in enumerate(profile.stacks)
        for index, frame in enumerate(stack)
    ]
    _insert(connection, "memory_profile_frames", owner, frames)


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
