"""RPD traces of rocmProfileData become tables in the shape of rocpd's, row for row."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .rpd_files import RpdWriter, problems, processes_of, rows

REAL = Path(__file__).parents[1].parent / "shared" / "data" / "rocpd" / "rocmProfileData-matmul_result.rpd"
needs_real = pytest.mark.skipif(not REAL.is_file(), reason="the folder of public test files is not here")


@pytest.fixture
def trace(tmp_path: Path) -> RpdWriter:
    return RpdWriter(tmp_path / "trace.rpd")


@pytest.fixture
def trace3(tmp_path: Path) -> RpdWriter:
    return RpdWriter(tmp_path / "trace.rpd", schema=3)


def ask(sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"{REAL.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


class TestRealTrace:
    pytestmark = needs_real

    def test_calls_are_regions(self) -> None:
        (process,) = processes_of(REAL)
        expected = ask(
            "SELECT a.id, a.tid, a.start, a.end, s.string FROM rocpd_api a "
            "JOIN rocpd_string s ON s.id = a.apiName_id ORDER BY a.id"
        )
        columns = ("id", "tid", "start", "end", "name_id")
        assert [tuple(row[name] for name in columns) for row in rows(process, "region")] == expected
        assert process.problems.problems() == []

    def test_operations_are_dispatches_and_copies(self) -> None:
        (process,) = processes_of(REAL)
        found = Counter(
            {base: len(rows(process, base)) for base in ("kernel_dispatch", "memory_copy", "hip_event")}
        )
        expected = Counter[str]()
        for op_type, count in ask(
            "SELECT s.string, count(*) FROM rocpd_op o JOIN rocpd_string s ON s.id = o.opType_id GROUP BY 1"
        ):
            expected["kernel_dispatch" if op_type == "KernelExecution" else "memory_copy"] += count
        assert +found == expected
        assert sum(expected.values()) == ask("SELECT count(*) FROM rocpd_op")[0][0]

    def test_dispatches_have_names_times_and_calls(self) -> None:
        (process,) = processes_of(REAL)
        expected = ask(
            "SELECT o.id, o.start, o.end, o.gpuId, o.queueId, s.string, l.api_id FROM rocpd_op o "
            "JOIN rocpd_string s ON s.id = o.description_id JOIN rocpd_api_ops l ON l.op_id = o.id "
            "JOIN rocpd_kernelapi k ON k.api_ptr_id = l.api_id ORDER BY o.id"
        )
        columns = ("id", "start", "end", "agent_id", "queue_id", "kernel_id", "event.stack_id")
        assert [tuple(row[name] for name in columns) for row in rows(process, "kernel_dispatch")] == expected

    def test_grid_of_a_known_product(self) -> None:
        """An 800 x 50000 product in tiles of 128 x 64 is 7 x 782 workgroups, of 256 work-items here."""
        (process,) = processes_of(REAL)
        (product,) = [row for row in rows(process, "kernel_dispatch") if row["kernel_id"].startswith("Cijk")]
        assert -(-800 // 128) == 7
        assert -(-50_000 // 64) == 782
        assert "_MT128x64x16_" in product["kernel_id"]
        assert [product[f"grid_size_{axis}"] for axis in "xyz"] == [7 * 256, 782, 1]
        assert [product[f"workgroup_size_{axis}"] for axis in "xyz"] == [256, 1, 1]

    def test_grids_of_launches_in_workgroups(self) -> None:
        (process,) = processes_of(REAL)
        expected = ask(
            "SELECT gridX * workgroupX, gridY * workgroupY, gridZ * workgroupZ FROM rocpd_kernelapi k "
            "JOIN rocpd_api a ON a.id = k.api_ptr_id JOIN rocpd_string s ON s.id = a.apiName_id "
            "WHERE s.string = 'hipLaunchKernel' ORDER BY k.api_ptr_id"
        )
        dispatches = [row for row in rows(process, "kernel_dispatch") if row["event.stack_id"] != 29]
        assert [tuple(row[f"grid_size_{axis}"] for axis in "xyz") for row in dispatches] == expected

    def test_copies_have_bytes_directions_and_addresses(self) -> None:
        """What was allocated on the GPU is the target of copies to it, and the source of copies from it."""
        (process,) = processes_of(REAL)
        copies = rows(process, "memory_copy")
        sizes = ask(
            "SELECT c.size FROM rocpd_op o JOIN rocpd_api_ops l ON l.op_id = o.id "
            "JOIN rocpd_copyapi c ON c.api_ptr_id = l.api_id ORDER BY o.id"
        )
        assert [row["size"] for row in copies if "size" in row] == [size for (size,) in sizes]
        allocated = [
            tuple(int(part.partition("=")[2], 16) for part in text.split(" | "))
            for (text,) in ask("SELECT string FROM rocpd_string WHERE string LIKE 'ptr=%'")
        ]

        def is_on_gpu(address: str) -> bool:
            return any(first <= int(address, 16) < first + size for first, size in allocated)

        to_device = [row for row in copies if row["name_id"] == "CopyHostToDevice"]
        from_device = [row for row in copies if row["name_id"] == "CopyDeviceToHost"]
        assert (len(to_device), len(from_device)) == (2, 53)
        for here, there, chosen in (("dst", "src", to_device), ("src", "dst", from_device)):
            assert all(is_on_gpu(row[f"{here}_address"]) for row in chosen)
            assert not any(is_on_gpu(row[f"{there}_address"]) for row in chosen)
            assert all(row[f"{here}_agent_id"] == 2 and f"{there}_agent_id" not in row for row in chosen)
        (fill,) = [row for row in copies if row["name_id"] == "FillBuffer"]
        assert fill["dst_agent_id"] == 2
        assert "size" not in fill

    def test_arguments(self) -> None:
        (process,) = processes_of(REAL)
        by_call: dict[int, dict[str, str]] = {}
        for row in rows(process, "arg"):
            by_call.setdefault(row["event_id"], {})[row["name"]] = row["value"]
        calls = {row["id"]: row["event_id"] for row in rows(process, "region")}
        assert by_call[calls[11]] == {"ptr": "0x7f3ebca00000", "size": "0x77400000"}
        assert by_call[calls[2147483650]] == {"count": "85", "remaining": "0"}
        with_args = ask("SELECT id FROM rocpd_api WHERE args_id <> 1")
        assert by_call.keys() == {calls[call] for (call,) in with_args}

    def test_monitors_are_samples_with_values(self) -> None:
        (process,) = processes_of(REAL)
        expected = ask("SELECT id, start, end, value FROM rocpd_monitor ORDER BY id")
        values = {row["event_id"]: row["value"] for row in rows(process, "pmc_event")}
        found = [
            (row["id"], row["timestamp"], row["until_ns"], str(int(values[row["event_id"]])))
            for row in rows(process, "sample")
        ]
        assert found == expected
        (counter,) = rows(process, "info_pmc")
        assert (counter["name"], counter["agent_id"], counter["units"]) == ("sclk", 0, "MHz")

    def test_events_are_told_apart(self) -> None:
        (process,) = processes_of(REAL)
        events = [
            row["event_id"]
            for base in ("region", "kernel_dispatch", "memory_copy", "sample")
            for row in rows(process, base)
        ]
        assert len(events) == len(set(events)) == 125 + 85 + 15

    def test_the_process(self) -> None:
        (process,) = processes_of(REAL)
        assert rows(process, "info_process") == [{"id": 1087077, "pid": 1087077}]
        assert {row["id"] for row in rows(process, "info_thread")} == {1087077, 1087089}
        assert [(row["id"], row["vendor_name"]) for row in rows(process, "info_agent")] == [
            (0, "AMD"),
            (2, "AMD"),
        ]
        assert process.attributes["schema_version"] == "2"
        assert process.source_kind == "rpd"


class TestCalls:
    def test_markers_have_messages(self, trace: RpdWriter) -> None:
        trace.call("UserMarker", 'step 12 "a" | b = 1')
        (region,) = rows(trace.process(), "region")
        assert json.loads(region["event.extdata"]) == {"message": 'step 12 "a" | b = 1'}
        assert region["event.category_id"] == "MARKER_CORE_RANGE_API"

    def test_categories(self, trace3: RpdWriter) -> None:
        domain = trace3.name("miopen")
        expected = {
            "hipMalloc": "HIP_RUNTIME_API_EXT",
            "__hipPushCallConfiguration": "HIP_RUNTIME_API_EXT",
            "hsa_init": "HSA_CORE_API",
            "cudaMalloc": "CUDA_API",
            "OpTable::writeRows": "RPD_TRACER",
            "hcc_activity_callback": "RPD_TRACER",
            "aten::add": "miopen",
            "hippopotamus": "miopen",
        }
        for name in expected:
            trace3.call(name, domain_id=domain)
        regions = rows(trace3.process(), "region")
        assert {row["name_id"]: row["event.category_id"] for row in regions} == expected
        assert {row["domain"] for row in regions} == {"miopen"}

    def test_arguments_of_each_spelling(self, trace3: RpdWriter) -> None:
        texts = {
            '{"size":16,"dst":"0x1","deep":{"a":[1]}}': [
                ("size", "16"),
                ("dst", "0x1"),
                ("deep", '{"a": [1]}'),
            ],
            "stream = 0x0 | mode = 2": [("stream", "0x0"), ("mode", "2")],
            "no pairs at all": [("args", "no pairs at all")],
            "a=1 | b": [("args", "a=1 | b")],
            '{"cut': [("args", '{"cut')],
            '{"half":"\\ud800"}': [("half", "\\ud800")],
        }
        for text in texts:
            trace3.call("hipCall", text)
        found: dict[int, list[tuple[str, str]]] = {}
        for row in sorted(rows(trace3.process(), "arg"), key=lambda row: (row["event_id"], row["position"])):
            found.setdefault(row["event_id"], []).append((row["name"], row["value"]))
        assert list(found.values()) == list(texts.values())

    def test_call_stacks(self, trace3: RpdWriter) -> None:
        call = trace3.call("hipCall")
        for depth, frame in ((1, "outer"), (0, "inner")):
            trace3.add("stackframe", api_ptr_id=call, depth=depth, name_id=trace3.name(frame))
        trace3.add("stackframe", api_ptr_id=99, depth=0, name_id=trace3.name("inner"))
        process = trace3.process()
        (region,) = rows(process, "region")
        assert json.loads(region["event.call_stack"]) == ["inner", "outer"]
        assert problems(process) == {("dangling_reference", "rocpd_stackframe"): 1}

    def test_details_without_an_operation_are_arguments(self, trace: RpdWriter) -> None:
        """A copy that no GPU took part in still has its bytes, under the names of what the columns hold."""
        call = trace.call("hipMemcpy", "x=1")
        trace.copy(call, dst="0x1", src="0x2", size=128)
        found = {row["name"]: (row["position"], row["value"]) for row in rows(trace.process(), "arg")}
        assert found["x"] == (0, "1")
        assert {name: value for name, (_, value) in found.items()} | {"x": ""} == {
            "x": "",
            "stream": "0x0",
            "size": "128",
            "kind": "1",
            "src": "0x1",
            "dst": "0x2",
            "srcDevice": "0",
            "dstDevice": "0",
            "sync": "0",
            "pinned": "0",
        }
        assert sorted(position for position, _ in found.values()) == list(range(len(found)))


class TestOperations:
    @pytest.mark.parametrize(
        ("op_type", "base"),
        [
            ("KernelExecution", "kernel_dispatch"),
            ("ConcurrentKernel", "kernel_dispatch"),
            ("Task", "kernel_dispatch"),
            ("CopyDeviceToDevice2D", "memory_copy"),
            ("MEMORY_COPY_HOST_TO_DEVICE", "memory_copy"),
            ("HOST_TO_DEVICE", "memory_copy"),
            ("Memcpy", "memory_copy"),
            ("FillBuffer", "memory_copy"),
            ("Memset", "memory_copy"),
            ("Barrier", "hip_event"),
        ],
    )
    def test_types(self, trace: RpdWriter, op_type: str, base: str) -> None:
        trace.op(op_type, calls=[trace.call("hipCall")])
        process = trace.process()
        assert len(rows(process, base)) == 1
        assert problems(process) == {}

    def test_unknown_types_are_counted(self, trace: RpdWriter) -> None:
        trace.op("Teleport", "far away", calls=[trace.call("hipCall")])
        process = trace.process()
        (event,) = rows(process, "hip_event")
        assert (event["name_id"], event["event.category_id"]) == ("far away", "Teleport")
        assert problems(process) == {("unknown_operation", "rocpd_op.opType_id"): 1}

    def test_unnamed_kernels(self, trace: RpdWriter) -> None:
        call = trace.call("hipLaunchKernel")
        trace.launch(call, (2, 1, 1), (64, 1, 1), name="by_launch")
        trace.op("KernelExecution", calls=[call])
        trace.op("KernelExecution", calls=[trace.call("hipGraphLaunch")])
        kernels = [row["kernel_id"] for row in rows(trace.process(), "kernel_dispatch")]
        assert kernels == ["by_launch", "KernelExecution"]

    def test_sizes_are_given_to_one_kernel_of_a_call(self, trace: RpdWriter) -> None:
        """A call that launches several kernels tells the sizes of one: that with the name it tells."""
        named, unnamed = trace.call("hipLaunchKernel"), trace.call("hipGraphLaunch")
        trace.launch(named, (3, 1, 1), (64, 1, 1), name="main", stream="0x7f00")
        trace.launch(unnamed, (5, 1, 1), (64, 1, 1), name="main")
        trace.op("KernelExecution", "other", calls=[named])
        trace.op("KernelExecution", "main", calls=[named])
        trace.op("KernelExecution", "main", calls=[unnamed])
        trace.op("KernelExecution", "main", calls=[unnamed])
        process = trace.process()
        dispatches = rows(process, "kernel_dispatch")
        assert [row.get("grid_size_x") for row in dispatches] == [None, 3 * 64, None, None]
        assert [row["event.stack_id"] for row in dispatches] == [named, named, unnamed, unnamed]
        assert [row.get("stream_id") for row in dispatches] == [None, 0x7F00, None, None]
        assert rows(process, "info_stream") == [{"id": 0x7F00, "name": "Stream 0x7f00"}]
        values = {row["name"]: row["value"] for row in rows(process, "arg")}
        assert (values["gridX"], values["kernelName_id"]) == ("5", "main")

    @pytest.mark.parametrize("evidence", ["call", "copy", None])
    def test_grids_of_the_sdk_are_in_work_items(self, trace: RpdWriter, evidence: str | None) -> None:
        call = trace.call("hipLaunchKernel")
        trace.launch(call, (512, 2, 1), (256, 1, 1), privateSegmentSize=0, groupSegmentSize=1024)
        trace.op("KernelExecution", "k", calls=[call])
        if evidence == "call":
            trace.call("RocprofDataSource::buffer_callback", "count=1 last=1")
        if evidence == "copy":
            trace.op("MEMORY_COPY_HOST_TO_DEVICE", calls=[trace.call("hipMemcpy")])
        process = trace.process()
        (dispatch,) = rows(process, "kernel_dispatch")
        assert dispatch["grid_size_x"] == (512 if evidence else 512 * 256)
        assert dispatch["group_segment_size"] == 1024
        # Elsewhere the 0 is what the tracer writes for all kernels.
        assert dispatch.get("private_segment_size") == (0 if evidence else None)
        assert str(process.attributes["grid_unit_in_file"]).startswith(
            "work-items" if evidence else "workgroups"
        )

    def test_impossible_sizes_are_dropped(self, trace: RpdWriter) -> None:
        call = trace.call("hipLaunchKernel")
        trace.launch(call, (2**62, -1, 0), (4, 1, 1))
        trace.op("KernelExecution", "k", calls=[call])
        process = trace.process()
        (dispatch,) = rows(process, "kernel_dispatch")
        assert not {f"grid_size_{axis}" for axis in "xyz"} & dispatch.keys()
        assert problems(process) == {
            ("size_out_of_range", "rocpd_kernelapi.gridX"): 1,
            ("size_out_of_range", "rocpd_kernelapi.gridY"): 1,
        }

    def test_directions_by_kind(self, trace: RpdWriter) -> None:
        for kind in (0, 1, 2, 3, 4):
            call = trace.call("hipMemcpyAsync")
            trace.copy(call, kind=kind)
            trace.op("Memcpy", calls=[call], gpu=5)
        copies = rows(trace.process(), "memory_copy")
        assert [
            (row["name_id"], row.get("src_agent_id"), row.get("dst_agent_id"), row.get("kind"))
            for row in copies
        ] == [
            ("MEMORY_COPY_HOST_TO_HOST", None, 5, None),
            ("MEMORY_COPY_HOST_TO_DEVICE", None, 5, None),
            ("MEMORY_COPY_DEVICE_TO_HOST", 5, None, None),
            ("MEMORY_COPY_DEVICE_TO_DEVICE", None, 5, None),
            ("Memcpy", None, 5, 4),
        ]

    def test_kinds_of_the_runtimes_own_tracer(self, trace: RpdWriter) -> None:
        trace.call("ClrDataSource::flush")
        for kind in (1, 5, 9, 12):
            call = trace.call("hipMemcpyAsync")
            trace.copy(call, kind=kind)
            trace.op("Memcpy", "Fill" if kind == 12 else "SDMA", calls=[call])
        copies = rows(trace.process(), "memory_copy")
        assert [(row["name_id"].removeprefix("MEMORY_COPY_"), row.get("description")) for row in copies] == [
            ("HOST_TO_DEVICE", "SDMA"),
            ("DEVICE_TO_HOST", "SDMA"),
            ("DEVICE_TO_DEVICE", "SDMA"),
            ("Fill", None),
        ]

    def test_peers(self, trace: RpdWriter) -> None:
        """The tracer writes the device that is the source as that of the target."""
        trace.add("metadata", tag="gpu_stride", value="1000")
        call = trace.call("hipMemcpyPeerAsync")
        trace.copy(call, dstDevice=1, srcDevice=3)
        trace.op("CopyDeviceToDevice", calls=[call], gpu=2003)
        (copy,) = rows(trace.process(), "memory_copy")
        assert (copy["src_agent_id"], copy["dst_agent_id"]) == (2001, 2003)
        assert (copy["src_device"], copy["dst_device"]) == (1, 3)

    def test_copies_of_rows(self, trace: RpdWriter) -> None:
        call = trace.call("hipMemcpy2DAsync")
        trace.copy(call, size="", width=96, height=10, sync=1)
        trace.op("CopyHostToDevice2D", calls=[call])
        process = trace.process()
        (copy,) = rows(process, "memory_copy")
        assert (copy["size"], copy["width"], copy["height"], copy["sync"]) == (960, 96, 10, 1)
        assert problems(process) == {}

    def test_bytes_are_given_to_one_copy_of_a_call(self, trace: RpdWriter) -> None:
        call = trace.call("hipMemcpy")
        trace.copy(call, size=1000)
        for _ in range(2):
            trace.op("CopyHostToDevice", calls=[call])
        process = trace.process()
        assert [row.get("size") for row in rows(process, "memory_copy")] == [None, None]
        assert ("size", "1000") in [(row["name"], row["value"]) for row in rows(process, "arg")]


class TestLinks:
    def test_links_that_lead_nowhere(self, trace: RpdWriter) -> None:
        call = trace.call("hipLaunchKernel")
        op = trace.op("KernelExecution", "k", calls=[call, call])
        for api_id, op_id in ((call, 99), (98, op), (98, 99), (None, op)):
            trace.add("api_ops", api_id=api_id, op_id=op_id)
        trace.launch(97, (1, 1, 1), (64, 1, 1))
        process = trace.process()
        (dispatch,) = rows(process, "kernel_dispatch")
        assert dispatch["event.stack_id"] == call
        assert problems(process) == {
            ("dangling_reference", "rocpd_api_ops"): 4,
            ("dangling_reference", "rocpd_kernelapi"): 1,
        }

    def test_links_to_no_call(self, trace3: RpdWriter) -> None:
        """What the driver reports has a link to call 0 of its tracer."""
        trace3.call("hipCall")
        trace3.op("KFD_PAGE_MIGRATE", "PREFETCH", calls=[0, 5 * 2**32], queueId=-1)
        process = trace3.process()
        (event,) = rows(process, "hip_event")
        assert (event["name_id"], event["queue_id"]) == ("PREFETCH", -1)
        assert "event.stack_id" not in event
        assert problems(process) == {}

    def test_several_calls_of_one_operation(self, trace: RpdWriter) -> None:
        calls = [trace.call("hipLaunchKernel"), trace.call("hipLaunchKernel")]
        trace.op("KernelExecution", "k", calls=calls)
        process = trace.process()
        (dispatch,) = rows(process, "kernel_dispatch")
        assert "event.stack_id" not in dispatch
        assert problems(process) == {("ambiguous_link", "rocpd_op.id"): 1}


class TestProcesses:
    def test_each_has_its_rows(self, trace: RpdWriter) -> None:
        for pid, gpu in ((20, 1), (10, 0)):
            trace.op("KernelExecution", f"of {pid}", calls=[trace.call("hipCall", "a=1", pid=pid)], gpu=gpu)
        trace.op("KernelExecution", "of nobody", gpu=1)
        trace.add("monitor", deviceType="gpu", deviceId=7, monitorType="sclk", start=1, end=2, value="5")
        first, second, nobody = trace.processes()
        for process, pid, gpus in ((first, 10, [0, 7]), (second, 20, [1])):
            assert rows(process, "info_process") == [{"id": pid, "pid": pid}]
            assert [row["kernel_id"] for row in rows(process, "kernel_dispatch")] == [f"of {pid}"]
            assert [row["id"] for row in rows(process, "info_agent")] == gpus
            (region,), (argument,) = rows(process, "region"), rows(process, "arg")
            assert argument["event_id"] == region["event_id"]
        assert [len(rows(process, "sample")) for process in (first, second, nobody)] == [1, 0, 0]
        assert [row["kernel_id"] for row in rows(nobody, "kernel_dispatch")] == ["of nobody"]
        assert rows(nobody, "info_process") == [{}]
        assert problems(first) == {("missing_process", "rocpd_op.id"): 1}
        assert problems(second) == problems(nobody) == {}

    def test_the_only_one_has_all(self, trace: RpdWriter) -> None:
        trace.call("hipCall", pid=4)
        trace.op("KernelExecution", "k")
        process = trace.process()
        assert len(rows(process, "kernel_dispatch")) == 1
        assert problems(process) == {}

    def test_calls_of_no_process(self, trace: RpdWriter) -> None:
        trace.call("hipCall", pid=None)
        trace.call("hipCall", pid=4)
        named, nobody = trace.processes()
        assert [len(rows(process, "region")) for process in (named, nobody)] == [1, 1]

    def test_an_operation_of_two_processes(self, trace: RpdWriter) -> None:
        trace.op("KernelExecution", "k", calls=[trace.call("a", pid=1), trace.call("b", pid=2)])
        *_, nobody = trace.processes()
        assert len(rows(nobody, "kernel_dispatch")) == 1

    def test_no_rows_at_all(self, trace: RpdWriter) -> None:
        process = trace.process()
        assert rows(process, "info_process") == [{}]
        assert process.attributes["schema_version"] == "2"

    def test_nodes(self, trace3: RpdWriter) -> None:
        """A node's stride is added to ids of processes, threads and GPUs, not to devices of monitors."""
        for tag, value in (("gpu_stride", "1000"), ("pid_stride", "10000000")):
            trace3.add("metadata", tag=tag, value=value)
        for node in (0, 1):
            call = trace3.call("hipCall", pid=42 + node * 10_000_000, tid=43 + node * 10_000_000)
            trace3.op("KernelExecution", "k", calls=[call], gpu=6 + node * 1000)
        trace3.add("monitor", deviceType="gpu", deviceId=6, monitorType="sclk", start=1, end=2, value="5")
        first, second = trace3.processes()
        for process, node in ((first, 0), (second, 1)):
            assert rows(process, "info_node") == [{"id": node, "hostname": f"node {node}"}]
            assert rows(process, "info_process") == [{"id": 42, "pid": 42}]
            assert rows(process, "info_thread") == [{"id": 43 + node * 10_000_000, "tid": 43}]
            (agent,) = rows(process, "info_agent")
            assert (agent["id"], agent["type_index"]) == (6 + node * 1000, 6)
        assert problems(first) == {("unknown_node", "rocpd_monitor.deviceId"): 1}

    def test_strides_without_a_second_node(self, trace3: RpdWriter) -> None:
        trace3.add("metadata", tag="pid_stride", value="10000000")
        trace3.call("hipCall", pid=42)
        assert rows(trace3.process(), "info_node") == [{"id": 0}]


