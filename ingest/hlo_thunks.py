"""The order in which XLA's GPU runtime runs a module: its thunks, numbered as XLA numbers them.

XLA turns the scheduled instructions into thunks, one after the other, and numbers them as it makes them. The
number of a command buffer, `command_buffer_71`, is that of its first thunk, and the nodes of its graph are
its thunks in their order. The rules here are those of the thunk sequences that XLA dumps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tracewh.ingest.hlo_graph import DanglingReference, ModuleGraph
from tracewh.ingest.hlo_shape import Shape

# They say something of values, and run nothing.
_NO_THUNK = frozenset(
    (
        b"parameter",
        b"constant",
        b"get-tuple-element",
        b"tuple",
        b"bitcast",
        b"after-all",
        b"add-dependency",
        b"opt-barrier",
        b"domain",
    )
)
_COLLECTIVES = frozenset(
    (
        b"all-gather",
        b"all-reduce",
        b"reduce-scatter",
        b"all-to-all",
        b"ragged-all-to-all",
        b"collective-permute",
        b"collective-broadcast",
    )
)
_SLICES = (b"dynamic-slice", b"dynamic-update-slice")
# The text of an MLIR dictionary: {grid_x = 8 : i32, ir = "...", name = "kern"}.
_TRITON_NAME = re.compile(rb'[ {]name = "([^"\\]*)"')
_MINOR_TO_MAJOR = re.compile(r"\{([0-9,]+)")
# Deeper nesting of computations is nothing that XLA runs.
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Thunk:
    """One thunk of a module.

    index: XLA's number of it, from 1 on.
    kind: kernel, copy, library (a custom call), collective, loop, branch, async_start, async_done;
        dynamic_slice, a copy at an offset that the device computes, a graph of its own, and nested_copy
        inside of it, which gets its number first; other.
    kernel_name: what the kernel is called if it is not the same code as that of an earlier fusion; None where
        the instruction does not tell.
    node_position: how many nodes a graph of the computation's thunks would have before it.
    """

    index: int
    kind: str
    computation_id: int
    instruction: Any
    kernel_name: str | None
    node_position: int = 0

    @property
    def makes_node(self) -> bool:
        """Whether a graph has a node for it; starting or awaiting another stream is an edge."""
        return self.kind not in ("async_start", "async_done", "nested_copy")


class ThunkSequence:
    """The thunks of a scheduled HloModuleProto, in the order of their numbers."""

    def __init__(self, graph: ModuleGraph, module: Any) -> None:
        self._graph = graph
        self._module = module
        self._sequences = {entry.key: entry.value.instruction_ids for entry in module.schedule.sequences}
        self._count = 0
        self._steps = 0
        # Of a computation that is called twice: a thunk each time, and no end where it calls itself.
        self._limit = 4 * len(graph.instructions) + 4

    def __iter__(self) -> Iterator[Thunk]:
        """Yield the thunks; none without a schedule. What refers to nothing runs nothing."""
        self._count = self._steps = 0
        if not self._sequences:
            return
        nodes: defaultdict[int, int] = defaultdict(int)
        for thunk in self._of_computation(self._module.entry_computation_id, 0, False):
            yield replace(thunk, node_position=nodes[thunk.computation_id])
            nodes[thunk.computation_id] += thunk.makes_node

    def _of_computation(self, computation_id: int, depth: int, is_async: bool) -> Iterator[Thunk]:
        if depth > _MAX_DEPTH or computation_id not in self._graph.computations:
            return
        stored = self._graph.computations[computation_id].instructions
        known = self._graph.instructions
        order = self._sequences.get(computation_id) or [instruction.id for instruction in stored]
        for instruction_id in order:
            # Calls of what runs nothing would double at each level without a thunk to count.
            self._steps += 1
            if instruction_id in known and self._count < self._limit and self._steps < 4 * self._limit:
                yield from self._of_instruction(known[instruction_id], computation_id, depth, is_async)

    def _of_instruction(
        self, instruction: Any, computation_id: int, depth: int, is_async: bool
    ) -> Iterator[Thunk]:
        opcode = instruction.opcode
        if opcode in _NO_THUNK:
            return
        called = list(instruction.called_computation_ids)
        if opcode == b"fusion":
            yield from self._of_fusion(instruction, computation_id, is_async)
        elif opcode == b"while":
            yield self._thunk("loop", instruction, computation_id)
            # The body is called first, and runs after the condition.
            for callee in reversed(called):
                yield from self._of_computation(callee, depth + 1, False)
        elif opcode == b"conditional":
            # Its own number is the last.
            for callee in called:
                yield from self._of_computation(callee, depth + 1, False)
            if self._count < self._limit:
                yield self._thunk("branch", instruction, computation_id)
        elif opcode == b"call":
            for callee in called:
                yield from self._of_computation(callee, depth + 1, is_async)
        elif opcode == b"async-start":
            yield self._thunk("async_start", instruction, computation_id)
            for callee in called:
                yield from self._inside(callee, computation_id, depth)
        elif opcode.endswith(b"-start") and opcode.removesuffix(b"-start") in _COLLECTIVES:
            yield self._thunk("async_start", instruction, computation_id)
            yield self._thunk("collective", instruction, computation_id)
        elif opcode.endswith(b"-done"):
            yield self._thunk("async_done", instruction, computation_id)
        elif opcode in _COLLECTIVES:
            yield self._thunk("collective", instruction, computation_id)
        elif opcode in (b"copy", b"copy-start"):
            yield self._thunk("copy", instruction, computation_id)
        elif opcode == b"custom-call":
            yield from self._of_custom_call(instruction, computation_id)
        else:
            yield self._thunk("other", instruction, computation_id, _kernel_name(instruction))

    def _of_custom_call(self, instruction: Any, computation_id: int) -> Iterator[Thunk]:
        """A kernel that XLA itself launches, or a call of a library, which is a graph in a graph."""
        target = instruction.custom_call_target
        name = _TRITON_NAME.search(instruction.backend_config)
        if target == b"__gpu$xla.gpu.triton" and name:
            yield self._thunk("kernel", instruction, computation_id, name[1].decode(errors="replace"))
        elif target == b"__gpu$TopK":
            yield self._thunk("kernel", instruction, computation_id, "topk")
        else:
            yield self._thunk("library", instruction, computation_id)

    def _inside(self, callee: int, computation_id: int, depth: int) -> Iterator[Thunk]:
        """The thunks that run beside the stream of `computation_id`, whose sequence they belong to."""
        for thunk in self._of_computation(callee, depth + 1, True):
            own = computation_id if thunk.computation_id == callee else thunk.computation_id
            yield replace(thunk, computation_id=own)

    def _of_fusion(self, fusion: Any, computation_id: int, is_async: bool) -> Iterator[Thunk]:
        body = self._body(fusion)
        if any(instruction.opcode in _COLLECTIVES for instruction in body):
            yield self._thunk("collective", fusion, computation_id)
        elif is_async and self._is_copy_at_offset(body):
            yield self._thunk("nested_copy", fusion, computation_id)
            yield self._thunk("dynamic_slice", fusion, computation_id)
        elif self._is_contiguous_slice(body):
            yield self._thunk("copy", fusion, computation_id)
        else:
            sort = next((instruction for instruction in body if instruction.opcode == b"sort"), None)
            yield self._thunk(
                "kernel", fusion, computation_id, _kernel_name(fusion if sort is None else sort)
            )

    def _body(self, fusion: Any) -> list[Any]:
        try:
            return [
                instruction
                for computation in self._graph.called(fusion)
                for instruction in computation.instructions
            ]
        except DanglingReference:
            return []

    def _is_copy_at_offset(self, body: list[Any]) -> bool:
        """Whether the body moves one slice, and computes nothing but where."""
        moving = [
            instruction
            for instruction in body
            if instruction.opcode not in _NO_THUNK and self._graph.shape(instruction).dimensions
        ]
        return len(moving) == 1 and moving[0].opcode in _SLICES

    def _is_contiguous_slice(self, body: list[Any]) -> bool:
        if [instruction.opcode for instruction in body] != [b"parameter", b"slice"]:
            return False
        whole, part = (self._graph.shape(instruction) for instruction in body)
        return _lies_together(whole, part)

    def _thunk(self, kind: str, instruction: Any, computation_id: int, name: str | None = None) -> Thunk:
        self._count += 1
        return Thunk(self._count, kind, computation_id, instruction, name)


def _kernel_name(instruction: Any) -> str:
    name: str = instruction.name.decode(errors="replace")
    return name.replace(".", "_").replace("-", "_")


def _lies_together(whole: Shape, part: Shape) -> bool:
    """Whether a slice of an array is one piece of its memory: whole inside the dimension that it cuts."""
    layout = _MINOR_TO_MAJOR.search(whole.text)
    order = [int(number) for number in layout[1].split(",") if number] if layout else []
    if sorted(order) != list(range(len(whole.dimensions))) or len(part.dimensions) != len(order):
        return False
    is_cut = False
    for dimension in order:
        if is_cut and part.dimensions[dimension] != 1:
            return False
        is_cut = is_cut or part.dimensions[dimension] != whole.dimensions[dimension]
    return True
