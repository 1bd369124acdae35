"""Tables of a SQLite file read from its pages by compiled loops, without SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracewh.ingest.batches import BATCH_ROWS
from tracewh.ingest.compiled_code import BYTES, INT8S, INT64S, NUMBER, CompiledCode, load
from tracewh.ingest.content import Content
from tracewh.ingest.sqlite_records import (
    BLOB,
    DONE,
    FLOAT,
    FULL,
    INTEGER,
    LENGTH_BITS,
    MAX_DEPTH,
    MISSING,
    NULL,
    SMALL_SPILL,
    TEXT,
)

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]
Int8Array = npt.NDArray[np.int8]

_HEADER_BYTES = 100
_UTF_8 = 1
_MIN_USABLE_BYTES = 480
_SPILL_BYTES = 1 << 16
# So many pages may be in memory at a time while they are listed.
_LISTED_LEAVES = 1 << 13
_PAGES = (BYTES, NUMBER, NUMBER, NUMBER, INT64S, NUMBER)
_CELLS = (INT64S, NUMBER)
_OUTPUT = (INT64S, INT8S, INT64S, INT64S, BYTES, NUMBER, INT64S)
_SIGNATURES = {
    "list_leaves": (BYTES, NUMBER, NUMBER, INT64S, NUMBER, INT64S, INT64S),
    "read_leaves": (*_PAGES, NUMBER, *_CELLS, NUMBER, *_OUTPUT),
    "first_rowids": (BYTES, NUMBER, NUMBER, INT64S, NUMBER, INT64S, INT64S),
    "find_rows": (*_PAGES, INT64S, INT64S, NUMBER, *_CELLS, *_OUTPUT),
    "measure_texts": (INT64S, INT8S, NUMBER, NUMBER, INT64S),
    "copy_texts": (BYTES, NUMBER, BYTES, INT64S, INT8S, NUMBER, NUMBER, INT64S, BYTES),
    "read_numbers": (BYTES, INT64S, NUMBER, INT64S, INT8S),
}
_VALUE_KINDS = (INTEGER, FLOAT, TEXT, BLOB)
_SOURCES = ("sqlite_kernels.py", "sqlite_records.py")


class OddPages(Exception):
    """The pages hold something that the loops do not know: ask SQLite."""


@dataclass(frozen=True)
class RecordColumn:
    """A column to read: its position in the records, and whether it is JSON, whose `{}` reads as null."""

    position: int
    is_json: bool


class Cells:
    """Rows as they lie in the records: for each column a kind and a number for each row."""

    def __init__(self, buffer: ByteArray, columns: int, rows: int) -> None:
        self._buffer = buffer
        self.values = np.zeros((max(columns, 1), rows), np.int64)
        self.kinds = np.full((max(columns, 1), rows), NULL, np.int8)
        self.seen = np.zeros(max(columns, 1), np.int64)
        self.rowids = np.zeros(rows, np.int64)
        self.spill = np.zeros(_SPILL_BYTES, np.uint8)
        self.count = rows

    def kinds_of(self, column: int) -> set[int]:
        """Return which kinds of cells the column has, NULL aside."""
        return {kind for kind in _VALUE_KINDS if self.seen[column] >> kind & 1}

    def integers(self, column: int) -> pa.Array:
        """Return a column whose cells are INTEGER or NULL."""
        return self._numbers(column, self.values[column, : self.count])

    def floats(self, column: int) -> pa.Array:
        """Return a column whose cells are FLOAT, INTEGER or NULL."""
        values = self.values[column, : self.count]
        is_float = self.kinds[column, : self.count] == FLOAT
        return self._numbers(column, np.where(is_float, values.view(np.float64), values.astype(np.float64)))

    def bytes_of(self, column: int, kind: int) -> pa.Array:
        """Return the texts or blobs of a column whose cells are of that kind or NULL, as large_binary."""
        values, kinds = self.values[column], self.kinds[column]
        offsets = np.zeros(self.count + 1, np.int64)
        _call("measure_texts", _address(values), _address(kinds), self.count, kind, _address(offsets))
        data = np.empty(int(offsets[-1]), np.uint8)
        buffer = (_address(self._buffer), len(self._buffer), _address(self.spill))
        arrays = (_address(values), _address(kinds), self.count, kind, _address(offsets), _address(data))
        _call("copy_texts", *buffer, *arrays)
        is_null = kinds[: self.count] != kind
        mask = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
        buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), self.count, buffers)

    def python_values(self, column: int) -> list[Any]:
        """Return the cells of a column as SQLite for Python gives them, texts as bytes that are text."""
        values, kinds = self.values[column, : self.count], self.kinds[column, : self.count]
        floats = values.view(np.float64).tolist()
        found: list[Any] = []
        for kind, value, number in zip(kinds.tolist(), values.tolist(), floats, strict=True):
            if kind in (TEXT, BLOB):
                content = self._content(value)
                found.append(content.decode("utf-8", "backslashreplace") if kind == TEXT else content)
            else:
                found.append(value if kind == INTEGER else number if kind == FLOAT else None)
        return found

    def _content(self, value: int) -> bytes:
        place, length = value >> LENGTH_BITS, value & ((1 << LENGTH_BITS) - 1)
        source, place = (
            (self._buffer, place) if place < len(self._buffer) else (self.spill, place - len(self._buffer))
        )
        return source[place : place + length].tobytes()

    def _numbers(self, column: int, values: npt.NDArray[Any]) -> pa.Array:
        is_null = self.kinds[column, : self.count] == NULL
        return pa.array(values, mask=is_null) if is_null.any() else pa.array(values)

    def check(self) -> None:
        """Raise OddPages where a record lacks a column: only SQLite knows what stands for it."""
        if (self.seen >> MISSING & 1).any():
            raise OddPages


class PageFile:
    """The pages of a database of the usual kind: UTF-8, and complete in its one file."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.buffer = np.frombuffer(content.buffer, np.uint8)
        header = self.buffer[:_HEADER_BYTES].tobytes().ljust(_HEADER_BYTES, b"\0")
        page_bytes = int.from_bytes(header[16:18], "big")
        self.page_bytes = 1 << 16 if page_bytes == 1 else page_bytes
        self.usable_bytes = self.page_bytes - header[20]
        is_power_of_two = self.page_bytes >= 512 and self.page_bytes & (self.page_bytes - 1) == 0
        encoding = int.from_bytes(header[56:60], "big")
        if not is_power_of_two or self.usable_bytes < _MIN_USABLE_BYTES or encoding != _UTF_8:
            raise OddPages
        # Behind the pages that the header counts may be others, which are not of the database. The count
        # holds where the two numbers of the last change agree.
        counted = int.from_bytes(header[28:32], "big") if header[24:28] == header[92:96] else 0
        if counted:
            self.buffer = self.buffer[: counted * self.page_bytes]

    def table(self, root: int) -> TablePages:
        """Return the table whose tree begins at page `root`. Raises OddPages."""
        return TablePages(self, root)


