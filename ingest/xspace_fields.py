"""The fields of a serialized message one by one, taken or refused as by protobuf: slow, but knows groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracewh.ingest.xspace_wire import DELIMITED, FIXED32, FIXED64, VARINT

_GROUP, _GROUP_END = 3, 4
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_MAX_HEAD_BYTES, _MAX_NUMBER_BYTES = 5, 10
_MAX_TAG = 2**32 - 1

MAX_DEPTH = 100
"""How many groups protobuf takes inside each other; each message that they are in counts too."""


@dataclass(frozen=True)
class Field:
    """A field of a message: where it begins, its number and wire type, and the span of its payload."""

    offset: int
    number: int
    wire_type: int
    start: int
    end: int


class Broken(ValueError):
    """The bytes at `offset` are no field; the text says why.

    `missing` bytes more, at least, and there might be one; `field` is what it would be, if that is known.
    """

    def __init__(self, offset: int, reason: str, missing: int = 0, field: Field | None = None) -> None:
        super().__init__(reason)
        self.offset, self.missing, self.field = offset, missing, field


def walk(data: memoryview | bytes, start: int, end: int, depth: int = MAX_DEPTH) -> Iterator[Field]:
    """The fields of the message in data[start:end], in which `depth` groups may be inside each other.

    Raises Broken at the first that is none.
    """
    position = start
    while position < end:
        tag, payload = _tag(data, position, end)
        if tag < 8:
            raise Broken(position, "no field begins there")
        field = _field(data, position, tag, payload, end, depth)
        yield field
        position = field.end


def _field(data: memoryview | bytes, offset: int, tag: int, payload: int, end: int, depth: int) -> Field:
    """The field with this tag at `offset`, whose payload, or the length of it, is at `payload`."""
    number, wire_type = tag >> 3, tag & 7
    if wire_type == VARINT:
        field_end = _number(data, payload, end, _MAX_NUMBER_BYTES)[1]
    elif wire_type == DELIMITED:
        length, payload = _number(data, payload, end, _MAX_HEAD_BYTES)
        field_end = payload + length
    elif wire_type in _WIDTHS:
        field_end = payload + _WIDTHS[wire_type]
    elif wire_type == _GROUP:
        field_end = _group_end(data, offset, tag, payload, end, depth)
    else:
        raise Broken(offset, "no field begins there")
    field = Field(offset, number, wire_type, payload, field_end)
    if field_end > end:
        size, left = field_end - payload, end - payload
        raise Broken(offset, f"a field of {size:,} bytes where {left:,} are left", field_end - end, field)
    return field


def _group_end(data: memoryview | bytes, offset: int, group: int, position: int, end: int, depth: int) -> int:
    """What follows the group whose first field is at `position`. Inside of it a number of 0 is fine."""
    if not depth:
        raise Broken(offset, f"over {MAX_DEPTH} groups inside each other")
    while position < end:
        tag, payload = _tag(data, position, end)
        if tag == group - _GROUP + _GROUP_END:
            return payload
        position = _field(data, position, tag, payload, end, depth - 1).end
    raise Broken(offset, "a group that does not end", 1)


def _tag(data: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    tag, after = _number(data, position, end, _MAX_HEAD_BYTES)
    if tag > _MAX_TAG:
        raise Broken(position, "no field begins there")
    return tag, after


def _number(data: memoryview | bytes, start: int, end: int, max_bytes: int) -> tuple[int, int]:
    """The number at `start`, and what follows it."""
    value = 0
    for index in range(max_bytes):
        if start + index >= end:
            raise Broken(start, "its bytes end inside a number", 1)
        byte = data[start + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, start + index + 1
    raise Broken(start, f"a number of more than {max_bytes} bytes")
