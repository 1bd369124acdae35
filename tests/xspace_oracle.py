"""An independent reading and writing of XSpace files, for tests that must not trust tracewh's decoder.

The messages are declared here from the published XPlane proto, with real maps and oneofs; nothing of tracewh
is imported. `read_space` gives plain Python objects; `SpaceBuilder` makes synthetic spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
}
# `?` marks a member of the message's oneof, `*` a repeated field, `map` a map<int64, ...>. Text is bytes,
# because proto3 refuses a string that is not UTF-8.
_PROTO = """
XSpace: planes=1 *XPlane, errors=2 *bytes, warnings=3 *bytes, hostnames=4 *bytes
XPlane: id=1 int64, name=2 bytes, lines=3 *XLine, event_metadata=4 map XEventMetadata, \
stat_metadata=5 map XStatMetadata, stats=6 *XStat
XLine: id=1 int64, name=2 bytes, timestamp_ns=3 int64, events=4 *XEvent, duration_ps=9 int64, \
display_id=10 int64, display_name=11 bytes
XEvent: metadata_id=1 int64, offset_ps=2 ?int64, duration_ps=3 int64, stats=4 *XStat, num_occurrences=5 ?int64
XStat: metadata_id=1 int64, double_value=2 ?double, uint64_value=3 ?uint64, int64_value=4 ?int64, \
str_value=5 ?bytes, bytes_value=6 ?bytes, ref_value=7 ?uint64, compressed_str_value=8 ?bytes
XEventMetadata: id=1 int64, name=2 bytes, metadata=3 bytes, display_name=4 bytes, stats=5 *XStat, \
child_id=6 *int64
XStatMetadata: id=1 int64, name=2 bytes, description=3 bytes
"""
_TYPE_OF_FIELD = {
    "double_value": "double",
    "uint64_value": "uint64",
    "int64_value": "int64",
    "str_value": "string",
    "bytes_value": "bytes",
    "ref_value": "ref",
    "compressed_str_value": "compressed",
}


def _space_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="xspace_oracle.proto", package="oracle", syntax="proto3")
    for declaration in _PROTO.strip().splitlines():
        message_name, _, members = declaration.partition(": ")
        message = file.message_type.add(name=message_name)
        for member in members.split(", "):
            label_and_number, _, type_name = member.strip().partition(" ")
            name, _, number = label_and_number.partition("=")
            item = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
            if type_name.startswith("map "):
                entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                key = entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL)
                key.type = _Field.TYPE_INT64
                value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
                value.type, value.type_name = _Field.TYPE_MESSAGE, f".oracle.{type_name[4:]}"
                item.label, item.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
                item.type_name = f".oracle.{message_name}.{entry.name}"
                continue
            if type_name[0] == "?":
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                item.oneof_index = 0
            elif type_name[0] == "*":
                item.label = _Field.LABEL_REPEATED
            base = type_name.lstrip("?*")
            if base in _TYPES:
                item.type = _TYPES[base]
            else:
                item.type, item.type_name = _Field.TYPE_MESSAGE, f".oracle.{base}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("oracle.XSpace"))


XSpace = _space_class()

# --- wire format --------------------------------------------------------------------------------------------


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of one protobuf message: (number, integer or bytes)."""
    position = 0

    def take() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        tag = take()
        match tag & 7:
            case 0:
                yield tag >> 3, take()
            case 2:
                size = take()
                yield tag >> 3, data[position : position + size]
                position += size
            case width:
                size = {1: 8, 5: 4}[width]
                yield tag >> 3, data[position : position + size]
                position += size


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


# --- reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stat:
    """A stat; `type` is double, uint64, int64, string, bytes, ref, compressed or none."""

    name: str
    type: str
    value: Any


@dataclass
class Event:
    """An event; `stats` are its own and, before them, those of its metadata that it does not override."""

    name: str
    display_name: str
    start_ps: int
    duration_ps: int
    num_occurrences: int | None
    stats: list[Stat]
    own_stats: list[Stat]

    @property
    def end_ps(self) -> int:
        return self.start_ps + self.duration_ps

    def stat(self, name: str) -> Any:
        """Value of the stat of that name; None where it has none."""
        return next((stat.value for stat in self.stats if stat.name == name), None)


