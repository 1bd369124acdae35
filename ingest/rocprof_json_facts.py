"""Records of a JSON file of rocprofv3 as facts in the shape of rocpd."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_process import Strings
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_json_fields import Columns, counted_integers, either, integers, plain_columns
from tracewh.ingest.rocprof_json_names import RecordNames, looked_up

_RENAMED = {
    "thread_id": "tid",
    "start_timestamp": "start",
    "end_timestamp": "end",
    "correlation_id.internal": "event.stack_id",
    "correlation_id.external": "event.correlation_id",
    "correlation_id.external.ptr": "event.correlation_id",
    "correlation_id.ancestor": "event.parent_stack_id",
}
_RENAMED_IN = {
    "memory_copy": {"bytes": "size"},
    "memory_allocate": {"allocation_size": "size"},
    "gpu_pc_sample": {
        "corr_id.internal": "event.stack_id",
        "corr_id.external": "event.correlation_id",
        "corr_id.external.ptr": "event.correlation_id",
        "exec_mask": "exec",
        "pc.code_object_id": "code_object_id",
        "pc.code_object_offset": "code_object_offset",
        "wave_in_grp": "wave_in_group",
        "inst_type": "instruction_type",
        "snapshot.stall_reason": "stall_reason",
        "wave_cnt": "wave_count",
    },
}
# Made here: a record's own fields must not take these names.
_OWN = ("id", "event_id", "name_id", "region_name_id", "event.category_id", "event.extdata")
_AGENTS = ("agent_id", "src_agent_id", "dst_agent_id")
# These carry the correlation id of what launched them; the others have one of their own.
_LAUNCHED = ("kernel_dispatch", "memory_copy", "gpu_pc_sample")
_NAMED = ("memory_copy", "region", "hip_event")
_ALLOCATION_TYPES = ("RECLAIM", "REALLOC", "ALLOC", "FREE")


class FactShaper:
    """Turns records of any section into facts, without the columns id and event_id.

    `agents` are the handles of the agents that the file describes: 0 is an agent only where it is among them.
    Counted: `not_an_integer` for a kind or operation, and what RecordNames counts.
    """

    def __init__(
        self, names: RecordNames, strings: Strings, agents: pa.Array, problems: ProblemCounter
    ) -> None:
        self._names, self._strings, self._problems = names, strings, problems
        self._has_agent_zero = pc.is_in(pa.scalar(0, INTEGER), value_set=agents).as_py()

    def facts(self, place: str, base: str, records: pa.Table) -> pa.Table:
        """Return the records of a place, a section of buffer_records, as rows of `base`."""
        columns, rows = self._columns(base, records), len(records)
        kinds = counted_integers(columns, "kind", rows, place, self._problems)
        operations = counted_integers(columns, "operation", rows, place, self._problems)
        if base == "region":
            columns |= _times_and_threads(columns, rows)
        if place == "buffer_records.marker_api":
            columns["event.extdata"] = self._names.of_messages(integers(columns, "event.stack_id", rows))
        if base == "gpu_pc_sample":
            columns |= self._sample_columns(place, columns, rows)
        else:
            columns["event.category_id"] = self._strings.ids(self._names.of_kinds(place, kinds))
        if base in _NAMED:
            names = self._names.of_operations(place, kinds, operations)
            numbered = looked_up([operations], lambda number: _numbered(place, number), TEXT)
            columns["name_id"] = self._strings.ids(pc.coalesce(names, numbered))
        if base == "memory_allocate":
            names = self._names.of_operations(place, kinds, operations)
            columns["type"] = looked_up([names], _allocation_type, TEXT)
            columns["level"] = looked_up([names], lambda name: _allocation_level(place, name), TEXT)
            if "flags" in columns:
                flags = integers({"flags": columns.pop("flags")}, "flags", rows)
                columns["extdata"] = looked_up([flags], _flags, TEXT)
        return _table(columns, rows)

    def dispatches(self, records: pa.Table) -> pa.Table:
        """Return records of counters, which tell of the dispatch that they counted, as dispatches."""
        columns, rows = self._columns("kernel_dispatch", records), len(records)
        category = self._strings.ids(pa.array(["KERNEL_DISPATCH"], TEXT))[0]
        columns["event.category_id"] = pa.repeat(category, rows)
        return _table(columns, rows)

    def _columns(self, base: str, records: pa.Table) -> Columns:
        rows = len(records)
        columns = plain_columns(records, _RENAMED | _RENAMED_IN.get(base, {}), _OWN)
        columns.setdefault("event.stack_id", pa.nulls(rows, INTEGER))
        outermost = pa.repeat(pa.scalar(0, INTEGER), rows)
        if base in _LAUNCHED:
            columns["event.parent_stack_id"] = columns["event.stack_id"]
        else:
            ancestors = columns.get("event.parent_stack_id", outermost)
            columns["event.parent_stack_id"] = either(ancestors, outermost)
        if base in ("kernel_dispatch", "memory_copy"):
            external = integers(columns, "event.correlation_id", rows)
            columns["region_name_id"] = self._strings.ids(self._names.of_renamed(external))
        for name in columns.keys() & set(_AGENTS):
            handles = columns[name]
            if handles.type == INTEGER and not self._has_agent_zero:
                columns[name] = pc.if_else(pc.equal(handles, 0), pa.scalar(None, INTEGER), handles)
        return columns

    def _sample_columns(self, place: str, columns: Columns, rows: int) -> Columns:
        indices = counted_integers(columns, "inst_index", rows, place, self._problems)
        instructions, comments = self._names.of_instructions(place, indices)
        return {
            "sampling_method": pa.repeat(pa.scalar(place.rpartition("pc_sample_")[2], TEXT), rows),
            "instruction_id": self._strings.ids(instructions),
            "comment_id": self._strings.ids(comments),
            "correlation_id": columns["event.stack_id"],
        }


def _table(columns: Columns, rows: int) -> pa.Table:
    used = ("kind", "operation", "inst_index")
    kept = {name: values for name, values in columns.items() if name not in used}
    return pa.table({"tid": pa.nulls(rows, INTEGER), **kept})


def _times_and_threads(columns: Columns, rows: int) -> Columns:
    """Make an instant a region without duration, and a driver's event one of the main thread.

    The driver tells the process of its events but no thread.
    """
    instants, processes = columns.pop("timestamp", pa.nulls(rows)), columns.pop("pid", pa.nulls(rows))
    made = {name: either(columns.get(name, pa.nulls(rows)), instants) for name in ("start", "end")}
    return made | {"tid": either(columns.get("tid", pa.nulls(rows)), processes)}


def _flags(flags: int | None) -> str | None:
    return None if flags is None else json.dumps({"flags": flags})


def _numbered(place: str, operation: int | None) -> str:
    section = place.rpartition(".")[2]
    return section if operation is None else f"{section} operation {operation}"


def _allocation_type(operation: str | None) -> str | None:
    # Both MEMORY_ALLOCATION_ and SCRATCH_MEMORY_ may follow the profiler's name.
    action = (operation or "").rpartition("MEMORY_ALLOCATION_")[2].rpartition("SCRATCH_MEMORY_")[2]
    return next((kind for kind in _ALLOCATION_TYPES if kind in action), None)


def _allocation_level(place: str, operation: str | None) -> str:
    if place == "buffer_records.scratch_memory":
        return "SCRATCH"
    return "VIRTUAL" if operation is not None and "VMEM" in operation else "REAL"