class TestReadings:
    def test_counters_of_dispatches(self, trace3: RpdWriter) -> None:
        ops = [trace3.op("KernelExecution", "k", calls=[trace3.call("hipCall")], gpu=gpu) for gpu in (0, 1)]
        for op, value in ((ops[0], 87.5), (ops[1], 2.0), (99, 1.0)):
            trace3.add("counter", op_id=op, name_id=trace3.name("VALUBusy"), value=value)
        process = trace3.process()
        counters = {row["id"]: (row["name"], row["agent_id"]) for row in rows(process, "info_pmc")}
        events = {row["event_id"]: row["agent_id"] for row in rows(process, "kernel_dispatch")}
        found = [
            (*counters[row["pmc_id"]], events[row["event_id"]], row["value"])
            for row in rows(process, "pmc_event")
        ]
        assert found == [("VALUBusy", 0, 0, 87.5), ("VALUBusy", 1, 1, 2.0)]
        assert problems(process) == {("dangling_reference", "rocpd_counter"): 1}

    def test_values_that_are_no_numbers(self, trace: RpdWriter) -> None:
        for value in ("42.5", "n/a", "nan"):
            trace.add(
                "monitor", deviceType="gpu", deviceId=0, monitorType="power", start=1, end=2, value=value
            )
        process = trace.process()
        assert [row.get("value") for row in rows(process, "pmc_event")] == [42.5, None, None]
        assert problems(process) == {("not_a_number", "rocpd_monitor.value"): 2}


