"""How values of metrics and their changes are written: 375.8 ms, 31.8 GiB, 19.5%, 130.03 T, +4.8%."""

from __future__ import annotations

import math

_TIMES = ((1000, "s", 1e-3), (1, "ms", 1), (0, "µs", 1e3))
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("", " k", " M", " G", " T", " P", " E")
_DIGITS = 4
# Beyond, a ratio says more as a factor.
_LARGEST_PERCENT = 1000


def metric_text(value: float | None, unit: str) -> str:
    """A value of v1.metrics in its unit, to four digits; '' for none."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return str(value)
    if unit == "ms":
        return time_text(value)
    if unit == "bytes":
        return _scaled(value, 1024, _BINARY, " ")
    if unit == "ratio":
        return f"{_rounded(100 * value)}%"
    if unit == "count":
        return f"{value:,.0f}" if abs(value) < 1e6 and value == int(value) else _scaled(value, 1000, _DECIMAL)
    return f"{_rounded(value)} {unit}"


def time_text(milliseconds: float, *, is_signed: bool = False) -> str:
    """A time in the unit that suits its size."""
    size = abs(milliseconds)
    _, unit, factor = next(row for row in _TIMES if size >= row[0])
    if not size:
        unit, factor = "ms", 1
    text = f"{_rounded(milliseconds * factor)} {unit}"
    return f"+{text}" if is_signed and milliseconds > 0 else text


def change_text(ratio: float | None) -> str:
    """What a ratio of head to base is as a change: +4.8%, -0.31%, x12.3; '' where there is none."""
    if ratio is None or not math.isfinite(ratio):
        return ""
    percent = 100 * (ratio - 1)
    if percent >= _LARGEST_PERCENT:
        return f"x{_rounded(ratio)}"
    decimals = 0 if abs(percent) >= 100 else 1 if abs(percent) >= 10 else 2
    text = f"{percent:+.{decimals}f}%"
    return "0%" if float(text[:-1]) == 0 else text


def interval_text(low: float | None, high: float | None) -> str:
    """The interval of a ratio, as changes; '' where there is none."""
    return "" if low is None or high is None else f"{change_text(low).removesuffix('%')}..{change_text(high)}"


def _scaled(value: float, step: int, units: tuple[str, ...], gap: str = "") -> str:
    power = 0
    while abs(value) >= step and power < len(units) - 1:
        value /= step
        power += 1
    return f"{_rounded(value)}{gap}{units[power]}"


def _rounded(value: float) -> str:
    if value == 0:
        return "0"
    before = math.floor(math.log10(abs(value))) + 1
    return f"{value:,.{min(max(_DIGITS - before, 0), 6)}f}"
