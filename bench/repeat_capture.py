"""An XSpace of any size, over 2 GiB too, made by repeating the events of a real capture in time.

python bench/repeat_capture.py CAPTURE.xplane.pb OUT.xplane.pb --events 5000000

All lines are shifted together by the span of the longest one: copies never overlap on a line, and a kernel
keeps its distance to its launch. Ids of launches, steps and scopes stay unique. Metadata maps are written
once, as they are, after the lines of their plane. The last copy is cut in time to meet the event count.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from capture_copies import Copies, Line
from google.protobuf.message import DecodeError

from tracewh.ingest.xspace_messages import MESSAGES

FIXTURE = Path(__file__).parents[1] / "fixtures" / "h200_moe_direct" / "profile" / "vm.xplane.pb.gz"

# Field numbers.
_SPACE_PLANES, _PLANE_LINES, _PLANE_STATS, _LINE_EVENTS = 1, 3, 6, 4
_COPY_BYTES = 1 << 20


@dataclass
class _Segment:
    """A stretch of the spool."""

    start: int
    length: int


_Part = bytes | _Segment


class _Spool:
    """Bytes put aside until the length of the message that holds them is known."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, field: int, messages: Iterable[bytes]) -> _Segment:
        """Append the messages, each as the field of that number."""
        start = length = self._file.seek(0, 2)
        tag = _varint(field << 3 | 2)
        for message in messages:
            length += self._file.write(tag + _varint(len(message)) + message)
        return _Segment(start, length - start)

    def copy(self, segment: _Segment, out: BinaryIO) -> None:
        """Write the segment to `out`."""
        self._file.seek(segment.start)
        left = segment.length
        while left:
            left -= out.write(self._file.read(min(left, _COPY_BYTES)))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _submessage(field: int, parts: list[_Part]) -> list[_Part]:
    """The parts as one field of a message, behind its tag and length."""
    length = sum(len(part) if isinstance(part, bytes) else part.length for part in parts)
    return [_varint(field << 3 | 2) + _varint(length), *parts]


def _fields_of(message: Any, *names: str) -> bytes:
    """The message serialized with those fields only."""
    some = type(message)()
    for name in names:
        value = getattr(message, name)
        if not message.DESCRIPTOR.fields_by_name[name].is_repeated:
            if message.HasField(name):
                setattr(some, name, value)
        else:
            getattr(some, name).extend(value)
    serialized: bytes = some.SerializeToString()
    return serialized


def _line_parts(copies: Copies, line: Line, spool: _Spool) -> list[_Part]:
    events = spool.add(_LINE_EVENTS, copies.events(line))
    message = line.message
    if message.duration_ps:
        message.duration_ps += copies.added_ps
    return [
        _fields_of(message, "id", "name", "timestamp_ns"),
        events,
        _fields_of(message, "duration_ps", "display_id", "display_name"),
    ]


def _plane_parts(copies: Copies, index: int, plane: Any, spool: _Spool) -> list[_Part]:
    stop_ids = {entry.key for entry in plane.stat_metadata if entry.value.name == b"profile_stop_time"}
    for stat in plane.stats:
        if stat.metadata_id in stop_ids:
            stat.uint64_value += copies.added_ps // 1000
    parts: list[_Part] = [_fields_of(plane, "id", "name")]
    for line in copies.lines[index]:
        parts += _submessage(_PLANE_LINES, _line_parts(copies, line, spool))
    parts.append(_fields_of(plane, "event_metadata", "stat_metadata"))
    parts.append(spool.add(_PLANE_STATS, copies.stats(index, plane)))
    return parts


def repeat_capture(capture: Path, out: Path, event_count: int) -> None:
    """Write an XSpace of `event_count` events, counted over all lines, made of the events of `capture`.

    Raises ValueError where the capture holds no events.
    """
    # Millions of small objects that hold no cycles.
    gc.disable()
    data = capture.read_bytes()
    space = MESSAGES["XSpace"].FromString(gzip.decompress(data) if capture.suffix == ".gz" else data)
    copies = Copies(space, event_count)
    with out.open("wb") as file:
        for index, plane in enumerate(space.planes):
            with tempfile.TemporaryFile(dir=out.parent) as spooled:
                spool = _Spool(spooled)
                for part in _submessage(_SPACE_PLANES, _plane_parts(copies, index, plane, spool)):
                    if isinstance(part, bytes):
                        file.write(part)
                    else:
                        spool.copy(part, file)
        file.write(_fields_of(space, "errors", "warnings", "hostnames"))


def main() -> None:
    """Repeat the capture named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("capture", type=Path, nargs="?", default=FIXTURE, help="an .xplane.pb, or .gz of one")
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, required=True)
    options = parser.parse_args()
    if options.events < 1:
        parser.error("--events is at least 1")
    try:
        repeat_capture(options.capture, options.out, options.events)
    except (ValueError, OSError, DecodeError) as error:
        raise SystemExit(f"{options.capture}: {error}") from error


if __name__ == "__main__":
    main()
