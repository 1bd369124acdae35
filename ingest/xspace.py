"""XSpace captures (`*.xplane.pb`) as tables: planes to devices, lines to tracks, events to event rows.

Times: start = line.timestamp_ns * 1000 + offset_ps, relative to the profile's start in JAX's files. Older
producers write the wall clock into timestamp_ns; those lines are moved to the profile's start.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tracewh.ingest import hlo, hlo_files, xspace_decode, xspace_kinds
from tracewh.ingest.capture import Capture, Device, ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_columns import (
    DETAIL_COLUMNS,
    Mask,
    NameTable,
    TypedStats,
    map_distinct,
    text_of,
    typed_stats,
    with_inherited,
)
from tracewh.ingest.xspace_decode import Int64Array, Line, Plane, Stats
from tracewh.ingest.xspace_stats import integer_of

READER_VERSION = 1

_DEVICE_PLANE = re.compile(r"^/device:(GPU|TPU|CPU):([0-9]{1,9})(?: (.+))?$")
_STREAM_LINE = re.compile(r"^Stream #([0-9]{1,18})")
_FILE_SUFFIX = re.compile(r"(\.xplane|\.xspace)?\.pb(\.gz)?$")
_METADATA_PLANE = "/host:metadata"
_ENVIRONMENT_PLANE = "Task Environment"
_SCOPE_PLANE = "/host:__ScopeRangeCallStack__"
# timestamp_ns above this is a wall clock (it would be 11 days as a distance from the profile's start).
_WALL_CLOCK_NS = 10**15
_MAX_PS = 2**62
_VENDOR_PLATFORM = {"nvidia": "cuda", "amd": "rocm"}
_GFX_BY_CAPABILITY = {("9", "0"): "gfx90a", ("9", "4"): "gfx942", ("9", "5"): "gfx950"}

_SHARED_COLUMNS = {
    "track_id", "name_id", "start_ps", "end_ps", "num_occurrences", "correlation_id", "context_id",
    "graph_id", "program_id", "execution_id", "hlo_op_name_id", "hlo_module_name_id", "op_name_id",
    "tf_op_name_id", "scope_range_id", "details_name_id",
}  # fmt: skip
_DEVICE_COLUMNS = _SHARED_COLUMNS | set(DETAIL_COLUMNS) | {
    "device_index", "graph_node_id", "unique_hlo_op_id", "occupancy_min_grid_size",
    "occupancy_suggested_block_size",
}  # fmt: skip
_HOST_COLUMNS = _SHARED_COLUMNS | {
    "native_device_id", "step_num", "is_step_root", "producer_type", "producer_id", "consumer_type",
    "consumer_id",
}  # fmt: skip


@dataclass
class _Events:
    """Growing rows of device_events or host_events; `owner` names them in event_stats."""

    owner: str
    chunks: list[pa.Table] = field(default_factory=list)
    count: int = 0

    def table(self) -> pa.Table:
        joined = pa.concat_tables(self.chunks, promote_options="default")
        return joined.append_column(f"{self.owner}_id", pa.array(np.arange(self.count)))


@dataclass
class _Reader:
    """State while one XSpace becomes a Capture."""

    capture: Capture
    problems: ProblemCounter
    base_ns: int
    device: _Events = field(default_factory=lambda: _Events("device_event"))
    host: _Events = field(default_factory=lambda: _Events("host_event"))
    tracks: list[dict[str, object]] = field(default_factory=list)
    stat_chunks: list[pa.Table] = field(default_factory=list)
    device_index: dict[tuple[str, int], int] = field(default_factory=dict)


def read(data: bytes, place: str, modules: list[hlo.HloModule] | None = None) -> Capture:
    """Read a serialized XSpace; `place`, its path, names it in errors and problems.

    A file that names no host belongs to the host that its name begins with, as JAX names them. HLO modules
    found in `/host:metadata` are appended to `modules` where it is given. Raises UnreadableFile.
    """
    space = xspace_decode.decode(data, place)
    problems = ProblemCounter()
    named = text_of(space.hostnames[0]) if len(space.hostnames) == 1 else ""
    hostname = named or _FILE_SUFFIX.sub("", PurePath(place).name)
    capture = Capture("xspace", hostname=hostname)
    start_ns = _environment(space.planes, capture)
    base_ns = _wall_clock_base(space.planes, start_ns)
    capture.origin_unix_ns = base_ns or start_ns
    reader = _Reader(capture, problems, base_ns)
    for kind, texts in (("error", space.errors), ("warning", space.warnings)):
        for text in texts:
            problems.add(f"profiler_{kind}", place, text_of(text))
    if len(space.hostnames) > 1:
        capture.attributes["hostnames"] = ", ".join(map(text_of, space.hostnames))
    accelerated = any(_DEVICE_PLANE.match(text_of(plane.name)) for plane in space.planes)
    for position, plane in enumerate(space.planes):
        _read_plane(reader, plane, position, accelerated, modules)
    capture.platform = _platform(capture)
    _finish(reader)
    capture.problems = problems.problems()
    return capture


def _environment(planes: list[Plane], capture: Capture) -> int | None:
    """Store the Task Environment's stats; return the profile's start on the wall clock, in ns."""
    start = None
    for plane in planes:
        if text_of(plane.name) == _ENVIRONMENT_PLANE:
            for name, value in _plane_stats(plane):
                capture.attributes[name] = value
                if name == "profile_start_time":
                    start = integer_of(value)
    return start


def _plane_stats(plane: Plane) -> Iterator[tuple[str, str | None]]:
    """The stats of the plane itself as (name, text)."""
    stats = plane.stats
    for index, stat_id in enumerate(stats.stat_id.tolist()):
        raw_name = plane.stat_names.get(stat_id, b"")
        yield text_of(raw_name) or f"stat {stat_id}", _valuetext_of(plane, stats, index)


def _valuetext_of(plane: Plane, stats: Stats, index: int) -> str | None:
    value_type, number = int(stats.value_type[index]), int(stats.int_value[index])
    match value_type:
        case xspace_decode.DOUBLE:
            return repr(float(stats.double_value[index]))
        case xspace_decode.UINT64:
            return str(number % (1 << 64))
        case xspace_decode.INT64:
            return str(number)
        case xspace_decode.REF:
            return text_of(plane.stat_names.get(number, b""))
        case xspace_decode.STRING:
            return text_of(stats.blobs[number])
        case xspace_decode.BYTES | xspace_decode.COMPRESSED:
            return stats.blobs[number].hex()
    return None


def _wall_clock_base(planes: list[Plane], start_ns: int | None) -> int:
    """What to subtract from lines stamped with the wall clock, in ns; 0 where no line is."""
    stamps = [line.timestamp_ns for plane in planes for line in plane.lines if len(line.metadata_id)]
    absolute = [stamp for stamp in stamps if stamp > _WALL_CLOCK_NS]
    if not absolute:
        return 0
    return start_ns if start_ns is not None and start_ns <= min(absolute) else min(absolute)


def _read_plane(
    reader: _Reader, plane: Plane, position: int, accelerated: bool, modules: list[hlo.HloModule] | None
) -> None:
    name = text_of(plane.name)
    if name == _METADATA_PLANE:
        _read_metadata_plane(reader, plane, modules)
    elif name == _SCOPE_PLANE:
        _read_scope_plane(reader, plane)
    elif name != _ENVIRONMENT_PLANE:
        device = _device_of(reader, plane, name)
        if device is None:
            for stat, value in _plane_stats(plane):
                reader.capture.attributes[f"{name or position}.{stat}"] = value
        for line in plane.lines:
            _read_line(reader, plane, line, name, device, accelerated)


def _read_metadata_plane(reader: _Reader, plane: Plane, modules: list[hlo.HloModule] | None) -> None:
    """`/host:metadata`: versions as stats, and one event metadata per HLO module (on TPU also other maps)."""
    for stat, value in _plane_stats(plane):
        reader.capture.attributes[stat] = value
        if stat == "process_id":
            reader.capture.process_id = integer_of(value)
    for key, metadata in plane.event_metadata.items():
        module_name = text_of(metadata.name)
        place = f"{_METADATA_PLANE} {module_name}"
        program_id, proto = None, None
        stats = metadata.stats
        for index, stat_id in enumerate(stats.stat_id.tolist()):
            stat_name = text_of(plane.stat_names.get(stat_id, b""))
            is_blob = int(stats.value_type[index]) in (xspace_decode.BYTES, xspace_decode.STRING)
            if stat_name == "program_id":
                program_id = int(stats.int_value[index])
            elif stat_name.lower().replace(" ", "_") == "hlo_proto" and is_blob:
                proto = stats.blobs[int(stats.int_value[index])]
            else:
                reader.capture.attributes[f"{module_name}.{stat_name}"] = _valuetext_of(plane, stats, index)
        if proto is None or modules is None:
            continue
        if program_id is None:
            named = hlo_files.program_id_from_name(module_name)
            program_id = key if named is None else named
        try:
            module = hlo.read_module(proto, program_id, reader.capture.names, reader.problems, place)
        except UnreadableFile as error:
            reader.problems.add("unreadable_module", place, str(error))
        else:
            modules.append(module)


def _read_scope_plane(reader: _Reader, plane: Plane) -> None:
    """Scope ranges: each stat says that the range with the stat's id lies in the range of its value."""
    named = np.isin(plane.stats.stat_id, [key for key, name in plane.stat_names.items() if name])
    for stat, value in _plane_stats(plane):
        if stat in map(text_of, plane.stat_names.values()):
            reader.capture.attributes[f"{_SCOPE_PLANE}.{stat}"] = value
    reader.capture.tables["scope_ranges"] = pa.table(
        {
            "scope_range_id": plane.stats.stat_id[~named],
            "parent_scope_range_id": plane.stats.int_value[~named],
        }
    )


