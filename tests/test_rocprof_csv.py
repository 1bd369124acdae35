"""The reader of rocprofv3's CSVs on hand-made files of each table."""

from __future__ import annotations

import json

import pytest

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocprof_csv import kind_of, prefix_of, read_processes

from .rocprof_csv_files import (
    AGENT_HEADER,
    API_HEADER,
    COUNTER_HEADER,
    KERNEL_HEADER,
    counter,
    counters,
    kernel,
    picked,
    problems,
    read,
    read_one,
    rows,
    text_of,
)

NODES = [
    [0, 0, "CPU", 64, 0, 0, 0, 0, "AMD EPYC", "AMD", "AMD EPYC 9554", ""],
    [2, 1, "GPU", 0, 304, 8, 2100, 60_633, "gfx942", "AMD", "AMD Instinct MI300X", "mi300x"],
    [5, 2, "GPU", 0, 304, 8, 2100, 17_544, "gfx942", "AMD", "AMD Instinct MI300X", "mi300x"],
]


MEMORY_HEADER = "Kind Operation Agent_Id Allocation_Size Address Correlation_Id Start_Timestamp End_Timestamp"
SCRATCH_HEADER = "Kind Operation Agent_Id Queue_Id Thread_Id Alloc_Flags Start_Timestamp End_Timestamp"


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("4711_kernel_trace.csv", "4711"),
        ("4711_agent_info.csv", "4711"),
        ("4711_hip_api_trace.csv.gz", "4711"),
        ("4711_pc_sampling_host_trap.csv", "4711"),
        ("4711_domain_stats.csv", "4711"),
        ("kernel_trace.csv", ""),
        ("agent_info.csv", ""),
        ("out_counter_collection_trace.csv", "out"),
        ("out_regions_trace.csv", "out"),
        ("prefill_fetch_counter_collection.csv", "prefill_fetch"),
        ("my-kernel_trace.csv", "my-kernel_trace"),
        ("kernels of today.csv", "kernels of today"),
    ],
)
def test_prefix(name: str, prefix: str) -> None:
    assert prefix_of(name) == prefix


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\n\n",
        b"step,loss,time\n1,2.5,3\n",
        b"Name,Value\n",
        b"Kernel_Name,Duration\nk,1\n",
        b"Function,Start_Timestamp,End_Timestamp\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"Start_Timestamp",
    ],
)
def test_other_files_are_none_of_the_tables(head: bytes) -> None:
    assert kind_of("x.csv", head) is None


def test_the_converter_spells_columns_another_way() -> None:
    header = f"Guid {KERNEL_HEADER.title()} Duration Graph_Exec_Id Graph_Node_Id"
    content = text_of(header, ["00-1", *kernel(size=512), 500, 9, 3])
    assert b"Lds_Block_Size" in content
    process = read_one(out_kernel_trace=content)
    [dispatch] = rows(process, "kernel_dispatch")
    # The converter has the size that the launch asked for, the profiler that of the kernel itself.
    columns = ("group_segment_size", "graph_exec_id", "graph_node_id", "grid_size_x", "grid_size_z")
    assert picked(dispatch, columns) == dict(zip(columns, (512, 9, 3, 1024, 3), strict=True))
    assert "group_segment_size" not in rows(process, "info_kernel_symbol")[0]
    assert process.attributes == {"guid": "00-1", "tables": "kernel_trace"}
    [other] = rows(read_one(_kernel_trace=text_of(KERNEL_HEADER, kernel(size=512))), "info_kernel_symbol")
    assert other["group_segment_size"] == 512
    assert problems(process) == {}


def test_an_old_kernel_trace_has_the_sizes_of_the_launch() -> None:
    header = KERNEL_HEADER.replace("LDS_Block", "Group_Segment").replace("Scratch", "Private_Segment")
    process = read_one(_kernel_trace=text_of(header, kernel(size=640)))
    columns = ("group_segment_size", "private_segment_size")
    assert picked(rows(process, "kernel_dispatch")[0], columns) == dict(zip(columns, (640, 16), strict=True))


