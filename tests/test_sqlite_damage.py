"""Damaged and hostile pages: the compiled loops say what SQLite says of the bytes, or leave them to it."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tracewh.ingest import sqlite_pages
from tracewh.ingest.content import Content
from tracewh.ingest.sqlite_pages import OddPages, PageFile, RecordColumn
from tracewh.ingest.sqlite_records import BLOB, TEXT

from .guarded_memory import GuardedMemory
from .sqlite_databases import Layout, create, exact, page_rows, value

ROOT = Path(__file__).parents[1]
PAGE = 512
COLUMNS = 3
ROOM = 1 << 16
HEADER, POINTERS = 8, 12
INTERIOR, LEAF = 0x05, 0x0D


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return small_database(tmp_path_factory.mktemp("small") / "t.db")


def small_database(path: Path) -> bytes:
    """A database of a few pages: a table with an interior page, leaves and overflow pages, from page 2 on."""
    random = Random(21)
    connection = create(path, Layout(PAGE))
    connection.execute("CREATE TABLE t (a, b, c)")
    connection.execute("BEGIN")
    for number in range(50):
        long = "x" * 1500 if number == 5 else value(random, 100)
        connection.execute("INSERT INTO t VALUES (?, ?, ?)", (number << number, long, value(random, 60)))
    connection.execute("COMMIT")
    connection.close()
    data = path.read_bytes()
    assert data[PAGE] == INTERIOR
    assert int.from_bytes(data[PAGE + 3 : PAGE + 5], "big") >= 3
    return data


def agree(path: Path, data: bytes) -> str:
    """Compare what SQLite and the loops read of the table at page 2; return which of them read it."""
    path.write_bytes(data)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    # Python's sqlite3 fails to decode the message of an error that quotes damaged text.
    errors = (sqlite3.Error, UnicodeDecodeError)
    try:
        if connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchall() != [(2,)]:
            return "no table"
    except errors:
        return "no table"
    else:
        try:
            expected = connection.execute("SELECT rowid, * FROM t NOT INDEXED").fetchall()
        except errors:
            expected = None
    finally:
        connection.close()
    try:
        found = page_rows(data, 2, COLUMNS)
    except OddPages:
        return "none" if expected is None else "SQLite"
    assert expected is not None
    assert exact(found) == exact(expected)
    return "both"


def changed(data: bytes, *changes: tuple[int, bytes]) -> bytes:
    """The bytes with others in some places."""
    result = bytearray(data)
    for at, content in changes:
        result[at : at + len(content)] = content
    return bytes(result)


def page_at(page: int) -> int:
    return (page - 1) * PAGE


def two(number: int) -> bytes:
    return struct.pack(">H", number)


def four(number: int) -> bytes:
    return struct.pack(">I", number)


def number_at(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def leaves(data: bytes, root: int = 2) -> list[int]:
    """The leaf pages below an interior page."""
    start = page_at(root)
    pointers = [number_at(data, start + 12 + 2 * cell, 2) for cell in range(number_at(data, start + 3, 2))]
    return [
        *(number_at(data, start + pointer, 4) for pointer in pointers),
        number_at(data, start + 8, 4),
    ]


# --- random damage ------------------------------------------------------------------------------------------


def test_what_is_whole_both_read(tmp_path: Path, small: bytes) -> None:
    assert agree(tmp_path / "t.db", small) == "both"
    assert len(leaves(small)) >= 4


def test_files_that_are_cut(tmp_path: Path, small: bytes) -> None:
    ends = {*range(0, len(small), PAGE), *range(0, len(small), 61), *range(len(small) - 40, len(small))}
    found = {agree(tmp_path / "t.db", small[:end]) for end in ends}
    # SQLite counts the pages of the file; cut inside of its last page it reads zeros.
    assert "both" not in found


def test_cut_files_whose_header_counts_no_pages(tmp_path: Path, small: bytes) -> None:
    """As older versions wrote them: then the size of the file counts."""
    data = changed(small, (28, bytes(4)))
    assert agree(tmp_path / "t.db", data) == "both"
    ends = {*range(PAGE, len(data), PAGE), *range(PAGE, len(data), 97)}
    assert "both" not in {agree(tmp_path / "t.db", data[:end]) for end in ends}


@pytest.mark.parametrize("seed", range(4))
def test_bytes_flipped_anywhere(tmp_path: Path, small: bytes, seed: int) -> None:
    random = Random(seed)
    found = []
    for _ in range(300):
        damaged = bytearray(small)
        for _ in range(random.choice((1, 1, 2, 8, 40))):
            at = random.randrange(PAGE, len(small))
            damaged[at] = random.choice(
                (0, 1, 5, 13, 0x7F, 0x80, 0xFF, damaged[at] ^ 1 << random.randrange(8))
            )
        found.append(agree(tmp_path / "t.db", bytes(damaged)))
    assert {"both", "none"} <= set(found)


def test_each_byte_of_the_headers_of_pages(tmp_path: Path, small: bytes) -> None:
    found = set()
    for page in (2, *leaves(small)):
        for at in range(page_at(page), page_at(page) + 20):
            for byte in (0, 1, 2, 5, 10, 13, 0x7F, 0x80, 0xFF, small[at] ^ 1, small[at] ^ 0x10):
                found.add(agree(tmp_path / "t.db", changed(small, (at, bytes([byte])))))
    assert {"both", "none"} <= found


def test_each_byte_of_the_header_of_the_file(tmp_path: Path, small: bytes) -> None:
    found = set()
    for at in range(100):
        for byte in (0, 1, 2, 0x20, 0x7F, 0xFF, small[at] ^ 1, small[at] ^ 0x80):
            found.add(agree(tmp_path / "t.db", changed(small, (at, bytes([byte])))))
    assert {"both", "no table"} <= found


def test_each_byte_of_a_cell(tmp_path: Path, small: bytes) -> None:
    """Length, row id and types of a short record, and those of one with overflow pages."""
    cells = [
        page_at(page) + number_at(small, page_at(page) + HEADER + 2 * cell, 2)
        for page in leaves(small)
        for cell in range(number_at(small, page_at(page) + 3, 2))
    ]
    # A length from 128 on takes two bytes, and one that a page does not hold is larger.
    long = next(start for start in cells if small[start] >= 0x84)
    starts = [cells[0], long]
    for start in starts:
        for at in range(start, start + 14):
            for byte in range(0, 256, 3):
                agree(tmp_path / "t.db", changed(small, (at, bytes([byte]))))


# --- hostile structures -------------------------------------------------------------------------------------


def test_pages_that_lead_to_themselves(tmp_path: Path, small: bytes) -> None:
    first, second, *_ = leaves(small)
    root, path = page_at(2), tmp_path / "t.db"
    pointer = root + number_at(small, root + POINTERS, 2)
    assert agree(path, changed(small, (root + 8, four(2)))) == "none"
    assert agree(path, changed(small, (pointer, four(2)))) == "none"
    # Two interior pages, each below the other.
    header = bytes([INTERIOR, 0, 0, 0, 1, *two(PAGE - 8), 0, *four(2), *two(PAGE - 8)])
    loop = changed(small, (page_at(first), header), (page_at(first) + PAGE - 8, four(2) + b"\x05"))
    assert agree(path, loop) == "none"
    # A leaf that comes twice has its rows twice, for SQLite as well.
    assert agree(path, changed(small, (pointer, four(second)))) == "both"


def test_a_page_of_many_cells_that_all_lead_to_itself(tmp_path: Path, small: bytes) -> None:
    count = (PAGE - 8) // 6
    header = bytes([INTERIOR, 0, 0, *two(count), 0, 0, 0, *four(2)]) + two(PAGE - 8) * count
    data = changed(small, (page_at(2), header), (page_at(2) + PAGE - 8, four(2) + b"\x05"))
    assert agree(tmp_path / "t.db", data) == "none"


def test_leaves_that_come_more_often_than_there_are_pages(tmp_path: Path, small: bytes) -> None:
    count, leaf = (PAGE - 8) // 6, leaves(small)[0]
    header = bytes([INTERIOR, 0, 0, *two(count), 0, 0, 0, *four(leaf)]) + two(PAGE - 8) * count
    data = changed(small, (page_at(2), header), (page_at(2) + PAGE - 8, four(leaf) + b"\x05"))
    assert agree(tmp_path / "t.db", data) == "SQLite"


@pytest.mark.parametrize("count", [84, 85, 150])
def test_more_cells_than_a_page_can_have(tmp_path: Path, small: bytes, count: int) -> None:
    """A leaf whose cells are all the same one: SQLite takes 84 of them in 512 bytes."""
    start = page_at(leaves(small)[0])
    pointer = number_at(small, start + HEADER, 2)
    assert pointer > HEADER + 2 * count
    data = changed(small, (start + 3, two(count)), (start + HEADER, two(pointer) * count))
    assert agree(tmp_path / "t.db", data) == ("both" if count == 84 else "none")


def test_a_length_of_nine_bytes(tmp_path: Path, small: bytes) -> None:
    """SQLite reads its last byte as it reads the others, unlike that of other numbers."""
    start = page_at(leaves(small)[0])
    record = bytes([4, 1, 1, 1, 5, 6, 7])
    for last in (len(record), 0x80 | len(record), 0x90):
        cell = b"\x80" * 8 + bytes([last, 9]) + record + bytes(16)
        at = PAGE - len(cell)
        data = changed(small, (start + 3, two(1)), (start + HEADER, two(at)), (start + at, cell))
        assert agree(tmp_path / "t.db", data) in ("SQLite", "none")


@pytest.mark.parametrize("depth", [19, 20, 21, 30])
def test_trees_that_are_deeper_than_sqlite_goes(tmp_path: Path, depth: int) -> None:
    """Interior pages one below the other, each with one cell, so that one leaf comes below all of them."""
    path = tmp_path / "t.db"
    connection = create(path, Layout(PAGE))
    connection.execute("CREATE TABLE t (a, b, c)")
    connection.execute("CREATE TABLE filler (a)")
    connection.execute("INSERT INTO t VALUES (1, 2, 3)")
    connection.execute("INSERT INTO filler VALUES (zeroblob(30000))")
    connection.close()
    data = path.read_bytes()
    leaf = data[page_at(2) : page_at(3)]
    changes = [(page_at(9 + depth), leaf)]
    ways = [2, *range(10, 8 + depth), 9 + depth]
    for page, below in itertools.pairwise(ways):
        interior = bytes([INTERIOR, 0, 0, *two(1), *two(PAGE - 8), 0, *four(below), *two(PAGE - 8)])
        changes += [(page_at(page), interior), (page_at(page) + PAGE - 8, four(9 + depth) + b"\x05")]
    assert len(ways) == depth
    assert agree(path, changed(data, *changes)) == ("both" if depth <= 20 else "none")


def test_cells_anywhere(tmp_path: Path, small: bytes) -> None:
    for page in (2, leaves(small)[0], leaves(small)[-1]):
        start = page_at(page) + (POINTERS if page == 2 else HEADER)
        for pointer in {*range(0, PAGE + 20, 3), 0x7FFF, 0x8000, 0xFFFF, *range(PAGE - 12, PAGE + 2)}:
            agree(tmp_path / "t.db", changed(small, (start, two(pointer))))


def test_counts_of_cells(tmp_path: Path, small: bytes) -> None:
    for page in (2, leaves(small)[0], leaves(small)[-1]):
        for count in {*range(100), *range(240, 260), 0x7FFF, 0xFFFF}:
            agree(tmp_path / "t.db", changed(small, (page_at(page) + 3, two(count))))


def test_overflow_pages_that_lead_anywhere(tmp_path: Path, small: bytes) -> None:
    """In a circle, to no page, to pages of other kinds, to the end of the file."""
    pages = len(small) // PAGE
    chained = [page for page in range(3, pages + 1) if b"x" * 400 in small[page_at(page) : page_at(page + 1)]]
    assert len(chained) >= 2
    found = set()
    for page in chained:
        for target in (*range(pages + 3), 0x7FFFFFFF, 0xFFFFFFFF, page):
            found.add(agree(tmp_path / "t.db", changed(small, (page_at(page), four(target)))))
    assert {"both", "none"} <= found


def test_bits_that_are_no_number(tmp_path: Path) -> None:
    """SQLite stores none of them, and takes one that is there for null."""
    path = tmp_path / "t.db"
    connection = create(path, Layout(PAGE))
    connection.execute("CREATE TABLE t (a, b, c)")
    connection.execute("INSERT INTO t VALUES (1.5, -2.5, 3.5)")
    connection.close()
    data = path.read_bytes()
    at = data.index(struct.pack(">d", 1.5))
    for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF << 52) + 1, 0x7FF << 52, 0xFFF << 52, 2**64 - 1, 1 << 63):
        assert agree(path, changed(data, (at, struct.pack(">Q", bits)))) == "both"


# --- memory -------------------------------------------------------------------------------------------------


class GuardedNumpy:
    """Numpy for the callers of the loops: new arrays end at pages that may not be touched."""

    def __init__(self) -> None:
        self._memory = itertools.cycle([GuardedMemory(ROOM) for _ in range(64)])

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        count = int(np.prod(shape))
        return next(self._memory).array(count, dtype).reshape(shape)

    def zeros(self, shape: Any, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        return self.full(shape, 0, dtype)

    def full(self, shape: Any, filler: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        made = self.empty(shape, dtype)
        made[...] = filler
        return made

    def array(self, values: Any, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        made = self.empty(len(values), dtype)
        made[:] = values
        return made


class GuardedContent(Content):
    """Bytes that end, or begin, at a page that may not be touched."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        super().__init__(b"")
        self.buffer = memoryview(data)


