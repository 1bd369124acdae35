"""Copies of a capture's events, later in time and with ids of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Stats that name one launch, step or moment. Members of a family join with each other: one shift serves all.
_FAMILY = {
    b"correlation_id": "correlation",
    b"scope_range_id": "scope",
    b"run_id": "producer",
    b"_p": "producer",
    b"_c": "producer",
    b"step_num": "step",
    b"group_id": "group",
    b"device_offset_ps": "time",
}
# Families where a copy goes on from the value before it. The others are ids, where 0 says that there is none.
_COUNTED = {"step", "group", "time"}
_SCOPE_PLANE = b"/host:__ScopeRangeCallStack__"
_MASK = 2**64 - 1


@dataclass
class _Ids:
    """Stats of one family in one integer field, as 64 bits, each with the position of its event."""

    family: str
    field: str
    messages: list[Any]
    values: npt.NDArray[np.uint64]
    owners: npt.NDArray[np.int64]

    def shift(self, by: int) -> None:
        """Set every stat to its value in the capture plus `by`, modulo 2**64 as on the wire."""
        shifted = self.values + np.uint64(by & _MASK)
        if self.family not in _COUNTED:
            shifted[self.values == 0] = 0
        typed = shifted if self.field == "uint64_value" else shifted.view(np.int64)
        for message, value in zip(self.messages, typed.tolist(), strict=True):
            setattr(message, self.field, value)


@dataclass
class Line:
    """A line of the capture, its events with their times, and the ids of its events."""

    message: Any
    events: list[Any]
    offsets: npt.NDArray[np.int64]
    timed: npt.NDArray[np.bool_]
    ids: list[_Ids]

    @property
    def starts_ps(self) -> npt.NDArray[np.int64]:
        """Start of each event; aggregates, which have none, count as starting with the line."""
        return self.offsets + np.int64(self.message.timestamp_ns * 1000)

    @property
    def span_ps(self) -> int:
        """From the first start to the last end."""
        ends = self.offsets + np.array([event.duration_ps for event in self.events], np.int64)
        return int(ends[self.timed].max() - self.offsets[self.timed].min()) if self.timed.any() else 0

    def shift_times(self, by: int) -> None:
        """Move every event that has a start to its place in the capture plus `by` picoseconds."""
        offsets = (self.offsets + by).tolist()
        for event, offset, timed in zip(self.events, offsets, self.timed.tolist(), strict=True):
            if timed:
                event.offset_ps = offset


def _read_line(message: Any, family_of_id: dict[int, str]) -> Line:
    events = list(message.events)
    found: dict[tuple[str, str], list[tuple[Any, int, int]]] = {}
    for owner, event in enumerate(events):
        for stat in event.stats:
            family = family_of_id.get(stat.metadata_id)
            if family is None:
                continue
            for name in ("uint64_value", "int64_value"):
                if stat.HasField(name):
                    entry = (stat, getattr(stat, name) & _MASK, owner)
                    found.setdefault((family, name), []).append(entry)
    ids = []
    for (family, name), entries in found.items():
        messages, values, owners = zip(*entries, strict=True)
        ids.append(
            _Ids(family, name, list(messages), np.array(values, np.uint64), np.array(owners, np.int64))
        )
    offsets = np.array([event.offset_ps for event in events], np.int64)
    timed = np.array([not event.HasField("num_occurrences") for event in events], bool)
    return Line(message, events, offsets, timed, ids)


def _scope_ids(plane: Any) -> list[_Ids]:
    """The call stack of scopes: a stat per scope, its metadata id the scope and its value the parent."""
    stats = list(plane.stats)
    ids = []
    for name in ("metadata_id", "int64_value"):
        values = np.array([getattr(stat, name) & _MASK for stat in stats], np.uint64)
        ids.append(_Ids("scope", name, stats, values, np.arange(len(stats))))
    return ids


def _stride(family: str, values: npt.NDArray[np.uint64], period_ps: int) -> int:
    """What one copy adds to the ids of a family, so that the ids of all copies differ."""
    if family == "time":
        return period_ps
    distinct = np.unique(values)
    if family in _COUNTED:
        return int(distinct[-1] - distinct[0]) + 1
    # Where ids differ modulo the stride, so do their sums with its multiples. A power of two stays small
    # where the ids are close together, and ids of another kind far away do not enlarge it.
    stride = 1
    while stride < distinct.size or np.unique(distinct % np.uint64(stride)).size < distinct.size:
        stride *= 2
    return stride


class Copies:
    """So many events of a capture: whole copies, and of one more the events that start first."""

    def __init__(self, space: Any, event_count: int) -> None:
        """Read `space`, whose messages the copies then change in place; raises ValueError without events."""
        self.lines: list[list[Line]] = []
        self._scopes: dict[int, list[_Ids]] = {}
        for index, plane in enumerate(space.planes):
            family_of_id = {
                entry.key: _FAMILY[entry.value.name]
                for entry in plane.stat_metadata
                if entry.value.name in _FAMILY
            }
            self.lines.append([_read_line(line, family_of_id) for line in plane.lines])
            if plane.name == _SCOPE_PLANE:
                self._scopes[index] = _scope_ids(plane)
        lines = [line for of_plane in self.lines for line in of_plane]
        if not any(line.events for line in lines):
            raise ValueError("The capture holds no events: there is nothing to repeat.")

        starts = np.concatenate([line.starts_ps for line in lines])
        self._whole, cut = divmod(event_count, starts.size)
        self._count = self._whole + (cut > 0)
        kept = np.zeros(starts.size, bool)
        kept[np.argsort(starts, kind="stable")[:cut]] = True
        bounds = np.cumsum([len(line.events) for line in lines])[:-1]
        self._kept = {id(line): mask for line, mask in zip(lines, np.split(kept, bounds), strict=True)}

        # Whole nanoseconds: the profile's end is told in them.
        self._period_ps = -(-max(line.span_ps for line in lines) // 1000) * 1000
        every = [ids for of_one in (*(line.ids for line in lines), *self._scopes.values()) for ids in of_one]
        self._strides = {
            family: _stride(
                family, np.concatenate([ids.values for ids in every if ids.family == family]), self._period_ps
            )
            for family in {ids.family for ids in every}
        }
        # Scopes are numbered in time: the cut copy has those up to the last one that its events name.
        named = [
            ids.values[self._kept[id(line)][ids.owners]]
            for line in lines
            for ids in line.ids
            if ids.family == "scope"
        ]
        self._last_scope = max((int(values.max(initial=0)) for values in named), default=0)

    @property
    def added_ps(self) -> int:
        """How much later than the capture's the last copy is."""
        return max(0, self._count - 1) * self._period_ps

    def events(self, line: Line) -> Iterator[bytes]:
        """The bytes of each event of the line, copy after copy."""
        for copy in range(self._count):
            line.shift_times(copy * self._period_ps)
            self._shift(line.ids, copy)
            for event, kept in zip(line.events, self._kept[id(line)].tolist(), strict=True):
                if kept or copy < self._whole:
                    yield event.SerializeToString()

    def stats(self, plane_index: int, plane: Any) -> Iterator[bytes]:
        """The bytes of each stat of the plane: of the call stack of scopes in every copy, else once."""
        scopes = self._scopes.get(plane_index)
        for copy in range(self._count if scopes else 1):
            if scopes:
                self._shift(scopes, copy)
                kept = scopes[0].values <= self._last_scope
            for index, stat in enumerate(plane.stats):
                if not scopes or copy < self._whole or kept[index]:
                    yield stat.SerializeToString()

    def _shift(self, ids: list[_Ids], copy: int) -> None:
        for some in ids:
            some.shift(copy * self._strides[some.family])
