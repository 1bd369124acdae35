"""Derives how often a while runs from a counter: where it starts, what is added to it, what ends the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.hlo_graph import DanglingReference, ModuleGraph

_RANGES = {
    "s8": (-(2**7), 2**7 - 1),
    "s16": (-(2**15), 2**15 - 1),
    "s32": (-(2**31), 2**31 - 1),
    "s64": (-(2**63), 2**63 - 1),
    "u8": (0, 2**8 - 1),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
}
# Of LiteralProto. It packs narrower integers in bytes, but a counter is seldom one.
_LITERAL_FIELDS = {"s32": "s32s", "s64": "s64s", "u32": "u32s", "u64": "u64s"}
_SAME_VALUE = frozenset({b"copy", b"bitcast", b"reshape", b"opt-barrier"})
_INLINED = frozenset({b"fusion", b"call"})
# Instructions looked at for one loop, and sums within sums: real counters need a few.
_MAX_STEPS = 200
_MAX_DEPTH = 20

# Where in a value: () is all of it, (2, 0) the first part of its third part.
Path = tuple[int, ...]
# The instruction that calls the computation being looked into, and the one that calls its computation, ...
Frame = tuple[Any, "Frame"] | None


class _NotDerivable(Exception):
    """Not a loop of the kind that this module understands."""


@dataclass(frozen=True, slots=True)
class _Value:
    """`offset`, plus the part at `path` of what the loop carries where that is not None."""

    path: Path | None
    offset: int


@dataclass(frozen=True, slots=True)
class _Series:
    """An integer that grows by `step` in each turn of the loop."""

    element_type: str
    start: int
    step: int

    def stays_in_range(self, turns: int) -> bool:
        low, high = _RANGES[self.element_type]
        return low <= self.start <= high and low <= self.start + self.step * turns <= high


def derived_trip_count(graph: ModuleGraph, while_instruction: Any) -> int | None:
    """How often the body runs, None where it takes more than counting to know.

    Understood are loops that compare a counter, to which the body adds a constant, with a constant or another
    counter, all of which start at constants and stay in the range of their type.
    """
    try:
        return _Loop(graph, while_instruction).trip_count()
    except (_NotDerivable, DanglingReference):
        return None


class _Loop:
    """A while instruction, and the number of instructions looked at so far."""

    def __init__(self, graph: ModuleGraph, instruction: Any) -> None:
        called = graph.called(instruction)
        self._graph = graph
        self._body, self._condition = _at(called, 0), _at(called, 1)
        self._carried = self._operand(instruction, 0)
        self._steps = 0

    def trip_count(self) -> int | None:
        comparison, _, frame = self._follow(self._graph.root(self._condition), (), None)
        if comparison.opcode != b"compare":
            raise _NotDerivable
        sides: list[_Series] = []
        counters: list[_Series] = []
        for operand in (self._operand(comparison, 0), self._operand(comparison, 1)):
            value = self._value(operand, (), frame)
            element_type = self._integer_type(operand)
            if value.path is None:
                sides.append(_Series(element_type, value.offset, 0))
            else:
                counter = self._counter(value.path)
                counters.append(counter)
                sides.append(_Series(element_type, counter.start + value.offset, counter.step))
        left, right = sides
        turns = _turns(comparison.comparison_direction, left.start - right.start, left.step - right.step)
        if turns is None or not all(series.stays_in_range(turns) for series in sides + counters):
            return None
        return turns if turns <= _RANGES["s64"][1] else None

    def _counter(self, path: Path) -> _Series:
        """The part at `path` of what the loop carries."""
        start = self._value(self._carried, path, None)
        after = self._value(self._graph.root(self._body), path, None)
        if start.path is not None or after.path != path:
            raise _NotDerivable
        shape = self._graph.shape(self._carried)
        for index in path:
            shape = _at(shape.members, index)
        if shape.element_type not in _RANGES:
            raise _NotDerivable
        return _Series(shape.element_type, start.offset, after.offset)

    def _value(self, instruction: Any, path: Path, frame: Frame, depth: int = 0) -> _Value:
        instruction, path, frame = self._follow(instruction, path, frame)
        opcode = instruction.opcode
        if opcode == b"parameter":
            return _Value(path, 0)
        if depth > _MAX_DEPTH:
            raise _NotDerivable
        element_type = self._integer_type(instruction)
        if opcode == b"constant":
            literal = instruction.literal
            return _Value(None, _at(getattr(literal, _LITERAL_FIELDS.get(element_type, ""), ()), 0))
        first = self._value(self._operand(instruction, 0), (), frame, depth + 1)
        if opcode == b"convert":
            (low, high), (old_low, old_high) = (
                _RANGES[name] for name in (element_type, self._integer_type(self._operand(instruction, 0)))
            )
            # A sum may have left the range of the narrower type.
            if low > old_low or high < old_high or (first.path is not None and first.offset):
                raise _NotDerivable
            return first
        if opcode not in (b"add", b"subtract"):
            raise _NotDerivable
        second = self._value(self._operand(instruction, 1), (), frame, depth + 1)
        if opcode == b"subtract" and second.path is None:
            second = _Value(None, -second.offset)
        elif opcode == b"subtract" or (first.path is not None and second.path is not None):
            raise _NotDerivable
        total = _Value(second.path if first.path is None else first.path, first.offset + second.offset)
        if total.path is None and not _Series(element_type, total.offset, 0).stays_in_range(0):
            raise _NotDerivable
        return total

    def _follow(self, instruction: Any, path: Path, frame: Frame) -> tuple[Any, Path, Frame]:
        """Find the instruction that makes the part at `path` of a value that others only hand on."""
        while True:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise _NotDerivable
            opcode = instruction.opcode
            if opcode == b"parameter" and frame is not None:
                caller, frame = frame
                instruction = self._operand(caller, instruction.parameter_number)
            elif opcode == b"get-tuple-element":
                path = (instruction.tuple_index, *path)
                instruction = self._operand(instruction, 0)
            elif opcode == b"tuple" and path:
                instruction = self._operand(instruction, path[0])
                path = path[1:]
            elif opcode in _INLINED:
                instruction, frame = self._entered(instruction, frame)
            elif opcode == b"async-done":
                start = self._operand(instruction, 0)
                if start.opcode != b"async-start":
                    raise _NotDerivable
                instruction, frame = self._entered(start, frame)
            elif opcode == b"copy-done":
                start = self._operand(instruction, 0)
                if start.opcode != b"copy-start":
                    raise _NotDerivable
                instruction = self._operand(start, 0)
            elif opcode in _SAME_VALUE:
                source = self._operand(instruction, 0)
                if self._graph.shape(source).element_type != self._graph.shape(instruction).element_type:
                    raise _NotDerivable
                instruction = source
            else:
                return instruction, path, frame

    def _operand(self, instruction: Any, index: int) -> Any:
        # Not all operands at once: those of a tuple are thousands, and loops share it.
        found = self._graph.instructions.get(_at(instruction.operand_ids, index))
        if found is None:
            raise _NotDerivable
        return found

    def _entered(self, caller: Any, frame: Frame) -> tuple[Any, Frame]:
        return self._graph.root(_at(self._graph.called(caller), 0)), (caller, frame)

    def _integer_type(self, instruction: Any) -> str:
        shape = self._graph.shape(instruction)
        if shape.element_type not in _RANGES or shape.element_count != 1:
            raise _NotDerivable
        return shape.element_type


def _turns(direction: bytes, difference: int, step: int) -> int | None:
    """How often `difference`, which grows by `step`, passes a comparison with 0; None for ever."""
    if direction in (b"GT", b"GE"):
        difference, step = -difference, -step
    if direction in (b"LE", b"GE"):
        difference -= 1
    if direction in (b"LT", b"LE", b"GT", b"GE"):
        if difference >= 0:
            return 0
        return -(difference // step) if step > 0 else None
    if direction == b"EQ":
        if difference != 0:
            return 0
        return 1 if step else None
    if direction != b"NE":
        return None
    if difference == 0:
        return 0
    turns = -(difference // step) if step and difference % step == 0 else 0
    return turns if turns > 0 else None


def _at(items: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise _NotDerivable
    return items[index]
