"""A series of numbers as one line of text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-~=+*#"
# Values that differ by less than this part of their size do not fill the height: noise is to look like noise.
_LEAST_SPAN = 0.05


def sparkline(values: Sequence[float], width: int, *, is_ascii: bool = False) -> str:
    """One character for each value, higher for larger ones; of more than `width`, medians of neighbours."""
    if len(values) > width:
        bounds = [round(index * len(values) / width) for index in range(width + 1)]
        values = [statistics.median(values[first:last]) for first, last in pairwise(bounds)]
    levels = _ASCII if is_ascii else _BLOCKS
    low, high = min(values), max(values)
    span = max(high - low, _LEAST_SPAN * max(abs(low), abs(high)))
    if not span:
        return levels[0] * len(values)
    # What is left of the height is above and below.
    floor = (low + high - span) / 2
    last = len(levels) - 1
    return "".join(levels[min(last, int((value - floor) / span * len(levels)))] for value in values)


def can_show_blocks(stream: TextIO) -> bool:
    """Whether the encoding of a stream has the characters of a sparkline."""
    try:
        _BLOCKS.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
