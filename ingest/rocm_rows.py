"""Rows of one table of a ROCm profiler's file, read by column in the type that the reader wants."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter

INTEGER = pa.int64()
REAL = pa.float64()
TEXT = pa.large_string()
BYTES = pa.large_binary()

_NOT_CONVERTIBLE = {
    INTEGER: ("not_an_integer", "64-bit integer"),
    REAL: ("not_a_number", "finite number"),
}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass
class Rows:
    """Rows of one table as Arrow columns. `place` names the table in problems."""

    place: str
    table: pa.Table
    problems: ProblemCounter

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @classmethod
    def empty(cls, place: str, problems: ProblemCounter) -> Rows:
        """Return no rows, for a table that the file lacks."""
        return cls(place, pa.table({}), problems)

    def integers(self, column: str) -> pa.Array:
        """Return an int64 column; null where the table lacks it or the value is no 64-bit integer."""
        return self._column(column, INTEGER)

    def numbers(self, column: str) -> pa.Array:
        """Return a float64 column; null where the table lacks it or the value is no finite number."""
        return self._column(column, REAL)

    def texts(self, column: str) -> pa.Array:
        """Return a text column; null where the table lacks it."""
        return self._column(column, TEXT)

    def where(self, keep: pa.Array) -> Rows:
        """Return the rows for which `keep` is true."""
        return Rows(self.place, self.table.filter(keep), self.problems)

    def _column(self, column: str, wanted: pa.DataType) -> pa.Array:
        if column not in self.table.column_names:
            return pa.nulls(len(self), wanted)
        found = self.table.column(column).combine_chunks()
        if found.type != wanted:
            found = _converted(found, wanted, f"{self.place}.{column}", self.problems)
            position = self.table.column_names.index(column)
            self.table = self.table.set_column(position, column, found)
        return found


def typed(values: Sequence[Any], wanted: pa.DataType, place: str, problems: ProblemCounter) -> pa.Array:
    """Convert Python values to one Arrow type; what does not fit becomes null and is counted at `place`."""
    expected = {INTEGER: int, REAL: float, TEXT: str, BYTES: bytes}[wanted]
    if set(map(type, values)) <= {expected, type(None)}:
        # Arrow refuses numbers of more than 64 bits.
        with contextlib.suppress(OverflowError):
            array = pa.array(values, type=wanted)
            if wanted != REAL or pc.all(pc.is_finite(array)).as_py() is not False:
                return array
    convert = {INTEGER: _integer, REAL: _number, TEXT: _text, BYTES: _bytes}[wanted]
    converted = [None if value is None else convert(value) for value in values]
    rejected = [
        value for value, kept in zip(values, converted, strict=True) if kept is None and value is not None
    ]
    if rejected:
        problem, need = _NOT_CONVERTIBLE[wanted]
        problems.add(problem, place, f"stored as null: {str(rejected[0])[:80]!r} is no {need}", len(rejected))
    return pa.array(converted, type=wanted)


def _converted(found: pa.Array, wanted: pa.DataType, place: str, problems: ProblemCounter) -> pa.Array:
    try:
        # What Arrow converts as a whole needs no look at each value. Arrow takes hexadecimal for a number.
        if pa.types.is_null(found.type) or not (wanted == INTEGER and _has_hexadecimal(found)):
            array = found.cast(wanted)
            if wanted != REAL or pc.all(pc.is_finite(array)).as_py() is not False:
                return array
    except pa.ArrowInvalid:
        pass
    return typed(found.to_pylist(), wanted, place, problems)


def _has_hexadecimal(found: pa.Array) -> bool:
    if not (pa.types.is_string(found.type) or pa.types.is_large_string(found.type)):
        return False
    return bool(pc.any(pc.match_substring(found, "x", ignore_case=True)).as_py())


def _integer(value: Any) -> int | None:
    if isinstance(value, float):
        is_whole = value.is_integer()
    else:
        is_whole = isinstance(value, int) or _WHOLE_NUMBER.fullmatch(str(value)) is not None
    return int(value) if is_whole and -(2**63) <= int(value) < 2**63 else None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    number = float(value)
    # Not a number is unequal to itself.
    return number if abs(number) != float("inf") and number == number else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
