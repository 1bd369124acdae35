"""How the values of a report are written: 2,322.8 ms, 823.1 µs, 54.6%, 4.09, 112."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracewh.sql.run_report import ReportTable

# The largest time of a table has at least so many digits, and small ones add no more than to so many.
_TIME_DIGITS = 4
_MOST_TIME_DIGITS = 6
_MOST_DECIMALS = 4
_MOST_SHARE_DECIMALS = 3
_FACTOR_DECIMALS = 2
# With more columns of times their unit stands in the headings, once.
_MOST_COLUMNS_WITH_UNITS = 2
_LONGEST_KERNEL = 40
_MANGLED = re.compile(r"_Z(?:N[KVr]*)?(?=[0-9])")
_IDENTIFIER_LENGTH = re.compile(r"[0-9]+")
# Where template arguments or parameters begin; (anonymous namespace) is neither.
_STEM = re.compile(r"(?:void )?((?:\(anonymous namespace\)|[^(<])+)")


@dataclass(frozen=True)
class ValueFormat:
    """How the values of one column are written; `unit` is that of the values, `shown_unit` of the text.

    The unit of the values is ms, ratio, factor or count; kernel for the name of a kernel or of an operation;
    None for other text. `is_in_heading`: the cells do not name the unit.
    """

    unit: str | None
    factor: float = 1
    decimals: int = 0
    shown_unit: str = ""
    is_in_heading: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        return self.unit not in (None, "kernel")

    def heading(self, text: str) -> str:
        """The heading of the column."""
        return f"{text} ({self.shown_unit.strip()})" if self.is_in_heading else text

    def text(self, value: Any) -> str:
        """The text of a value; '' for none."""
        if value is None:
            return ""
        if self.unit == "kernel":
            return short_kernel(str(value))
        if not self.is_number:
            return str(value)
        suffix = "" if self.is_in_heading else self.shown_unit
        scaled = value * self.factor
        # 0.0 would read as none.
        if 0 < scaled < 0.5 * 10**-self.decimals:
            return f"<{10**-self.decimals:.{self.decimals}f}{suffix}"
        return f"{scaled:,.{self.decimals}f}{suffix}"


def table_formats(table: ReportTable, *, is_narrow: bool = False) -> list[ValueFormat]:
    """The format of each column: times in one unit for the whole table, other numbers by their column.

    Where the table is to be narrow, its headings name the unit of times.
    """
    units = [column.unit for column in table.columns]
    times = _time_format(_numbers(table, [i for i, unit in enumerate(units) if unit == "ms"]))
    is_in_heading = is_narrow or units.count("ms") > _MOST_COLUMNS_WITH_UNITS
    return [
        ValueFormat(unit, times.factor, times.decimals, times.shown_unit, is_in_heading)
        if unit == "ms"
        else _column_format(unit, _numbers(table, [position]))
        for position, unit in enumerate(units)
    ]


def _numbers(table: ReportTable, positions: Sequence[int]) -> list[float]:
    """The sizes of the values of some columns that are numbers other than 0."""
    values = (row[position] for row in table.rows for position in positions)
    return [abs(value) for value in values if isinstance(value, int | float) and value]


def _time_format(sizes: Sequence[float]) -> ValueFormat:
    factor, shown_unit = (1000, " µs") if sizes and max(sizes) < 1 else (1, " ms")
    if not sizes:
        return ValueFormat("ms", factor, 1, shown_unit)
    whole = _digits_before_point(max(sizes) * factor)
    least = _bounded(_TIME_DIGITS - whole)
    # One digit of the smallest value.
    wanted = math.ceil(-math.log10(2 * min(sizes) * factor))
    return ValueFormat("ms", factor, max(least, min(wanted, _bounded(_MOST_TIME_DIGITS - whole))), shown_unit)


def _bounded(decimals: int) -> int:
    return min(max(1, decimals), _MOST_DECIMALS)


def _column_format(unit: str | None, sizes: Sequence[float]) -> ValueFormat:
    if unit == "ratio":
        percent = 100 * max(sizes, default=1)
        decimals = 1 if percent >= 1 else min(2 - _digits_before_point(percent), _MOST_SHARE_DECIMALS)
        return ValueFormat(unit, 100, decimals, "%")
    if unit == "factor":
        return ValueFormat(unit, decimals=_FACTOR_DECIMALS)
    if unit == "count":
        return ValueFormat(unit, decimals=_count_decimals(sizes))
    return ValueFormat(unit)


def _count_decimals(sizes: Iterable[float]) -> int:
    """Means of counts are seldom whole; a column that has any such mean has one number of digits."""
    if all(size == int(size) for size in sizes):
        return 0
    return 1 if max(sizes) >= 100 else 2


def _digits_before_point(size: float) -> int:
    return math.floor(math.log10(size)) + 1


def short_kernel(name: str) -> str:
    """The function's name of a kernel, with … for what is cut: template arguments, parameters, length."""
    stem = _mangled_stem(name)
    if stem is None:
        found = _STEM.match(name)
        stem = name if found is None or found.end() == len(name) else found[1]
    if len(stem) >= _LONGEST_KERNEL:
        stem = stem[: _LONGEST_KERNEL - 1]
    return stem if stem == name else f"{stem}…"


def _mangled_stem(name: str) -> str | None:
    """The last identifier of the qualified name that a mangled one begins with; None for any other name."""
    start = _MANGLED.match(name)
    if start is None:
        return None
    stem, position = None, start.end()
    while found := _IDENTIFIER_LENGTH.match(name, position):
        position = found.end() + int(found[0][:4])
        if position > len(name):
            break
        stem = name[found.end() : position]
        if not start[0].startswith("_ZN"):
            break
    return stem
