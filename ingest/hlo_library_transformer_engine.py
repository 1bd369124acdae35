"""The operations of Transformer Engine's attention and matrix products, for NVIDIA and for AMD.

https://github.com/NVIDIA/TransformerEngine, transformer_engine/jax. Its FFI calls have their sizes as
attributes; before those the attention's had them in a packed C structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from struct import Struct
from typing import Any

from tracewh.ingest.hlo_attention import FULL_LENGTH, PAGED, Band, Core, attention_work
from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_library_call import FULL_GROUPS, LibraryCall, Work
from tracewh.ingest.hlo_library_config import integer, section

# NVTE_Mask_Type, from no mask to padding with a causal mask that ends at the last key.
_PADDING_MASKS, _CAUSAL_MASKS, _BOTTOM_RIGHT_MASKS = {1, 3, 5}, {2, 3, 4, 5}, {4, 5}
_LAST_MASK = 5
# NVTE_QKV_Layout: those with queries, keys and values in one operand, those with keys and values in one, and
# those that pack several sequences into one row.
_QKV_LAYOUTS, _KV_LAYOUTS = {0, 1, 5, 6, 10, 11}, {2, 3, 7, 8, 12, 13}
_PACKED_ROW_LAYOUTS = {10, 11, 12, 13, 14, 17, 18}
_FIRST_PAGED_LAYOUT = 19


@dataclass(frozen=True, slots=True)
class _Attributes:
    """Attributes of a call; asking for a missing one makes the call not countable."""

    values: dict[str, Any]

    def __getitem__(self, name: str) -> int:
        value = integer(self.values, name)
        if value is None:
            raise UnknownCost(f"its configuration has no whole number {name}")
        return value

    def get(self, name: str, default: int) -> int:
        return self[name] if name in self.values else default

    def is_set(self, name: str) -> bool:
        return self.values.get(name) is True


def transformer_engine_attention(call: LibraryCall) -> Work:
    """Raises UnknownCost."""
    values = call.config if call.target.endswith("_ffi") else _descriptor(call.instruction.backend_config)
    attributes = _Attributes(values)
    batch, heads, groups = (attributes[name] for name in ("input_batch", "attn_heads", "num_gqa_groups"))
    queries, keys = attributes["q_max_seqlen"], attributes["kv_max_seqlen"]
    # Keys and values had one width before they had each its own.
    width = "qk_head_dim" if "qk_head_dim" in values else "head_dim"
    key_width = attributes[width]
    value_width = attributes.get("v_head_dim", key_width)
    layout, mask = attributes["qkv_layout"], attributes["mask_type"]
    if not 0 <= mask <= _LAST_MASK:
        raise UnknownCost(f"its mask type {mask} is not known")
    if layout >= _FIRST_PAGED_LAYOUT:
        raise UnknownCost(PAGED)
    query_parts, key_parts = (3, 0) if layout in _QKV_LAYOUTS else (1, 2 if layout in _KV_LAYOUTS else 1)
    if prod(call.operand(0)) != batch * queries * heads * key_width * query_parts:
        raise UnknownCost("the size of its queries does not fit its configuration")
    if key_parts and prod(call.operand(1)) != batch * keys * groups * key_width * key_parts:
        raise UnknownCost("the size of its keys does not fit its configuration")
    is_bound = (
        mask in _PADDING_MASKS
        or layout in _PACKED_ROW_LAYOUTS
        or attributes.get("max_segments_per_seq", 1) > 1
    )
    return attention_work(
        Core(batch * heads, queries, keys, key_width, value_width, _band(attributes, mask)),
        "backward" in call.target,
        note=FULL_LENGTH if is_bound else None,
    )


def transformer_engine_gemm(call: LibraryCall) -> Work:
    """Work of a product of two operands that count as matrices, split at an axis. Raises UnknownCost."""
    values = section(call.config, "config") or call.config
    attributes = _Attributes(values)
    lhs_rows, lhs_columns = _as_matrix(call.operand(0), attributes["lhs_axis_boundary"])
    rhs_rows, rhs_columns = _as_matrix(call.operand(2), attributes["rhs_axis_boundary"])
    if attributes.is_set("lhs_transposed"):
        lhs_rows, lhs_columns = lhs_columns, lhs_rows
    if attributes.is_set("rhs_transposed"):
        rhs_rows, rhs_columns = rhs_columns, rhs_rows
    if lhs_columns != rhs_rows:
        raise UnknownCost("the sizes of its operands do not fit each other")
    outputs = lhs_rows * rhs_columns
    if attributes.get("collective_op", 0):
        # It gathers rows before the product, or scatters them after it.
        outputs = max(outputs, prod(call.result()))
    elif prod(call.result()) != outputs:
        raise UnknownCost("the size of its result does not fit its operands")
    return Work(2 * outputs * lhs_columns, outputs if attributes.is_set("fuse_gelu") else 0)


def transformer_engine_grouped_gemm(call: LibraryCall) -> Work:
    """Work of a product whose rows, or sums for a weight gradient, are in groups. Raises UnknownCost."""
    attributes = _Attributes(call.config)
    rows, columns, contracted = attributes["M"], attributes["N"], attributes["K"]
    if min(rows, columns, contracted) < 0 or prod(call.operand(0)) != rows * contracted:
        raise UnknownCost("the size of its left operand does not fit its configuration")
    return Work(2 * rows * columns * contracted, 0, note=FULL_GROUPS)


def _band(attributes: _Attributes, mask: int) -> Band:
    left, right = attributes.get("window_size_left", -1), attributes.get("window_size_right", -1)
    if mask in _CAUSAL_MASKS:
        right = 0
    is_bottom_right = mask in _BOTTOM_RIGHT_MASKS or attributes.is_set("bottom_right_diagonal")
    return Band(None if left < 0 else left, None if right < 0 else right, is_bottom_right)


def _as_matrix(dimensions: tuple[int, ...], axis: int) -> tuple[int, int]:
    if not 0 <= axis <= len(dimensions):
        raise UnknownCost("the axis at which its operands become matrices is none of theirs")
    return prod(dimensions[:axis]), prod(dimensions[axis:])


_SIZES = Struct("<8Q")
_SIZE_NAMES = (
    "input_batch",
    "bias_batch",
    "q_max_seqlen",
    "kv_max_seqlen",
    "attn_heads",
    "num_gqa_groups",
    "bias_heads",
    "head_dim",
)
_MASK_AND_LAYOUT = Struct("<ii")
_SEGMENTS = Struct("<Q")
_WINDOW = Struct("<qq")


def _descriptor(data: bytes) -> dict[str, Any]:
    """The attributes in a CustomCallFusedAttnDescriptor, in its form without and with a sliding window."""
    if len(data) not in (104, 128):
        raise UnknownCost(f"its packed configuration of {len(data)} bytes has no known form")
    found: dict[str, Any] = dict(zip(_SIZE_NAMES, _SIZES.unpack_from(data), strict=True))
    if len(data) == 104:
        found["mask_type"], found["qkv_layout"] = _MASK_AND_LAYOUT.unpack_from(data, 84)
        return found
    (found["max_segments_per_seq"],) = _SEGMENTS.unpack_from(data, 64)
    found["mask_type"], found["qkv_layout"] = _MASK_AND_LAYOUT.unpack_from(data, 92)
    found["window_size_left"], found["window_size_right"] = _WINDOW.unpack_from(data, 112)
    return found
