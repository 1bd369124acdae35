"""Protobuf's wire format as a tree that tests build, take apart and bend, also to what no encoder writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .xspace_oracle import varint

VARINT, FIXED64, DELIMITED, GROUP, GROUP_END, FIXED32 = range(6)
_WIDTHS = {FIXED64: 8, FIXED32: 4}

# Which fields of an XSpace hold messages.
MESSAGES = {
    "XSpace": {1: "XPlane"},
    "XPlane": {3: "XLine", 4: "EventMetadataEntry", 5: "StatMetadataEntry", 6: "XStat"},
    "XLine": {4: "XEvent"},
    "XEvent": {4: "XStat"},
    "EventMetadataEntry": {2: "XEventMetadata"},
    "XEventMetadata": {5: "XStat"},
    "StatMetadataEntry": {2: "XStatMetadata"},
}


@dataclass
class Node:
    """A field. `payload` is a number, bytes, or the fields of a message or group.

    The tag, and the number or length after it, are padded to `tag_bytes` and `head_bytes`; `length` is
    written instead of the true one.
    """

    number: int
    wire_type: int
    payload: int | bytes | list[Node]
    tag_bytes: int = 1
    head_bytes: int = 1
    length: int | None = None

    def encode(self) -> bytes:
        tag = padded(self.number << 3 | self.wire_type, self.tag_bytes)
        if isinstance(self.payload, int):
            return tag + padded(self.payload % (1 << 64), self.head_bytes)
        content = encode(self.payload) if isinstance(self.payload, list) else self.payload
        if self.wire_type == GROUP:
            return tag + content + padded(self.number << 3 | GROUP_END, self.tag_bytes)
        if self.wire_type != DELIMITED:
            return tag + content
        return tag + padded(len(content) if self.length is None else self.length, self.head_bytes) + content


def number(field: int, value: int, **padding: int) -> Node:
    return Node(field, VARINT, value, **padding)


def delimited(field: int, payload: bytes | Iterable[Node] = b"", **padding: int) -> Node:
    return Node(field, DELIMITED, payload if isinstance(payload, bytes) else list(payload), **padding)


def group(field: int, *inside: Node, **padding: int) -> Node:
    return Node(field, GROUP, list(inside), **padding)


def fixed64(field: int, payload: bytes) -> Node:
    return Node(field, FIXED64, payload)


def fixed32(field: int, payload: bytes) -> Node:
    return Node(field, FIXED32, payload)


def padded(value: int, size: int) -> bytes:
    """The number in at least `size` bytes, the last of them zeros."""
    minimal = varint(value)
    if len(minimal) >= size:
        return minimal
    return bytes([*minimal[:-1], minimal[-1] | 128, *(128 for _ in range(size - len(minimal) - 1)), 0])


def encode(nodes: Iterable[Node]) -> bytes:
    return b"".join(node.encode() for node in nodes)


def decode(data: bytes, message: str | None = "XSpace") -> list[Node]:
    """The tree of a valid XSpace without groups, or of one of its messages."""
    nodes, position = [], 0

    def take() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        tag = take()
        if tag & 7 == VARINT:
            nodes.append(number(tag >> 3, take()))
            continue
        size = take() if tag & 7 == DELIMITED else _WIDTHS[tag & 7]
        payload = data[position : position + size]
        position += size
        child = MESSAGES.get(message or "", {}).get(tag >> 3) if tag & 7 == DELIMITED else None
        nodes.append(Node(tag >> 3, tag & 7, decode(payload, child) if child else payload))
    return nodes


def field_lists(nodes: list[Node]) -> Iterator[list[Node]]:
    """The fields of each message and group in the tree, the outermost first."""
    yield nodes
    for node in nodes:
        if isinstance(node.payload, list):
            yield from field_lists(node.payload)