def read_everything(data: npt.NDArray[np.uint8]) -> None:
    """Run all loops over a database. Called in a child process."""
    wanted = [RecordColumn(0, False), RecordColumn(2, True)]
    rowids = np.array([3, 1, 2, 30, -1, 24, 12, 2**63 - 1, -(2**63)])
    for root in (1, 2, 3, 0, -1, 2**31 - 1):
        with contextlib.suppress(OddPages):
            pages = PageFile(GuardedContent(data)).table(root)
            with contextlib.suppress(OddPages):
                for cells in pages.batches(wanted):
                    for column, kind in itertools.product(range(2), (TEXT, BLOB)):
                        cells.bytes_of(column, kind)
            pages.at(rowids, wanted)


def cut(data: bytes) -> Iterator[bytes]:
    yield from (data[:end] for end in range(0, len(data), 7))
    # Without the count of pages in the header.
    data = changed(data, (28, bytes(4)))
    yield from (data[:end] for end in range(PAGE, len(data) + 1, 31))


def flipped(data: bytes) -> Iterator[bytes]:
    for at, byte in itertools.product(range(PAGE, 3 * PAGE), (0, 0x7F, 0x80, 0xFF)):
        yield changed(data, (at, bytes([byte])))
    random = Random(22)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(random.choice((1, 3, 20))):
            damaged[random.randrange(len(data))] = random.choice((0, 1, 5, 13, 0x7F, 0x80, 0xFF))
        yield bytes(damaged)


