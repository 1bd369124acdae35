"""Documents in the form of rocprofv3's JSON output, and what the reader makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rocprof_json import read_processes

REAL_FILE = Path(__file__).parents[1].parent / "shared/data/rocprof/TraceLens-908_results.json.gz"
CPU, GPU = 4001, 4002
# Kinds by position, as the profiler numbers them; only what the documents here use.
KINDS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API_EXT", "operations": ["hipMalloc", "hipLaunchKernel"]},
    {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxMarkA", "roctxThreadRangeA"]},
    {
        "kind": "MEMORY_COPY",
        "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"],
    },
    {
        "kind": "KERNEL_DISPATCH",
        "operations": ["KERNEL_DISPATCH_NONE", "ENQUEUE", "KERNEL_DISPATCH_COMPLETE"],
    },
    {
        "kind": "SCRATCH_MEMORY",
        "operations": ["NONE", "SCRATCH_MEMORY_ALLOC", "SCRATCH_MEMORY_FREE", "SCRATCH_MEMORY_ASYNC_RECLAIM"],
    },
    {
        "kind": "MEMORY_ALLOCATION",
        "operations": [
            "MEMORY_ALLOCATION_NONE",
            "MEMORY_ALLOCATION_ALLOCATE",
            "MEMORY_ALLOCATION_VMEM_ALLOCATE",
            "MEMORY_ALLOCATION_FREE",
            "MEMORY_ALLOCATION_VMEM_FREE",
        ],
    },
    {"kind": "KFD_EVENT_PAGE_FAULT", "operations": ["PAGE_FAULT_START", "PAGE_FAULT_END"]},
    {"kind": "KFD_QUEUE", "operations": ["QUEUE_EVICT_SVM"]},
    {"kind": "HIP_GRAPH", "operations": ["HIP_GRAPH_NONE", "HIP_GRAPH_EXEC_LAUNCH"]},
]
HIP, MARKER, COPY, DISPATCH, SCRATCH, ALLOCATION, PAGE_FAULT, QUEUE, GRAPH = range(1, 10)


def process(
    *, buffers: dict[str, Any] | None = None, callbacks: dict[str, Any] | None = None, **sections: Any
) -> dict[str, Any]:
    """A process with a CPU and a GPU, one kernel, and the given sections in place of those here."""
    return {
        "metadata": {"node": {"hostname": "n1"}, "pid": 70},
        "agents": [
            {"size": 312, "id": {"handle": CPU}, "type": 1, "node_id": 0, "name": "EPYC"},
            {"size": 312, "id": {"handle": GPU}, "type": 2, "node_id": 1, "name": "gfx942"},
        ],
        "strings": {"buffer_records": KINDS},
        "kernel_symbols": [
            {"size": 0, "kernel_id": 0, "code_object_id": 0, "kernel_name": ""},
            {
                "size": 88,
                "kernel_id": 5,
                "code_object_id": 1,
                "kernel_name": "k.kd",
                "formatted_kernel_name": "k",
            },
        ],
        "buffer_records": buffers or {},
        "callback_records": callbacks or {},
        **sections,
    }


def document(*processes: Any) -> bytes:
    return json.dumps({"rocprofiler-sdk-tool": list(processes)}).encode()


def read(*, text: bytes | None = None, **sections: Any) -> TableProcess:
    """What the reader makes of a document with one process."""
    (found,) = read_processes(document(process(**sections)) if text is None else text, "x_results.json")
    return found


def rows(found: TableProcess, base: str, *columns: str) -> list[tuple[Any, ...]]:
    """The named columns of a table; a column whose name ends in name_id or category_id as its text."""
    table = found.reference(base).table
    texts = (
        dict(enumerate(found.reference("string").table["string"].to_pylist()))
        if "string" in found._rows
        else {}
    )
    values = []
    for column in columns:
        listed = table[column].to_pylist() if column in table.column_names else [None] * len(table)
        is_text = column.endswith(("name_id", "category_id", "instruction_id", "comment_id"))
        values.append([texts.get(value) if is_text else value for value in listed])
    return list(zip(*values, strict=True))


def problems(found: TableProcess) -> list[tuple[str, str, int]]:
    return [(each.problem, each.place, each.occurrences) for each in found.problems.problems()]


def call(kind: int, operation: int, correlation: int, start: int, end: int, **fields: Any) -> dict[str, Any]:
    """A record of a call of thread 71, with `ancestor` where it is given."""
    ids = {"internal": correlation, "external": 0} | {"ancestor": fields.pop("ancestor", 0)}
    times = {"start_timestamp": start, "end_timestamp": end, "thread_id": 71}
    return {"size": 56, "kind": kind, "operation": operation, "correlation_id": ids, **times, **fields}


def dispatch_info(dispatch_id: int, *, agent: int = GPU, queue: int = 9) -> dict[str, Any]:
    return {
        "size": 72,
        "agent_id": {"handle": agent},
        "queue_id": {"handle": queue},
        "kernel_id": 5,
        "dispatch_id": dispatch_id,
        "private_segment_size": 16,
        "group_segment_size": 1024,
        "workgroup_size": {"x": 256, "y": 2, "z": 1},
        "grid_size": {"x": 4096, "y": 8, "z": 3},
    }


def dispatch(dispatch_id: int, start: int, end: int, **fields: Any) -> dict[str, Any]:
    """A dispatch by thread 71 with correlation id 100 more than its own."""
    info = dispatch_info(dispatch_id, queue=fields.pop("queue", 9))
    record = call(DISPATCH, 2, 100 + dispatch_id, start, end)
    record["correlation_id"] = {"internal": 100 + dispatch_id, "external": fields.pop("external", 0)}
    return record | {"dispatch_info": info, "stream_id": {"handle": fields.pop("stream", 0)}} | fields


def counter(handle: int, name: str, agent: int = GPU, **fields: Any) -> dict[str, Any]:
    described = {
        "description": f"{name}?",
        "block": "SQ",
        "expression": "",
        "is_constant": 0,
        "is_derived": 0,
    }
    return {"agent_id": {"handle": agent}, "id": {"handle": handle}, "name": name, **described, **fields}


def counted(dispatch_id: int, start: int, values: list[tuple[int, float]], **fields: Any) -> dict[str, Any]:
    return {
        "thread_id": 71,
        "dispatch_data": {
            "size": 160,
            "correlation_id": {"internal": 100 + dispatch_id, "external": 0},
            "start_timestamp": start,
            "end_timestamp": start + 5,
            "dispatch_info": dispatch_info(dispatch_id) | fields,
        },
        "records": [{"counter_id": {"handle": handle}, "value": value} for handle, value in values],
        "stream_id": {"handle": 3},
    }


def merged_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Length of the union of intervals."""
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def everything() -> dict[str, Any]:
    """A process with a record in each section that has a place in the tables."""
    place = {"agent_id": {"handle": GPU}, "queue_id": {"handle": 9}}
    agents = {"src_agent_id": {"handle": CPU}, "dst_agent_id": {"handle": GPU}}
    fault = {"kind": PAGE_FAULT, "operation": 1, "timestamp": 15, "pid": 70, "agent_id": {"handle": GPU}}
    sample = {
        "hw_id": {"chiplet": 3},
        "pc": {"code_object_id": 1, "code_object_offset": 640},
        "exec_mask": 1,
        "timestamp": 111,
        "dispatch_id": 1,
        "corr_id": {"internal": 101, "external": 0},
        "snapshot": {"stall_reason": "WAITCNT"},
    }
    instance = {"instance_id": 5, "dimensions": [{"dimension_name": "DIMENSION_XCC", "index": 1}]}
    monitored = {"counter_id": {"handle": 501}, "instance_id": 5, "value": 1, "timestamp": 12}
    return process(
        metadata={"node": {"id": 1}, "pid": 70, "command": ["a", "b"], "config": {"a": {"b": [1]}}},
        strings={
            "buffer_records": KINDS,
            "marker_api": [{"key": 21, "value": "step"}],
            "correlation_id": {"external": [{"key": 7, "value": "layer"}]},
            "pc_sample_instructions": ["s_nop 0", "s_endpgm"],
            "pc_sample_comments": ["", "k.hip:1"],
            "code_object_snapshot_filenames": ["", "a.out"],
        },
        counters=[counter(501, "SQ_WAVES", instances=[instance])],
        code_objects=[{"code_object_id": 1, "agent_id": {"handle": GPU}, "load_size": 2, "storage_type": 2}],
        summary=[{"domain": "HIP", "stats": {"count": 1, "operations": [{"key": "a"}]}}],
        buffers={
            "hip_api": [call(HIP, 0, 1, 1, 2, args=[{"type": "t", "name": "n", "value": "v"}])],
            "marker_api": [call(MARKER, 1, 21, 1, 9)],
            "kernel_dispatch": [dispatch(1, 10, 20, external=7), dispatch(2, 20, 30)],
            "memory_copy": [call(COPY, 2, 3, 5, 6, bytes=3, src_address="0x1", **agents)],
            "memory_allocation": [call(ALLOCATION, 1, 4, 1, 2, address="0x1", allocation_size=4, **place)],
            "scratch_memory": [call(SCRATCH, 1, 4, 7, 8, flags=1, **place)],
            "hip_graph": [call(GRAPH, 1, 5, 9, 10, graph_exec_id={"handle": 2}, **place)],
            "kfd": [{"record": {"index": 1, "data": fault}}],
            "pc_sample_host_trap": [{"record": sample, "inst_index": 1}],
        },
        callbacks={
            "counter_collection": [counted(1, 10, [(501, 1.0)]), counted(3, 40, [(501, 2.0)])],
            "spm_counter_collection": [counted(1, 10, []) | {"records": [monitored]}],
        },
    )
