"""Both decoders of XSpace give what protobuf gives, for real files, synthetic ones and unusual bytes."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError

from tracewh.ingest import xspace_compiled
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_compiled import CompiledSpace
from tracewh.ingest.xspace_decode import open_space
from tracewh.ingest.xspace_protobuf import ProtobufSpace

from .space_content import assert_holds
from .wire_tree import Node, delimited, encode, fixed32, fixed64, group, number, padded
from .xspace_files import ARCHIVES, BUNDLED, PUBLIC, file_id, read_archive, read_file
from .xspace_oracle import Compressed, Ref, SpaceBuilder, Unsigned, XSpace

# Events and bytes of a part: cuts after every event, at odd places, and none.
PARTS = [(1, 1), (2, 1 << 20), (16_384, 1), (16_384, 50), (3, 200), (16_384, 1 << 20)]
LAST_OFFSET, MINUS_ONE = (1 << 63) - 1, -1


def check(data: bytes, parts: list[tuple[int, int]] | None = None, message: Any = None) -> None:
    """Compare both decoders with protobuf's own reading of the bytes, the compiled one with several parts."""
    message = XSpace.FromString(data) if message is None else message
    assert_holds(ProtobufSpace(data), message)
    buffer = np.frombuffer(data, np.uint8)
    for index, (max_events, max_bytes) in enumerate(PARTS if parts is None else parts):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(xspace_compiled, "_MAX_PART_EVENTS", max_events)
            patch.setattr(xspace_compiled, "_MAX_PART_BYTES", max_bytes)
            assert_holds(CompiledSpace(buffer, "x.pb", threads=1 + index % 2), message)


# --- real files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*BUNDLED, *PUBLIC], ids=file_id)
def test_captures(path: Path) -> None:
    check(read_file(path), [(16_384, 1 << 20), (7, 300)])


@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_captures_of_training_runs(archive: Path) -> None:
    for data in read_archive(archive):
        check_large(data)


def check_large(data: bytes) -> None:
    """As `check`, with the parts of real use; our protobuf decoder is left out where it takes long."""
    message = XSpace.FromString(data)
    assert_holds(CompiledSpace(np.frombuffer(data, np.uint8), "x.pb", threads=2), message)
    if len(data) < 3 << 20:
        assert_holds(ProtobufSpace(data), message)


# --- bytes that protobuf takes ------------------------------------------------------------------------------


def plane(*nodes: Node) -> Node:
    return delimited(1, nodes)


def named(*nodes: Node) -> Node:
    """A plane with a name."""
    return plane(delimited(2, b"/device:GPU:0"), *nodes)


def line(*nodes: Node) -> Node:
    return delimited(3, nodes)


def event(*nodes: Node) -> Node:
    return delimited(4, nodes)


def stat(*nodes: Node) -> Node:
    return delimited(4, nodes)


def with_stats(*stats: Node) -> Node:
    """A plane with two events, the first with these stats."""
    return named(line(event(number(1, 7), number(2, 5), *stats), event(number(1, 8))))


def map_entry(field: int, *nodes: Node) -> Node:
    return delimited(field, nodes)


DOUBLE = struct.pack("<d", 1.5)
NAN = struct.pack("<Q", 0x7FF4_0000_0000_0001)
UNKNOWN = [
    number(15, 300),
    number(2047, 1),
    delimited(16, b"\x08\x01\x12"),
    fixed64(17, b"\xff" * 8),
    fixed32(18, b"\xff" * 4),
    number((1 << 29) - 1, 3),
    group(19, number(1, 5), group(20, delimited(2, b"text")), fixed32(3, b"\x00" * 4)),
]

