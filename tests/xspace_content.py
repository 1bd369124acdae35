"""What an XSpace says, in a form to compare: read from its bytes by protobuf, without tracewh.

The form drops only what tracewh is free to choose: signed and unsigned integers of equal bits are one value,
and so are references, strings and the texts behind them; spellings that share a column share a name. An event
has what it inherits in a column as a stat, whether or not it repeats it; the rest is its metadata's.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from .xspace_oracle import text

Value = tuple[str, Any]
Stat = tuple[str, str, Any]
Stats = tuple[Stat, ...]
# The id of its metadata, its shown name, when (a count, or an offset in ps), how long, its stats.
Event = tuple[int, str, tuple[str, int], int, Stats]

SCOPE_PLANE = "/host:__ScopeRangeCallStack__"
DEVICE_PLANE = re.compile(r"/device:(GPU|TPU|CPU):[0-9]{1,9}( .+)?")
TPU_OP_LINES = {"XLA Ops", "Async XLA Ops", "Sparse Core Ops"}

# --- names and values ---------------------------------------------------------------------------------------

SHARED_NAMES = {
    "cuda_graph_id": "graph_id",
    "hip_graph_id": "graph_id",
    "cuda_graph_node_id": "graph_node_id",
    "hip_graph_node_id": "graph_node_id",
    "kernel_details": "details",
    "memcpy_details": "details",
    "Memset_details": "details",
    "memset_details": "details",
}
OCCUPANCY = "theoretical_occupancy_pct"
LAUNCH_STATS = {
    "correlation_id": "integer",
    "context_id": "context",
    "graph_id": "integer",
    "program_id": "integer",
    "run_id": "integer",
    "scope_range_id": "integer",
    "details": "text",
}
HOST_STATS = LAUNCH_STATS | dict.fromkeys(("device_id", "_pt", "_p", "_ct", "_c"), "integer")
DEVICE_STATS = (
    LAUNCH_STATS
    | dict.fromkeys(("hlo_op", "hlo_module", "name", "tf_op", "annotation", "nvtx_range"), "text")
    | dict.fromkeys(
        ("graph_node_id", "unique_hlo_op_id", "occupancy_min_grid_size", "occupancy_suggested_block_size"),
        "integer",
    )
    | {OCCUPANCY: "double"}
)
"""Stats that have a column, by their shared name, with the kind of value that it holds."""


def number_bits(value: float) -> int:
    """The bits of a double: -0.0 is not 0.0, and a NaN is itself."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def ratio_value(ratio: float) -> Value:
    """An occupancy as a ratio; the sign of a zero tells nothing."""
    return "double", number_bits(ratio + 0.0)


def shared_name(name: str) -> str:
    return SHARED_NAMES.get(name, name)


def context_value(written: str) -> Value:
    found = re.fullmatch(r"(?:\$\$)?(0|[1-9][0-9]{0,18})", written)
    return ("context", int(found[1])) if found and int(found[1]) < 2**63 else ("text", written)


def uncompressed(raw: bytes) -> Value:
    """The text of a gzip stream; what is no single whole stream stays as it is."""
    inflater = zlib.decompressobj(31)
    try:
        plain = inflater.decompress(raw)
    except zlib.error:
        return "compressed bytes", raw
    is_whole = inflater.eof and not inflater.unused_data
    return ("compressed text", text(plain)) if is_whole else ("compressed bytes", raw)


def canonical(name: str, kind: str, value: Any) -> Stat:
    """A stat in the form to compare; `kind` is double, uint64, int64, string, ref, bytes or none."""
    name = shared_name(name)
    match kind:
        case "int64" | "uint64":
            return name, "integer", value % 2**64
        case "double" if name == OCCUPANCY:
            return name, *ratio_value(value / 100)
        case "double":
            return name, "double", number_bits(value)
        case "string" | "ref" if name == "context_id":
            return name, *context_value(value)
        case "string" | "ref":
            return name, "text", value
        case "none":
            return name, "none", 0
        case _:
            return name, kind, value


