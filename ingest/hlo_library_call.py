"""A custom call into a library as the cost rules see it: array shapes and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from tracewh.ingest.hlo_cost_shapes import leaves
from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_config import read_config
from tracewh.ingest.hlo_shape import Shape

FULL_GROUPS = "all rows count, as if the groups, whose sizes are known only at run time, covered them"
"""The note on products with matrices for groups of rows."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of one call.

    `variant` continues the name of the call's rule where the formula has several, and `note` says in what way
    the numbers are a bound or leave something out.
    """

    flops: int
    transcendentals: int
    variant: str = ""
    note: str | None = None


@dataclass(frozen=True)
class LibraryCall:
    """A custom call. `results` are the leaves of its result, in order and with the workspace."""

    target: str
    instruction: Any
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]

    @classmethod
    def of(cls, graph: ModuleGraph, instruction: Any) -> LibraryCall:
        """Raises DanglingReference."""
        return cls(
            instruction.custom_call_target.decode(errors="replace"),
            instruction,
            tuple(graph.shape(operand) for operand in graph.operands(instruction)),
            tuple(leaves(graph.shape(instruction))),
        )

    @cached_property
    def config(self) -> dict[str, Any]:
        """The configuration. Raises UnknownCost."""
        return read_config(self.instruction.backend_config)

    @property
    def data_results(self) -> tuple[Shape, ...]:
        """The results without the workspace, which libraries get as a last result of plain bytes."""
        *data, last = self.results or (None,)
        is_workspace = (
            last is not None and data and last.element_type in ("s8", "u8") and len(last.dimensions) == 1
        )
        return self.results[:-1] if is_workspace else self.results

    def operand(self, index: int) -> tuple[int, ...]:
        """Dimensions of an operand. Raises UnknownCost."""
        if index >= len(self.operands):
            raise UnknownCost(f"it has {len(self.operands)} operands, so no operand {index}")
        return _dimensions(self.operands[index], f"operand {index}")

    def result(self) -> tuple[int, ...]:
        """Dimensions of the first result. Raises UnknownCost."""
        if not self.results:
            raise UnknownCost("it has no result")
        return _dimensions(self.results[0], "its result")


def check_indices(dimensions: tuple[int, ...], indices: tuple[int, ...], what: str) -> None:
    """Raises UnknownCost where the indices are not distinct ones of dimensions."""
    if len(set(indices)) != len(indices) or not set(indices) <= set(range(len(dimensions))):
        raise UnknownCost(f"its {what} are not distinct dimensions of an array with {len(dimensions)}")


def product_of(dimensions: tuple[int, ...], indices: tuple[int, ...]) -> int:
    """The product of the sizes of some dimensions."""
    return prod(dimensions[index] for index in indices)


def product_without(dimensions: tuple[int, ...], left_out: tuple[int, ...]) -> int:
    """The product of the sizes of the dimensions that are not in `left_out`."""
    return prod(size for index, size in enumerate(dimensions) if index not in left_out)


def _dimensions(shape: Shape, what: str) -> tuple[int, ...]:
    if shape.element_type is None or shape.element_count is None:
        raise UnknownCost(f"{what} is no array of fixed size ({shape.text[:80]})")
    return shape.dimensions