CASES: dict[str, list[Node]] = {
    "empty plane": [named(), plane()],
    "metadata after lines": [
        named(
            line(event(number(1, 3), stat(number(1, 2), number(7, 9)))),
            map_entry(4, number(1, 3), delimited(2, [number(1, 3), delimited(2, b"k")])),
            map_entry(5, number(1, 2), delimited(2, [number(1, 2), delimited(2, b"s")])),
            map_entry(5, number(1, 9), delimited(2, [delimited(2, b"text")])),
        )
    ],
    "everything backwards": [
        delimited(4, b"host"),
        delimited(3, b"warning"),
        plane(
            delimited(6, [number(4, 5), number(1, 2)]),
            map_entry(5, delimited(2, [delimited(3, b"about"), delimited(2, b"s")]), number(1, 2)),
            map_entry(4, delimited(2, [delimited(4, b"shown"), delimited(2, b"k")]), number(1, 3)),
            line(
                delimited(11, b"shown"),
                number(10, 4),
                number(9, 8),
                event(stat(number(3, 9), number(1, 2)), number(3, 3), number(2, 2), number(1, 3)),
                number(3, 77),
                delimited(2, b"line"),
                number(1, 1),
            ),
            delimited(2, b"plane"),
            number(1, 6),
        ),
        delimited(2, b"error"),
        delimited(2, b"error 2"),
    ],
    "lines and metadata mixed": [
        named(
            line(event(number(1, 1))),
            delimited(6, [number(1, 1)]),
            map_entry(4, number(1, 1), delimited(2, [delimited(2, b"a")])),
            line(event(number(1, 2))),
            map_entry(4, number(1, 2), delimited(2, [delimited(2, b"b")])),
            delimited(6, [number(1, 2), number(4, 3)]),
            delimited(6, [number(1, 2), delimited(5, b"x")]),
            number(1, 12),
            line(),
        )
    ],
    "fields repeated: the last holds": [
        plane(number(1, 1), delimited(2, b"a"), number(1, 2), delimited(2, b"b")),
        named(
            line(
                number(1, 1),
                delimited(2, b"a"),
                number(3, 5),
                delimited(11, b"d"),
                event(number(1, 1), number(1, 2), number(2, 3), number(2, 4), number(3, 5), number(3, 6)),
                number(1, 9),
                delimited(2, b""),
                number(3, 6),
                number(9, 1),
                number(9, 2),
                number(10, 1),
                number(10, 0),
                delimited(11, b"dd"),
            )
        ),
        with_stats(stat(number(1, 1), number(4, 5), number(1, 2), number(4, 6))),
    ],
    "one of two, the last holds": [
        named(
            line(
                event(number(2, 5), number(5, 6)),
                event(number(5, 6), number(2, 5)),
                event(number(2, 5), number(5, 0)),
                event(number(5, 6), number(2, 0)),
                event(number(5, 0)),
                event(number(2, 0)),
                event(number(5, -3)),
            )
        ),
        with_stats(
            stat(number(1, 1), delimited(5, b"text"), number(4, 6)),
            stat(number(1, 1), number(4, 6), delimited(5, b"text")),
            stat(number(1, 1), delimited(5, b"text"), delimited(6, b"bytes")),
            stat(number(1, 1), fixed64(2, DOUBLE), number(7, 6)),
            stat(number(1, 1), number(7, 6), fixed64(2, DOUBLE)),
            stat(delimited(8, b"z"), number(3, 6), number(1, 1)),
            stat(number(4, 6), fixed64(2, DOUBLE), delimited(5, b""), number(1, 1)),
        ),
    ],
    "stats of every type": [
        with_stats(
            stat(),
            stat(number(1, 5)),
            stat(number(4, 7)),
            stat(number(1, 5), fixed64(2, DOUBLE)),
            stat(number(1, 5), fixed64(2, NAN)),
            stat(number(1, 5), number(3, (1 << 64) - 1)),
            stat(number(1, 5), number(4, MINUS_ONE)),
            stat(number(1, 5), number(4, -(1 << 63))),
            stat(number(1, 5), number(7, (1 << 64) - 1)),
            stat(number(1, 5), number(4, 0)),
            stat(number(1, 5), delimited(5, b"")),
            stat(number(1, 5), delimited(5, b"text \xff")),
            stat(number(1, 5), delimited(6, b"\x00\x01")),
            stat(number(1, 5), delimited(8, b"\x1f\x8b")),
            stat(number(1, -5), number(4, 2)),
        )
    ],
    "values of every length": [
        with_stats(
            *(
                stat(number(1, 1 << (7 * size)), number(field, (1 << (7 * size)) + 3))
                for size in range(10)
                for field in (3, 4, 7)
            ),
            *(stat(number(1, 1 << (7 * size)), delimited(5, b"x" * size)) for size in range(10)),
            *(stat(number(1, 1 << (7 * size)), fixed64(2, DOUBLE)) for size in range(10)),
        ),
        named(
            line(
                *(
                    event(number(1, 1 << (7 * size)), number(2, 1 << (7 * size)), number(3, -1 << (7 * size)))
                    for size in range(10)
                )
            )
        ),
    ],
    "numbers longer than they must be": [
        with_stats(
            *(
                stat(number(1, 5, head_bytes=size), number(4, 6, head_bytes=11 - size))
                for size in range(1, 11)
            ),
            *(stat(number(1, 5, tag_bytes=size), number(4, 6, tag_bytes=6 - size)) for size in range(1, 6)),
            *(
                delimited(4, [number(1, 5), delimited(5, b"x", head_bytes=size)], head_bytes=size)
                for size in range(1, 6)
            ),
        ),
        Node(1, 2, [delimited(2, b"p")], tag_bytes=5, head_bytes=5),
        named(
            delimited(3, [number(1, 0, head_bytes=10), event(number(1, 1))], tag_bytes=3, head_bytes=4),
            delimited(3, [delimited(4, [number(2, 9, tag_bytes=4)], tag_bytes=2, head_bytes=5)]),
        ),
    ],
    "bits beyond the 64th": [
        # Protobuf drops them.
        named(line(Node(3, 2, b"\x08" + b"\xff" * 9 + b"\x7f"), event(number(1, 4)))),
        Node(1, 2, b"\x08" + b"\xff" * 9 + b"\x03" + b"\x12\x01p"),
        with_stats(Node(4, 2, b"\x08\x01\x20" + b"\x81" * 9 + b"\x7e"), stat(number(1, 2), number(4, 5))),
        named(line(Node(4, 2, b"\x10" + b"\x80" * 9 + b"\x02"), Node(1, 0, 1))),
    ],
    "unknown fields": [
        *UNKNOWN,
        named(
            *UNKNOWN, line(*UNKNOWN, event(*UNKNOWN, stat(*UNKNOWN, number(1, 3)), number(1, 4)), *UNKNOWN)
        ),
        named(
            map_entry(4, number(1, 1), delimited(2, [*UNKNOWN, delimited(2, b"k")])),
            map_entry(5, number(1, 1), delimited(2, [*UNKNOWN, delimited(2, b"k")])),
            delimited(6, [*UNKNOWN, number(1, 1)]),
        ),
    ],
    "unknown fields between events": [
        named(line(*(node for index in range(9) for node in (event(number(1, index)), UNKNOWN[index % 6]))))
    ],
    "known numbers of other wire types": [
        number(1, 5),
        fixed64(2, b"\x01" * 8),
        fixed32(3, b"\x01" * 4),
        group(1, number(1, 1)),
        named(
            number(2, 5),
            delimited(1, b"x"),
            number(3, 5),
            number(4, 1),
            fixed64(5, b"\x01" * 8),
            fixed32(6, b"\x01" * 4),
            group(3, number(1, 1)),
            line(
                delimited(1, b"x"),
                number(2, 1),
                fixed64(3, b"\x01" * 8),
                number(4, 1),
                fixed32(4, b"\x01" * 4),
                delimited(9, b"\x01"),
                fixed64(10, b"\x01" * 8),
                number(11, 1),
                event(
                    fixed64(1, b"\x01" * 8),
                    number(5, 4),
                    delimited(2, b"x"),
                    fixed32(5, b"\x01" * 4),
                    fixed32(3, b"\x01" * 4),
                    number(4, 1),
                    fixed64(4, b"\x01" * 8),
                ),
            ),
        ),
        with_stats(
            stat(delimited(1, b"\x01"), number(4, 6)),
            stat(number(1, 1), number(2, 6)),
            stat(number(1, 1), fixed32(2, b"\x01" * 4)),
            stat(number(1, 1), number(4, 6), delimited(3, b"x"), fixed64(4, DOUBLE), number(5, 9)),
            stat(number(1, 1), delimited(5, b"x"), number(5, 6), number(6, 1), fixed64(8, DOUBLE)),
        ),
    ],
    "maps": [
        named(
            map_entry(4),
            map_entry(5),
            map_entry(4, delimited(2, [delimited(2, b"no key")])),
            map_entry(4, number(1, 5)),
            map_entry(5, number(1, 5)),
            map_entry(4, number(1, 6), delimited(2, [delimited(2, b"first")])),
            map_entry(4, number(1, 7), delimited(2, [delimited(2, b"other")])),
            map_entry(4, number(1, 6), delimited(2, [delimited(4, b"second")])),
            map_entry(5, number(1, 6), delimited(2, [delimited(2, b"a")])),
            map_entry(5, number(1, 6), delimited(2, [delimited(3, b"b")])),
            # A value that is given twice is merged.
            map_entry(
                4, number(1, 8), delimited(2, [delimited(2, b"a")]), delimited(2, [delimited(4, b"b")])
            ),
            map_entry(4, number(1, 9), number(1, 10), delimited(2, [delimited(2, b"two keys")])),
            map_entry(4, number(1, MINUS_ONE), delimited(2, [number(1, 4), delimited(3, b"raw")])),
            map_entry(5, number(1, 11), delimited(2), delimited(2, [delimited(2, b"c")])),
        )
    ],
    "child ids packed and not": [
        named(
            map_entry(
                4, number(1, 1), delimited(2, [number(6, 5), delimited(6, b"\x01\x80\x01"), number(6, -1)])
            ),
            map_entry(4, number(1, 2), delimited(2, [delimited(6), delimited(6, padded((1 << 64) - 2, 10))])),
        )
    ],
    "lines without events": [named(*(line() for _ in range(100)), line(number(1, 5)), line(*UNKNOWN[:2]))],
    "empty events": [named(line(*(event() for _ in range(100))))],
    "empty stats": [with_stats(*(stat() for _ in range(100)))],
    "texts at the sizes of lengths": [
        with_stats(
            *(
                stat(number(1, 1), delimited(field, bytes(size)))
                for size in (0, 1, 122, 123, 124, 126, 127, 128, 129, 16_383, 16_384, 70_000)
                for field in (5, 6, 8)
            )
        ),
        named(line(delimited(2, b"n" * 127), delimited(11, b"d" * 128))),
        named(line(delimited(2, b"n" * 16_384), event())),
    ],
    "stats of exactly the bytes that a length of one byte can tell, and one more": [
        with_stats(
            *(stat(number(1, 1), delimited(5, b"x" * (size - 4))) for size in range(124, 132)),
            *(stat(number(1, 1), number(4, 1), delimited(15, b"x" * (size - 6))) for size in range(124, 132)),
        )
    ],
    "one plane in pieces": [
        # Planes are repeated, not merged.
        plane(delimited(2, b"a"), line(event(number(1, 1)))),
        plane(number(1, 3), line(event(number(1, 1)))),
    ],
    "groups beside stats of the plane": [
        named(
            delimited(6, [number(1, 1), number(4, 5)]),
            group(15, number(1, 1)),
            delimited(6, [number(1, 2), delimited(5, b"x")]),
            delimited(6, [number(1, 3)]),
            line(event(number(1, 1))),
        )
    ],
    "groups where a field number of 0 is fine": [
        named(
            Node(15, 3, b"\x00\x01\x02\x01a"), line(Node(15, 3, b"\x00\x01"), event(Node(15, 3, b"\x00\x01")))
        )
    ],
    "groups only": [named(line(group(4, number(1, 1)), event(group(1), group(4), group(2))))],
}