def _device_of(reader: _Reader, plane: Plane, name: str) -> int | None:
    """Index of the plane's device, with a row for it; None for host and custom planes."""
    found = _DEVICE_PLANE.match(name)
    if found is None:
        return None
    attributes = dict(_plane_stats(plane))
    vendor = attributes.get("device_vendor")
    kind = attributes.get("gpu_device_name") or attributes.get("device_type_string")
    if kind is None and vendor and vendor.upper() == "AMD":
        capability = (attributes.get("compute_cap_major") or "", attributes.get("compute_cap_minor") or "")
        if capability in _GFX_BY_CAPABILITY:
            kind = f"AMD {_GFX_BY_CAPABILITY[capability]}"
    prefix = f"{found[3]}." if found[3] else ""
    named = tuple((prefix + attribute, value) for attribute, value in attributes.items())
    return _add_device(reader, Device(reader.capture.hostname, found[1], int(found[2]), kind, vendor, named))


def _add_device(reader: _Reader, device: Device) -> int:
    """Index of the device; a second plane of one device (a TPU's SparseCore) adds its attributes."""
    key = (device.device_type, device.ordinal)
    if key not in reader.device_index:
        reader.device_index[key] = len(reader.capture.devices)
        reader.capture.devices.append(device)
        return reader.device_index[key]
    index = reader.device_index[key]
    if device.attributes:
        known = reader.capture.devices[index]
        merged = dataclasses.replace(known, attributes=(*known.attributes, *device.attributes))
        reader.capture.devices[index] = merged
    return index