class TestDamage:
    def test_dangling_names_and_nulls(self, trace: RpdWriter) -> None:
        trace.call("hipCall", apiName_id=77, args_id=78, tid=None)
        trace.connection.execute("UPDATE rocpd_api SET start = NULL")
        trace.op("KernelExecution", opType_id=79, description_id=80, gpuId=None)
        process = trace.process()
        (region,), (event,) = rows(process, "region"), rows(process, "hip_event")
        assert not {"name_id", "tid", "start"} & region.keys()
        assert not {"name_id", "agent_id"} & event.keys()
        assert problems(process) == {
            ("dangling_reference", "rocpd_api.args_id"): 1,
            ("dangling_reference", "rocpd_api.apiName_id"): 1,
            ("dangling_reference", "rocpd_op.opType_id"): 1,
            ("dangling_reference", "rocpd_op.description_id"): 1,
            ("unknown_operation", "rocpd_op.opType_id"): 1,
        }

    def test_times_are_left_as_they_are(self, trace: RpdWriter) -> None:
        trace.call("hipCall", start=50, end=40)
        (region,) = rows(trace.process(), "region")
        assert (region["start"], region["end"]) == (50, 40)

    def test_text_among_numbers(self, trace: RpdWriter) -> None:
        """An empty text is the tracer's null; other text is counted."""
        for text in ("", "", "many"):
            call = trace.call("hipMemcpy")
            trace.copy(call, size=text, stream="0xZZ" if text else "0x0")
            trace.op("CopyHostToDevice", calls=[call])
        process = trace.process()
        assert not any("size" in row for row in rows(process, "memory_copy"))
        assert problems(process) == {
            ("not_an_integer", "rocpd_copyapi.size"): 1,
            ("not_an_integer", "rocpd_copyapi.stream"): 1,
        }

    def test_tables_without_a_place_are_counted(self, trace: RpdWriter) -> None:
        trace.connection.executescript(
            "CREATE TABLE rocpd_barrierop (op_ptr_id integer); INSERT INTO rocpd_barrierop VALUES (1), (2);"
            "CREATE TABLE ext_callstack (id integer); INSERT INTO ext_callstack VALUES (1);"
            "CREATE TABLE rocpd_kernelcodeobject (id integer);"
        )
        assert problems(trace.process()) == {
            ("unsupported_table", "ext_callstack"): 1,
            ("unsupported_table", "rocpd_barrierop"): 2,
        }

    def test_missing_tables_and_columns(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "bare.rpd")
        connection.executescript(
            "CREATE TABLE rocpd_api (id integer, start integer); INSERT INTO rocpd_api VALUES (1, 5);"
            "CREATE TABLE rocpd_op (id integer, gpuId integer); INSERT INTO rocpd_op VALUES (1, 2);"
        )
        connection.close()
        (process,) = processes_of(tmp_path / "bare.rpd")
        assert rows(process, "region") == [{"id": 1, "start": 5, "event_id": 0, "event.stack_id": 1}]
        (event,) = rows(process, "hip_event")
        assert (event["id"], event["agent_id"]) == (1, 2)

    def test_views_are_not_run(self, trace: RpdWriter) -> None:
        """A view that never ends takes the place of a table, and another that of an unknown one."""
        trace.call("hipCall")
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"
        trace.connection.executescript(
            f"DROP TABLE rocpd_monitor; CREATE VIEW rocpd_monitor AS {endless}; CREATE VIEW top AS {endless};"
        )
        process = trace.process()
        assert len(rows(process, "region")) == 1
        assert rows(process, "sample") == []

    def test_new_columns_are_kept(self, trace: RpdWriter) -> None:
        trace.connection.execute("ALTER TABLE rocpd_op ADD COLUMN wave varchar(9)")
        trace.op("KernelExecution", "k", calls=[trace.call("hipCall")], wave="big", sequenceId=9)
        (dispatch,) = rows(trace.process(), "kernel_dispatch")
        assert (dispatch["wave"], dispatch["sequenceId"]) == ("big", 9)