def test_map_entries_with_unknown_fields_are_kept() -> None:
    # Python's protobuf sets such an entry of a map aside, which C++ does not.
    entries = [
        map_entry(field, *UNKNOWN, number(1, 1), delimited(2, [delimited(2, b"k")]), number(9, 1))
        for field in (4, 5)
    ]
    data = encode([named(*entries)])
    for compiled in (True, False):
        (made,) = open_space(data, "x.pb", compiled=compiled).planes
        assert made.event_metadata.ids.tolist() == [1]
        assert made.event_metadata.names == [b"k"]
        assert made.stat_names == {1: b"k"}


@pytest.mark.parametrize("case", CASES)
def test_unusual_bytes(case: str) -> None:
    check(encode(CASES[case]))


def test_all_unusual_bytes_in_one_file() -> None:
    check(encode(itertools.chain.from_iterable(CASES.values())))


def test_concatenated_files_are_one_space() -> None:
    cases = list(CASES)
    for first, second in itertools.pairwise(cases):
        check(encode(CASES[first]) + encode(CASES[second]), [(3, 200)])


def last_stats() -> Iterator[Node]:
    for size, id_size in itertools.product((1, 2, 7, 8, 9, 10), (1, 8, 9)):
        stat_id = number(1, 1 << (7 * (id_size - 1)))
        yield stat(stat_id, number(4, 1 << (7 * (size - 1))))
        yield stat(number(7, 1 << (7 * (size - 1))), stat_id)
        yield stat(stat_id, delimited(5, b"x" * size))
        yield stat(stat_id, delimited(6, b"x" * (size - 1)))
    yield stat(number(1, 1), fixed64(2, DOUBLE))
    yield stat(number(1, 1))
    yield stat()


