"""Fuzzes both decoders of XSpace: what protobuf reads they read alike, what it refuses they refuse.

A test runs a few hundred examples. For a long search: python tests/fuzz_xspace.py --minutes 30
"""

from __future__ import annotations

import argparse
import copy
import functools
import importlib
import sys
import time
from pathlib import Path

import hypothesis
from google.protobuf.message import DecodeError
from hypothesis import strategies as st

if __name__ == "__main__":
    # Run as a file, this is part of the package that the tests are.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    __package__ = "tests"
    importlib.import_module(__package__)

from tracewh.ingest import xspace_compiled
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_decode import open_space

from .space_content import assert_holds
from .wire_tree import (
    DELIMITED,
    FIXED32,
    FIXED64,
    GROUP,
    MESSAGES,
    VARINT,
    Node,
    decode,
    encode,
    field_lists,
    padded,
)
from .xspace_oracle import Compressed, Ref, SpaceBuilder, Unsigned, XSpace

PLACE = "fuzzed.xplane.pb"

# --- bytes --------------------------------------------------------------------------------------------------

# Fields as they should be: number -> wire type. A map's entries are messages with a key and a value.
FIELDS = {
    "XSpace": {1: DELIMITED, 2: DELIMITED, 3: DELIMITED, 4: DELIMITED},
    "XPlane": {1: VARINT, 2: DELIMITED, 3: DELIMITED, 4: DELIMITED, 5: DELIMITED, 6: DELIMITED},
    "XLine": {1: VARINT, 2: DELIMITED, 3: VARINT, 4: DELIMITED, 9: VARINT, 10: VARINT, 11: DELIMITED},
    "XEvent": {1: VARINT, 2: VARINT, 3: VARINT, 4: DELIMITED, 5: VARINT},
    "XStat": {
        1: VARINT,
        2: FIXED64,
        3: VARINT,
        4: VARINT,
        5: DELIMITED,
        6: DELIMITED,
        7: VARINT,
        8: DELIMITED,
    },
    "EventMetadataEntry": {1: VARINT, 2: DELIMITED},
    "StatMetadataEntry": {1: VARINT, 2: DELIMITED},
    "XEventMetadata": {1: VARINT, 2: DELIMITED, 3: DELIMITED, 4: DELIMITED, 5: DELIMITED, 6: VARINT},
    "XStatMetadata": {1: VARINT, 2: DELIMITED, 3: DELIMITED},
}
# Messages that are found where their kind has been lost, as in a group.
_ANY = "XStat"

numbers = st.one_of(
    st.integers(0, 300),
    st.integers(0, 9).map(lambda size: 1 << (7 * size)),
    st.integers(-3, 3).map(lambda near: (1 << 31) + near),
    st.integers(-3, 3).map(lambda near: (1 << 63) + near),
    st.integers(-300, -1).map(lambda value: value % (1 << 64)),
    st.integers(0, (1 << 64) - 1),
)
texts = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([120, 121, 122, 123, 124, 126, 127, 128, 129, 300]).map(bytes),
)
# Mostly as short as can be, at times padded, seldom to more than protobuf takes.
tag_sizes = st.sampled_from([1] * 30 + [2, 4, 5, 5, 6])
number_sizes = st.sampled_from([1] * 30 + [2, 5, 8, 9, 10, 10, 11])
length_sizes = st.sampled_from([1] * 30 + [2, 4, 5, 5, 6])
field_numbers = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 2047, 2048, (1 << 29) - 1])


@st.composite
def nodes(draw: st.DrawFn, message: str, depth: int = 6) -> Node:
    """A field of the message: mostly one that it has, at times another or one of another wire type."""
    known = FIELDS[message]
    kind = draw(st.sampled_from(["known"] * 8 + ["other type", "unknown"]))
    number = draw(st.sampled_from(sorted(known))) if kind != "unknown" else draw(field_numbers)
    wire_type = (
        known[number]
        if kind == "known"
        else draw(st.sampled_from([VARINT, FIXED64, DELIMITED, GROUP, FIXED32]))
    )
    sizes = {"tag_bytes": draw(tag_sizes)}
    if wire_type == VARINT:
        return Node(number, wire_type, draw(numbers), head_bytes=draw(number_sizes), **sizes)
    if wire_type in (FIXED64, FIXED32):
        size = 8 if wire_type == FIXED64 else 4
        return Node(number, wire_type, draw(st.binary(min_size=size, max_size=size)), **sizes)
    if wire_type == DELIMITED:
        sizes["head_bytes"] = draw(length_sizes)
        child = MESSAGES.get(message, {}).get(number)
        if child is None or not depth:
            return Node(number, wire_type, draw(texts), **sizes)
    else:
        child = _ANY
    return (
        Node(number, wire_type, draw(messages(child, depth - 1)), **sizes)
        if depth
        else Node(number, VARINT, 1)
    )


def messages(message: str, depth: int = 6) -> st.SearchStrategy[list[Node]]:
    return st.lists(nodes(message, depth), max_size=5)


