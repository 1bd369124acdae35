"""Nothing of an XSpace is lost: its content, rebuilt from the warehouse's tables, is what protobuf reads."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from .xspace_files import ARCHIVES, BUNDLED, PUBLIC, file_id, read_archive, read_file
from .xspace_oracle import Compressed, LineBuilder, PlaneBuilder, Ref, SpaceBuilder, Unsigned, XSpace
from .xspace_rebuilt import Rebuilt
from .xspace_roundtrip import SHARED_ROWS, check_round_trip, check_same, check_shared_rows, loaded

WALL_NS = 1_700_000_000_000_000_000
DECODERS = pytest.mark.parametrize("compiled", [False, True], ids=["protobuf", "compiled"])

# --- real files ---------------------------------------------------------------------------------------------


@DECODERS
@pytest.mark.parametrize("path", [*BUNDLED, *PUBLIC], ids=file_id)
def test_real_files(path: Path, compiled: bool) -> None:
    check_round_trip(read_file(path), compiled)


@DECODERS
@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_real_captures(archive: Path, compiled: bool, tmp_path: Path) -> None:
    is_large = archive.exists() and archive.stat().st_size > 4 << 20
    if is_large and not compiled:
        pytest.skip("protobuf's objects for a million events take more memory than a test should")
    for data in read_archive(archive):
        check_round_trip(data, compiled, tmp_path / "w.duckdb" if is_large else None)


# --- everything odd -----------------------------------------------------------------------------------------

ODD_VALUES: list[tuple[str, object]] = [
    ("unsigned", Unsigned(2**63)),
    ("unsigned", Unsigned(2**64 - 1)),
    ("unsigned", Unsigned(0)),
    ("signed", -1),
    ("signed", -(2**63)),
    ("signed", 2**63 - 1),
    ("double", float("nan")),
    ("double", struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]),
    ("double", float("inf")),
    ("double", float("-inf")),
    ("double", -0.0),
    ("double", 0.0),
    ("double", 5e-324),
    ("text", ""),
    ("text", "größe\x00\U0001f40d"),
    ("text", Ref("")),
    ("text", Ref("größe")),
    ("bytes", b""),
    ("bytes", b"\x00\xff"),
    ("bytes", bytes(range(256)) * 17),
    ("nothing", None),
    ("compressed", Compressed(gzip.compress("größe".encode() * 100, mtime=0))),
    ("compressed", Compressed(gzip.compress(b"", mtime=0))),
    ("compressed", Compressed(gzip.compress(b"\xff", mtime=0))),
    ("compressed", Compressed(gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0))),
    ("compressed", Compressed(gzip.compress(b"one", mtime=0)[:-1])),
    ("compressed", Compressed(b"")),
    ("", 5),
    ("", "no name"),
]
GPU_STATS: list[tuple[str, object]] = [
    ("correlation_id", Unsigned(2**63 + 5)),
    ("context_id", "$$5"),
    ("cuda_graph_id", Unsigned(2**64 - 1)),
    ("cuda_graph_node_id", -3),
    ("program_id", -(2**63)),
    ("run_id", 0),
    ("scope_range_id", 7),
    ("hlo_op", Ref("dot.1")),
    ("hlo_module", "jit_f"),
    ("name", Ref("jit(f)/dot")),
    ("tf_op", ""),
    ("annotation", Ref("")),
    ("nvtx_range", "range"),
    ("unique_hlo_op_id", 3),
    ("kernel_details", "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:37.5"),
    ("theoretical_occupancy_pct", 37.5),
    ("occupancy_min_grid_size", 132),
    ("occupancy_suggested_block_size", 1024),
    ("device_ordinal", 0),
    ("group_id", 4),
]
HOST_STATS: list[tuple[str, object]] = [
    *GPU_STATS[:7],
    ("memcpy_details", "size:3"),
    ("device_id", -4),
    ("_pt", 2),
    ("_p", Unsigned(2**63)),
    ("_ct", 3),
    ("_c", 9),
    ("_r", 1),
    ("step_num", 5),
    ("device_ordinal", 1),
]
# Pairs that share a column, pairs that the column cannot hold, and those that it could almost hold.
CONTESTED: list[list[tuple[str, object]]] = [
    [("cuda_graph_id", 1), ("hip_graph_id", 2)],
    [("hip_graph_id", 2), ("cuda_graph_id", 1), ("cuda_graph_id", 1)],
    [("cuda_graph_node_id", 1), ("hip_graph_node_id", 2)],
    [("kernel_details", "regs:1"), ("memcpy_details", "size:2")],
    [("Memset_details", "num_bytes:1"), ("memset_details", Ref("num_bytes:2"))],
    [("correlation_id", "seven")],
    [("correlation_id", 7), ("correlation_id", "seven")],
    [("correlation_id", 7.0)],
    [("hlo_op", 3)],
    [("hlo_op", Ref("dot.1")), ("hlo_op", None)],
    [("kernel_details", b"regs:1")],
    [("theoretical_occupancy_pct", 50)],
    [("theoretical_occupancy_pct", float("nan"))],
    [("theoretical_occupancy_pct", -0.0)],
    [("theoretical_occupancy_pct", 12.5), ("kernel_details", "occ_pct:50")],
    [("kernel_details", "occ_pct:50")],
    [("kernel_details", "occ_pct:many"), ("theoretical_occupancy_pct", "much")],
    [("context_id", 5)],
    [("context_id", "5")],
    [("context_id", "$$05")],
    [("context_id", "$$5\n")],
    [("context_id", "five")],
    [("context_id", "five"), ("context_id", "$$5")],
    [("context_id", "$$5"), ("context_id", "five")],
    [("context_id", f"$${2**63}")],
    [("device_ordinal", 7)],
]


def odd_line(plane: PlaneBuilder, line: LineBuilder, typed: list[tuple[str, object]]) -> None:
    """Add events that inherit, override, repeat, and lack what others have."""
    plane.metadata("all", "shown", typed)
    plane.metadata("odd", "odd", ODD_VALUES)
    plane.metadata("twice", "", [*typed, *typed, ("correlation_id", 99), ("hip_graph_id", 5)])
    line.event("all", 5, 10).event("all", 5, 0, typed).event(
        "all", 4, 3, [("group_id", 5), ("hlo_op", "own")]
    )
    line.event("odd", 0, 1).event("odd", 0, 1, ODD_VALUES).event("twice", 0, 1).event("twice", 0, 1, typed)
    line.event("plain", -7, 1, typed * 2).event("", 0, 0, ODD_VALUES * 2)
    for contested in CONTESTED:
        line.event("plain", 1, 1, contested).event("all", 2, 1, contested).event("twice", 2, 1, contested)
    line.event("counted", 0, 7, typed, num_occurrences=12).event("counted", num_occurrences=0)
    line.event("counted", num_occurrences=-(2**63))
    line.event("negative", 9, -1, typed).event("absurd", 2**63 - 1, 1, typed).event("absurd", 5, 2**63 - 1)
    line.event("absurd", -(2**63), -(2**63)).event("nested", 100, 50).event("inner", 110, 5)
    line.event(77, 1, 2, [("kept", 1), (99, 5), (98, Ref("x"))]).event(-5, 0, 0)
    missing = line.message.events[0].stats.add(metadata_id=plane.stat_id("hlo_op"))
    missing.ref_value = 2**64 - 8


def odd_gpu(space: SpaceBuilder) -> None:
    plane = space.gpu()
    odd_line(plane, plane.line("Stream #1(Kernel)", line_id=-4, timestamp_ns=28_560), GPU_STATS)
    for name in ("Steps", "XLA Ops - from #1", "_counters_", "no such line", ""):
        odd_line(plane, plane.line(name, display_name="Steps" if name == "" else ""), GPU_STATS)


def odd_tpu(space: SpaceBuilder) -> None:
    for name in ("/device:TPU:0", "/device:TPU:0 SparseCore 1", "/device:TPU:0 SparseCore TEC 3"):
        plane = space.plane(name, {"device_type_string": "TPU v6 Lite", "core_details": b"\x00"})
        for line in ("XLA Ops", "Async XLA Ops", "Sparse Core Ops", "Sparse Core Modules", "XLA TraceMe"):
            odd_line(plane, plane.line(line), GPU_STATS)
            plane.line(line).event("all", 0, 1, {"hlo_op": "shown"}).event("plain", 0, 1, {"hlo_op": "plain"})
            plane.line(line).event("plain", 0, 1, {"hlo_op": 5}).event("plain", 0, 1)


def odd_host(space: SpaceBuilder) -> None:
    for name in ("/host:CPU", "/host:CUPTI", "/device:CUSTOM:Megascale Trace", "#Chip0 TPU Non-Core HBM"):
        plane = space.plane(name, ODD_VALUES)
        odd_line(plane, plane.line("python", line_id=9, display_name="main"), HOST_STATS)


def odd_cpu(space: SpaceBuilder) -> None:
    plane = space.plane("/host:CPU")
    ops = [stat for stat in HOST_STATS if stat[0] != "correlation_id"] + GPU_STATS[7:]
    odd_line(plane, plane.line("tf_XLAPjRtCpuClient/1"), ops)
    line = plane.line("tf_XLAPjRtCpuClient/2").event("op", 0, 1, {"hlo_op": "a"})
    line.event("op", 0, 1, {"hlo_op": "a", "device_ordinal": 0}).event("host", 0, 1)
    line.event("op", 0, 1, {"hlo_op": "a", "device_ordinal": -3}).event("host", 0, 1, {"device_ordinal": 0})
    line.event("op", 0, 1, {"hlo_op": "a", "device_ordinal": "two", "_pt": 1, "device_id": 3})


def odd_special_planes(space: SpaceBuilder) -> None:
    for name in ("/host:metadata", "Task Environment", "/host:__ScopeRangeCallStack__", "", "/device:GPU:0"):
        for _ in range(2):
            plane = space.plane(name, ODD_VALUES)
            plane.message.id = -(2**63)
            plane.add_stats(
                plane.message, [(512, 511), (511, Unsigned(2**64 - 1)), (511, 0), (510, "text"), (509, 1.5)]
            )
            odd_line(plane, plane.line("a line", line_id=2**63 - 1), HOST_STATS)
    space.plane("only named")


def odd_metadata(space: SpaceBuilder) -> None:
    plane = space.plane("/host:CPU")
    for key, name in enumerate(("same", "none", "other", "", "empty")):
        item = plane.message.event_metadata[key - 2]
        item.id, item.name = key - 2, name.encode()
        item.display_name = {"same": b"same", "other": b"shown", "": b"shown"}.get(name, b"")
        item.metadata = {"other": b"\x00raw", "same": bytes(5000)}.get(name, b"")
        item.child_id.extend({"same": [3, -1, 3], "none": [2**63 - 1, -(2**63)]}.get(name, []))
        plane.add_stats(item, ODD_VALUES)
    plane.stat_id("described")
    for item in plane.message.stat_metadata.values():
        item.description = item.name + b" is this"
    plane.message.stat_metadata[-9].name = b"described"
    plane.message.stat_metadata[-9].description = b"another"
    for name, display_name in (("a", ""), ("a", "a"), ("a", "b"), ("", "b"), ("", "")):
        line = plane.line(name, display_name=display_name).event(-2, 0, 1).event(0, 0, 1).event(1, 1, 1)
        line.message.display_id, line.message.duration_ps = -7, 2**63 - 1


def odd_header(space: SpaceBuilder) -> None:
    space.gpu()
    space.message.errors.extend([b"lost events", b"", b"lost events", b"\xff"])
    space.message.warnings.append("größe".encode())
    space.message.hostnames.extend([b"node-7", b"node-7", b""])


def odd_text(space: SpaceBuilder) -> None:
    plane = space.plane(b"/host:\xff", [(b"stat\xff", "v")])
    plane.metadata(b"k\xff\xfe", stats={b"\x80": "w"})
    line = plane.line(b"line \xc3").event(b"k\xff\xfe", 0, 1).event("k", 0, 1)
    line.message.events[1].stats.add(metadata_id=plane.stat_id("text"), str_value=b"v\xfe")
    line.message.display_name = b"\xff\xff"


def odd_clocks(space: SpaceBuilder) -> None:
    space.plane("Task Environment", {"profile_start_time": Unsigned(WALL_NS)})
    plane = space.gpu()
    for number, stamp in enumerate((0, 28_560, -5, WALL_NS, WALL_NS + 1, 2**63 - 1, -(2**63), 10**15)):
        line = plane.line(f"Stream #{number}", timestamp_ns=stamp).event("k", 3, 4, {"a": 1})
        line.event("k", 0, -4).event("k", 2**62, 1).event("k", num_occurrences=3)


ODD_SPACES: list[Callable[[SpaceBuilder], None]] = [
    odd_gpu,
    odd_tpu,
    odd_host,
    odd_cpu,
    odd_special_planes,
    odd_metadata,
    odd_header,
    odd_text,
    odd_clocks,
]


@DECODERS
@pytest.mark.parametrize("fill", ODD_SPACES, ids=lambda fill: fill.__name__)
def test_odd_spaces(fill: Callable[[SpaceBuilder], None], compiled: bool) -> None:
    space = SpaceBuilder()
    fill(space)
    check_round_trip(space.serialize(), compiled)


@DECODERS
def test_all_that_is_odd_in_one_space(compiled: bool) -> None:
    space = SpaceBuilder()
    for fill in ODD_SPACES:
        fill(space)
    check_round_trip(space.serialize(), compiled)


# --- what events share --------------------------------------------------------------------------------------


@DECODERS
def test_what_events_share_is_one_row(compiled: bool) -> None:
    space = SpaceBuilder()
    op = {"hlo_op": Ref("dot.1"), "program_id": Unsigned(2**64 - 1)}
    for ordinal in (0, 1):
        plane = space.gpu(ordinal)
        plane.metadata("inheriting", stats=op)
        for stream in (1, 2):
            line = plane.line(f"Stream #{stream}").event("k", 0, 1, op).event("inheriting", 1, 1)
            # Signed or unsigned, by reference or not, of one runtime or the other: the same values.
            line.event("k", 2, 1, {"program_id": -1, "hlo_op": "dot.1"})
            # 0, none and another column are different values.
            line.event("k", 3, 1, op | {"program_id": 0}).event("k", 4, 1, {"hlo_op": "dot.1"}).event(
                "k", 5, 1
            )
            line.event("k", 6, 1, {"hlo_module": "dot.1", "cuda_graph_id": 7})
            line.event("k", 7, 1, {"hip_graph_id": Unsigned(7)}).event("k", 8, 1, {"context_id": "$$7"})
        plane.line("Steps").event("step", 0, 9)
    line = space.plane("/host:CPU").line("t")
    line.event("call", 0, 1, {"cuda_graph_id": 7, "correlation_id": 1}).event(
        "call", 1, 1, {"hip_graph_id": 7}
    )
    line.event("call", 2, 1, {"context_id": "$$7"}).event("other", 3, 1, {"context_id": Ref("$$7")})
    line.event("call", 4, 1, {"correlation_id": 7, "run_id": 7}).event("call", 5, 1)
    with loaded(space.serialize(), compiled) as connection:
        check_same(space.message, Rebuilt(connection, 1))
        # Of ops the programs -1, 0 and none, and a module; of launches a stream alone, with a graph, with a
        # context, twice; of calls a graph, and a context.
        assert check_shared_rows(connection, 1) == {"ops": 4, "launch_details": 6, "call_details": 2}
        without = {
            key: connection.execute(f"SELECT COUNT(*) FROM {events} WHERE {key} IS NULL").fetchall()
            for key, events in SHARED_ROWS.values()
        }
        # Without an op: three of each stream, and the steps, which are not launched either.
        assert without == {"op_id": [(3 * 4 + 2,)], "launch_details_id": [(2,)], "call_details_id": [(2,)]}


# --- the comparison itself ----------------------------------------------------------------------------------

# Columns of shared rows that hold stats as they are.
STATED_COLUMNS = {
    "ops": (
        "program_id",
        "hlo_op_name_id",
        "hlo_module_name_id",
        "op_name_id",
        "tf_op_name_id",
        "annotation_name_id",
        "nvtx_range_name_id",
        "unique_hlo_op_id",
    ),
    "launch_details": (
        "context_id",
        "graph_id",
        "details_name_id",
        "occupancy_ratio",
        "occupancy_min_grid_size",
        "occupancy_suggested_block_size",
    ),
    "call_details": ("native_device_id", "context_id", "graph_id", "program_id", "details_name_id"),
}
LOSSES = {
    "a device event": "DELETE FROM device_events WHERE device_event_id = 3",
    "a host event": "DELETE FROM host_events WHERE host_event_id = 3",
    "the order of events": "UPDATE device_events SET device_event_id = 1 - device_event_id "
    "WHERE device_event_id IN (0, 1)",
    "a start": "UPDATE device_events SET start_ps = start_ps + 1 WHERE device_event_id = 3",
    "an end": "UPDATE host_events SET end_ps = end_ps + 1 WHERE host_event_id = 3",
    "a name": "UPDATE device_events SET name_id = name_id + 1 WHERE device_event_id = 3",
    "a typed stat": "UPDATE device_events SET correlation_id = NULL WHERE correlation_id IS NOT NULL",
    "an occupancy": "UPDATE launch_details SET occupancy_ratio = occupancy_ratio + 0.01",
    "the program of a call": "UPDATE call_details SET program_id = program_id + 1",
    "whose op is whose": "UPDATE device_events SET op_id = 1 - op_id WHERE op_id IN (0, 1)",
    "what was launched how": "UPDATE device_events SET launch_details_id = 1 - launch_details_id "
    "WHERE launch_details_id IN (0, 1)",
    "what was called how": "UPDATE host_events SET call_details_id = 1 - call_details_id "
    "WHERE call_details_id IN (0, 1)",
    **{
        f"a row of {table}": f"DELETE FROM {table} WHERE {key} = 0" for table, (key, _) in SHARED_ROWS.items()
    },
    **{
        f"the {key} of an event": f"UPDATE {events} SET {key} = NULL WHERE {key} = 0"
        for key, events in SHARED_ROWS.values()
    },
    **{
        f"{column} of {table}": f"UPDATE {table} SET {column} = NULL WHERE {column} IS NOT NULL"
        for table, columns in STATED_COLUMNS.items()
        for column in columns
    },
    "a flow": "DELETE FROM host_flows",
    "a stat of an event": "DELETE FROM event_stats WHERE owner = 'device_event' AND rowid = "
    "(SELECT MIN(rowid) FROM event_stats WHERE owner = 'device_event')",
    "a repeated stat": "INSERT INTO event_stats SELECT * FROM event_stats WHERE rowid = "
    "(SELECT MIN(rowid) FROM event_stats WHERE owner = 'host_event')",
    "a double": "UPDATE event_stats SET double_value = 5e-324 WHERE double_value = 0",
    "bytes": "UPDATE event_stats SET bytes_value = ''::BLOB WHERE value_type = 'bytes'",
    "a stat of metadata": "DELETE FROM event_stats WHERE owner = 'event_metadata' AND rowid = "
    "(SELECT MAX(rowid) FROM event_stats WHERE owner = 'event_metadata')",
    "metadata": "DELETE FROM event_metadata WHERE event_metadata_id = (SELECT MAX(event_metadata_id) "
    "FROM event_metadata)",
    "a display name": "UPDATE event_metadata SET display_name_id = NULL WHERE display_name_id = name_id",
    "a stat of a plane": "DELETE FROM event_stats WHERE owner = 'plane' AND rowid = "
    "(SELECT MIN(rowid) FROM event_stats WHERE owner = 'plane')",
    "a description": "DELETE FROM event_stats WHERE owner = 'stat_metadata'",
    "a warning": "DELETE FROM event_stats WHERE owner = 'capture'",
    "a scope": "DELETE FROM scope_ranges WHERE rowid = 0",
    "a plane": "DELETE FROM planes WHERE plane_index = (SELECT MAX(plane_index) FROM planes)",
    "the id of a plane": "UPDATE planes SET native_id = native_id + 1 WHERE plane_index = 0",
    "a line": "DELETE FROM tracks WHERE track_id = (SELECT MAX(track_id) FROM tracks)",
    "the name of a line": "UPDATE tracks SET full_name = NULL",
    "the timestamp of a line": "UPDATE tracks SET timestamp_ns = 0",
}


@pytest.fixture(scope="module")
def odd_warehouse(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    space = SpaceBuilder()
    odd_header(space)
    odd_metadata(space)
    plane = space.gpu()
    odd_line(plane, plane.line("Stream #1", timestamp_ns=28_560), GPU_STATS)
    plane = space.plane("/host:CPU")
    odd_line(plane, plane.line("python"), HOST_STATS)
    space.plane("/host:__ScopeRangeCallStack__", [(12, 11), (11, 0)])
    path = tmp_path_factory.mktemp("odd") / "w.duckdb"
    with loaded(space.serialize(), False, path) as connection:
        check_same(space.message, Rebuilt(connection, 1))
    return path, space.serialize()


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_lost_is_noticed(odd_warehouse: tuple[Path, bytes], loss: str) -> None:
    path, data = odd_warehouse
    with duckdb.connect(str(path)) as connection:
        connection.begin()
        ((changed,),) = connection.execute(LOSSES[loss]).fetchall()
        assert changed > 0
        with pytest.raises(AssertionError):
            check_same(XSpace.FromString(data), Rebuilt(connection, 1))
        connection.rollback()


_LAST = "(SELECT MAX({key}) FROM {table})"
# The row that most events have, and one of them.
_MOST = "(SELECT mode({key}) FROM {events})"
_ONE_EVENT = f"rowid = (SELECT MIN(rowid) FROM {{events}} WHERE {{key}} = {_MOST})"
# What is done to a table of shared rows, and the words in which it is noticed.
UNSHARED = {
    "a row twice": (
        f"INSERT INTO {{table}} BY NAME SELECT * REPLACE ({_LAST} + 1 AS {{key}}) FROM {{table}} "
        f"WHERE {{key}} = {_MOST}; UPDATE {{events}} SET {{key}} = {_LAST} WHERE {_ONE_EVENT}",
        "equal rows of {table}",
    ),
    "a row without events": (
        f"UPDATE {{events}} SET {{key}} = 0 WHERE {{key}} = {_LAST}",
        "ids of {table} that {events} have",
    ),
    "a row that is not there": (
        f"UPDATE {{events}} SET {{key}} = {_LAST} + 1 WHERE {_ONE_EVENT}",
        "ids of {table} that {events} have",
    ),
    "a row that says nothing": (
        f"INSERT INTO {{table}} (capture_id, {{key}}) SELECT 1, {_LAST} + 1; "
        f"UPDATE {{events}} SET {{key}} = {_LAST} WHERE {_ONE_EVENT}",
        "empty rows of {table}",
    ),
    "an id twice": (
        "INSERT INTO {table} BY NAME SELECT * FROM {table} WHERE {key} = 0",
        "ids of {table}",
    ),
}


@pytest.mark.parametrize("table", SHARED_ROWS)
@pytest.mark.parametrize("change", UNSHARED)
def test_rows_that_are_not_shared_are_noticed(
    odd_warehouse: tuple[Path, bytes], table: str, change: str
) -> None:
    key, events = SHARED_ROWS[table]
    statement, words = (text.format(table=table, key=key, events=events) for text in UNSHARED[change])
    with duckdb.connect(str(odd_warehouse[0])) as connection:
        check_shared_rows(connection, 1)
        connection.begin()
        ((changed,),) = connection.execute(statement).fetchall()
        assert changed > 0
        with pytest.raises(AssertionError, match=f"^{words}$"):
            check_shared_rows(connection, 1)
        connection.rollback()