# A field that is skipped fills the distance; it has two bytes at least.
@pytest.mark.parametrize("distance", [0, *range(2, 21)])
def test_values_just_before_the_end_of_the_buffer(distance: int) -> None:
    filler = delimited(15, bytes(distance - 2)).encode() if distance else b""
    for last in last_stats():
        data = encode([named(line(event(number(1, 3), number(2, 1 << 62), last)))]) + filler
        check(data, [(16_384, 1 << 20)])


@pytest.mark.parametrize("size", range(1, 11))
def test_fields_of_events_and_lines_at_the_end_of_the_buffer(size: int) -> None:
    value = 1 << (7 * (size - 1))
    for last in (1, 2, 3, 5):
        check(encode([named(line(event(number(last, value))))]), [(16_384, 1 << 20)])
    for last in (1, 3, 9, 10):
        check(encode([named(line(event(), number(last, value)))]), [(16_384, 1 << 20)])
    for field in (2, 11):
        check(encode([named(line(event(), delimited(field, bytes(size))))]), [(16_384, 1 << 20)])
    check(encode([named(number(1, value))]))
    check(encode([named(delimited(6, [number(1, 1), number(4, value)]))]))


# --- bytes that protobuf refuses ----------------------------------------------------------------------------

# As the fields of a message, behind which there is room for what a loop might take too many bytes of.
REFUSED = {
    "tag of six bytes": b"\x88\x80\x80\x80\x80\x00\x01",
    "tag of 33 bits": b"\x88\x80\x80\x80\x10\x01",
    "tag of ten bytes": b"\x88" + b"\x80" * 8 + b"\x00\x01",
    "field 0": b"\x00\x01",
    "field 0 with a length": b"\x02\x01a",
    "field 0 in two bytes": b"\x80\x00\x01",
    "wire type 6": b"\x0e\x01",
    "wire type 7": b"\x0f\x01",
    "number of eleven bytes": b"\x08" + b"\xff" * 10 + b"\x01",
    "padded number of eleven bytes": b"\x08" + b"\x80" * 10 + b"\x00",
    "unknown number of eleven bytes": b"\x78" + b"\xff" * 10 + b"\x01",
    "number without end": b"\x08\x80",
    "tag without end": b"\x88",
    "tag only": b"\x08",
    "length of six bytes": b"\x22\x80\x80\x80\x80\x80\x00",
    "unknown length of six bytes": b"\x7a\x80\x80\x80\x80\x80\x00",
    "length of 35 bits": b"\x22\x80\x80\x80\x80\x10",
    "length of -1": b"\x22" + b"\xff" * 9 + b"\x01",
    "length one too large": b"\x22\x05\x08\x01\x20\x05",
    "text one too long": b"\x2a\x03ab",
    "name one too long": b"\x12\x03ab",
    "length without end": b"\x22\x80",
    "eight bytes too short": b"\x11" + bytes(7),
    "unknown eight bytes too short": b"\x79" + bytes(7),
    "four bytes too short": b"\x7d" + bytes(3),
    "group without end": b"\x7b\x08\x01",
    "group that another ends": b"\x7b\x08\x01\x74",
    "end of a group": b"\x7c",
    "group in a group without end": b"\x7b\x73\x7c",
    "group with a field that breaks": b"\x7b\x0a\x05a\x7c",
    "groups too deep": b"\x7b" * 101 + b"\x7c" * 101,
}
LEVELS = {
    "space": lambda content: [Node(15, 2, b""), content],
    "plane": lambda content: [plane(delimited(2, b"p"), content)],
    "line": lambda content: [named(line(event(number(1, 1)), content))],
    "event": lambda content: [named(line(event(number(1, 1)), event(number(1, 1), content)))],
    "stat": lambda content: [named(line(event(number(1, 1), stat(number(1, 1), content))))],
    "bare stat": lambda content: [named(line(event(number(1, 1), stat(content))))],
    "stat of the plane": lambda content: [named(delimited(6, [number(1, 1), content]))],
    "event metadata": lambda content: [named(map_entry(4, number(1, 1), delimited(2, [content])))],
    "stat metadata": lambda content: [named(map_entry(5, number(1, 1), delimited(2, [content])))],
    "map entry": lambda content: [named(map_entry(4, number(1, 1), content))],
}