def test_files_of_one_prefix_are_one_process() -> None:
    process = read_one(
        _55_kernel_trace=text_of(KERNEL_HEADER, kernel(), kernel("copy()", 2, kernel_id=11, start=9_000)),
        _55_hip_api_trace=text_of(API_HEADER, ["HIP_RUNTIME_API_EXT", "hipLaunchKernel", 55, 77, 101, 5, 9]),
        _55_rccl_api_trace=text_of(API_HEADER, ["RCCL_API", "ncclAllReduce", 55, 78, 103, 6, 8]),
        _55_agent_info=text_of(AGENT_HEADER, *NODES[:1], [4, *NODES[1][1:]]),
        _55_counter_collection=text_of(
            COUNTER_HEADER, counter("SQ_WAVES", 16.0, 2), counter("SQ_WAVES", 8.5, 1)
        ),
    )
    # Counters are joined to the dispatches of the trace, by their numbers.
    assert [row["dispatch_id"] for row in rows(process, "kernel_dispatch")] == [1, 2]
    assert counters(process) == [(2, "SQ_WAVES", 16.0), (1, "SQ_WAVES", 8.5)]
    assert [row["name_id"] for row in rows(process, "region")] == ["hipLaunchKernel", "ncclAllReduce"]
    events = [row["event_id"] for base in ("kernel_dispatch", "region") for row in rows(process, base)]
    assert events == [1, 2, 3, 4]
    assert [row["pid"] for row in rows(process, "info_process")] == [55]
    assert process.source_kind == "rocprof_csv"
    assert process.attributes["tables"] == "agent_info, api_trace, counter_collection, kernel_trace"
    assert problems(process) == {}


def test_a_prefix_names_the_process_that_no_file_tells() -> None:
    trace = text_of(KERNEL_HEADER, kernel())
    assert [row["pid"] for row in rows(read_one(_4711_kernel_trace=trace), "info_process")] == [4711]
    assert rows(read_one(out_kernel_trace=trace), "info_process") == []


def test_guids_part_the_processes() -> None:
    trace = text_of(f"Guid {KERNEL_HEADER}", ["aa", *kernel()], ["bb", *kernel("copy()")], ["aa", *kernel()])
    calls = text_of(
        f"Guid {API_HEADER}",
        ["bb", "HIP_RUNTIME_API_EXT", "hipMalloc", 7, 7, 1, 2, 3],
        ["aa", "HIP_RUNTIME_API_EXT", "hipFree", 6, 6, 1, 2, 3],
    )
    scratch = text_of(SCRATCH_HEADER, ["SCRATCH_MEMORY", "SCRATCH_MEMORY_FREE", "Agent 4", 1, 77, 2, 5, 6])
    # The early converter has no guid in this table.
    first, second = read(out_kernel_trace=trace, out_hip_api_trace=calls, out_scratch_memory_trace=scratch)
    assert [process.attributes["guid"] for process in (first, second)] == ["aa", "bb"]
    assert [len(rows(process, "kernel_dispatch")) for process in (first, second)] == [2, 1]
    assert [[row["name_id"] for row in rows(p, "region")] for p in (first, second)] == [
        ["hipFree"],
        ["hipMalloc"],
    ]
    assert [[row["pid"] for row in rows(p, "info_process")] for p in (first, second)] == [[6], [7]]
    assert [len(rows(process, "memory_allocate")) for process in (first, second)] == [1, 0]
    assert (problems(first), problems(second)) == ({"unknown_process": 1}, {})


def test_process_ids_part_the_processes_without_guids() -> None:
    calls = text_of(
        API_HEADER,
        ["HIP_RUNTIME_API_EXT", "hipMalloc", 7, 7, 1, 2, 3],
        ["HIP_RUNTIME_API_EXT", "hipFree", 6, 6, 1, 2, 3],
    )
    first, second = read(hip_api_trace=calls, kernel_trace=text_of(KERNEL_HEADER, kernel()))
    assert [rows(process, "region")[0]["name_id"] for process in (first, second)] == ["hipMalloc", "hipFree"]
    assert (len(rows(first, "kernel_dispatch")), len(rows(second, "kernel_dispatch"))) == (1, 0)
    assert (problems(first), problems(second)) == ({"unknown_process": 1}, {})


