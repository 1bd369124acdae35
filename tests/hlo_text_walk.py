"""Optimized HLO text read by regular expressions, and a walk through it as the program runs.

Independent of tracewh and of jaxlib: what a program executes, what its matrix products cost, and what its
collectives move, from the text that the compiler prints.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

ITEM_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8}
COLLECTIVE = re.compile(r"(all-reduce|all-gather|reduce-scatter|all-to-all)(-start)?")
_ARRAY = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
_HEADER = re.compile(r"(ENTRY )?%(\S+) \(.*\{$")
_INSTRUCTION = re.compile(r"  (?:ROOT )?%(\S+) = (.*)$")


@dataclass(frozen=True)
class Instruction:
    """One line; `arguments` are operands or a constant, `attributes` follow, `computation` is where it is."""

    name: str
    opcode: str
    shape: str
    operands: list[str]
    attributes: str
    computation: str
    arguments: str

    @property
    def op_name(self) -> str:
        found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', self.attributes)
        return found[1] if found else ""

    @property
    def channel(self) -> int | None:
        found = re.search(r"channel_id=(\d+)", self.attributes)
        return int(found[1]) if found else None

    def attribute(self, pattern: str) -> str:
        """The group of `pattern` in the attributes."""
        found = re.search(pattern, self.attributes)
        assert found is not None, (self.name, pattern)
        return found[1]


@dataclass(frozen=True)
class Product:
    """A matrix product: a dot, or a call of cuBLAS. `executions` are those of one run of the program."""

    instruction: Instruction
    result: tuple[int, ...]
    contracted: int
    executions: int

    @property
    def flops(self) -> int:
        """Of all executions: a multiplication and an addition for each term of each element."""
        return self.executions * 2 * math.prod(self.result) * self.contracted

    @property
    def is_library_call(self) -> bool:
        return self.instruction.opcode == "custom-call"


@dataclass(frozen=True)
class Collective:
    """A collective; `payload` is that of one device: the result of an all-gather, else the operands."""

    kind: str
    payload: int
    axes: dict[str, int]
    executions: int


class Program:
    """The computations of a module, in the order of the text."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.entry = ""
        name = ""
        for line in text.splitlines():
            if header := _HEADER.match(line):
                name = header[2]
                self.computations[name] = {}
                self.entry = name if header[1] else self.entry
            elif found := _INSTRUCTION.match(line):
                self.computations[name][found[1]] = _instruction(found[1], found[2], name)
        assert self.entry

    @property
    def instructions(self) -> Iterator[Instruction]:
        for computation in self.computations.values():
            yield from computation.values()

    @cached_property
    def executions(self) -> Counter[str]:
        """How often one run enters each computation; a condition is asked once more than its body runs."""
        counts: Counter[str] = Counter()

        def enter(computation: str, times: int) -> None:
            counts[computation] += times
            for instruction in self.computations[computation].values():
                if instruction.opcode == "while":
                    trips = int(instruction.attribute(r'"known_trip_count":\{"n":"(\d+)"'))
                    enter(instruction.attribute(r"body=%([\w.\-]+)"), times * trips)
                    enter(instruction.attribute(r"condition=%([\w.\-]+)"), times * (trips + 1))
                elif instruction.opcode in ("fusion", "fusion-start", "async-start"):
                    enter(instruction.attribute(r"calls=%([\w.\-]+)"), times)
                else:
                    assert "calls=" not in instruction.attributes, instruction.name
                    assert instruction.opcode not in ("call", "conditional"), instruction.name

        enter(self.entry, 1)
        return counts

    def products(self) -> Iterator[Product]:
        for instruction in self.instructions:
            if instruction.opcode == "dot":
                contracted = instruction.attribute(r"lhs_contracting_dims=\{([\d,]*)\}")
            elif instruction.opcode == "custom-call" and "cublas" in instruction.attributes:
                contracted = instruction.attribute(r'"lhs_contracting_dimensions":\[([^]]*)\]')
            else:
                continue
            left = self.computations[instruction.computation][instruction.operands[0]]
            size = math.prod(sizes(left.shape)[int(index)] for index in re.findall(r"\d+", contracted))
            times = self.executions[instruction.computation]
            yield Product(instruction, sizes(instruction.shape), size, times)

    def collectives(self) -> dict[int, Collective]:
        """The collectives by their channel; a start that has the name of its kind stands for it."""
        found = {}
        for instruction in self.instructions:
            kind = COLLECTIVE.fullmatch(instruction.opcode)
            if kind is None:
                continue
            here = self.computations[instruction.computation]
            payload = sum(byte_size(here[operand].shape) for operand in instruction.operands)
            if kind[1] == "all-gather":
                # The shape of a start holds the operands, too.
                payload = byte_size(instruction.shape) - (payload if kind[2] else 0)
            groups = instruction.attribute(r"replica_groups=mesh(\[[^]]*\] \{[^}]*\})")
            mesh_text, _, axes_text = groups.partition("] {")
            mesh = dict(re.findall(r"'(\w+)'=(\d+)", mesh_text))
            assert instruction.channel is not None
            found[instruction.channel] = Collective(
                kind[1],
                payload,
                {axis: int(mesh[axis]) for axis in re.findall(r"'(\w+)'", axes_text)},
                self.executions[instruction.computation],
            )
        return found


def sizes(shape: str) -> tuple[int, ...]:
    """The dimensions of an array, or of the first of a tuple."""
    found = _ARRAY.search(shape)
    assert found is not None
    return tuple(int(size) for size in found[2].split(",") if size)


def byte_size(shape: str) -> int:
    """The bytes of all arrays of a shape."""
    return sum(
        ITEM_BYTES[element] * math.prod(int(size) for size in dimensions.split(",") if size)
        for element, dimensions in _ARRAY.findall(shape)
    )


def _instruction(name: str, rest: str, computation: str) -> Instruction:
    rest = re.sub(r"/\*index=\d+\*/", "", rest)
    end = _closing(rest) if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    opcode, _, _ = rest.partition("(")
    rest = rest[len(opcode) :]
    end = _closing(rest)
    operands = re.findall(r"%([\w.\-]+)", rest[:end])
    return Instruction(name, opcode, shape, operands, rest[end:], computation, rest[1 : end - 1])


def _closing(text: str) -> int:
    """Position after the parenthesis that closes the first character of `text`."""
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return position + 1
    raise AssertionError(text[:100])