def tails(data: bytes) -> Iterator[bytes]:
    """Pages of both kinds at the end of the file, whose last cell breaks off there."""
    last = len(data) // PAGE + 1
    data = changed(data, (28, bytes(4)), (page_at(2) + 8, four(last)))
    # Lengths of a record that its page holds, or not; a record that ends in its types; padded numbers.
    starts = (
        "01 01 09",
        "02 01 02 06",
        "7f 01 04",
        "8768 01 04",
        "8768 01 04 0d",
        "ff" * 9,
        "80" * 8 + "01 01",
    )
    for start, size in itertools.product(map(bytes.fromhex, starts), range(1, 60)):
        header = bytes([LEAF, 0, 0, *two(1), *two(PAGE - size), 0, *two(PAGE - size)])
        cell = (start + b"\x01" * size)[:size]
        yield data + header.ljust(PAGE - size, b"\0") + cell
    for pointer in range(PAGE - 6, PAGE + 4):
        yield data + bytes([INTERIOR, 0, 0, *two(1), 0, 0, 0, *four(3), *two(pointer)]).ljust(PAGE, b"\0")


def larger(data: bytes) -> Iterator[bytes]:
    """Other sizes of pages, and of what is reserved of them, than those that the file was made with."""
    for size, reserved in itertools.product((512, 1024, 2048, 4096, 1), (0, 1, 32, 33, 255)):
        yield changed(data, (16, two(size)), (20, bytes([reserved])))


