"""XSpace bytes to columns: planes, lines, and per line the events and their stats as numpy arrays.

This is the only module that knows the wire layout of an XSpace. It resolves no ids: metadata maps may come
after the lines that use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.protobuf_messages import message_classes

Int64Array = npt.NDArray[np.int64]

MESSAGES = message_classes(
    "tracewh.xspace",
    {
        "XSpace": {
            "planes": (1, "repeated XPlane"),
            "errors": (2, "repeated bytes"),
            "warnings": (3, "repeated bytes"),
            "hostnames": (4, "repeated bytes"),
        },
        "XPlane": {
            "id": (1, "int64"),
            "name": (2, "bytes"),
            "lines": (3, "repeated XLine"),
            "event_metadata": (4, "repeated EventMetadataEntry"),
            "stat_metadata": (5, "repeated StatMetadataEntry"),
            "stats": (6, "repeated XStat"),
        },
        "EventMetadataEntry": {"key": (1, "int64"), "value": (2, "XEventMetadata")},
        "StatMetadataEntry": {"key": (1, "int64"), "value": (2, "XStatMetadata")},
        "XLine": {
            "id": (1, "int64"),
            "name": (2, "bytes"),
            "timestamp_ns": (3, "int64"),
            "events": (4, "repeated XEvent"),
            "duration_ps": (9, "int64"),
            "display_id": (10, "int64"),
            "display_name": (11, "bytes"),
        },
        "XEvent": {
            "metadata_id": (1, "int64"),
            "offset_ps": (2, "int64"),
            "duration_ps": (3, "int64"),
            "stats": (4, "repeated XStat"),
            "num_occurrences": (5, "int64"),
        },
        "XStat": {
            "metadata_id": (1, "int64"),
            "double_value": (2, "double"),
            "uint64_value": (3, "uint64"),
            "int64_value": (4, "int64"),
            "str_value": (5, "bytes"),
            "bytes_value": (6, "bytes"),
            "ref_value": (7, "uint64"),
            "compressed_str_value": (8, "bytes"),
        },
        "XEventMetadata": {
            "id": (1, "int64"),
            "name": (2, "bytes"),
            "metadata": (3, "bytes"),
            "display_name": (4, "bytes"),
            "stats": (5, "repeated XStat"),
            "child_id": (6, "repeated int64"),
        },
        "XStatMetadata": {"id": (1, "int64"), "name": (2, "bytes"), "description": (3, "bytes")},
    },
)

# Protobuf calls a longer message corrupt, which it is not.
_MAX_MESSAGE_BYTES = 2**31 - 1

# What an XStat can hold. The numbers are ours; `VALUE_TYPES` are the words the warehouse stores.
NONE, DOUBLE, UINT64, INT64, STRING, BYTES, REF, COMPRESSED = range(8)
VALUE_TYPES = ("none", "double", "uint64", "int64", "string", "bytes", "ref", "compressed")


@dataclass
class Stats:
    """Stats of many owners as columns, all of one length.

    `owner` is the position of the owner (an event of the line, say), `value_type` one of the constants above.
    `int_value` holds int64 values, uint64 values as the same bits, references, and for text and bytes the
    position in `blobs`; `double_value` holds doubles and is 0 elsewhere.
    """

    owner: Int64Array
    stat_id: Int64Array
    value_type: npt.NDArray[np.int8]
    int_value: Int64Array
    double_value: npt.NDArray[np.float64]
    blobs: list[bytes]


@dataclass
class Line:
    """One line with its events as columns of equal length; `num_occurrences` is -1 where absent."""

    id: int
    display_id: int
    name: bytes
    display_name: bytes
    timestamp_ns: int
    duration_ps: int
    metadata_id: Int64Array
    offset_ps: Int64Array
    duration: Int64Array
    num_occurrences: Int64Array
    stats: Stats


@dataclass
class EventMetadata:
    """Name and inherited stats of the events that refer to it."""

    name: bytes
    display_name: bytes
    metadata: bytes
    stats: Stats


@dataclass
class Plane:
    """One plane; the maps are keyed by metadata id."""

    id: int
    name: bytes
    lines: list[Line]
    event_metadata: dict[int, EventMetadata]
    stat_names: dict[int, bytes]
    stats: Stats


@dataclass
class Space:
    """A decoded XSpace."""

    planes: list[Plane]
    errors: list[bytes]
    warnings: list[bytes]
    hostnames: list[bytes]


def _signed(value: int) -> int:
    """The int64 with the bits of the uint64 `value`."""
    return value - (1 << 64) if value >= 1 << 63 else value


class _StatsBuilder:
    """Appends XStat messages to growing columns."""

    def __init__(self) -> None:
        self._owner: list[int] = []
        self._stat_id: list[int] = []
        self._value_type: list[int] = []
        self._int_value: list[int] = []
        self._doubles: dict[int, float] = {}
        self._blobs: list[bytes] = []

    def add(self, owner: int, stat: Any) -> None:
        number, double = 0, None
        fields = stat.ListFields()
        stat_id, value_type = 0, NONE
        for field, value in fields:
            match field.number:
                case 1:
                    stat_id = value
                case 2:
                    value_type, double = DOUBLE, value
                case 3:
                    value_type, number = UINT64, _signed(value)
                case 4:
                    value_type, number = INT64, value
                case 7:
                    value_type, number = REF, _signed(value)
                case 5 | 6 | 8:
                    value_type = {5: STRING, 6: BYTES, 8: COMPRESSED}[field.number]
                    number = len(self._blobs)
                    self._blobs.append(value)
        if double is not None:
            self._doubles[len(self._owner)] = double
        self._owner.append(owner)
        self._stat_id.append(stat_id)
        self._value_type.append(value_type)
        self._int_value.append(number)

    def build(self) -> Stats:
        double_value = np.zeros(len(self._owner))
        if self._doubles:
            double_value[list(self._doubles)] = list(self._doubles.values())
        return Stats(
            np.array(self._owner, np.int64),
            np.array(self._stat_id, np.int64),
            np.array(self._value_type, np.int8),
            np.array(self._int_value, np.int64),
            double_value,
            self._blobs,
        )


def _stats(messages: Any) -> Stats:
    builder = _StatsBuilder()
    for stat in messages:
        builder.add(0, stat)
    return builder.build()


def _line(message: Any) -> Line:
    events = message.events
    builder = _StatsBuilder()
    for index, event in enumerate(events):
        for stat in event.stats:
            builder.add(index, stat)
    return Line(
        message.id,
        message.display_id,
        message.name,
        message.display_name,
        message.timestamp_ns,
        message.duration_ps,
        np.array([event.metadata_id for event in events], np.int64),
        np.array([event.offset_ps for event in events], np.int64),
        np.array([event.duration_ps for event in events], np.int64),
        np.array(
            [event.num_occurrences if event.HasField("num_occurrences") else -1 for event in events], np.int64
        ),
        builder.build(),
    )


def _plane(message: Any) -> Plane:
    return Plane(
        message.id,
        message.name,
        [_line(line) for line in message.lines],
        {
            entry.key: EventMetadata(
                entry.value.name, entry.value.display_name, entry.value.metadata, _stats(entry.value.stats)
            )
            for entry in message.event_metadata
        },
        {entry.key: entry.value.name for entry in message.stat_metadata},
        _stats(message.stats),
    )


def decode(data: bytes, place: str) -> Space:
    """Decode a serialized XSpace; `place` names it in errors.

    Raises UnreadableFile, naming the plane and the offset, where the bytes are not an XSpace.
    """
    if len(data) > _MAX_MESSAGE_BYTES:
        raise UnreadableFile(
            f"{place}: {len(data):,} bytes; protobuf reads at most {_MAX_MESSAGE_BYTES:,}. "
            "Profile fewer steps or with a lower host_tracer_level."
        )
    message = MESSAGES["XSpace"]()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise UnreadableFile(f"{place}: {_damage(data)}. Copy the file again, or profile again.") from error
    if not any(plane.name for plane in message.planes):
        raise UnreadableFile(
            f"{place}: holds no named plane, so it is not an XSpace. Is it another file renamed?"
        )
    return Space(
        [_plane(plane) for plane in message.planes],
        list(message.errors),
        list(message.warnings),
        list(message.hostnames),
    )


def _fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Walk the top-level fields: (offset, field number, start of payload, end of payload)."""
    position = 0
    while position < len(data):
        offset = position
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type != 2 or not 1 <= number < 20:
            raise ValueError(f"byte {offset} is no field of an XSpace")
        length, position = _varint(data, position)
        if position + length > len(data):
            raise ValueError(
                f"truncated at byte {len(data)}: the field at byte {offset} needs {length} bytes, "
                f"{len(data) - position} are left"
            )
        yield offset, number, position, position + length
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ValueError(f"truncated at byte {len(data)}, inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
    raise ValueError(f"a number of more than 10 bytes ends at byte {position}")


def _damage(data: bytes) -> str:
    """Say where an undecodable XSpace breaks: protobuf itself tells no offset."""
    plane_number = 0
    try:
        for offset, number, start, end in _fields(data):
            if number != 1:
                continue
            try:
                MESSAGES["XPlane"]().ParseFromString(data[start:end])
            except DecodeError:
                return f"plane {plane_number} (bytes {offset} to {end}) is damaged"
            plane_number += 1
    except ValueError as error:
        return f"not a complete XSpace: {error}"
    return "not an XSpace"
