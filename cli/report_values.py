"""How the values of a report are written: 2,322.8 ms, 54.6%, 4.09, 112."""

from __future__ import annotations

from typing import Any

# Less than this is shown as such: 0.0 would read as none.
_SMALLEST_SHARE = 0.0005
_SMALLEST_MS = 0.05
_SMALLEST_FACTOR = 0.005


def value_text(value: Any, unit: str | None) -> str:
    """The text of a value in its unit (ms, ratio, factor, count; None for text); '' for none."""
    if value is None:
        return ""
    if unit == "ms":
        return _small(value, _SMALLEST_MS, "0.1 ms") or f"{value:,.1f} ms"
    if unit == "ratio":
        return _small(value, _SMALLEST_SHARE, "0.1%") or f"{value:.1%}"
    if unit == "factor":
        return _small(value, _SMALLEST_FACTOR, "0.01") or f"{value:,.2f}"
    if unit == "count":
        # Means of counts are seldom whole.
        return _small(value, _SMALLEST_FACTOR, "0.01") or f"{value:,.2f}".rstrip("0").rstrip(".")
    return str(value)


def _small(value: float, smallest: float, text: str) -> str | None:
    """What a value reads that is not 0, and would be written as 0."""
    if value == 0 or abs(value) >= smallest:
        return None
    return f"<{text}" if value > 0 else f">-{text}"
