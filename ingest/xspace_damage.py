"""Says where an XSpace that protobuf refuses breaks: protobuf itself tells neither place nor reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from tracewh.ingest.xspace_messages import MESSAGES

_DELIMITED = 2
_WIDTHS = {1: 8, 5: 4}
_MAX_SHIFT = 70

# Which fields hold messages, and what those are called in errors.
_CHILDREN = {
    "XSpace": {1: ("XPlane", "plane")},
    "XPlane": {
        3: ("XLine", "line"),
        4: ("EventMetadataEntry", "event metadata"),
        5: ("StatMetadataEntry", "stat metadata"),
        6: ("XStat", "stat"),
    },
    "XLine": {4: ("XEvent", "event")},
    "XEvent": {4: ("XStat", "stat")},
}
_NAME_FIELDS = {"XPlane": (2,), "XLine": (11, 2)}
_NAME_BYTES = 80


@dataclass(frozen=True)
class Field:
    """A field of a message: where it begins, its number and wire type, and the span of its payload."""

    offset: int
    number: int
    wire_type: int
    start: int
    end: int


class Broken(ValueError):
    """The bytes are not the fields of a message; the text says where and why."""


def walk(data: memoryview | bytes, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in data[start:end]. Raises Broken at the first that is none."""
    position = start
    while position < end:
        offset = position
        tag, position = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            payload = position
            _, position = _varint(data, position, end)
        elif wire_type == _DELIMITED:
            length, payload = _varint(data, position, end)
            if length > end - payload:
                raise Broken(
                    f"truncated at byte {end}: the field at byte {offset} needs {length} bytes, "
                    f"{end - payload} are left"
                )
            position = payload + length
        elif wire_type in _WIDTHS and _WIDTHS[wire_type] <= end - position:
            payload = position
            position += _WIDTHS[wire_type]
        else:
            raise Broken(f"byte {offset} begins no field")
        if not number:
            raise Broken(f"byte {offset} begins no field")
        yield Field(offset, number, wire_type, payload, position)


def locate(data: memoryview | bytes) -> str:
    """Where the serialized XSpace `data` breaks, as words for an error."""
    try:
        return _locate(data, "XSpace", 0, len(data)) or "not an XSpace"
    except Broken as error:
        return f"not a complete XSpace: {error}"


def _locate(data: memoryview | bytes, message: str, start: int, end: int) -> str | None:
    """Where the message breaks, below a child of it if it is there; None where protobuf reads it."""
    counts: dict[int, int] = {}
    for field in walk(data, start, end):
        child = _CHILDREN.get(message, {}).get(field.number)
        if child is None or field.wire_type != _DELIMITED:
            continue
        child_type, word = child
        position = counts[field.number] = counts.get(field.number, -1) + 1
        try:
            MESSAGES[child_type].FromString(bytes(data[field.start : field.end]))
        except DecodeError:
            label = f"{word} {_name(data, child_type, field) or position}"
            try:
                inner = _locate(data, child_type, field.start, field.end)
            except Broken as error:
                return f"{label}: {error}"
            return f"{label}, {inner}" if inner else f"{label}: damaged between bytes {start} and {field.end}"
    return None


def _name(data: memoryview | bytes, message: str, field: Field) -> str | None:
    """The quoted name of a plane or line, as far as it can be read."""
    found: dict[int, str] = {}
    try:
        for inner in walk(data, field.start, field.end):
            if inner.wire_type == _DELIMITED and inner.number in _NAME_FIELDS.get(message, ()):
                text = bytes(data[inner.start : min(inner.end, inner.start + _NAME_BYTES)])
                found[inner.number] = repr(text.decode("utf-8", "replace"))
    except Broken:
        pass
    return next((found[number] for number in _NAME_FIELDS.get(message, ()) if number in found), None)


def _varint(data: memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _MAX_SHIFT, 7):
        if position >= end:
            raise Broken(f"truncated at byte {end}, inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
    raise Broken(f"a number of more than 10 bytes ends at byte {position}")
