"""Decodes an XSpace with compiled loops over its bytes: half a second of start-up, then a byte a nanosecond.

Only the events asked for are decoded, part by part, so memory grows with a part and not with the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError

from tracewh.ingest import xspace_kernels as kernels
from tracewh.ingest import xspace_protobuf
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_messages import MAX_MESSAGE_BYTES, MESSAGES
from tracewh.ingest.xspace_space import Chunk, Int64Array, Line, Plane, Stats

Buffer = npt.NDArray[np.uint8]

_MAX_PART_EVENTS = 61_440
_MAX_PART_BYTES = 4 << 20
# No message is shorter than its tag and its length.
_MIN_MESSAGE_BYTES = 2

_PLANE_LINES = 3 << 3 | kernels.DELIMITED
_PLANE_STATS = 6 << 3 | kernels.DELIMITED
_SPACE_FIELDS = {number: number << 3 | kernels.DELIMITED for number in (1, 2, 3, 4)}


class UnusualBytes(Exception):
    """The compiled loops do not know this encoding; `offset` is where in the file."""

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
        tags, _, starts, ends = _fields(buffer, 0, len(buffer))
        spans = {
            number: list(zip(starts[tags == tag].tolist(), ends[tags == tag].tolist(), strict=True))
            for number, tag in _SPACE_FIELDS.items()
        }
        self.planes = [self._read_plane(start, end) for start, end in spans[1]]
        self.errors, self.warnings, self.hostnames = (
            [buffer[start:end].tobytes() for start, end in spans[number]] for number in (2, 3, 4)
        )

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
        if self._release is not None and isinstance(part, _Part):
            self._release(part.end)
        return line, chunk

    def _read_plane(self, start: int, end: int) -> Plane:
        """Index the lines of a plane; protobuf reads the rest of it, stats apart."""
        buffer = self._buffer
        tags, tag_starts, starts, ends = _fields(buffer, start, end)
        is_line, is_stat = tags == _PLANE_LINES, tags == _PLANE_STATS
        rest = ~(is_line | is_stat)
        # Fields that follow each other are one slice: maps have thousands of entries.
        first, last = _runs(rest)
        pieces = zip(tag_starts[first].tolist(), ends[last].tolist(), strict=True)
        message = _parse("XPlane", b"".join(buffer[a:b].tobytes() for a, b in pieces), start)
        name = bytes(message.name)
        lines = [
            self._scan_line(a, b, name)
            for a, b in zip(starts[is_line].tolist(), ends[is_line].tolist(), strict=True)
        ]
        return xspace_protobuf.read_plane(
            message, lines, self._read_plane_stats(starts[is_stat], ends[is_stat])
        )

    def _scan_line(self, start: int, end: int, plane: bytes) -> Line:
        room = 2 * ((end - start) // _MAX_PART_BYTES) + (end - start) // (2 * _MAX_PART_EVENTS) + 2
        header = np.zeros(kernels.LINE_SLOTS, np.int64)
        part_ends, part_events = np.empty(room, np.int64), np.empty(room, np.int64)
        parts, offset, events = kernels.scan_line(
            self._buffer, start, end, _MAX_PART_EVENTS, _MAX_PART_BYTES, header, part_ends, part_events
        )
        if parts == kernels.ODD:
            return xspace_protobuf.read_line(_parse("XLine", self._buffer[start:end].tobytes(), offset))

        def text(slot: int) -> bytes:
            return self._buffer[header[slot] : header[slot + 1]].tobytes()

        name, shown = text(kernels.LINE_NAME_START), text(kernels.LINE_DISPLAY_NAME_START)
        bounds = [start, *part_ends[:parts].tolist()]
        counts = part_events[:parts].tolist()
        return Line(
            int(header[kernels.LINE_ID]),
            int(header[kernels.LINE_DISPLAY_ID]),
            name,
            shown,
            int(header[kernels.LINE_TIMESTAMP_NS]),
            int(header[kernels.LINE_DURATION_PS]),
            int(events),
            [
                _Part(bounds[number], bounds[number + 1], count, plane, shown or name)
                for number, count in enumerate(counts)
            ],
        )

    def _read_part(self, part: Any) -> Chunk:
        if not isinstance(part, _Part):
            return xspace_protobuf.read_events(part)
        buffer, size = self._buffer, part.end - part.start
        room = size // _MIN_MESSAGE_BYTES
        if size > 2 * _MAX_PART_BYTES:
            room = kernels.most_stats(buffer, part.start, part.end)
        metadata_id, offset_ps, duration_ps, occurrences = (
            np.empty(part.event_count, np.int64) for _ in range(4)
        )
        is_count = np.empty(part.event_count, np.bool_)
        columns, blob_starts, blob_ends = (
            _stat_columns(room),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
        )
        events, stats, blobs, offset = kernels.read_events(
            buffer,
            part.start,
            part.end,
            metadata_id,
            offset_ps,
            duration_ps,
            is_count,
            occurrences,
            *columns,
            blob_starts,
            blob_ends,
        )
        if events == kernels.ODD:
            return self._read_odd_part(part, offset)
        return Chunk(
            metadata_id,
            offset_ps,
            duration_ps,
            is_count,
            occurrences,
            _stats(buffer, columns, stats, blob_starts[:blobs], blob_ends[:blobs]),
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
        count = len(starts)
        columns, blob_starts, blob_ends = (
            _stat_columns(count),
            np.empty(count, np.int64),
            np.empty(count, np.int64),
        )
        stats, blobs, offset = kernels.read_stats(
            self._buffer, starts, ends, *columns, blob_starts, blob_ends
        )
        if stats == kernels.ODD:
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            return xspace_protobuf.read_stats(
                [[_parse("XStat", self._buffer[start:end].tobytes(), offset) for start, end in spans]]
            )
        return _stats(self._buffer, columns, stats, blob_starts[:blobs], blob_ends[:blobs])


def _fields(buffer: Buffer, start: int, end: int) -> list[Int64Array]:
    """Tags of the fields in buffer[start:end], where each begins, and the start and end of its payload."""
    nothing = np.empty(0, np.int64)
    count, offset = kernels.list_fields(buffer, start, end, nothing, nothing, nothing, nothing)
    if count == kernels.ODD:
        raise UnusualBytes(offset)
    columns = [np.empty(count, np.int64) for _ in range(4)]
    kernels.list_fields(buffer, start, end, *columns)
    return columns


def _runs(chosen: npt.NDArray[np.bool_]) -> tuple[Int64Array, Int64Array]:
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


def _stat_columns(
    count: int,
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.int8], Int64Array]:
    """Room for `count` stats: owner, stat_id, value_type, value."""
    return (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int8),
        np.empty(count, np.int64),
    )


def _stats(
    buffer: Buffer,
    columns: tuple[Int64Array, Int64Array, npt.NDArray[np.int8], Int64Array],
    count: int,
    blob_starts: Int64Array,
    blob_ends: Int64Array,
) -> Stats:
    """The first `count` rows of the columns, with the texts and bytes between the starts and ends."""
    offsets = np.zeros(len(blob_starts) + 1, np.int64)
    np.cumsum(blob_ends - blob_starts, out=offsets[1:])
    content = np.empty(int(offsets[-1]), np.uint8)
    kernels.copy_spans(buffer, blob_starts, blob_ends, content)
    blobs = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(blob_starts), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
    owner, stat_id, value_type, value = (column[:count] for column in columns)
    return Stats(owner, stat_id, value_type, value, blobs)
