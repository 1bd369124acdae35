"""Trip counts of loops that do not state them, against running those loops turn by turn."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from .hlo_oracle import module_of_text
from .hlo_program import Module, loop_text
from .hlo_wire import computation, instruction, module

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
    """Turns of `while start < bound: start += step`; None where the counter overflows or never ends it."""
    low, high = RANGES[kind]
    for turns in range(LIMIT):
        sides = (bound, start) if swapped else (start, bound)
        if not COMPARE[direction](*sides):
            return turns
        start += step
        if not low <= start <= high:
            return None
    return None


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
    assert seen[False] > 5
    # Only standing still goes on for ever.
    assert seen[True] > 5 or direction == "EQ"


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
    "asynchronous sum, compared as a wider number, one off": """HloModule m
add_two { a = s32[] parameter(0)
  two = s32[] constant(2)
  ROOT s = s32[] add(a, two) }
body { p = (f32[], (s32[], f32[])) parameter(0)
  inner = (s32[], f32[]) get-tuple-element(p), index=1
  i = s32[] get-tuple-element(inner), index=0
  x = f32[] get-tuple-element(p), index=0
  started = ((s32[]), s32[], u32[]) async-start(i), calls=add_two
  next = s32[] async-done(started)
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
    assert Module(module_of_text(SEVEN_TURNS[form])).trip_counts() == [7]


BASE = SEVEN_TURNS["fusions and copies"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zero = s32[] constant(0)", "zero = s32[] parameter(1)"),
        ("seven = s32[] constant(7)", "real = f32[] constant(7)\n  seven = s32[] convert(real)"),
        ("one = s32[] constant(1)", "one = s32[] get-tuple-element(p), index=0"),
        ("ROOT s = s32[] add(b, a)", "ROOT s = s32[] multiply(b, a)"),
        ("next = s32[] fusion(i, one)", "next = s32[] fusion(one, one)"),
        ("ROOT c = pred[] compare(a, n), direction=LT", "l = pred[] parameter(2)\n  ROOT c = pred[] not(l)"),
    ],
)  # fmt: skip
def test_loops_that_are_not_understood(old: str, new: str) -> None:
    assert old in BASE
    assert Module(module_of_text(BASE.replace(old, new))).trip_counts() == [None]


# Type of the counter, which goes up from 0, and what makes the two sides that the condition compares. Whoever
# misses the point sees another number of turns than the machine makes.
MISLEADING = {
    "the counter overflows": ("s32", ["left = s64[] convert(i)", "right = s64[] constant(2147483653)"]),
    "what is compared overflows": (
        "s32",
        ["c = s32[] constant(2147483640)", "left = s32[] add(i, c)", "right = s32[] constant(2147483647)"],
    ),
    "a sum overflows before it is made wider": (
        "s32",
        [
            *("c = s32[] constant(2147483647)", "d = s32[] add(i, c)"),
            *("left = s64[] convert(d)", "right = s64[] constant(2147483700)"),
        ],
    ),
    "a number is made too narrow": (
        "s64",
        ["c = s32[] convert(i)", "left = s64[] convert(c)", "right = s64[] constant(2147483653)"],
    ),
    "a sum of constants overflows": (
        "s64",
        [
            *("c = s32[] constant(2147483647)", "d = s32[] constant(1)", "e = s32[] add(c, d)"),
            *("left = s64[] copy(i)", "right = s64[] convert(e)"),
        ],
    ),
    "the same bits are another number": (
        "s64",
        [
            *("c = u32[] constant(4294967295)", "d = s32[] bitcast(c)"),
            *("left = s64[] copy(i)", "right = s64[] convert(d)"),
        ],
    ),
    "the counter is taken away": (
        "s32",
        ["c = s32[] constant(-7)", "left = s32[] subtract(c, i)", "right = s32[] constant(0)"],
    ),
    "the counter is doubled": ("s32", ["left = s32[] add(i, i)", "right = s32[] constant(14)"]),
}


@pytest.mark.parametrize("what", MISLEADING)
def test_misleading_conditions(what: str) -> None:
    kind, sides = MISLEADING[what]
    text = loop_text(kind, 0, 1, "LE" if "compared" in what else "LT", 7)
    old = f"bound = {kind}[] constant(7)"
    assert old in text
    text = text.replace(old, "\n  ".join(sides)).replace("compare(i, bound)", "compare(left, right)")
    assert Module(module_of_text(text)).trip_counts() == [None]


