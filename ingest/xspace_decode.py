"""From the bytes of an XSpace to its planes, lines and events: the one door to both decoders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from google.protobuf.message import DecodeError

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_damage import unreadable
from tracewh.ingest.xspace_fields import Broken, walk
from tracewh.ingest.xspace_messages import MAX_MESSAGE_BYTES
from tracewh.ingest.xspace_protobuf import ProtobufSpace
from tracewh.ingest.xspace_space import Space

# Below this many bytes outside of metadata, protobuf's loop costs less than the start of the compiled one.
_COMPILED_FROM_BYTES = 6 << 20
_METADATA_PLANE = b"/host:metadata"
_METADATA_PROBE_BYTES = 64
_MAX_PROBED_FIELDS = 1000
_PLANES = 1


def open_space(
    buffer: memoryview | bytes,
    place: str,
    threads: int = 1,
    release: Callable[[int], None] | None = None,
    compiled: bool | None = None,
) -> Space:
    """Decode a serialized XSpace of any size; `place` names it in errors.

    `buffer` must stay valid while chunks are read. The decoder is chosen by size unless `compiled` says; for
    `threads` and `release` see CompiledSpace. Raises UnreadableFile, naming the plane and the offset, where
    the bytes are not an XSpace.
    """
    if compiled is None:
        compiled = _has_many_events(buffer, place)
    space: Space
    space = _open_compiled(buffer, place, threads, release) if compiled else _open_protobuf(buffer, place)
    if not any(plane.name for plane in space.planes):
        raise UnreadableFile(
            f"{place}: holds no named plane, so it is not an XSpace. Is it another file renamed?"
        )
    return space


def _open_compiled(
    buffer: memoryview | bytes, place: str, threads: int, release: Callable[[int], None] | None
) -> Space:
    # Imported here, as it takes time that small files do not need.
    from tracewh.ingest.xspace_compiled import CompiledSpace

    return CompiledSpace(np.frombuffer(buffer, np.uint8), place, threads, release)


def _open_protobuf(buffer: memoryview | bytes, place: str) -> Space:
    if len(buffer) > MAX_MESSAGE_BYTES:
        raise UnreadableFile(
            f"{place}: {len(buffer):,} bytes; protobuf reads at most {MAX_MESSAGE_BYTES:,}. "
            "Profile fewer steps or with a lower host_tracer_level."
        )
    data = bytes(buffer)
    try:
        return ProtobufSpace(data)
    except DecodeError as error:
        raise unreadable(place, data) from error


def _has_many_events(buffer: memoryview | bytes, place: str) -> bool:
    """Whether the planes other than the metadata's are large, or all is too large for protobuf."""
    if not _COMPILED_FROM_BYTES <= len(buffer) <= MAX_MESSAGE_BYTES:
        return len(buffer) > MAX_MESSAGE_BYTES
    total = 0
    try:
        for count, field in enumerate(walk(buffer, 0, len(buffer))):
            head = bytes(buffer[field.start : min(field.end, field.start + _METADATA_PROBE_BYTES)])
            if field.number == _PLANES and _METADATA_PLANE not in head:
                total += field.end - field.start
            if total >= _COMPILED_FROM_BYTES or count > _MAX_PROBED_FIELDS:
                return True
    except Broken as error:
        raise unreadable(place, buffer) from error
    return False
