"""Which table of rocprofv3 a CSV is: told by its columns, as users rename the files."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from tracewh.ingest import content
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT
from tracewh.ingest.rocprof_csv_tables import read_header

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Its tables have columns in common with those of rocprofv3.
_OF_ROCPROF_COMPUTE = frozenset(("dispatchid", "gpuid"))
_PROCESS = {"guid": TEXT, "processid": INTEGER}
_TIMES = {"starttimestamp": INTEGER, "endtimestamp": INTEGER, "duration": INTEGER}
_GRAPH = {"graphexecid": INTEGER, "graphnodeid": INTEGER}
_PLACE = {"agentid": TEXT, "queueid": INTEGER, "streamid": INTEGER, "threadid": INTEGER}
_KERNEL = {
    "kernelid": INTEGER,
    "kernelname": TEXT,
    "ldsblocksize": INTEGER,
    "groupsegmentsize": INTEGER,
    "scratchsize": INTEGER,
    "privatesegmentsize": INTEGER,
    "vgprcount": INTEGER,
    "accumvgprcount": INTEGER,
    "sgprcount": INTEGER,
}
_AXES = {f"{size}size{axis}": INTEGER for size in ("workgroup", "grid") for axis in "xyz"}

STREAMED_COUNTERS = "streamed_counters"


@dataclass(frozen=True)
class Kind:
    """A table: the columns that tell it, the known ones, which of them holds free text, what others are."""

    required: frozenset[str]
    columns: dict[str, pa.DataType]
    free_text: str | None = None
    others: pa.DataType | None = None

    def is_told_by(self, columns: frozenset[str]) -> bool:
        """Whether a file with these columns, by their plain names, is this table."""
        return self.required <= columns and not columns >= _OF_ROCPROF_COMPUTE

    def type_of(self, column: str) -> pa.DataType | None:
        """Type of a column by its plain name; None for one that is not read."""
        return self.columns.get(column, self.others)


def _kind(
    required: str,
    *columns: dict[str, pa.DataType],
    free_text: str | None = None,
    others: pa.DataType | None = None,
) -> Kind:
    known: dict[str, pa.DataType] = dict(_PROCESS)
    for more in columns:
        known |= more
    return Kind(frozenset(required.split()), known, free_text, others)


#: Tables by name, the more special ones first.
KINDS = {
    "counter_collection": _kind(
        "agentid dispatchid kernelname countername countervalue",
        {"correlationid": INTEGER, "dispatchid": INTEGER, "replaypass": INTEGER, "pid": TEXT},
        {"gridsize": INTEGER, "workgroupsize": INTEGER, "countername": TEXT, "countervalue": REAL},
        _PLACE | _KERNEL | _TIMES,
        free_text="kernelname",
    ),
    STREAMED_COUNTERS: _kind(
        "dispatchid countername countervalue",
        {"dispatchid": INTEGER, "countername": TEXT, "countervalue": REAL, "timestamp": INTEGER},
    ),
    "graph_launch": _kind(
        "kind graphexecid kerneldispatchcount",
        {"kind": TEXT, "kerneldispatchcount": INTEGER, "correlationid": INTEGER},
        _PLACE | _TIMES | _GRAPH,
    ),
    "kernel_trace": _kind(
        "agentid kernelname starttimestamp endtimestamp",
        {"kind": TEXT, "dispatchid": INTEGER, "correlationid": INTEGER},
        _PLACE | _KERNEL | _TIMES | _AXES | _GRAPH | {"replaypass": INTEGER},
        free_text="kernelname",
    ),
    "api_trace": _kind(
        "domain function threadid starttimestamp endtimestamp",
        {"domain": TEXT, "function": TEXT, "threadid": INTEGER, "correlationid": INTEGER},
        _TIMES,
        free_text="function",
    ),
    "memory_copy_trace": _kind(
        "direction sourceagentid destinationagentid starttimestamp",
        {"kind": TEXT, "direction": TEXT, "sourceagentid": TEXT, "destinationagentid": TEXT},
        {"streamid": INTEGER, "threadid": INTEGER, "correlationid": INTEGER},
        _TIMES | _GRAPH,
    ),
    "scratch_memory_trace": _kind(
        "operation agentid allocflags starttimestamp",
        {"kind": TEXT, "operation": TEXT, "allocflags": INTEGER, "allocationsize": INTEGER},
        _PLACE | _TIMES,
    ),
    "memory_allocation_trace": _kind(
        "operation allocationsize address starttimestamp",
        {"kind": TEXT, "operation": TEXT, "agentid": TEXT, "allocationsize": INTEGER, "address": TEXT},
        {"threadid": INTEGER, "correlationid": INTEGER},
        _TIMES,
    ),
    "hip_event": _kind(
        "operation agentid eventhandle starttimestamp",
        {"kind": TEXT, "operation": TEXT, "eventhandle": TEXT, "sourcequeueid": INTEGER},
        {"correlationid": INTEGER},
        _PLACE | _TIMES,
    ),
    "pc_sampling": _kind(
        "sampletimestamp execmask dispatchid instruction",
        {"sampletimestamp": INTEGER, "execmask": TEXT, "dispatchid": INTEGER, "correlationid": INTEGER},
        {"instruction": TEXT, "instructioncomment": TEXT, "wavecount": INTEGER},
        {"waveissuedinstruction": INTEGER, "instructiontype": TEXT, "stallreason": TEXT},
        free_text="instructioncomment",
    ),
    "agent_info": _kind(
        "nodeid agenttype cucount",
        {"nodeid": INTEGER, "logicalnodeid": INTEGER},
        others=TEXT,
    ),
    # Sums of what the traces hold row by row.
    "stats": _kind("name calls totaldurationns averagens percentage", others=TEXT),
    "summary": _kind("name calls duration(nsec) average(nsec)", others=TEXT),
}
#: Tables that hold nothing that the others do not.
DERIVED_KINDS = ("stats", "summary")


def kind_of(name: str, head: bytes) -> str | None:
    """Return which table of KINDS a CSV is, by the columns in its first bytes; None for another file."""
    if head.startswith(_UTF16_MARKS):
        # It is found, so that reading it says what is wrong with it.
        head = head[: len(head) // 2 * 2].decode("utf-16", "replace").encode()
    try:
        columns = frozenset(read_header(name, head).columns)
    except UnreadableFile:
        return None
    return next((kind for kind, table in KINDS.items() if table.is_told_by(columns)), None)


_SUFFIX = re.compile(
    r"(?:^|_)(?:"
    r"(?:kernel|memory_copy|memory_allocation|scratch_memory|graph_launch|hip_event|regions)_trace"
    r"|(?:hip|hsa|marker|rccl|rocdecode|rocjpeg)_(?:api_|runtime_|compiler_)?trace"
    r"|(?:spm_)?counter_collection(?:_trace)?|streaming_performance_monitor|agent_info"
    r"|pc_sampling_(?:host_trap|stochastic)"
    r"|(?:(?:hip|hsa|marker|rccl|rocdecode|rocjpeg)_api|kernel|memory_copy|memory_allocation|scratch_memory"
    r"|counter_collection|pc_sampling_host_trap|pc_sampling_stochastic|domain)_stats"
    r")$"
)


def prefix_of(name: str) -> str:
    """Return the part of a file's name that the CSVs of one process share: 123 of 123_kernel_trace.csv.

    A name that ends in no table of rocprofv3 is shared with no other file.
    """
    stem = content.uncompressed_name(name).removesuffix(".csv")
    return _SUFFIX.sub("", stem)