def in_order(stats: Iterable[Stat]) -> Stats:
    # Values of one name and kind are of one type.
    return tuple(sorted(stats))


# --- reading ------------------------------------------------------------------------------------------------

_KINDS = {
    2: "double",
    3: "uint64",
    4: "int64",
    5: "string",
    6: "bytes",
    7: "ref",
    8: "compressed",
}


@dataclass
class Metadata:
    """Event metadata with what its events take over."""

    name: str
    display_name: str
    raw: bytes
    child_ids: tuple[int, ...]
    stats: Stats
    inherited: dict[str, list[Stat]] = field(default_factory=dict, compare=False)

    @property
    def shown(self) -> str:
        return self.display_name or self.name


@dataclass
class Line:
    """A line. Ops of a CPU device on a host line are device events; each kind is in the order of the file."""

    id: int
    display_id: int
    name: str
    display_name: str
    timestamp_ns: int
    duration_ps: int
    device_events: list[Event] = field(default_factory=list)
    host_events: list[Event] = field(default_factory=list)


@dataclass
class Plane:
    id: int
    name: str
    stats: Stats
    scope_ranges: tuple[tuple[int, int], ...]
    descriptions: tuple[tuple[str, str], ...]
    metadata: dict[int, Metadata]


@dataclass
class Header:
    """What holds for the whole file."""

    errors: list[str]
    warnings: list[str]
    hostnames: list[str]


def read_header(message: Any) -> Header:
    return Header(
        *(list(map(text, texts)) for texts in (message.errors, message.warnings, message.hostnames))
    )


