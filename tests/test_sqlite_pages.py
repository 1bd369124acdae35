"""The compiled loops over SQLite pages against SQLite itself, on databases of every layout."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tracewh.ingest import sqlite_pages
from tracewh.ingest.content import Content
from tracewh.ingest.rocm_arguments import number_in
from tracewh.ingest.sqlite_pages import OddPages, PageFile, RecordColumn, TablePages, numbers_in
from tracewh.ingest.sqlite_records import BLOB, FLOAT, INTEGER, TEXT

from .sqlite_databases import (
    FLOATS,
    INTEGERS,
    TEXTS,
    Layout,
    create,
    exact,
    page_rows,
    root_page,
    sqlite_rows,
    value,
)

MIB = 1 << 20
LAYOUTS = [
    *(Layout(page_bytes=1 << power) for power in range(9, 17)),
    *(Layout(page_bytes=512, reserved_bytes=reserved) for reserved in (1, 8, 32)),
    *(Layout(page_bytes=4096, reserved_bytes=reserved) for reserved in (12, 255)),
    Layout(page_bytes=65536, reserved_bytes=16),
    *(Layout(page_bytes=1024, auto_vacuum=mode) for mode in ("FULL", "INCREMENTAL")),
]
NAMES = "abcdef"
USUAL = Layout()


def columns(count: int) -> list[RecordColumn]:
    return [RecordColumn(position, is_json=False) for position in range(count)]


def write(path: Path, rows: list[tuple[Any, ...]], layout: Layout = USUAL) -> Path:
    """Write a table of untyped columns, which keep each value as it is given."""
    connection = create(path, layout)
    names = ", ".join(NAMES[: len(rows[0])])
    marks = ", ".join("?" for _ in rows[0])
    connection.execute(f"CREATE TABLE t ({names})")
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO t VALUES ({marks})", rows)
    connection.execute("COMMIT")
    connection.close()
    return path


def check(path: Path, count: int, table: str = "t") -> list[tuple[Any, ...]]:
    """Compare the rows of a table, and return them."""
    expected = sqlite_rows(path, f"SELECT rowid, * FROM {table}")
    assert exact(page_rows(path.read_bytes(), root_page(path, table), count)) == exact(expected)
    return expected


def open_table(path: Path, table: str = "t") -> TablePages:
    return PageFile(Content(path.read_bytes())).table(root_page(path, table))


def depth_of(data: bytes, root: int, page_bytes: int) -> int:
    """Return how many pages of a table lie above each other, by way of the last child of each."""
    header = (root - 1) * page_bytes
    if data[header] == 0x0D:
        return 1
    return 1 + depth_of(data, int.from_bytes(data[header + 8 : header + 12], "big"), page_bytes)


# --- layouts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_values_of_every_kind(tmp_path: Path, layout: Layout) -> None:
    random = Random(layout.page_bytes + layout.reserved_bytes)
    rows = [tuple(value(random, layout.page_bytes) for _ in NAMES) for _ in range(300)]
    path = write(tmp_path / "t.db", rows, layout)
    assert path.read_bytes()[20] == layout.reserved_bytes
    check(path, len(NAMES))


def test_numbers_of_every_width(tmp_path: Path) -> None:
    values = [*INTEGERS, 0, 1, -1, *FLOATS, -(2**63), 2**63 - 1, *TEXTS, b"", b"\0", None]
    rows = check(write(tmp_path / "t.db", [(one, other) for one, other in itertools.pairwise(values)]), 2)
    assert exact(row[1:] for row in rows) == exact(itertools.pairwise(values))


@pytest.mark.parametrize("layout", [Layout(512), Layout(512, reserved_bytes=32), Layout(1024)], ids=str)
def test_every_length_around_what_a_page_holds(tmp_path: Path, layout: Layout) -> None:
    """A record in its page, or with 1, 2 and more pages behind it."""
    lengths = range(4 * layout.page_bytes + 100)
    rows = [(bytes([length % 251]) * length, length) for length in lengths]
    check(write(tmp_path / "t.db", rows, layout), 2)


def test_texts_that_are_no_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    connection = create(path)
    connection.execute("CREATE TABLE t (a, b)")
    spelled = ("ff", "68ff", "c3", "eda080", "f0908080", "f8888080", "c080", "e697a5ff")
    for text in spelled:
        connection.execute(f"INSERT INTO t VALUES (CAST(X'{text}' AS TEXT), 'é')")
    connection.close()
    rows = check(path, 2)
    assert rows[1] == (2, "h\\xff", "é")
    with pytest.raises(pa.ArrowInvalid):
        next(open_table(path).batches(columns(1))).bytes_of(0, TEXT).cast(pa.large_string())


def test_deep_trees(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [(number, "x" * 300) for number in range(9000)], Layout(512))
    assert depth_of(path.read_bytes(), root_page(path, "t"), 512) >= 4
    check(path, 2)
    rowids = np.arange(9000, 0, -1)
    cells, is_found = open_table(path).at(rowids, columns(2))
    assert is_found.all()
    assert cells.integers(0).to_pylist() == list(range(8999, -1, -1))


@pytest.mark.parametrize("auto_vacuum", ["NONE", "FULL", "INCREMENTAL"])
@pytest.mark.parametrize("is_vacuumed", [False, True])
def test_deleted_rows_and_free_pages(tmp_path: Path, auto_vacuum: str, is_vacuumed: bool) -> None:
    random = Random(3)
    rows = [(number, value(random, 1024)) for number in range(2000)]
    path = write(tmp_path / "t.db", rows, Layout(1024, auto_vacuum=auto_vacuum))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE other (a)")
    connection.execute("INSERT INTO other SELECT b FROM t WHERE a % 3 = 0")
    connection.execute("DELETE FROM t WHERE a % 5 <> 1 AND a < 1500")
    connection.execute("UPDATE t SET b = zeroblob(a) WHERE a % 7 = 0")
    connection.execute("DELETE FROM other WHERE rowid > 100")
    if is_vacuumed:
        connection.execute("VACUUM")
    connection.close()
    check(path, 2)
    check(path, 1, "other")


def test_pages_behind_the_last_one_are_not_of_the_database(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [(1,), (2,)])
    path.write_bytes(path.read_bytes() + b"\x0d" * 8192)
    assert len(check(path, 1)) == 2


def test_row_ids_of_any_number(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    connection = create(path, Layout(512))
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    edges = [sign * (1 << width) + near for width in range(64) for sign in (1, -1) for near in (-1, 0, 1)]
    rowids = sorted({edge for edge in edges if -(2**63) <= edge < 2**63})
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(rowid, str(rowid)) for rowid in rowids])
    connection.close()
    # A record has no value for the number of its row.
    found = page_rows(path.read_bytes(), root_page(path, "t"), 2)
    assert found == [(rowid, None, str(rowid)) for rowid in rowids]
    wanted = [*reversed(rowids), 5_000, *rowids, -5_000, rowids[7], rowids[7]]
    cells, is_found = open_table(path).at(np.array(wanted), columns(2))
    assert is_found.tolist() == [rowid in rowids for rowid in wanted]
    assert cells.python_values(1) == [str(rowid) if rowid in rowids else None for rowid in wanted]


def test_empty_table_and_one_row(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [("one",)])
    assert check(path, 1) == [(1, "one")]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM t")
    connection.close()
    assert check(path, 1) == []
    pages = open_table(path)
    assert (pages.rows, list(pages.batches(columns(1)))) == (0, [])
    cells, is_found = pages.at(np.array([1, 0, -1]), columns(1))
    assert (is_found.tolist(), cells.python_values(0)) == ([False] * 3, [None] * 3)


def test_primary_key_that_is_no_row_id(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    connection = create(path)
    for number, declared in enumerate(("INT PRIMARY KEY", "INTEGER PRIMARY KEY DESC")):
        connection.execute(f"CREATE TABLE t{number} (a {declared}, b)")
        connection.execute(f"INSERT INTO t{number} VALUES (70, 'x'), (-5, 'y')")
    connection.close()
    for table in ("t0", "t1"):
        assert check(path, 2, table) == [(1, 70, "x"), (2, -5, "y")]


# --- what SQLite has to read --------------------------------------------------------------------------------


def test_tables_that_are_left_to_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    connection = create(path)
    connection.execute("CREATE TABLE sorted (a PRIMARY KEY, b) WITHOUT ROWID")
    connection.execute("INSERT INTO sorted VALUES (1, 2)")
    connection.execute("CREATE TABLE added (a)")
    connection.execute("INSERT INTO added VALUES (1)")
    connection.execute("ALTER TABLE added ADD COLUMN b DEFAULT 'later'")
    connection.execute("INSERT INTO added VALUES (2, 'now')")
    connection.execute("CREATE TABLE long (a)")
    connection.execute(f"INSERT INTO long VALUES (zeroblob({16 * MIB - 1})), (zeroblob({16 * MIB}))")
    connection.close()
    data = path.read_bytes()
    for table, count in (("sorted", 2), ("added", 2), ("long", 1)):
        with pytest.raises(OddPages):
            page_rows(data, root_page(path, table), count)
    assert page_rows(data, root_page(path, "added"), 1) == [(1, 1), (2, 2)]
    with pytest.raises(OddPages):
        open_table(path, "added").at(np.array([2, 1]), columns(2))
    assert open_table(path, "added").at(np.array([2]), columns(2))[0].python_values(1) == ["now"]
    # 24 bits hold the length of the first.
    cells, is_found = open_table(path, "long").at(np.array([1]), columns(1))
    assert (len(cells.python_values(0)[0]), is_found.tolist()) == (16 * MIB - 1, [True])


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_other_encodings_are_left_to_sqlite(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "t.db", [("é",)], Layout(encoding=encoding))
    with pytest.raises(OddPages):
        PageFile(Content(path.read_bytes()))


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0", bytes(100), b"\xff" * 4096], ids=len)
def test_bytes_that_are_no_database(data: bytes) -> None:
    with pytest.raises(OddPages):
        PageFile(Content(data)).table(1)


# --- parts of a table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [40, 41, 64, 1000])
def test_batches_are_whole_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int) -> None:
    random = Random(11)
    path = write(tmp_path / "t.db", [(number, value(random, 512)) for number in range(700)], Layout(512))
    monkeypatch.setattr(sqlite_pages, "BATCH_ROWS", batch_rows)
    check(path, 2)
    counts = [cells.count for cells in open_table(path).batches(columns(2))]
    assert sum(counts) == 700
    assert max(counts) <= batch_rows


def test_a_leaf_with_more_rows_than_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.db", [(number,) for number in range(100)])
    monkeypatch.setattr(sqlite_pages, "BATCH_ROWS", 99)
    with pytest.raises(OddPages):
        page_rows(path.read_bytes(), root_page(path, "t"), 1)


def test_only_some_columns(tmp_path: Path) -> None:
    random = Random(12)
    rows = [tuple(value(random, 512) for _ in NAMES) for _ in range(200)]
    path = write(tmp_path / "t.db", rows, Layout(512))
    for chosen in ((5,), (0, 3), (4, 1), (), (2, 2)[:1]):
        found = []
        for cells in open_table(path).batches([RecordColumn(position, False) for position in chosen]):
            found += zip(*(cells.python_values(slot) for slot in range(len(chosen))), strict=True)
        assert exact(found) == exact(tuple(row[position] for position in chosen) for row in rows if chosen)


def test_long_texts_are_more_than_there_is_room_for_at_first(tmp_path: Path) -> None:
    sizes = [10, 60_000, 7, 5_000, 200_000, 3 * MIB, 5, 65_536, 65_537, 100]
    rows = [(bytes([number]) * size, str(number) * size) for number, size in enumerate(sizes)]
    path = write(tmp_path / "t.db", rows, Layout(65536))
    check(path, 2)
    wanted = np.array([6, 1, 6, 99, 5, 2])
    cells, is_found = open_table(path).at(wanted, columns(2))
    assert is_found.tolist() == [True, True, True, False, True, True]
    assert [len(found or b"") for found in cells.python_values(0)] == [
        3 * MIB,
        10,
        3 * MIB,
        0,
        200_000,
        60_000,
    ]
    assert cells.bytes_of(0, BLOB).to_pylist() == cells.python_values(0)
    assert cells.bytes_of(1, TEXT).cast(pa.large_string()).to_pylist() == cells.python_values(1)


@pytest.mark.parametrize("layout", [Layout(512), Layout(4096)], ids=str)
def test_rows_by_their_ids(tmp_path: Path, layout: Layout) -> None:
    """In any order, some of them absent, some asked for twice."""
    random = Random(13)
    path = write(tmp_path / "t.db", [(number, value(random, 512)) for number in range(1500)], layout)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM t WHERE rowid % 4 = 0 OR rowid BETWEEN 300 AND 700")
    connection.close()
    stored = {rowid: row for rowid, *row in check(path, 2)}
    pages = open_table(path)
    everything = list(range(-5, 1510))
    shuffled = random.sample(everything, len(everything))
    twice = random.choices(everything, k=3000)
    for wanted in (everything, everything[::-1], shuffled, twice, [1], [], [2**63 - 1, -(2**63)]):
        cells, is_found = pages.at(np.array(wanted, np.int64), columns(2))
        assert is_found.tolist() == [rowid in stored for rowid in wanted]
        found = zip(cells.python_values(0), cells.python_values(1), strict=True)
        assert exact(found) == exact(tuple(stored.get(rowid, (None, None))) for rowid in wanted)


# --- columns as arrays --------------------------------------------------------------------------------------


def test_columns_as_arrays(tmp_path: Path) -> None:
    rows = [
        (7, 1.5, "a", b"\0"),
        (None, 2, None, None),
        (-(2**63), None, "", b""),
        (2**63 - 1, -0.0, "日本語", b"x" * 600),
        (0, 2**53 + 1, "y" * 900, b"z"),
    ]
    (cells,) = open_table(write(tmp_path / "t.db", rows, Layout(512))).batches(columns(4))
    kinds = [cells.kinds_of(column) for column in range(4)]
    assert kinds == [{INTEGER}, {INTEGER, FLOAT}, {TEXT}, {BLOB}]
    assert cells.integers(0).equals(pa.array([row[0] for row in rows], pa.int64()))
    assert repr(cells.floats(1).to_pylist()) == "[1.5, 2.0, None, -0.0, 9007199254740992.0]"
    assert cells.floats(1).type == pa.float64()
    assert cells.bytes_of(2, TEXT).cast(pa.large_string()).to_pylist() == [row[2] for row in rows]
    assert cells.bytes_of(3, BLOB).equals(pa.array([row[3] for row in rows], pa.large_binary()))


def test_the_empty_object_of_a_json_column_is_null(tmp_path: Path) -> None:
    texts = ["{}", "{} ", "{}}", "[]", "{", None, 5, b"{}", "{" + "x" * 600]
    path = write(tmp_path / "t.db", [(text, text) for text in texts], Layout(512))
    (cells,) = open_table(path).batches([RecordColumn(0, is_json=True), RecordColumn(1, is_json=False)])
    # As SQLite has it, where a blob is no text.
    expected = sqlite_rows(path, "SELECT NULLIF(a, '{}'), b FROM t")
    assert exact(zip(cells.python_values(0), cells.python_values(1), strict=True)) == exact(expected)
    assert cells.python_values(0)[0] is None


# --- numbers in texts ---------------------------------------------------------------------------------------


def test_numbers_in_texts_are_those_that_python_tells() -> None:
    random = Random(14)
    texts = [
        *("0", "-0", "00", "7", "-7", "+7", " 7", "7 ", "", "-", "--1", "1.0", "1e3", "٣"),
        *("0x", "0x0", "0x00", "0x1", "0X1", "0xG", "0xf", "0xF", "-0x1", "x1", "0x0f", "1x2"),
        *(str(near) for power in (17, 18, 19, 63, 64) for near in (10**power - 1, 10**power, -(10**power))),
        *(hex((1 << bits) + near) for bits in (1, 62, 63, 64, 65) for near in (-1, 0, 1)),
        *("".join(random.choices("0123456789abcdefx-+ .", k=random.randrange(20))) for _ in range(5000)),
        *(str(random.randrange(-(2**63), 2**63)) for _ in range(1000)),
        *(hex(random.randrange(2**64)) for _ in range(1000)),
    ]
    for array in (pa.array(texts, pa.large_string()), pa.array(["0x5", *texts], pa.large_string())[1:]):
        numbers, kinds = numbers_in(array)
        expected = [number_in(text) for text in texts]
        assert kinds.tolist() == [kind for _, kind in expected]
        assert [number % 2**64 for number in numbers.tolist()] == [number for number, _ in expected]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_numbers_in_no_text(texts: list[str]) -> None:
    numbers, kinds = numbers_in(pa.array(texts, pa.large_string()))
    assert (numbers.tolist(), kinds.tolist()) == ([0] * len(texts), [0] * len(texts))
