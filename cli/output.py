"""The formats in which `tracewh sql` writes a result. All of them stream: a result need not fit in memory."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from tracewh.cli.json_text import json_text
from tracewh.cli.table import NULL_TEXT, Header, printable, style_for, write_table
from tracewh.ingest.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyRelation

BATCH_ROWS = 10_000
# Rows of a Parquet row group: DuckDB's own size, which it reads in parallel.
PARQUET_BATCH_ROWS = 122_880

SUFFIX_FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "ndjson",
    ".md": "markdown",
    ".ndjson": "ndjson",
    ".parquet": "parquet",
}
_NUMBER_TYPES = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\))")
# DuckDB hands these to Arrow wrapped around, in an encoding of its own, or as a type that Parquet lacks.
_NOT_IN_ARROW = ("UHUGEINT", "BIT", "INTERVAL")
_CSV_QUOTED = r'[",\r\n]|^\s|\s$|^$'
_MARKDOWN_SYNTAX = re.compile(r"[\\`*{}\[\]<>|~&#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def write_result(relation: DuckDBPyRelation, format_name: str, path: Path | None) -> int:
    """Write a result to a file, or to stdout where `path` is None, and return its number of rows.

    A file appears, or is replaced, only when all of the result is written. Raises QueryError when the format
    has no place for a value, and what DuckDB raises when the query fails while it runs.
    """
    if format_name == "parquet":
        return _write_parquet(relation, path)
    write = _TEXT_WRITERS[format_name]
    if path is None:
        return write(relation, sys.stdout)
    with replacing(path) as target, open(target, "w", encoding="utf-8", newline="") as stream:
        return write(relation, stream)


def _write_table(relation: DuckDBPyRelation, stream: TextIO) -> int:
    headers = [
        Header(name, is_number)
        for name, is_number in zip(relation.columns, _are_numbers(relation), strict=True)
    ]
    with _rows(relation, as_text=True) as rows:
        return write_table(headers, rows, stream, style_for(stream))


def _write_csv(relation: DuckDBPyRelation, stream: TextIO) -> int:
    import pyarrow as pa

    header = _csv_lines([pa.array([name]) for name in relation.columns])
    with _batches(relation, as_text=True) as batches:
        stream.write(header)
        count = 0
        for batch in batches:
            stream.write(_csv_lines(batch.columns))
            count += batch.num_rows
        return count


def _csv_lines(columns: Sequence[pa.Array]) -> str:
    """The lines of a batch of text columns. NULL is empty, and the empty string is ""."""
    from pyarrow import compute

    fields = []
    for column in columns:
        quoted = compute.binary_join_element_wise('"', compute.replace_substring(column, '"', '""'), '"', "")
        needs_quotes = compute.match_substring_regex(column, _CSV_QUOTED)
        fields.append(compute.fill_null(compute.if_else(needs_quotes, quoted, column), ""))
    lines = compute.binary_join_element_wise(*fields, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines)


def _write_markdown(relation: DuckDBPyRelation, stream: TextIO) -> int:
    alignments = ["---:" if is_number else "---" for is_number in _are_numbers(relation)]
    header = _markdown_line(relation.columns) + "| " + " | ".join(alignments) + " |\n"
    with _rows(relation, as_text=True) as rows:
        stream.write(header)
        return _write_each(map(_markdown_line, rows), stream)


def _markdown_line(row: Sequence[str | None]) -> str:
    return "| " + " | ".join(map(markdown_cell, row)) + " |\n"


def markdown_cell(text: str | None) -> str:
    """`text` as a cell of a Markdown table, with what Markdown would read as syntax escaped."""
    if text is None:
        return NULL_TEXT
    escaped = _MARKDOWN_SYNTAX.sub(lambda match: "\\" + match[0], printable(text))
    return escaped.replace("\n", "<br>")


def _write_json(relation: DuckDBPyRelation, stream: TextIO) -> int:
    separator = "[\n"
    count = 0
    with _json_records(relation) as records:
        for record in records:
            stream.write(separator + record)
            separator = ",\n"
            count += 1
        stream.write("\n]\n" if count else "[]\n")
    return count


def _write_ndjson(relation: DuckDBPyRelation, stream: TextIO) -> int:
    with _json_records(relation) as records:
        return _write_each((record + "\n" for record in records), stream)


_TEXT_WRITERS: dict[str, Callable[[DuckDBPyRelation, TextIO], int]] = {
    "table": _write_table,
    "csv": _write_csv,
    "json": _write_json,
    "ndjson": _write_ndjson,
    "markdown": _write_markdown,
}
FORMATS = (*_TEXT_WRITERS, "parquet")


def _write_each(lines: Iterable[str], stream: TextIO) -> int:
    count = 0
    for line in lines:
        stream.write(line)
        count += 1
    return count


def _are_numbers(relation: DuckDBPyRelation) -> list[bool]:
    return [_NUMBER_TYPES.fullmatch(str(kind)) is not None for kind in relation.types]


@contextmanager
def _batches(relation: DuckDBPyRelation, *, as_text: bool) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows in batches, typed or as DuckDB's own text; the connection is busy until the block ends.

    The text keeps what Python's types lose: nanoseconds, months, infinity.
    """
    source = relation.project("CAST(COLUMNS(*) AS VARCHAR)") if as_text else relation
    with source.to_arrow_reader(BATCH_ROWS) as reader:
        batches = iter(reader)
        # The first batch is read now, so that a query that fails at once has written nothing.
        first = next(batches, None)
        yield batches if first is None else chain([first], batches)


