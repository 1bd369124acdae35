"""Random small spaces come back out of the warehouse as they were."""

from __future__ import annotations

import gzip
import itertools
import struct
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracewh.sql.schema_files import create_schema

from .xspace_oracle import XSpace
from .xspace_rebuilt import Rebuilt
from .xspace_roundtrip import check_same, check_shared_rows, load

STAT_NAMES = [
    "correlation_id", "context_id", "cuda_graph_id", "hip_graph_id", "cuda_graph_node_id",
    "hip_graph_node_id", "program_id", "run_id", "scope_range_id", "hlo_op", "hlo_module", "name", "tf_op",
    "annotation", "nvtx_range", "unique_hlo_op_id", "kernel_details", "memcpy_details", "Memset_details",
    "memset_details", "theoretical_occupancy_pct", "occupancy_min_grid_size",
    "occupancy_suggested_block_size", "device_ordinal", "device_id", "_pt", "_p", "_ct", "_c", "_r",
    "step_num", "process_id", "profile_start_time", "Hlo Proto", "flops", "größe", "",
]  # fmt: skip
TEXTS = [
    "",
    "$$5",
    "5",
    "$$05",
    "dot.1",
    "while.2",
    "k",
    "größe",
    "a\x00b",
    "regs:16 grid:1,1,1 occ_pct:50",
    "7",
]
PLANE_NAMES = [
    "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/device:TPU:0 SparseCore 1", "/device:CPU:0",
    "/host:CPU", "/host:metadata", "Task Environment", "/host:__ScopeRangeCallStack__", "/device:CUSTOM:x",
    "#Chip0", "",
]  # fmt: skip
LINE_NAMES = [
    "Stream #1", "Stream #2(Kernel,MemcpyD2D)", "Steps", "XLA Ops", "Async XLA Ops", "Sparse Core Ops",
    "XLA TraceMe", "_counters_", "python", "",
]  # fmt: skip
MAX_INT = 2**63 - 1

texts = st.sampled_from([value.encode() for value in TEXTS]) | st.text(max_size=3).map(str.encode)
# Ids with metadata, and one without.
ids = st.integers(0, 5) | st.just(-3)
integers = st.sampled_from([0, 1, 5, -1, MAX_INT, -MAX_INT - 1]) | st.integers(-MAX_INT - 1, MAX_INT)
small_times = st.integers(-10, 1000)
doubles = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
compressed = st.binary(max_size=5) | texts.map(lambda raw: gzip.compress(raw, mtime=0))
stats = st.lists(
    st.one_of(
        st.tuples(ids, st.none(), st.none()),
        st.tuples(ids, st.just("int64_value"), integers),
        st.tuples(ids, st.just("uint64_value"), st.integers(0, 2**64 - 1) | st.just(5)),
        st.tuples(ids, st.just("double_value"), st.sampled_from([0.0, -0.0, 50.0, float("nan")]) | doubles),
        st.tuples(ids, st.just("str_value"), texts),
        st.tuples(ids, st.just("bytes_value"), st.binary(max_size=5) | st.just(bytes(5000))),
        st.tuples(ids, st.just("ref_value"), st.integers(0, 5) | st.just(2**64 - 3) | st.just(2**63 - 1)),
        st.tuples(ids, st.just("compressed_str_value"), compressed),
    ),
    max_size=6,
)
whens = st.one_of(
    st.tuples(st.just("offset_ps"), small_times | integers), st.tuples(st.just("num_occurrences"), integers)
)
events = st.tuples(ids, whens, small_times | integers, stats)
timestamps = st.sampled_from([0, 28_560, 1_700_000_000_000_000_000, 10**15, 10**15 + 1]) | integers
lines = st.tuples(
    st.sampled_from(LINE_NAMES),
    st.sampled_from(["", *LINE_NAMES]),
    integers,
    timestamps,
    st.lists(events, max_size=6),
)
event_metadata = st.dictionaries(
    st.integers(0, 4), st.tuples(texts, texts, st.binary(max_size=3), st.lists(integers, max_size=2), stats)
)
planes = st.tuples(
    st.sampled_from(PLANE_NAMES),
    integers,
    st.dictionaries(st.integers(0, 4), st.tuples(st.sampled_from(STAT_NAMES), texts), max_size=5),
    event_metadata,
    stats,
    st.lists(lines, max_size=3),
)
spaces = st.tuples(
    st.lists(planes, max_size=3),
    st.lists(texts, max_size=2),
    st.lists(texts, max_size=2),
    st.lists(texts, max_size=2),
)


def add_stats(owner: Any, drawn: list[tuple[int, str | None, Any]]) -> None:
    for stat_id, kind, value in drawn:
        stat = owner.stats.add(metadata_id=stat_id)
        if kind is not None:
            setattr(stat, kind, value)


def message_of(drawn: Any) -> Any:
    """The XSpace of drawn values, and a plane with a name, without which it would be refused."""
    message = XSpace()
    message.planes.add(name=b"named")
    drawn_planes, message.errors[:], message.warnings[:], message.hostnames[:] = drawn
    for name, plane_id, stat_names, metadata, plane_stats, drawn_lines in drawn_planes:
        plane = message.planes.add(name=name.encode(), id=plane_id)
        for key, (stat_name, description) in stat_names.items():
            plane.stat_metadata[key].name = stat_name.encode()
            plane.stat_metadata[key].description = description
        for key, (metadata_name, display_name, raw, children, metadata_stats) in metadata.items():
            item = plane.event_metadata[key]
            item.name, item.display_name, item.metadata = metadata_name, display_name, raw
            item.child_id.extend(children)
            add_stats(item, metadata_stats)
        add_stats(plane, plane_stats)
        for line_name, display_name, number, timestamp_ns, drawn_events in drawn_lines:
            line = plane.lines.add(
                name=line_name.encode(), display_name=display_name.encode(), timestamp_ns=timestamp_ns
            )
            line.id = line.display_id = line.duration_ps = number
            for metadata_id, (field, value), duration_ps, event_stats in drawn_events:
                event = line.events.add(metadata_id=metadata_id, duration_ps=duration_ps)
                setattr(event, field, value)
                add_stats(event, event_stats)
    return message


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        create_schema(opened)
        yield opened


_run_ids = itertools.count(1)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(drawn=spaces)
def test_random_spaces_come_back(connection: duckdb.DuckDBPyConnection, drawn: Any) -> None:
    message = message_of(drawn)
    for compiled in (False, True):
        capture_id = load(connection, message.SerializeToString(), compiled, next(_run_ids))
        check_same(message, Rebuilt(connection, capture_id))
        check_shared_rows(connection, capture_id)
