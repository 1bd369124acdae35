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


def merged_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Length of the union of intervals."""
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
