"""Element counts and sizes of HLO values, as the cost rules of XLA take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_shape import Shape

LARGEST = 2**63 - 1
# XLA's default cost analysis of jaxlib 0.12; that of 0.10 counts 8.
_POINTER_BYTES = 4


class Values:
    """The values of one module: their shapes, element counts and sizes. Its methods raise UnknownCost."""

    def __init__(self, graph: ModuleGraph) -> None:
        self.graph = graph

    def operand(self, instruction: Any, index: int) -> Any:
        """The instruction that gives the operand at `index`."""
        operand_ids = instruction.operand_ids
        if index >= len(operand_ids):
            raise UnknownCost(f"it has no operand {index}")
        operand = self.graph.instructions.get(operand_ids[index])
        if operand is None:
            raise UnknownCost(f"its operand {index} is not in the module")
        return operand

    def shape(self, instruction: Any, index: int) -> Shape:
        """The shape of the operand at `index`."""
        return self.graph.shape(self.operand(instruction, index))

    def elements(self, instruction: Any) -> int:
        """Elements in the result; of all arrays where it is a tuple."""
        return _known_elements(self.graph.shape(instruction))

    def first_elements(self, instruction: Any) -> int:
        """Elements in the result, or in its first member where it is a tuple."""
        shape = self.graph.shape(instruction)
        return _known_elements(shape.members[0] if is_tuple(shape) and shape.members else shape)

    def passed_bytes(self, instruction: Any) -> int:
        """Bytes of the result where another instruction uses it: a tuple passes as its table of pointers."""
        shape = self.graph.shape(instruction)
        return _POINTER_BYTES * len(shape.members) if is_tuple(shape) else stored_bytes(shape)

    def written_bytes(self, instruction: Any) -> int:
        """Bytes of the result where it is made: all the arrays of a tuple, without its table."""
        return stored_bytes(self.graph.shape(instruction))


def is_tuple(shape: Shape) -> bool:
    """Whether the shape is a tuple rather than an array, a token or a buffer."""
    return shape.text.startswith("(")


def leaves(shape: Shape) -> Iterator[Shape]:
    """The shapes at the ends of a tuple's branches, or the shape itself."""
    if is_tuple(shape):
        for member in shape.members:
            yield from leaves(member)
    else:
        yield shape


def stored_bytes(shape: Shape) -> int:
    """Bytes of the shape's arrays. Raises UnknownCost."""
    if shape.stored_bytes is None:
        raise UnknownCost(f"{shape.text[:80]} has no fixed size")
    return shape.stored_bytes


def dimension(shape: Shape, index: int) -> int:
    """The size of one dimension. Raises UnknownCost."""
    if not 0 <= index < len(shape.dimensions):
        raise UnknownCost(f"{shape.text[:80]} has no dimension {index}")
    size = shape.dimensions[index]
    if size < 0:
        raise UnknownCost(f"{shape.text[:80]} has no fixed size")
    return size


def product(factors: Iterable[int]) -> int:
    """The product of whole numbers that are not negative. Raises UnknownCost."""
    total = 1
    for factor in factors:
        total *= factor
        if not 0 <= total <= LARGEST:
            raise UnknownCost("its numbers do not fit into 64 bits")
    return total


def _known_elements(shape: Shape) -> int:
    if shape.element_count is None:
        raise UnknownCost(f"{shape.text[:80]} has no fixed size")
    return shape.element_count