class TablePages:
    """The leaf pages of one table; `rows` is their number of rows."""

    def __init__(self, file: PageFile, root: int) -> None:
        self._file = file
        pages = len(file.buffer) // file.page_bytes
        leaves, stack = np.zeros(pages, np.int64), np.zeros(2 * MAX_DEPTH, np.int64)
        stack[0] = root
        state = np.array([1, 0, 0, 0, FULL])
        start = (_address(file.buffer), len(file.buffer), file.page_bytes, _address(leaves))
        for until in range(_LISTED_LEAVES, pages + _LISTED_LEAVES, _LISTED_LEAVES):
            if state[4] != FULL:
                break
            _call("list_leaves", *start, min(until, pages), _address(stack), _address(state))
            file.content.forget(len(file.buffer))
        self.rows: int
        _, self._leaf_count, self.rows, _, status = state.tolist()
        if status != DONE:
            raise OddPages
        self._leaves = leaves[: self._leaf_count].copy()
        self._firsts: Int64Array | None = None

    def batches(self, columns: Sequence[RecordColumn]) -> Iterator[Cells]:
        """Read all rows, up to BATCH_ROWS at a time. Raises OddPages after the batches that are whole."""
        plan, leaf, spill_bytes = _plan(columns), 0, _SPILL_BYTES
        while leaf < self._leaf_count:
            cells = Cells(self._file.buffer, len(columns), min(BATCH_ROWS, self.rows))
            cells.spill = np.zeros(spill_bytes, np.uint8)
            result = np.zeros(4, np.int64)
            _call(
                "read_leaves",
                *self._pages(),
                *(leaf, _address(plan), len(plan) // 2, len(cells.rowids)),
                *self._output(cells, result),
            )
            status, rows, after, used = result.tolist()
            if status == SMALL_SPILL and rows == 0:
                spill_bytes = 2 * used
                continue
            if status not in (DONE, FULL, SMALL_SPILL):
                raise OddPages
            cells.count, leaf = rows, after
            cells.check()
            if rows:
                yield cells
            self._file.content.forget(len(self._file.buffer))

    def at(self, rowids: Int64Array, columns: Sequence[RecordColumn]) -> tuple[Cells, npt.NDArray[np.bool_]]:
        """Read the rows with these ids, and whether each is there; one that is not is NULL.

        Raises OddPages.
        """
        if self._firsts is None:
            self._firsts = np.zeros(max(self._leaf_count, 1), np.int64)
            result = np.zeros(1, np.int64)
            start = (_address(self._file.buffer), self._file.page_bytes, self._file.usable_bytes)
            leaves = (_address(self._leaves), self._leaf_count)
            _call("first_rowids", *start, *leaves, _address(self._firsts), _address(result))
            if result[0] != DONE:
                raise OddPages
        plan, spill_bytes = _plan(columns), _SPILL_BYTES
        rowids = np.ascontiguousarray(rowids)
        while True:
            cells = Cells(self._file.buffer, len(columns), len(rowids))
            cells.spill = np.zeros(spill_bytes, np.uint8)
            result = np.zeros(4, np.int64)
            _call(
                "find_rows",
                *self._pages(),
                *(_address(self._firsts), _address(rowids), len(rowids), _address(plan), len(plan) // 2),
                *self._output(cells, result),
            )
            status, _, _, used = result.tolist()
            if status == SMALL_SPILL:
                spill_bytes = 2 * used
                continue
            if status != DONE:
                raise OddPages
            cells.check()
            return cells, cells.rowids == rowids

    def _pages(self) -> tuple[int, ...]:
        file = self._file
        start = (_address(file.buffer), len(file.buffer), file.page_bytes, file.usable_bytes)
        return (*start, _address(self._leaves), self._leaf_count)

    def _output(self, cells: Cells, result: Int64Array) -> tuple[int, ...]:
        arrays = (cells.values, cells.kinds, cells.seen, cells.rowids, cells.spill)
        return (*(_address(array) for array in arrays), len(cells.spill), _address(result))


def numbers_in(texts: pa.Array) -> tuple[Int64Array, Int8Array]:
    """Return the number in each text and its kind: INTEGER, HEXADECIMAL, or OTHER_TEXT for no number.

    `texts` is large_string. A number that is written in an unusual way counts as a text.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    values, kinds = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int8)
    if data is not None and len(texts):
        _call("read_numbers", data.address, _address(offsets), len(texts), _address(values), _address(kinds))
    return values, kinds


def _plan(columns: Sequence[RecordColumn]) -> Int64Array:
    """For each column of the records, up to the last that is wanted: its slot, and whether it is JSON."""
    plan = np.full((max((column.position for column in columns), default=-1) + 1, 2), -1, np.int64)
    for slot, column in enumerate(columns):
        plan[column.position] = (slot, column.is_json)
    return plan.reshape(-1)


@cache
def _code() -> CompiledCode:
    folder = Path(__file__).parent
    return load([folder / name for name in _SOURCES], _SIGNATURES, _kernel_module)


def _kernel_module() -> ModuleType:
    from tracewh.ingest import sqlite_kernels

    return sqlite_kernels


def _call(name: str, *arguments: int) -> None:
    _code().function(name)(*arguments)


def _address(array: npt.NDArray[Any]) -> int:
    """Where a contiguous array begins."""
    assert array.flags.c_contiguous
    return int(array.ctypes.data)
