"""The reader of rocprofv3's CSVs on the shared files, against Python's csv module."""

from __future__ import annotations

import json

import pytest

from tracewh.ingest.rocm_capture import read_capture
from tracewh.ingest.rocprof_csv import kind_of

from .rocprof_csv_files import SHARED, counters, integers, needs_shared, picked, problems, rows, shared

DISPATCH_COLUMNS = {
    "dispatch_id": "Dispatch_Id",
    "queue_id": "Queue_Id",
    "stream_id": "Stream_Id",
    "tid": "Thread_Id",
    "start": "Start_Timestamp",
    "end": "End_Timestamp",
    "private_segment_size": "Scratch_Size",
    "workgroup_size_x": "Workgroup_Size_X",
    "workgroup_size_y": "Workgroup_Size_Y",
    "workgroup_size_z": "Workgroup_Size_Z",
    "grid_size_x": "Grid_Size_X",
    "grid_size_y": "Grid_Size_Y",
    "grid_size_z": "Grid_Size_Z",
    "event.stack_id": "Correlation_Id",
    "event.parent_stack_id": "Correlation_Id",
}
SYMBOL_COLUMNS = {
    "id": "Kernel_Id",
    "group_segment_size": "LDS_Block_Size",
    "arch_vgpr_count": "VGPR_Count",
    "accum_vgpr_count": "Accum_VGPR_Count",
    "sgpr_count": "SGPR_Count",
}


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "rocm-systems-docs-kernel_trace.csv",
        "rocm-systems-docs-kernel_trace_truncated.csv",
        "rocprof-unified-viewer-prefill_kernel_trace.csv",
    ],
)
def test_kernel_traces(name: str) -> None:
    process, expected = shared(name)
    symbols = {row["id"]: row for row in rows(process, "info_kernel_symbol")}
    found = rows(process, "kernel_dispatch")
    assert len(found) == len(expected) > 0
    for row, said in zip(found, expected, strict=True):
        assert picked(row, DISPATCH_COLUMNS) == integers(said, DISPATCH_COLUMNS)
        assert row["event.category_id"] == said["Kind"]
        assert f"Agent {row['agent_id']}" == said["Agent_Id"]
        symbol = symbols[row["kernel_id"]]
        assert picked(symbol, SYMBOL_COLUMNS) == integers(said, SYMBOL_COLUMNS)
        assert symbol["display_name"] == said["Kernel_Name"]
    assert len(symbols) == len({said["Kernel_Id"] for said in expected})
    assert [row["type"] for row in rows(process, "info_agent")] == ["GPU"]
    assert {row["name"] for row in rows(process, "info_queue")} == {
        f"Queue {said['Queue_Id']}" for said in expected
    }
    assert problems(process) == {}


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "rocm-systems-docs-hip_compile_trace.csv",
        "rocm-systems-docs-hip_runtime_trace.csv",
        "rocm-systems-docs-hip_trace.csv",
        "rocm-systems-docs-hsa_api_trace.csv",
        "rocm-systems-docs-hsa_core_api_trace.csv",
        "rocm-systems-docs-marker_api_trace.csv",
        "rocm-systems-docs-python_bindings.csv",
        "rocm-systems-docs-rccl_trace.csv",
        "rocm-systems-docs-rocdecode_api_trace.csv",
        "rocm-systems-docs-rocjpeg_api_trace.csv",
        "rocm-systems-docs-rocpd-to-csv.csv",
        "rocprof-unified-viewer-prefill_hip_api_trace.csv",
    ],
)
def test_api_traces(name: str) -> None:
    process, expected = shared(name)
    columns = {
        "tid": "Thread_Id",
        "start": "Start_Timestamp",
        "end": "End_Timestamp",
        "event.stack_id": "Correlation_Id",
    }
    found = rows(process, "region")
    assert len(found) == len(expected) > 0
    for row, said in zip(found, expected, strict=True):
        assert picked(row, columns) == integers(said, columns)
        assert (row["event.category_id"], row["name_id"]) == (said["Domain"], said["Function"])
        is_marker = said["Domain"].startswith("MARKER")
        extdata = row.get("event.extdata")
        assert (None if extdata is None else json.loads(extdata)) == (
            {"message": said["Function"]} if is_marker else None
        )
        assert "event.parent_stack_id" not in row
    assert [row["pid"] for row in rows(process, "info_process")] == [int(expected[0]["Process_Id"])]
    assert process.attributes.get("guid") == expected[0].get("Guid")
    assert {row["tid"] for row in rows(process, "info_thread")} == {int(row["Thread_Id"]) for row in expected}
    assert problems(process) == {}


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "rocm-systems-docs-counter_collection.csv",
        "rocm-systems-docs-kernel_names.csv",
        "rocprof-unified-viewer-prefill_fetch_counter_collection.csv",
        "rocprof-unified-viewer-prefill_stall_counter_collection.csv",
    ],
)
def test_counter_collections(name: str) -> None:
    process, expected = shared(name)
    assert counters(process) == [
        (int(said["Dispatch_Id"]), said["Counter_Name"], float(said["Counter_Value"])) for said in expected
    ]
    dispatches = {row["dispatch_id"]: row for row in rows(process, "kernel_dispatch")}
    symbols = {row["id"]: row for row in rows(process, "info_kernel_symbol")}
    assert len(dispatches) == len({said["Dispatch_Id"] for said in expected})
    for said in expected:
        row = dispatches[int(said["Dispatch_Id"])]
        columns = {"workgroup_size_x": "Workgroup_Size", "grid_size_x": "Grid_Size", "tid": "Thread_Id"}
        assert picked(row, columns) == integers(said, columns)
        assert [row[f"{size}_{axis}"] for size in ("workgroup_size", "grid_size") for axis in "yz"] == [1] * 4
        assert row.get("start") == (int(said["Start_Timestamp"]) if "Start_Timestamp" in said else None)
        assert row.get("end") == (int(said["End_Timestamp"]) if "End_Timestamp" in said else None)
        symbol = symbols[row["kernel_id"]]
        assert symbol["display_name"] == said["Kernel_Name"]
        assert symbol["arch_vgpr_count"] == int(said["VGPR_Count"])
    timed = "Start_Timestamp" in expected[0]
    assert problems(process) == ({} if timed else {"untimed_counters": len(dispatches)})


