"""The files that captures come from: which reader is whose, and their captures while they are open."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pyarrow as pa

from tracewh.ingest import hlo, memory_profile, run_metadata
from tracewh.ingest.capture import Capture
from tracewh.ingest.discovery import HLO_KINDS, METADATA_KINDS, ROCM_KINDS, Artifact

#: Tables whose rows count as events.
EVENT_TABLES = ("device_events", "host_events")


def reader_of(kind: str) -> tuple[str, int]:
    """Name and version of the reader of such files; a reader is imported only for a file that needs it."""
    if kind == "xspace":
        from tracewh.ingest import xspace

        return "xspace", xspace.READER_VERSION
    if kind in ROCM_KINDS:
        from tracewh.ingest import rocm

        return rocm.reader_of(kind)
    if kind in HLO_KINDS:
        return "hlo", hlo.READER_VERSION
    if kind == "memory_profile":
        return "memory_profile", memory_profile.READER_VERSION
    return ("run_metadata", run_metadata.READER_VERSION) if kind in METADATA_KINDS else ("none", 0)


def told(
    stream: Iterator[tuple[str, pa.Table]], event_count: int, reached: Callable[[float], None]
) -> Iterator[tuple[str, pa.Table]]:
    """The `stream` of a capture; `reached` is told of each batch when the next one is asked for."""
    events = 0
    for table, rows in stream:
        yield table, rows
        if table in EVENT_TABLES:
            events += rows.num_rows
            reached(events / event_count)


@contextlib.contextmanager
def open_captures(artifact: Artifact) -> Iterator[list[tuple[Capture, list[hlo.HloProgram]]]]:
    """The captures in a file, each with the programs that it carries; none for other kinds of file.

    Their rows may be read from the file for as long as the context lasts.
    """
    if artifact.kind == "xspace":
        from tracewh.ingest import xspace

        with artifact.open() as content:
            programs: list[hlo.HloProgram] = []
            # Bytes that came by a pipe have no name that could tell their host.
            hostname = None if artifact.spooled is None else ""
            capture = xspace.read(
                content.buffer, str(artifact.path), programs, release=content.forget, hostname=hostname
            )
            yield [(capture, programs)]
    elif artifact.kind in ROCM_KINDS:
        from tracewh.ingest import rocm

        with rocm.open_captures(artifact) as captures:
            yield [(capture, []) for capture in captures]
    else:
        yield []
