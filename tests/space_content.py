"""The content of an XSpace in plain Python: as a decoder of tracewh gives it, and as protobuf itself does."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import unknown_fields

from tracewh.ingest.xspace_space import Chunk, Plane, Space, Stats

# A stat is (id of its metadata, number of the field that has the value or 0, value); a double is its bits.
Stat = tuple[int, int, int | bytes | None]
# metadata_id, offset_ps, duration_ps, num_occurrences or None, stats
Event = tuple[int, int, int, int | None, tuple[Stat, ...]]

_NUMBERS = {
    "double_value": 2,
    "uint64_value": 3,
    "int64_value": 4,
    "str_value": 5,
    "bytes_value": 6,
    "ref_value": 7,
    "compressed_str_value": 8,
}


def assert_holds(space: Space, message: Any) -> None:
    """Compare all that the decoded `space` has with protobuf's reading, which is `message`; line by line."""
    for texts in ("errors", "warnings", "hostnames"):
        assert getattr(space, texts) == list(getattr(message, texts))
    assert len(space.planes) == len(message.planes)
    for plane, expected in zip(space.planes, message.planes, strict=True):
        head, expected_head = _head(plane), _expected_head(expected)
        if _has_odd_entries(expected):
            head, expected_head = (
                {key: found[key] for key in ("id", "name")} for found in (head, expected_head)
            )
        assert head == expected_head
        own: list[Stat] = []
        for stats in space.stats(plane):
            assert not stats.owner.any()
            own += _stats(stats)
        assert own == [_expected_stat(stat) for stat in expected.stats]
        assert len(plane.lines) == len(expected.lines)
        for line, expected_line in zip(plane.lines, expected.lines, strict=True):
            assert [getattr(line, name) for name in _LINE_FIELDS] == [
                getattr(expected_line, name) for name in _LINE_FIELDS
            ]
            assert line.event_count == len(expected_line.events)
            events: list[Event] = []
            for owner, chunk in space.chunks([line]):
                assert owner is line
                events += _events(chunk)
            assert events == [_expected_event(event) for event in expected_line.events]
        # All lines at once, as they are read for the warehouse.
        counts = [0] * len(plane.lines)
        places = {id(line): position for position, line in enumerate(plane.lines)}
        seen = []
        for owner, chunk in space.chunks(plane.lines):
            counts[places[id(owner)]] += len(chunk)
            seen.append(places[id(owner)])
        assert counts == [len(line.events) for line in expected.lines]
        assert seen == sorted(seen)


_MAPS, _DELIMITED = (4, 5), 2
_LINE_FIELDS = ("id", "display_id", "name", "display_name", "timestamp_ns", "duration_ps")


def _head(plane: Plane) -> dict[str, Any]:
    metadata = plane.event_metadata
    ids = metadata.ids.tolist()
    stats: dict[int, list[Stat]] = {key: [] for key in ids}
    for owner, stat in zip(metadata.stats.owner.tolist(), _stats(metadata.stats), strict=True):
        stats[ids[owner]].append(stat)
    assert len(ids) == len(set(ids)) == len(metadata.names) == len(metadata.display_names)
    return {
        "id": plane.id,
        "name": plane.name,
        "names": dict(zip(ids, metadata.names, strict=True)),
        "display names": dict(zip(ids, metadata.display_names, strict=True)),
        "stats": stats,
        "metadata": {ids[row]: raw for row, raw in metadata.metadata.items()},
        "children": {ids[row]: children for row, children in metadata.child_ids.items()},
        "stat names": plane.stat_names,
        "stat descriptions": plane.stat_descriptions,
    }


def _has_odd_entries(plane: Any) -> bool:
    """Whether protobuf has set entries of the plane's maps aside, as it does with those of unknown fields."""
    return any(
        field.field_number in _MAPS and field.wire_type == _DELIMITED
        for field in unknown_fields.UnknownFieldSet(plane)
    )


def _expected_head(plane: Any) -> dict[str, Any]:
    metadata = dict(plane.event_metadata.items())
    return {
        "id": plane.id,
        "name": plane.name,
        "names": {key: item.name for key, item in metadata.items()},
        "display names": {key: item.display_name for key, item in metadata.items()},
        "stats": {key: [_expected_stat(stat) for stat in item.stats] for key, item in metadata.items()},
        "metadata": {key: item.metadata for key, item in metadata.items() if item.metadata},
        "children": {key: list(item.child_id) for key, item in metadata.items() if item.child_id},
        "stat names": {key: item.name for key, item in plane.stat_metadata.items()},
        "stat descriptions": {
            key: item.description for key, item in plane.stat_metadata.items() if item.description
        },
    }


def _events(chunk: Chunk) -> Iterator[Event]:
    stats: list[list[Stat]] = [[] for _ in range(len(chunk))]
    owners = chunk.stats.owner.tolist()
    # Stats are in the order of the file.
    assert owners == sorted(owners)
    for owner, stat in zip(owners, _stats(chunk.stats), strict=True):
        stats[owner].append(stat)
    columns = (
        chunk.metadata_id,
        chunk.offset_ps,
        chunk.duration_ps,
        chunk.is_count,
        chunk.num_occurrences,
    )
    for metadata_id, offset, duration, is_count, occurrences, own in zip(
        *(column.tolist() for column in columns), stats, strict=True
    ):
        assert is_count or not occurrences
        yield metadata_id, offset, duration, occurrences if is_count else None, tuple(own)


def _expected_event(event: Any) -> Event:
    return (
        event.metadata_id,
        event.offset_ps,
        event.duration_ps,
        event.num_occurrences if event.WhichOneof("value") == "num_occurrences" else None,
        tuple(map(_expected_stat, event.stats)),
    )


def _stats(stats: Stats) -> list[Stat]:
    blobs = stats.blobs.to_pylist()
    used = 0
    found: list[Stat] = []
    columns: Iterable[tuple[int, int, int]] = zip(
        stats.stat_id.tolist(), stats.value_type.tolist(), stats.value.tolist(), strict=True
    )
    for stat_id, kind, bits in columns:
        value: int | bytes | None = bits
        if kind == 0:
            assert not bits
            value = None
        elif kind in (2, 3, 7):
            value = bits % (1 << 64)
        elif kind in (5, 6, 8):
            assert bits == used
            value = blobs[used]
            used += 1
        found.append((stat_id, kind, value))
    assert used == len(blobs)
    return found


def _expected_stat(stat: Any) -> Stat:
    which = stat.WhichOneof("value")
    if which is None:
        return stat.metadata_id, 0, None
    value = getattr(stat, which)
    if which == "double_value":
        value = struct.unpack("<Q", struct.pack("<d", value))[0]
    return stat.metadata_id, _NUMBERS[which], value