@pytest.mark.parametrize(
    ("labels", "agents", "expected_problems"),
    [
        # Nodes, where no visible agent has such a position.
        (["Agent 5", "Agent 2"], [5, 2], {}),
        # Positions among the visible agents, which are no nodes.
        (["Agent 1", "Agent 2"], [2, 5], {"ambiguous_agent": 0}),
        (["1"], [2], {}),
        (["GPU 1", "GPU 0"], [5, 2], {}),
        (["GPU-0"], [2], {}),
        # Both a node and the position of another GPU.
        (["Agent 2"], [5], {"ambiguous_agent": 1}),
        # Neither, so that only the label is known.
        (["Agent 9"], [9], {"missing_agent_info": 1}),
        (["GPU 7"], [6], {"missing_agent_info": 1}),
        (["the big one"], [None], {"unknown_agent": 1}),
    ],
)
def test_agents_by_their_labels(
    labels: list[str], agents: list[int | None], expected_problems: dict[str, int]
) -> None:
    process = read_one(
        _kernel_trace=text_of(
            KERNEL_HEADER, *(kernel(dispatch=n, agent=label) for n, label in enumerate(labels))
        ),
        _agent_info=text_of(AGENT_HEADER, *NODES),
    )
    dispatches = rows(process, "kernel_dispatch")
    assert [row.get("agent_id") for row in dispatches] == agents
    assert problems(process) == {name: count for name, count in expected_problems.items() if count}
    found = {row["id"]: row for row in rows(process, "info_agent")}
    assert all(found[agent]["type"] == "GPU" for agent in agents if agent is not None)


def test_agent_info() -> None:
    process = read_one(_agent_info=text_of(AGENT_HEADER, *reversed(NODES), NODES[0]))
    cpu, gpu, other = rows(process, "info_agent")
    assert [agent["absolute_index"] for agent in (cpu, gpu, other)] == [0, 2, 5]
    assert [agent["type_index"] for agent in (cpu, gpu, other)] == [0, 0, 1]
    assert gpu | {"extdata": json.loads(gpu["extdata"])} == {
        "id": 2,
        "absolute_index": 2,
        "logical_index": 1,
        "type_index": 0,
        "type": "GPU",
        "name": "gfx942",
        "vendor_name": "AMD",
        "product_name": "AMD Instinct MI300X",
        "model_name": "mi300x",
        "extdata": {
            "cpu_cores_count": 0,
            "cu_count": 304,
            "num_xcc": 8,
            "max_engine_clk_fcompute": 2100,
            "gpu_id": 60_633,
        },
    }
    # A node comes twice.
    assert problems(process) == {"invalid_agent": 1, "no_events": 1}


def test_agents_without_agent_info() -> None:
    header = "Kind Direction Stream_Id Source_Agent_Id Destination_Agent_Id Correlation_Id Start_Timestamp"
    copies = text_of(
        f"{header} End_Timestamp",
        ["MEMORY_COPY", "HOST_TO_DEVICE", 0, "CPU 0", "GPU 1", 1, 2, 3],
        ["MEMORY_COPY", "DEVICE_TO_HOST", 0, "GPU 0", "CPU 0", 2, 4, 5],
    )
    process = read_one(_memory_copy_trace=copies)
    found = rows(process, "info_agent")
    columns = ("type", "type_index", "absolute_index")
    assert [tuple(picked(row, columns).values()) for row in found] == [
        ("CPU", 0, None),
        ("GPU", 0, None),
        ("GPU", 1, None),
    ]
    ids = [row["id"] for row in found]
    assert [(row["src_agent_id"], row["dst_agent_id"]) for row in rows(process, "memory_copy")] == [
        (ids[0], ids[2]),
        (ids[1], ids[0]),
    ]


