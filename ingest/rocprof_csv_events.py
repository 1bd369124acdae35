"""Calls, copies, allocations, graph launches, HIP events and PC samples of CSVs as tables of rocpd."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_csv_agents import Agents
from tracewh.ingest.rocprof_csv_references import References, matches, present
from tracewh.ingest.rocprof_csv_tables import CsvTable
from tracewh.ingest.rocprof_csv_values import bits_of, each

# Names of ROCTx's own functions; any other name of a marker is the text that the user gave it.
_ROCTX_FUNCTION = re.compile(r"roctx[A-Z]\w*")
# Those of them that take a text, in whose place the converter of rocpd leaves the function's name.
_TAKES_TEXT = re.compile(r"roctx(?:Mark|[A-Za-z]*Range)[A-Za-z]*A")
_OPERATION = re.compile(
    r"(?:MEMORY_ALLOCATION_|(?P<scratch>SCRATCH_MEMORY_))?(?P<virtual>VMEM_)?"
    r"(?:ASYNC_)?(?P<type>ALLOC|FREE|REALLOC|RECLAIM)(?:ATE)?"
)


@dataclass(frozen=True)
class Events:
    """Builds fact tables; each method takes the rows of one file that are of one process."""

    references: References
    agents: Agents
    problems: ProblemCounter

    def regions(self, table: CsvTable) -> pa.Table:
        """Calls of any API. Of a marker the name is the user's text, which is its message, too."""
        functions, domains = table.texts("function"), table.texts("domain")
        is_marker = _each_as(domains, lambda text: text.upper().startswith("MARKER"), pa.bool_())
        messages = _each_as(functions, _message, TEXT)
        is_lost = pc.and_(is_marker, _each_as(functions, _takes_text, pa.bool_()))
        count = pc.sum(is_lost).as_py()
        if count:
            detail = "loaded as markers without text, none of them a step: `rocpd convert` leaves texts out"
            detail += ". Give the database that was converted"
            self.problems.add("lost_marker_text", table.file, detail, count)
        return present(
            {
                **self._of_thread(table),
                "name_id": self.references.strings(functions),
                "event.category_id": self.references.strings(domains),
                "event.stack_id": table.integers("correlationid"),
                "event.extdata": pc.if_else(is_marker, messages, pa.scalar(None, TEXT)),
            }
        )

    def copies(self, table: CsvTable) -> pa.Table:
        """Memory copies; the format does not say how many bytes."""
        return present(
            {
                **self._of_device(table, "MEMORY_COPY"),
                "name_id": self.references.strings(table.texts("direction")),
                "src_agent_id": self._agents(table, "sourceagentid"),
                "dst_agent_id": self._agents(table, "destinationagentid"),
                "graph_exec_id": table.integers("graphexecid"),
                "graph_node_id": table.integers("graphnodeid"),
            }
        )

    def allocations(self, table: CsvTable) -> pa.Table:
        """Allocations of memory; an address is the bits of the pointer, as a signed number."""
        texts = table.texts("address")
        place = f"{table.file}: Address"
        return present(
            {
                **self._of_memory(table),
                "event.category_id": self.references.string("MEMORY_ALLOCATION", len(table)),
                "event.stack_id": table.integers("correlationid"),
                "address": each(texts, bits_of, INTEGER, "not_an_integer", place, self.problems),
            }
        )

    def scratch(self, table: CsvTable) -> pa.Table:
        """Allocations of scratch memory."""
        flags = table.integers("allocflags").dictionary_encode()
        return present(
            {
                **self._of_memory(table),
                "level": pa.repeat(pa.scalar("SCRATCH", TEXT), len(table)),
                "event.category_id": self.references.string("SCRATCH_MEMORY", len(table)),
                "event.extdata": _each_as(flags, lambda number: json.dumps({"flags": number}), TEXT),
            }
        )

    def graph_launches(self, table: CsvTable) -> pa.Table:
        """Launches of graphs."""
        return present(
            {
                **self._of_device(table, "GRAPH_LAUNCH"),
                "agent_id": self._agents(table, "agentid"),
                "graph_exec_id": table.integers("graphexecid"),
                "kernel_dispatch_count": table.integers("kerneldispatchcount"),
            }
        )

    def hip_events(self, table: CsvTable) -> pa.Table:
        """Records of and waits for HIP events."""
        handles, place = table.texts("eventhandle"), f"{table.file}: Event_Handle"
        return present(
            {
                **self._of_device(table, "HIP_EVENT"),
                "agent_id": self._agents(table, "agentid"),
                "name_id": self.references.strings(table.texts("operation")),
                "hip_event_handle": each(handles, bits_of, INTEGER, "not_an_integer", place, self.problems),
                "source_queue_id": table.integers("sourcequeueid"),
            }
        )

    def pc_samples(self, table: CsvTable) -> pa.Table:
        """Samples of program counters; the mask of lanes is its bits, as a signed number."""
        method = "stochastic" if table.has("stallreason") else "host_trap"
        masks, place = table.texts("execmask"), f"{table.file}: Exec_Mask"
        correlation = table.integers("correlationid")
        return present(
            {
                "timestamp": table.integers("sampletimestamp"),
                "dispatch_id": table.integers("dispatchid"),
                "exec": each(masks, bits_of, INTEGER, "not_an_integer", place, self.problems),
                "correlation_id": correlation,
                "event.stack_id": correlation,
                "instruction_id": self.references.strings(table.texts("instruction")),
                "comment_id": self.references.strings(table.texts("instructioncomment")),
                "sampling_method": pa.repeat(pa.scalar(method, TEXT), len(table)),
                "wave_issued": table.integers("waveissuedinstruction"),
                "instruction_type": table.texts("instructiontype").cast(TEXT),
                "stall_reason": table.texts("stallreason").cast(TEXT),
                "wave_count": table.integers("wavecount"),
            }
        )

    def _of_thread(self, table: CsvTable) -> dict[str, pa.Array]:
        return {
            "tid": self.references.used("thread", table.integers("threadid")),
            "start": table.integers("starttimestamp"),
            "end": table.integers("endtimestamp"),
        }

    def _of_device(self, table: CsvTable, category: str) -> dict[str, pa.Array]:
        stack_ids = table.integers("correlationid")
        return {
            **self._of_thread(table),
            "queue_id": self.references.used("queue", table.integers("queueid")),
            "stream_id": self.references.used("stream", table.integers("streamid")),
            "event.category_id": self.references.string(category, len(table)),
            "event.stack_id": stack_ids,
            "event.parent_stack_id": stack_ids,
        }

    def _of_memory(self, table: CsvTable) -> dict[str, pa.Array]:
        operations, place = table.texts("operation"), f"{table.file}: Operation"
        return {
            **self._of_thread(table),
            "queue_id": self.references.used("queue", table.integers("queueid")),
            "agent_id": self._agents(table, "agentid"),
            "type": each(operations, _operation_type, TEXT, "unknown_operation", place, self.problems),
            "level": _each_as(operations, _memory_level, TEXT),
            "size": table.integers("allocationsize"),
        }

    def _agents(self, table: CsvTable, column: str) -> pa.Array:
        return self.agents.ids(table.texts(column), table.file)


