"""The groups of collectives: each encoding, against its definition and against jaxlib's own expansion."""

from __future__ import annotations

import itertools
import json
import math
import random
import re

import numpy as np
import pytest

from tracewh.ingest.hlo_replica_groups import MAX_MEMBERS

from .hlo_oracle import module_of_text
from .hlo_wire import (
    Field,
    axis,
    iota,
    listed,
    mesh,
    mesh_groups,
    message,
    packed,
    transform,
)
from .read_collectives import Groups, collectives, hand_made, lists

FLATTENED: tuple[Field, ...] = ((26, 1), (71, 1))


# --- every encoding of groups, by hand ----------------------------------------------------------------------


PAIRS_OF_EIGHT = [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    "fields",
    [
        [(49, message((1, packed(0, 1)))), (49, message((1, packed(2, 3)))),
         (49, message((1, packed(4, 5)))), (49, message((1, packed(6, 7))))],
        [(87, listed((0, 1), (2, 3), (4, 5), (6, 7)))],
        [(87, message((2, iota(4, 2, [8], [0]))))],
        [(92, iota(4, 2, [8], [0]))],
        [(92, iota(4, 2, [2, 2, 2], [0, 1, 2]))],
        [(93, mesh_groups(mesh([4, 2]), axis(1)))],
        [(93, mesh_groups(mesh([8]), axis(0, (4, 2))))],
        [(93, mesh_groups(mesh([2, 4], transform([4, 2], [1, 0])), axis(0)))],
        [(93, mesh_groups(mesh([2, 4], (2, packed(0, 2, 4, 6, 1, 3, 5, 7))), axis(0)))],
        # Stated twice, and the same.
        [(92, iota(4, 2, [8], [0])), (87, listed((0, 1), (2, 3), (4, 5), (6, 7)))],
    ],
    ids=["field 49", "87 lists", "87 iota", "92", "92 split", "93", "93 part", "93 moved", "93 ids", "twice"],
)  # fmt: skip
def test_each_encoding_says_the_same(fields: list[Field]) -> None:
    found = hand_made(*FLATTENED, *fields)
    assert lists(found.groups) == PAIRS_OF_EIGHT
    assert (found.group_size, found.group_mode, found.reason) == (2, "flattened_id", None)


def iota_reference(count: int, size: int, dimensions: list[int], order: list[int]) -> Groups:
    groups: Groups = (
        np.arange(count * size).reshape(dimensions).transpose(order).reshape(count, size).tolist()
    )
    return groups


def random_iota(generator: random.Random) -> tuple[int, int, list[int], list[int]]:
    dimensions = [generator.choice([1, 2, 3, 4]) for _ in range(generator.randint(1, 5))]
    total = math.prod(dimensions)
    size = generator.choice([divisor for divisor in range(1, total + 1) if total % divisor == 0])
    return total // size, size, dimensions, generator.sample(range(len(dimensions)), len(dimensions))


def test_iota_against_numpy() -> None:
    generator = random.Random(5)
    for _ in range(300):
        drawn = random_iota(generator)
        assert lists(hand_made(*FLATTENED, (92, iota(*drawn))).groups) == iota_reference(*drawn)


def mesh_reference(
    sizes: list[int], devices: list[int], axes: list[tuple[int, tuple[int, int] | None]]
) -> Groups:
    """By definition: devices are together whose digits differ in nothing but the digits of `axes`."""

    def digit(place: int, index: int, part: tuple[int, int] | None) -> int:
        coordinate = place // math.prod(sizes[index + 1 :]) % sizes[index]
        if part is None:
            return coordinate
        return coordinate // (sizes[index] // (part[0] * part[1])) % part[1]

    def key(place: int) -> list[int]:
        """The coordinates with the digits of `axes` set to 0."""
        kept = []
        for index, size in enumerate(sizes):
            coordinate = place // math.prod(sizes[index + 1 :]) % size
            for axis_index, part in axes:
                if axis_index == index:
                    weight = 1 if part is None else size // (part[0] * part[1])
                    coordinate -= digit(place, index, part) * weight
            kept.append(coordinate)
        return kept

    places = sorted(
        range(len(devices)), key=lambda place: (key(place), [digit(place, *reference) for reference in axes])
    )
    return [[devices[place] for place in group] for _, group in itertools.groupby(places, key)]