def test_queues_and_streams_have_the_names_that_rocpd_gives_them() -> None:
    trace = [kernel(), kernel(dispatch=2)]
    trace[1][2:4] = [0, 0]
    process = read_one(_kernel_trace=text_of(KERNEL_HEADER, *trace))
    assert [row["name"] for row in rows(process, "info_queue")] == ["Default Queue", "Queue 1"]
    assert [row["name"] for row in rows(process, "info_stream")] == ["Default Stream", "Stream 2"]


def test_a_kernel_with_several_names_or_registers_is_several_symbols() -> None:
    trace = [kernel("a"), kernel("b", 2), kernel("a", 3), kernel("_Z1cv.kd", 4, kernel_id=11)]
    trace[2][14] = 8
    process = read_one(_kernel_trace=text_of(KERNEL_HEADER, *trace))
    symbols = {row["id"]: row for row in rows(process, "info_kernel_symbol")}
    used = [symbols[row["kernel_id"]] for row in rows(process, "kernel_dispatch")]
    assert [(row["display_name"], row["accum_vgpr_count"]) for row in used] == [
        ("a", 4),
        ("b", 4),
        ("a", 8),
        ("_Z1cv.kd", 4),
    ]
    assert [row["id"] for row in used] == [10, 12, 13, 11]
    assert [row["kernel_name"] for row in used] == [None, None, None, "_Z1cv.kd"]


def test_counters_of_dispatches_that_the_trace_lacks() -> None:
    process = read_one(
        _kernel_trace=text_of(KERNEL_HEADER, kernel()),
        _counter_collection=text_of(
            COUNTER_HEADER,
            counter("SQ_WAVES", 1, 1),
            counter("SQ_WAVES", 2, 2, kernel_name="other()"),
            counter("GRBM_COUNT", 3, 2, kernel_name="other()"),
            # Another agent has dispatches of its own.
            counter("SQ_WAVES", 4, 1, agent="Agent 5"),
        ),
    )
    dispatches = rows(process, "kernel_dispatch")
    assert [(row["dispatch_id"], row["agent_id"]) for row in dispatches] == [(1, 4), (2, 4), (1, 5)]
    assert counters(process) == [
        (1, "SQ_WAVES", 1),
        (2, "SQ_WAVES", 2),
        (2, "GRBM_COUNT", 3),
        (1, "SQ_WAVES", 4),
    ]
    assert [row["event_id"] for row in rows(process, "pmc_event")] == [1, 2, 2, 3]
    assert [(row["agent_id"], row["name"]) for row in rows(process, "info_pmc")] == [
        (4, "SQ_WAVES"),
        (4, "GRBM_COUNT"),
        (5, "SQ_WAVES"),
    ]
    names = {row["id"]: row["display_name"] for row in rows(process, "info_kernel_symbol")}
    assert [names[row["kernel_id"]] for row in dispatches] == ["gemm(float*)", "other()", "gemm(float*)"]


def test_each_replay_of_a_dispatch_is_one_of_its_own() -> None:
    header = f"{COUNTER_HEADER} Replay_Pass"
    passes = [[*counter("SQ_WAVES", 1), 0], [*counter("GRBM_COUNT", 2), 1]]
    passes[1][17:19] = [3_000, 3_400]
    process = read_one(_counter_collection=text_of(header, *passes))
    columns = ("dispatch_id", "replay_pass", "start")
    expected = [(1, 0, 1_000), (1, 1, 3_000)]
    assert [tuple(picked(row, columns).values()) for row in rows(process, "kernel_dispatch")] == expected
    trace = text_of(KERNEL_HEADER, kernel(start=3_000), kernel(start=1_000))
    process = read_one(_counter_collection=text_of(header, *passes), _kernel_trace=trace)
    assert [row["event_id"] for row in rows(process, "pmc_event")] == [2, 1]