@dataclass
class Raw(Node):
    """Bytes that are no field."""

    def encode(self) -> bytes:
        assert isinstance(self.payload, bytes)
        return self.payload


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_protobuf_refuses(case: str, level: str) -> None:
    broken = encode(LEVELS[level](Raw(0, 0, REFUSED[case])))
    # At the end of the file, and with room behind it.
    for data in (broken, broken + named(delimited(2, b"x" * 60)).encode()):
        try:
            message = XSpace.FromString(data)
        except DecodeError:
            for compiled in (False, True):
                with pytest.raises(UnreadableFile, match=r"x\.pb: .*byte"):
                    read_all(data, compiled)
        else:
            # What breaks one message may be whole in another, or with more behind it.
            check(data, [(16_384, 1 << 20)], message)


# How many groups protobuf takes inside each other: messages around them count.
@pytest.mark.parametrize(
    ("level", "most"), [("space", 100), ("plane", 99), ("line", 98), ("event", 97), ("stat", 96)]
)
def test_depth_of_groups(level: str, most: int) -> None:
    # Another plane has a name, which makes it a space.
    data = encode([named(), *LEVELS[level](Raw(0, 0, b"\x7b" * most + b"\x7c" * most))])
    check(data, [(16_384, 1 << 20)])
    data = encode([named(), *LEVELS[level](Raw(0, 0, b"\x7b" * (most + 1) + b"\x7c" * (most + 1)))])
    with pytest.raises(DecodeError):
        XSpace.FromString(data)
    for compiled in (False, True):
        with pytest.raises(UnreadableFile, match=r"x\.pb: "):
            read_all(data, compiled)


