"""The operations of convolutions in cuDNN and MIOpen, which have the same targets.

All have the window and dimension numbers of the forward convolution, also where they give the gradient of its
input or its filter. The three do the same products, so each counts those of the forward convolution, and none
with padding: as XLA counts a `convolution`. Biases, side inputs and activations do not count.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_cost_window import valid_positions
from tracewh.ingest.hlo_library_call import LibraryCall, Work, check_indices, product_of

_POINTWISE = "the pointwise operations after it do not count"


def cudnn_convolution(call: LibraryCall) -> Work:
    """Work of a forward convolution. Raises UnknownCost."""
    return _work(call, call.operand(0), call.operand(1), call.result())


def cudnn_fused_convolution(call: LibraryCall) -> Work:
    """Work of a forward convolution with pointwise operations after it. Raises UnknownCost."""
    return replace(cudnn_convolution(call), note=_POINTWISE)


def cudnn_convolution_backward_input(call: LibraryCall) -> Work:
    """Work of the gradient of the input, from those of the output and the filter. Raises UnknownCost."""
    return _work(call, call.result(), call.operand(1), call.operand(0))


def cudnn_convolution_backward_filter(call: LibraryCall) -> Work:
    """Work of the gradient of the filter, from the input and that of the output. Raises UnknownCost."""
    return _work(call, call.operand(0), call.result(), call.operand(1))


def _work(
    call: LibraryCall, inputs: tuple[int, ...], kernel: tuple[int, ...], outputs: tuple[int, ...]
) -> Work:
    numbers = call.instruction.convolution_dimension_numbers
    window = call.instruction.window.dimensions
    kernel_spatial = tuple(numbers.kernel_spatial_dimensions)
    input_spatial = tuple(numbers.input_spatial_dimensions)
    output_spatial = tuple(numbers.output_spatial_dimensions)
    what = "dimension numbers"
    check_indices(inputs, (numbers.input_batch_dimension, *input_spatial), what)
    check_indices(kernel, kernel_spatial, what)
    check_indices(outputs, (numbers.output_batch_dimension, *output_spatial), what)
    if not len(window) == len(kernel_spatial) == len(input_spatial) == len(output_spatial):
        raise UnknownCost("its window does not have the dimensions of its operands")
    if [dimension.size for dimension in window] != [kernel[index] for index in kernel_spatial]:
        raise UnknownCost("the sizes of its window and its filter differ")
    taps = prod(
        valid_positions(
            inputs[of_input],
            dimension.size,
            outputs[of_output],
            dimension.stride,
            dimension.padding_low,
            dimension.window_dilation,
            dimension.base_dilation,
        )
        for dimension, of_input, of_output in zip(window, input_spatial, output_spatial, strict=True)
    )
    # Features may take two dimensions, where the layout is vectorized, and come divided by their groups.
    products_of_features = prod(kernel) // (product_of(kernel, kernel_spatial) or 1)
    batch = inputs[numbers.input_batch_dimension] // max(call.instruction.batch_group_count, 1)
    if batch != outputs[numbers.output_batch_dimension]:
        raise UnknownCost("the batches of its input and its output differ")
    return Work(2 * batch * taps * products_of_features, 0)
