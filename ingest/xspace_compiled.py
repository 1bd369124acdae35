"""Decodes an XSpace with compiled loops over its bytes: a little start-up, then a byte a nanosecond.

Only the events asked for are decoded, part by part, so memory grows with a part and not with the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from tracewh.ingest import xspace_protobuf, xspace_wire
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_calls import Buffer, EventColumns, Kernels, StatColumns
from tracewh.ingest.xspace_messages import MAX_MESSAGE_BYTES, MESSAGES
from tracewh.ingest.xspace_space import Chunk, Int64Array, Line, Mask, Plane, Stats

_MAX_PART_EVENTS = 16_384
_MAX_PART_BYTES = 1 << 20
# No stat is shorter than its tag and its length.
_MIN_STAT_BYTES = 2


class UnusualBytes(Exception):
    """Neither the compiled loops nor protobuf can read a message; `offset` is where in the file."""

    def __init__(self, offset: int) -> None:
        self.offset = offset


@dataclass(frozen=True)
class _Part:
    """Some events of a line: the fields in buffer[start:end]; `plane` and `line` name them in errors."""

    start: int
    end: int
    event_count: int
    plane: bytes
    line: bytes


class CompiledSpace:
    """An XSpace in `buffer`, which must stay as it is while chunks are read.

    `threads` parts are decoded at once. `release` is called with an offset when no part before it is needed
    any more, lines being asked for in the order of the file. Raises UnusualBytes where the planes and their
    metadata cannot be told apart.
    """

    def __init__(
        self, buffer: Buffer, place: str, threads: int = 1, release: Callable[[int], None] | None = None
    ) -> None:
        self._buffer, self._place, self._threads, self._release = buffer, place, threads, release
        self._kernels = Kernels(buffer)
        tags, _, starts, ends = self._fields(0, len(buffer))
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

    def _fields(self, start: int, end: int) -> list[Int64Array]:
        """Tags of the fields in buffer[start:end], where each begins, where its payload begins and ends."""
        (count, offset, *_), columns = self._kernels.list_fields(start, end)
        if count == xspace_wire.ODD:
            raise UnusualBytes(offset)
        return columns

    def _texts(self, spans: list[tuple[int, int]]) -> list[bytes]:
        return [self._buffer[start:end].tobytes() for start, end in spans]

    def _read_plane(self, start: int, end: int) -> Plane:
        """Index the lines of a plane; protobuf reads the rest of it, stats apart."""
        tags, tag_starts, starts, ends = self._fields(start, end)
        is_line, is_stat = tags == xspace_wire.PLANE_LINES, tags == xspace_wire.PLANE_STATS
        # Fields that follow each other are one slice: maps have thousands of entries.
        first, last = _runs(~(is_line | is_stat))
        rest = self._texts(list(zip(tag_starts[first].tolist(), ends[last].tolist(), strict=True)))
        message = _parse("XPlane", b"".join(rest), start)
        name = bytes(message.name)
        lines = [
            self._scan_line(*span, name)
            for span in zip(starts[is_line].tolist(), ends[is_line].tolist(), strict=True)
        ]
        self._forget(end)
        return xspace_protobuf.read_plane(
            message, lines, self._read_plane_stats(starts[is_stat], ends[is_stat])
        )

    def _scan_line(self, start: int, end: int, plane: bytes) -> Line:
        (parts, offset, events, _), header, part_ends, part_events = self._kernels.scan_line(
            start, end, _MAX_PART_EVENTS, _MAX_PART_BYTES
        )
        if parts == xspace_wire.ODD:
            return xspace_protobuf.read_line(_parse("XLine", self._buffer[start:end].tobytes(), offset))
        name, display_name = self._texts(
            [
                (header[slot], header[slot + 1])
                for slot in (xspace_wire.HEADER_NAME, xspace_wire.HEADER_DISPLAY_NAME)
            ]
        )
        return Line(
            header[xspace_wire.HEADER_ID],
            header[xspace_wire.HEADER_DISPLAY_ID],
            name,
            display_name,
            header[xspace_wire.HEADER_TIMESTAMP_NS],
            header[xspace_wire.HEADER_DURATION_PS],
            events,
            [
                _Part(part_start, part_end, count, plane, display_name or name)
                for part_start, part_end, count in zip(
                    [start, *part_ends], part_ends, part_events, strict=False
                )
            ],
        )

    def _read_part(self, part: Any) -> Chunk:
        if not isinstance(part, _Part):
            return xspace_protobuf.read_events(part)
        size = part.end - part.start
        # One event may have any number of stats; otherwise room that is not used takes no memory.
        is_large = size > 2 * _MAX_PART_BYTES
        room = self._kernels.count_stats(part.start, part.end) if is_large else size // _MIN_STAT_BYTES
        events, stats = EventColumns(part.event_count), StatColumns(room)
        count, offset, stat_count, blob_count = self._kernels.read_events(part.start, part.end, events, stats)
        if count == xspace_wire.ODD:
            return self._read_odd_part(part, offset)
        return Chunk(
            events.metadata_id,
            events.offset_ps,
            events.duration_ps,
            events.is_count.view(np.bool_),
            events.occurrences,
            self._stats(stats, stat_count, blob_count),
        )

    def _read_odd_part(self, part: _Part, offset: int) -> Chunk:
        try:
            message = _parse("XLine", self._buffer[part.start : part.end].tobytes(), offset)
        except UnusualBytes as error:
            plane, line = (text.decode("utf-8", "replace") for text in (part.plane, part.line))
            raise UnreadableFile(
                f"{self._place}: plane {plane!r}, line {line!r}: damaged at byte {error.offset}. "
                "Copy the file again, or profile again."
            ) from error
        return xspace_protobuf.read_events(message.events)

    def _read_plane_stats(self, starts: Int64Array, ends: Int64Array) -> Stats:
        stats = StatColumns(len(starts))
        count, offset, stat_count, blob_count = self._kernels.read_stats(starts, ends, stats)
        if count != xspace_wire.ODD:
            return self._stats(stats, stat_count, blob_count)
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        return xspace_protobuf.read_stats([[_parse("XStat", text, offset) for text in self._texts(spans)]])

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


def _runs(chosen: Mask) -> tuple[Int64Array, Int64Array]:
    """First and last position of each run of True."""
    edges = np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1


def _parse(message: str, data: bytes, offset: int) -> Any:
    """Protobuf's reading of one message; raises UnusualBytes with `offset` where it refuses."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise UnusualBytes(offset)
    try:
        return MESSAGES[message].FromString(data)
    except DecodeError as error:
        raise UnusualBytes(offset) from error