def test_counters_without_a_number_of_their_dispatch_are_kept() -> None:
    row = counter("SQ_WAVES", 5)
    row[1] = ""
    process = read_one(_counter_collection=text_of(COUNTER_HEADER, row, counter("SQ_WAVES", 6, 3)))
    assert counters(process) == [(None, "SQ_WAVES", 5), (3, "SQ_WAVES", 6)]
    assert problems(process) == {"missing_dispatch": 1}


def test_the_early_converter_heads_guids_with_pid() -> None:
    content = text_of(f"Pid {COUNTER_HEADER}", ["aa-1", *counter("SQ_WAVES", 5)])
    process = read_one(_counter_collection=content)
    assert (process.attributes["guid"], counters(process)) == ("aa-1", [(1, "SQ_WAVES", 5)])
    assert [row["pid"] for row in rows(process, "info_process")] == [55]


def test_markers() -> None:
    names = ["step 1", 'a "quoted", text', '{"step": 2}', "roctxProfilerPause", "roctxrun", ""]
    calls = [["MARKER_CORE_RANGE_API", name, 55, 77, n, 10, 10 + n] for n, name in enumerate(names)]
    process = read_one(_marker_api_trace=text_of(API_HEADER, *calls))
    found = rows(process, "region")
    assert [row["name_id"] for row in found] == [*names[:-1], None]
    messages = [None if row["event.extdata"] is None else json.loads(row["event.extdata"]) for row in found]
    assert messages == [
        *({"message": name} for name in names[:3]),
        # A function of ROCTx itself has no text.
        None,
        {"message": "roctxrun"},
        None,
    ]
    assert (found[0]["start"], found[0]["end"]) == (10, 10)
    assert problems(process) == {"repaired_csv_row": 2}


@pytest.mark.parametrize(
    ("operation", "kind", "level"),
    [
        ("MEMORY_ALLOCATION_ALLOCATE", "ALLOC", "REAL"),
        ("MEMORY_ALLOCATION_VMEM_ALLOCATE", "ALLOC", "VIRTUAL"),
        ("MEMORY_ALLOCATION_FREE", "FREE", "REAL"),
        ("MEMORY_ALLOCATION_VMEM_FREE", "FREE", "VIRTUAL"),
        ("SCRATCH_MEMORY_ALLOCATE", "ALLOC", "SCRATCH"),
        ("SCRATCH_MEMORY_ASYNC_RECLAIM", "RECLAIM", "SCRATCH"),
        ("ALLOCATE", "ALLOC", "REAL"),
        ("MEMORY_ALLOCATION_NONE", None, None),
    ],
)
def test_operations_of_memory(operation: str, kind: str | None, level: str | None) -> None:
    row = ["MEMORY_ALLOCATION", operation, "Agent 0", 64, "0xffffffffffffffff", 3, 5, 6]
    # The converter leaves a quote for the agent of a free.
    other = ["MEMORY_ALLOCATION", "MEMORY_ALLOCATION_FREE", '""', 0, "0x10", 4, 5, 6]
    process = read_one(_memory_allocation_trace=text_of(MEMORY_HEADER, row, other))
    found, free = rows(process, "memory_allocate")
    assert (found["type"], found["level"]) == (kind, level)
    assert (found["address"], free["address"], free["agent_id"]) == (-1, 16, None)
    assert problems(process) == ({} if kind else {"unknown_operation": 1})


def test_scratch_that_the_converter_has_twice_is_once() -> None:
    allocations = text_of(
        MEMORY_HEADER,
        ["MEMORY_ALLOCATION", "SCRATCH_MEMORY_ALLOCATE", "Agent 4", 4096, "0x10", 9, 50, 60],
        ["MEMORY_ALLOCATION", "MEMORY_ALLOCATION_ALLOCATE", "Agent 4", 64, "0x20", 9, 50, 60],
        ["MEMORY_ALLOCATION", "SCRATCH_MEMORY_FREE", "Agent 4", 0, "0x10", 9, 70, 80],
    )
    scratch = text_of(SCRATCH_HEADER, ["SCRATCH_MEMORY", "SCRATCH_MEMORY_ALLOC", "Agent 4", 1, 77, 2, 50, 60])
    process = read_one(_memory_allocation_trace=allocations, _scratch_memory_trace=scratch)
    columns = ("type", "level", "size", "queue_id", "start")
    assert [tuple(picked(row, columns).values()) for row in rows(process, "memory_allocate")] == [
        ("ALLOC", "REAL", 64, None, 50),
        ("FREE", "SCRATCH", 0, None, 70),
        ("ALLOC", "SCRATCH", 4096, 1, 50),
    ]
    assert problems(process) == {"duplicate_row": 1}


