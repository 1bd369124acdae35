"""The heap traces of a module's buffer assignment, one after the other: events, and lives of buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_heap import EVENT_KINDS, SHARE, HeapReplay, replay_heap

Row = tuple[Any, ...]


@dataclass(frozen=True)
class BufferIndex:
    """The logical buffers of a module: size and defining instruction of each, by its id.

    `places` has (allocation, offset) of each buffer that is in an allocation, and `spaces` has the memory
    space of each allocation.
    """

    sizes: Mapping[int, int]
    definitions: Mapping[int, int]
    places: Mapping[int, tuple[int, int]]
    spaces: Mapping[int, int]


@dataclass(frozen=True)
class _Trace:
    proto: Any
    replay: HeapReplay
    first_event: int


class HeapTraces:
    """HeapSimulatorTrace messages with the places and sizes that the buffers in them have.

    Events are numbered through all traces in stored order. Where a trace fills several allocations XLA stores
    it once for each; it is read once. `complain` is called with a problem's name and its detail for each
    contradiction and each missing reference.
    """

    def __init__(
        self, protos: Sequence[Any], index: BufferIndex, complain: Callable[[str, str], None]
    ) -> None:
        self._index, self._complain = index, complain
        self._traces: list[_Trace] = []
        first_event = 0
        for proto in _distinct(protos):
            self._traces.append(_Trace(proto, self._replay(proto), first_event))
            first_event += len(proto.events)
        self._check_order()

    def lives(self) -> dict[int, tuple[int, int, bool]]:
        """The life of each buffer that a trace has: (start, end, is it live at the peak of its trace).

        It is live after the events [start, end). Of several traces with one buffer the first counts.
        """
        lives: dict[int, tuple[int, int, bool]] = {}
        for trace in self._traces:
            peak, first = trace.replay.peak_event, trace.first_event
            for buffer_id, (start, end) in trace.replay.lifetimes.items():
                if buffer_id in lives:
                    self._complain("inconsistent_heap_trace", f"buffer {buffer_id} is in several heap traces")
                else:
                    lives[buffer_id] = first + start, first + end, start <= peak < end
        return lives

    def rows(self, graph: ModuleGraph) -> Iterator[Row]:
        """Yield the rows of hlo_heap_events, columns in the order that hlo_buffers.buffer_rows has them."""
        instruction_ids = {
            (computation.name, instruction.name): instruction.id
            for computation in (graph.computations.values() if self._traces else ())
            for instruction in computation.instructions
        }
        for trace in self._traces:
            replay = trace.replay
            # The index stored in a trace is from before XLA merged allocations: a last resort.
            unplaced = trace.proto.buffer_allocation_index, None
            for position, (event, live_bytes) in enumerate(
                zip(trace.proto.events, replay.live_bytes, strict=True)
            ):
                buffer_id, kind = event.buffer_id, event.kind
                instruction_id = self._index.definitions.get(buffer_id)
                if event.instruction_name:
                    name = event.computation_name, event.instruction_name
                    if name in instruction_ids:
                        instruction_id = instruction_ids[name]
                    else:
                        text = event.instruction_name.decode(errors="replace")
                        self._complain("dangling_heap_event", f"a heap event is of {text}, which is missing")
                yield (
                    self._index.places.get(buffer_id, unplaced)[0],
                    trace.first_event + position,
                    EVENT_KINDS.get(kind, f"kind {kind}"),
                    buffer_id,
                    instruction_id,
                    event.share_with_canonical_id if kind == SHARE else None,
                    live_bytes,
                    position == replay.peak_event,
                )

    def _replay(self, proto: Any) -> HeapReplay:
        def inconsistent(detail: str) -> None:
            self._complain("inconsistent_heap_trace", detail)

        replay = replay_heap(proto.events, self._index.sizes, inconsistent)
        for buffer_id in replay.lifetimes.keys() - self._index.places.keys():
            if buffer_id in self._index.sizes:
                inconsistent(f"a heap trace has buffer {buffer_id}, which is in no allocation")
            else:
                self._complain("dangling_buffer", f"a heap trace has buffer {buffer_id}, which is missing")
        return replay

    def _check_order(self) -> None:
        """Count traces of one memory space: nothing tells how the events of one lie between the other's."""
        traces: dict[int | None, int] = defaultdict(int)
        for trace in self._traces:
            placed = (buffer_id for buffer_id in trace.replay.lifetimes if buffer_id in self._index.places)
            first = next(placed, None)
            traces[None if first is None else self._index.spaces[self._index.places[first][0]]] += 1
        for space, count in traces.items():
            if count > 1:
                self._complain(
                    "unaligned_heap_traces",
                    f"memory space {space} has {count} heap traces without a common order of events",
                )


def _distinct(protos: Sequence[Any]) -> list[Any]:
    """The traces that have events, the first of those with equal ones."""
    filled = [proto for proto in protos if proto.events]
    if len(filled) < 2:
        return filled
    by_events = {
        tuple(event.SerializeToString() for event in proto.events): proto for proto in reversed(filled)
    }
    return list(reversed(by_events.values()))
