"""The rocpd reader against what SQLite itself says of the same file."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tracewh.ingest import rocpd
from tracewh.ingest.capture import Capture
from tracewh.ingest.rocm_host_events import step_marker

from .rocpd_files import (
    FIXTURE,
    SHARED,
    calls,
    kind,
    make_rocpd,
    needs_shared,
    query,
    read_one,
    rejected,
    rows,
    stats,
    write,
)


@pytest.fixture(scope="module")
def train() -> Capture:
    return read_one(FIXTURE)


@pytest.fixture(scope="module")
def origin() -> int:
    """Earliest start in the fixture, in ns."""
    tables = ("kernel_dispatch", "memory_copy", "region", "memory_allocate")
    return min(query(FIXTURE, f"SELECT min(start) FROM rocpd_{table}")[0][0] for table in tables)


def test_fixture_is_what_the_generator_writes(tmp_path: Path) -> None:
    path = write(tmp_path / "again.db", counts=False)
    dumps = []
    for file in (FIXTURE, path):
        connection = sqlite3.connect(file)
        dumps.append(list(connection.iterdump()))
        connection.close()
    assert dumps[0] == dumps[1]
    assert query(FIXTURE, "PRAGMA foreign_key_check") == []
    assert FIXTURE.stat().st_size < 300_000


def test_identity(train: Capture, origin: int) -> None:
    assert rocpd.detect(FIXTURE) == "rocpd_v3"
    assert (train.source_kind, train.platform) == ("rocpd", "rocm")
    assert (train.hostname, train.process_id) == ("mi300x-node", 41_337)
    assert (train.origin_source_ns, train.origin_unix_ns) == (origin, None)
    assert train.attributes["schema_version"] == "3.0.0"
    assert train.attributes["guid"] == make_rocpd.GUID
    assert train.attributes["command"] == "python train.py --layers 3"
    assert train.problems == []


def test_environment_is_never_read(train: Capture) -> None:
    assert train.attributes["environment"] == "not stored"
    texts = [*train.names.strings, *train.attributes, *map(str, train.attributes.values())]
    assert not any("TOKEN" in text or "not-for-a-warehouse" in text for text in texts)


def test_devices_are_the_agents_gpus_first(train: Capture) -> None:
    counters = rows(counted, "counters")
    described = [(row["counter_name"], row["device_index"], row["block"]) for row in counters]
    assert described == [(make_rocpd.COUNTER, 0, "SQ"), (make_rocpd.COUNTER, 1, "SQ")]
    assert [row["is_derived"] for row in counters] == [False, False]
    gemms = [row for row in kind(counted, "kernel") if row["name"] == make_rocpd.FORWARD_GEMM.name][: 3 * 2]
    expected = [
        (gemm["device_index"], gemm["device_event_id"], instance, make_rocpd.counter_value(layer, instance))
        for layer, gemm in zip([0, 1, 2, 0, 1, 2], gemms, strict=True)
        for instance in (0, 1)
    ]
    values = rows(counted, "counter_values")
    columns = ("counter_id", "device_event_id", "instance", "value")
    assert [tuple(row[column] for column in columns) for row in values] == expected


def test_tracks(train: Capture) -> None:
    tracks = rows(train, "tracks")
    assert [row["track_id"] for row in tracks] == list(range(len(tracks)))
    of_gpu_1 = [(row["track_kind"], row["track_name"]) for row in tracks if row["device_index"] == 1]
    # Copies name no queue.
    assert of_gpu_1 == [
        ("queue", "Queue 3, Stream 3"),
        ("queue", "Queue 4, Stream 4"),
        ("stream", "Stream 3"),
    ]
    assert [row["track_name"] for row in tracks if row["track_kind"] == "thread"] == ["python"]
    assert tracks[-1]["native_id"] == 41_337


@needs_shared
@pytest.mark.parametrize("rank", [0, 1])
def test_public_synthetic_ranks_reconcile(rank: int) -> None:
    path = SHARED / "rocpd" / f"SYNTH-rank{rank}_results.db"
    capture = read_one(path)

    def stored(base: str) -> int:
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        count = int(connection.execute(f"SELECT count(*) FROM rocpd_{base}").fetchone()[0])
        connection.close()
        return count

    loaded = {
        "kernel_dispatch": len(kind(capture, "kernel")),
        "memory_copy": len(kind(capture, "memcpy")),
        "pmc_event": capture.row_count("counter_values"),
        "info_pmc": capture.row_count("counters"),
        "arg": sum(row["stat_name"] == "function_address" for row in rows(capture, "event_stats")),
    }
    for base, count in loaded.items():
        assert count + rejected(capture, f"rocpd_{base}") == stored(base) > 0, base
    assert capture.row_count("host_events") == stored("region") + stored("sample")
    assert capture.row_count("memory_allocations") == stored("memory_allocate")
    whole = ("region", "sample", "memory_allocate", "event")
    assert not any(rejected(capture, f"rocpd_{base}") for base in whole)
    assert [row["step_num"] for row in rows(capture, "steps")] == [1]
