"""The units that compute an instruction's FLOPs, and in which type: a ceiling holds for one of each.

Matrix units compute products of matrices, convolutions and what library calls do; vector units the rest. The
type is that of the operands, the widest of a product's two, or that of the algorithm which the program asks
for. FLOPs of a fusion are those of what it fuses: they add up to its cost, or where they do not, as for a
gather that a fusion stands for, all of them are of one kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracewh.ingest.hlo_cost_bodies import callees_first
from tracewh.ingest.hlo_cost_shapes import leaves
from tracewh.ingest.hlo_cost_value import Cost, UnknownCost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_config import read_config
from tracewh.ingest.hlo_shape import Shape

_PRODUCTS = frozenset((b"dot", b"scaled-dot", b"ragged-dot", b"convolution"))
_WRAPPING = frozenset((b"fusion", b"call", b"async-start"))
# PrecisionConfig.Precision, and the types in which PrecisionConfig.Algorithm multiplies.
_PRECISIONS = ("default", "high", "highest")
_ALGORITHM_TYPES = {
    **dict.fromkeys((1, 2), "f8"),
    **dict.fromkeys((3, 4), "f16"),
    **dict.fromkeys((5, 6, 7, 8, 13), "bf16"),
    **dict.fromkeys((9, 10), "tf32"),
    11: "f32",
    12: "f64",
}
_BITS = re.compile(r"[a-z]+([0-9]+)")
_ALGORITHM_WORDS = {"ANY": "f8", "F16": "f16", "BF16": "bf16", "TF32": "tf32", "F32": "f32", "F64": "f64"}


class FlopKind(NamedTuple):
    """`element_type` is XLA's word, or tf32 or f8 where an algorithm says so; None where it is unknown.

    `precision` is default, high, highest, or algorithm where the program asks for one; None for vector units.
    """

    unit: str
    element_type: str | None
    precision: str | None


class FlopTypes:
    """The kinds of FLOPs of one module's instructions."""

    def __init__(self, graph: ModuleGraph, costs: Mapping[int, Cost]) -> None:
        """`costs` are those of all instructions, by id."""
        self._graph, self._costs = graph, costs
        self._bodies: dict[int, dict[FlopKind, int]] = {}

    def of(self, instruction: Any) -> dict[FlopKind, int]:
        """FLOPs of one execution by kind; none where they are unknown or 0."""
        if not self._costs[instruction.id].flops:
            return {}
        if instruction.opcode in _WRAPPING:
            first = list(instruction.called_computation_ids[:1])
            for body in callees_first(self._graph, first, _wrapped_ids, self._bodies):
                self._bodies[body.id] = _summed(self._count(inner) for inner in body.instructions)
        return self._count(instruction)

    def _count(self, instruction: Any) -> dict[FlopKind, int]:
        flops = self._costs[instruction.id].flops
        if instruction.opcode in _WRAPPING:
            parts = self._bodies.get(next(iter(instruction.called_computation_ids), -1), {})
            # In a fusion a call and an async-start do what they run, though they cost nothing themselves.
            if sum(parts.values()) == flops or instruction.opcode != b"fusion":
                return parts
        return {self._kind(instruction): flops} if flops else {}

    def _kind(self, instruction: Any) -> FlopKind:
        found = map(self._graph.instructions.get, instruction.operand_ids)
        operands = [self._graph.shape(operand) for operand in found if operand is not None]
        if instruction.opcode in _PRODUCTS:
            config = instruction.precision_config
            asked = _ALGORITHM_TYPES.get(config.algorithm)
            precision = max(config.operand_precision, default=0)
            return _product(operands, asked, _PRECISIONS[min(precision, 2)])
        if instruction.opcode == b"custom-call":
            return _product(operands, *_library_precision(instruction.backend_config))
        results = leaves(self._graph.shape(instruction))
        return FlopKind("vector", _widest(operands or list(results)), None)


def _product(operands: list[Shape], asked: str | None, precision: str) -> FlopKind:
    if asked is not None:
        return FlopKind("matrix", asked, "algorithm")
    return FlopKind("matrix", _widest(operands[:2]), precision)


def _library_precision(data: bytes) -> tuple[str | None, str]:
    """The type of the algorithm that a library call asks for, and the precision of its operands."""
    try:
        config = read_config(data)
    except UnknownCost:
        return None, "default"
    while "precision_config" not in config:
        inner = [value for value in config.values() if isinstance(value, dict)]
        if len(inner) != 1:
            return None, "default"
        config = inner[0]
    found = config["precision_config"] if isinstance(config["precision_config"], dict) else {}
    words = str(found.get("algorithm", "")).split("_")
    asked = _ALGORITHM_WORDS.get(words[2]) if words[:2] == ["ALG", "DOT"] and len(words) > 2 else None
    given = found.get("operand_precision")
    words = [str(word).lower() for word in given] if isinstance(given, list) else []
    named = [word for word in words if word in _PRECISIONS]
    return asked, max(named, key=_PRECISIONS.index, default="default")


def _widest(shapes: list[Shape]) -> str | None:
    """The widest element type of the arrays; of a float and an integer, the float."""
    types = [leaf.element_type for shape in shapes for leaf in leaves(shape) if leaf.element_type]
    return max(types, key=_width, default=None)


def _width(element_type: str) -> tuple[bool, int]:
    bits = _BITS.match(element_type)
    return element_type.startswith(("f", "bf", "c")), int(bits[1]) if bits else 0


def _summed(parts: Iterable[Mapping[FlopKind, int]]) -> dict[FlopKind, int]:
    total: dict[FlopKind, int] = defaultdict(int)
    for part in parts:
        for kind, flops in part.items():
            total[kind] += flops
    return dict(total)


def _wrapped_ids(computation: Any) -> list[int]:
    return [
        called_id
        for instruction in computation.instructions
        if instruction.opcode in _WRAPPING
        for called_id in instruction.called_computation_ids[:1]
    ]
