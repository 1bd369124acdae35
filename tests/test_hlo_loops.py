"""Trip counts and executions, against loops run turn by turn and against programs whose counts are known."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_loop_bounds import derived_trip_count
from tracewh.ingest.hlo_loops import ComputationRuns, Runs, trip_count
from tracewh.ingest.hlo_proto import HloModuleProto

from .hlo_dumps import read_dumps
from .hlo_oracle import module_of_text, modules_of_hlo_proto, modules_of_xspace
from .hlo_wire import computation, instruction, module

os.environ["JAX_PLATFORMS"] = "cpu"
ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
RUNS = [
    *("h200x1_small", "h200x2_medium_fsdp2", "h200x2_medium_fsdp2_nocb", "h200x2_medium_fsdp2_opt"),
    *("h200_2proc", "hist_01-08"),
]


class Module:
    """A module as a test looks at it."""

    def __init__(self, data: bytes) -> None:
        self.proto = HloModuleProto.FromString(data)
        self.graph = ModuleGraph(self.proto)
        self.names = {part.id: part.name.decode() for part in self.proto.computations}
        self.loops = [
            item for part in self.proto.computations for item in part.instructions if item.opcode == b"while"
        ]

    def trip_counts(self) -> list[int | None]:
        return [trip_count(self.graph, loop) for loop in self.loops]

    def runs(self) -> dict[str, Runs]:
        runs = ComputationRuns(self.graph, self.proto)
        return {part.name.decode(): runs.of(part) for part in self.proto.computations}

    def with_stated(self, backend_config: bytes) -> list[int | None]:
        for loop in self.loops:
            loop.backend_config = backend_config
        return self.trip_counts()

    def counted(self) -> Counter[str]:
        """How often each computation runs when the program is walked through, turn by turn.

        Only for modules that state the trip counts of all loops, with conditionals of one branch.
        """
        counts: Counter[str] = Counter()

        def run(computation_id: int) -> None:
            part = self.graph.computations[computation_id]
            counts[self.names[computation_id]] += 1
            for item in part.instructions:
                called = list(item.called_computation_ids)
                if item.opcode == b"while":
                    body, condition = called
                    turns = int(json.loads(item.backend_config)["known_trip_count"]["n"])
                    for _ in range(turns):
                        run(condition)
                        run(body)
                    run(condition)
                elif item.opcode in (b"fusion", b"call", b"async-start", b"conditional"):
                    for callee in called:
                        run(callee)

        run(self.proto.entry_computation_id)
        return counts


# --- trip counts from a counter, against running the loop ---------------------------------------------------

RANGES = {
    "s32": (-(2**31), 2**31 - 1),
    "s64": (-(2**63), 2**63 - 1),
    "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
}
COMPARE = {
    "LT": int.__lt__,
    "LE": int.__le__,
    "GT": int.__gt__,
    "GE": int.__ge__,
    "NE": int.__ne__,
    "EQ": int.__eq__,
}
LIMIT = 3000


def simulated(kind: str, start: int, step: int, direction: str, bound: int, *, swapped: bool) -> int | None:
    """Turns of `while start < bound: start += step`; None where the counter overflows or never ends the loop."""
    low, high = RANGES[kind]
    for turns in range(LIMIT):
        sides = (bound, start) if swapped else (start, bound)
        if not COMPARE[direction](*sides):
            return turns
        start += step
        if not low <= start <= high:
            return None
    return None


def loop_text(
    kind: str, start: int, step: int, direction: str, bound: int, *, swapped: bool = False, extra: str = ""
) -> str:
    amount, operation = (step, "add") if step >= 0 else (-step, "subtract")
    sides = "bound, i" if swapped else "i, bound"
    return f"""HloModule counted
