"""How often computations run, against walks through programs and against programs whose counts are known."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.hlo_loop_bounds import derived_trip_count
from tracewh.ingest.hlo_loops import Runs
from tracewh.ingest.hlo_proto import HloModuleProto

from .hlo_dumps import read_dumps
from .hlo_oracle import module_of_text, modules_of_hlo_proto, modules_of_xspace
from .hlo_program import Module, loop_text
from .hlo_wire import computation, instruction, module

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
RUNS = [
    *("h200x1_small", "h200x2_medium_fsdp2", "h200x2_medium_fsdp2_nocb", "h200x2_medium_fsdp2_opt"),
    *("h200_2proc", "hist_01-08"),
]


# --- what the compiler states -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend_config", "expected"),
    [
        (b'{"known_trip_count":{"n":"56"}}', 56),
        (b'{"known_trip_count":{"n":56},"known_init_step":{"init":"0","step":"1"}}', 56),
        (b'{"known_trip_count":{"n":"0"}}', 0),
        (b'{"known_trip_count":{"n":"9223372036854775807"}}', 2**63 - 1),
        # What cannot be read is derived: the loop has 7 turns.
        (b"", 7),
        (b"{}", 7),
        (b'{"known_trip_count":{"n":"9223372036854775808"}}', 7),
        (b'{"known_trip_count":{"n":"-1"}}', 7),
        (b'{"known_trip_count":{"n":"many"}}', 7),
        (b'{"known_trip_count":{"n":Infinity}}', 7),
        (b'{"known_trip_count":{"n":[5]}}', 7),
        (b'{"known_trip_count":{}}', 7),
        (b'{"known_trip_count":5}', 7),
        (b'["known_trip_count"]', 7),
        (b'"known_trip_count"', 7),
        (b"{known_trip_count = 5 : i64}", 7),
        (b'{"known_trip_count":\xff', 7),
        (b'{"known_trip_count":' + b"[" * 100_000, 7),
        (b'{"known_trip_count":{"n":"' + b"9" * 10_000 + b'"}}', 7),
    ],
    ids=lambda value: str(value)[:50],
)
def test_stated_trip_count(backend_config: bytes, expected: int) -> None:
    assert Module(module_of_text(loop_text("s32", 0, 1, "LT", 7))).with_stated(backend_config) == [expected]


# --- executions ---------------------------------------------------------------------------------------------

NESTED = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
double { a = f32[8] parameter(0)
  ROOT b = f32[8] add(a, a) }
outlined { a = f32[8] parameter(0)
  zero = f32[] constant(0)
  total = f32[] reduce(a, zero), dimensions={0}, to_apply=sum
  all = f32[8] broadcast(total), dimensions={}
  ROOT b = f32[8] fusion(all), kind=kLoop, calls=double }
sent { a = f32[8] parameter(0)
  ROOT b = f32[8] all-reduce(a), replica_groups={}, to_apply=sum }
double_left { a = f32[8] parameter(0)
  ROOT b = f32[8] add(a, a) }
left { a = f32[8] parameter(0)
  ROOT b = f32[8] fusion(a), kind=kLoop, calls=double_left }
right { a = f32[8] parameter(0)
  ROOT b = f32[8] negate(a) }
less { a = s32[] parameter(0)
  n = s32[] parameter(1)
  ROOT c = pred[] compare(a, n), direction=LT }
inner_body { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] call(x), to_apply=outlined
  started = ((f32[8]), f32[8], u32[]) async-start(y), calls=sent
  z = f32[8] async-done(started)
  ROOT r = (s32[], f32[8]) tuple(next, z) }
inner_condition { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] fusion(i, n), kind=kLoop, calls=less }
outer_body { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  state = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(state), condition=inner_condition, body=inner_body
  y = f32[8] get-tuple-element(w), index=1
  z = f32[8] call(y), to_apply=outlined
  ROOT r = (s32[], f32[8]) tuple(next, z) }
outer_condition { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
hosted { a = f32[8] parameter(0)
  ROOT b = f32[8] negate(a) }
ENTRY e { x = f32[8] parameter(0)
  which = pred[] parameter(1)
  zero = s32[] constant(0)
  state = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(state), condition=outer_condition, body=outer_body
  y = f32[8] get-tuple-element(w), index=1
  z = f32[8] conditional(which, y, y), true_computation=left, false_computation=right
  host = f32[8] custom-call(z), custom_call_target="host", called_computations={hosted}
  ROOT r = f32[8] call(host), to_apply=outlined }
"""


