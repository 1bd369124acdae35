"""How often a window is applied to an array: in convolutions and in reductions over windows."""

from __future__ import annotations

from math import gcd
from typing import Any

from tracewh.ingest.hlo_cost_shapes import Values, dimension, product
from tracewh.ingest.hlo_cost_value import UnknownCost

_MOST_STEPS = 256


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


def valid_positions(
    image: int, kernel: int, result: int, stride: int, padding_low: int, dilation: int, base_dilation: int
) -> int:
    """In how many pairs of a kernel and a result position along one axis the kernel meets the image.

    `dilation` spreads the kernel and `base_dilation` the image: only every so-manyth place holds an element.
    """
    if min(stride, dilation, base_dilation) < 1:
        raise UnknownCost("its window has a stride or a dilation below 1")
    if min(image, kernel, result) < 1:
        return 0
    # Kernel positions so far apart are alike in where their places lie between the elements of the image.
    period = base_dilation // gcd(dilation, base_dilation)
    if min(period, kernel) > _MOST_STEPS:
        raise UnknownCost(f"its base dilation gives its window more than {_MOST_STEPS} forms")
    common = gcd(stride, base_dilation)
    every = base_dilation // common
    inverse = pow(stride // common, -1, every)
    total = 0
    for first in range(min(period, kernel)):
        # The image place is `position * stride - offset`, and must be a multiple of base_dilation.
        offset = padding_low - first * dilation
        start = offset // common * inverse % every
        if offset % common or start >= result:
            continue
        lowest = offset - start * stride
        steps = (period * dilation, (kernel - 1 - first) // period + 1)
        strides = (every * stride, (result - 1 - start) // every + 1)
        highest = lowest + (image - 1) * base_dilation
        total += _pairs_up_to(highest, *steps, *strides) - _pairs_up_to(lowest - 1, *steps, *strides)
    return total


def _pairs_up_to(limit: int, first: int, first_count: int, second: int, second_count: int) -> int:
    """How many pairs i < first_count, j < second_count have `i * first + j * second <= limit`."""
    if limit < 0:
        return 0
    # With so many i all j are in, with `rest` further ones some.
    full = min(max((limit - (second_count - 1) * second) // first + 1, 0), first_count)
    rest = max(min(limit // first + 1, first_count) - full, 0)
    return full * second_count + rest + _floor_sum(rest, second, first, limit - (full + rest - 1) * first)


def _floor_sum(count: int, divisor: int, step: int, start: int) -> int:
    """The sum of `(start + i * step) // divisor` over all i < count, as Euclid would find it."""
    total = 0
    while count:
        total += count * (count - 1) // 2 * (step // divisor) + count * (start // divisor)
        step, start = step % divisor, start % divisor
        count, start = divmod(count * step + start, divisor)
        divisor, step = step, divisor
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
    return span if 0 < span == window.padding_low + 1 else None


def _zipped(*sequences: Any) -> list[tuple[Any, ...]]:
    if len({len(sequence) for sequence in sequences}) != 1:
        raise UnknownCost("its window and its dimension numbers do not fit together")
    return list(zip(*sequences, strict=True))
