"""SQLite databases of every layout, and what SQLite itself says that they hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tracewh.ingest.content import Content
from tracewh.ingest.sqlite_pages import PageFile, RecordColumn

WIDTHS = (7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 62, 63)
INTEGERS = [
    value
    for width in WIDTHS
    for near in (-1, 0, 1)
    for value in ((1 << width) + near, -(1 << width) + near)
    if -(2**63) <= value < 2**63
]
FLOATS = [0.5, -0.0, 1.0, -3.0, 1e300, -1e-300, 5e-324, 2.0**53 + 2, 2.0**63, float("inf"), float("-inf")]
TEXTS = ["", "a", "{}", "{} ", "[]", "12", "-7.5", "é", "日本語", "a\0b", "0x1f", "nan", "x" * 127, "y" * 128]


@dataclass(frozen=True)
class Layout:
    """What a database file is like apart from its rows."""

    page_bytes: int = 4096
    reserved_bytes: int = 0
    auto_vacuum: str = "NONE"
    encoding: str = "UTF-8"


def create(path: Path, layout: Layout = Layout()) -> sqlite3.Connection:
    """Return a connection to a new database; the caller closes it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {layout.page_bytes}")
    connection.execute(f"PRAGMA auto_vacuum = {layout.auto_vacuum}")
    connection.execute(f"PRAGMA encoding = '{layout.encoding}'")
    if layout.reserved_bytes:
        _reserve(connection, path, layout)
        connection.close()
        connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def _reserve(connection: sqlite3.Connection, path: Path, layout: Layout) -> None:
    """Reserve the end of every page, as extensions do that encrypt or add a checksum."""
    connection.execute("CREATE TABLE first (a)")
    connection.execute("DROP TABLE first")
    connection.execute("VACUUM")
    content = bytearray(path.read_bytes())
    assert len(content) == layout.page_bytes
    content[20] = layout.reserved_bytes
    # Where the cells of the only page begin, of which there are none.
    content[105:107] = (layout.page_bytes - layout.reserved_bytes & 0xFFFF).to_bytes(2, "big")
    path.write_bytes(content)


def value(random: Random, page_bytes: int) -> Any:
    """Return a value of any type: numbers of every width, texts and blobs that fill pages or do not."""
    kind = random.randrange(8)
    if kind == 0:
        return None
    if kind in (1, 2):
        return random.choice(INTEGERS)
    if kind == 3:
        return random.choice((0, 1))
    if kind == 4:
        return random.choice(FLOATS)
    if kind == 5:
        return random.choice(TEXTS)
    size = random.choice((0, 1, 2, 60, page_bytes // 8 + random.randrange(4), random.randrange(page_bytes)))
    if random.random() < 0.05:
        size = random.randrange(page_bytes, 6 * page_bytes)
    content = random.randbytes(size)
    return content if kind == 6 else content.hex()[:size]


def sqlite_rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, texts as the reader has them where they are no UTF-8."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def root_page(path: Path, table: str) -> int:
    """Return the page at which the tree of a table begins."""
    ((root,),) = sqlite_rows(path, f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'")
    return int(root)


def page_rows(data: bytes, root: int, columns: int) -> list[tuple[Any, ...]]:
    """Return row ids and values as the compiled loops read them from a database. Raises OddPages."""
    pages = PageFile(Content(data)).table(root)
    rows: list[tuple[Any, ...]] = []
    wanted = [RecordColumn(position, False) for position in range(columns)]
    for cells in pages.batches(wanted):
        texts = (cells.python_values(position) for position in range(columns))
        rows += zip(cells.rowids[: cells.count].tolist(), *texts, strict=True)
    assert len(rows) == pages.rows
    return rows


def exact(rows: Iterable[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Return rows that are equal only where types and signs are, too."""
    return [tuple(map(repr, row)) for row in rows]
