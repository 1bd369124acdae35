"""The rocpd reader against what SQLite itself says of the same file."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tracewh.ingest import rocpd
from tracewh.ingest.capture import Capture
from tracewh.ingest.step_markers import step_marker

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
    described = [(device.device_type, device.ordinal, device.kind, device.vendor) for device in train.devices]
    assert described == [
        ("GPU", 0, "AMD Instinct MI300X", "AMD"),
        ("GPU", 1, "AMD Instinct MI300X", "AMD"),
        ("CPU", 0, "AMD EPYC 9654", "CPU"),
        ("CPU", 1, "AMD EPYC 9654", "CPU"),
    ]
    attributes = dict(train.devices[1].attributes)
    assert (attributes["name"], attributes["cu_count"], attributes["absolute_index"]) == (
        "gfx942",
        "304",
        "3",
    )
    assert attributes["max_engine_clk_fcompute"] == "2100"
    assert json.loads(attributes["mem_banks"] or "")[0]["width"] == 8192
    assert dict(train.devices[2].attributes)["cpu_cores_count"] == "96"
    assert {device.hostname for device in train.devices} == {"mi300x-node"}


def test_kernels_match_sqlite(train: Capture, origin: int) -> None:
    expected = query(
        FIXTURE,
        "SELECT D.dispatch_id, S.display_name, D.start, D.end, E.stack_id, D.queue_id, D.stream_id, "
        "A.type_index, "
        "D.grid_size_x / D.workgroup_size_x, D.grid_size_y / D.workgroup_size_y, D.workgroup_size_x "
        "FROM rocpd_kernel_dispatch D JOIN rocpd_info_kernel_symbol S ON S.id = D.kernel_id "
        "JOIN rocpd_event E ON E.id = D.event_id JOIN rocpd_info_agent A ON A.id = D.agent_id ORDER BY D.id",
    )
    found = [
        (
            row["dispatch_id"],
            row["name"],
            origin + row["start_ps"] // 1000,
            origin + row["end_ps"] // 1000,
            row["correlation_id"],
            row["queue_id"],
            row["stream_id"],
            train.devices[row["device_index"]].ordinal,
            row["grid_x"],
            row["grid_y"],
            row["block_x"],
        )
        for row in kind(train, "kernel")
    ]
    # 3 steps x 2 GPUs x (3 layers x (2 forward, 1 backward, 1 all-reduce) + 3 graph nodes)
    assert len(expected) == 3 * 2 * (3 * 4 + 3)
    assert found == expected
    # Kernels of the first step were counted one by one, which slows all of the run down.
    assert {row["role"] for row in rows(train, "device_events")} == {"work"}
    assert all(row["start_ps"] % 1000 == 0 for row in rows(train, "device_events"))


def test_kernel_resources(train: Capture) -> None:
    first = {row["name"]: row for row in reversed(kind(train, "kernel"))}
    gemm = first["Cijk_Alik_Bljk_BBS_BH_MT256x256x64_MI16x16x1"]
    assert (gemm["grid_x"], gemm["grid_y"], gemm["grid_z"]) == (16, 14, 1)
    assert (gemm["block_x"], gemm["block_y"], gemm["block_z"]) == (256, 1, 1)
    registers = ("registers_per_thread", "accum_registers_per_thread", "scalar_registers")
    assert [gemm[column] for column in registers] == [128, 256, 96]
    assert (gemm["static_shared_memory_bytes"], gemm["dynamic_shared_memory_bytes"]) == (65_536, 0)
    attention = first["fmha_fwd_d128_bf16"]
    assert (attention["static_shared_memory_bytes"], attention["dynamic_shared_memory_bytes"]) == (
        16_384,
        1_024,
    )
    reduce = first["ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"]
    assert reduce["private_memory_bytes"] == 544


def test_kernel_symbols(train: Capture) -> None:
    expected = query(
        FIXTURE,
        "SELECT id, display_name, kernel_name, code_object_id, extdata FROM rocpd_info_kernel_symbol "
        "ORDER BY id",
    )
    symbols = rows(train, "kernel_symbols")
    columns = ("native_id", "name", "symbol_name", "code_object_id")
    assert [tuple(row[column] for column in columns) for row in symbols] == [row[:4] for row in expected]
    assert [row["kernel_symbol_id"] for row in symbols] == list(range(len(expected)))
    assert all(row["symbol_name"].endswith(".kd") for row in symbols)
    # What else the source says of them.
    for number, (*_, extdata) in enumerate(expected):
        assert stats(train, "kernel_symbol", number) == json.loads(extdata)
    for kernel in kind(train, "kernel"):
        assert symbols[kernel["kernel_symbol_id"]]["name"] == kernel["name"]


def test_equal_launches_share_their_details(train: Capture) -> None:
    """As many combinations as SQLite counts, without one that no event refers to."""
    agents = [agent for (agent,) in query(FIXTURE, "SELECT id FROM rocpd_info_agent ORDER BY type DESC, id")]
    expected = query(
        FIXTURE,
        "WITH symbol AS (SELECT *, row_number() OVER (ORDER BY id) - 1 AS position "
        "FROM rocpd_info_kernel_symbol) "
        "SELECT DISTINCT D.stream_id, D.queue_id, NULL, T.tid, S.position, "
        "S.arch_vgpr_count, S.accum_vgpr_count, S.sgpr_count, S.group_segment_size, "
        "D.group_segment_size - S.group_segment_size, D.private_segment_size, "
        "D.grid_size_x / D.workgroup_size_x, D.grid_size_y / D.workgroup_size_y, "
        "D.grid_size_z / D.workgroup_size_z, D.workgroup_size_x, D.workgroup_size_y, D.workgroup_size_z, "
        "NULL, NULL, NULL, NULL FROM rocpd_kernel_dispatch D JOIN symbol S ON S.id = D.kernel_id "
        "JOIN rocpd_info_thread T ON T.id = D.tid",
    )
    expected += [
        (stream, queue, None, thread, *[None] * 13, "H2D", size, agents.index(source), agents.index(target))
        for stream, queue, thread, size, source, target in query(
            FIXTURE,
            "SELECT DISTINCT stream_id, queue_id, T.tid, size, src_agent_id, dst_agent_id "
            "FROM rocpd_memory_copy C JOIN rocpd_info_thread T ON T.id = C.tid",
        )
    ]
    columns = (
        *("stream_id", "queue_id", "graph_id", "thread_id", "kernel_symbol_id"),
        *("registers_per_thread", "accum_registers_per_thread", "scalar_registers"),
        *("static_shared_memory_bytes", "dynamic_shared_memory_bytes", "private_memory_bytes"),
        *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "copy_kind", "copy_bytes"),
        *("source_device_index", "target_device_index"),
    )
    details = rows(train, "launch_details")
    assert [row["launch_details_id"] for row in details] == list(range(len(details)))
    assert Counter(tuple(row[column] for column in columns) for row in details) == Counter(expected)
    used = [row["launch_details_id"] for row in rows(train, "device_events")]
    assert sorted(set(used)) == list(range(len(details)))
    assert len(used) > len(details)


def test_equal_calls_share_their_details(train: Capture) -> None:
    expected = query(
        FIXTURE,
        "SELECT DISTINCT C.string, NULL, json_extract(E.extdata, '$.message') FROM rocpd_region R "
        "JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string C ON C.id = E.category_id",
    )
    details = rows(train, "call_details")
    assert Counter(
        (row["category"], row["native_device_id"], row["message_name"]) for row in details
    ) == Counter(expected)
    used = [row["call_details_id"] for row in rows(train, "host_events")]
    assert set(used) == {row["call_details_id"] for row in details} == set(range(len(details)))
    assert len(used) > len(details)


def test_the_enclosing_call_of_each_call(train: Capture) -> None:
    expected = query(
        FIXTURE,
        "SELECT E.stack_id, E.parent_stack_id FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id "
        "WHERE E.parent_stack_id <> 0 ORDER BY R.id",
    )
    found = [(row["correlation_id"], row["parent_correlation_id"]) for row in rows(train, "call_parents")]
    assert found == expected
    calls = {row["correlation_id"] for row in rows(train, "host_events")}
    assert {parent for _, parent in found} <= calls


def test_copies(train: Capture) -> None:
    copies = kind(train, "memcpy")
    assert len(copies) == 3 * 2
    assert {(row["name"], row["copy_kind"], row["copy_bytes"]) for row in copies} == {
        ("MEMORY_COPY_HOST_TO_DEVICE", "H2D", 2 * 1_024 * 4)
    }
    assert [row["device_index"] for row in copies] == [0, 1, 0, 1, 0, 1]
    assert all(row["end_ps"] - row["start_ps"] == 12_000_000 for row in copies)
    # Agent 0 is a CPU, and GPUs come first.
    assert [(row["source_device_index"], row["target_device_index"]) for row in copies] == [
        (2, 0),
        (2, 1),
    ] * 3
    extra = stats(train, "device_event", copies[1]["device_event_id"])
    assert extra == {"dst_address": 0x7F10_0000_0000, "src_address": 0x7FFE_0000_0000}


def test_all_kernels_of_a_graph_launch_correlate_with_it(train: Capture) -> None:
    launches = [row for row in rows(train, "host_events") if row["name"] == "hipGraphLaunch"]
    assert len(launches) == 3 * 2
    parents = {row["correlation_id"]: row["parent_correlation_id"] for row in rows(train, "call_parents")}
    for launch in launches:
        # The call that put the kernels in the queue may be one inside it.
        within = {call for call, parent in parents.items() if parent == launch["correlation_id"]}
        within.add(launch["correlation_id"])
        nodes = [row["name"] for row in kind(train, "kernel") if row["correlation_id"] in within]
        assert nodes == [kernel.name for kernel in make_rocpd.OPTIMIZER]


def test_every_device_event_has_one_launching_call(train: Capture) -> None:
    calls = [row["correlation_id"] for row in rows(train, "host_events") if row["correlation_id"] is not None]
    assert len(calls) == len(set(calls))
    assert {row["correlation_id"] for row in rows(train, "device_events")} <= set(calls)


def test_collectives_overlap_compute(train: Capture) -> None:
    kernels = kind(train, "kernel")
    collectives = [row for row in kernels if row["name"].startswith("ncclDevKernel")]
    overlapped = [
        one
        for one in collectives
        if any(
            one["start_ps"] < other["end_ps"] and other["start_ps"] < one["end_ps"]
            for other in kernels
            if other["device_index"] == one["device_index"] and other["track_id"] != one["track_id"]
        )
    ]
    # The last all-reduce of a step has nothing behind it to hide in.
    assert (len(collectives), len(overlapped)) == (3 * 2 * 3, 3 * 2 * 2)


def test_host_events_match_sqlite(train: Capture, origin: int) -> None:
    expected = query(
        FIXTURE,
        "SELECT S.string, C.string, R.start, R.end, E.stack_id, nullif(E.parent_stack_id, 0), "
        "json_extract(E.extdata, '$.message') FROM rocpd_region R JOIN rocpd_string S ON S.id = R.name_id "
        "JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string C ON C.id = E.category_id ORDER BY R.id",
    )
    found = [
        (
            row["name"],
            row["category"],
            origin + row["start_ps"] // 1000,
            origin + row["end_ps"] // 1000,
            row["correlation_id"],
            row["parent_correlation_id"],
            row["message_name"],
        )
        for row in calls(train)
    ]
    assert found == expected


def test_allocation_inside_its_call(train: Capture, origin: int) -> None:
    ((start, end, stack_id),) = query(
        FIXTURE,
        "SELECT M.start, M.end, E.stack_id FROM rocpd_memory_allocate M JOIN rocpd_event E "
        "ON E.id = M.event_id",
    )
    (allocation,) = rows(train, "memory_allocations")
    (call,) = [row for row in rows(train, "host_events") if row["name"] == "hipMalloc"]
    assert call["start_ps"] < allocation["start_ps"] < allocation["end_ps"] < call["end_ps"]
    assert allocation == {
        "memory_allocation_id": 0,
        "track_id": call["track_id"],
        "device_index": 0,
        "operation": "alloc",
        "memory_level": "real",
        "address": 0x7F00_0000_0000,
        "bytes": 2 * 8_388_608,
        "queue_id": None,
        "stream_id": None,
        "flags": None,
        "correlation_id": stack_id or call["correlation_id"],
        "start_ps": 1000 * (start - origin),
        "end_ps": 1000 * (end - origin),
    }
    # Its category says no more than the table does.
    assert stats(train, "memory_allocation", 0) == {}


def test_arguments_are_stats_of_the_call(train: Capture) -> None:
    (call, *_) = [row for row in rows(train, "host_events") if row["name"] == "hipModuleLaunchKernel"]
    assert stats(train, "host_event", call["host_event_id"]) == {
        "gridDimX": 16,
        "gridDimY": 14,
        "gridDimZ": 1,
    }
    assert stats(train, "capture", 1)["hipModuleLaunchKernel(gridDimY)"] == "unsigned int"
    argument_names = {name for (name,) in query(FIXTURE, "SELECT DISTINCT name FROM rocpd_arg")}
    loaded = [row for row in rows(train, "event_stats") if row["stat_name"] in argument_names]
    assert {row["owner"] for row in loaded} == {"host_event"}
    spelled = {"int64": str, "hex": lambda value: hex(value % 2**64)}
    assert [
        (
            row["stat_name"],
            spelled[row["value_type"]](row["int_value"]) if row["value_name"] is None else row["value_name"],
        )
        for row in loaded
    ] == query(FIXTURE, "SELECT name, value FROM rocpd_arg ORDER BY id")
    pointers = [row for row in loaded if row["value_type"] == "hex"]
    assert {row["stat_name"] for row in pointers} >= {"comm", "graphExec"}


def test_steps(train: Capture, origin: int) -> None:
    expected = query(
        FIXTURE,
        "SELECT json_extract(E.extdata, '$.message'), R.start, R.end FROM rocpd_region R "
        "JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string S ON S.id = R.name_id "
        "WHERE S.string = 'roctxThreadRangeA' ORDER BY R.start",
    )
    steps = rows(train, "steps")
    assert [row["step_num"] for row in steps] == [0, 1, 2]
    assert {row["source"] for row in steps} == {"roctx"}
    assert {row["name"] for row in steps} == {"train_step"}
    annotations = {row["host_event_id"]: row for row in calls(train)}
    for step in steps:
        annotation = annotations[step["host_event_id"]]
        assert annotation["message_name"] == f"train_step {step['step_num']}"
        assert all(annotation[column] == step[column] for column in ("track_id", "start_ps", "end_ps"))
    found = [
        (f"train_step {row['step_num']}", origin + row["start_ps"] // 1000, origin + row["end_ps"] // 1000)
        for row in steps
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("message", "marker"),
    [
        ("train 3", ("train", 3)),
        ("step_12", ("step", 12)),
        ("Train_Step 0", ("Train_Step", 0)),
        ("training_step#step_num=7#", ("training_step", 7)),
        ("train#_r=1,step_num=41,foo=2#", ("train", 41)),
        (" step 5 ", ("step", 5)),
        ("eval 3", None),
        ("train", None),
        ("train 3 warmup", None),
        ("train -1", None),
        ("step 99999999999999999999", None),
        ("training_data 4", None),
        ("", None),
    ],
)
def test_step_markers(message: str, marker: tuple[str, int] | None) -> None:
    assert step_marker(message) == marker


def test_counters(tmp_path: Path) -> None:
    """Where counters are read for each dispatch, nothing ran as it does without."""
    counted = read_one(write(tmp_path / "counted.db", counts=True))
    assert {row["role"] for row in rows(counted, "device_events")} == {"serialized"}
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