def read_all(data: bytes, compiled: bool) -> None:
    space = open_space(data, "x.pb", compiled=compiled)
    for plane_of_space in space.planes:
        for _ in space.chunks(plane_of_space.lines):
            pass
        for _ in space.stats(plane_of_space):
            pass


def test_a_stat_that_is_longer_than_its_event_is_refused() -> None:
    # The stat ends where the next event does: only the end of its own event is in the way.
    inside = stat(number(1, 1), number(4, 5)).encode()
    following = event(number(1, 1), *[stat(number(1, 1), number(4, 5))] * 9).encode()
    for missing in range(1, len(inside)):
        content = delimited(4, inside[:-missing]).encode() + inside[-missing:] + following
        data = encode([named(delimited(3, content))])
        with pytest.raises(DecodeError):
            XSpace.FromString(data)
        for compiled in (False, True):
            with pytest.raises(UnreadableFile, match="line 0"):
                read_all(data, compiled)


def test_a_length_that_looks_like_the_start_of_a_stat() -> None:
    # The length, 0x81 0x08, is followed by 0x08 0x2a 0x7d: an id and a field of four bytes. To a loop that
    # takes the first byte for all of the length, it is an id of 8 and a text that ends 0x81 bytes on, where
    # a field begins, as two bytes further on.
    inside = b"\x08\x2a\x7d" + bytes(4) + b"\x78\x81\x00" + b"\x78\x01" * 506 + b"\x78\x81\x00"
    assert len(inside) == 1025
    check(encode([with_stats(Node(4, 2, inside), stat(number(1, 1)))]))


