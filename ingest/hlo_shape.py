"""The text, element count and size of an HLO shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_TUPLE, _OPAQUE, _TOKEN, _BUFFER = 13, 14, 17, 34

# PrimitiveType number -> name in HLO text and bits of one element.
_ARRAY_TYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 8),
    2: ("s8", 8),
    3: ("s16", 16),
    4: ("s32", 32),
    5: ("s64", 64),
    6: ("u8", 8),
    7: ("u16", 16),
    8: ("u32", 32),
    9: ("u64", 64),
    10: ("f16", 16),
    11: ("f32", 32),
    12: ("f64", 64),
    15: ("c64", 64),
    16: ("bf16", 16),
    18: ("c128", 128),
    19: ("f8e5m2", 8),
    20: ("f8e4m3fn", 8),
    21: ("s4", 4),
    22: ("u4", 4),
    23: ("f8e4m3b11fnuz", 8),
    24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8),
    26: ("s2", 2),
    27: ("u2", 2),
    28: ("f8e4m3", 8),
    29: ("f8e3m4", 8),
    30: ("s1", 1),
    31: ("u1", 1),
    32: ("f4e2m1fn", 4),
    33: ("f8e8m0fnu", 8),
    35: ("f6e3m2fn", 6),
    36: ("f6e2m3fn", 6),
}

_DYNAMIC_SIZE_BYTES = 4
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape as the warehouse keeps it.

    `element_count` and `size_bytes` are summed over the arrays of a tuple, and None where one has no fixed
    size (unbounded dimension, unknown element type, opaque value). A dynamic dimension counts with its bound.
    A token has no elements and no bytes. `size_bytes` leaves out tile padding and a tuple's pointer table.
    `dimensions` are those of an array, `members` the shapes in a tuple or a buffer. `stored_bytes` is
    `size_bytes` with tile padding, and with the current sizes that are stored beside dynamic dimensions.
    """

    text: str
    element_type: str | None
    element_count: int | None
    size_bytes: int | None
    dimensions: tuple[int, ...] = ()
    members: tuple[Shape, ...] = ()
    memory_space: int = 0
    stored_bytes: int | None = None


def describe_shape(shape: Any) -> Shape:
    """Describe a ShapeProto; `text` is the form of HLO text without its `/*index=5*/` comments.

    The layout has order, tiles, element size and memory space: `f32[8,128]{1,0:T(8,128)S(5)}`.
    """
    code = shape.element_type
    if code == _TUPLE:
        members = [describe_shape(member) for member in shape.tuple_shapes]
        return Shape(
            "(" + ", ".join(member.text for member in members) + ")",
            None,
            _sum_or_none([member.element_count for member in members]),
            _sum_or_none([member.size_bytes for member in members]),
            members=tuple(members),
            stored_bytes=_sum_or_none([member.stored_bytes for member in members]),
        )
    if code == _BUFFER and len(shape.tuple_shapes) == 1:
        content = describe_shape(shape.tuple_shapes[0])
        return Shape(
            f"b({content.text})",
            None,
            content.element_count,
            content.size_bytes,
            members=(content,),
            stored_bytes=content.stored_bytes,
        )
    if code == _TOKEN:
        return Shape("token[]", None, 0, 0, stored_bytes=0)
    if code == _OPAQUE:
        return Shape("opaque[]", None, 0, None)
    return _describe_array(shape)


def _describe_array(shape: Any) -> Shape:
    name, bits = _ARRAY_TYPES.get(shape.element_type, (f"type{shape.element_type}", 0))
    dimensions = shape.dimensions
    dynamic = shape.is_dynamic_dimension
    sizes = []
    for index, size in enumerate(dimensions):
        if size == _INT64_MIN:
            sizes.append("?")
        else:
            sizes.append(f"<={size}" if index < len(dynamic) and dynamic[index] else str(size))
    count: int | None = 1
    for size in dimensions:
        count = None if count is None or size < 0 else _bounded(count * size)
    layout = shape.layout
    # XLA packs elements only where the layout says so; without it each takes whole bytes.
    element_bits = layout.element_size_in_bits or (bits + 7) // 8 * 8
    size_bytes = _packed_bytes(count, element_bits)
    stored_bytes = _packed_bytes(_padded_count(shape) if count is not None else None, element_bits)
    if stored_bytes is not None and any(dynamic):
        stored_bytes += _DYNAMIC_SIZE_BYTES * len(dimensions)
    text = f"{name}[{','.join(sizes)}]"
    if shape.HasField("layout"):
        text += _layout_text(layout, is_scalar=not dimensions)
    return Shape(
        text,
        name,
        count,
        size_bytes,
        tuple(dimensions),
        memory_space=layout.memory_space,
        stored_bytes=stored_bytes,
    )


def _packed_bytes(count: int | None, element_bits: int) -> int | None:
    return None if count is None or element_bits <= 0 else _bounded((count * element_bits + 7) // 8)


def _padded_count(shape: Any) -> int | None:
    """Elements of an array with those that fill up its tiles; None where its layout makes no sense.

    As XLA does, this takes the first tile only: those within it add no padding.
    """
    order = shape.layout.minor_to_major
    tile = [int(size) for tiles in shape.layout.tiles[:1] for size in reversed(tiles.dimensions)]
    if tile and (sorted(order) != list(range(len(shape.dimensions))) or min(tile) < 1):
        return None
    sizes = [shape.dimensions[index] for index in order] if tile else list(shape.dimensions)
    sizes += [1] * (len(tile) - len(sizes))
    count: int | None = 1
    for index, size in enumerate(sizes):
        width = tile[index] if index < len(tile) else 1
        count = None if count is None else _bounded(count * (-(-size // width) * width))
    return count


def _layout_text(layout: Any, is_scalar: bool) -> str:
    details = ""
    if layout.tiles:
        details += "T" + "".join(
            f"({','.join('*' if size == _INT64_MIN else str(size) for size in tile.dimensions)})"
            for tile in layout.tiles
        )
    if layout.element_size_in_bits:
        details += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        details += f"S({layout.memory_space})"
    if is_scalar and not details:
        return ""
    order = ",".join(map(str, layout.minor_to_major))
    return f"{{{order}:{details}}}" if details else f"{{{order}}}"


def _sum_or_none(values: list[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return _bounded(total)


def _bounded(value: int) -> int | None:
    """`value`, or None where it does not fit a BIGINT: no real array is that large."""
    return value if value <= _INT64_MAX else None
