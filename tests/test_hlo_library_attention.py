"""FLOPs of fused attention in cuDNN and Transformer Engine, by arithmetic and by enumerating pairs."""

from __future__ import annotations

import ctypes
import json
from itertools import product
from typing import Any

import pytest

from tracewh.ingest.hlo_attention import Band, Core, attention_work
from tracewh.ingest.hlo_cost_value import Cost, UnknownCost

from .library_calls import call_module, calls, cost, dimension_numbers, module_cost, size_of, xspace_modules

BATCH, HEADS, LENGTH, WIDTH = 4, 8, 64, 32
# Operations of one matrix product over all pairs.
PRODUCT = 2 * BATCH * HEADS * LENGTH * LENGTH * WIDTH


# --- pairs --------------------------------------------------------------------------------------------------


def pairs(queries: int, keys: int, left: int | None, right: int | None, bottom_right: bool) -> int:
    found = 0
    for query, key in product(range(queries), range(keys)):
        distance = key - query - (keys - queries if bottom_right else 0)
        found += (left is None or distance >= -left) and (right is None or distance <= right)
    return found


def test_pairs_of_every_band() -> None:
    limits = [None, 0, 1, 2, 3, 7]
    for queries, keys, left, right, bottom_right in product(
        range(6), range(6), limits, limits, (False, True)
    ):
        work = attention_work(Core(3, queries, keys, 5, 7, Band(left, right, bottom_right)), False)
        expected = pairs(queries, keys, left, right, bottom_right)
        if work.variant == "_causal":
            # The convention of the ledgers: half of the square, so half of the diagonal.
            assert (queries, right) == (keys, 0)
            assert expected == queries * (queries + 1) // 2
            assert work.flops == 3 * queries * keys * (5 + 7)
            assert work.transcendentals == 3 * queries * keys // 2
        else:
            assert work.flops == 2 * 3 * expected * (5 + 7)
            assert work.transcendentals == 3 * expected
            assert (work.variant == "") == (expected == queries * keys) or not expected


def test_backward_products() -> None:
    core = Core(2, 10, 20, 3, 5)
    # Scores again, their gradient's two products with queries and keys, and two with values.
    assert attention_work(core, True).flops == 2 * 2 * 10 * 20 * (3 * 3 + 2 * 5)
    # The softmax was kept.
    kept = attention_work(core, True, recomputes=False)
    assert (kept.flops, kept.transcendentals) == (2 * 2 * 10 * 20 * (2 * 3 + 2 * 5), 0)
    with pytest.raises(UnknownCost):
        attention_work(Core(2, -10, 20, 3, 5), True)


def test_causal_core_is_that_of_the_ledger() -> None:
    """Mixtral 8x22B: 56 layers, 48 heads of 128, sequences of 4096, a batch of 64."""
    forward = attention_work(Core(64 * 48, 4096, 4096, 128, 128, Band(None, 0)), False)
    assert round(3 * 56 * forward.flops / 1e15, 3) == 2.217


# --- cuDNN --------------------------------------------------------------------------------------------------


def cudnn_config(layout: str, backward: bool, **more: Any) -> dict[str, Any]:
    """What JAX writes for batch, sequence, heads, width (`BTNH`) and for batch, heads, sequence, width."""
    heads, sequence = (2, 1) if layout == "BTNH" else (1, 2)
    qkv, scores = [0, heads], [0, 1]
    if backward:
        numbers = {
            "bmm1_grad_gemm1": dimension_numbers([2], [sequence], scores, qkv),
            "bmm1_grad_gemm2": dimension_numbers([3], [sequence], scores, qkv),
            "bmm2_grad_gemm1": dimension_numbers([2], [sequence], scores, qkv),
            "bmm2_grad_gemm2": dimension_numbers([3], [3], qkv, qkv),
        }
    else:
        numbers = {
            "bmm1": dimension_numbers([3], [3], qkv, qkv),
            "bmm2": dimension_numbers([3], [sequence], scores, qkv),
        }
    found = {f"{name}_dot_dimension_numbers": value for name, value in numbers.items()}
    defaults = {"fmha_scale": 0.1, "mask_type": "NO_MASK", "sliding_window_length": 0}
    return {"operation_queue_id": "0", "cudnn_fmha_backend_config": {**defaults, **found, **more}}