# --- synthetic spaces ---------------------------------------------------------------------------------------


def synthetic(events: int) -> bytes:
    """A space with the given number of events, with all that the builder can make."""
    space = SpaceBuilder()
    made = space.gpu()
    first = made.line("Stream #1(Compute)", 1, 28_560)
    second = made.line("Stream #2(MemcpyD2H)", -2, 28_560, "shown")
    for index in range(events):
        stats: list[tuple[str, Any]] = [
            ("correlation_id", Unsigned(index)),
            ("hlo_op", Ref(f"dot.{index % 3}")),
            ("kernel_details", "regs:16 " + "x" * (index % 150)),
            ("occupancy", index / 7),
            ("payload", bytes([index % 256]) * (index % 9)),
            ("packed", Compressed(b"z" * (index % 5))),
            ("negative", -index),
            ("empty", None),
        ]
        owner = (first, second)[index % 2]
        owner.event(f"k{index % 5}", index * 1000, index % 77, stats[: index % 9])
    second.event("counted", num_occurrences=7)
    space.message.warnings.append(b"slow")
    return space.serialize()


@pytest.mark.parametrize("events", [0, 1, 2, 50, 3000])
def test_synthetic_spaces(events: int) -> None:
    check(synthetic(events), None if events < 100 else [(16_384, 1 << 20), (7, 300)])


def test_more_parts_than_are_found_at_once() -> None:
    # The line is scanned 32 parts at a time; what stands behind its events is still its own.
    for events in (31, 32, 33, 63, 64, 65, 200):
        nodes = [event(number(1, index)) for index in range(events)]
        data = encode([named(line(delimited(2, b"a"), *nodes, number(3, 9), delimited(11, b"b")))])
        check(data, [(1, 1 << 20), (2, 1 << 20), (16_384, 1)])


def test_plane_stats_of_more_than_one_part() -> None:
    stats = [delimited(6, [number(1, index), delimited(5, b"text")]) for index in range(70)]
    mixed = [node for index, own in enumerate(stats) for node in (own, *([line()] * (index % 3 == 0)))]
    for nodes in (stats, mixed, [*stats, number(15, 1), *stats]):
        check(encode([named(*nodes)]), [(1, 1), (7, 1), (69, 1), (70, 1), (71, 1)])