def test_nested_loops() -> None:
    assert Module(module_of_text(NESTED)).runs() == {
        "e": Runs("entry", 1, 0, None),
        "outer_body": Runs("while_body", 3, 1, 3),
        "outer_condition": Runs("while_condition", 4, 1, 3),
        "inner_body": Runs("while_body", 15, 2, 5),
        "inner_condition": Runs("while_condition", 18, 2, 5),
        "less": Runs("fusion", 18, 2, 5),
        # From the inner loop, the outer one and the entry.
        "outlined": Runs("call", 15 + 3 + 1, 2, None),
        "double": Runs("fusion", 19, 2, None),
        "sent": Runs("async", 15, 2, 5),
        "sum": Runs("reducer", None, 2, None),
        "left": Runs("branch", None, 0, None),
        "right": Runs("branch", None, 0, None),
        "double_left": Runs("fusion", None, 0, None),
        "hosted": Runs("other", None, 0, None),
    }


def random_program(generator: random.Random) -> bytes:
    """A module of computations that call later ones, in loops, calls, fusions and asynchronously."""
    size = generator.randint(3, 9)
    parts = []
    number = 1000
    for index in range(size):
        items = []
        for _ in range(generator.randint(0, 3)):
            number += 1
            later = range(index + 1, size)
            opcode = generator.choice(["fusion", "call", "async-start", "while", "negate", "conditional"])
            if opcode == "while" and len(later) >= 2:
                body, condition = generator.sample(later, 2)
                config = json.dumps({"known_trip_count": {"n": str(generator.randint(0, 3))}})
                items.append(instruction(number, opcode, (43, config), called=(body, condition)))
            elif opcode not in ("while", "negate") and later:
                items.append(instruction(number, opcode, called=(generator.choice(later),)))
                # Older modules repeat what is called.
                end = instruction(number + 500, "async-done", called=(generator.choice(later),))
                items += [end] if opcode == "async-start" else []
        parts.append(computation(index, *items))
    generator.shuffle(parts)
    return module(*parts, entry=0)


def test_executions_against_a_walk_through_the_program() -> None:
    generator = random.Random(11)
    largest = 0
    for _ in range(300):
        tested = Module(random_program(generator))
        counted = tested.counted()
        assert {name: value.executions for name, value in tested.runs().items()} == {
            name: counted[name] for name in tested.names.values()
        }
        largest = max(largest, *counted.values())
    assert largest > 50


def test_unknown_trip_count_makes_what_is_inside_unknown() -> None:
    unknown = NESTED.replace("n = s32[] constant(5)", "f = f32[] constant(5)\n  n = s32[] convert(f)")
    runs = Module(module_of_text(unknown)).runs()
    assert runs["inner_body"] == Runs("while_body", None, 2, None)
    assert runs["inner_condition"] == Runs("while_condition", None, 2, None)
    assert runs["outlined"].executions is None
    assert runs["outer_body"] == Runs("while_body", 3, 1, 3)
    never = unknown.replace("n = s32[] constant(3)", "n = s32[] constant(0)")
    runs = Module(module_of_text(never)).runs()
    assert (runs["outer_body"].executions, runs["inner_body"].executions) == (0, 0)
    assert runs["outlined"].executions == 1


def test_computations_that_nothing_calls() -> None:
    lone = computation(2, instruction(20, "call", called=(3,)), instruction(21, "reduce", called=(4,)))
    called, reducer = computation(3), computation(4)
    runs = Module(module(computation(1), lone, called, reducer, entry=1)).runs()
    assert runs["computation.4"] == Runs("reducer", None, 0, None)
    assert runs["computation.2"] == Runs("other", 0, 0, None)
    assert runs["computation.3"] == Runs("call", 0, 0, None)
    without_entry = Module(module(lone, called, entry=99)).runs()
    assert {value.executions for value in without_entry.values()} == {None}


