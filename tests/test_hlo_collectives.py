"""Collectives, against the meshes of programs, what programs do when they run, and the text of real ones."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracewh.ingest import hlo_collectives
from tracewh.ingest.hlo_collectives import Collective
from tracewh.ingest.hlo_replica_groups import replica_groups

from .hlo_dumps import read_dumps
from .hlo_oracle import module_of_text, modules_of_hlo_proto, modules_of_xspace
from .hlo_wire import Field, array, computation, instruction, listed, message, module, packed, tuple_of
from .read_collectives import Groups, collectives, hand_made, lists

SHARED = Path(__file__).parents[1].parent / "shared"
PROGRAMS = Path(__file__).with_name("collective_programs.py")
TWO_GPU_RUNS = ["h200x2_medium_fsdp2", "h200x2_medium_fsdp2_nocb", "h200x2_medium_fsdp2_opt", "h200_2proc"]


# --- programs that run on eight devices ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs() -> list[dict[str, Any]]:
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAMS)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_programs_over_a_mesh(programs: list[dict[str, Any]]) -> None:
    """16 x 3 floats on each of eight devices; groups are the rows, the columns or all of the mesh."""
    checked = [program for program in programs if "groups" in program]
    assert len(checked) == 6
    for program in checked:
        found = {value.kind: value for value in collectives(base64.b64decode(program["module"])).values()}
        size = len(program["groups"][0])
        local = 16 * 3 * 4
        payloads = {
            "all-reduce": local,
            "all-gather": local * size,
            "reduce-scatter": local,
            "all-to-all": local,
            "collective-permute": local,
        }
        assert {kind: value.payload_bytes for kind, value in found.items()} == payloads
        assert all(value.reason is None and not value.is_done for value in found.values())
        permute = found.pop("collective-permute")
        assert (permute.groups, permute.group_size) == (None, None)
        assert sorted(permute.source_target_pairs) == sorted(map(tuple, program["pairs"]))
        for value in found.values():
            assert sorted(lists(value.groups) or []) == sorted(program["groups"]), value
            assert value.group_size == size
        modes = {kind: value.group_mode for kind, value in found.items()}
        assert modes == dict.fromkeys(found, "flattened_id") | {"all-to-all": "cross_partition"}


def test_what_programs_gather(programs: list[dict[str, Any]]) -> None:
    """Each device gathered the numbers of its group, in order."""
    ran = [program for program in programs if "gathered" in program]
    if not ran:
        pytest.skip("this jaxlib has no meshes in StableHLO")
    assert len(ran) == 14
    for program in ran:
        (found,) = collectives(base64.b64decode(program["module"])).values()
        assert sorted(lists(found.groups) or []) == sorted(program["gathered"])
        assert found.payload_bytes == 4 * len(program["gathered"][0])


# --- kinds, starts, ends and wrappers -----------------------------------------------------------------------

KINDS = """HloModule kinds
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
add16 {
  a16 = bf16[] parameter(0)
  b16 = bf16[] parameter(1)
  ROOT c16 = bf16[] add(a16, b16)
}
wrapped {
  w0 = bf16[16,4] parameter(0)
  ROOT inner_scatter = bf16[8,4] reduce-scatter(w0), replica_groups={{0,1}}, dimensions={0}, to_apply=add16
}
ENTRY e {
  p = f32[8] parameter(0)
  q = bf16[16,4] parameter(1)
  offsets = s32[2] parameter(2)
  nothing = token[] after-all()
  reduce = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=add
  several = (f32[8], bf16[16,4]) all-reduce(p, q), replica_groups={{0,1}}, to_apply=add
  reduce_start = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add
  reduce_done = f32[8] all-reduce-done(reduce_start)
  gather = f32[16] all-gather(p), replica_groups={{0,1}}, dimensions={0}
  gather_start = (f32[8], f32[16]) all-gather-start(p), replica_groups={{0,1}}, dimensions={0}
  gather_done = f32[16] all-gather-done(gather_start)
  gathers = ((f32[8], bf16[16,4]), (f32[16], bf16[32,4])) all-gather-start(p, q), replica_groups={{0,1}},
    dimensions={0}
  gathers_done = (f32[16], bf16[32,4]) all-gather-done(gathers)
  scatter = f32[4] reduce-scatter(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add
  exchange = f32[8] all-to-all(p), replica_groups={{0,1}}, dimensions={0}
  exchanges = (bf16[16,4], bf16[16,4]) all-to-all(q, q), replica_groups={{0,1}}
  ragged = f32[8] ragged-all-to-all(p, p, offsets, offsets, offsets, offsets), replica_groups={{0,1}}
  broadcast = bf16[16,4] collective-broadcast(q), replica_groups={{0,1}}
  permute = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,0}}
  permute_start = (f32[8], f32[8], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}
  permute_done = f32[8] collective-permute-done(permute_start)
  recv = (bf16[16,4], u32[], token[]) recv(nothing), channel_id=3,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
  recv_done = (bf16[16,4], token[]) recv-done(recv), channel_id=3
  send = (bf16[16,4], u32[], token[]) send(q, nothing), channel_id=3,
    frontend_attributes={_xla_send_recv_source_target_pairs="{{0, 1}, {1, 2}}"}
  send_done = token[] send-done(send), channel_id=3
  to_host = (f32[8], u32[], token[]) send(p, nothing), channel_id=4, is_host_transfer=true
  to_host_done = token[] send-done(to_host), channel_id=4, is_host_transfer=true
  async = ((bf16[16,4]), bf16[8,4], u32[]) async-start(q), calls=wrapped
  async_update = ((bf16[16,4]), bf16[8,4], u32[]) async-update(async)
  ROOT async_done = bf16[8,4] async-done(async_update)
}
"""


def test_kinds_and_payloads() -> None:
    found = collectives(module_of_text(KINDS))
    assert {name: (value.kind, value.payload_bytes) for name, value in found.items()} == {
        "inner_scatter": ("reduce-scatter", 128),
        "reduce": ("all-reduce", 32),
        "several": ("all-reduce", 32 + 128),
        "reduce_start": ("all-reduce", 32),
        "reduce_done": ("all-reduce", None),
        "gather": ("all-gather", 64),
        "gather_start": ("all-gather", 64),
        "gather_done": ("all-gather", None),
        "gathers": ("all-gather", 64 + 256),
        "gathers_done": ("all-gather", None),
        "scatter": ("reduce-scatter", 32),
        "exchange": ("all-to-all", 32),
        "exchanges": ("all-to-all", 256),
        "ragged": ("ragged-all-to-all", 32),
        "broadcast": ("collective-broadcast", 128),
        "permute": ("collective-permute", 32),
        "permute_start": ("collective-permute", 32),
        "permute_done": ("collective-permute", None),
        "recv": ("recv", 128),
        "recv_done": ("recv", None),
        "send": ("send", 128),
        "send_done": ("send", None),
        "async": ("reduce-scatter", 128),
        "async_update": ("reduce-scatter", None),
        "async_done": ("reduce-scatter", None),
    }
    ends = {name for name, value in found.items() if value.is_done}
    assert ends == {name for name in found if name.endswith("_done")} | {"async_update"}
    assert {value.reason for value in found.values()} == {None}
    pairs = {name: value.source_target_pairs for name, value in found.items() if value.source_target_pairs}
    assert pairs == {
        "permute": ((0, 1), (1, 0)),
        "permute_start": ((0, 1),),
        "permute_done": ((0, 1),),
        **dict.fromkeys(("recv", "recv_done", "send", "send_done"), ((0, 1), (1, 2))),
    }
    for name, value in found.items():
        is_grouped = name not in pairs
        assert value.groups == (((0, 1),) if is_grouped else None), name
        assert value.group_size == (2 if is_grouped else None), name
        sends = value.kind in ("send", "recv")
        assert value.group_mode == ("cross_partition" if sends else "cross_replica"), name


def wrapper(*inner: bytes) -> dict[str, Collective]:
    """An async-start of the instructions 2, 3, ... on a parameter of 8 floats."""
    body = computation(1, instruction(1, "parameter", shape=array(8)), *inner)
    start = instruction(11, "async-start", shape=array(8), operands=(10,), called=(1,))
    done = instruction(12, "async-done", shape=array(8), operands=(11,))
    entry = computation(2, instruction(10, "parameter", shape=array(8)), start, done)
    return collectives(module(body, entry, entry=2, devices=(2, 1)))


def test_wrappers_of_other_things_and_of_several_collectives() -> None:
    assert wrapper(instruction(2, "negate", operands=(1,))) == {}
    pair: Field = (87, listed((0, 1)))
    reduces = [instruction(number, "all-reduce", pair, operands=(1,)) for number in (2, 3)]
    same = wrapper(*reduces)
    assert (same["async-start.11"].kind, same["async-start.11"].payload_bytes) == ("all-reduce", 64)
    assert (same["async-start.11"].groups, same["async-start.11"].reason) == (((0, 1),), None)
    assert (same["async-done.12"].is_done, same["async-done.12"].payload_bytes) == (True, None)
    mixed = wrapper(reduces[0], instruction(3, "all-to-all", pair, operands=(1,)))["async-start.11"]
    assert (mixed.kind, mixed.payload_bytes, mixed.groups) == ("all-reduce+all-to-all", 64, None)
    assert mixed.reason is not None


def test_fusions_of_a_collective() -> None:
    """The kernel of such a fusion communicates, also where an async-start runs it."""
    reduce = instruction(2, "all-reduce", (87, listed((0, 1))), operands=(1,))
    body = computation(1, instruction(1, "parameter", shape=array(8)), reduce)
    fusion = instruction(11, "fusion", shape=array(8), operands=(10,), called=(1,))
    wrapped = computation(3, instruction(10, "parameter", shape=array(8)), fusion)
    start = instruction(21, "async-start", shape=array(8), operands=(20,), called=(3,))
    done = instruction(22, "async-done", shape=array(8), operands=(21,))
    entry = computation(2, instruction(20, "parameter", shape=array(8)), start, done)
    found = collectives(module(body, wrapped, entry, entry=2, devices=(2, 1)))
    for name in ("all-reduce.2", "fusion.11", "async-start.21"):
        each = found[name]
        assert (each.kind, each.payload_bytes, each.groups) == ("all-reduce", 32, ((0, 1),))
    assert (found["async-done.22"].is_done, found["async-done.22"].payload_bytes) == (True, None)
    assert len(found) == 4
    itself = instruction(1, "fusion", called=(1,))
    assert collectives(module(computation(1, itself), entry=1)) == {}


def test_wrapper_that_wraps_itself() -> None:
    start = instruction(1, "async-start", operands=(2,), called=(1,))
    done = instruction(2, "async-done", operands=(1,))
    update = instruction(3, "async-update", operands=(3,))
    found = collectives(module(computation(1, start, done, update), entry=1))
    assert found == {}


def test_a_long_way_to_the_start() -> None:
    reduce = instruction(2, "all-reduce", (87, listed((0, 1))), operands=(1,))
    body = computation(1, instruction(1, "parameter", shape=array(8)), reduce)
    links = [instruction(number, "async-update", operands=(number - 1,)) for number in range(12, 3000)]
    start = instruction(11, "async-start", operands=(10,), called=(1,))
    done = instruction(3000, "async-done", operands=(2999,))
    # The end comes first, which makes each update a part of its way.
    entry = computation(2, instruction(10, "parameter", shape=array(8)), done, *links, start)
    found = collectives(module(body, entry, entry=2, devices=(2, 1)))
    assert len(found) == 2 + len(links) + 1
    assert all(each.groups == ((0, 1),) for each in found.values())


def test_wrappers_of_one_body_look_into_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    def counting(item: Any) -> tuple[tuple[int, ...], ...]:
        looked_at.append(item.id)
        return replica_groups(item)

    monkeypatch.setattr(hlo_collectives, "replica_groups", counting)
    reduces = [
        instruction(number, "all-reduce", (87, listed((0, 1))), operands=(1,)) for number in range(2, 12)
    ]
    body = computation(1, instruction(1, "parameter", shape=array(8)), *reduces)
    fusions = [instruction(number, "fusion", operands=(20,), called=(1,)) for number in range(21, 51)]
    entry = computation(2, instruction(20, "parameter", shape=array(8)), *fusions)
    found = collectives(module(body, entry, entry=2, devices=(2, 1)))
    assert {found[f"fusion.{number}"].payload_bytes for number in range(21, 51)} == {10 * 32}
    # Once for itself, and once for the fusions.
    assert sorted(looked_at) == sorted(2 * list(range(2, 12)))


def test_more_members_than_any_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlo_collectives, "_MAX_MEMBERS_READ", 8)
    reduces = [instruction(number, "all-reduce", operands=(1,)) for number in (2, 3, 4)]
    body = computation(1, instruction(1, "parameter", shape=array(8)), *reduces)
    first, second, third = collectives(module(body, entry=1, devices=(8, 1))).values()
    assert first.groups == second.groups == (tuple(range(8)),)
    assert (third.groups, third.payload_bytes) == (None, 32)
    assert third.reason == "the replica groups before it have more than 8 members"


def test_end_of_something_else() -> None:
    """A pipelined end has a tuple of a loop as its operand."""
    parameter = instruction(1, "parameter", shape=array(8))
    gather = instruction(2, "all-gather-start", shape=tuple_of(array(8), array(16)), operands=(1,))
    for operand in (1, 2, 3, 99):
        end = instruction(3, "all-reduce-done", operands=(operand,))
        found = collectives(module(computation(1, parameter, gather, end), entry=1, devices=(2, 1)))
        assert found["all-reduce-done.3"] == Collective(
            "all-reduce", None, None, None, None, (), is_done=True
        )


# --- what ids mean, and who takes part where nobody is named ------------------------------------------------

TWO: Field = (87, listed((0, 1)))
CHANNEL, GLOBAL = (26, 5), (71, 1)


@pytest.mark.parametrize(
    ("opcode", "fields", "mode", "group_size"),
    [
        ("all-reduce", [TWO], "cross_replica", 2),
        ("all-reduce", [TWO, CHANNEL], "cross_replica_and_partition", 8),
        ("all-reduce", [TWO, CHANNEL, GLOBAL], "flattened_id", 2),
        ("all-reduce", [TWO, (26, 0)], "cross_replica", 2),
        ("all-gather", [TWO, CHANNEL, GLOBAL], "flattened_id", 2),
        ("reduce-scatter", [TWO, CHANNEL], "cross_replica_and_partition", 8),
        ("all-to-all", [TWO], "cross_replica", 2),
        ("all-to-all", [TWO, CHANNEL], "cross_partition", 2),
        ("all-to-all", [TWO, CHANNEL, GLOBAL], "cross_partition", 2),
        ("ragged-all-to-all", [TWO, CHANNEL], "cross_partition", 2),
        ("collective-broadcast", [TWO, CHANNEL], "cross_partition", 2),
    ],
)
def test_group_mode(opcode: str, fields: list[Field], mode: str, group_size: int) -> None:
    found = hand_made(*fields, opcode=opcode, devices=(2, 4))
    assert (found.group_mode, found.groups, found.group_size) == (mode, ((0, 1),), group_size)
    assert found.reason is None


@pytest.mark.parametrize("nobody", [[], [(87, b"")]], ids=["no list", "an empty list"])
@pytest.mark.parametrize(
    ("opcode", "fields", "members", "group_size"),
    [
        ("all-reduce", [], 2, 2),
        ("all-reduce", [CHANNEL], 2, 8),
        ("all-to-all", [], 2, 2),
        ("all-to-all", [CHANNEL], 4, 4),
    ],
)
def test_all_devices(
    opcode: str, fields: list[Field], members: int, group_size: int, nobody: list[Field]
) -> None:
    found = hand_made(*fields, *nobody, opcode=opcode, devices=(2, 4))
    assert lists(found.groups) == [list(range(members))]
    assert (found.group_size, found.reason) == (group_size, None)


# --- damaged and hostile ------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [None, (0, 8), (-1, 8), (2**31 - 1, 2**31 - 1)])
def test_all_devices_of_an_unknown_number(devices: tuple[int, int] | None) -> None:
    found = hand_made(devices=devices)
    assert (found.groups, found.group_size) == (None, None)
    assert found.reason is not None
    assert "devices" in found.reason


@pytest.mark.parametrize(
    "encoded",
    [
        instruction(2, "collective-permute", (52, message((1, -1), (2, 0))), operands=(1,)),
        instruction(2, "collective-permute", operands=(1,)),
        instruction(2, "send", operands=(1,)),
        *(
            instruction(
                2,
                "send",
                (68, message((1, message((1, "_xla_send_recv_source_target_pairs"), (2, text))))),
                operands=(1,),
            )
            for text in ("", "{{0,1},{2}}", "{{0,1}} and more", "{{0,-1}}", "{" * 100_000, " " * 100_000)
        ),
    ],
)
def test_sources_and_targets_that_cannot_be_told(encoded: bytes) -> None:
    parameter = instruction(1, "parameter", shape=array(8))
    (found,) = collectives(module(computation(1, parameter, encoded), entry=1)).values()
    assert (found.source_target_pairs, found.payload_bytes) == ((), 32)
    assert found.reason is not None
    assert "sources and targets" in found.reason


@pytest.mark.parametrize(
    ("opcode", "shape", "operands", "fields"),
    [
        ("all-reduce", array(8), (99,), []),
        ("all-gather-start", array(8), (1,), []),
        ("all-gather-start", tuple_of(array(8)), (1,), []),
        ("recv", array(8), (1,), []),
        ("send", array(8), (), []),
        ("all-gather", array(-5), (1,), []),
        ("all-gather", b"", (1,), []),
        ("all-gather", tuple_of(*[array(2**60, element_type=6)] * 9), (1,), []),
        ("all-reduce", array(2**60), (2, 2), []),
        ("collective-permute", array(8), (1, 1, 1, 1), [(20, packed(8))]),
    ],
)
def test_payload_that_cannot_be_told(
    opcode: str, shape: bytes, operands: tuple[int, ...], fields: list[Field]
) -> None:
    parameter = instruction(1, "parameter", shape=array(8))
    body = instruction(2, opcode, *fields, shape=shape, operands=operands)
    (found,) = collectives(module(computation(1, parameter, body), entry=1, devices=(1, 2))).values()
    assert found.payload_bytes is None
    assert found.reason is not None


# --- real programs ------------------------------------------------------------------------------------------

KIND = re.compile(r"(all-reduce|all-gather|reduce-scatter|all-to-all)$")
INSTRUCTION = re.compile(r"\s+(?:ROOT )?%(\S+) = ")
ITEM_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8}


def closing(text: str) -> int:
    """Position after the parenthesis that closes the first character of `text`."""
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return position + 1
    raise AssertionError(text[:100])


def text_bytes(shape: str) -> int:
    return sum(
        ITEM_BYTES[name] * math.prod(int(size) for size in sizes.split(",") if size)
        for name, sizes in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", shape)
    )


def text_groups(attributes: str) -> Groups:
    """The groups in the text of a collective, where they are axes of a mesh."""
    found = re.search(r"replica_groups=mesh\[([^]]*)\] \{([^}]*)\}", attributes)
    assert found is not None, attributes[:200]
    axes = [(name, int(size)) for name, size in re.findall(r"'(\w+)'=(\d+)", found[1])]
    inside = [[name for name, _ in axes].index(name) for name in re.findall(r"'(\w+)'", found[2])]
    devices = np.arange(math.prod(size for _, size in axes)).reshape([size for _, size in axes])
    group_size = math.prod(axes[index][1] for index in inside)
    last = range(len(axes) - len(inside), len(axes))
    groups: Groups = np.moveaxis(devices, inside, last).reshape(-1, group_size).tolist()
    return groups


def text_collectives(text: str) -> dict[str, tuple[str, int | None, Groups]]:
    """Kind, payload and groups of the collectives in the text of a module; the ends have no payload."""
    found: dict[str, tuple[str, int | None, Groups]] = {}
    wrapped: dict[str, str] = {}
    shapes: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith(("%", "ENTRY")):
            section = line.split(" ")[0]
        head = INSTRUCTION.match(line)
        if head is None:
            continue
        name, rest = head[1], line[head.end() :]
        end = closing(rest) if rest.startswith("(") else rest.index(" ")
        shapes[name] = re.sub(r"/\*.*?\*/", "", rest[:end])
        opcode, rest = rest[end + 1 :].split("(", 1)
        operands = re.findall(r"%([\w.-]+)", rest[: closing("(" + rest)])
        if kind := KIND.match(opcode):
            sources = [name] if kind[1] == "all-gather" else operands
            payload = sum(text_bytes(shapes[source]) for source in sources)
            found[name] = kind[1], payload, text_groups(rest)
            wrapped[section] = name
        elif opcode in ("async-start", "fusion") and (called := re.search(r"calls=(%[\w.-]+)", rest)):
            if called[1] in wrapped:
                found[name] = found[wrapped[called[1]]]
                wrapped[section] = name
        elif opcode == "async-done" and operands[0] in found:
            found[name] = found[operands[0]][0], None, found[operands[0]][2]
    return found


@pytest.mark.parametrize("run", TWO_GPU_RUNS)
def test_real_programs_against_their_text(run: str) -> None:
    for dump in read_dumps(SHARED / "captures" / f"{run}.tar.xz"):
        (module_proto,) = modules_of_hlo_proto(dump.files["hlo"])
        found = collectives(module_proto)
        expected = text_collectives(dump.files["text"].decode())
        assert len(expected) > 25
        assert {value.kind for value in found.values()} == {
            *("all-gather", "all-reduce", "all-to-all", "reduce-scatter")
        }
        assert {
            name: (value.kind, value.payload_bytes, lists(value.groups)) for name, value in found.items()
        } == expected
        assert {value.group_size for value in found.values()} == {2}
        assert {value.reason for value in found.values()} == {None}


def test_fixture_of_two_cpu_devices() -> None:
    """Data parallel: the gradients, in one all-reduce or several, go to both devices."""
    packed_space = Path(__file__).parents[1] / "fixtures" / "cpu_train" / "profile" / "cpu.xplane.pb.gz"
    found = [
        value
        for module_proto in modules_of_xspace(gzip.decompress(packed_space.read_bytes()))
        for value in collectives(module_proto).values()
    ]
    assert {value.kind for value in found} == {"all-reduce"}
    assert {value.groups for value in found} == {((0, 1),)}
    assert all(value.payload_bytes for value in found)