@needs_shared
def test_rows_without_times_are_those_of_a_file() -> None:
    name = "rocm-systems-docs-kernel_names.csv"
    process, expected = shared(name)
    capture = read_capture(process)
    assert capture.stream is not None
    assert sum(len(part) for table, part in capture.stream if table == "device_events") == 0
    found = {problem.problem: problem for problem in capture.problems}
    assert found["missing_time"].place == name
    assert found["missing_time"].occurrences == len({said["Dispatch_Id"] for said in expected})


@needs_shared
def test_memory_traces() -> None:
    process, expected = shared("rocm-systems-docs-memory_copy_trace.csv")
    agents = {row["id"]: row["type"] for row in rows(process, "info_agent")}
    for row, said in zip(rows(process, "memory_copy"), expected, strict=True):
        assert row["name_id"] == said["Direction"]
        ends = (row["src_agent_id"], row["dst_agent_id"])
        assert tuple(f"Agent {end}" for end in ends) == (
            said["Source_Agent_Id"],
            said["Destination_Agent_Id"],
        )
        words = {"CPU": "HOST", "GPU": "DEVICE"}
        kinds = [words[agents[end]] for end in ends]
        assert f"MEMORY_COPY_{kinds[0]}_TO_{kinds[1]}" == said["Direction"]
        assert row["event.stack_id"] == row["event.parent_stack_id"] == int(said["Correlation_Id"])
        assert "size" not in row
    process, expected = shared("rocm-systems-docs-memory_allocation_trace.csv")
    for row, said in zip(rows(process, "memory_allocate"), expected, strict=True):
        is_free = said["Operation"] == "MEMORY_ALLOCATION_FREE"
        assert (row["type"], row["level"]) == ("FREE" if is_free else "ALLOC", "REAL")
        assert (row["agent_id"] is None) == (said["Agent_Id"] == "")
        assert row["address"] == int(said["Address"], 16)
        assert row["size"] == int(said["Allocation_Size"])
    process, expected = shared("rocm-systems-docs-scratch_memory_trace.csv")
    for row, said in zip(rows(process, "memory_allocate"), expected, strict=True):
        assert (row["type"], row["level"], row["event.category_id"]) == ("ALLOC", "SCRATCH", "SCRATCH_MEMORY")
        assert json.loads(row["event.extdata"]) == {"flags": int(said["Alloc_Flags"])}
        assert f"Agent {row['agent_id']}" == said["Agent_Id"]


@needs_shared
@pytest.mark.parametrize("name", ["host_trap", "host_trap_debug", "stochastic_debug"])
def test_pc_samples(name: str) -> None:
    process, expected = shared(f"rocm-systems-docs-pc_sampling_{name}.csv")
    for row, said in zip(rows(process, "gpu_pc_sample"), expected, strict=True):
        columns = {"timestamp": "Sample_Timestamp", "dispatch_id": "Dispatch_Id"}
        assert picked(row, columns) == integers(said, columns)
        assert row["exec"] % 2**64 == int(said["Exec_Mask"])
        assert row["instruction_id"] == said["Instruction"]
        assert (row.get("comment_id") or "") == said["Instruction_Comment"]
        assert row["correlation_id"] == int(said["Correlation_Id"])
        assert row["sampling_method"] == name.removesuffix("_debug")
        if "stochastic" in name:
            assert row["wave_issued"] == int(said["Wave_Issued_Instruction"])
            assert row["wave_count"] == int(said["Wave_Count"])
            assert (row["instruction_type"], row["stall_reason"]) == (
                said["Instruction_Type"],
                said["Stall_Reason"],
            )


@needs_shared
def test_shared_files_are_told_by_their_columns() -> None:
    found = {path.name: kind_of(path.name, path.read_bytes()[:4096]) for path in sorted(SHARED.glob("*.csv"))}
    of_compute = {name for name in found if "rocprof-compute" in name}
    assert {name for name, kind in found.items() if kind is None} == of_compute
    assert found["rocm-systems-docs-kernel_names.csv"] == "counter_collection"
    assert found["rocm-systems-docs-hip_domain_stats.csv"] == "stats"
