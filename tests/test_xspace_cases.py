"""The XSpace reader on synthetic spaces: one property each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh
from tracewh.ingest import xspace

from .xspace_expected import DEVICE_QUERY, HOST_QUERY, STATS_QUERY, Row, rows_of, stored, values_of
from .xspace_oracle import Compressed, Ref, SpaceBuilder, Unsigned, XSpace, fields, varint

Ingest = Callable[[SpaceBuilder], duckdb.DuckDBPyConnection]


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    """A function that loads a space into a new warehouse and opens that without tracewh."""
    opened = []

    def load(space: SpaceBuilder) -> duckdb.DuckDBPyConnection:
        path = tmp_path / f"{len(opened)}.xplane.pb"
        path.write_bytes(space.serialize())
        warehouse = tmp_path / f"{len(opened)}.duckdb"
        tracewh.ingest_run(path, warehouse=warehouse)
        opened.append(duckdb.connect(str(warehouse), read_only=True))
        return opened[-1]

    yield load
    for connection in opened:
        connection.close()


def problems_of(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    rows = connection.execute("SELECT problem, SUM(occurrences) FROM ingest_problems GROUP BY 1").fetchall()
    return {name: int(count) for name, count in rows}


def stats_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, int, str, str, Any]]:
    return sorted(
        (row["owner"], row["owner_id"], *stored(row)) for row in rows_of(connection, STATS_QUERY, 1)
    )


def device_rows(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(connection, DEVICE_QUERY, 1)


def host_rows(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(connection, HOST_QUERY, 1)


def test_missing_event_metadata_is_counted_and_the_events_stay(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event(77, 0, 10).event("known", 10, 10).event(77, 20, 10)
    connection = ingest(space)
    names = [row["name"] for row in device_rows(connection)]
    assert names[1] == "known"
    assert names[0] == names[2]
    assert "77" in names[0]
    assert problems_of(connection) == {"missing_metadata": 2}


def test_missing_stat_metadata_is_counted_and_the_stat_stays(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 10, [(99, 5)]).event("k", 10, 10, [("color", 6)])
    connection = ingest(space)
    (missing, known) = stats_of(connection)
    assert known == ("device_event", 1, "color", "int64", 6)
    assert missing[:2] == ("device_event", 0)
    assert "99" in missing[2]
    assert missing[3:] == ("int64", 5)
    assert problems_of(connection) == {"missing_metadata": 1}


def test_reference_to_missing_metadata_is_counted(ingest: Ingest) -> None:
    space = SpaceBuilder()
    line = space.gpu().line("Stream #1").event("k", 0, 10)
    line.message.events[0].stats.add(metadata_id=line.plane.stat_id("hlo_op"), ref_value=88)
    connection = ingest(space)
    assert "88" in device_rows(connection)[0]["hlo_op"]
    assert problems_of(connection) == {"missing_metadata": 1}


def test_events_inherit_the_stats_of_their_metadata(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    inherited = {"program_id": Unsigned(5), "hlo_op": Ref("dot.1"), "color": Ref("red"), "size": 3}
    plane.metadata("k", stats=inherited)
    line = plane.line("Stream #1").event("other", 0, 1)
    line.event("k", 10, 5).event("k", 20, 5, {"program_id": Unsigned(6), "hlo_op": "dot.2", "size": 2.5})
    connection = ingest(space)
    rows = device_rows(connection)
    assert [(row["program_id"], row["hlo_op"]) for row in rows] == [(None, None), (5, "dot.1"), (6, "dot.2")]
    # The event's own `size` is what holds, in place of the inherited one.
    assert stats_of(connection) == [
        ("device_event", 1, "color", "ref", "red"),
        ("device_event", 1, "size", "int64", 3),
        ("device_event", 2, "color", "ref", "red"),
        ("device_event", 2, "size", "double", 2.5),
    ]


def test_unsigned_values_keep_their_bits(ingest: Ingest) -> None:
    space = SpaceBuilder()
    stats = {"correlation_id": Unsigned(2**63 + 5), "program_id": Unsigned(2**64 - 1), "big": Unsigned(2**63)}
    space.gpu().line("Stream #1").event("k", 0, 1, stats)
    connection = ingest(space)
    (row,) = device_rows(connection)
    assert (row["correlation_id"], row["program_id"]) == (5 - 2**63, -1)
    assert stats_of(connection) == [("device_event", 0, "big", "uint64", -(2**63))]


def test_every_type_of_stat_is_kept_as_it_is(ingest: Ingest) -> None:
    space = SpaceBuilder()
    values = {
        "d": -0.25, "nan": float("nan"), "u": Unsigned(7), "i": -7, "s": "größe", "b": b"\x00\xff",
        "r": Ref("target"), "c": Compressed(b"\x1f\x8b\x00"), "n": None,
    }  # fmt: skip
    # A known stat of a type that its column cannot hold is no less kept.
    values |= {"correlation_id": "seven", "hlo_op": 3, "kernel_details": b"regs"}
    space.gpu().line("Stream #1").event("k", 0, 1, values)
    connection = ingest(space)
    found = {name: (kind, value) for _, _, name, kind, value in stats_of(connection)}
    assert str(found.pop("nan")[1]) == "nan"
    assert found == {
        "d": ("double", -0.25),
        "u": ("uint64", 7),
        "i": ("int64", -7),
        "s": ("string", "größe"),
        "b": ("bytes", b"\x00\xff"),
        "r": ("ref", "target"),
        "c": ("compressed", b"\x1f\x8b\x00"),
        "n": ("none", None),
        "correlation_id": ("string", "seven"),
        "hlo_op": ("int64", 3),
        "kernel_details": ("bytes", b"regs"),
    }


def test_a_second_stat_for_one_column_is_not_lost(ingest: Ingest) -> None:
    space = SpaceBuilder()
    stats = [
        ("cuda_graph_id", 1),
        ("hip_graph_id", 2),
        ("kernel_details", "regs:16"),
        ("memcpy_details", "size:8"),
    ]
    space.gpu().line("Stream #1").event("k", 0, 1, stats)
    connection = ingest(space)
    (row,) = device_rows(connection)
    held = {row["graph_id"], row["details"]} | {value for *_, value in stats_of(connection)}
    assert held >= {1, 2, "regs:16", "size:8"}


def test_a_device_ordinal_that_is_not_the_planes_is_not_lost(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu(3).line("Stream #1").event("k", 0, 1, {"device_ordinal": 7})
    connection = ingest(space)
    assert [row["device_ordinal"] for row in device_rows(connection)] == [3]
    assert stats_of(connection) == [("device_event", 0, "device_ordinal", "int64", 7)]


def test_negative_duration_is_taken_as_zero_and_counted(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1", timestamp_ns=2).event("k", 100, -50).event("k", 300, 50).event("k", 9, -1)
    connection = ingest(space)
    times = [(row["start_ps"], row["end_ps"]) for row in device_rows(connection)]
    assert times == [(2100, 2100), (2300, 2350), (2009, 2009)]
    assert problems_of(connection) == {"negative_duration": 2}


def test_counter_events_keep_their_number_of_occurrences(ingest: Ingest) -> None:
    space = SpaceBuilder()
    line = space.plane("/host:CPU").line("t", timestamp_ns=4)
    line.event("many", num_occurrences=12, duration_ps=7).event("none", num_occurrences=0).event(
        "timed", 5, 6
    )
    connection = ingest(space)
    found = [
        (row["name"], row["num_occurrences"], row["start_ps"], row["end_ps"]) for row in host_rows(connection)
    ]
    assert found == [("many", 12, 4000, 4007), ("none", 0, 4000, 4000), ("timed", None, 4005, 4011)]


WALL_NS = 1_700_000_000_000_000_000


@pytest.mark.parametrize("start_ns", [WALL_NS - 5_000, None])
def test_wall_clock_lines_move_to_the_start_of_the_profile(ingest: Ingest, start_ns: int | None) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1", timestamp_ns=WALL_NS + 3).event("k", 250, 50)
    space.plane("/host:CPU").line("t", timestamp_ns=WALL_NS).event("call", 7, 2)
    if start_ns is not None:
        space.plane("Task Environment", {"profile_start_time": Unsigned(start_ns)})
    connection = ingest(space)
    origin = start_ns if start_ns is not None else WALL_NS
    assert values_of(connection, "SELECT origin_unix_ns FROM captures") == [origin]
    shift = (WALL_NS - origin) * 1000
    assert [(r["start_ps"], r["end_ps"]) for r in device_rows(connection)] == [(shift + 3250, shift + 3300)]
    assert [(r["start_ps"], r["end_ps"]) for r in host_rows(connection)] == [(shift + 7, shift + 9)]
    assert problems_of(connection) == {}


def test_relative_lines_stay_beside_wall_clock_lines(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1", timestamp_ns=28_560).event("k", 1, 2)
    space.plane("/host:CPU").line("t", timestamp_ns=WALL_NS + 9).event("call", 0, 2)
    space.plane("Task Environment", {"profile_start_time": Unsigned(WALL_NS)})
    connection = ingest(space)
    assert [row["start_ps"] for row in device_rows(connection)] == [28_560_001]
    assert [row["start_ps"] for row in host_rows(connection)] == [9000]


def test_names_that_are_not_utf_8(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    bad = b"k\xff\xfe\x80"
    line = plane.line(b"Stream #1 \xc3", 0).event(bad, 0, 1, [("kept", "v")])
    line.message.events[0].stats.add(metadata_id=plane.stat_id(b"stat\xff"), str_value=b"v\xfe")
    space.plane(b"/host:\xff").line("t").event("call", 0, 1)
    connection = ingest(space)
    assert [row["name"] for row in device_rows(connection)] == ["k���"]
    assert ("device_event", 0, "stat�", "string", "v�") in stats_of(connection)
    tracks = values_of(connection, "SELECT track_name FROM tracks ORDER BY track_id")
    assert tracks == ["Stream #1 �", "t"]
    assert values_of(connection, "SELECT plane_name FROM tracks WHERE track_name = 't'") == ["/host:�"]


def test_a_name_with_a_nul_character(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("a\x00b", 0, 1).event("a", 1, 1).event("", 2, 1)
    assert [row["name"] for row in device_rows(ingest(space))] == ["a\x00b", "a", ""]


@pytest.mark.parametrize(
    ("offset", "duration"),
    [(2**63 - 1, 1), (-(2**63), 1), (0, 2**63 - 1), (2**62, 2**62), (-(2**62), 0), (2**63 - 1, 2**63 - 1)],
)
def test_absurd_times_are_left_out_and_counted(ingest: Ingest, offset: int, duration: int) -> None:
    space = SpaceBuilder()
    line = space.gpu().line("Stream #1", timestamp_ns=1).event("good", 5, 6, {"a": 1})
    line.event("bad", offset, duration, {"b": 2}).event("also good", 20, 1, {"c": 3})
    connection = ingest(space)
    assert [(row["name"], row["start_ps"]) for row in device_rows(connection)] == [
        ("good", 1005),
        ("also good", 1020),
    ]
    assert stats_of(connection) == [
        ("device_event", 0, "a", "int64", 1),
        ("device_event", 1, "c", "int64", 3),
    ]
    assert problems_of(connection) == {"impossible_time": 1}


@pytest.mark.parametrize("timestamp_ns", [-(2**63), 2**63 - 1, -(10**16)])
def test_absurd_line_timestamps(ingest: Ingest, timestamp_ns: int) -> None:
    space = SpaceBuilder()
    space.plane("Task Environment", {"profile_start_time": Unsigned(WALL_NS)})
    plane = space.gpu()
    plane.line("Stream #1", timestamp_ns=timestamp_ns).event("bad", 0, 1).event("bad", 1, 1)
    plane.line("Stream #2", timestamp_ns=3).event("good", 0, 1)
    connection = ingest(space)
    assert [(row["name"], row["start_ps"]) for row in device_rows(connection)] == [("good", 3000)]
    assert problems_of(connection) == {"impossible_time": 2}


def test_empty_planes_and_lines(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu(0).line("Stream #1").event("k", 0, 1)
    space.gpu(1)
    space.gpu(2).line("Stream #9", line_id=-4)
    space.plane("/host:CPU")
    space.plane("")
    space.plane("/device:CUSTOM:Megascale Trace").line("Megascale")
    connection = ingest(space)
    assert values_of(connection, "SELECT device_ordinal FROM devices ORDER BY 1") == [0, 1, 2]
    tracks = connection.execute(
        "SELECT track_name, native_id, device_id FROM tracks ORDER BY track_id"
    ).fetchall()
    assert [track[:2] for track in tracks] == [("Stream #1", 0), ("Stream #9", -4), ("Megascale", 0)]
    assert len(device_rows(connection)) == 1
    assert problems_of(connection) == {}


def test_space_of_empty_planes_loads(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu()
    connection = ingest(space)
    assert values_of(connection, "SELECT device_kind FROM devices") == ["NVIDIA H200"]
    assert values_of(connection, "SELECT device_event_count FROM v1.captures") == [0]


@pytest.mark.parametrize(
    "line_name",
    [
        "Steps", "XLA Modules", "XLA Ops", "Framework Ops", "Framework Name Scope", "Source code",
        "Launch Stats", "XLA Ops - from #16", "TensorFlow Ops", "TensorFlow Name Scope",
    ],
)  # fmt: skip
def test_lines_that_the_producer_derived_are_no_work(ingest: Ingest, line_name: str) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    plane.line("Stream #1").event("k", 0, 10)
    plane.line(line_name).event("group", 0, 10)
    connection = ingest(space)
    assert [(row["name"], row["role"]) for row in device_rows(connection)] == [
        ("k", "work"),
        ("group", "derived"),
    ]
    assert values_of(connection, "SELECT busy_ps FROM v1.device_time WHERE step_num IS NULL") == [10]
    assert values_of(connection, "SELECT device_event_count FROM v1.captures") == [1]


def test_counter_line_of_a_gpu_is_no_work(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    plane.line("Stream #1").event("k", 0, 10)
    plane.line("_counters_").event("sm__cycles", 0, 0, {"counter_value": 3.5})
    connection = ingest(space)
    assert values_of(connection, "SELECT device_event_count FROM v1.captures") == [1]
    assert ("device_event", 1, "counter_value", "double", 3.5) in stats_of(connection)


def test_tpu_lines(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.plane("/device:TPU:2", {"device_type_string": "TPU v6 Lite"})
    plane.metadata("%fusion.7 = f32[8] fusion(%a)", "fusion.7", {"program_id": Unsigned(2**64 - 9)})
    ops = plane.line("XLA Ops")
    ops.event("%while.3", 0, 100).event("%fusion.7 = f32[8] fusion(%a)", 10, 20).event("copy.1", 200, 5)
    # Two copies in flight: the second is no part of the first.
    plane.line("Async XLA Ops").event("copy-start.1", 0, 50).event("copy-start.2", 10, 20)
    plane.line("Steps").event("0", 0, 300)
    plane.line("XLA Modules").event("jit_f(1)", 0, 300)
    plane.line("XLA TraceMe").event("barrier", 0, 300)
    connection = ingest(space)
    found = [(row["hlo_op"], row["program_id"], row["kind"], row["role"]) for row in device_rows(connection)]
    assert found == [
        ("%while.3", None, "op", "enclosing"),
        ("fusion.7", -9, "op", "work"),
        ("copy.1", None, "op", "work"),
        ("copy-start.1", None, "op", "work"),
        ("copy-start.2", None, "op", "work"),
        (None, None, "group", "derived"),
        (None, None, "group", "derived"),
        (None, None, "marker", "marker"),
    ]
    assert values_of(connection, "SELECT platform FROM captures") == ["tpu"]
    assert values_of(connection, "SELECT device_kind FROM devices") == ["TPU v6 Lite"]


def test_full_name_is_kept_beside_a_display_name(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.plane("/device:TPU:0")
    plane.metadata("%copy-start.1 = (f32[8]) copy-start(%a)", "async-copy")
    plane.line("Async XLA Ops").event("%copy-start.1 = (f32[8]) copy-start(%a)", 0, 5)
    connection = ingest(space)
    assert [row["name"] for row in device_rows(connection)] == ["async-copy"]
    found = values_of(connection, "SELECT COUNT(*) FROM names WHERE name LIKE '%copy-start(%a)%'")
    assert found == [1]


def test_a_second_plane_of_one_device_keeps_its_stats(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.plane("/device:TPU:0", {"device_type_string": "TPU v6 Lite"})
    space.plane("/device:TPU:0 SparseCore 1", {"core_details": "sparse"}).line("Sparse Core Ops").event(
        "s", 0, 1
    )
    connection = ingest(space)
    attributes = connection.execute(
        "SELECT attribute, value FROM device_attributes UNION SELECT attribute, value FROM capture_attributes"
    ).fetchall()
    assert "sparse" in {value for _, value in attributes}


def test_display_names(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    plane.metadata("_Z6kernelv", "kernel()")
    plane.line("Stream #20(Compute)", line_id=20, display_name="Stream #21(Compute)").event(
        "_Z6kernelv", 0, 1
    )
    connection = ingest(space)
    (row,) = device_rows(connection)
    assert row["name"] == "kernel()"
    assert values_of(connection, "SELECT track_name FROM tracks") == ["Stream #21(Compute)"]


OP = {"hlo_op": Ref("dot.1"), "hlo_module": Ref("jit_f"), "program_id": 4}


def cpu_op(name: str, ordinal: int | None = None) -> dict[str, Any]:
    stats: dict[str, Any] = {"hlo_op": Ref(name), "hlo_module": Ref("jit_f"), "program_id": 4}
    return stats if ordinal is None else stats | {"device_ordinal": ordinal}


def test_ops_on_host_threads_are_device_work_of_a_cpu(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.plane("/host:CPU")
    line = plane.line("tf_XLAPjRtCpuClient/1", line_id=-77).event("Execute", 0, 200)
    line.event("while.2", 10, 100, cpu_op("while.2", 1)).event("dot.1", 20, 30, cpu_op("dot.1", 1))
    line.event("call.5", 120, 40, cpu_op("call.5", 0)).event("add.1", 130, 10, cpu_op("add.1", 0))
    line.event("while.9", 170, 1, cpu_op("while.9"))
    connection = ingest(space)
    found = [
        (r["name"], r["device_type"], r["device_ordinal"], r["kind"], r["role"])
        for r in device_rows(connection)
    ]
    assert found == [
        ("while.2", "CPU", 1, "op", "enclosing"),
        ("dot.1", "CPU", 1, "op", "work"),
        ("call.5", "CPU", 0, "op", "enclosing"),
        ("add.1", "CPU", 0, "op", "work"),
        ("while.9", "CPU", 0, "op", "enclosing"),
    ]
    assert [row["name"] for row in host_rows(connection)] == ["Execute"]
    assert values_of(connection, "SELECT platform FROM captures") == ["cpu"]
    busy = connection.execute(
        "SELECT device_ordinal, busy_ps FROM v1.device_time WHERE step_num IS NULL"
    ).fetchall()
    assert sorted(busy) == [(0, 10), (1, 30)]


def test_an_op_around_another_encloses_it_whatever_else_lies_between(ingest: Ingest) -> None:
    space = SpaceBuilder()
    line = space.plane("/host:CPU").line("t").event("call.1", 0, 100, cpu_op("call.1"))
    line.event("instant.1", 10, 0, cpu_op("instant.1")).event("dot.1", 30, 10, cpu_op("dot.1"))
    connection = ingest(space)
    assert [(row["name"], row["role"]) for row in device_rows(connection)] == [
        ("call.1", "enclosing"),
        ("instant.1", "work"),
        ("dot.1", "work"),
    ]


def test_host_rows_with_hlo_op_are_no_device_work_beside_a_gpu(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1, {"correlation_id": 1})
    line = (
        space.plane("/host:CPU").line("t").event("k", 0, 1, OP | {"correlation_id": 1}).event("m", 5, 1, OP)
    )
    line.event("host op", 7, 1, OP | {"device_ordinal": 0})
    connection = ingest(space)
    assert [(row["name"], row["hlo_op"]) for row in host_rows(connection)] == [("k", "dot.1"), ("m", "dot.1")]
    assert [(row["name"], row["device_type"]) for row in device_rows(connection)] == [
        ("k", "GPU"),
        ("host op", "CPU"),
    ]


def test_garbage_registers_are_left_out_and_counted(ingest: Ingest) -> None:
    space = SpaceBuilder()
    line = space.gpu().line("Stream #1(Kernel)")
    line.event("k", 0, 1, {"kernel_details": "regs:2191500840 static_shared:32462 grid:2,1,1 block:256,1,1"})
    line.event(
        "k",
        1,
        1,
        {"kernel_details": "regs:255 static_shared:48 dynamic_shared:16 grid:1,2,3 block:4,5,6 occ_pct:37.5"},
    )
    line.event("k", 2, 1, {"kernel_details": "regs:4294967295 grid:1,1,1 block:1,1,1"})
    connection = ingest(space)
    rows = device_rows(connection)
    assert [row["registers_per_thread"] for row in rows] == [None, 255, None]
    assert [row["block_x"] for row in rows] == [256, 4, 1]
    assert (rows[1]["grid_x"], rows[1]["grid_y"], rows[1]["grid_z"]) == (1, 2, 3)
    assert (rows[1]["static_shared_memory_bytes"], rows[1]["dynamic_shared_memory_bytes"]) == (48, 16)
    assert rows[1]["occupancy_ratio"] == 0.375
    assert rows[0]["details"].startswith("regs:2191500840")
    assert problems_of(connection) == {"garbage_registers": 2}


@pytest.mark.parametrize(
    "details",
    [
        "regs:99999999999999999999999", "static_shared:99999999999999999999999 grid:1,1,1",
        "grid:99999999999999999999999,1,1 block:1,1,1", "private_mem:18446744073709551615", "occ_pct:nan",
        "occ_pct:inf", "occ_pct:-5", "regs:", "grid:1,2 block:x,y,z", "regs:-1",
        "size:99999999999999999999999", "regs:1 regs:2", ":::", "grid:" + "9" * 5000 + ",1,1", "regs:٣",
        "regs:²", "",
    ],
)  # fmt: skip
def test_hostile_details_lose_no_event(ingest: Ingest, details: str) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1, {"kernel_details": details}).event("k", 1, 1)
    rows = device_rows(ingest(space))
    assert [row["details"] for row in rows] == [details, None]
    ratio = rows[0]["occupancy_ratio"]
    assert ratio is None or 0 <= ratio <= 1


@pytest.mark.parametrize(
    ("text", "number"),
    [("$$5", 5), ("$$0", 0), ("five", None), ("$$" + "9" * 30, None), ("$$" + "9" * 5000, None)],
)
def test_context_ids(ingest: Ingest, text: str, number: int | None) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1, {"context_id": text}).event(
        "k", 1, 1, {"context_id": Ref(text)}
    )
    space.plane("/host:CPU").line("t").event("cuLaunchKernel", 0, 1, {"context_id": text})
    connection = ingest(space)
    assert [row["context_id"] for row in device_rows(connection)] == [number, number]
    assert [row["context_id"] for row in host_rows(connection)] == [number]
    # What is no number stays readable.
    assert [value for *_, value in stats_of(connection)] == ([] if number is not None else [text] * 3)


def test_copies_and_memsets(ingest: Ingest) -> None:
    space = SpaceBuilder()
    line = space.gpu().line("Stream #1")
    line.event(
        "MemcpyH2D", 0, 1, {"memcpy_details": "kind_src:pageable kind_dst:device size:1024 dest:0 async:1"}
    )
    line.event("MemcpyD2D", 1, 1, {"memcpy_details": "kind_src:device kind_dst:device size:7 dest:0 async:1"})
    line.event("Memset", 2, 1, {"memset_details": "kind:Device num_bytes:4096 async:1"})
    line.event("CopyDeviceToHost", 3, 1, {"memcpy_details": "kind:Unknown size:655360 dest:2 async:1"})
    line.event("memcpy32_post", 4, 1, {"kernel_details": "regs:16 grid:1,1,1 block:32,1,1"})
    line.event("MemcpyP2P", 5, 1)
    line.event("copy_fusion_kernel", 6, 1)
    connection = ingest(space)
    assert [(row["kind"], row["copy_kind"], row["copy_bytes"]) for row in device_rows(connection)] == [
        ("memcpy", "H2D", 1024),
        ("memcpy", "D2D", 7),
        ("memset", None, 4096),
        ("memcpy", "D2H", 655360),
        ("kernel", None, None),
        ("memcpy", "P2P", None),
        ("kernel", None, None),
    ]


def test_lines_of_one_name_and_id_stay_apart(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    plane.line("Stream #1", line_id=1).event("a", 0, 10)
    plane.line("Stream #1", line_id=1).event("b", 5, 10)
    again = space.gpu()
    again.line("Stream #1", line_id=1).event("c", 20, 10)
    connection = ingest(space)
    assert [(row["track_id"], row["name"]) for row in device_rows(connection)] == [
        (0, "a"),
        (1, "b"),
        (2, "c"),
    ]
    assert values_of(connection, "SELECT COUNT(*) FROM devices") == [1]
    assert values_of(connection, "SELECT busy_ps FROM v1.device_time WHERE step_num IS NULL") == [25]


def test_two_kernels_of_one_launch(ingest: Ingest) -> None:
    space = SpaceBuilder()
    launch = {"correlation_id": Unsigned(477)}
    space.gpu().line("Stream #1").event("im2col", 100, 10, launch).event("gemm", 120, 10, launch)
    space.plane("/host:CPU").line("t").event("cuLaunchKernel", 40, 20, launch)
    connection = ingest(space)
    found = connection.execute(
        """SELECT api_name, launch_latency_ps, queue_delay_ps, link_status
        FROM v1.launches ORDER BY device_event_id"""
    ).fetchall()
    assert found == [("cuLaunchKernel", 60, 40, "linked"), ("cuLaunchKernel", 80, 60, "linked")]


def test_one_kernel_of_two_calls_is_ambiguous(ingest: Ingest) -> None:
    space = SpaceBuilder()
    launch = {"correlation_id": Unsigned(9)}
    space.gpu().line("Stream #1").event("k", 100, 10, launch).event("orphan", 200, 1, {"correlation_id": 1})
    space.plane("/host:CPU").line("t").event("second", 50, 1, launch).event("first", 40, 1, launch)
    connection = ingest(space)
    found = connection.execute(
        "SELECT api_name, link_status FROM v1.launches ORDER BY device_event_id"
    ).fetchall()
    assert found == [("first", "ambiguous"), (None, "no_host_event")]


def test_step_annotations(ingest: Ingest) -> None:
    space = SpaceBuilder()
    line = space.plane("/host:CPU").line("t")
    line.event("train", 0, 10, {"_r": 1, "step_num": 7}).event("train", 10, 10, {"step_num": 8})
    line.event("train", 20, 10, {"_r": 0, "step_num": 9}).event("train", 30, 10, {"_r": 1, "step_num": -1})
    line.event("numberless", 40, 10, {"_r": 1})
    connection = ingest(space)
    found = connection.execute(
        "SELECT step_num, start_ps, end_ps, source FROM steps ORDER BY start_ps"
    ).fetchall()
    assert [row[:3] for row in found] == [(7, 0, 10), (-1, 30, 40)]
    assert {row[3] for row in found} == {"step_trace_annotation"}


def test_profiler_errors_warnings_and_hostnames_are_kept(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1)
    space.message.errors.extend([b"lost events", b"and more"])
    space.message.warnings.append(b"slow")
    space.message.hostnames.append(b"node-7")
    connection = ingest(space)
    assert problems_of(connection) == {"profiler_error": 2, "profiler_warning": 1}
    assert values_of(connection, "SELECT hostname FROM captures") == ["node-7"]
    assert values_of(connection, "SELECT hostname FROM devices") == ["node-7"]


@pytest.mark.parametrize(
    "value",
    [
        "soon", 1.7e18, Unsigned(2**64 - 1), b"\x01", None, -5,
    ],
    ids=str,
)  # fmt: skip
def test_odd_profile_start_loses_no_event(ingest: Ingest, value: Any) -> None:
    space = SpaceBuilder()
    space.plane("Task Environment", {"profile_start_time": value})
    space.gpu().line("Stream #1", timestamp_ns=3).event("k", 0, 1)
    assert [row["start_ps"] for row in device_rows(ingest(space))] == [3000]


@pytest.mark.parametrize("value", ["me", 2.5, Unsigned(2**64 - 1), b"\x01", None], ids=str)
def test_odd_process_id_loses_no_event(ingest: Ingest, value: Any) -> None:
    space = SpaceBuilder()
    space.plane("/host:metadata", {"process_id": value})
    space.gpu().line("Stream #1").event("k", 0, 1)
    assert len(device_rows(ingest(space))) == 1


@pytest.mark.parametrize(
    ("plane_name", "line_name"),
    [
        ("/device:GPU:0", "Stream #99999999999999999999999"),
        ("/device:GPU:99999999999999999999999", "Stream #1"),
        ("/device:GPU:٣", "Stream #٣"),
        ("/device:GPU:" + "9" * 5000, "Stream #" + "9" * 5000),
    ],
)
def test_absurd_numbers_in_names_lose_no_event(ingest: Ingest, plane_name: str, line_name: str) -> None:
    space = SpaceBuilder()
    space.plane(plane_name).line(line_name).event("k", 0, 1)
    connection = ingest(space)
    assert [row["name"] for row in device_rows(connection) + host_rows(connection)] == ["k"]


def test_broken_hlo_module_loses_no_event(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1)
    metadata = space.plane("/host:metadata")
    metadata.metadata("jit_f(5)", stats={"Hlo Proto": b"\x0a\xff\xff\xff\xff\x0f garbage"})
    connection = ingest(space)
    assert len(device_rows(connection)) == 1
    assert sum(problems_of(connection).values()) == 1


def test_scope_ranges(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1, {"scope_range_id": 12})
    plane = space.plane("/host:__ScopeRangeCallStack__")
    plane.message.stats.add(metadata_id=12, int64_value=11)
    plane.message.stats.add(metadata_id=11, int64_value=0)
    connection = ingest(space)
    assert [row["scope_range_id"] for row in device_rows(connection)] == [12]
    found = connection.execute("SELECT scope_range_id, parent_scope_range_id FROM scope_ranges").fetchall()
    assert sorted(found) == [(11, 0), (12, 11)]


def test_event_metadata_after_the_lines_that_use_it(ingest: Ingest) -> None:
    # Fields of a message may come in any order: here the maps follow the lines, and the plane's name is last.
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1, {"hlo_op": Ref("dot.1")})
    (plane,) = space.message.planes
    parts = dict.fromkeys(range(1, 7), b"")
    for number, value in fields(plane.SerializeToString(deterministic=True)):
        raw = value if isinstance(value, bytes) else None
        parts[number] += (
            bytes([number << 3, value]) if raw is None else bytes([number << 3 | 2, len(raw)]) + raw
        )
    shuffled = b"".join(parts[number] for number in (3, 6, 4, 5, 1, 2))
    data = bytes([1 << 3 | 2]) + varint(len(shuffled)) + shuffled
    assert XSpace.FromString(data) == space.message
    capture = xspace.read(data, "shuffled")
    table = capture.tables["device_events"]
    assert [capture.names.strings[i] for i in table["name_id"].to_pylist()] == ["k"]
    assert [capture.names.strings[i] for i in table["hlo_op_name_id"].to_pylist()] == ["dot.1"]
