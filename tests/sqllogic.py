"""Run sqllogictest files: `# name:`, `# description:` and `# group:`, then records such as

    statement error
    SELECT b FROM t
    ----
    column "b" not found

    query IRTB rowsort
    SELECT 1, 0.5e0, 'x', NULL
    ----
    1 0.5 x NULL

A record ends at a blank line. Types: I integer, R double (equal within 1e-9), T text, B boolean. Sort modes:
nosort, rowsort. Tabs separate values or, in a row without tabs, blanks; (empty) is the empty string. The text
below ---- of an error is a regular expression to find in its message.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

Row = tuple[Any, ...]
_HEADER = re.compile(r"# name: \S.*\n# description: \S.*\n# group: \S.*\n")
_PYTHON_TYPES = {"I": int, "R": float, "T": str, "B": bool}


class SqlLogicFailure(AssertionError):
    """A record gave something else than it says, or a file is malformed; the text names file and line."""


@dataclass(frozen=True)
class Record:
    line: int
    directive: list[str]
    sql: str
    expected: list[str] | None  # None without a ---- line


def run_file(path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """Run the records of `path` in order; raises SqlLogicFailure at the first that fails."""
    for record in parse_file(path):
        place = f"{path}:{record.line}"
        match record.directive:
            case ["statement", "ok"] if record.expected is None:
                _execute(place, record, connection)
            case ["statement", "error"]:
                _expect_error(place, record, connection)
            case ["query", types, *mode] if (
                set(types) <= _PYTHON_TYPES.keys()
                and mode in ([], ["nosort"], ["rowsort"])
                and record.expected is not None
            ):
                _expect_rows(place, record, types, connection, is_sorted=mode == ["rowsort"])
            case _:
                raise SqlLogicFailure(f"{place}: malformed record: {' '.join(record.directive)}")


def parse_file(path: Path) -> list[Record]:
    """The records of a file; raises SqlLogicFailure without a header or without a record."""
    text = path.read_text(encoding="utf-8")
    records = [_parse_record(block) for block in _blocks(text)]
    if not records or not _HEADER.match(text):
        raise SqlLogicFailure(f"{path}:1: a file has # name:, # description:, # group: and then records")
    return records


def _blocks(text: str) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip() and not (line.startswith("#") and not block):
            block.append((number, line))
        elif block:
            yield block
            block = []


def _parse_record(block: list[tuple[int, str]]) -> Record:
    number, directive = block[0]
    lines = [line for _, line in block[1:]]
    cut = lines.index("----") if "----" in lines else None
    expected = None if cut is None else lines[cut + 1 :]
    return Record(number, directive.split(), "\n".join(lines[:cut]), expected)


def _execute(place: str, record: Record, connection: duckdb.DuckDBPyConnection) -> tuple[int, list[Row]]:
    try:
        cursor = connection.execute(record.sql)
        return len(cursor.description or []), cursor.fetchall()
    except duckdb.Error as error:
        raise SqlLogicFailure(f"{place}: unexpected error: {error}\n{record.sql}") from error


def _expect_error(place: str, record: Record, connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.execute(record.sql).fetchall()
    except duckdb.Error as error:
        pattern = "\n".join(record.expected or [])
        if not re.search(pattern, str(error)):
            raise SqlLogicFailure(f"{place}: the error does not match {pattern!r}: {error}") from error
    else:
        raise SqlLogicFailure(f"{place}: succeeded, but must fail:\n{record.sql}")


def _expect_rows(
    place: str, record: Record, types: str, connection: duckdb.DuckDBPyConnection, *, is_sorted: bool
) -> None:
    width, got = _execute(place, record, connection)
    if width != len(types):
        raise SqlLogicFailure(f"{place}: {width} columns, but {types!r} says {len(types)}:\n{record.sql}")
    expected = [_parse_row(place, line, types) for line in record.expected or []]
    if is_sorted:
        got, expected = sorted(got, key=_sort_key), sorted(expected, key=_sort_key)
    if len(got) != len(expected) or not all(map(_values_equal, chain(*expected), chain(*got))):
        shown = "\n".join(["expected:", *map(repr, expected), "got:", *map(repr, got)])
        raise SqlLogicFailure(f"{place}: wrong rows\n{record.sql}\n{shown}")


def _parse_row(place: str, line: str, types: str) -> Row:
    texts = line.split("\t") if "\t" in line else [line.strip()] if len(types) == 1 else line.split()
    if len(texts) != len(types):
        raise SqlLogicFailure(f"{place}: expected row has {len(texts)} values for {types!r}: {line}")
    try:
        return tuple(map(_parse_value, texts, types))
    except (ValueError, KeyError):
        raise SqlLogicFailure(f"{place}: expected row has a value that is not of {types!r}: {line}") from None


def _parse_value(text: str, kind: str) -> Any:
    if text == "NULL":
        return None
    if kind == "B":
        return {"true": True, "false": False}[text]
    return _PYTHON_TYPES[kind]("" if kind == "T" and text == "(empty)" else text)


def _values_equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(expected, got, rel_tol=1e-9) or (math.isnan(expected) and math.isnan(got))
    return type(expected) is type(got) and bool(expected == got)


def _sort_key(row: Row) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is None, 0 if value is None else value) for value in row)
