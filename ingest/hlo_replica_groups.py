"""Decodes which devices take part in a collective: every encoding of its groups that XLA has had.

A list in the instruction (JAX 0.4.30), a list in a message of its own (0.4.38 and later) or an iota in that
message (0.8), an iota in the instruction (0.9 and later), and axes of a mesh (0.10 and later).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from google.protobuf.unknown_fields import UnknownFieldSet

Groups = tuple[tuple[int, ...], ...]

# More devices than any run has: the few bytes of an iota must not fill the memory.
MAX_MEMBERS = 1 << 17
# So that an array never has more than the 64 that NumPy allows.
_MAX_DIMENSIONS = 32
# Of HloInstructionProto, as of jaxlib 0.12.
_LAST_KNOWN_FIELD = 103


class UnknownGroups(ValueError):
    """The groups of a collective cannot be told. The text says why."""


def replica_groups(instruction: Any) -> Groups:
    """Return the members of each group, () where the instruction names none, which means all.

    Raises UnknownGroups for groups that contradict themselves or each other, for more than MAX_MEMBERS
    members, and where fields of a later XLA may say more.
    """
    groups, *others = _stated_groups(instruction) or [()]
    if any(other != groups for other in others):
        raise UnknownGroups("the instruction states its replica groups twice, and differently")
    unknown = UnknownFieldSet(instruction)
    if not groups and any(unknown[index].field_number > _LAST_KNOWN_FIELD for index in range(len(unknown))):
        raise UnknownGroups("the instruction has fields of a later XLA, which may hold its replica groups")
    return groups


def _stated_groups(instruction: Any) -> list[Groups]:
    stated: list[Groups] = []
    if instruction.HasField("iota_collective_device_list"):
        stated.append(_iota_groups(instruction.iota_collective_device_list))
    if instruction.HasField("mesh_axes_replica_group_list"):
        stated.append(_mesh_groups(instruction.mesh_axes_replica_group_list))
    if instruction.replica_groups:
        stated.append(_listed_groups(instruction.replica_groups))
    device_list = instruction.collective_device_list
    _require_known_fields(device_list)
    if device_list.HasField("iota_replica_group_list"):
        stated.append(_iota_groups(device_list.iota_replica_group_list))
    if device_list.replica_groups:
        stated.append(_listed_groups(device_list.replica_groups))
    return stated


def _require_known_fields(*messages: Any) -> None:
    if any(len(UnknownFieldSet(message)) for message in messages):
        raise UnknownGroups("the replica groups have fields of a later XLA")


def _listed_groups(groups: Sequence[Any]) -> Groups:
    _check_count(sum(len(group.replica_ids) for group in groups))
    listed = tuple(tuple(group.replica_ids) for group in groups)
    if not all(listed):
        raise UnknownGroups("a replica group is empty")
    _check_ids([member for group in listed for member in group])
    return listed


def _iota_groups(iota: Any) -> Groups:
    _require_known_fields(iota)
    count, size = iota.num_replica_groups, iota.num_devices_per_group
    dimensions = tuple(iota.iota_reshape_dims)
    total = _volume(dimensions, "an iota of replica groups")
    if count <= 0 or size <= 0 or count * size != total:
        raise UnknownGroups(f"an iota of {total} ids for {count} replica groups of {size}")
    return _grouped(None, dimensions, tuple(iota.iota_transpose_perm), size)


def _mesh_groups(mesh_axes: Any) -> Groups:
    """The groups of devices that differ in nothing but their places along some axes of a mesh.

    An axis can be split in factors, and only some of them be among those: `x:(2)2` of `x=8` is the middle one
    of 2x2x2.
    """
    mesh, references = mesh_axes.mesh, mesh_axes.axes
    sub_axes = [reference.sub_axis_info for reference in references]
    _require_known_fields(mesh_axes, mesh, mesh.iota_transform, *mesh.axes, *references, *sub_axes)
    sizes = tuple(axis.size for axis in mesh.axes)
    devices = _mesh_devices(mesh, _volume(sizes, "a mesh of replica groups"))
    if len(references) > _MAX_DIMENSIONS:
        raise UnknownGroups(f"replica groups along {len(references)} axes of a mesh")
    factors_by_axis: list[list[tuple[int, int, int]]] = [[] for _ in sizes]
    for order, reference in enumerate(references):
        index = reference.mesh_axis_index
        if not 0 <= index < len(sizes):
            raise UnknownGroups(f"replica groups along axis {index} of a mesh of {len(sizes)} axes")
        before, size = 1, sizes[index]
        if reference.HasField("sub_axis_info"):
            before, size = reference.sub_axis_info.pre_size, reference.sub_axis_info.size
        factors_by_axis[index].append((before, size, order))
    factors = [
        factor
        for size, axis_factors in zip(sizes, factors_by_axis, strict=True)
        for factor in _split_axis(size, axis_factors)
    ]
    dimensions = tuple(size for size, _ in factors)
    places = sorted((order, place) for place, (_, order) in enumerate(factors) if order is not None)
    inside = tuple(place for _, place in places)
    outside = tuple(place for place, (_, order) in enumerate(factors) if order is None)
    group_size = math.prod(dimensions[place] for place in inside)
    return _grouped(devices, dimensions, outside + inside, group_size)


def _split_axis(size: int, factors: list[tuple[int, int, int]]) -> Iterator[tuple[int, int | None]]:
    """Split `size` into factors, among them `factors`, which are (product of those before, size, order).

    Each comes with its order, the others with None.
    """
    product = 1
    for before, factor, order in sorted(factors):
        if before < product or factor <= 0 or before % product or size % (before * factor):
            raise UnknownGroups(f"replica groups along a part ({before}){factor} of a mesh axis of {size}")
        if before > product:
            yield before // product, None
        yield factor, order
        product = before * factor
    if size > product:
        yield size // product, None


def _mesh_devices(mesh: Any, count: int) -> tuple[int, ...] | None:
    """The ids in the order of the axes of the mesh; None for 0, 1, 2, ..."""
    devices = tuple(mesh.device_ids)
    if devices:
        if len(devices) != count:
            raise UnknownGroups(f"a mesh of {count} places for {len(devices)} devices")
        _check_ids(devices)
    if mesh.HasField("iota_transform"):
        dimensions = tuple(mesh.iota_transform.reshape_dims)
        total = _volume(dimensions, "the device order of a mesh")
        if total != count:
            raise UnknownGroups(f"a mesh of {count} places for {total} devices")
        (moved,) = _grouped(None, dimensions, tuple(mesh.iota_transform.transpose_perm), total)
        if devices and devices != moved:
            raise UnknownGroups("a mesh states the order of its devices twice, and differently")
        devices = moved
    return devices or None


def _volume(dimensions: tuple[int, ...], what: str) -> int:
    if not 0 < len(dimensions) <= _MAX_DIMENSIONS or min(dimensions) <= 0:
        raise UnknownGroups(f"{what} of dimensions {list(dimensions[:_MAX_DIMENSIONS])}")
    total = math.prod(dimensions)
    _check_count(total)
    return total


def _check_count(members: int) -> None:
    if members > MAX_MEMBERS:
        raise UnknownGroups(f"replica groups of more than {MAX_MEMBERS} members")


def _check_ids(ids: Sequence[int]) -> None:
    if min(ids) < 0:
        raise UnknownGroups("the replica groups have a negative id")
    if len(set(ids)) < len(ids):
        raise UnknownGroups("the replica groups have an id twice")


# The collectives of a program share a few sets of groups: the same tuple for each saves memory.
@lru_cache(maxsize=32)
def _grouped(
    devices: tuple[int, ...] | None, dimensions: tuple[int, ...], order: tuple[int, ...], group_size: int
) -> Groups:
    """`devices`, or 0, 1, 2, ..., as an array of `dimensions` put in `order`, cut in rows of `group_size`."""
    if sorted(order) != list(range(len(dimensions))):
        raise UnknownGroups(
            f"{list(order[:_MAX_DIMENSIONS])} is no order of {len(dimensions)} dimensions of replica groups"
        )
    ids = np.arange(math.prod(dimensions)) if devices is None else np.array(devices, dtype=np.int64)
    rows = ids.reshape(dimensions).transpose(order).reshape(-1, group_size)
    return tuple(map(tuple, rows.tolist()))
