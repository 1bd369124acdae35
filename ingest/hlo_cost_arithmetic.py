"""Flops of the HLO instructions that have a formula of their own and run no computation."""

from __future__ import annotations

from typing import Any

from tracewh.ingest.hlo_cost_shapes import Values, dimension, product
from tracewh.ingest.hlo_cost_value import UnknownCost

_FLOPS_PER_COMPLEX_PRODUCT = 8


def dot_flops(values: Values, instruction: Any) -> int:
    """A multiplication and an addition per contracted element of every result."""
    contracted = instruction.dot_dimension_numbers.lhs_contracting_dimensions
    return product([2, values.elements(instruction), _width(values, instruction, contracted)])


def ragged_dot_flops(values: Values, instruction: Any) -> int:
    """As of a dot: each row, or each contracted element, belongs to one group.

    XLA's own count drops a dimension of the result, or contracts all elements in every group.
    """
    numbers = instruction.ragged_dot_dimension_numbers
    contracted = numbers.dot_dimension_numbers.lhs_contracting_dimensions
    result = values.graph.shape(instruction).dimensions
    if set(numbers.lhs_ragged_dimensions) & set(contracted):
        # The groups come first in the result: each is the product of its own part.
        result = result[1:]
    return product([2, *result, _width(values, instruction, contracted)])


def sort_flops(values: Values, instruction: Any) -> int:
    """A comparison sort over all elements of one operand: n log2 n."""
    elements = values.elements(values.operand(instruction, 0))
    return elements * max(0, elements - 1).bit_length()


def fft_flops(values: Values, instruction: Any) -> int:
    """A complex product per element and halving of every transformed dimension."""
    if any(length < 1 for length in instruction.fft_length):
        raise UnknownCost("it has an FFT length below 1")
    halvings = [length.bit_length() - 1 for length in instruction.fft_length]
    elements = values.elements(values.operand(instruction, 0))
    return product([_FLOPS_PER_COMPLEX_PRODUCT, elements, *halvings])


def cholesky_flops(values: Values, instruction: Any) -> int:
    """A third of n^3 per matrix."""
    return _last_dimension_times(values, instruction, 0) // 3


def triangular_solve_flops(values: Values, instruction: Any) -> int:
    """Two per element of the right-hand side and row of the matrix."""
    return product([2, _last_dimension_times(values, instruction, 1)])


def _width(values: Values, instruction: Any, contracted: Any) -> int:
    left = values.shape(instruction, 0)
    return product(dimension(left, index) for index in contracted)


def _last_dimension_times(values: Values, instruction: Any, index: int) -> int:
    matrix = values.shape(instruction, 0)
    length = dimension(matrix, len(matrix.dimensions) - 1)
    return product([length, values.elements(values.operand(instruction, index))])
