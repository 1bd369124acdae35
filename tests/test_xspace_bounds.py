"""The compiled loops stay inside the bytes they are given and the arrays they fill, whatever the bytes are.

Bytes and arrays lie against pages that may not be touched, so a step outside kills the process: that is why a
child process does it.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tracewh.ingest import xspace_wire
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_calls import EventColumns, Kernels, StatColumns
from tracewh.ingest.xspace_compiled import CompiledSpace
from tracewh.ingest.xspace_space import INT64

from .guarded_memory import GuardedMemory
from .wire_tree import DELIMITED, Node, decode, delimited, encode, field_lists, number

ROOT = Path(__file__).parents[1]
ROOM = 1 << 14
LENGTHS = [
    *((1 << 31) + near for near in (-1, 0, 1)),
    (1 << 32) - 1,
    (1 << 35) - 1,
    *((1 << 63) + near for near in (-2, -1, 0, 1)),
    (1 << 64) - 1,
    (1 << 64) - 8,
]


def small_space() -> bytes:
    """A plane with a line of events with stats of every type, and stats of its own."""
    stats = [
        delimited(4, [number(1, 1), number(7, 300)]),
        delimited(4, [number(1, 1 << 40), number(4, -1)]),
        delimited(4, [number(1, 2), delimited(5, b"text")]),
        delimited(4, [number(1, 2), delimited(5, b"x" * 130)]),
        delimited(4, [number(1, 3), Node(2, 1, b"\x00" * 8)]),
        delimited(4, [delimited(6, b"bytes"), number(1, 3)]),
        delimited(4, [number(15, 1), number(1, 3), number(3, 1 << 60)]),
    ]
    events = [
        delimited(4, [number(1, 7), number(2, 1 << 45), number(3, 9), *stats[: index % 8]])
        for index in range(9)
    ]
    line = delimited(3, [number(1, 1), delimited(2, b"line"), number(3, 5), *events, delimited(11, b"shown")])
    own = [delimited(6, [number(1, 2), delimited(5, b"own")]), delimited(6, [number(1, 2), number(4, 1)])]
    return encode([delimited(1, [delimited(2, b"/device:GPU:0"), line, *own]), delimited(4, b"host")])


# --- bytes --------------------------------------------------------------------------------------------------


def absurd(data: bytes) -> Iterator[bytes]:
    """The space with one length after the other replaced by absurd ones and by ones that are a little off."""
    tree = decode(data)
    for fields in field_lists(tree):
        for node in fields:
            if node.wire_type == DELIMITED:
                size = len(Node(1, 0, 0).encode()) + len(node.encode())
                for length in (*LENGTHS, *(max(size + near, 0) for near in range(-12, 13)), len(data)):
                    node.length = length
                    yield encode(tree)
                node.length = None


def flipped(data: bytes) -> Iterator[bytes]:
    """The bytes with bits flipped, one at a time, and with random bytes in random places."""
    for position in range(len(data)):
        for bit in (0, 7):
            yield data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]
    generator = random.Random(5)
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(generator.choice((1, 3, 20))):
            changed[generator.randrange(len(data))] = generator.choice((0, 0x7F, 0x80, 0xFF, 0x22, 0x0A))
        yield bytes(changed)


def cut(data: bytes) -> Iterator[bytes]:
    for end in range(len(data) + 1):
        yield data[:end]


def messages(data: bytes) -> Iterator[bytes]:
    """The space, its plane, its line, an event and a stat of their own."""
    plane = next(node for node in decode(data) if node.number == 1)
    line = next(node for node in plane.payload if node.number == 3)
    # The one with all stats.
    event = [node for node in line.payload if node.number == 4][7]
    for node in (plane, line, event, event.payload[-1]):
        yield encode(node.payload)
    yield data


def attack(kind: str) -> None:
    """Run all loops over bytes of that kind, against the guard pages. Called in a child process."""
    memory = GuardedMemory(ROOM)
    for message in messages(small_space()):
        for data in {"cut": cut, "flipped": flipped}[kind](message):
            run_in_rooms(memory.at_end(data))
            if kind == "cut":
                run_in_rooms(memory.at_start(data))


def attack_tails() -> None:
    """Run all loops over fields of every tag that end, or break off, where the bytes do."""
    memory = GuardedMemory(ROOM)
    events, stats = EventColumns(9), StatColumns(9)
    for tag, size, filler in itertools.product(range(128), range(10), (0x05, 0xFF)):
        tail = bytes([tag]) + bytes([filler]) * size
        for stat in (tail, b"\x08\x01" + tail):
            inside = delimited(4, stat)
            for data in (
                tail,
                delimited(4, tail).encode(),
                delimited(4, [inside]).encode(),
                delimited(6, stat).encode(),
            ):
                run_loops(memory.at_end(data), events, stats)


def attack_spaces() -> None:
    """Read whole spaces with absurd lengths from guarded bytes. Called in a child process."""
    memory = GuardedMemory(ROOM)
    for data in absurd(small_space()):
        buffer = memory.at_end(data)
        with contextlib.suppress(UnreadableFile):
            read_all(buffer)
        run_loops(buffer, EventColumns(len(data)), StatColumns(len(data)))


def read_all(buffer: npt.NDArray[np.uint8]) -> None:
    space = CompiledSpace(buffer, "x.pb")
    for plane in space.planes:
        for _ in space.chunks(plane.lines):
            pass
        for _ in space.stats(plane):
            pass


class GuardedNumpy:
    """Numpy for the callers of the loops: new arrays end at guard pages, and are reused after a while."""

    def __init__(self) -> None:
        self._memory = itertools.cycle([GuardedMemory(ROOM) for _ in range(64)])

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return next(self._memory).array(count, dtype)

    def zeros(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        made = self.empty(count, dtype)
        made[:] = 0
        return made


def run_in_rooms(buffer: npt.NDArray[np.uint8]) -> None:
    """Run the loops with more room than is needed, with a little, and with none."""
    for event_room, stat_room in ((400, 400), (2, 3), (0, 1)):
        run_loops(buffer, EventColumns(event_room), StatColumns(stat_room))


def run_loops(buffer: npt.NDArray[np.uint8], events: EventColumns, stats: StatColumns) -> None:
    kernels, end = Kernels(buffer), len(buffer)
    kernels.list_fields(0, end)
    kernels.list_fields(0, end, xspace_wire.PLANE_STATS, 2)
    for max_events, max_bytes, max_parts in ((1, 1, 1), (2, 100, 3), (1000, 1000, 32)):
        header = np.zeros(xspace_wire.HEADER_SLOTS, np.int64)
        (parts, *_), ends, counts = kernels.scan_line(0, end, header, max_events, max_bytes, max_parts)
        assert len(ends) == len(counts) == max(parts, 0) <= max_parts
        assert all(0 <= bound <= end for bound in ends)
        if parts != xspace_wire.ODD:
            assert all(0 <= bound <= end for bound in header[xspace_wire.HEADER_NAME :])
    kernels.count_stats(0, end)
    count, place, stat_count, blob_count = kernels.read_events(0, end, events, stats)
    assert count <= events.room
    assert 0 <= place <= end
    assert blob_count <= stat_count <= stats.room
    assert_spans(stats, blob_count, end)
    _, place, stat_count, blob_count = kernels.read_stats(0, end, xspace_wire.PLANE_STATS, stats)
    assert 0 <= place <= end
    assert blob_count <= stat_count <= stats.room
    assert_spans(stats, blob_count, end)


def assert_spans(stats: StatColumns, count: int, end: int) -> None:
    """What is copied later lies inside the bytes."""
    starts, ends = stats.blob_starts[: max(count, 0)], stats.blob_ends[: max(count, 0)]
    assert ((starts >= 0) & (starts <= ends) & (ends <= end)).all()


def step_outside(buffer: npt.NDArray[np.uint8]) -> None:
    """Have the loops told that the buffer is larger by a byte on each side. Called in a child process."""
    wider = np.lib.stride_tricks.as_strided(buffer, (len(buffer) + 1,), (1,))
    kernels = Kernels(wider)
    kernels.copied(np.array([0]), np.array([len(wider)]))
    kernels.copied(np.array([-1]), np.array([len(buffer)]))


def in_child(call: str) -> subprocess.CompletedProcess[str]:
    """Run a function of this module in a process of its own."""
    code = f"""
