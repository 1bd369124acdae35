"""Memory in use over time by the allocators' events, and what v1.memory makes of it, against the files."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import tracewh

from .ingest_runs import query, write_run
from .shared_runs import SharedRun, ingested
from .xspace_oracle import Ref, SpaceBuilder, Unsigned, XSpace, text

_VALUES = ("int64_value", "uint64_value", "double_value", "str_value", "ref_value")


def allocator_events(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Each event of an allocator in an XSpace: its name, and its stats by protobuf's reading."""
    found = []
    for plane in XSpace.FromString(path.read_bytes()).planes:
        names = {key: text(value.name) for key, value in plane.stat_metadata.items()}
        events = {key: text(value.name) for key, value in plane.event_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                if events.get(event.metadata_id) not in ("MemoryAllocation", "MemoryDeallocation"):
                    continue
                stats = {}
                for stat in event.stats:
                    field = next(name for name in _VALUES if stat.HasField(name))
                    value = getattr(stat, field)
                    stats[names[stat.metadata_id]] = names[value] if field == "ref_value" else value
                found.append((events[event.metadata_id], stats))
    return found


def xspaces(run: SharedRun) -> list[Path]:
    return [run.path] if run.path.is_file() else sorted(run.path.rglob("*.xplane.pb"))


@pytest.mark.parametrize(
    "name",
    [
        *("h200x2_medium_fsdp2", "h200x1_small", "h200_2proc"),
        *("TraceLens-mi300-jax08_conv", "TraceLens-mi300-jax08_gemm", "TraceLens-mi300-jax_conv_legacy"),
        *("TraceLens-te_fused_attn", "xprof-tpu_inference_2"),
    ],
)
def test_real_timelines(name: str, tmp_path: Path) -> None:
    with ingested(name, tmp_path) as run:
        events = [event for path in xspaces(run) for event in allocator_events(path)]
        expected: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        for _, stats in events:
            allocator = stats.get("allocator_name")
            ordinal = re.fullmatch(r"GPU_(\d+)_bfc", allocator) if allocator else None
            place = int(ordinal[1]) if ordinal else stats.get("index_on_host")
            limit = stats["bytes_allocated"] + stats["bytes_reserved"] + stats["bytes_available"]
            expected[allocator, place].append((stats["bytes_allocated"], limit))
        rows = run.rows(
            """SELECT allocator, t.device_ordinal, device_id IS NULL, live_bytes, limit_bytes, delta_bytes,
                is_high_water, is_lower_bound
            FROM v1.memory_timeline AS t ORDER BY capture_id, time_ps, host_event_id"""
        )
        found: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        before: dict[Any, int] = {}
        for allocator, place, is_unplaced, live, limit, delta, _, is_lower_bound in rows:
            # All but the memory of the host is of a device of the run.
            assert is_unplaced == (place is None)
            assert not is_lower_bound
            # What each event says that it took or gave back is how the allocator's own count moved.
            if (allocator, place) in before:
                assert live - before[allocator, place] == delta
            before[allocator, place] = live
            found[allocator, place].append((live, limit))
        assert found
        assert {key: sorted(values) for key, values in found.items()} == {
            key: sorted(values) for key, values in expected.items()
        }
        marked = {row[:2]: row[3] for row in rows if row[6]}
        assert marked == {key: max(live for live, _ in values) for key, values in expected.items()}


def test_the_sources_agree_where_they_measure_the_same(tmp_path: Path) -> None:
    with ingested("h200x2_medium_fsdp2", tmp_path) as run:
        statistics = json.loads((run.path / "memory_stats.json").read_text())["end"]
        rows = run.rows(
            """SELECT source, device_ordinal, kind, bytes, limit_bytes, share_of_limit_ratio, is_worst_device
            FROM v1.memory WHERE label IN ('end', 'GPU_0_bfc', 'GPU_1_bfc')"""
        )
        found = {row[:3]: row[3:] for row in rows}
        for ordinal in (0, 1):
            stated = statistics[f"cuda:{ordinal}"]
            peak, limit = stated["peak_bytes_in_use"], stated["bytes_limit"]
            # Both devices have the same, so both are the worst.
            assert found["allocator_stats", ordinal, "peak_bytes_in_use"] == (peak, limit, peak / limit, True)
            assert found["allocator_events", ordinal, "peak_bytes_in_use"] == (
                peak,
                limit,
                peak / limit,
                True,
            )
            # The profiled steps are those that took most.
            assert found["allocator_events", ordinal, "high_water"][0] == peak
            assert not found["allocator_stats", ordinal, "bytes_limit"][3]
        assert not [row for row in rows if row[2] == "num_allocs"]


def test_what_a_tpu_reserves_counts(tmp_path: Path) -> None:
    with ingested("xprof-tpu_inference_2", tmp_path) as run:
        (path,) = xspaces(run)
        expected: dict[tuple[int, str], int] = defaultdict(int)
        for _, stats in allocator_events(path):
            live, reserved = stats["bytes_allocated"], stats["bytes_reserved"]
            for kind, size in (
                ("high_water", live),
                ("reserved_high_water", reserved),
                ("total_high_water", live + reserved),
                ("peak_bytes_in_use", stats["peak_bytes_in_use"]),
            ):
                key = stats["index_on_host"], kind
                expected[key] = max(expected[key], size)
        rows = run.rows("SELECT device_ordinal, kind, bytes FROM v1.memory WHERE source = 'allocator_events'")
        assert {row[:2]: row[2] for row in rows} == dict(expected)


def test_events_that_name_their_device_otherwise(tmp_path: Path) -> None:
    """Stats as other versions may write them: a device_ordinal, texts, unsigned numbers."""
    space = SpaceBuilder()
    space.plane("/device:TPU:1").line("XLA Ops").event("fusion.1", 0, 10)
    thread = space.plane("/host:CPU").line("allocating")
    counted = {
        "bytes_allocated": 300,
        "bytes_reserved": 100,
        "bytes_available": 600,
        "peak_bytes_in_use": 500,
    }
    thread.event(
        "MemoryAllocation",
        100,
        0,
        {"device_ordinal": 1, "allocation_bytes": Unsigned(64), "addr": 8, **counted},
    )
    thread.event(
        "MemoryDeallocation", 200, 0, {"device_ordinal": 1, "addr": 8, **counted, "bytes_allocated": 236}
    )
    thread.event(
        "MemoryAllocation", 300, 0, {"allocator_name": "xla_gpu_host_bfc", "region_type": Ref("temp")}
    )
    warehouse = tmp_path / "w.duckdb"
    tracewh.ingest_run(write_run(tmp_path / "run", {"a.xplane.pb": space.serialize()}), warehouse=warehouse)
    found = query(
        warehouse,
        """SELECT device_ordinal, device_id IS NULL, memory_space, time_ps, delta_bytes, live_bytes,
            limit_bytes
        FROM v1.memory_timeline ORDER BY time_ps""",
    )
    assert found == [
        (1, False, 0, 100, 64, 300, 1000),
        (1, False, 0, 200, -64, 236, 936),
        (None, True, 5, 300, None, None, None),
    ]
    # What the view does not show is there all the same.
    kept = query(
        warehouse,
        """SELECT v.name FROM event_stats AS s JOIN names AS n ON n.name_id = s.stat_name_id
        JOIN names AS v ON v.name_id = s.value_name_id WHERE n.name = 'region_type'""",
    )
    assert kept == [("temp",)]
