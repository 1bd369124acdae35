"""What the producers of XSpaces write differently: CUDA, ROCm, TPU, CPU, TensorFlow, and JAX 0.4 to 0.12."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .xspace_expected import values_of
from .xspace_ingest import Ingest, device_rows, host_rows, ingesting, problems_of, stats_of
from .xspace_oracle import Ref, SpaceBuilder, Unsigned, varint


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    yield from ingesting(tmp_path)


@pytest.mark.parametrize(
    "line_name",
    [
        "Steps", "XLA Modules", "XLA Ops", "Framework Ops", "Framework Name Scope", "Source code",
        "Launch Stats", "XLA Ops - from #16", "TensorFlow Ops", "TensorFlow Name Scope",
        "Host Offload Ops row 1",
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


@pytest.mark.parametrize(
    "line_name", ["Stream #7(Compute)", "Stream #7(Kernel,MemcpyD2D)", "Stream #7", "stream 7", "Stream #-1"]
)
def test_stream_lines_are_work(ingest: Ingest, line_name: str) -> None:
    space = SpaceBuilder()
    space.gpu().line(line_name).event("k", 0, 10)
    connection = ingest(space)
    assert [(row["kind"], row["role"]) for row in device_rows(connection)] == [("kernel", "work")]
    assert problems_of(connection) == {}


@pytest.mark.parametrize(("line_name", "problems"), [("CUPTI overhead", {}), ("Magic", {"unknown_line": 1})])
def test_other_lines_of_a_gpu_are_no_work(ingest: Ingest, line_name: str, problems: dict[str, int]) -> None:
    space = SpaceBuilder()
    space.gpu().line(line_name).event("flush", 0, 10)
    connection = ingest(space)
    assert [(row["kind"], row["role"]) for row in device_rows(connection)] == [("marker", "marker")]
    assert problems_of(connection) == problems


def test_counter_line_of_a_gpu_is_no_work(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.gpu()
    plane.line("Stream #1").event("k", 0, 10)
    plane.line("_counters_").event("sm__cycles", 0, 0, {"counter_value": 3.5})
    connection = ingest(space)
    assert values_of(connection, "SELECT device_event_count FROM v1.captures") == [1]
    assert ("device_event", 1, "counter_value", "double", 3.5) in stats_of(connection)
    assert problems_of(connection) == {}


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


def test_sparse_cores(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.plane("/device:TPU:3")
    plane.line("XLA Ops").event("fusion.1", 0, 100)
    plane.line("Tensor Core Sync Flag").event("SyncWait:17", 20, 30)
    sparse = space.plane("/device:TPU:3 SparseCore 1")
    sparse.line("Sparse Core Steps").event("0", 0, 300)
    sparse.line("Sparse Core Modules").event("jit_f(1)", 0, 300)
    sparse.line("Sparse Core Ops").event("while.1", 150, 100).event("gather.2", 160, 20)
    sparse.line("Sparse Core Syncs").event("SyncWait:3", 0, 300)
    connection = ingest(space)
    assert [(row["name"], row["kind"], row["role"]) for row in device_rows(connection)] == [
        ("fusion.1", "op", "work"),
        ("SyncWait:17", "marker", "marker"),
        ("0", "group", "derived"),
        ("jit_f(1)", "group", "derived"),
        ("while.1", "op", "enclosing"),
        ("gather.2", "op", "work"),
        ("SyncWait:3", "marker", "marker"),
    ]
    # The cores of a chip are one device.
    assert values_of(connection, "SELECT device_ordinal FROM devices") == [3]
    assert values_of(connection, "SELECT busy_ps FROM v1.device_time WHERE step_num IS NULL") == [120]
    assert problems_of(connection) == {}


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
    assert [row["name"] for row in host_rows(connection)] == ["k", "m"]
    assert [row[1:] for row in stats_of(connection, "host_event") if row[2] == "hlo_op"] == [
        (0, "hlo_op", "ref", "dot.1"),
        (1, "hlo_op", "ref", "dot.1"),
    ]
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


def test_broken_hlo_module_loses_no_event(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1)
    metadata = space.plane("/host:metadata")
    metadata.metadata("jit_f(5)", stats={"Hlo Proto": b"\x0a\xff\xff\xff\xff\x0f garbage"})
    connection = ingest(space)
    assert len(device_rows(connection)) == 1
    assert sum(problems_of(connection).values()) == 1


# --- ROCm ---------------------------------------------------------------------------------------------------


def test_rocprofiler_sdk(ingest: Ingest) -> None:
    space = SpaceBuilder()
    plane = space.plane(
        "/device:GPU:0", {"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4}
    )
    details = " grid:24,16,1 block:256,1,1 private_mem:16 group_mem:512 occ_pct:0"
    stream = plane.line("Stream #16(Kernel)", line_id=16)
    op = {"hlo_op": Ref("fusion.1"), "hlo_module": Ref("jit_f"), "program_id": 5, "tf_op": Ref("XlaModule:")}
    stream.event("gemm.kd", 100, 50, {"correlation_id": Unsigned(3), "kernel_details": Ref(details)} | op)
    copy = "__amd_rocclr_copyBuffer.kd"
    stream.event(copy, 200, 10, {"correlation_id": Unsigned(4), "kernel_details": Ref(details)})
    space.plane("/device:GPU:1", {"device_vendor": "AMD"})
    # Agents are known by their handles; the copy's size stands on its call only.
    thread = space.plane("/host:CPU").line("Host Threads/583", display_name="Host Threads/583")
    thread.event("hipModuleLaunchKernel", 10, 5, {"device_id": 22244, "correlation_id": Unsigned(3)} | op)
    copy_call = {"device_id": 22244, "correlation_id": Unsigned(4), "memcpy_details": Ref("size:0 dest:512")}
    thread.event("hipMemcpyAsync", 20, 5, copy_call)
    connection = ingest(space)
    kernel, copied = device_rows(connection)
    assert (kernel["kind"], kernel["grid_x"], kernel["block_x"]) == ("kernel", 24, 256)
    assert (kernel["private_memory_bytes"], kernel["static_shared_memory_bytes"]) == (16, 512)
    assert (kernel["registers_per_thread"], kernel["occupancy_ratio"]) == (None, None)
    assert (kernel["hlo_op"], kernel["tf_op"], copied["hlo_op"]) == ("fusion.1", "XlaModule:", None)
    assert [row["native_device_id"] for row in host_rows(connection)] == [22244, 22244]
    assert [row["details"] for row in host_rows(connection)] == [None, "size:0 dest:512"]
    query = "SELECT kernel_name, event_class FROM v1.attribution ORDER BY device_event_id"
    assert connection.execute(query).fetchall() == [("gemm.kd", "compute"), (copy, "copy")]
    query = "SELECT api_name, link_status FROM v1.launches ORDER BY device_event_id"
    assert connection.execute(query).fetchall() == [
        ("hipModuleLaunchKernel", "linked"),
        ("hipMemcpyAsync", "linked"),
    ]
    query = "SELECT device_ordinal, device_kind FROM devices ORDER BY device_ordinal"
    assert connection.execute(query).fetchall() == [(0, "AMD gfx942"), (1, None)]
    assert values_of(connection, "SELECT platform FROM captures") == ["rocm"]


def test_roctracer(ingest: Ingest) -> None:
    space = SpaceBuilder()
    idle = space.plane("/device:GPU:0", {"device_vendor": "AMD"})
    idle.line("Stream #8(MemcpyOther)").event(
        "CopyDeviceToDevice",
        50,
        4,
        {"correlation_id": 8, "memcpy_details": "kind:Unknown size:655360 dest:7 async:1"},
    )
    working = space.plane("/device:GPU:7", {"device_vendor": "AMD"})
    working.line("Stream #1(Kernel)").event("loop_fusion", 100, 10, {"correlation_id": 9})
    # The call bears the name of its kernel, on the thread that also holds the annotations.
    line = (
        space.plane("/host:CPU")
        .line("py_xla_execute/-1", line_id=-1)
        .event("train", 0, 60, {"_r": 1, "step_num": 2})
    )
    line.event("loop_fusion", 10, 5, {"device_id": 7, "correlation_id": 9})
    line.event("CopyDeviceToDevice", 20, 5, {"device_id": 0, "correlation_id": 8})
    connection = ingest(space)
    query = """SELECT device_ordinal, step_num, event_class, kernel_name FROM v1.attribution ORDER BY 1"""
    assert connection.execute(query).fetchall() == [
        (0, 2, "copy", "CopyDeviceToDevice"),
        (7, 2, "compute", "loop_fusion"),
    ]
    assert [row["copy_bytes"] for row in device_rows(connection)] == [655360, None]


# --- spellings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kernel_details", "memcpy_details", "Memset_details", "memset_details"])
def test_spellings_of_details(ingest: Ingest, name: str) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1, {name: "kind:Device num_bytes:4096 async:1"})
    space.plane("/host:CPU").line("t").event("call", 0, 1, {name: "num_bytes:1"})
    connection = ingest(space)
    assert [row["details"] for row in device_rows(connection)] == ["kind:Device num_bytes:4096 async:1"]
    assert [row["copy_bytes"] for row in device_rows(connection)] == [4096]
    assert [row["details"] for row in host_rows(connection)] == ["num_bytes:1"]


@pytest.mark.parametrize("runtime", ["cuda", "hip"])
def test_spellings_of_graphs(ingest: Ingest, runtime: str) -> None:
    space = SpaceBuilder()
    stats = {f"{runtime}_graph_id": Unsigned(7), f"{runtime}_graph_node_id": Unsigned(7 << 32 | 3)}
    space.gpu().line("Stream #1").event("k", 0, 1, stats)
    space.plane("/host:CPU").line("t").event("launch", 0, 1, {f"{runtime}_graph_id": Unsigned(7)})
    connection = ingest(space)
    assert [(row["graph_id"], row["graph_node_id"]) for row in device_rows(connection)] == [(7, 7 << 32 | 3)]
    assert [row["graph_id"] for row in host_rows(connection)] == [7]
    assert stats_of(connection) == []


def test_a_graph_that_is_traced_as_a_whole(ingest: Ingest) -> None:
    space = SpaceBuilder()
    stats = {"correlation_id": 3, "cuda_graph_id": Unsigned(7), "cuda_graph_exec_id": Unsigned(7)}
    space.gpu().line("Stream #1(CudaGraph)").event("CudaGraph", 0, 100, stats)
    connection = ingest(space)
    assert [(row["graph_id"], row["role"]) for row in device_rows(connection)] == [(7, "work")]
    assert stats_of(connection) == [("device_event", 0, "cuda_graph_exec_id", "uint64", 7)]


def test_annotations_of_tensorflow(ingest: Ingest) -> None:
    space = SpaceBuilder()
    stats = {"annotation": Ref("train/MatMul:MatMul"), "nvtx_range": Ref("outer"), "level 0": Ref("MatMul")}
    space.gpu().line("Stream #134(Compute)").event("sgemm", 0, 10, stats)
    connection = ingest(space)
    (row,) = device_rows(connection)
    assert (row["annotation"], row["nvtx_range"], row["hlo_op"]) == ("train/MatMul:MatMul", "outer", None)
    assert stats_of(connection) == [("device_event", 0, "level 0", "ref", "MatMul")]


@pytest.mark.parametrize(
    "plane_name", ["/host:CPU", "/host:CUPTI", "/host:NVTX-CUPTI", "/host:ROCTRACER", "/host:ROCmTRACER",
    "/host:python-tracer", "/host:TPU-runtime", "#Chip0 TPU Non-Core HBM-0", "/device:CUSTOM:MOSAIC:0"],
)  # fmt: skip
def test_planes_beside_the_devices_hold_host_events(ingest: Ingest, plane_name: str) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 10, 1, {"correlation_id": 1})
    space.plane(plane_name).line("Host Threads/7/NVTX").event("cuLaunchKernel", 0, 1, {"correlation_id": 1})
    connection = ingest(space)
    assert [row["name"] for row in host_rows(connection)] == ["cuLaunchKernel"]
    assert values_of(connection, "SELECT link_status FROM v1.launches") == ["linked"]


def hlo_proto(name: bytes) -> bytes:
    """An HloProto whose module has one parameter: field numbers of xla.HloModuleProto, written out."""

    def part(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2]) + varint(len(content)) + content

    def number(field: int, value: int) -> bytes:
        return varint(field << 3) + varint(value)

    shape = number(2, 11) + part(3, b"\x08")
    instruction = part(1, b"p.1") + part(2, b"parameter") + part(3, shape) + varint(35 << 3) + varint(1)
    computation = part(1, b"main") + part(2, instruction) + number(5, 1) + number(6, 1)
    return part(1, part(1, name) + part(2, b"main") + part(3, computation) + number(5, 9) + number(6, 1))


@pytest.mark.parametrize("stat", ["Hlo Proto", "hlo_proto", "HLO Proto"])
@pytest.mark.parametrize(
    ("key", "metadata_name", "stats", "program_id"),
    [
        # JAX 0.12 has the id as a stat, older ones in the name; it is the key, signed on a TPU, everywhere.
        (49, "jit_f(49)", {"program_id": 49}, 49),
        (49, "jit_f(49)", {}, 49),
        (-9, f"jit_f({2**64 - 9})", {}, -9),
        (-9, f"jit_f({2**64 - 9})", {"program_id": Unsigned(2**64 - 9)}, -9),
        (7, "jit_f", {}, 7),
    ],
)
def test_modules_in_the_metadata_plane(
    ingest: Ingest, stat: str, key: int, metadata_name: str, stats: dict[str, Any], program_id: int
) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1)
    plane = space.plane("/host:metadata")
    plane.metadata(metadata_name, stats={stat: hlo_proto(b"jit_f")} | stats, key=key)
    plane.metadata("XLA_SYMBOL_MAP", stats={"symbol_id": 3, "symbol_type": "x"}, key=key + 1)
    connection = ingest(space)
    query = "SELECT program_id, module_name FROM hlo_programs JOIN hlo_modules USING (module_id)"
    assert connection.execute(query).fetchall() == [(program_id, "jit_f")]
    assert problems_of(connection) == {}
