"""Calls of the compiled loops with numpy arrays; what they take and return is in `xspace_kernels`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from tracewh.ingest.compiled_code import BYTES, INT8S, INT64S, NUMBER, CompiledCode, load
from tracewh.ingest.xspace_space import Int8Array, Int64Array, Placed, Stats
from tracewh.ingest.xspace_wire import RESULT_SLOTS

Buffer = npt.NDArray[np.uint8]

_STAT_COLUMNS = (INT64S, INT64S, INT8S, INT64S, INT64S, INT64S)
_SIGNATURES = {
    "list_fields": (BYTES, *(NUMBER,) * 6, *(INT64S,) * 6),
    "scan_line": (BYTES, *(NUMBER,) * 5, INT64S, NUMBER, INT64S, INT64S, INT64S),
    "read_events": (
        BYTES,
        *(NUMBER,) * 4,
        *(INT64S, INT64S, INT64S, INT8S, INT64S),
        NUMBER,
        *_STAT_COLUMNS,
        INT64S,
    ),
    "read_stats": (BYTES, *(NUMBER,) * 5, *_STAT_COLUMNS, INT64S),
    "count_stats": (BYTES, NUMBER, NUMBER, NUMBER, INT64S),
    "copy_spans": (BYTES, NUMBER, INT64S, INT64S, BYTES),
    "place_stats": (NUMBER, NUMBER, INT8S, INT64S, INT8S, INT64S, INT64S, INT8S, INT64S, INT64S),
}
_SOURCES = ("xspace_kernels.py", "xspace_wire.py", "xspace_space.py")


class StatColumns:
    """Room for stats, one row each; `blob_starts` and `blob_ends` have the spans of texts and bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.owner, self.stat_id, self.value, self.blob_starts, self.blob_ends = (
            np.empty(room, np.int64) for _ in range(5)
        )
        self.value_type: Int8Array = np.empty(room, np.int8)

    def addresses(self) -> list[int]:
        """Where the columns are, in the order in which the loops take them."""
        columns = (
            self.owner,
            self.stat_id,
            self.value_type,
            self.value,
            self.blob_starts,
            self.blob_ends,
        )
        return [_address(column) for column in columns]


class EventColumns:
    """Room for events, one row each."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.metadata_id, self.offset_ps, self.duration_ps, self.occurrences = (
            np.empty(room, np.int64) for _ in range(4)
        )
        self.is_count: Int8Array = np.empty(room, np.int8)

    def addresses(self) -> list[int]:
        """Where the columns are, in the order in which the loops take them."""
        columns = (self.metadata_id, self.offset_ps, self.duration_ps, self.is_count, self.occurrences)
        return [_address(column) for column in columns]


class Kernels:
    """The compiled loops over one buffer. A result is a list of numbers, the first of them ODD for none."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._start = (_address(buffer), len(buffer))

    def list_fields(
        self, start: int, end: int, merged_tag: int = 0, max_merged: int = 0
    ) -> tuple[list[int], list[Int64Array]]:
        """Count and place; for each field tag, its start, start and end of its payload, number of fields."""
        result = np.zeros(RESULT_SLOTS, np.int64)
        columns: list[Int64Array] = []
        # A first pass counts them.
        for _ in range(2):
            room = max(int(result[0]), 0)
            columns = [np.empty(room, np.int64) for _ in range(5)]
            addresses = [_address(column) for column in (*columns, result)]
            _call("list_fields", *self._start, start, end, merged_tag, max_merged, room, *addresses)
        return result.tolist(), columns

    def scan_line(
        self, start: int, end: int, header: Int64Array, max_events: int, max_bytes: int, max_parts: int
    ) -> tuple[list[int], list[int], list[int]]:
        """Number of parts, place and number of events; the end and number of events of each part.

        `header`, of HEADER_SLOTS numbers, is filled in.
        """
        result = np.zeros(RESULT_SLOTS, np.int64)
        part_ends, part_events = np.empty(max_parts, np.int64), np.empty(max_parts, np.int64)
        _call(
            "scan_line",
            *self._start,
            *(start, end, max_events, max_bytes, _address(header), max_parts),
            *(_address(part_ends), _address(part_events), _address(result)),
        )
        parts = max(int(result[0]), 0)
        return result.tolist(), part_ends[:parts].tolist(), part_events[:parts].tolist()

    def read_events(self, start: int, end: int, events: EventColumns, stats: StatColumns) -> list[int]:
        """Number of events, place, numbers of stats and blobs."""
        result = np.zeros(RESULT_SLOTS, np.int64)
        _call(
            "read_events",
            *self._start,
            *(start, end, events.room, *events.addresses(), stats.room, *stats.addresses()),
            _address(result),
        )
        return result.tolist()

    def read_stats(self, start: int, end: int, tag: int, stats: StatColumns) -> list[int]:
        """0, place, numbers of stats and blobs, of the stats that are fields with `tag`."""
        result = np.zeros(RESULT_SLOTS, np.int64)
        columns = stats.addresses()
        _call("read_stats", *self._start, start, end, tag, stats.room, *columns, _address(result))
        return result.tolist()

    def count_stats(self, start: int, end: int) -> int:
        """No fewer than the stats of the events in buffer[start:end]."""
        result = np.zeros(RESULT_SLOTS, np.int64)
        _call("count_stats", *self._start, start, end, _address(result))
        return int(result[0])

    def copied(self, starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Buffer]:
        """The spans between the starts and ends one after the other: offsets and bytes, as Arrow has them."""
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        target = np.empty(int(offsets[-1]), np.uint8)
        addresses = (_address(starts), _address(ends), _address(target))
        _call("copy_spans", self._start[0], len(starts), *addresses)
        return offsets, target


def placed(stats: Stats, slot: Int8Array, columns: Sequence[int], count: int) -> Placed:
    """What Space.placed says."""
    row_of = np.zeros(max(columns, default=0) + 1, np.int64)
    row_of[columns] = np.arange(len(columns))
    last = np.full(len(row_of), -1)
    shape = (len(columns), count)
    value_type, value = np.zeros(shape, np.int8), np.zeros(shape, np.int64)
    arrays = (slot, stats.owner, stats.value_type, stats.value, row_of, value_type, value, last)
    _call("place_stats", len(stats), count, *(_address(array) for array in arrays))
    return {number: (value_type[row], value[row]) for row, number in enumerate(columns) if last[number] >= 0}


@cache
def _code() -> CompiledCode:
    folder = Path(__file__).parent
    return load([folder / name for name in _SOURCES], _SIGNATURES, _kernel_module)


def _kernel_module() -> ModuleType:
    from tracewh.ingest import xspace_kernels

    return xspace_kernels


def _call(name: str, *arguments: int) -> None:
    _code().function(name)(*arguments)


def _address(array: npt.NDArray[Any]) -> int:
    """Where a contiguous array begins."""
    assert array.flags.c_contiguous
    return int(array.ctypes.data)