def _platform(capture: Capture) -> str:
    for device in capture.devices:
        if device.vendor and device.vendor.lower() in _VENDOR_PLATFORM:
            return _VENDOR_PLATFORM[device.vendor.lower()]
        if device.device_type == "TPU":
            return "tpu"
    return "cpu"


def _read_line(
    reader: _Reader, plane: Plane, line: Line, plane_name: str, device: int | None, accelerated: bool
) -> None:
    """Turn one line into a track and its events into rows."""
    line_name = text_of(line.display_name) or text_of(line.name)
    place = f"{plane_name}, line {line_name!r}"
    stream = _STREAM_LINE.match(line_name)
    track_id = len(reader.tracks)
    reader.tracks.append(
        {
            "track_id": track_id,
            "track_kind": "thread" if device is None else "stream" if stream else "device_line",
            "track_name": line_name,
            "device_index": device,
            "native_id": line.id,
            "plane_name": plane_name,
            "full_name": text_of(line.name) if line.display_name not in (b"", line.name) else None,
            "display_id": line.display_id or None,
            "duration_ps": line.duration_ps or None,
        }
    )
    count = len(line.metadata_id)
    if not count:
        return
    unread = [
        metadata_id
        for metadata_id in np.unique(line.metadata_id).tolist()
        if metadata_id in plane.event_metadata and plane.event_metadata[metadata_id].metadata
    ]
    if unread:
        lost = "the bytes beside the name of an event are not read"
        reader.problems.add("unread_event_metadata", place, lost, len(unread))
    names = NameTable(plane, reader.capture.names, reader.problems, place)
    typed = typed_stats(names, with_inherited(plane, line), count, reader.problems, place)
    start, end, keep = _times(reader, line, place)
    columns = typed.columns
    columns["track_id"] = pa.array(np.full(count, track_id))
    columns["name_id"] = names.event_names(line.metadata_id)
    full_names = names.full_names(line.metadata_id)
    columns["details_name_id"] = pa.compute.coalesce(columns.get("details_name_id", full_names), full_names)
    columns["start_ps"], columns["end_ps"] = pa.array(start), pa.array(end)
    columns["num_occurrences"] = pa.array(line.num_occurrences, mask=line.num_occurrences < 0)
    wanted = _DEVICE_COLUMNS
    if device is None:
        on_device = _host_ops(reader, columns, accelerated)
        role, is_op = "work", True
        # The ordinal of a CPU op is its device, which `device_index` holds.
        wanted = wanted | {"device_ordinal"}
    else:
        columns["device_index"] = pa.array(np.full(count, device))
        on_device = np.ones(count, bool)
        device_type = reader.capture.devices[device].device_type
        role, is_op = xspace_kinds.line_role(device_type, line_name), device_type == "TPU"
        if role == "marker" and not is_op and not line_name.startswith("_"):
            reader.problems.add("unknown_line", place, "kept, but not counted as device work", count)
    if (keep & on_device).any():
        table = _add_events(reader, typed, keep & on_device, reader.device, wanted)
        stream_id = int(stream[1]) if stream else None
        reader.device.chunks.append(_with_kinds(table, reader.capture, role, is_op, line_name, stream_id))
    if (keep & ~on_device).any():
        table = _add_events(reader, typed, keep & ~on_device, reader.host, _HOST_COLUMNS)
        reader.host.chunks.append(table)


