"""Times of XSpace events on the axis of the capture, and what to do with times that cannot be true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.xspace_space import Chunk, Int64Array, Line, Mask

# timestamp_ns above this is a wall clock (it would be 11 days as a distance from the profile's start).
WALL_CLOCK_NS = 10**15
_MAX_LINE_START_PS = 2**62
_MAX_OFFSET_PS = 2**61

# How fields of an event itself are called in event_stats, where its row has something else.
OFFSET_STAT = "XEvent.offset_ps"
DURATION_STAT = "XEvent.duration_ps"


@dataclass
class Times:
    """Start and end of each event of a chunk, in ps; those not `is_possible` stand for an unknown time.

    `repaired` holds the fields as they were, by stat name: positions of the events, and the values.
    """

    start_ps: Int64Array
    end_ps: Int64Array
    is_possible: Mask
    repaired: dict[str, tuple[Int64Array, Int64Array]]


def times_of(line: Line, chunk: Chunk, base_ns: int, problems: ProblemCounter, place: str) -> Times:
    """Times of the events of a line; `base_ns` is taken off where it is stamped with the wall clock.

    A negative duration is taken as 0. An event whose time cannot be true is put at the start of its line,
    with no duration. Both are counted.
    """
    base = base_ns if line.timestamp_ns > WALL_CLOCK_NS else 0
    line_start = (line.timestamp_ns - base) * 1000
    offset, duration = chunk.offset_ps, chunk.duration_ps
    is_possible = (offset > -_MAX_OFFSET_PS) & (offset < _MAX_OFFSET_PS) & (duration < _MAX_OFFSET_PS)
    detail = "an offset or duration of over 26 days; its time is unknown and not counted"
    if abs(line_start) >= _MAX_LINE_START_PS:
        detail = f"timestamp_ns is {line.timestamp_ns}; its time is unknown and not counted"
        line_start, is_possible = 0, np.zeros(len(chunk), bool)
    is_negative = (duration < 0) & is_possible
    is_repaired = is_negative | ~is_possible
    repaired = {}
    if is_repaired.any():
        at, impossible = np.flatnonzero(is_repaired), np.flatnonzero(~is_possible)
        repaired[DURATION_STAT] = at, duration[at]
        if is_negative.any():
            problems.add("negative_duration", place, "taken as 0", int(is_negative.sum()))
        if len(impossible):
            problems.add("impossible_time", place, detail, len(impossible))
            repaired[OFFSET_STAT] = impossible, offset[impossible]
        duration, offset = np.where(is_repaired, 0, duration), np.where(is_possible, offset, 0)
    start = offset + line_start
    return Times(start, start + duration, is_possible, repaired)