def attack(kind: Callable[[bytes], Iterator[bytes]], folder: str) -> None:
    """Read databases of a kind at both ends of guarded memory. Called in a child process."""
    memory = GuardedMemory(ROOM)
    for data in kind(small_database(Path(folder) / "t.db")):
        read_everything(memory.at_end(data))
        if kind is not flipped:
            read_everything(memory.at_start(data))


def step_outside() -> None:
    """Have a loop told that the buffer is larger by a byte than it is. Called in a child process."""
    buffer = GuardedMemory(99).at_end(bytes(PAGE))
    start, count = buffer.ctypes.data, np.zeros(2, np.int64)
    kinds, values = np.array([TEXT], np.int8), np.array([PAGE << 24 | 1])
    data = np.zeros(8, np.uint8)
    sqlite_pages._call(
        "copy_texts", start, PAGE + 1, start, values.ctypes.data, kinds.ctypes.data, 1, TEXT,
        count.ctypes.data, data.ctypes.data,
    )  # fmt: skip


def in_child(call: str) -> subprocess.CompletedProcess[str]:
    """Run a function of this module in a process of its own."""
    code = f"""
from tests.test_sqlite_damage import *
sqlite_pages.np = GuardedNumpy()
sqlite_pages._SPILL_BYTES = 64
{call}
print("done")
"""
    arguments = [sys.executable, "-c", code]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("kind", ["cut", "flipped", "larger", "tails"])
def test_no_bytes_lead_outside(tmp_path: Path, kind: str) -> None:
    result = in_child(f"attack({kind}, {str(tmp_path)!r})")
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_a_step_outside_is_seen() -> None:
    # What the tests above rely on, and how they would fail.
    result = in_child("step_outside()")
    assert result.returncode < 0
    assert result.stdout == ""