def array(layout: str, heads: int, length: int, width: int = WIDTH, kind: str = "bf16") -> str:
    middle = f"{length},{heads}" if layout == "BTNH" else f"{heads},{length}"
    return f"{kind}[{BATCH},{middle},{width}]"


def forward(layout: str = "BTNH", key_heads: int = HEADS, variant: str = "Softmax", **more: Any) -> Cost:
    query, key = array(layout, HEADS, LENGTH), array(layout, key_heads, LENGTH)
    result = f"(bf16[{BATCH},{HEADS},{LENGTH},{WIDTH}], f32[{BATCH},{HEADS},{LENGTH}], u8[0])"
    return cost(f"__cudnn$fmha{variant}", [query, key, key], result, cudnn_config(layout, False, **more))


def backward(
    layout: str = "BTNH", key_heads: int = HEADS, saved: str | None = None, variant: str = "SoftmaxBackward"
) -> Cost:
    query, key = array(layout, HEADS, LENGTH), array(layout, key_heads, LENGTH)
    saved = saved or f"f32[{BATCH},{HEADS},{LENGTH}]"
    result = f"({query}, {key}, {key}, u8[1024])"
    config = cudnn_config(layout, True, is_flash_attention=False)
    return cost(f"__cudnn$fmha{variant}", [query, key, key, saved, query, query], result, config)


@pytest.mark.parametrize("layout", ["BTNH", "BNTH"])
@pytest.mark.parametrize("key_heads", [HEADS, 2, 1])
def test_cudnn_forward_and_backward(layout: str, key_heads: int) -> None:
    found = forward(layout, key_heads)
    query, key = array(layout, HEADS, LENGTH), array(layout, key_heads, LENGTH)
    statistics = f"f32[{BATCH},{HEADS},{LENGTH}]"
    exponentials = BATCH * HEADS * LENGTH * LENGTH
    size = size_of(query, key, key, query, statistics)
    assert found == Cost(2 * PRODUCT, exponentials, size, "cudnn_attention_forward")
    found = backward(layout, key_heads)
    size = size_of(query, key, key, statistics, query, query) + size_of(query, key, key)
    assert found == Cost(5 * PRODUCT, exponentials, size, "cudnn_attention_backward")


def test_cudnn_backward_from_a_kept_softmax() -> None:
    found = backward(saved=f"bf16[{BATCH},{HEADS},{LENGTH},{LENGTH}]")
    assert (found.flops, found.transcendentals) == (4 * PRODUCT, 0)