def _add_events(
    reader: _Reader, typed: TypedStats, selected: Mask, events: _Events, wanted: set[str]
) -> pa.Table:
    """The selected events' rows; what they have beside the `wanted` columns becomes event_stats."""
    stats = typed.rows_without(wanted, selected, events.owner, events.count)
    if stats.num_rows:
        reader.stat_chunks.append(stats)
    events.count += int(selected.sum())
    mask = pa.array(selected)
    kept = wanted - {"device_ordinal"}
    return pa.table({name: values.filter(mask) for name, values in typed.columns.items() if name in kept})


def _with_kinds(
    table: pa.Table, capture: Capture, role: str, is_op: bool, line_name: str, stream_id: int | None
) -> pa.Table:
    """Add kind, role, stream and copy direction to the device events of one line."""
    count, names = table.num_rows, capture.names
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    if role != "work":
        kinds = pa.array(["group" if role == "derived" else "marker"] * count)
        roles = pa.array([role] * count)
    elif is_op:
        columns.setdefault("hlo_op_name_id", columns["name_id"])
        kinds, roles = pa.array(["op"] * count), pa.array([role] * count)
        if line_name != xspace_kinds.ASYNCHRONOUS_LINE:
            roles = xspace_kinds.op_roles(
                columns["start_ps"], columns["end_ps"], columns["hlo_op_name_id"], names
            )
    else:
        roles = pa.array([role] * count)
        kinds = xspace_kinds.gpu_kinds(columns["name_id"], columns.get("details_name_id"), names)
        columns["copy_kind"] = xspace_kinds.copy_kinds(
            kinds, columns["name_id"], columns.get("copy_kind"), names
        )
    columns |= {"kind": kinds, "role": roles, "stream_id": pa.array([stream_id] * count, pa.int64())}
    return pa.table(columns)


