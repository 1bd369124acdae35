"""Reads the CSVs of ROCm's profilers into typed Arrow columns, whatever state the file is in."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT
from tracewh.ingest.rocprof_csv_lines import Shape, mend
from tracewh.ingest.rocprof_csv_values import converted

Bytes = bytes | memoryview

_BLOCK_BYTES = 4 << 20
_MAX_BLOCK_BYTES = 2**31 - 1
_HEADER_BYTES = 1 << 20
_DELIMITERS = ",;\t"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ENCODED_TEXT = pa.dictionary(pa.int32(), pa.binary())


@dataclass(frozen=True)
class Header:
    """The columns of a CSV by their plain names and as written, and where the rows begin."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str
    end: int
    lines: int

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where each column comes first."""
        return {column: at for at, column in reversed(list(enumerate(self.columns)))}


@dataclass(frozen=True)
class CsvTable:
    """The rows of one file, or some of them: columns of int64, float64 and dictionary-encoded text.

    The columns have plain names; `names` has them as written.
    """

    place: str
    table: pa.Table
    names: Mapping[str, str]

    @property
    def file(self) -> str:
        """The name of the file, as problems tell it."""
        return PurePath(self.place).name

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def has(self, column: str) -> bool:
        """Whether the file has this column."""
        return column in self.names

    def integers(self, column: str) -> pa.Array:
        """An int64 column; null where the file lacks it."""
        return self._column(column) if self.has(column) else pa.nulls(len(self), INTEGER)

    def numbers(self, column: str) -> pa.Array:
        """A float64 column; null where the file lacks it."""
        return self._column(column) if self.has(column) else pa.nulls(len(self), REAL)

    def texts(self, column: str) -> pa.DictionaryArray:
        """A text column, each distinct text once in its dictionary; null where the file lacks it."""
        if self.has(column):
            return self._column(column)
        return pa.DictionaryArray.from_arrays(pa.nulls(len(self), pa.int32()), pa.array([], TEXT))

    def where(self, keep: pa.Array) -> CsvTable:
        """The rows for which `keep` is true."""
        return CsvTable(self.place, self.table.filter(keep).combine_chunks(), self.names)

    def _column(self, column: str) -> pa.Array:
        return self.table.column(column).combine_chunks()


def plain_name(name: str) -> str:
    """The name of a column as all producers spell it: LDS_Block_Size and Lds_Block_Size are one."""
    return name.strip().lower().replace("_", "").replace(" ", "")


def read_header(place: str, head: Bytes) -> Header:
    """The first line of a CSV that is not blank, given at least that. Raises UnreadableFile."""
    text = bytes(head[:_HEADER_BYTES])
    if text.startswith(_UTF16_MARKS):
        raise UnreadableFile(f"{place}: line 1: UTF-16 text. Save the file as UTF-8, or profile again.")
    end = len(_UTF8_MARK) if text.startswith(_UTF8_MARK) else 0
    for number, line in enumerate(text[end:].split(b"\n"), 1):
        end += len(line) + 1
        header = line.decode("utf-8", "replace").strip()
        if not header:
            continue
        delimiter = max(_DELIMITERS, key=header.count)
        try:
            names = next(csv.reader([header], delimiter=delimiter, skipinitialspace=True))
        except csv.Error as error:
            raise UnreadableFile(f"{place}: line {number}: {error}. Copy the file again.") from error
        return Header(tuple(map(plain_name, names)), tuple(names), delimiter, end, number)
    raise UnreadableFile(f"{place}: line 1: the file is empty. Copy it again, or profile again.")


def read_csv(
    place: str,
    buffer: Bytes,
    type_of: Callable[[str], pa.DataType | None],
    problems: ProblemCounter,
    free_text: str | None = None,
) -> CsvTable:
    """Read the columns for which `type_of`, given the plain name, has INTEGER, REAL or TEXT.

    `free_text` is the column whose texts may hold anything. Lines with another number of cells than the
    header are rejected and counted as `invalid_csv_row`; a value of another type becomes null and is counted.
    Raises UnreadableFile where there are no columns at all.
    """
    header = read_header(place, buffer)
    file = PurePath(place).name
    types = _types(header, type_of, file, problems)
    body: Bytes = buffer[header.end :]
    table = _parsed(body, header, types, has_long_records=False)
    if table is None or _is_suspicious(table):
        free_cell = header.positions[free_text] if free_text in types else None
        shape = Shape(len(header.columns), header.delimiter.encode(), free_cell)
        found = mend(bytes(body), shape, header.lines + 1)
        for problem, detail, lines in (
            ("invalid_csv_row", f"row rejected: not {shape.cells} cells", found.rejected),
            ("repaired_csv_row", "quotes inside a text are not doubled", found.mended),
        ):
            if lines:
                problems.add(problem, file, f"line {lines[0]}: {detail}", len(lines))
        table = _parsed(found.body, header, types, has_long_records=True)
        if table is None:
            # A value of another type: the texts themselves say which.
            table = _parsed(found.body, header, dict.fromkeys(types, TEXT), has_long_records=True)
    if table is None:
        raise UnreadableFile(f"{place}: line {header.lines + 1}: not rows of a CSV. Copy the file again.")
    names = {column: header.names[header.positions[column]] for column in types}
    columns = {
        column: converted(
            table.column(column).combine_chunks(), types[column], f"{file}: {names[column]}", problems
        )
        for column in types
    }
    return CsvTable(place, pa.table(columns), names)


def _types(
    header: Header, type_of: Callable[[str], pa.DataType | None], file: str, problems: ProblemCounter
) -> dict[str, pa.DataType]:
    types: dict[str, pa.DataType] = {}
    for column, name in zip(header.columns, header.names, strict=True):
        wanted = type_of(column)
        if column in types:
            problems.add("duplicate_column", file, f"not loaded: column {name[:80]!r} comes again")
        elif wanted is None:
            problems.add("unknown_column", file, f"not loaded: column {name[:80]!r}")
        else:
            types[column] = wanted
    return types


def _parsed(
    body: Bytes, header: Header, types: Mapping[str, pa.DataType], has_long_records: bool
) -> pa.Table | None:
    """The columns of `types` by pyarrow; None where a row or a value is not as it should be.

    Records of several lines are sure to be read as such only with `has_long_records`, which is slower.
    """
    data = pa.py_buffer(body)
    if not data.size:
        return pa.table({column: pa.array([], wanted) for column, wanted in types.items()})
    # Columns are told by position, as names may come twice.
    names = [str(position) for position in range(len(header.columns))]
    read = {
        names[header.positions[column]]: _ENCODED_TEXT if wanted == TEXT else wanted
        for column, wanted in types.items()
    }
    parsing = pyarrow.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=has_long_records)
    converting = pyarrow.csv.ConvertOptions(
        check_utf8=False,
        column_types=read,
        include_columns=list(read),
        null_values=[""],
        strings_can_be_null=True,
    )
    block = _BLOCK_BYTES
    while True:
        reading = pyarrow.csv.ReadOptions(use_threads=False, block_size=block, column_names=names)
        try:
            reader = pyarrow.csv.open_csv(pa.BufferReader(data), reading, parsing, converting)
            table = reader.read_all().unify_dictionaries()
        except pa.ArrowInvalid as error:
            if "block size" not in str(error) or block >= min(data.size, _MAX_BLOCK_BYTES):
                return None
            # A line is longer than a block.
            block = min(block * 16, _MAX_BLOCK_BYTES)
            continue
        return table.rename_columns(list(types))


def _is_suspicious(table: pa.Table) -> bool:
    """Whether a text may hold what belongs to other cells or lines."""
    for column in table.columns:
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            texts = column.chunk(0).dictionary
            if any(pc.any(pc.match_substring(texts, sign)).as_py() for sign in ('"', "\n")):
                return True
    return False
