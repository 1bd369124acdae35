"""Decodes an XSpace with compiled loops over its bytes: a little start-up, then a byte a nanosecond.

Only the events asked for are decoded, part by part, so memory grows with a part and not with the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from tracewh.ingest import xspace_protobuf, xspace_wire
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_calls import Buffer, EventColumns, Kernels, StatColumns, placed
from tracewh.ingest.xspace_damage import Whole, unreadable
from tracewh.ingest.xspace_fields import MAX_DEPTH, Broken, walk
from tracewh.ingest.xspace_messages import MAX_MESSAGE_BYTES, MESSAGES
from tracewh.ingest.xspace_space import Chunk, Int64Array, Line, Mask, Plane, Stats

_MAX_PART_EVENTS = 61_440
_MAX_PART_BYTES = 4 << 20
# How many parts are found before what was read is released.
_PARTS_AT_ONCE = 8
# Few events have more stats than one in so many bytes; for those, room is made when they are met.
_USUAL_STAT_BYTES = 6


@dataclass(frozen=True)
class _Part:
    """Some events of a line, or stats of a plane: the fields in buffer[start:end], `count` of them.

    `first` is how many events of the line, or stats of the plane, come before.
    """

    start: int
    end: int
    count: int
    first: int


class CompiledSpace:
    """An XSpace in `buffer`, which must stay as it is while chunks are read.

    `threads` parts are decoded at once. `release` is called with an offset when no part before it is needed
    any more, lines being asked for in the order of the file. Raises UnreadableFile where planes, lines or
    metadata are damaged.
    """

    def __init__(
        self, buffer: Buffer, place: str, threads: int = 1, release: Callable[[int], None] | None = None
    ) -> None:
        self._buffer, self._place, self._threads, self._release = buffer, place, threads, release
        self._kernels = Kernels(buffer)
        tags, _, starts, ends, _ = self._fields(0, len(buffer), MAX_DEPTH)
        spans = {
            tag: list(zip(starts[tags == tag].tolist(), ends[tags == tag].tolist(), strict=True))
            for tag in (
                xspace_wire.SPACE_PLANES,
                xspace_wire.SPACE_ERRORS,
                xspace_wire.SPACE_WARNINGS,
                xspace_wire.SPACE_HOSTNAMES,
            )
        }
        self.planes = [self._read_plane(*span) for span in spans[xspace_wire.SPACE_PLANES]]
        self.errors = self._texts(spans[xspace_wire.SPACE_ERRORS])
        self.warnings = self._texts(spans[xspace_wire.SPACE_WARNINGS])
        self.hostnames = self._texts(spans[xspace_wire.SPACE_HOSTNAMES])

    def chunks(self, lines: Iterable[Line]) -> Iterator[tuple[Line, Chunk]]:
        """The events of `lines`, in order. Raises UnreadableFile where they are damaged."""
        parts = ((line, part) for line in lines for part in line.parts)
        waiting: deque[tuple[Line, Any, Future[Chunk]]] = deque()
        with ThreadPoolExecutor(self._threads) as executor:
            for line, part in parts:
                waiting.append((line, part, executor.submit(self._read_part, part)))
                if len(waiting) > self._threads:
                    yield self._finished(*waiting.popleft())
            while waiting:
                yield self._finished(*waiting.popleft())

    def _finished(self, line: Line, part: Any, future: Future[Chunk]) -> tuple[Line, Chunk]:
        chunk = future.result()
        if isinstance(part, _Part):
            self._forget(part.end)
        return line, chunk

    def _forget(self, end: int) -> None:
        if self._release is not None:
            self._release(end)

    def stats(self, plane: Plane) -> Iterator[Stats]:
        """The stats of the plane itself, some at a time."""
        for part in plane.stat_parts:
            yield self._read_stats(part)

    placed = staticmethod(placed)

    def _fields(self, start: int, end: int, depth: int, merged_tag: int = 0) -> list[Int64Array]:
        """Tag, start, start and end of the payload, and number of the fields in buffer[start:end]."""
        (count, offset, *_), columns = self._kernels.list_fields(start, end, merged_tag, _MAX_PART_EVENTS)
        if count != xspace_wire.ODD:
            return columns
        try:
            fields = list(walk(self._buffer.data, start, end, depth))
        except Broken as error:
            raise self._unreadable(Whole(offset)) from error
        rows = [
            # Merged fields are spans of fields, of which this is one.
            (tag, field.offset, field.offset if tag == merged_tag else field.start, field.end, 1)
            for field in fields
            for tag in (field.number << 3 | field.wire_type,)
        ]
        return list(np.array(rows, np.int64).reshape(-1, 5).T.copy())

    def _texts(self, spans: list[tuple[int, int]]) -> list[bytes]:
        return [self._buffer[start:end].tobytes() for start, end in spans]

    def _read_plane(self, start: int, end: int) -> Plane:
        """Index the lines and stats of a plane; protobuf reads the rest of it."""
        tags, tag_starts, starts, ends, counts = self._fields(
            start, end, MAX_DEPTH - 1, xspace_wire.PLANE_STATS
        )
        is_line, is_stat = tags == xspace_wire.PLANE_LINES, tags == xspace_wire.PLANE_STATS
        # Fields that follow each other are one slice: maps have thousands of entries.
        first, last = _runs(~(is_line | is_stat))
        rest = self._texts(list(zip(tag_starts[first].tolist(), ends[last].tolist(), strict=True)))
        message = self._parse_plane(rest, Whole(start, lines=True))
        lines = [
            self._scan_line(*span)
            for span in zip(starts[is_line].tolist(), ends[is_line].tolist(), strict=True)
        ]
        stat_parts = _parts(starts[is_stat].tolist(), ends[is_stat].tolist(), counts[is_stat].tolist())
        self._forget(end)
        return xspace_protobuf.read_plane(message, lines, stat_parts)

    def _scan_line(self, start: int, end: int) -> Line:
        header = np.zeros(xspace_wire.HEADER_SLOTS, np.int64)
        bounds, counts = [start], list[int]()
        while bounds[-1] < end:
            (parts, offset, events, _), part_ends, part_events = self._kernels.scan_line(
                bounds[-1], end, header, _MAX_PART_EVENTS, _MAX_PART_BYTES, _PARTS_AT_ONCE
            )
            if parts == xspace_wire.ODD:
                return self._read_odd_line(start, end, Whole(offset, sum(counts) + events))
            self._forget(offset)
            bounds += part_ends
            counts += part_events
            if parts < _PARTS_AT_ONCE:
                break
        slots = (xspace_wire.HEADER_NAME, xspace_wire.HEADER_DISPLAY_NAME)
        name, display_name = self._texts([(int(header[slot]), int(header[slot + 1])) for slot in slots])
        return Line(
            int(header[xspace_wire.HEADER_ID]),
            int(header[xspace_wire.HEADER_DISPLAY_ID]),
            name,
            display_name,
            int(header[xspace_wire.HEADER_TIMESTAMP_NS]),
            int(header[xspace_wire.HEADER_DURATION_PS]),
            sum(counts),
            _parts(bounds[:-1], bounds[1:], counts),
        )

    def _read_odd_line(self, start: int, end: int, whole: Whole) -> Line:
        """Protobuf's reading of a line whose fields, not what is in them, are `whole` up to an odd one."""
        try:
            # Protobuf would take the line in up to where it breaks, at many times its size.
            for _ in walk(self._buffer.data, whole.end, end, MAX_DEPTH - 2):
                pass
        except Broken as error:
            raise self._unreadable(whole) from error
        return xspace_protobuf.read_line(self._parse_line(start, end, Whole(start)))

    def _read_part(self, part: Any) -> Chunk:
        if not isinstance(part, _Part):
            return xspace_protobuf.read_events(part)
        events, stats = EventColumns(part.count), StatColumns((part.end - part.start) // _USUAL_STAT_BYTES)
        count, _, stat_count, blob_count = self._kernels.read_events(part.start, part.end, events, stats)
        if count == xspace_wire.ODD and stat_count == stats.room:
            stats = StatColumns(self._kernels.count_stats(part.start, part.end))
            count, _, stat_count, blob_count = self._kernels.read_events(part.start, part.end, events, stats)
        if count == xspace_wire.ODD:
            return xspace_protobuf.read_events(
                self._parse_line(part.start, part.end, Whole(part.start, part.first)).events
            )
        return Chunk(
            events.metadata_id,
            events.offset_ps,
            events.duration_ps,
            events.is_count.view(np.bool_),
            events.occurrences,
            self._stats(stats, stat_count, blob_count),
        )

    def _read_stats(self, part: Any) -> Stats:
        stats = StatColumns(part.count)
        odd, _, stat_count, blob_count = self._kernels.read_stats(
            part.start, part.end, xspace_wire.PLANE_STATS, stats
        )
        if odd != xspace_wire.ODD:
            return self._stats(stats, stat_count, blob_count)
        return xspace_protobuf.read_stats(
            [self._parse_plane(self._texts([(part.start, part.end)]), Whole(part.start, lines=True)).stats]
        )

    def _parse_line(self, start: int, end: int, whole: Whole) -> Any:
        """Protobuf's reading of a line with the fields in buffer[start:end]."""
        head = bytes([xspace_wire.PLANE_LINES]) + _varint(end - start)
        return self._parse_plane([head, *self._texts([(start, end)])], whole).lines[0]

    def _parse_plane(self, fields: list[bytes], whole: Whole) -> Any:
        """Protobuf's reading of a plane with these fields; where it refuses, it is not in what is `whole`.

        It is read as part of a space, because protobuf takes so many messages and groups inside each other.
        """
        size = sum(map(len, fields))
        if size > MAX_MESSAGE_BYTES:
            raise UnreadableFile(
                f"{self._place}: {size:,} bytes in a plane's metadata or in an unusual encoding, near byte "
                f"{whole.end}; protobuf reads at most {MAX_MESSAGE_BYTES:,}. Profile fewer steps."
            )
        try:
            space = MESSAGES["XSpace"].FromString(
                b"".join([bytes([xspace_wire.SPACE_PLANES]), _varint(size), *fields])
            )
        except DecodeError as error:
            raise self._unreadable(whole) from error
        return space.planes[0]

    def _unreadable(self, whole: Whole) -> UnreadableFile:
        return unreadable(self._place, self._buffer.data, whole)

    def _stats(self, columns: StatColumns, count: int, blob_count: int) -> Stats:
        offsets, content = self._kernels.copied(
            columns.blob_starts[:blob_count], columns.blob_ends[:blob_count]
        )
        blobs = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), blob_count, [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        )
        return Stats(
            columns.owner[:count],
            columns.stat_id[:count],
            columns.value_type[:count],
            columns.value[:count],
            blobs,
        )


def _parts(starts: list[int], ends: list[int], counts: list[int]) -> list[_Part]:
    firsts = accumulate(counts[:-1], initial=0)
    return [_Part(*found) for found in zip(starts, ends, counts, firsts, strict=False)]


def _runs(chosen: Mask) -> tuple[Int64Array, Int64Array]:
    """First and last position of each run of True."""
    edges = np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1


def _varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