@dataclass
class Line:
    id: int
    name: str
    display_name: str
    timestamp_ns: int
    events: list[Event]


@dataclass
class EventMetadata:
    name: str
    display_name: str
    stats: list[Stat]


@dataclass
class Plane:
    name: str
    lines: list[Line]
    stats: list[Stat]
    event_metadata: dict[int, EventMetadata]


@dataclass
class Space:
    planes: list[Plane]
    errors: list[str]
    warnings: list[str]
    hostnames: list[str]

    def plane(self, name: str) -> Plane:
        return next(plane for plane in self.planes if plane.name == name)


def text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def read_space(data: bytes) -> Space:
    """Parse a whole XSpace."""
    message = XSpace.FromString(data)
    return Space(
        [_plane(plane) for plane in message.planes],
        [text(raw) for raw in message.errors],
        [text(raw) for raw in message.warnings],
        [text(raw) for raw in message.hostnames],
    )


def _plane(message: Any) -> Plane:
    stat_names = {key: text(value.name) for key, value in message.stat_metadata.items()}

    def stats_of(messages: Iterable[Any]) -> list[tuple[int, Stat]]:
        found = []
        for stat in messages:
            which = stat.WhichOneof("value")
            kind = "none" if which is None else _TYPE_OF_FIELD[which]
            value = None if which is None else getattr(stat, which)
            if kind == "ref":
                # Ids of metadata are signed.
                value = value - 2**64 if value >= 2**63 else value
                value = stat_names.get(value, f"stat {value}")
            elif kind == "string":
                value = text(value)
            name = stat_names.get(stat.metadata_id, f"stat {stat.metadata_id}")
            found.append((stat.metadata_id, Stat(name, kind, value)))
        return found

    inherited = {key: stats_of(value.stats) for key, value in message.event_metadata.items()}
    metadata = {
        key: EventMetadata(text(value.name), text(value.display_name), [stat for _, stat in inherited[key]])
        for key, value in message.event_metadata.items()
    }
    lines = []
    for line in message.lines:
        events = []
        base_ps = line.timestamp_ns * 1000
        for event in line.events:
            own = stats_of(event.stats)
            own_ids = {stat_id for stat_id, _ in own}
            known = metadata.get(event.metadata_id)
            stats = [stat for key, stat in inherited.get(event.metadata_id, []) if key not in own_ids]
            which = event.WhichOneof("value")
            events.append(
                Event(
                    f"event metadata {event.metadata_id}" if known is None else known.name,
                    "" if known is None else known.display_name,
                    base_ps + event.offset_ps,
                    event.duration_ps,
                    event.num_occurrences if which == "num_occurrences" else None,
                    stats + [stat for _, stat in own],
                    [stat for _, stat in own],
                )
            )
        lines.append(Line(line.id, text(line.name), text(line.display_name), line.timestamp_ns, events))
    return Plane(text(message.name), lines, [stat for _, stat in stats_of(message.stats)], metadata)


# --- writing ------------------------------------------------------------------------------------------------


class Unsigned(int):
    """A stat value to write as uint64."""


class Ref(str):
    """A stat value to write as a reference to the text."""

    __slots__ = ()


class Compressed(bytes):
    """A stat value to write as compressed_str_value."""

    __slots__ = ()


StatValue = Any
Stats = Mapping[str, StatValue] | Iterable[tuple[str, StatValue]]


