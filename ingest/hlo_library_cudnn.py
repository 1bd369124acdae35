"""The operations of cuDNN's fused attention, whose configuration has dimension numbers for each product.

https://docs.nvidia.com/deeplearning/cudnn calls it scaled dot product attention; XLA's targets start with
`__cudnn$fmha`. Queries, keys and values are operands 0 to 2 of every variant.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tracewh.ingest.hlo_attention import FULL_LENGTH, PAGED, Band, Core, attention_work
from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_library_call import LibraryCall, Work, check_indices, product_of, product_without
from tracewh.ingest.hlo_library_config import integer, integers, section

_MASKS = ("NO_MASK", "PADDING", "CAUSAL", "PADDING_CAUSAL")
_SAVED_OPERAND = 3


def cudnn_attention(call: LibraryCall) -> Work:
    """Raises UnknownCost."""
    config = section(call.config, "cudnn_fmha_backend_config") or call.config
    if config.get("is_paged_attention"):
        raise UnknownCost(PAGED)
    is_backward = "Backward" in call.target
    mask = _mask(config)
    heads, queries, keys, key_width, value_width = _sizes(call, config, is_backward)
    core = Core(heads, queries, keys, key_width, value_width, _band(config, mask))
    is_padded = mask.startswith("PADDING") or (integer(config, "max_seg_per_batch") or 0) > 1
    recomputes = not is_backward or _recomputes(call, core)
    return attention_work(core, is_backward, recomputes, FULL_LENGTH if is_padded else None)


def _recomputes(call: LibraryCall, core: Core) -> bool:
    """Whether a backward pass gets a statistic per query to compute the softmax from, and not the softmax."""
    if "F8" in call.target:
        return True
    saved = call.operand(_SAVED_OPERAND)
    return len(saved) < 4 or prod(saved) != core.heads * core.queries * core.keys


def _mask(config: dict[str, Any]) -> str:
    mask = config.get("mask_type")
    if mask is None:
        return "CAUSAL" if config.get("is_causal_mask") is True else "NO_MASK"
    number = integer(config, "mask_type")
    if number is not None and 0 <= number < len(_MASKS):
        return _MASKS[number]
    if mask not in _MASKS:
        raise UnknownCost(f"its mask {str(mask)[:40]!r} is not known")
    return str(mask)


def _band(config: dict[str, Any], mask: str) -> Band:
    window = integer(config, "sliding_window_length") or 0
    # The window has so many keys, the query's own position included.
    return Band(window - 1 if window > 0 else None, 0 if mask.endswith("CAUSAL") else None)


def _sizes(call: LibraryCall, config: dict[str, Any], is_backward: bool) -> tuple[int, int, int, int, int]:
    """Heads of the queries, queries, keys, width of a key and of a value."""
    query, key, value = call.operand(0), call.operand(1), call.operand(2)
    if is_backward:
        # The products are dP*Q, dP*K and dO*V: over the queries, the keys and the width of a value.
        query_batch, queries, query_width = _sides(config, "bmm1_grad_gemm1", "rhs", query)
        key_batch, keys, key_width = _sides(config, "bmm1_grad_gemm2", "rhs", key)
        value_batch, value_width, value_count = _sides(config, "bmm2_grad_gemm2", "rhs", value)
    else:
        query_batch, query_width, queries = _sides(config, "bmm1", "lhs", query)
        key_batch, key_width, keys = _sides(config, "bmm1", "rhs", key)
        value_batch, value_count, value_width = _sides(config, "bmm2", "rhs", value)
    if query_width != key_width or keys != value_count:
        raise UnknownCost("the sizes of its queries, keys and values do not fit each other")
    # Queries may share the heads of keys and values.
    if key_batch != value_batch or (query_batch % key_batch if key_batch else query_batch):
        raise UnknownCost("the heads of its queries, keys and values do not fit each other")
    return query_batch, queries, keys, key_width, value_width


def _sides(
    config: dict[str, Any], matmul: str, side: str, dimensions: tuple[int, ...]
) -> tuple[int, int, int]:
    """Sizes of the batch, contracting and remaining dimensions of one side of a product."""
    numbers = section(config, f"{matmul}_dot_dimension_numbers")
    if not numbers:
        raise UnknownCost(f"its configuration has no dimension numbers for {matmul}")
    batch = integers(numbers, f"{side}_batch_dimensions")
    contracting = integers(numbers, f"{side}_contracting_dimensions")
    check_indices(dimensions, batch + contracting, f"dimension numbers for {matmul}")
    return (
        product_of(dimensions, batch),
        product_of(dimensions, contracting),
        product_without(dimensions, batch + contracting),
    )
