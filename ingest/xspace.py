"""XSpace captures (`*.xplane.pb`) as tables: planes to devices, lines to tracks, events to event rows.

Times: start = line.timestamp_ns * 1000 + offset_ps, relative to the profile's start in JAX's files. Older
producers write the wall clock into timestamp_ns; those lines are moved to the profile's start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from tracewh.ingest import hlo
from tracewh.ingest.batches import Batches
from tracewh.ingest.capture import Capture, ProblemCounter
from tracewh.ingest.content import uncompressed_name
from tracewh.ingest.event_stats import StatsCollector
from tracewh.ingest.shared_details import CALL_DETAILS_TYPES, OP_TYPES
from tracewh.ingest.shared_rows import SharedRows
from tracewh.ingest.xspace_columns import stat_rows
from tracewh.ingest.xspace_decode import open_space
from tracewh.ingest.xspace_events import CaptureState, PlaneEvents, Track
from tracewh.ingest.xspace_launches import LaunchTable
from tracewh.ingest.xspace_names import PlaneNames, TextReader
from tracewh.ingest.xspace_planes import (
    ENVIRONMENT_PLANE,
    METADATA_PLANE,
    SCOPE_PLANE,
    add_attributes,
    add_device,
    are_ranges,
    is_device,
    named_stats,
    platform_of,
    read_programs,
    scope_ranges,
)
from tracewh.ingest.xspace_space import Line, Plane, Space
from tracewh.ingest.xspace_stats import integer_of
from tracewh.ingest.xspace_times import WALL_CLOCK_NS

READER_VERSION = 3

_STREAM_LINE = re.compile(r"^Stream #([0-9]{1,18})")
_FILE_SUFFIX = re.compile(r"(\.xplane|\.xspace)?\.pb$")


def read(
    data: memoryview | bytes,
    place: str,
    programs: list[hlo.HloProgram] | None = None,
    release: Callable[[int], None] | None = None,
    hostname: str | None = None,
    compiled: bool | None = None,
) -> Capture:
    """Read a serialized XSpace; `place`, its path, names it in errors and problems.

    Events come by the capture's `stream`, for which `data` must stay valid; `release` is told how far it has
    been read. A file that names no host belongs to `hostname`, or else to the host that its name begins with,
    as JAX names them. Programs found in `/host:metadata` are appended to `programs` where it is given.
    `compiled` chooses the decoder, else the size does. Raises UnreadableFile.
    """
    space = open_space(data, place, release=release, compiled=compiled)
    problems = ProblemCounter()
    named = space.hostnames[0].decode("utf-8", "replace") if len(space.hostnames) == 1 else ""
    if hostname is None:
        hostname = _FILE_SUFFIX.sub("", uncompressed_name(PurePath(place).name))
    capture = Capture("xspace", hostname=named or hostname)
    texts = TextReader(capture.names, problems)
    reader = _Reader(capture, space, texts, place)
    reader.read_environment()
    reader.read_planes(programs)
    capture.platform = platform_of(capture)
    capture.stream = reader.rows()
    capture.streamed_events = sum(line.event_count for plane in space.planes for line in plane.lines)
    return capture


class _Reader:
    """State while one XSpace becomes a Capture."""

    def __init__(self, capture: Capture, space: Space, texts: TextReader, place: str) -> None:
        self._capture, self._space, self._texts, self._place = capture, space, texts, place
        self._texts.place = place
        self._collector = StatsCollector(capture.names)
        self._plane_names = [self._texts.text_of(plane.name) for plane in space.planes]
        self._tracks: list[list[Track]] = []
        self._base_ns = 0

    def read_environment(self) -> None:
        """What holds for the whole file: hosts, errors, warnings, the clock."""
        space, capture = self._space, self._capture
        for kind, raw_texts in (
            ("errors", space.errors),
            ("warnings", space.warnings),
            ("hostnames", space.hostnames),
        ):
            for position, raw in enumerate(raw_texts):
                text = self._texts.text_of(raw)
                self._collector.add_value("capture", position, f"XSpace.{kind}", text)
                if kind != "hostnames":
                    self._texts.problems.add(f"profiler_{kind.removesuffix('s')}", self._place, text)
        if len(space.hostnames) > 1:
            capture.attributes["hostnames"] = ", ".join(map(self._texts.text_of, space.hostnames))
        start_ns = None
        for plane, name in zip(space.planes, self._plane_names, strict=True):
            if name == ENVIRONMENT_PLANE:
                for stat, value in named_stats(space, plane):
                    if stat == "profile_start_time":
                        start_ns = integer_of(value)
        self._base_ns = _wall_clock_base(space.planes, start_ns)
        capture.origin_unix_ns = self._base_ns or start_ns

    def read_planes(self, programs: list[hlo.HloProgram] | None) -> None:
        """Everything but events and stats: devices, planes, tracks, attributes, scopes, programs."""
        capture = self._capture
        device_indexes: dict[tuple[str, int], int] = {}
        planes: list[dict[str, object]] = []
        rows: list[dict[str, object]] = []
        for position, (plane, name) in enumerate(zip(self._space.planes, self._plane_names, strict=True)):
            device_index = add_device(capture, self._space, plane, name, device_indexes)
            planes.append(
                {
                    "plane_index": position,
                    "native_id": plane.id,
                    "plane_name": name,
                    "device_index": device_index,
                }
            )
            if device_index is None:
                add_attributes(capture, self._space, plane, name, position)
            if name == METADATA_PLANE and programs is not None:
                read_programs(plane, self._texts.problems, programs)
            self._tracks.append(
                [self._add_track(line, position, name, device_index, rows) for line in plane.lines]
            )
        for table, found in (("planes", planes), ("tracks", rows)):
            if found:
                columns = {key: [row[key] for row in found] for key in found[0]}
                types = {
                    key: pa.string() if key.endswith(("_name", "_kind")) else pa.int64() for key in columns
                }
                capture.tables[table] = pa.table(
                    {key: pa.array(values, types[key]) for key, values in columns.items()}
                )

    def _add_track(
        self, line: Line, position: int, plane: str, device_index: int | None, rows: list[dict[str, object]]
    ) -> Track:
        texts = self._texts
        name = texts.text_of(line.display_name or line.name)
        stream = _STREAM_LINE.match(name)
        track_id = len(rows)
        rows.append(
            {
                "track_id": track_id,
                "track_kind": "thread" if device_index is None else "stream" if stream else "device_line",
                "track_name": name,
                "device_index": device_index,
                "native_id": line.id,
                "plane_index": position,
                "full_name": texts.text_of(line.name) if line.display_name else None,
                "display_id": line.display_id or None,
                "timestamp_ns": line.timestamp_ns,
                "duration_ps": line.duration_ps or None,
            }
        )
        device_type = None if device_index is None else self._capture.devices[device_index].device_type
        return Track(
            track_id,
            name,
            f"{plane}, line {name!r}",
            device_index,
            device_type,
            int(stream[1]) if stream else None,
        )

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Events and all stats, plane by plane; at the end the problems are the capture's."""
        capture, problems = self._capture, self._texts.problems
        batches = Batches()
        accelerated = any(map(is_device, self._plane_names))
        state = CaptureState(
            capture,
            problems,
            self._base_ns,
            accelerated,
            batches,
            LaunchTable(capture.names, problems),
            SharedRows("op_id", OP_TYPES),
            SharedRows("call_details_id", CALL_DETAILS_TYPES),
        )
        first_metadata_id = 0
        for position, (plane, name) in enumerate(zip(self._space.planes, self._plane_names, strict=True)):
            self._texts.place = name or f"plane {position}"
            names = PlaneNames(plane, self._texts)
            events = PlaneEvents(state, self._space, plane, names, first_metadata_id, is_device(name))
            yield from events.read(self._tracks[position])
            self._texts.place = name or f"plane {position}"
            self._add_metadata(plane, position, names, first_metadata_id, batches)
            first_metadata_id += len(names.metadata_ids)
            yield from self._add_plane_stats(plane, position, names, batches)
        batches.add("event_stats", self._collector.take())
        yield from batches.rest()
        capture.problems += problems.problems()

    def _add_metadata(
        self, plane: Plane, position: int, names: PlaneNames, first_id: int, batches: Batches
    ) -> None:
        """Rows of event_metadata and the stats of metadata and plane."""
        metadata, collector = plane.event_metadata, self._collector
        ids = np.arange(first_id, first_id + len(names.metadata_ids))
        batches.add(
            "event_metadata",
            pa.table(
                {
                    "event_metadata_id": pa.array(ids),
                    "plane_index": pa.array(np.full(len(ids), position)),
                    "native_id": pa.array(names.metadata_ids),
                    "name_id": pa.array(names.metadata_name_ids),
                    "display_name_id": pa.array(names.display_name_ids, mask=names.display_name_ids < 0),
                }
            ),
        )
        every = np.arange(len(metadata.stats))
        rows = stat_rows(names, metadata.stats, every, "event_metadata", ids[metadata.stats.owner])
        batches.add("event_stats", rows)
        names.count_missing(metadata.stats)
        for row, raw in metadata.metadata.items():
            collector.add_value("event_metadata", int(ids[row]), "XEventMetadata.metadata", raw)
        for row, children in metadata.child_ids.items():
            for child in children:
                collector.add_value("event_metadata", int(ids[row]), "XEventMetadata.child_id", child)
        for stat_id, raw in plane.stat_descriptions.items():
            stat = self._texts.text_of(plane.stat_names[stat_id])
            collector.add_value("stat_metadata", position, stat, self._texts.text_of(raw))

    def _add_plane_stats(
        self, plane: Plane, position: int, names: PlaneNames, batches: Batches
    ) -> Iterator[tuple[str, pa.Table]]:
        """Rows of event_stats and scope_ranges for the stats of the plane itself."""
        # Rows of scope_ranges do not say which plane they are of, so there is one such plane.
        is_scope_plane = SCOPE_PLANE in self._plane_names and self._plane_names.index(SCOPE_PLANE) == position
        for stats in self._space.stats(plane):
            is_range = np.zeros(len(stats), bool)
            if is_scope_plane:
                is_range = are_ranges(plane, stats)
                batches.add("scope_ranges", scope_ranges(stats, is_range))
            own = np.flatnonzero(~is_range)
            if len(own):
                rows = stat_rows(names, stats, own, "plane", np.full(len(own), position))
                batches.add("event_stats", rows)
                names.count_missing(stats, own)
            yield from batches.full()


def _wall_clock_base(planes: list[Plane], start_ns: int | None) -> int:
    """What to subtract from lines stamped with the wall clock, in ns; 0 where no line is."""
    stamps = [line.timestamp_ns for plane in planes for line in plane.lines if line.event_count]
    absolute = [stamp for stamp in stamps if stamp > WALL_CLOCK_NS]
    if not absolute:
        return 0
    return start_ns if start_ns is not None and start_ns <= min(absolute) else min(absolute)