body {{
  p = ({kind}[], f32[4]) parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  step = {kind}[] constant({amount})
  next = {kind}[] {operation}(i, step)
  y = f32[4] add(x, x)
  ROOT r = ({kind}[], f32[4]) tuple(next, y)
}}
condition {{
  p = ({kind}[], f32[4]) parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  bound = {kind}[] constant({bound})
  ROOT c = pred[] compare({sides}), direction={direction}
}}
ENTRY e {{
  start = {kind}[] constant({start})
  x = f32[4] parameter(0)
  state = ({kind}[], f32[4]) tuple(start, x)
  ROOT w = ({kind}[], f32[4]) while(state), condition=condition, body=body{extra}
}}
"""


@pytest.mark.parametrize("direction", COMPARE)
@pytest.mark.parametrize("kind", RANGES)
def test_counted_loops_against_running_them(kind: str, direction: str) -> None:
    generator = random.Random(f"{kind} {direction}")
    low, high = RANGES[kind]
    seen: Counter[bool] = Counter()
    for _ in range(60):
        near = generator.choice([max(low, -20), low, high - 40, 0])
        start, bound = (near + generator.randint(0, 40) for _ in range(2))
        if generator.random() < 0.2:
            bound = start
        step = generator.choice([-7, -2, -1, 0, 1, 2, 3, 7])
        swapped = generator.random() < 0.3
        (found,) = Module(
            module_of_text(loop_text(kind, start, step, direction, bound, swapped=swapped))
        ).trip_counts()
        expected = simulated(kind, start, step, direction, bound, swapped=swapped)
        assert found == expected, (start, step, bound, swapped)
        seen[found is None] += 1
    assert seen[True]
    assert seen[False]


@pytest.mark.parametrize(
    ("direction", "start", "step", "bound", "expected"),
    [
        ("LT", 0, 1, 10**9, 10**9),
        ("LE", 0, 3, 10**9, 333_333_334),
        ("GT", 2**31 - 1, -1, 0, 2**31 - 1),
        ("NE", 0, 7, 7 * 10**8, 10**8),
        ("NE", 0, 7, 7 * 10**8 + 1, None),
        ("LT", -(2**31), 1, 2**31 - 1, 2**32 - 1),
        ("LE", 0, 1, 2**31 - 1, None),
    ],
)
def test_long_loops(direction: str, start: int, step: int, bound: int, expected: int | None) -> None:
    assert Module(module_of_text(loop_text("s32", start, step, direction, bound))).trip_counts() == [expected]


def test_longer_than_a_bigint() -> None:
    assert Module(module_of_text(loop_text("u64", 0, 1, "LT", 2**64 - 1))).trip_counts() == [None]


# --- the same loop in the ways that compilers write it ------------------------------------------------------

SEVEN_TURNS = {
    "fusions and copies": """HloModule m
add_one { a = s32[] parameter(1)
  b = s32[] parameter(0)
  ROOT s = s32[] add(b, a) }
less { a = s32[] parameter(0)
  n = s32[] parameter(1)
  ROOT c = pred[] compare(a, n), direction=LT }
body { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] fusion(i, one), kind=kLoop, calls=add_one
  kept = s32[] copy(next)
  flat = s32[1] bitcast(kept)
  again = s32[] bitcast(flat)
  ROOT r = (s32[], f32[]) tuple(again, x) }
condition { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  seven = s32[] constant(7)
  ROOT c = pred[] fusion(i, seven), kind=kLoop, calls=less }
ENTRY e { x = f32[] parameter(0)
  zero = s32[] constant(0)
  start = s32[] copy(zero)
  state = (s32[], f32[]) tuple(start, x)
  barrier = (s32[], f32[]) opt-barrier(state)
  ROOT w = (s32[], f32[]) while(barrier), condition=condition, body=body }
""",
    "fusion of several results, call, asynchronous copy": """HloModule m
both { p = s32[] parameter(0)
  x = f32[] parameter(1)
  one = s32[] constant(1)
  next = s32[] add(one, p)
  y = f32[] negate(x)
  ROOT r = (f32[], s32[]) tuple(y, next) }
body { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1
  f = (f32[], s32[]) fusion(i, x), kind=kLoop, calls=both
  y = f32[] get-tuple-element(f), index=0
  next = s32[] get-tuple-element(f), index=1
  moving = (s32[], s32[], u32[]) copy-start(next)
  moved = s32[] copy-done(moving)
  ROOT r = (s32[], f32[]) tuple(moved, y) }
test { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  seven = s32[] constant(7)
  ROOT c = pred[] compare(seven, i), direction=GT }
condition { p = (s32[], f32[]) parameter(0)
  ROOT c = pred[] call(p), to_apply=test }
ENTRY e { x = f32[] parameter(0)
  zero = s32[] constant(0)
  state = (s32[], f32[]) tuple(zero, x)
  ROOT w = (s32[], f32[]) while(state), condition=condition, body=body }
""",
    "started and ended fusion, compared as a wider number, one off": """HloModule m
add_two { a = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT s = s32[] add(a, two) }
body { p = (f32[], (s32[], f32[])) parameter(0)
  inner = (s32[], f32[]) get-tuple-element(p), index=1
  i = s32[] get-tuple-element(inner), index=0
  x = f32[] get-tuple-element(p), index=0
  started = ((s32[]), s32[], u32[]) fusion-start(i), kind=kLoop, calls=add_two
  next = s32[] fusion-done(started)
  pair = (s32[], f32[]) tuple(next, x)
  ROOT r = (f32[], (s32[], f32[])) tuple(x, pair) }
condition { p = (f32[], (s32[], f32[])) parameter(0)
  inner = (s32[], f32[]) get-tuple-element(p), index=1
  i = s32[] get-tuple-element(inner), index=0
  wide = s64[] convert(i)
  one = s64[] constant(1)
  more = s64[] add(wide, one)
  bound = s64[] constant(14)
  ROOT c = pred[] compare(more, bound), direction=LT }
ENTRY e { x = f32[] parameter(0)
  zero = s32[] constant(0)
  pair = (s32[], f32[]) tuple(zero, x)
  state = (f32[], (s32[], f32[])) tuple(x, pair)
  ROOT w = (f32[], (s32[], f32[])) while(state), condition=condition, body=body }
""",
    "nothing but the counter": """HloModule m
body { i = s64[] parameter(0)
  minus = s64[] constant(-3)
  ROOT next = s64[] add(i, minus) }
condition { i = s64[] parameter(0)
  zero = s64[] constant(0)
  ROOT c = pred[] compare(i, zero), direction=NE }
ENTRY e { start = s64[] constant(21)
  ROOT w = s64[] while(start), condition=condition, body=body }
""",
    "a bound that the loop carries, and two counters": """HloModule m
body { p = (u32[], u32[], u32[]) parameter(0)
  i = u32[] get-tuple-element(p), index=0
  n = u32[] get-tuple-element(p), index=1
  j = u32[] get-tuple-element(p), index=2
  one = u32[] constant(1)
  next = u32[] add(i, one)
  previous = u32[] subtract(j, one)
  ROOT r = (u32[], u32[], u32[]) tuple(next, n, previous) }
condition { p = (u32[], u32[], u32[]) parameter(0)
  i = u32[] get-tuple-element(p), index=0
  j = u32[] get-tuple-element(p), index=2
  ROOT c = pred[] compare(i, j), direction=LT }
ENTRY e { zero = u32[] constant(0)
  fourteen = u32[] constant(14)
  state = (u32[], u32[], u32[]) tuple(zero, fourteen, fourteen)
  ROOT w = (u32[], u32[], u32[]) while(state), condition=condition, body=body }