from tests.test_xspace_bounds import *
from tracewh.ingest import xspace_calls
xspace_calls.np = GuardedNumpy()
{call}
print("done")
"""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("call", ["attack('cut')", "attack('flipped')", "attack_tails()", "attack_spaces()"])
def test_no_bytes_lead_outside(call: str) -> None:
    result = in_child(call)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


@pytest.mark.parametrize("step", ["at_end(b'x' * 9)", "at_start(b'x' * 9)"])
def test_a_step_outside_is_seen(step: str) -> None:
    # What the tests above rely on, and how they would fail.
    result = in_child(f"step_outside(GuardedMemory(99).{step})")
    assert result.returncode < 0
    assert result.stdout == ""


# --- amounts ------------------------------------------------------------------------------------------------


def test_rooms_are_kept_and_more_is_told() -> None:
    data = np.frombuffer(encode(line_of(small_space())), np.uint8)
    kernels, end = Kernels(data), len(data)
    (total, _, stat_total, blob_total) = kernels.read_events(0, end, EventColumns(100), StatColumns(100))
    assert (total, stat_total, blob_total) == (9, 28, 11)
    for event_room in range(12):
        for stat_room in range(stat_total + 3):
            count = kernels.read_events(0, end, EventColumns(event_room), StatColumns(stat_room))[0]
            fits = event_room >= total and stat_room >= stat_total
            assert count == (total if fits else xspace_wire.ODD)


def line_of(data: bytes) -> list[Node]:
    plane = decode(data)[0]
    return next(node for node in plane.payload if node.number == 3).payload


def test_ten_million_stats_on_one_event() -> None:
    # Each stat is 6 bytes: its tag and length, its id, its value.
    count = 10_000_000
    stats = np.tile(np.frombuffer(b"\x22\x04\x08\x01\x20\x05", np.uint8), count).tobytes()
    event = delimited(4, stats).encode()
    data = encode([delimited(1, [delimited(2, b"p"), delimited(3, event + b"\x22\x02\x08\x07")])])
    space = CompiledSpace(np.frombuffer(data, np.uint8), "x.pb")
    (line,) = space.planes[0].lines
    first, second = (chunk for _, chunk in space.chunks([line]))
    assert line.event_count == 2
    assert len(first.stats) == count
    assert not first.stats.owner.any()
    assert (first.stats.stat_id == 1).all()
    assert (first.stats.value_type == INT64).all()
    assert (first.stats.value == 5).all()
    assert second.metadata_id.tolist() == [7]
    assert len(second.stats) == 0


def test_thousands_of_lines_planes_and_texts() -> None:
    planes = [delimited(1, delimited(2, b"p").encode() + b"\x1a\x00" * 5000), *[delimited(1)] * 5000]
    data = encode([*planes, *[delimited(2, b"e")] * 5000])
    space = CompiledSpace(np.frombuffer(data, np.uint8), "x.pb")
    assert len(space.planes) == 5001
    assert len(space.planes[0].lines) == 5000
    assert not list(space.chunks(space.planes[0].lines))
    assert space.errors == [b"e"] * 5000


@pytest.mark.parametrize(
    "unit", [b"\x7b", b"\x0a\xff\xff\xff\x0f", b"\x0a\x03", b"\x1b", b"\x22\x80"], ids=bytes.hex
)
def test_deep_garbage_is_refused(unit: bytes) -> None:
    for head in (b"", b"\x12\x01p\x1a\xc0\x9a\x0c"):
        content = head + unit * 100_000
        data = delimited(1, content).encode()
        with pytest.raises(UnreadableFile, match=r"x\.pb: "):
            read_all(np.frombuffer(data, np.uint8))