@functools.cache
def valid_space() -> bytes:
    """A small space with all that an XSpace can hold."""
    space = SpaceBuilder()
    made = space.plane("/device:GPU:0", {"vendor": "Nvidia", "speed": 1.5, "blob": b"\x00\x01"})
    made.metadata("inheriting", "shown", {"program_id": Unsigned(5), "hlo_op": Ref("dot.1")}, key=-3)
    made.message.event_metadata[-3].metadata = b"raw"
    made.message.event_metadata[-3].child_id.extend([1, 300, -1])
    made.message.stat_metadata[1].description = b"about"
    line = made.line("Stream #1(Compute)", line_id=1, timestamp_ns=28_560, display_name="shown")
    line.message.duration_ps = 99
    line.message.display_id = 5
    details = "regs:16 static_shared:0 dynamic_shared:0 grid:1,2,3 block:256,1,1 occ_pct:100" + "x" * 50
    line.event("k", 5, 10, {"correlation_id": Unsigned(3), "kernel_details": details, "context_id": "$$1"})
    line.event(
        "inheriting", 20, 7, {"occupancy": 50.0, "flops": -1, "packed": Compressed(b"z"), "none": None}
    )
    line.event("counted", num_occurrences=6)
    space.plane("/host:CPU").line("python", line_id=-9).event("train", 0, 90, {"_r": 1, "step_num": 4})
    space.message.hostnames.append(b"node-7")
    space.message.warnings.append(b"slow")
    space.message.errors.append(b"late")
    return space.serialize()


@st.composite
def bent_spaces(draw: st.DrawFn) -> bytes:
    """A valid space after a few changes of its tree."""
    tree = copy.deepcopy(decode(valid_space()))
    for _ in range(draw(st.integers(1, 4))):
        lists = [found for found in field_lists(tree) if found]
        if not lists:
            break
        fields = draw(st.sampled_from(lists))
        at = draw(st.integers(0, len(fields) - 1))
        match draw(st.sampled_from(["drop", "repeat", "move", "add", "renumber", "number", "length", "pad"])):
            case "drop":
                del fields[at]
            case "repeat":
                fields.insert(draw(st.integers(0, len(fields))), copy.deepcopy(fields[at]))
            case "move":
                target = draw(st.sampled_from(lists))
                # Into another message, but not into itself.
                target.append(copy.deepcopy(fields[at]))
            case "add":
                fields.insert(at, draw(nodes(draw(st.sampled_from(sorted(FIELDS))), 2)))
            case "renumber":
                fields[at].number = draw(field_numbers)
            case "number" if fields[at].wire_type == VARINT:
                fields[at].payload = draw(numbers)
            case "length" if fields[at].wire_type == DELIMITED:
                size = len(fields[at].encode())
                fields[at].length = draw(st.one_of(st.integers(max(size - 4, 0), size + 4), numbers))
            case "pad":
                fields[at].tag_bytes, fields[at].head_bytes = draw(tag_sizes), draw(number_sizes)
    return encode(tree)


@st.composite
def spoilt(draw: st.DrawFn, spaces: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of a space after a few changes of bits, or cut."""
    data = bytearray(draw(spaces))
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["flip", "byte", "cut", "remove", "insert"])):
            case "flip":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "byte":
                data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x1B, 0x1C]))
            case "cut":
                del data[at:]
            case "remove":
                del data[at : at + draw(st.integers(1, 9))]
            case "insert":
                data[at:at] = draw(
                    st.one_of(st.binary(max_size=9), numbers.map(lambda value: padded(value, 10)))
                )
    return bytes(data)


spaces = st.one_of(
    messages("XSpace").map(encode),
    bent_spaces(),
    bent_spaces(),
    spoilt(st.just(valid_space())),
    spoilt(st.one_of(messages("XSpace").map(encode), bent_spaces())),
    st.binary(max_size=40),
)
# Events and bytes of a part, threads.
cuts = st.sampled_from([(1, 1, 1), (2, 60, 2), (16_384, 1, 1), (16_384, 1 << 20, 1), (16_384, 1 << 20, 2)])

# --- what must hold -----------------------------------------------------------------------------------------


def check(data: bytes, cut: tuple[int, int, int]) -> None:
    """Both decoders agree with protobuf on the bytes. Raises AssertionError."""
    try:
        message = XSpace.FromString(data)
    except DecodeError:
        message = None
    if message is not None and not any(plane.name for plane in message.planes):
        message = None
    max_events, max_bytes, threads = cut
    before = xspace_compiled._MAX_PART_EVENTS, xspace_compiled._MAX_PART_BYTES
    xspace_compiled._MAX_PART_EVENTS, xspace_compiled._MAX_PART_BYTES = max_events, max_bytes
    try:
        for compiled in (False, True):
            refusal = ""
            try:
                space = open_space(data, PLACE, threads, compiled=compiled)
                if message is None:
                    for plane in space.planes:
                        for _ in space.chunks(plane.lines):
                            pass
                        for _ in space.stats(plane):
                            pass
            except UnreadableFile as error:
                refusal = str(error)
            assert bool(refusal) == (message is None), (compiled, refusal)
            if message is None:
                assert refusal.startswith(f"{PLACE}: ")
                assert "that protobuf reads" not in refusal, refusal
            else:
                assert_holds(space, message)
    finally:
        xspace_compiled._MAX_PART_EVENTS, xspace_compiled._MAX_PART_BYTES = before


def examples(count: int, derandomize: bool) -> None:
    """Check that many examples. Raises the failure of the smallest that fails."""

    @hypothesis.settings(
        max_examples=count,
        derandomize=derandomize,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(spaces, cuts)
    def run(data: bytes, cut: tuple[int, int, int]) -> None:
        check(data, cut)

    run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    end = time.monotonic() + parser.parse_args().minutes * 60
    rounds = 0
    while time.monotonic() < end:
        examples(2000, derandomize=False)
        rounds += 1
        print(f"{rounds * 2000:,} examples", flush=True)


if __name__ == "__main__":
    main()