def test_module_that_calls_itself() -> None:
    parts = [
        computation(1, instruction(10, "call", called=(2,)), instruction(11, "call", called=(1,))),
        computation(2, instruction(20, "while", called=(3, 4))),
        computation(3, instruction(30, "call", called=(2,))),
        computation(4, instruction(40, "fusion", called=(5,))),
        computation(5),
        computation(6, instruction(60, "fusion", called=(77,))),
    ]
    runs = Module(module(*parts, entry=1)).runs()
    assert {name: (value.role, value.executions) for name, value in runs.items()} == {
        "computation.1": ("entry", None),
        "computation.2": ("call", None),
        "computation.3": ("while_body", None),
        "computation.4": ("while_condition", None),
        "computation.5": ("fusion", None),
        "computation.6": ("other", 0),
    }


@pytest.mark.parametrize("opcode", ["call", "while"])
def test_a_hundred_thousand_nested_computations(opcode: str) -> None:
    """Loops of two turns in one another: up to a billion is counted."""
    depth = 100_000
    config = (43, b'{"known_trip_count":{"n":"2"}}')
    parts = [
        computation(index, instruction(depth + index, opcode, config, called=(index + 1,)))
        for index in range(depth)
    ]
    runs = Module(module(*parts, computation(depth), entry=0)).runs()
    executions = [runs[f"computation.{index}"].executions for index in (0, 1, 29, 30, depth)]
    assert executions == ([1, 2, 2**29, None, None] if opcode == "while" else [1] * 5)
    assert runs[f"computation.{depth}"].loop_depth == (depth if opcode == "while" else 0)


# --- programs whose counts are known ------------------------------------------------------------------------


def test_jax_loops() -> None:
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def program(x: Any) -> Any:
        def layer(carry: Any, weight: Any) -> tuple[Any, None]:
            return jnp.tanh(carry @ weight), None

        def microbatch(carry: Any, _: Any) -> tuple[Any, None]:
            return jax.lax.scan(layer, carry, jnp.ones((6, 16, 16)))[0], None

        x, _ = jax.lax.scan(microbatch, x, None, length=4)
        x = jax.lax.fori_loop(3, 14, lambda i, value: jnp.sin(value) * i, x)
        return jax.lax.while_loop(lambda value: value.sum() < 100, lambda value: value + 1, x)

    compiled = jax.jit(program).lower(jnp.ones((8, 16))).compile()
    data = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    tested = Module(data)
    bodies = {
        value.trip_count: (value.executions, value.loop_depth)
        for value in tested.runs().values()
        if value.role == "while_body"
    }
    assert bodies == {4: (4, 1), 6: (24, 2), 11: (11, 1), None: (None, 1)}


def check_layers_and_microbatches(module_proto: bytes, layers: int, microbatches: int) -> None:
    """The layers run forward in one loop and backward in another, both inside of that of the microbatches."""
    tested = Module(module_proto)
    assert sorted(tested.trip_counts(), key=str) == sorted([microbatches, layers, layers], key=str)
    derived = [derived_trip_count(tested.graph, loop) for loop in tested.loops]
    assert derived == tested.trip_counts()
    bodies = [value for value in tested.runs().values() if value.role == "while_body"]
    assert sorted((value.loop_depth, value.executions) for value in bodies) == [
        (1, microbatches),
        (2, microbatches * layers),
        (2, microbatches * layers),
    ]
    counted = tested.counted()
    for name, value in tested.runs().items():
        assert value.executions == (None if value.role == "reducer" else counted[name]), name


@pytest.mark.parametrize("run", RUNS)
def test_layers_and_microbatches_of_real_programs(run: str) -> None:
    for dump in read_dumps(SHARED / "captures" / f"{run}.tar.xz"):
        (module_proto,) = modules_of_hlo_proto(dump.files["hlo"])
        check_layers_and_microbatches(module_proto, dump.config["layers"], dump.config["accum"])


@pytest.mark.parametrize("run", ["h200_moe", "h200_moe_direct"])
def test_layers_and_microbatches_of_the_fixtures(run: str) -> None:
    folder = ROOT / "fixtures" / run
    config = json.loads((folder / "config.json").read_text())
    space = gzip.decompress((folder / "profile" / "vm.xplane.pb.gz").read_bytes())
    steps = [
        data for data in modules_of_xspace(space) if HloModuleProto.FromString(data).name == b"jit_train_step"
    ]
    assert steps
    for module_proto in steps:
        check_layers_and_microbatches(module_proto, config["layers"], config["accum"])