@contextmanager
def _rows(relation: DuckDBPyRelation, *, as_text: bool) -> Iterator[Iterator[tuple[Any, ...]]]:
    with _batches(relation, as_text=as_text) as batches:
        yield (row for batch in batches for row in zip(*map(_plain_values, batch.columns), strict=True))


@contextmanager
def _json_records(relation: DuckDBPyRelation) -> Iterator[Iterator[str]]:
    """One JSON object per row. Numbers keep every digit; NaN and infinity, which JSON lacks, become null."""
    _refuse_types_without_arrow(relation)
    keys = [json_text(name) + ": " for name in _distinct(relation.columns)]
    with _rows(relation, as_text=False) as rows:
        yield (
            "{" + ", ".join(key + json_text(value) for key, value in zip(keys, row, strict=True)) + "}"
            for row in rows
        )


def _plain_values(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    try:
        if pa.types.is_temporal(column.type):
            # Through text: Python's types end at microseconds and at the year 9999.
            column = column.cast(pa.string())
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (OverflowError, ValueError) as error:
        raise QueryError(f"A value has no JSON form ({error}); cast its column to VARCHAR.") from error
    return values


def _write_parquet(relation: DuckDBPyRelation, path: Path | None) -> int:
    if path is None:
        return _write_parquet_to(relation, sys.stdout.buffer)
    with replacing(path) as target, open(target, "wb") as stream:
        return _write_parquet_to(relation, stream)


def _write_parquet_to(relation: DuckDBPyRelation, stream: IO[bytes]) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    _refuse_types_without_arrow(relation)
    names = _distinct(relation.columns)
    count = 0
    try:
        with relation.to_arrow_reader(PARQUET_BATCH_ROWS) as reader:
            fields = [field.with_name(name) for field, name in zip(reader.schema, names, strict=True)]
            schema = pa.schema(fields)
            with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                    count += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise QueryError(f"Parquet has no form for a column ({error}); cast it to VARCHAR.") from error
    return count


def _refuse_types_without_arrow(relation: DuckDBPyRelation) -> None:
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if str(kind) in _NOT_IN_ARROW:
            raise QueryError(
                f"Column {name} has type {kind}, which this format cannot hold; cast it to VARCHAR."
            )


def _distinct(names: Sequence[str]) -> list[str]:
    """Column names with `_1`, `_2` ... after a repeated one: JSON and Parquet hold each name once."""
    taken: dict[str, None] = {}
    for name in names:
        candidate, number = name, 0
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken[candidate] = None
    return list(taken)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write that becomes `path` on success; a pipe or a device is written to directly."""
    if path.exists() and not path.is_file():
        yield path
        return
    final = path.resolve()
    partial = final.with_name(f".{final.name}.{os.getpid()}.partial")
    try:
        try:
            yield partial
        except OSError as error:
            if error.filename != str(partial):
                raise
            # The file that the user named is the one to speak of.
            raise OSError(error.errno, error.strerror, str(path)) from error
        os.replace(partial, final)
    finally:
        partial.unlink(missing_ok=True)
