"""The XSpace reader on synthetic spaces: one property each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .xspace_expected import values_of
from .xspace_ingest import Ingest, device_rows, host_rows, ingesting, problems_of, stats_of
from .xspace_oracle import Compressed, Ref, SpaceBuilder, Unsigned, XSpace, fields, varint
from .xspace_roundtrip import loaded


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    yield from ingesting(tmp_path)


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
    (k,) = values_of(connection, "SELECT event_metadata_id FROM event_metadata WHERE native_id = 1")
    # What has no column is stored once, with the metadata, and the event's own `size` in place of that.
    assert stats_of(connection, "device_event", "event_metadata") == [
        ("device_event", 2, "size", "double", 2.5),
        ("event_metadata", k, "color", "ref", "red"),
        ("event_metadata", k, "hlo_op", "ref", "dot.1"),
        ("event_metadata", k, "program_id", "uint64", 5),
        ("event_metadata", k, "size", "int64", 3),
    ]
    found = connection.execute(
        "SELECT e.device_event_id, n.name, m.native_id FROM device_events AS e "
        "JOIN event_metadata AS m USING (event_metadata_id) "
        "JOIN names AS n ON n.name_id = m.name_id ORDER BY 1"
    ).fetchall()
    assert found == [(0, "other", 2), (1, "k", 1), (2, "k", 1)]


@pytest.mark.parametrize(
    ("own", "column"),
    [
        ({"correlation_id": "seven"}, "correlation_id"),
        ({"context_id": "five"}, "context_id"),
        ({"hip_graph_id": 2.5}, "graph_id"),
        ({"memcpy_details": b"size:1"}, "details"),
    ],
)
def test_a_stat_that_no_column_holds_is_not_replaced_by_the_inherited_one(
    ingest: Ingest, own: dict[str, Any], column: str
) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    inherited = {"correlation_id": 7, "context_id": "$$1", "cuda_graph_id": 3, "kernel_details": "regs:16"}
    plane.metadata("k", stats=inherited)
    plane.line("Stream #1").event("k", 0, 1, own).event("k", 1, 1)
    connection = ingest(space)
    columns = ("correlation_id", "context_id", "graph_id", "details")
    first, second = ({name: row[name] for name in columns} for row in device_rows(connection))
    assert second == {"correlation_id": 7, "context_id": 1, "graph_id": 3, "details": "regs:16"}
    assert first == second | {column: None}
    assert [row[2:] for row in stats_of(connection)] == [
        (name, {str: "string", float: "double", bytes: "bytes"}[type(value)], value)
        for name, value in own.items()
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
    found = [(row["name"], row["start_ps"], row["end_ps"]) for row in host_rows(connection)]
    assert found == [("many", 4000, 4007), ("none", 4000, 4000), ("timed", 4005, 4011)]
    assert stats_of(connection) == [
        ("host_event", 0, "XEvent.num_occurrences", "int64", 12),
        ("host_event", 1, "XEvent.num_occurrences", "int64", 0),
    ]


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
    assert values_of(connection, "SELECT plane_name FROM planes ORDER BY plane_index DESC LIMIT 1") == [
        "/host:�"
    ]
    # The name of the plane, of the line, of the event, of the stat, and the stat's text.
    assert problems_of(connection) == {"invalid_text": 5}


def test_a_name_with_a_nul_character(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("a\x00b", 0, 1).event("a", 1, 1).event("", 2, 1)
    assert [row["name"] for row in device_rows(ingest(space))] == ["a\x00b", "a", ""]


@pytest.mark.parametrize(
    ("offset", "duration"),
    [(2**63 - 1, 1), (-(2**63), 1), (0, 2**63 - 1), (2**62, 2**62), (-(2**62), 0), (2**63 - 1, 2**63 - 1)],
)
def test_absurd_times_are_kept_beside_and_counted(ingest: Ingest, offset: int, duration: int) -> None:
    space = SpaceBuilder()
    line = space.gpu().line("Stream #1", timestamp_ns=1).event("good", 5, 6, {"a": 1})
    line.event("bad", offset, duration, {"b": 2}).event("also good", 20, 1, {"c": 3})
    connection = ingest(space)
    # At the start of the line, for no time, and no work.
    assert [
        (row["name"], row["start_ps"], row["end_ps"], row["role"]) for row in device_rows(connection)
    ] == [
        ("good", 1005, 1011, "work"),
        ("bad", 1000, 1000, "marker"),
        ("also good", 1020, 1021, "work"),
    ]
    assert stats_of(connection) == [
        ("device_event", 0, "a", "int64", 1),
        ("device_event", 1, "XEvent.duration_ps", "int64", duration),
        ("device_event", 1, "XEvent.offset_ps", "int64", offset),
        ("device_event", 1, "b", "int64", 2),
        ("device_event", 2, "c", "int64", 3),
    ]
    assert problems_of(connection) == {"impossible_time": 1}
    assert values_of(connection, "SELECT device_event_count FROM v1.captures") == [2]
    assert values_of(connection, "SELECT busy_ps FROM v1.device_time WHERE step_num IS NULL") == [7]


@pytest.mark.parametrize("timestamp_ns", [-(2**63), 2**63 - 1, -(10**16)])
def test_absurd_line_timestamps(ingest: Ingest, timestamp_ns: int) -> None:
    space = SpaceBuilder()
    space.plane("Task Environment", {"profile_start_time": Unsigned(WALL_NS)})
    plane = space.gpu()
    plane.line("Stream #1", timestamp_ns=timestamp_ns).event("bad", 0, 1).event("bad", 1, 1)
    plane.line("Stream #2", timestamp_ns=3).event("good", 0, 1)
    connection = ingest(space)
    found = [(row["name"], row["start_ps"], row["end_ps"], row["role"]) for row in device_rows(connection)]
    assert found == [("bad", 0, 0, "marker"), ("bad", 0, 0, "marker"), ("good", 3000, 3001, "work")]
    assert problems_of(connection) == {"impossible_time": 2}
    assert values_of(connection, "SELECT timestamp_ns FROM tracks ORDER BY track_id") == [timestamp_ns, 3]


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


def test_full_name_is_kept_beside_a_display_name(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.plane("/device:TPU:0")
    plane.metadata("%copy-start.1 = (f32[8]) copy-start(%a)", "async-copy")
    plane.line("Async XLA Ops").event("%copy-start.1 = (f32[8]) copy-start(%a)", 0, 5)
    connection = ingest(space)
    assert [row["name"] for row in device_rows(connection)] == ["async-copy"]
    found = values_of(connection, "SELECT COUNT(*) FROM names WHERE name LIKE '%copy-start(%a)%'")
    assert found == [1]


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


@pytest.mark.parametrize("compiled", [False, True])
def test_event_metadata_after_the_lines_that_use_it(compiled: bool) -> None:
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
    with loaded(data, compiled) as connection:
        assert [(row["name"], row["hlo_op"]) for row in device_rows(connection)] == [("k", "dot.1")]
