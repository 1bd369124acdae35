"""Events of XSpace lines as rows: device_events, host_events and what hangs on them, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tracewh.ingest import xspace_kinds
from tracewh.ingest.batches import Batches
from tracewh.ingest.capture import Capture, Device, ProblemCounter
from tracewh.ingest.device_time import IMPOSSIBLE, DeviceTime
from tracewh.ingest.event_stats import StatsCollector
from tracewh.ingest.shared_details import CALL_DETAILS_TYPES, OP_TYPES
from tracewh.ingest.shared_rows import Column, SharedRows
from tracewh.ingest.xspace_columns import (
    SlotTable,
    TypedStats,
    by_distinct,
    inherit,
    stat_rows,
    typed_stats,
)
from tracewh.ingest.xspace_launches import LAUNCH_COLUMNS, LaunchTable
from tracewh.ingest.xspace_names import PlaneNames
from tracewh.ingest.xspace_space import Chunk, Int32Array, Int64Array, Line, Mask, Plane, Space
from tracewh.ingest.xspace_stats import DEVICE_SLOTS, HOST_SLOTS, STEP_SLOTS
from tracewh.ingest.xspace_steps import STEP_COLUMNS, HostRows, StepMarks
from tracewh.ingest.xspace_times import Times, times_of

_ON_DEVICE = SlotTable(DEVICE_SLOTS)
# A line of the host may hold ops of a CPU device.
_ON_HOST = SlotTable(HOST_SLOTS, STEP_SLOTS, DEVICE_SLOTS)
_FLOW_COLUMNS = ("producer_type", "producer_id", "consumer_type", "consumer_id")
# A device says its ordinal, but not whether the stat was there.
_TOLD_OF_DEVICE = {slot.column for slot in DEVICE_SLOTS.values()} - {"device_ordinal"}
_DEVICE_COLUMNS = _TOLD_OF_DEVICE - {*LAUNCH_COLUMNS, *OP_TYPES}
_TOLD_OF_HOST = {slot.column for slot in HOST_SLOTS.values()}
_HOST_COLUMNS = _TOLD_OF_HOST - {*_FLOW_COLUMNS, *CALL_DETAILS_TYPES}
_ROLES = ("work", "enclosing", "derived", "marker")
# What a count in place of a time is called in event_stats.
_OCCURRENCES_STAT = "XEvent.num_occurrences"
# The upper half of a graph_node_id numbers the graph, the lower its nodes in the order of their creation.
_NODE_BITS = 0xFFFFFFFF


Selection = Mask | slice
"""Some events of a chunk; all of them as a slice, which copies nothing."""


@dataclass(frozen=True)
class Track:
    """What the events of a line have in common; `device_index` is None for a line of the host."""

    track_id: int
    name: str
    place: str
    device_index: int | None
    device_type: str | None
    stream_id: int | None

    @property
    def role(self) -> str:
        """Role of its events: work, derived or marker."""
        return "work" if self.device_type is None else xspace_kinds.line_role(self.device_type, self.name)

    @property
    def holds_ops(self) -> bool:
        """Whether its device work is HLO ops, one inside another, and not kernels of a GPU."""
        return self.role == "work" and self.device_type in (None, "TPU")


@dataclass
class CaptureState:
    """What the planes of one capture share while it is read."""

    capture: Capture
    problems: ProblemCounter
    base_ns: int
    accelerated: bool
    batches: Batches
    launches: LaunchTable
    ops: SharedRows
    calls: SharedRows
    device_time: DeviceTime = field(default_factory=DeviceTime)
    next_ids: dict[str, int] = field(default_factory=dict)
    cpu_devices: dict[int, int] = field(default_factory=dict)

    def take_ids(self, owner: str, count: int) -> Int64Array:
        """The next `count` ids of `owner`."""
        first = self.next_ids.get(owner, 0)
        self.next_ids[owner] = first + count
        return np.arange(first, first + count)

    def cpu_device(self, ordinal: int) -> int:
        """Index of a CPU device; made when it is met first."""
        if ordinal not in self.cpu_devices:
            self.cpu_devices[ordinal] = len(self.capture.devices)
            self.capture.devices.append(Device(self.capture.hostname, "CPU", ordinal, "CPU"))
        return self.cpu_devices[ordinal]


@dataclass
class _Events:
    """Events of one chunk with what is known of each; `on_device` tells device events from host events."""

    chunk: Chunk
    metadata_rows: Int32Array
    name_ids: Int64Array
    typed: TypedStats
    times: Times
    on_device: Mask

    def rows(self, at: Selection, columns: set[str]) -> dict[str, Column]:
        """Those of the typed columns that are among `columns`, for the selected events."""
        return {
            name: Column(column.values[at], column.valid[at])
            for name, column in self.typed.columns.items()
            if name in columns
        }


class PlaneEvents:
    """Turns the events of one plane into rows; ids count on from plane to plane."""

    def __init__(
        self,
        state: CaptureState,
        space: Space,
        plane: Plane,
        names: PlaneNames,
        first_metadata_id: int,
        is_device: bool,
    ) -> None:
        self._state, self._space, self._plane, self._names = state, space, plane, names
        self._first_metadata_id = first_metadata_id
        metadata = plane.event_metadata
        slots = _ON_DEVICE if is_device else _ON_HOST
        self._inherited = typed_stats(names, metadata.stats, len(metadata.ids) + 1, slots, space).columns
        self._step_marks = StepMarks(state.capture.names, names.event_name_ids)
        known = set(plane.stat_names.values())
        self._may_hold_ops = b"hlo_op" in known and (not state.accelerated or b"device_ordinal" in known)

    def read(self, tracks: list[Track]) -> Iterator[tuple[str, pa.Table]]:
        """Read all lines, whose tracks are given in order; rows are handed on as they fill batches."""
        track_of = {id(line): track for line, track in zip(self._plane.lines, tracks, strict=True)}
        current, enclosing, done = None, None, 0
        for line, chunk in self._space.chunks(self._plane.lines):
            track = track_of[id(line)]
            if track is not current:
                current, enclosing, done = track, self._enclosing(line, track), 0
            events = self._events(line, chunk, track)
            if events.on_device.any():
                marks = None if enclosing is None else enclosing[done : done + len(chunk)]
                self._add_device_events(events, track, marks)
            if not events.on_device.all():
                self._add_host_events(events, track)
            self._names.count_missing(chunk.stats)
            done += len(chunk)
            yield from self._state.batches.full()

    def _events(self, line: Line, chunk: Chunk, track: Track) -> _Events:
        names, state = self._names, self._state
        names.texts.place = track.place
        rows = names.event_rows(chunk.metadata_id)
        is_host = track.device_index is None
        slots = _ON_HOST if is_host else _ON_DEVICE
        typed = typed_stats(names, chunk.stats, len(chunk), slots, self._space)
        inherit(typed, self._inherited, rows)
        times = times_of(line, chunk, state.base_ns, names.texts.problems, track.place)
        on_device = self._ops_of_host(typed.columns, len(chunk)) if is_host else np.ones(len(chunk), bool)
        return _Events(chunk, rows, names.event_name_ids[rows], typed, times, on_device)

    def _ops_of_host(self, columns: Mapping[str, Column], count: int) -> Mask:
        """Which events of a host line are ops of a CPU device.

        XLA's CPU runtime records ops on its threads, with the ordinal of the device they stand for.
        """
        is_op = _valid(columns, "hlo_op_name_id", count) & ~_valid(columns, "correlation_id", count)
        return is_op & _valid(columns, "device_ordinal", count) if self._state.accelerated else is_op

    def _enclosing(self, line: Line, track: Track) -> Mask | None:
        """Which events of a line of ops are loops or lie around another op; None where it holds no ops.

        That takes the times of the whole line, which is read once more for them.
        """
        may_hold = track.holds_ops and (track.device_type is not None or self._may_hold_ops)
        if not may_hold or track.name == xspace_kinds.ASYNCHRONOUS_LINE:
            return None
        strings = self._state.capture.names.strings
        counted = self._names.texts.problems
        # What is wrong with the line is counted when its rows are made.
        self._names.texts.problems = ProblemCounter()
        parts = []
        for _, chunk in self._space.chunks([line]):
            events = self._events(line, chunk, track)
            loops = by_distinct(
                _op_names(events), lambda name_id: int(xspace_kinds.is_loop(strings[name_id]))
            )
            parts.append((events.times.start_ps, events.times.end_ps, loops.values > 0, events.on_device))
        self._names.texts.problems = counted
        start, end, result, is_op = map(np.concatenate, zip(*parts, strict=True))
        result[is_op] |= xspace_kinds.around_another(start[is_op], end[is_op])
        return result

    def _add_device_events(self, events: _Events, track: Track, enclosing: Mask | None) -> None:
        state, selected = self._state, events.on_device
        at = _selection(selected)
        count, role = int(selected.sum()), track.role
        if role == "marker" and xspace_kinds.is_unknown_line(track.device_type, track.name):
            state.problems.add("unknown_line", track.place, "kept, but not counted as device work", count)
        op_columns = events.rows(at, set(OP_TYPES))
        if track.holds_ops:
            op_columns["hlo_op_name_id"] = Column(_op_names(events)[at], np.ones(count, bool))
        node_ids = events.rows(at, {"graph_node_id"}).get("graph_node_id")
        if node_ids is not None:
            op_columns["graph_node_index"] = Column(node_ids.values & _NODE_BITS, node_ids.valid)
            op_columns["graph_kernel_name_id"] = Column(events.name_ids[at], node_ids.valid)
        kind = {"derived": "group", "marker": "marker"}.get(role, "op" if track.holds_ops else None)
        kinds, launch_ids = state.launches.classify(
            events.name_ids[at], events.rows(at, set(LAUNCH_COLUMNS)), kind, track.stream_id, track.place
        )
        op_ids = state.ops.ids_of(op_columns, count)
        state.batches.add("launch_details", state.launches.rows.new_rows())
        state.batches.add("ops", state.ops.new_rows())
        roles = np.full(count, _ROLES.index(role))
        if enclosing is not None:
            roles[enclosing[at]] = _ROLES.index("enclosing")
        # What happened at an unknown time is no work of any time.
        roles[~events.times.is_possible[at]] = _ROLES.index("marker")
        if role != "marker":
            duration = events.times.end_ps[at] - events.times.start_ps[at]
            is_counted = state.device_time.takes(duration)
            if not is_counted.all():
                state.problems.add("impossible_time", track.place, IMPOSSIBLE, count - int(is_counted.sum()))
                roles[~is_counted] = _ROLES.index("marker")
        ids = state.take_ids("device_event", count)
        state.batches.add(
            "device_events",
            pa.table(
                self._shared(events, at, count, track)
                | {name: column.array() for name, column in events.rows(at, _DEVICE_COLUMNS).items()}
                | {
                    "device_event_id": pa.array(ids),
                    "device_index": pa.array(self._device_indexes(events, track)),
                    "kind": kinds,
                    "role": pa.array(_ROLES).take(pa.array(roles)),
                    "op_id": op_ids,
                    "launch_details_id": launch_ids,
                }
            ),
        )
        slots = _ON_HOST if track.device_index is None else _ON_DEVICE
        self._add_stats(events, selected, "device_event", ids, slots.are_among(_told_by_columns(track)))

    def _add_host_events(self, events: _Events, track: Track) -> None:
        state, selected = self._state, ~events.on_device
        at, count = _selection(selected), int(selected.sum())
        ids = state.take_ids("host_event", count)
        shared = self._shared(events, at, count, track)
        call_ids = state.calls.ids_of(events.rows(at, set(CALL_DETAILS_TYPES)), count)
        state.batches.add("call_details", state.calls.new_rows())
        state.batches.add(
            "host_events",
            pa.table(
                shared
                | {name: column.array() for name, column in events.rows(at, _HOST_COLUMNS).items()}
                | {"host_event_id": pa.array(ids), "call_details_id": call_ids}
            ),
        )
        flows = events.rows(at, set(_FLOW_COLUMNS))
        if flows:
            has_flow = np.logical_or.reduce([column.valid for column in flows.values()])
            state.batches.add(
                "host_flows",
                pa.table(
                    {"host_event_id": pa.array(ids[has_flow])}
                    | {name: column.array(has_flow) for name, column in flows.items()}
                ),
            )
        self._add_steps(HostRows(ids, shared, events.metadata_rows[at]), events.rows(at, STEP_COLUMNS))
        self._add_stats(events, selected, "host_event", ids, _ON_HOST.are_among(_TOLD_OF_HOST))

    def _shared(self, events: _Events, at: Selection, count: int, track: Track) -> dict[str, pa.Array]:
        """Columns that device events and host events both have."""
        return {
            "track_id": pa.array(np.full(count, track.track_id)),
            "name_id": pa.array(events.name_ids[at]),
            "event_metadata_id": pa.array(events.metadata_rows[at] + self._first_metadata_id),
            "start_ps": pa.array(events.times.start_ps[at]),
            "end_ps": pa.array(events.times.end_ps[at]),
        }

    def _device_indexes(self, events: _Events, track: Track) -> Int64Array:
        """Index of the device of each device event."""
        count = int(events.on_device.sum())
        if track.device_index is not None:
            return np.full(count, track.device_index)
        ordinal = events.rows(events.on_device, {"device_ordinal"}).get("device_ordinal")
        ordinals = (
            np.zeros(count, np.int64) if ordinal is None else np.where(ordinal.valid, ordinal.values, 0)
        )
        return by_distinct(ordinals, self._state.cpu_device).values

    def _add_steps(self, rows: HostRows, told: Mapping[str, Column]) -> None:
        for table in self._step_marks.tables(rows, told):
            step_ids = pa.array(self._state.take_ids("step", len(table)))
            self._state.batches.add("steps", table.append_column("step_id", step_ids))

    def _add_stats(self, events: _Events, selected: Mask, owner: str, ids: Int64Array, kept: Mask) -> None:
        """Rows of event_stats for what the selected events, of these ids, hold beside their columns."""
        stats, batches = events.typed.stats, self._state.batches
        id_of = np.zeros(len(selected), np.int64)
        id_of[selected] = ids
        chosen = np.flatnonzero(~kept[events.typed.slot])
        chosen = chosen[selected[stats.owner[chosen]]]
        if len(chosen):
            rows = stat_rows(self._names, stats, chosen, owner, id_of[stats.owner[chosen]])
            batches.add("event_stats", rows)
        counted = np.flatnonzero(events.chunk.is_count)
        fields = events.times.repaired | {_OCCURRENCES_STAT: (counted, events.chunk.num_occurrences[counted])}
        for stat, (at, values) in fields.items():
            mine = selected[at]
            if mine.any():
                collector = StatsCollector(self._state.capture.names)
                collector.add_column(owner, pa.array(id_of[at[mine]]), stat, pa.array(values[mine]))
                batches.add("event_stats", collector.take())


def _selection(selected: Mask) -> Selection:
    return slice(None) if selected.all() else selected


def _told_by_columns(track: Track) -> set[str]:
    """Columns that tell the stats of the track's device events; those for others are rows of event_stats."""
    # An op without the stat has its own name there. On a host line it would be no op.
    named_itself = track.holds_ops and track.device_index is not None
    return _TOLD_OF_DEVICE - {"hlo_op_name_id"} if named_itself else _TOLD_OF_DEVICE


def _valid(columns: Mapping[str, Column], name: str, count: int) -> Mask:
    column = columns.get(name)
    return np.zeros(count, bool) if column is None else column.valid


def _op_names(events: _Events) -> Int64Array:
    """Name ids of the HLO ops that the events are: what their stats say, else their own names."""
    column = events.typed.columns.get("hlo_op_name_id")
    if column is None:
        return events.name_ids
    return np.where(column.valid, column.values, events.name_ids).astype(np.int64)