def test_graph_launches_and_hip_events() -> None:
    launches = text_of(
        "Guid Kind Agent_Id Queue_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp Duration"
        " Graph_Exec_Id Kernel_Dispatch_Count",
        ["aa", "Graph Launch", "Agent 4", 1, 77, 9, 50, 60, 10, 3, 12],
    )
    events = text_of(
        "Guid Kind Operation Agent_Id Queue_Id Stream_Id Thread_Id Event_Handle Source_Queue_Id"
        " Correlation_Id Start_Timestamp End_Timestamp Duration",
        ["aa", "HIP_EVENT", "HIP_EVENT_WAIT", "Agent 4", 1, 0, 77, 140_000, 2, 9, 70, 80, 10],
    )
    process = read_one(out_graph_launch_trace=launches, out_hip_event_trace=events)
    [launch], [event] = rows(process, "graph_launch"), rows(process, "hip_event")
    columns = ("agent_id", "graph_exec_id", "kernel_dispatch_count", "event.stack_id", "start", "end")
    assert tuple(picked(launch, columns).values()) == (4, 3, 12, 9, 50, 60)
    columns = ("name_id", "hip_event_handle", "source_queue_id", "event.category_id")
    assert tuple(picked(event, columns).values()) == ("HIP_EVENT_WAIT", 140_000, 2, "HIP_EVENT")
    assert problems(process) == {}


def test_dispatches_that_counters_tell_of_are_rows_of_their_file() -> None:
    process = read_one(out_counter_collection=text_of(COUNTER_HEADER, counter("SQ_WAVES", 5)))
    assert process.reference("kernel_dispatch").place == "out_counter_collection.csv"
    assert process.reference("pmc_event").place == "out_counter_collection.csv"
    process = read_one(
        out_counter_collection=text_of(COUNTER_HEADER, counter("SQ_WAVES", 5)),
        out_kernel_trace=text_of(KERNEL_HEADER, kernel()),
    )
    assert process.reference("kernel_dispatch").place == "out_kernel_trace.csv"


STATS = b'"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs"\n"k",1,2,2.0,100.0,2\n'


def test_sums_of_what_is_there_are_no_problem() -> None:
    summary = b'"NAME","CALLS","DURATION (nsec)","AVERAGE (nsec)"\n"k",1,2,2.0\n'
    process = read_one(
        _kernel_stats=STATS, _kernel_summary=summary, _kernel_trace=text_of(KERNEL_HEADER, kernel())
    )
    assert len(rows(process, "kernel_dispatch")) == 1
    assert problems(process) == {}
    process = read_one(_kernel_stats=STATS, _counter_collection=text_of(COUNTER_HEADER, counter("A", 1)))
    assert problems(process) == {}


def test_sums_alone_are_a_problem() -> None:
    process = read_one(_kernel_stats=STATS, _domain_stats=STATS)
    assert rows(process, "kernel_dispatch") == []
    found = process.problems.problems()
    assert [(problem.problem, problem.place) for problem in found] == [
        ("derived_table", "kernel_stats.csv"),
        ("derived_table", "domain_stats.csv"),
    ]
    assert found[0].detail == (
        "1 rows not loaded: sums of what kernel_trace.csv, hip_api_trace.csv and so on hold. Give those, "
        "or profile with --output-format csv"
    )
    # Agents have nothing to sum.
    process = read_one(_kernel_stats=STATS, _agent_info=text_of(AGENT_HEADER, *NODES))
    assert problems(process) == {"derived_table": 1, "no_events": 1}