""",
}


@pytest.mark.parametrize("form", SEVEN_TURNS)
def test_forms_of_a_loop(form: str) -> None:
    text = SEVEN_TURNS[form]
    if "fusion-start" in text:
        text = text.replace("fusion-start(i), kind=kLoop, calls=add_two", "async-start(i), calls=add_two")
        text = text.replace("fusion-done(started)", "async-done(started)")
    assert Module(module_of_text(text)).trip_counts() == [7]


BASE = SEVEN_TURNS["fusions and copies"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zero = s32[] constant(0)", "zero = s32[] parameter(1)"),
        ("seven = s32[] constant(7)", "seven = s32[] get-tuple-element(p), index=0"),
        ("one = s32[] constant(1)", "one = s32[] get-tuple-element(p), index=0"),
        ("ROOT s = s32[] add(b, a)", "ROOT s = s32[] multiply(b, a)"),
        ("next = s32[] fusion(i, one)", "next = s32[] fusion(one, one)"),
        ("direction=LT", "direction=GE, type=SIGNED"),
        ("ROOT c = pred[] compare(a, n), direction=LT", "l = pred[] parameter(2)\n  ROOT c = pred[] not(l)"),
    ],
)  # fmt: skip
def test_loops_that_are_not_understood(old: str, new: str) -> None:
    assert old in BASE
    expected: list[int | None] = [0 if "GE" in new else None]
    assert Module(module_of_text(BASE.replace(old, new))).trip_counts() == expected


def test_counter_of_a_narrow_type_is_not_read() -> None:
    assert Module(module_of_text(loop_text("s16", 0, 1, "LT", 7))).trip_counts() == [None]


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
    assert Module(module_of_text(BASE)).with_stated(backend_config) == [expected]


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
    unknown = NESTED.replace("n = s32[] constant(5)", "n = s32[] get-tuple-element(p), index=0")
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
    lone = computation(2, instruction(20, "call", called=(3,)))
    called = computation(3)
    runs = Module(module(computation(1), lone, called, entry=1)).runs()
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
    """Loops of two turns in one another: as often as a BIGINT can tell."""
    depth = 100_000
    config = (43, b'{"known_trip_count":{"n":"2"}}')
    parts = [
        computation(index, instruction(depth + index, opcode, config, called=(index + 1,)))
        for index in range(depth)
    ]
    runs = Module(module(*parts, computation(depth), entry=0)).runs()
    executions = [runs[f"computation.{index}"].executions for index in (0, 1, 62, 63, depth)]
    assert executions == ([1, 2, 2**62, None, None] if opcode == "while" else [1] * 5)
    assert runs[f"computation.{depth}"].loop_depth == (depth if opcode == "while" else 0)


# --- damaged and hostile loops ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        # Nothing is called, something that is not there, no operands, no roots.
        [computation(1, instruction(10, "while"))],
        [computation(1, instruction(10, "while", operands=(10,), called=(8, 9)))],
        [computation(1, instruction(10, "while", called=(2, 2))), computation(2)],
        # A condition that is its own operand, or its own fusion.
        [
            computation(1, instruction(10, "while", operands=(10,), called=(2, 2))),
            computation(2, instruction(20, "copy", operands=(20,)), root=20),
        ],
        [
            computation(1, instruction(10, "while", operands=(10,), called=(2, 2))),
            computation(2, instruction(20, "fusion", operands=(20,), called=(2,)), root=20),
        ],
        # Indexes that are not there, or from the end.
        [
            computation(1, instruction(10, "while", operands=(11,), called=(2, 2)), instruction(11, "tuple")),
            computation(
                2,
                instruction(20, "compare", (63, "LT"), operands=(21, 21)),
                instruction(21, "get-tuple-element", (13, -1), operands=(22,)),
                instruction(22, "parameter"),
                root=20,
            ),
        ],
        [
            computation(1, instruction(10, "while", operands=(10,), called=(2, 2))),
            computation(2, instruction(20, "fusion", operands=(20,), called=(3,)), root=20),
            computation(3, instruction(30, "parameter", (9, -1)), root=30),
        ],
    ],
)  # fmt: skip
def test_loops_that_make_no_sense(parts: list[bytes]) -> None:
    tested = Module(module(*parts, entry=1))
    assert tested.trip_counts() == [None]
    assert tested.runs()["computation.1"].role == "entry"


def test_sums_of_sums() -> None:
    """Each sum adds the one before to itself: 2^60 ways to the constant."""
    sums = "".join(f"  s{index + 1} = s32[] add(s{index}, s{index})\n" for index in range(60))
    text = loop_text("s32", 0, 1, "LT", 7).replace(
        "bound = s32[] constant(7)\n", f"s0 = s32[] constant(0)\n{sums}  bound = s32[] add(s60, s60)\n"
    )
    assert Module(module_of_text(text)).trip_counts() == [None]


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
