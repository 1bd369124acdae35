"""FLOPs of cuDNN and MIOpen convolutions, against jaxlib's counts of the same convolutions as plain HLO."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest

from tracewh.ingest.hlo_cost_value import Cost

from .library_calls import call_module, calls, cost, flops_of, module_cost, size_of, xspace_modules

# A strided and unevenly padded convolution, and the three ways to write its products as an HLO convolution.
INPUT, FILTER, OUTPUT = "f32[2,9,10,4]", "f32[3,2,4,6]", "f32[2,4,4,6]"
WINDOW = ", window={size=3x2 stride=2x3 pad=1_0x0_1}, dim_labels=b01f_01io->b01f"
FORWARD = f"{OUTPUT} convolution(p0, p1){WINDOW}"
BACKWARD_INPUT = (
    f"{INPUT} convolution(p0, p1), "
    "window={size=3x2 pad=1_3x1_0 lhs_dilate=2x3 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f"
)
BACKWARD_FILTER = (
    f"{FILTER} convolution(p0, p1), "
    "window={size=4x4 pad=1_-1x0_1 rhs_dilate=2x3}, dim_labels=f01b_i01o->01bf"
)


def pairs_by_hand() -> int:
    """Pairs of output and window positions of the convolution above that meet an input element."""
    along = []
    for size, taps, positions, stride, padding in ((9, 3, 4, 2, 1), (10, 2, 4, 3, 0)):
        places = [position * stride - padding + tap for position in range(positions) for tap in range(taps)]
        along.append(sum(0 <= place < size for place in places))
    return prod(along)


@pytest.mark.parametrize(
    ("kind", "operands", "result", "plain"),
    [
        ("Forward", [INPUT, FILTER], OUTPUT, FORWARD),
        ("BackwardInput", [OUTPUT, FILTER], INPUT, BACKWARD_INPUT),
        ("BackwardFilter", [INPUT, OUTPUT], FILTER, BACKWARD_FILTER),
    ],
)
def test_a_convolution_and_its_gradients_do_the_same_products(
    kind: str, operands: list[str], result: str, plain: str
) -> None:
    found = cost(f"__cudnn$conv{kind}", operands, f"({result}, u8[4096])", extra=WINDOW)
    rule = {
        "Forward": "cudnn_convolution",
        "BackwardInput": "cudnn_convolution_backward_input",
        "BackwardFilter": "cudnn_convolution_backward_filter",
    }[kind]
    assert found == Cost(flops_of(operands, plain), 0, size_of(*operands, result), rule)
    assert found.flops == 2 * 2 * pairs_by_hand() * 4 * 6


@pytest.mark.parametrize(
    ("operands", "result", "attributes"),
    [
        # Grouped, dilated, without padding, of one and of three dimensions, with one tap.
        (
            ["f32[2,16,9,9]", "f32[32,4,3,3]"],
            "f32[2,32,9,9]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=4",
        ),
        (
            ["bf16[1,20,20,8]", "bf16[3,3,8,8]"],
            "bf16[1,16,16,8]",
            "window={size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
        ),
        (
            ["f32[2,100,8]", "f32[5,8,16]"],
            "f32[2,98,16]",
            "window={size=5 pad=1_1}, dim_labels=b0f_0io->b0f",
        ),
        (
            ["f32[1,4,5,6,3]", "f32[2,2,2,3,4]"],
            "f32[1,5,5,5,4]",
            "window={size=2x2x2 pad=1_1x1_0x0_0}, dim_labels=b012f_012io->b012f",
        ),
        (
            ["f32[2,7,7,8]", "f32[1,1,8,16]"],
            "f32[2,4,4,16]",
            "window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f",
        ),
        (
            ["f32[2,5,8]", "f32[3,8,4]"],
            "f32[2,9,4]",
            "window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f",
        ),
    ],
)
def test_forward_convolutions_count_as_the_opcode(operands: list[str], result: str, attributes: str) -> None:
    found = cost("__cudnn$convForward", operands, f"({result}, u8[0])", extra=f", {attributes}")
    assert found.flops == flops_of(operands, f"{result} convolution(p0, p1), {attributes}")


def test_fused_convolutions_count_the_convolution() -> None:
    operands = [INPUT, FILTER, "f32[6]", OUTPUT]
    config = {"cudnn_conv_backend_config": {"activation_mode": "kRelu", "side_input_scale": 1}}
    for kind in ("BiasActivationForward", "ForwardGraph"):
        found = cost(f"__cudnn$conv{kind}", operands, f"({OUTPUT}, u8[0])", config, WINDOW)
        assert (found.flops, found.rule) == (2 * 2 * pairs_by_hand() * 24, "cudnn_fused_convolution")
        assert found.bytes_accessed == size_of(*operands, OUTPUT)
        assert found.reason == "the pointwise operations after it do not count"


def test_vectorized_convolution_has_its_features_in_two_dimensions() -> None:
    window = ", window={size=3x3}, dim_labels=bf01?_oi01?->bf01?"
    operands = ["s8[2,8,9,9,4]", "s8[24,8,3,3,4]"]
    found = cost("__cudnn$convForward", operands, "(s8[2,6,7,7,4], u8[0])", extra=window)
    assert found.flops == 2 * 2 * (7 * 7 * 3 * 3) * (8 * 4) * 24


def test_real_convolution_counts_valid_taps() -> None:
    (module,) = (m for m in xspace_modules("TraceLens-mi300-jax08_conv.xplane.pb").values() if calls(m))
    # f32 [1,16,32,60,104] * [5120,16,1,2,2] -> [1,5120,34,31,53]: windows 1, 2 and 2, strides 1, 2 and 2,
    # and a padding of 1 on all sides.
    pairs = 1
    for size, taps, positions, stride in ((32, 1, 34, 1), (60, 2, 31, 2), (104, 2, 53, 2)):
        pairs *= sum(
            0 <= position * stride - 1 + tap < size
            for position, tap in product(range(positions), range(taps))
        )
    flops = 2 * pairs * 16 * 5120
    assert round(flops / 1e9, 1) == 32.7
    found = module_cost(module)
    sizes = size_of("bf16[1,16,32,60,104]", "bf16[5120,16,1,2,2]", "bf16[1,5120,34,31,53]")
    assert found == Cost(flops, 0, sizes, "cudnn_convolution")


def test_damaged_convolutions_give_a_reason() -> None:
    def changed(change: Any) -> Cost:
        module = call_module("__cudnn$convForward", [INPUT, FILTER], f"({OUTPUT}, u8[0])", extra=WINDOW)
        change(calls(module)[0])
        return module_cost(module)

    def change_size(call: Any) -> None:
        call.window.dimensions[0].size = 2**40

    def change_stride(call: Any) -> None:
        call.window.dimensions[0].stride = -1

    def drop_window(call: Any) -> None:
        call.ClearField("window")

    def drop_numbers(call: Any) -> None:
        call.ClearField("convolution_dimension_numbers")

    def change_numbers(call: Any) -> None:
        call.convolution_dimension_numbers.input_spatial_dimensions[0] = 4

    def drop_operand(call: Any) -> None:
        del call.operand_ids[1]

    for change in (change_size, change_stride, drop_window, drop_numbers, change_numbers, drop_operand):
        found = changed(change)
        assert (found.flops, found.rule) == (None, "cudnn_convolution"), change.__name__
        assert found.reason