def _times(reader: _Reader, line: Line, place: str) -> tuple[Int64Array, Int64Array, Mask]:
    """Start and end in ps, and which events to keep; impossible times are counted as problems."""
    base = reader.base_ns if line.timestamp_ns > _WALL_CLOCK_NS else 0
    line_start = (line.timestamp_ns - base) * 1000
    count = len(line.duration)
    if abs(line_start) >= _MAX_PS:
        reader.problems.add("impossible_time", place, f"timestamp_ns is {line.timestamp_ns}; left out", count)
        nothing = np.zeros(count, np.int64)
        return nothing, nothing, np.zeros(count, bool)
    duration = line.duration
    negative = duration < 0
    if negative.any():
        reader.problems.add("negative_duration", place, "taken as 0", int(negative.sum()))
        duration = np.where(negative, 0, duration)
    limit = _MAX_PS // 2
    keep = (line.offset_ps > -limit) & (line.offset_ps < limit) & (duration < limit)
    if not keep.all():
        lost = int((~keep).sum())
        reader.problems.add("impossible_time", place, "an offset or duration of over 26 days; left out", lost)
    start = np.where(keep, line.offset_ps, 0) + line_start
    return start, start + np.where(keep, duration, 0), keep


def _host_ops(reader: _Reader, columns: dict[str, pa.Array], accelerated: bool) -> Mask:
    """Which events of a host line are ops of a CPU device; sets their `device_index`.

    XLA's CPU runtime records ops on its threads, with the ordinal of the device they stand for.
    """
    count = len(columns["start_ps"])
    if "hlo_op_name_id" not in columns:
        return np.zeros(count, bool)
    is_op = np.array(columns["hlo_op_name_id"].is_valid())
    if "correlation_id" in columns:
        is_op &= np.asarray(columns["correlation_id"].is_null())
    ordinals = columns.get("device_ordinal", pa.nulls(count, pa.int64()))
    if accelerated:
        is_op &= np.asarray(ordinals.is_valid())
    if is_op.any():
        indexes = map_distinct(
            ordinals.fill_null(0).to_numpy(zero_copy_only=False),
            lambda ordinal: _add_device(reader, Device(reader.capture.hostname, "CPU", ordinal, "CPU")),
        )
        columns["device_index"] = pa.array(indexes, mask=~is_op)
    return is_op


def _finish(reader: _Reader) -> None:
    """Join the chunks into the capture's tables."""
    tables = reader.capture.tables
    if reader.tracks:
        tables["tracks"] = pa.Table.from_pylist(reader.tracks)
    if reader.device.count:
        tables["device_events"] = reader.device.table()
    if reader.host.count:
        tables["host_events"] = host = reader.host.table()
        if {"step_num", "is_step_root"} <= set(host.column_names):
            tables["steps"] = _step_rows(host)
    if reader.stat_chunks:
        tables["event_stats"] = pa.concat_tables(reader.stat_chunks)


def _step_rows(host: pa.Table) -> pa.Table:
    """Rows of `steps`: the events that StepTraceAnnotation wrote."""
    is_step = pa.compute.and_(
        pa.compute.greater(host["is_step_root"].fill_null(0), 0), pa.compute.is_valid(host["step_num"])
    )
    rows = host.filter(is_step).select(["step_num", "name_id", "track_id", "start_ps", "end_ps"])
    rows = rows.append_column("step_id", pa.array(np.arange(rows.num_rows)))
    return rows.append_column("source", pa.array(["step_trace_annotation"] * rows.num_rows, pa.string()))
