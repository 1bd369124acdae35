"""How often a window is applied to an array: in convolutions and in reductions over windows."""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

from tracewh.ingest.hlo_cost_shapes import Values, dimension, product
from tracewh.ingest.hlo_cost_value import UnknownCost

_MOST_POSITIONS = 100_000


def convolution_flops(values: Values, instruction: Any) -> int:
    """Two per product of an input and a kernel element; places outside of the input cost nothing."""
    image, kernel = values.shape(instruction, 0), values.shape(instruction, 1)
    result = values.graph.shape(instruction)
    numbers = instruction.convolution_dimension_numbers
    positions = [
        valid_positions(
            dimension(image, image_dimension),
            dimension(kernel, kernel_dimension),
            dimension(result, result_dimension),
            window.stride,
            window.padding_low,
            window.window_dilation,
            window.base_dilation,
        )
        for window, image_dimension, kernel_dimension, result_dimension in _zipped(
            instruction.window.dimensions,
            numbers.input_spatial_dimensions,
            numbers.kernel_spatial_dimensions,
            numbers.output_spatial_dimensions,
        )
    ]
    # A group count that is left out is one.
    features = dimension(image, numbers.input_feature_dimension) // max(1, instruction.feature_group_count)
    batch = dimension(image, numbers.input_batch_dimension) // max(1, instruction.batch_group_count)
    return product([2, features, batch, dimension(result, numbers.output_feature_dimension), *positions])


@lru_cache(maxsize=1024)
def valid_positions(
    image: int, kernel: int, result: int, stride: int, padding_low: int, dilation: int, base_dilation: int
) -> int:
    """In how many pairs of a kernel and a result position along one axis the kernel meets the image.

    `dilation` spreads the kernel and `base_dilation` the image: only every so-manyth place holds an element.
    """
    if min(stride, dilation, base_dilation) < 1:
        raise UnknownCost("its window has a stride or a dilation below 1")
    # Kernel and result positions are alike here: step over the fewer ones, count the others by arithmetic.
    (steps, step), (count, width) = sorted([(kernel, dilation), (result, stride)])
    if steps > _MOST_POSITIONS:
        raise UnknownCost(f"its window has more than {_MOST_POSITIONS} positions")
    common = gcd(width, base_dilation)
    period = base_dilation // common
    inverse = pow(width // common, -1, period)
    total = 0
    for index in range(steps):
        # The image place is `position * width - offset`, and must be a multiple of base_dilation.
        offset = padding_low - index * step
        if offset % common:
            continue
        first = max(0, -(-offset // width))
        last = min(count - 1, ((image - 1) * base_dilation + offset) // width)
        first += (offset // common * inverse - first) % period
        if image and first <= last:
            total += (last - first) // period + 1
    return total


def window_reductions(values: Values, instruction: Any) -> int:
    """How often reduce-window applies its reducer: once less than the window is large, per result."""
    windows = instruction.window.dimensions
    results = values.first_elements(instruction)
    span = _broadcast_span(values, instruction)
    if span is not None:
        return results // span + span - 1
    return (product(window.size for window in windows) - 1) * results


def _broadcast_span(values: Values, instruction: Any) -> int | None:
    """The length of the only dimension that is reduced, where the window spans all of it everywhere.

    XLA counts that as one reduction whose result is broadcast.
    """
    windows = instruction.window.dimensions
    shape = values.graph.shape(instruction)
    reduced = [window.size != 1 for window in windows]
    padded = [window.padding_low != 0 or window.padding_high != 0 for window in windows]
    if sum(reduced) != 1 or sum(padded) != 1 or shape.members:
        return None
    index = reduced.index(True)
    window = windows[index]
    if window.padding_low != window.padding_high or window.size != 2 * window.padding_low + 1:
        return None
    span = dimension(shape, index)
    return span if span == window.padding_low + 1 else None


def _zipped(*sequences: Any) -> list[tuple[Any, ...]]:
    if len({len(sequence) for sequence in sequences}) != 1:
        raise UnknownCost("its window and its dimension numbers do not fit together")
    return list(zip(*sequences, strict=True))