def joined_scratch(
    allocations: pa.Table, scratch: pa.Table, place: str, problems: ProblemCounter
) -> tuple[pa.Table, pa.Table]:
    """Both tables, without the allocations that are rows of `scratch` again, as `rocpd convert` writes them.

    What only one of the two says of such a row is kept.
    """
    if not {"start", "end", "type"} <= set(allocations.column_names) & set(scratch.column_names):
        return allocations, scratch
    types = pa.concat_arrays(
        [allocations.column("type").combine_chunks(), scratch.column("type").combine_chunks()]
    )
    codes = types.dictionary_encode().indices.cast(INTEGER)
    keys = [
        [*(table.column(name).combine_chunks() for name in ("start", "end")), own_codes]
        for table, own_codes in (
            (allocations, codes[: len(allocations)]),
            (scratch, codes[len(allocations) :]),
        )
    ]
    is_scratch = pc.equal(allocations.column("level").combine_chunks(), "SCRATCH")
    here = matches(keys[1], keys[0])
    is_again = pc.and_(is_scratch, matches(keys[0], keys[1]).is_valid())
    count = pc.sum(is_again).as_py()
    if not count:
        return allocations, scratch
    problems.add("duplicate_row", place, "joined with the row of the scratch memory trace", count)
    for name in ("size", "address", "event.stack_id", "agent_id"):
        if name in allocations.column_names and name not in scratch.column_names:
            scratch = scratch.append_column(name, allocations.column(name).combine_chunks().take(here))
    return allocations.filter(pc.invert(is_again)), scratch


def _each_as(encoded: pa.DictionaryArray, convert: Callable[..., object], wanted: pa.DataType) -> pa.Array:
    """Convert each distinct value of a column once."""
    values = [convert(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(values, wanted).take(encoded.indices)


def _message(name: str) -> str | None:
    return None if _ROCTX_FUNCTION.fullmatch(name) else json.dumps({"message": name}, ensure_ascii=False)


def _takes_text(name: str) -> bool:
    return _TAKES_TEXT.fullmatch(name) is not None


def _operation_type(operation: str) -> str | None:
    found = _OPERATION.fullmatch(operation.upper())
    return found["type"] if found else None


def _memory_level(operation: str) -> str | None:
    found = _OPERATION.fullmatch(operation.upper())
    if found is None:
        return None
    return "SCRATCH" if found["scratch"] else "VIRTUAL" if found["virtual"] else "REAL"