@pytest.mark.parametrize(("most", "sizes"), [(1, [1] * 70), (30, [30, 30, 10]), (70, [70]), (99, [70])])
def test_plane_stats_come_in_parts(monkeypatch: pytest.MonkeyPatch, most: int, sizes: list[int]) -> None:
    monkeypatch.setattr(xspace_compiled, "_MAX_PART_EVENTS", most)
    data = encode([named(*(delimited(6, [number(1, index)]) for index in range(70)))])
    space = CompiledSpace(np.frombuffer(data, np.uint8), "x.pb")
    assert [len(stats) for stats in space.stats(space.planes[0])] == sizes


@pytest.mark.parametrize(
    ("max_events", "max_bytes", "sizes"),
    [
        # An event is 6 bytes: its tag, its length, and two fields of two bytes.
        (100, 6, [1] * 40),
        (100, 11, [1] * 40),
        (100, 12, [2] * 20),
        (100, 60, [10] * 4),
        (100, 65, [10] * 4),
        (7, 60, [7] * 5 + [5]),
        (40, 240, [40]),
        (39, 240, [39, 1]),
        (40, 239, [39, 1]),
    ],
)
def test_events_come_in_parts(
    monkeypatch: pytest.MonkeyPatch, max_events: int, max_bytes: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(xspace_compiled, "_MAX_PART_EVENTS", max_events)
    monkeypatch.setattr(xspace_compiled, "_MAX_PART_BYTES", max_bytes)
    data = encode([named(line(*[event(number(1, 1), number(2, 2))] * 40))])
    space = CompiledSpace(np.frombuffer(data, np.uint8), "x.pb")
    assert [len(chunk) for _, chunk in space.chunks(space.planes[0].lines)] == sizes


def test_event_larger_than_a_part() -> None:
    large = event(number(1, 1), *(stat(number(1, index), number(4, index)) for index in range(5000)))
    small = event(number(1, 2), stat(number(1, 1), delimited(5, b"x")))
    data = encode([named(line(small, large, small, large, large))])
    check(data, [(16_384, 100), (16_384, 1 << 14), (1, 100)])


def test_the_choice_of_the_decoder_does_not_change_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic(50)
    message = XSpace.FromString(data)
    for compiled in (None, True, False):
        assert_holds(open_space(data, "x.pb", compiled=compiled), message)
        assert_holds(open_space(memoryview(data), "x.pb", threads=2, compiled=compiled), message)
    monkeypatch.setattr("tracewh.ingest.xspace_decode._COMPILED_FROM_BYTES", 0)
    space = open_space(data, "x.pb")
    assert isinstance(space, CompiledSpace)
    assert_holds(space, message)


def test_events_are_decoded_again_when_they_are_asked_for_again() -> None:
    data = synthetic(20)
    space = CompiledSpace(np.frombuffer(data, np.uint8), "x.pb")
    lines = space.planes[0].lines
    first = [chunk.metadata_id.tolist() for _, chunk in space.chunks(lines)]
    half_read = space.chunks(lines)
    next(half_read)
    half_read.close()
    assert [chunk.metadata_id.tolist() for _, chunk in space.chunks(lines)] == first
    assert [chunk.metadata_id.tolist() for _, chunk in space.chunks(reversed(lines))] == first[::-1]


def test_release_follows_the_parts_that_were_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xspace_compiled, "_MAX_PART_EVENTS", 3)
    data = synthetic(50)
    released: list[int] = []
    space = CompiledSpace(np.frombuffer(data, np.uint8), "x.pb", threads=2, release=released.append)
    # Opening looks at all of it once.
    assert released
    assert released == sorted(released)
    assert released[-1] <= len(data)
    released.clear()
    handed_on = 0
    for handed_on, _ in enumerate(space.chunks(space.planes[0].lines), 1):
        # A part is given back when it has been decoded, those in front of it before.
        assert len(released) == handed_on
    assert handed_on == 18
    assert released == sorted(released)
    assert released[-1] <= len(data)