def test_counters_that_were_streamed_are_not_loaded() -> None:
    process = read_one(
        _streaming_performance_monitor=b"Dispatch_Id,Counter_Name,Counter_Value\n1,a,2\n1,b,3\n"
    )
    assert problems(process) == {"unsupported_table": 2}


def test_files_without_events_are_a_problem() -> None:
    process = read_one(_7_agent_info=text_of(AGENT_HEADER, *NODES))
    assert len(rows(process, "info_agent")) == 3
    [problem] = process.problems.problems()
    assert (problem.problem, problem.place, problem.occurrences) == ("no_events", "7_agent_info.csv", 1)
    assert problem.detail == (
        "neither work nor calls are in these files. Give kernel_trace.csv, hip_api_trace.csv and so on of "
        "the same run, too"
    )
    process = read_one(_7_kernel_trace=text_of(KERNEL_HEADER), _7_hip_api_trace=text_of(API_HEADER))
    [problem] = process.problems.problems()
    assert (problem.problem, problem.place) == ("no_events", "7_kernel_trace.csv, 7_hip_api_trace.csv")


def test_markers_whose_texts_the_converter_left_out() -> None:
    names = ["roctxThreadRangeA", "roctxProcessRangeA", "roctxMarkA", "roctxRangePushA", "roctxProfilerPause"]
    calls = [["MARKER_CORE_RANGE_API", name, 55, 77, n, 10, 20] for n, name in enumerate(names)]
    # A text in the place of the name, and a call that is no marker.
    calls += [["MARKER_CORE_RANGE_API", "step 1", 55, 77, 8, 10, 20]]
    calls += [["HIP_RUNTIME_API_EXT", "roctxMarkA", 55, 77, 9, 10, 20]]
    process = read_one(out_regions_trace=text_of(API_HEADER, *calls))
    assert len(rows(process, "region")) == 7
    [problem] = process.problems.problems()
    assert (problem.problem, problem.place) == ("lost_marker_text", "out_regions_trace.csv")
    assert problem.occurrences == 4
    assert problem.detail.endswith("Give the database that was converted")


def test_dispatches_on_a_cpu_are_a_problem() -> None:
    nodes = [NODES[0], [1, 1, *NODES[0][2:]], [3, 2, *NODES[1][2:]]]
    trace = text_of(KERNEL_HEADER, kernel(agent="Agent 1"), kernel(dispatch=2, agent="Agent 2"))
    process = read_one(_7_kernel_trace=trace, _7_agent_info=text_of(AGENT_HEADER, *nodes))
    [problem] = [found for found in process.problems.problems() if found.problem == "dispatch_on_cpu"]
    assert (problem.place, problem.occurrences) == ("7_kernel_trace.csv", 1)
    assert "agent 1 is one" in problem.detail
    # Those that only counters tell of, each once.
    values = [counter(name, 1, number, "Agent 1") for name in ("A", "B") for number in (1, 2, 3)]
    process = read_one(
        _7_counter_collection=text_of(COUNTER_HEADER, *values), _7_agent_info=text_of(AGENT_HEADER, *nodes)
    )
    assert problems(process)["dispatch_on_cpu"] == 3
    assert len(rows(process, "kernel_dispatch")) == 3


def test_places_of_tables_are_their_files() -> None:
    process = read_one(_7_kernel_trace=text_of(KERNEL_HEADER, kernel()))
    assert process.reference("kernel_dispatch").place == "7_kernel_trace.csv"
    # Not a file: it is made of what the trace says.
    assert process.reference("info_agent").place == "info_agent"


def test_another_file_is_refused() -> None:
    with pytest.raises(UnreadableFile, match=r"run/x.csv: line 1: not the columns .* Leave the file out\."):
        read_processes([("run/x.csv", b"step,loss\n1,2\n")])
    with pytest.raises(UnreadableFile, match=r"run/x.csv: line 1: .*UTF-16.* Save the file as UTF-8"):
        read_processes([("run/x.csv", text_of(KERNEL_HEADER, kernel()).decode().encode("utf-16"))])