class PlaneReader:
    """The content of one XPlane message, line by line."""

    def __init__(self, message: Any, has_accelerator: bool, is_scope_plane: bool) -> None:
        self._message, self._has_accelerator = message, has_accelerator
        self._stat_names = {key: text(value.name) for key, value in message.stat_metadata.items()}
        # Reading a name, a number or a reference again gives the same object, which saves memory.
        self._known: dict[tuple[int, int, Any], Stat] = {}
        self._name = text(message.name)
        self._device = DEVICE_PLANE.fullmatch(self._name)
        used = {event.metadata_id for line in message.lines for event in line.events}
        metadata = {key: self._metadata(item) for key, item in message.event_metadata.items()}
        for missing in used - metadata.keys():
            metadata[missing] = Metadata(f"event metadata {missing}", "", b"", (), ())
        stats, ranges = [], []
        for stat in message.stats:
            name, kind, value = self._stat(stat)
            if is_scope_plane and kind == "integer" and not self._stat_names.get(stat.metadata_id):
                ranges.append((stat.metadata_id, value))
            else:
                stats.append((name, kind, value))
        descriptions = [
            (text(item.name), text(item.description))
            for item in message.stat_metadata.values()
            if item.description
        ]
        self.plane = Plane(
            message.id, self._name, in_order(stats), tuple(ranges), tuple(sorted(descriptions)), metadata
        )

    def lines(self) -> Iterator[Line]:
        for message in self._message.lines:
            line = Line(
                message.id,
                message.display_id,
                text(message.name),
                text(message.display_name),
                message.timestamp_ns,
                message.duration_ps,
            )
            for event in message.events:
                self._add_event(line, event)
            yield line

    def _metadata(self, message: Any) -> Metadata:
        stats = list(map(self._stat, message.stats))
        by_name: dict[str, list[Stat]] = {}
        for stat in stats:
            by_name.setdefault(stat[0], []).append(stat)
        return Metadata(
            text(message.name),
            text(message.display_name),
            message.metadata,
            tuple(message.child_id),
            in_order(stats),
            by_name,
        )

    def _stat_name(self, stat_id: int) -> str:
        return self._stat_names.get(stat_id, f"stat {stat_id}")

    def _stat(self, stat: Any) -> Stat:
        number, value = 0, cast(Any, None)
        for descriptor, item in stat.ListFields():
            if descriptor.number != 1:
                number, value = descriptor.number, item
        # As a key a NaN is no NaN, and 0.0 is -0.0.
        key = (stat.metadata_id, number, number_bits(value) if number == 2 else value)
        if key not in self._known:
            kind = _KINDS.get(number, "none")
            if kind == "ref":
                # Ids of metadata are signed.
                value = self._stat_name(value - 2**64 if value >= 2**63 else value)
            elif kind == "string":
                value = text(value)
            name = self._stat_name(stat.metadata_id)
            self._known[key] = (
                (shared_name(name), *uncompressed(value))
                if kind == "compressed"
                else canonical(name, kind, value)
            )
        return self._known[key]

    def _add_event(self, line: Line, event: Any) -> None:
        metadata = self.plane.metadata[event.metadata_id]
        own = list(map(self._stat, event.stats))
        own_names = {stat[0] for stat in own}

        def held(columns: Mapping[str, str]) -> list[Stat]:
            """What the columns hold without being stats of the event: the last that the metadata has."""
            # A text for the context is taken for it, and turns out to be no number afterwards.
            taken = []
            for name, kind in columns.items():
                accepted = ("context", "text") if kind == "context" else (kind,)
                found = [stat for stat in metadata.inherited.get(name, ()) if stat[1] in accepted]
                if name not in own_names and found and found[-1][1] == kind:
                    taken.append(found[-1])
            return taken

        is_op = self._device is None and self._is_op(own, metadata, own_names)
        is_on_device = self._device is not None or is_op
        stats = list(own)
        if metadata.inherited:
            stats += held(DEVICE_STATS if is_on_device else HOST_STATS)
        if is_on_device:
            stats += _stated_occupancy(stats)
        is_tpu_op = (
            self._device is not None
            and self._device[1] == "TPU"
            and (line.display_name or line.name) in TPU_OP_LINES
        )
        if is_tpu_op and "hlo_op" not in own_names:
            # An op that names no other is the op that it is called.
            stats = [stat for stat in stats if stat != ("hlo_op", "text", metadata.shown)]
        which = event.WhichOneof("value")
        when = ("count", event.num_occurrences) if which == "num_occurrences" else ("offset", event.offset_ps)
        found = (event.metadata_id, metadata.shown, when, event.duration_ps, in_order(stats))
        (line.device_events if is_on_device else line.host_events).append(found)

    def _is_op(self, own: list[Stat], metadata: Metadata, own_names: set[str]) -> bool:
        """Whether an event of the host is an op of a CPU device."""

        def has(name: str, kind: str) -> bool:
            stats = own if name in own_names else metadata.inherited.get(name, [])
            return any(stat[:2] == (name, kind) for stat in stats)

        return (
            has("hlo_op", "text")
            and not has("correlation_id", "integer")
            and (not self._has_accelerator or has("device_ordinal", "integer"))
        )


def _stated_occupancy(stats: list[Stat]) -> list[Stat]:
    """The occupancy that the details text states, where no stat does."""
    if any(stat[:2] == (OCCUPANCY, "double") for stat in stats):
        return []
    details = [value for name, kind, value in stats if (name, kind) == ("details", "text")]
    stated = re.findall(r"(?<!\w)occ_pct:(\S+)", details[-1]) if details else []
    try:
        ratio = float(stated[-1]) / 100 if stated else 0.0
    except ValueError:
        return []
    return [(OCCUPANCY, *ratio_value(ratio))] if 0 < ratio <= 1 else []


def plane_readers(message: Any) -> list[PlaneReader]:
    names = [text(plane.name) for plane in message.planes]
    has_accelerator = any(DEVICE_PLANE.fullmatch(name) for name in names)
    first_scope_plane = names.index(SCOPE_PLANE) if SCOPE_PLANE in names else None
    return [
        PlaneReader(plane, has_accelerator, position == first_scope_plane)
        for position, plane in enumerate(message.planes)
    ]
