"""Rows of a module's static memory, from XLA's BufferAssignmentProto: allocations, buffers, heap events.

An allocation is a piece of memory. Logical buffers, the values of the program, lie in allocations at an
offset. A heap trace has the order in which the temporary ones come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_heap import MAX_BYTES
from tracewh.ingest.hlo_heap_traces import BufferIndex, HeapTraces

Row = tuple[Any, ...]

NO_ROWS: dict[str, list[Row]] = {"hlo_buffers": [], "hlo_logical_buffers": [], "hlo_heap_events": []}
# Allocations of these kinds are in use from the start of the program to its end.
_LASTING_KINDS = ("parameter", "constant", "output")


def buffer_rows(
    graph: ModuleGraph, module: Any, buffer_assignment: Any, problems: ProblemCounter, place: str
) -> dict[str, list[Row]]:
    """Rows of the BufferAssignmentProto of `module`, an HloModuleProto; none where it is None.

    What contradicts itself or refers to something missing is counted in `problems` under `place`, and its row
    kept. Negative sizes become 0. Of several allocations or buffers with one id the first counts. Columns:

    - hlo_buffers, a row per allocation: allocation_index, allocation_kind, bytes, memory_space,
      parameter_number, parameter_shape_index (both None unless a parameter), is_live_out, is_aliased (an
      output reuses the memory of this parameter), is_tuple.
    - hlo_logical_buffers, a row per buffer: buffer_id, instruction_id (defines it), shape_index, bytes,
      memory_space, allocation_index, offset_bytes (both None where it has no place), live_from, live_until,
      is_live_at_peak. The range is half-open and in event_index; it is None where no heap trace has the
      buffer. The peak is that of its trace; buffers of parameters, outputs and constants are live at any.
      Buffers that are live at once use the same memory if they have the same place, else their own.
    - hlo_heap_events, a row per event, those of a trace in program order: allocation_index, event_index,
      event_kind, buffer_id, instruction_id (defines the buffer, also where this is freed),
      canonical_buffer_id (whose memory is shared), live_bytes (of all buffers of the trace, after the event),
      is_peak (the first event of the trace where that is largest).
    """
    if buffer_assignment is None:
        return NO_ROWS
    return _BufferReader(graph, module, buffer_assignment, problems, place).rows()


class _BufferReader:
    def __init__(
        self, graph: ModuleGraph, module: Any, buffer_assignment: Any, problems: ProblemCounter, place: str
    ) -> None:
        self._graph, self._problems, self._place = graph, problems, place
        self._allocations = buffer_assignment.buffer_allocations
        self._buffers = buffer_assignment.logical_buffers
        self._traces = buffer_assignment.heap_simulator_traces
        self._aliases = {
            (entry.parameter_number, tuple(entry.parameter_shape_index))
            for entry in module.input_output_alias.entries
        }
        self._index = self._make_index()

    def rows(self) -> dict[str, list[Row]]:
        traces = HeapTraces(self._traces, self._index, self._problem)
        lives = traces.lives()
        kinds = {allocation.index: _allocation_kind(allocation) for allocation in reversed(self._allocations)}
        allocations = [self._allocation_row(allocation) for allocation in self._allocations]
        events = list(traces.rows(self._graph))
        if sum(row[2] for row in allocations) + max((row[6] for row in events), default=0) > MAX_BYTES:
            self._problem("memory_overflow", "more bytes than any memory has: its buffers are left out")
            return NO_ROWS
        return {
            "hlo_buffers": allocations,
            "hlo_logical_buffers": [self._buffer_row(buffer, lives, kinds) for buffer in self._buffers],
            "hlo_heap_events": events,
        }

    def _make_index(self) -> BufferIndex:
        buffers = self._first("buffer", [(buffer.id, buffer) for buffer in self._buffers])
        allocations = self._first("allocation", [(it.index, it) for it in self._allocations])
        sizes = {id_: self._bytes("buffer", id_, buffer.size) for id_, buffer in buffers.items()}
        return BufferIndex(
            sizes=sizes,
            definitions={id_: buffer.defined_at.instruction_id for id_, buffer in buffers.items()},
            places=dict(self._find_places(sizes)),
            spaces={index: allocation.color for index, allocation in allocations.items()},
        )

    def _first(self, what: str, items: list[tuple[int, Any]]) -> dict[int, Any]:
        """The first item of each id."""
        first = dict(reversed(items))
        if len(first) < len(items):
            repeated = len(items) - len(first)
            self._problem(f"duplicate_{what}_id", f"{what}s share an id with another of the module", repeated)
        return first

    def _find_places(self, sizes: Mapping[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield (buffer, (allocation, offset)) for each buffer that is in an allocation."""
        placed: set[int] = set()
        for allocation in self._allocations:
            where = f"allocation {allocation.index}"
            for part in allocation.assigned:
                buffer_id = part.logical_buffer_id
                if buffer_id not in sizes:
                    self._problem("dangling_buffer", f"{where} holds buffer {buffer_id}, which is missing")
                elif buffer_id in placed:
                    self._problem("buffer_placed_twice", f"{where} holds buffer {buffer_id}, placed before")
                else:
                    placed.add(buffer_id)
                    if part.offset < 0 or part.offset + part.size > allocation.size:
                        self._problem("buffer_outside_allocation", f"{where} is too small for {buffer_id}")
                    yield buffer_id, (allocation.index, part.offset)

    def _allocation_row(self, allocation: Any) -> Row:
        is_parameter = allocation.is_entry_computation_parameter
        parameter = allocation.parameter_number, tuple(allocation.parameter_shape_index)
        return (
            allocation.index,
            _allocation_kind(allocation),
            self._bytes("allocation", allocation.index, allocation.size),
            allocation.color,
            allocation.parameter_number if is_parameter else None,
            _index_text(allocation.parameter_shape_index) if is_parameter else None,
            allocation.maybe_live_out,
            is_parameter and parameter in self._aliases,
            allocation.is_tuple,
        )

    def _buffer_row(
        self, buffer: Any, lives: Mapping[int, tuple[int, int, bool]], kinds: Mapping[int, str]
    ) -> Row:
        location = buffer.defined_at
        if location.instruction_id not in self._graph.instructions:
            self._problem(
                "dangling_buffer_instruction",
                f"buffer {buffer.id} is of instruction {location.instruction_id}, which is missing",
            )
        allocation_index, offset = self._index.places.get(buffer.id, (None, None))
        is_lasting = allocation_index is not None and kinds[allocation_index] in _LASTING_KINDS
        return (
            buffer.id,
            location.instruction_id,
            _index_text(location.shape_index),
            max(buffer.size, 0),
            buffer.color,
            allocation_index,
            offset,
            *lives.get(buffer.id, (None, None, is_lasting)),
        )

    def _bytes(self, what: str, id_: int, size: int) -> int:
        if size < 0:
            self._problem("negative_buffer_size", f"the size of {what} {id_} is {size}")
        return max(size, 0)

    def _problem(self, problem: str, detail: str, occurrences: int = 1) -> None:
        self._problems.add(problem, self._place, detail, occurrences)


def _allocation_kind(allocation: Any) -> str:
    """The kind; an output that reuses a parameter's memory stays a parameter, live out."""
    if allocation.is_entry_computation_parameter:
        return "parameter"
    if allocation.is_constant:
        return "constant"
    if allocation.is_thread_local:
        return "thread_local"
    return "output" if allocation.maybe_live_out else "temporary"


def _index_text(shape_index: Iterable[int]) -> str:
    return "{" + ",".join(map(str, shape_index)) + "}"