@pytest.mark.parametrize(
    ("more", "expected", "suffix"),
    [
        ({"mask_type": "CAUSAL"}, PRODUCT, "_causal"),
        ({"mask_type": 2}, PRODUCT, "_causal"),
        ({"mask_type": "2"}, PRODUCT, "_causal"),
        ({"mask_type": None, "is_causal_mask": True}, PRODUCT, "_causal"),
        ({"mask_type": None, "is_causal_mask": False}, 2 * PRODUCT, ""),
        # Windows of 16 keys: 1 + 2 + ... + 15 pairs, and 16 for each of the 49 queries from the 16th on.
        (
            {"mask_type": "CAUSAL", "sliding_window_length": 16},
            2 * 2 * BATCH * HEADS * WIDTH * (15 * 16 // 2 + 49 * 16),
            "_banded",
        ),
        ({"mask_type": "CAUSAL", "sliding_window_length": "64"}, PRODUCT, "_causal"),
    ],
)
def test_cudnn_masks(more: dict[str, Any], expected: int, suffix: str) -> None:
    found = forward(**more)
    assert (found.flops, found.rule, found.reason) == (expected, f"cudnn_attention_forward{suffix}", None)


def test_cudnn_padding_and_segments_are_bounds() -> None:
    for more, expected in (
        ({"mask_type": "PADDING"}, 2 * PRODUCT),
        ({"mask_type": "PADDING_CAUSAL"}, PRODUCT),
        ({"max_seg_per_batch": 4}, 2 * PRODUCT),
    ):
        found = forward(**more)
        assert found.flops == expected
        assert found.reason is not None
        assert "full length" in found.reason


@pytest.mark.parametrize(
    "variant",
    ["SoftmaxDropout", "ScaleBiasSoftmax", "ScaleBiasSoftmaxDropout", "SoftmaxF8", "ScaleMaskSoftmax"],
)
def test_cudnn_variants(variant: str) -> None:
    assert forward(variant=variant).flops == 2 * PRODUCT
    of_gradient = "SoftmaxBackwardF8" if variant == "SoftmaxF8" else f"{variant}Backward"
    found = backward(variant=of_gradient)
    assert (found.flops, found.rule) == (5 * PRODUCT, "cudnn_attention_backward")


def test_cudnn_f8_backward_has_the_output_where_others_have_the_softmax() -> None:
    # The output of 64 positions and a width of 64 has as many elements as the softmax of 64 by 64.
    shape = f"f8e4m3fn[{BATCH},{HEADS},64,64]"
    operands = [shape] * 5 + [f"f32[{BATCH},{HEADS},64]"] + ["f32[1,1,1,1]"] * 12
    result = f"({shape}, {shape}, {shape}, f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], u8[0])"
    found = cost("__cudnn$fmhaSoftmaxBackwardF8", operands, result, cudnn_config("BNTH", True))
    assert found.flops == 5 * 2 * BATCH * HEADS * 64 * 64 * 64


def test_cudnn_different_lengths_and_widths() -> None:
    query, key, value = "bf16[2,10,4,16]", "bf16[2,30,4,16]", "bf16[2,30,4,8]"
    found = cost(
        "__cudnn$fmhaSoftmax", [query, key, value], "(bf16[2,4,10,8], u8[0])", cudnn_config("BTNH", False)
    )
    assert found.flops == 2 * 2 * 4 * 10 * 30 * (16 + 8)
    config = cudnn_config("BTNH", True)
    operands = [query, key, value, "f32[2,4,10]", "bf16[2,10,4,8]", "bf16[2,10,4,8]"]
    result = f"({query}, {key}, {value}, u8[0])"
    found = cost("__cudnn$fmhaSoftmaxBackward", operands, result, config)
    assert found.flops == 2 * 2 * 4 * 10 * 30 * (3 * 16 + 2 * 8)


@pytest.mark.parametrize(
    "more",
    [
        {"mask_type": "ALIBI"},
        {"mask_type": 9},
        {"mask_type": []},
        {"is_paged_attention": True},
        {"bmm1_dot_dimension_numbers": None},
        {"bmm2_dot_dimension_numbers": dimension_numbers([3], [7], [0, 1], [0, 2])},
        {"bmm2_dot_dimension_numbers": dimension_numbers([3], [3], [0, 1], [0, 2])},
        {"bmm1_dot_dimension_numbers": dimension_numbers([3], [3], [0], [0, 2])},
    ],
)
def test_cudnn_calls_that_cannot_be_counted(more: dict[str, Any]) -> None:
    found = forward(**more)
    assert (found.flops, found.transcendentals, found.rule) == (None, None, "cudnn_attention_forward")
    assert found.reason


# --- Transformer Engine -------------------------------------------------------------------------------------

QUERY = f"bf16[{BATCH},{LENGTH},{HEADS},{WIDTH}]"


def te_attributes(**changed: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "attn_heads": HEADS,
        "bias_batch": 0,
        "bias_heads": 0,
        "bias_type": 0,
        "deterministic": False,
        "dropout_probability": 0.1,
        "input_batch": BATCH,
        "is_training": True,
        "kv_max_seqlen": LENGTH,
        "mask_type": 0,
        "max_segments_per_seq": 1,
        "num_gqa_groups": HEADS,
        "q_max_seqlen": LENGTH,
        "qk_head_dim": WIDTH,
        "qkv_layout": 9,
        "scaling_factor": 0.088388347648318433,
        "v_head_dim": WIDTH,
        "window_size_left": -1,
        "window_size_right": -1,
        **changed,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def mlir(attributes: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value} : i64" if isinstance(value, int) else f"{value:e} : f64"

    return "{" + ", ".join(f"{name} = {text(value)}" for name, value in sorted(attributes.items())) + "}"


def te(
    *operands: str, direction: str = "forward", config: str | dict[str, Any] | None = None, **changed: Any
) -> Cost:
    shapes = [*(operands or (QUERY, QUERY, QUERY)), "bf16[0]", "u32[2]", f"s32[{BATCH + 1}]"]
    result = f"({QUERY}, f32[{BATCH},{HEADS},{LENGTH},1], u8[4096])"
    config = config or mlir(te_attributes(**changed))
    return cost(f"te_fused_attn_{direction}_ffi", shapes, result, config)


def test_te_forward_and_backward() -> None:
    found = te()
    size = 4 * size_of(QUERY) + 8 + 4 * (BATCH + 1) + 4 * BATCH * HEADS * LENGTH
    exponentials = BATCH * HEADS * LENGTH * LENGTH
    assert found == Cost(2 * PRODUCT, exponentials, size, "te_attention_forward")
    found = te(direction="backward")
    assert found == Cost(5 * PRODUCT, exponentials, size, "te_attention_backward")


def test_te_packed_operands_and_shared_heads() -> None:
    packed = f"bf16[{BATCH},{LENGTH},3,{HEADS},{WIDTH}]"
    empty = "bf16[0]"
    for layout in (5, 10):
        assert te(packed, empty, empty, qkv_layout=layout).flops == 2 * PRODUCT
    keys_and_values = f"bf16[{BATCH},{LENGTH},2,2,{WIDTH}]"
    for layout in (7, 12):
        assert te(QUERY, keys_and_values, empty, qkv_layout=layout, num_gqa_groups=2).flops == 2 * PRODUCT
    key = f"bf16[{BATCH},{LENGTH},2,{WIDTH}]"
    assert te(QUERY, key, key, num_gqa_groups=2).flops == 2 * PRODUCT


def test_te_widths_and_lengths() -> None:
    key, value = f"bf16[{BATCH},96,{HEADS},{WIDTH}]", f"bf16[{BATCH},96,{HEADS},16]"
    changed = {"kv_max_seqlen": 96, "v_head_dim": 16}
    pairs_and_heads = 2 * BATCH * HEADS * LENGTH * 96
    assert te(QUERY, key, value, **changed).flops == pairs_and_heads * (WIDTH + 16)
    found = te(QUERY, key, value, direction="backward", **changed)
    assert found.flops == pairs_and_heads * (3 * WIDTH + 2 * 16)
    # Older versions have one width.
    assert te(qk_head_dim=None, v_head_dim=None, head_dim=WIDTH).flops == 2 * PRODUCT


@pytest.mark.parametrize(
    ("changed", "expected", "suffix"),
    [
        ({"mask_type": 2}, PRODUCT, "_causal"),
        ({"mask_type": 2, "window_size_right": 0}, PRODUCT, "_causal"),
        ({"mask_type": 4}, PRODUCT, "_causal"),
        # A window reaches 15 keys back: 1 + 2 + ... + 15 pairs, then 16 for each of 49 queries.
        (
            {"mask_type": 2, "window_size_left": 15},
            2 * 2 * BATCH * HEADS * WIDTH * (15 * 16 // 2 + 49 * 16),
            "_banded",
        ),
        # One key to either side of each of 64.
        (
            {"window_size_left": 1, "window_size_right": 1},
            2 * 2 * BATCH * HEADS * WIDTH * (3 * 64 - 2),
            "_banded",
        ),
    ],
)
def test_te_masks(changed: dict[str, Any], expected: int, suffix: str) -> None:
    found = te(**changed)
    assert (found.flops, found.rule) == (expected, f"te_attention_forward{suffix}")
    assert found.reason is None


def test_te_causal_mask_of_the_last_keys() -> None:
    key = f"bf16[{BATCH},96,{HEADS},{WIDTH}]"
    # Query i of 64 sees the keys up to i + 32, so i + 33 of the 96: 33 + 34 + ... + 96.
    expected = 2 * 2 * BATCH * HEADS * WIDTH * sum(range(33, 97))
    assert te(QUERY, key, key, mask_type=4, kv_max_seqlen=96).flops == expected
    # From the first key on, query i sees i + 1 keys: 1 + 2 + ... + 64.
    expected = 2 * 2 * BATCH * HEADS * WIDTH * sum(range(1, 65))
    assert te(QUERY, key, key, mask_type=2, kv_max_seqlen=96).flops == expected


def test_te_padding_and_packed_sequences_are_bounds() -> None:
    for changed, expected in (
        ({"mask_type": 1}, 2 * PRODUCT),
        ({"mask_type": 3}, PRODUCT),
        ({"mask_type": 3, "qkv_layout": 14, "max_segments_per_seq": 8}, PRODUCT),
    ):
        found = te(**changed)
        assert found.flops == expected
        assert found.reason is not None
        assert "full length" in found.reason


def test_te_attributes_in_the_configuration_of_newer_compilers() -> None:
    wrapped = {"custom_call_backend_config": {"attributes": mlir(te_attributes(mask_type=2))}}
    assert te(config=wrapped).flops == PRODUCT
    assert te(config={"custom_call_backend_config": {"attributes": "{"}}).flops is None
    rich = mlir(te_attributes())[:-1] + (
        ', note = "a } \\" b", shape = array<i64: 1, 2>, none = array<i32>, unit, list = [1 : i32, "x"], '
        "dense = dense<[1, 2]> : tensor<2xi64>, kind = #te<kind a>, map = affine_map<(d0) -> (d0)>}"
    )
    assert te(config=rich).flops == 2 * PRODUCT


@pytest.mark.parametrize(
    "changed",
    [
        {"mask_type": 6},
        {"mask_type": -1},
        {"mask_type": None},
        {"qkv_layout": None},
        {"qkv_layout": 5},
        {"qkv_layout": 19},
        {"attn_heads": 9},
        {"num_gqa_groups": 3},
        {"qk_head_dim": 0.5},
        {"q_max_seqlen": -LENGTH, "attn_heads": -HEADS},
        {"v_head_dim": -1},
    ],
)
def test_te_calls_that_cannot_be_counted(changed: dict[str, Any]) -> None:
    found = te(**changed)
    assert (found.flops, found.rule) == (None, "te_attention_forward")
    assert found.reason


class _Descriptor(ctypes.Structure):
    """CustomCallFusedAttnDescriptor of a Transformer Engine without sliding windows."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("batch", "bias_batch", "queries", "keys", "heads", "groups")),
        *((name, ctypes.c_size_t) for name in ("bias_heads", "width", "workspace_size")),
        ("scale", ctypes.c_float),
        ("dropout", ctypes.c_float),
        *((name, ctypes.c_int) for name in ("bias_type", "mask", "layout", "dtype", "workspace_dtype")),
        ("is_training", ctypes.c_bool),
    )


class _LaterDescriptor(ctypes.Structure):
    """The same with sliding windows."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("batch", "bias_batch", "queries", "keys", "heads", "groups")),
        *((name, ctypes.c_size_t) for name in ("bias_heads", "width", "segments", "workspace_size")),
        ("scale", ctypes.c_float),
        ("dropout", ctypes.c_float),
        *((name, ctypes.c_int) for name in ("bias_type", "mask", "layout", "dtype", "workspace_dtype")),
        ("is_training", ctypes.c_bool),
        ("deterministic", ctypes.c_bool),
        ("left", ctypes.c_int64),
        ("right", ctypes.c_int64),
    )


def test_te_calls_with_a_packed_structure() -> None:
    sizes = {
        "batch": BATCH,
        "queries": LENGTH,
        "keys": LENGTH,
        "heads": HEADS,
        "groups": HEADS,
        "width": WIDTH,
    }
    module = call_module("te_fused_attn_backward", [QUERY, QUERY, QUERY, "f32[7]"], f"({QUERY}, u8[64])")
    (call,) = calls(module)
    call.backend_config = bytes(_Descriptor(**sizes, mask=2, layout=9, scale=0.5, dtype=5))
    found = module_cost(module)
    assert (found.flops, found.rule) == (5 * PRODUCT // 2, "te_attention_backward_causal")
    later = _LaterDescriptor(**sizes, mask=2, layout=9, segments=1, left=15, right=0, workspace_size=99)
    call.backend_config = bytes(later)
    expected = 5 * 2 * BATCH * HEADS * WIDTH * (15 * 16 // 2 + 49 * 16)
    assert module_cost(module).flops == expected
    call.backend_config = bytes(later)[:-1]
    assert module_cost(module).reason == "its packed configuration of 127 bytes has no known form"
    call.backend_config = bytes(_Descriptor(**{**sizes, "heads": 9}, mask=2, layout=9))
    assert module_cost(module).flops is None


def test_real_transformer_engine_step() -> None:
    module = xspace_modules("TraceLens-te_fused_attn.xplane.pb")[17]
    found: dict[str, list[Cost]] = {}
    for call in calls(module):
        single = type(module)()
        single.CopyFrom(module)
        for other in [other for other in calls(single) if other.id != call.id]:
            other.opcode = b"other"
        found.setdefault(call.custom_call_target.decode(), []).append(module_cost(single))
    # Packed queries, keys and values bf16[2,2048,3,16,128] with a causal mask: 2 * 16 heads, half of 2048
    # by 2048 pairs, width 128. Two products forward, five backward.
    product_flops = 2 * (2 * 16) * (2048 * 2048 // 2) * 128
    packed, output = size_of("bf16[2,2048,3,16,128]"), size_of("bf16[2,2048,16,128]")
    statistics, random_state, lengths = size_of("f32[2,16,2048,1]"), size_of("u32[2,4]"), 2 * 3 * 4
    exponentials = 2 * 16 * 2048 * 2048 // 2
    forward_size = packed + output + statistics + random_state + lengths + size_of("u32[2]")
    backward_size = 2 * packed + 2 * output + statistics + random_state + lengths
    assert found == {
        "te_fused_attn_forward_ffi": [
            Cost(2 * product_flops, exponentials, forward_size, "te_attention_forward_causal")
        ]
        * 2,
        "te_fused_attn_backward_ffi": [
            Cost(5 * product_flops, exponentials, backward_size, "te_attention_backward_causal")
        ]
        * 2,
        # bf16[4096,6144] by bf16[2048,6144].
        "__cublas$gemm": [
            Cost(2 * 4096 * 6144 * 2048, 0, 2 * (4096 * 6144 + 2048 * 6144 + 4096 * 2048), "cublas_gemm")
        ],
    }


def test_configurations_that_json_writes_otherwise() -> None:
    config = cudnn_config("BTNH", False)["cudnn_fmha_backend_config"]
    result = f"(bf16[{BATCH},{HEADS},{LENGTH},{WIDTH}], u8[0])"
    # Numbers in place of strings, and without the wrapper of newer compilers.
    text = json.dumps(config).replace('"0"', "0").replace('"3"', "3").replace('"2"', "2").replace('"1"', "1")
    assert cost("__cudnn$fmhaSoftmax", [QUERY, QUERY, QUERY], result, text).flops == 2 * PRODUCT