@dataclass
class PlaneBuilder:
    """Adds to one plane; metadata is made as it is needed."""

    message: Any
    _events: dict[str | bytes, int] = field(default_factory=dict)
    _stats: dict[str | bytes, int] = field(default_factory=dict)

    def stat_id(self, name: str | bytes) -> int:
        if name not in self._stats:
            number = self._stats[name] = len(self._stats) + 1
            self.message.stat_metadata[number].id = number
            self.message.stat_metadata[number].name = name.encode() if isinstance(name, str) else name
        return self._stats[name]

    def add_stats(self, owner: Any, stats: Stats) -> None:
        """Append stats to an event, an event metadata or the plane."""
        for name, value in stats.items() if isinstance(stats, Mapping) else stats:
            stat = owner.stats.add(metadata_id=name if isinstance(name, int) else self.stat_id(name))
            match value:
                case None:
                    pass
                case Ref():
                    stat.ref_value = self.stat_id(str(value))
                case Unsigned():
                    stat.uint64_value = value
                case bool() | int():
                    stat.int64_value = value
                case float():
                    stat.double_value = value
                case str():
                    stat.str_value = value.encode()
                case Compressed():
                    stat.compressed_str_value = bytes(value)
                case bytes():
                    stat.bytes_value = value

    def metadata(
        self, name: str | bytes, display_name: str = "", stats: Stats = (), key: int | None = None
    ) -> int:
        """Id of the event metadata of that name."""
        if name not in self._events:
            number = self._events[name] = len(self._events) + 1 if key is None else key
            made = self.message.event_metadata[number]
            made.id = number
            made.name = name.encode() if isinstance(name, str) else name
            made.display_name = display_name.encode()
            self.add_stats(made, stats)
        return self._events[name]

    def line(
        self, name: str | bytes, line_id: int = 0, timestamp_ns: int = 0, display_name: str = ""
    ) -> LineBuilder:
        made = self.message.lines.add(id=line_id, timestamp_ns=timestamp_ns)
        made.name = name.encode() if isinstance(name, str) else name
        made.display_name = display_name.encode()
        return LineBuilder(self, made)


@dataclass
class LineBuilder:
    """Adds events to one line."""

    plane: PlaneBuilder
    message: Any

    def event(
        self,
        name: str | bytes | int,
        offset_ps: int = 0,
        duration_ps: int = 0,
        stats: Stats = (),
        num_occurrences: int | None = None,
    ) -> LineBuilder:
        """Add an event; an integer name is a metadata id as it stands."""
        metadata_id = name if isinstance(name, int) else self.plane.metadata(name)
        made = self.message.events.add(metadata_id=metadata_id, duration_ps=duration_ps)
        if num_occurrences is None:
            made.offset_ps = offset_ps
        else:
            made.num_occurrences = num_occurrences
        self.plane.add_stats(made, stats)
        return self


class SpaceBuilder:
    """A synthetic XSpace."""

    def __init__(self) -> None:
        self.message = XSpace()

    def plane(self, name: str | bytes, stats: Stats = ()) -> PlaneBuilder:
        made = PlaneBuilder(self.message.planes.add(id=len(self.message.planes)))
        made.message.name = name.encode() if isinstance(name, str) else name
        made.add_stats(made.message, stats)
        return made

    def gpu(self, ordinal: int = 0) -> PlaneBuilder:
        """Plane of an NVIDIA GPU."""
        stats = {"device_vendor": "Nvidia", "gpu_device_name": "NVIDIA H200"}
        return self.plane(f"/device:GPU:{ordinal}", stats)

    def serialize(self) -> bytes:
        return self.message.SerializeToString(deterministic=True)


# --- intervals ----------------------------------------------------------------------------------------------


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Disjoint intervals, ascending, that cover the same points; touching ones are joined."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def measure(intervals: Iterable[tuple[int, int]]) -> int:
    """Length of the union of the intervals."""
    return sum(end - start for start, end in merged(intervals))


def without(intervals: Iterable[tuple[int, int]], taken: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of `intervals` lies outside `taken`, as disjoint intervals."""
    result = []
    holes = merged(taken)
    first = 0
    for start, end in merged(intervals):
        position = start
        while first < len(holes) and holes[first][1] <= start:
            first += 1
        index = first
        while index < len(holes) and holes[index][0] < end:
            if holes[index][0] > position:
                result.append((position, holes[index][0]))
            position = max(position, holes[index][1])
            index += 1
        if position < end:
            result.append((position, end))
    return result