def random_axes(generator: random.Random, sizes: list[int]) -> list[tuple[int, tuple[int, int] | None]]:
    """Some axes of a mesh of sizes 1, 2, 4 and 8, or parts of them that do not overlap, in any order."""
    axes: list[tuple[int, tuple[int, int] | None]] = []
    for index, size in enumerate(sizes):
        kind = generator.choice(["none", "whole", "parts"])
        if kind == "whole":
            axes.append((index, None))
        elif kind == "parts":
            before = 1
            while before < size:
                part = generator.choice([part for part in (2, 4, 8) if size // before >= part])
                if generator.random() < 0.5:
                    axes.append((index, (before, part)))
                before *= part
    generator.shuffle(axes)
    return axes


def test_meshes_against_their_definition() -> None:
    generator = random.Random(7)
    for _ in range(300):
        sizes = [generator.choice([1, 2, 4, 8]) for _ in range(generator.randint(1, 3))]
        total = math.prod(sizes)
        devices = list(range(total))
        order: list[Field] = []
        if generator.random() < 0.4:
            generator.shuffle(devices)
            order = [(2, packed(*devices))]
        elif total > 1 and generator.random() < 0.5:
            devices = np.arange(total).reshape(2, total // 2).T.ravel().tolist()
            order = [transform([2, total // 2], [1, 0])]
        axes = random_axes(generator, sizes)
        references = [axis(index, part) for index, part in axes]
        found = hand_made(*FLATTENED, (93, mesh_groups(mesh(sizes, *order), *references)))
        assert lists(found.groups) == mesh_reference(sizes, devices, axes)


# --- jaxlib's own expansion ---------------------------------------------------------------------------------


def all_reduce_text(groups: str) -> str:
    return f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={groups}, channel_id=1, use_global_device_ids=true,
    to_apply=add
}}
"""


def jaxlib_groups(module_proto: bytes) -> Groups:
    """The groups of the only collective, as jaxlib expands them to translate the module to StableHLO."""
    _jax = pytest.importorskip("jaxlib._jax")
    try:
        from jaxlib import _hlo as hlo
    except ImportError:
        hlo = _jax
    try:
        translated = _jax.mlir.xla_computation_to_mlir_module(hlo.XlaComputation(module_proto))
    except AttributeError:
        pytest.skip("this jaxlib does not translate HLO to StableHLO")
    text = translated if isinstance(translated, str) else translated.decode(errors="replace")
    dense = re.search(r"replica_groups = dense<(\[\[[^>]*\]\])>", text)
    assert dense is not None
    groups: Groups = json.loads(dense[1])
    return groups


def test_lists_and_iotas_of_text_against_jaxlib() -> None:
    generator = random.Random(3)
    texts = ["{{0,1},{2,3}}", "{{3,0},{1,2}}", "{{0,2,1,3}}", "[2,2]<=[4]", "[2,4]<=[4,2]T(1,0)"]
    for _ in range(20):
        count, size, dimensions, order = random_iota(generator)
        # Of more than 100 elements jaxlib prints the bytes.
        if 1 < count * size < 100:
            texts.append(
                f"[{count},{size}]<=[{','.join(map(str, dimensions))}]"
                + (f"T({','.join(map(str, order))})" if len(dimensions) > 1 else "")
            )
    for text in texts:
        module_proto = module_of_text(all_reduce_text(text))
        assert lists(collectives(module_proto)["r"].groups) == jaxlib_groups(module_proto), text


@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        ([4, 2], transform([2, 4], [1, 0])),
        ([4, 2], transform([4, 2], [1, 0])),
        ([2, 2, 2], transform([2, 2, 2], [1, 2, 0])),
        ([3, 4, 2], transform([2, 3, 4], [1, 2, 0])),
        ([4, 6], transform([2, 3, 4], [2, 0, 1])),
        ([4, 2], (2, packed(3, 1, 0, 2, 5, 4, 7, 6))),
    ],
)
def test_device_order_of_a_mesh_against_jaxlib(sizes: list[int], order: Field) -> None:
    """XLA reads the same message where it describes how an array is split."""
    pytest.importorskip("jaxlib")
    try:
        from jaxlib._hlo import HloSharding, OpSharding
    except ImportError:
        pytest.skip("this jaxlib has no meshes")
    encoded = mesh(sizes, order)
    split = [(3, message((1, axis(index)), (2, 1))) for index in range(len(sizes))]
    sharding = OpSharding()
    sharding.ParseFromString(message((1, 3), (14, message((2, encoded), *split))))
    expected = HloSharding.from_proto(sharding).v3_to_v2_sharding().tile_assignment_devices()
    # In groups of all devices, the order is that of the mesh.
    everywhere = mesh_groups(encoded, *map(axis, range(len(sizes))))
    assert lists(hand_made(*FLATTENED, (93, everywhere)).groups) == [list(expected)]


def test_groups_of_different_sizes_have_no_size() -> None:
    found = hand_made(*FLATTENED, (87, listed((0, 1, 2), (3,))))
    assert (lists(found.groups), found.group_size, found.reason) == ([[0, 1, 2], [3]], None, None)


def test_mesh_along_no_axis() -> None:
    """jaxlib 0.12 runs it as groups of one device."""
    found = hand_made(*FLATTENED, (93, mesh_groups(mesh([2, 2]))))
    assert (lists(found.groups), found.group_size) == ([[0], [1], [2], [3]], 1)


# --- damaged and hostile ------------------------------------------------------------------------------------

HUGE = 2**40


@pytest.mark.parametrize(
    "fields",
    [
        [(92, iota(HUGE, 1, [HUGE], [0]))],
        [(92, iota(1, HUGE, [2] * 40, list(range(40))))],
        [(92, iota(2**62, 4, [4], [0]))],
        [(92, iota(2, 2, [4], []))],
        [(92, iota(2, 2, [], []))],
        [(92, iota(2, 2, [2, 2], [0, 0]))],
        [(92, iota(2, 2, [2, 2], [0, 2]))],
        [(92, iota(2, 2, [2, 2], [0, -1]))],
        [(92, iota(2, 2, [2, 3], [1, 0]))],
        [(92, iota(-2, -2, [2, 2], [1, 0]))],
        [(92, iota(2, 2, [-2, -2], [1, 0]))],
        [(92, iota(0, 0, [0], [0]))],
        [(92, iota(1, 1, [1] * 70, list(range(70))))],
        [(87, message((2, iota(HUGE, HUGE, [HUGE, HUGE], [1, 0]))))],
        [(87, listed((0, 1), ()))],
        [(87, listed((0, -1)))],
        [(87, listed((0, 1), (1, 2)))],
        [(87, listed(tuple(range(MAX_MEMBERS + 1))))],
        [(49, message((1, packed(0, 0))))],
        [(93, b"")],
        [(93, mesh_groups(mesh([HUGE, 2]), axis(1)))],
        [(93, mesh_groups(mesh([2, -2]), axis(1)))],
        [(93, mesh_groups(mesh([2, 0]), axis(1)))],
        [(93, mesh_groups(mesh([2] * 40), axis(1)))],
        [(93, mesh_groups(mesh([4, 2]), axis(2)))],
        [(93, mesh_groups(mesh([4, 2]), axis(-1)))],
        [(93, mesh_groups(mesh([4, 2]), axis(0), axis(0)))],
        [(93, mesh_groups(mesh([4, 1]), *([axis(1)] * 40)))],
        [(93, mesh_groups(mesh([8]), axis(0, (1, 4)), axis(0, (2, 2))))],
        [(93, mesh_groups(mesh([8]), axis(0, (3, 2))))],
        [(93, mesh_groups(mesh([12]), axis(0, (1, 4)), axis(0, (6, 2))))],
        [(93, mesh_groups(mesh([8]), axis(0, (1, HUGE))))],
        [(93, mesh_groups(mesh([8]), axis(0, (0, 2))))],
        [(93, mesh_groups(mesh([8]), axis(0, (1, -2))))],
        [(93, mesh_groups(mesh([4, 2], (2, packed(0, 1, 2))), axis(0)))],
        [(93, mesh_groups(mesh([2, 2], (2, packed(0, 1, 2, 2))), axis(0)))],
        [(93, mesh_groups(mesh([2, 2], (2, packed(0, 1, 2, -3))), axis(0)))],
        [(93, mesh_groups(mesh([4, 2], transform([4, 4], [1, 0])), axis(0)))],
        [(93, mesh_groups(mesh([4, 2], transform([HUGE, 2], [1, 0])), axis(0)))],
        [(93, mesh_groups(mesh([2, 2], transform([2, 2], [1, 0]), (2, packed(0, 1, 2, 3))), axis(0)))],
        # The same question answered twice, differently.
        [(92, iota(4, 2, [8], [0])), (87, listed((0, 2), (1, 3)))],
        # Fields that only a later XLA knows.
        [(93, mesh_groups(mesh([4, 2], (9, b"order")), axis(0)))],
        [(92, iota(4, 2, [8], [0]) + message((7, 1)))],
        [(26, 0), (71, 0), (87, message((4, b"groups")))],
        [(26, 0), (71, 0), (150, b"groups")],
        # Global ids ask for groups, and for a channel.
        [],
        [(26, 0), (87, listed((0, 1)))],
    ],
)  # fmt: skip
def test_groups_that_cannot_be_told(fields: list[Field]) -> None:
    found = hand_made(*FLATTENED, *fields)
    assert (found.groups, found.group_size) == (None, None)
    assert found.reason
    assert len(found.reason) < 300
    assert (found.kind, found.payload_bytes) == ("all-reduce", 32)


def test_the_largest_groups() -> None:
    found = hand_made(*FLATTENED, (92, iota(2, MAX_MEMBERS // 2, [MAX_MEMBERS // 2, 2], [1, 0])))
    assert found.groups is not None
    assert found.groups[1] == tuple(range(1, MAX_MEMBERS, 2))
    again = hand_made(*FLATTENED, (92, iota(2, MAX_MEMBERS // 2, [MAX_MEMBERS // 2, 2], [1, 0])))
    assert again.groups is found.groups
