"""What XSpace planes say beside their events: devices, attributes, scope ranges and HLO modules."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tracewh.ingest import hlo, hlo_files, xspace_space
from tracewh.ingest.capture import Capture, Device, ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_space import Int64Array, Mask, Plane, Space, Stats, double_values
from tracewh.ingest.xspace_stats import integer_of

METADATA_PLANE = "/host:metadata"
ENVIRONMENT_PLANE = "Task Environment"
SCOPE_PLANE = "/host:__ScopeRangeCallStack__"

_INTEGERS = (xspace_space.INT64, xspace_space.UINT64)
_BLOBS = (xspace_space.BYTES, xspace_space.STRING)
_DEVICE_PLANE = re.compile(r"^/device:(GPU|TPU|CPU):([0-9]{1,9})(?: (.+))?$")
_VENDOR_PLATFORM = {"nvidia": "cuda", "amd": "rocm"}
_GFX_BY_CAPABILITY = {("9", "0"): "gfx90a", ("9", "4"): "gfx942", ("9", "5"): "gfx950"}


def is_device(plane_name: str) -> bool:
    """Whether the plane is one of a device."""
    return _DEVICE_PLANE.match(plane_name) is not None


def has_name(plane: Plane, stat_ids: Int64Array) -> Mask:
    """Which of the ids are stats with a name."""
    return np.isin(stat_ids, [key for key, name in plane.stat_names.items() if name])


def named_stats(space: Space, plane: Plane) -> Iterator[tuple[str, str | None]]:
    """The stats of the plane itself that have a name, as (name, text)."""
    for stats in space.stats(plane):
        for index in np.flatnonzero(has_name(plane, stats.stat_id)).tolist():
            name = plane.stat_names[int(stats.stat_id[index])]
            yield _text_of(name), _value_text(plane, stats, index)


def add_device(
    capture: Capture, space: Space, plane: Plane, name: str, indexes: dict[tuple[str, int], int]
) -> int | None:
    """Index of the plane's device, with a row for it; None for host and custom planes.

    `indexes` are those of the devices so far. A second plane of one device (a TPU's SparseCore) adds its
    attributes.
    """
    found = _DEVICE_PLANE.match(name)
    if found is None:
        return None
    attributes = dict(named_stats(space, plane))
    vendor = attributes.get("device_vendor")
    kind = attributes.get("gpu_device_name") or attributes.get("device_type_string")
    if kind is None and vendor and vendor.upper() == "AMD":
        capability = (attributes.get("compute_cap_major") or "", attributes.get("compute_cap_minor") or "")
        if capability in _GFX_BY_CAPABILITY:
            kind = f"AMD {_GFX_BY_CAPABILITY[capability]}"
    prefix = f"{found[3]}." if found[3] else ""
    named = tuple((prefix + attribute, value) for attribute, value in attributes.items())
    key = (found[1], int(found[2]))
    if key not in indexes:
        indexes[key] = len(capture.devices)
        capture.devices.append(Device(capture.hostname, *key, kind, vendor, named))
    elif named:
        known = capture.devices[indexes[key]]
        capture.devices[indexes[key]] = dataclasses.replace(known, attributes=(*known.attributes, *named))
    return indexes[key]


def add_attributes(capture: Capture, space: Space, plane: Plane, name: str, position: int) -> None:
    """The stats of a plane without a device become attributes of the capture."""
    prefix = "" if name in (METADATA_PLANE, ENVIRONMENT_PLANE) else f"{name or position}."
    for stat, value in named_stats(space, plane):
        capture.attributes[prefix + stat] = value
        if name == METADATA_PLANE and stat == "process_id":
            capture.process_id = integer_of(value)


def platform_of(capture: Capture) -> str:
    """cuda, rocm, tpu or cpu, by the devices."""
    for device in capture.devices:
        if device.vendor and device.vendor.lower() in _VENDOR_PLATFORM:
            return _VENDOR_PLATFORM[device.vendor.lower()]
        if device.device_type == "TPU":
            return "tpu"
    return "cpu"


def are_ranges(plane: Plane, stats: Stats) -> Mask:
    """Which stats of the plane of scopes are ranges: those without a name that are numbers."""
    return ~has_name(plane, stats.stat_id) & np.isin(stats.value_type, _INTEGERS)


def scope_ranges(stats: Stats, is_range: Mask) -> pa.Table:
    """Rows of scope_ranges: such a stat says that its id lies in the range of its value."""
    return pa.table(
        {
            "scope_range_id": pa.array(stats.stat_id[is_range]),
            "parent_scope_range_id": pa.array(stats.value[is_range]),
        }
    )


def read_programs(plane: Plane, problems: ProblemCounter, programs: list[hlo.HloProgram]) -> None:
    """Append the programs of `/host:metadata`, one event metadata each; TPUs have other maps there too.

    Programs of equal modules share one.
    """
    metadata = plane.event_metadata
    stats = metadata.stats
    program_ids: dict[int, int] = {}
    protos: dict[int, bytes] = {}
    for index, (row, stat_id) in enumerate(zip(stats.owner.tolist(), stats.stat_id.tolist(), strict=True)):
        stat_name = _text_of(plane.stat_names.get(stat_id, b""))
        if stat_name == "program_id" and stats.value_type[index] in _INTEGERS:
            program_ids[row] = int(stats.value[index])
        elif stat_name.lower().replace(" ", "_") == "hlo_proto" and stats.value_type[index] in _BLOBS:
            protos[row] = stats.blob(index)
    modules: dict[str, hlo.HloModule] = {}
    for row, proto in protos.items():
        module_name = _text_of(metadata.names[row])
        place = f"{METADATA_PLANE} {module_name}"
        named = hlo_files.program_id_from_name(module_name)
        program_id = program_ids.get(row, int(metadata.ids[row]) if named is None else named)
        try:
            program = hlo.read_program(proto, program_id, place)
        except UnreadableFile as error:
            problems.add("unreadable_module", place, str(error))
        else:
            program.module = modules.setdefault(program.module.sha256, program.module)
            programs.append(program)


def _text_of(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _value_text(plane: Plane, stats: Stats, index: int) -> str | None:
    value_type, number = int(stats.value_type[index]), int(stats.value[index])
    match value_type:
        case xspace_space.DOUBLE:
            return repr(float(double_values(stats.value[index : index + 1])[0]))
        case xspace_space.UINT64:
            return str(number % (1 << 64))
        case xspace_space.INT64:
            return str(number)
        case xspace_space.REF:
            return _text_of(plane.stat_names.get(number, b""))
        case xspace_space.STRING:
            return _text_of(stats.blob(index))
        case xspace_space.BYTES | xspace_space.COMPRESSED:
            return stats.blob(index).hex()
    return None