@pytest.mark.parametrize(("depth", "expected"), [(15, 7), (30, None), (5000, None)])
def test_long_sums(depth: int, expected: int | None) -> None:
    sums = [f"sum{index + 1} = s32[] add(sum{index}, zero)" for index in range(depth)]
    lines = ["zero = s32[] constant(0)", "sum0 = s32[] constant(7)", *sums, f"bound = s32[] copy(sum{depth})"]
    text = loop_text("s32", 0, 1, "LT", 7).replace("bound = s32[] constant(7)", "\n  ".join(lines))
    assert Module(module_of_text(text)).trip_counts() == [expected]


def test_counter_of_a_narrow_type_is_not_read() -> None:
    assert Module(module_of_text(loop_text("s16", 0, 1, "LT", 7))).trip_counts() == [None]


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


IN_A_TUPLE = """HloModule m
body { p = (s64[]) parameter(0)
  i = s64[] get-tuple-element(p), index=0
  one = s64[] constant(1)
  next = s64[] add(i, one)
  ROOT r = (s64[]) tuple(next) }
condition { p = (s64[]) parameter(0)
  i = s64[] get-tuple-element(p), index=0
  seven = s64[] constant(7)
  ROOT c = pred[] compare(i, seven), direction=LT }
ENTRY e { zero = s64[] constant(0)
  state = (s64[]) tuple(zero)
  ROOT w = (s64[]) while(state), condition=condition, body=body }
"""


def edited(text: str, of: bytes, **fields: Any) -> list[int | None]:
    """Trip counts of a module, of one loop of 7 turns, whose instructions of an opcode have other fields."""
    tested = Module(module_of_text(text))
    assert tested.trip_counts() == [7]
    for part in tested.proto.computations:
        for item in part.instructions:
            if item.opcode == of:
                for name, value in fields.items():
                    setattr(item, name, value)
    return Module(tested.proto.SerializeToString()).trip_counts()


def test_index_from_the_end() -> None:
    assert edited(IN_A_TUPLE, b"get-tuple-element", tuple_index=-1) == [None]


def test_ends_of_something_else() -> None:
    _, copied, started, *_ = SEVEN_TURNS.values()
    assert edited(copied, b"copy-start", opcode=b"custom-call") == [None]
    assert edited(started, b"async-start", opcode=b"custom-call") == [None]


def test_constant_of_several_numbers() -> None:
    other = Module(module_of_text("HloModule m\nENTRY e {\n  ROOT c = s32[2] constant({7, 7})\n}\n"))
    (pair,) = other.proto.computations[0].instructions
    text = loop_text("s32", 0, 1, "LT", 7)
    assert edited(text, b"constant", shape=pair.shape) == [None]


def test_sums_of_sums() -> None:
    """Each sum adds the one before to itself: 2^60 ways to the constant."""
    sums = "".join(f"  sum{index + 1} = s32[] add(sum{index}, sum{index})\n" for index in range(60))
    text = loop_text("s32", 0, 1, "LT", 7).replace(
        "bound = s32[] constant(7)\n", f"sum0 = s32[] constant(0)\n{sums}  bound = s32[] add(sum60, sum60)\n"
    )
    assert Module(module_of_text(text)).trip_counts() == [None]


@pytest.mark.parametrize(("length", "expected"), [(100, 7), (300, None)])
def test_long_chains_of_copies(length: int, expected: int | None) -> None:
    copies = [f"copy{index + 1} = s32[] copy(copy{index})" for index in range(length)]
    lines = ["copy0 = s32[] constant(7)", *copies, f"bound = s32[] copy(copy{length})"]
    text = loop_text("s32", 0, 1, "LT", 7).replace("bound = s32[] constant(7)", "\n  ".join(lines))
    assert Module(module_of_text(text)).trip_counts() == [expected]


def test_only_the_counter_of_a_wide_loop_is_looked_up() -> None:
    """A loop can carry thousands of parts, and a module have thousands of such loops."""
    tested = Module(module_of_text(IN_A_TUPLE))
    for part in tested.proto.computations:
        for item in part.instructions:
            if item.opcode == b"tuple":
                item.operand_ids.extend(list(item.operand_ids) * 5000)
    tested.graph.instructions = looked_up = LookedUp(tested.graph.instructions)
    assert tested.trip_counts() == [7]
    assert looked_up.count < 100


class LookedUp(dict[int, Any]):
    """A dictionary that counts how often it is asked."""

    count = 0

    def __getitem__(self, key: int) -> Any:
        self.count += 1
        return super().__getitem__(key)

    def get(self, key: int, default: Any = None) -> Any:
        self.count += 1
        return super().get(key, default)
