"""The cost of HLO instructions: against XLA's own analysis, and against arithmetic on paper."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_cost_opcodes import RULE_BY_OPCODE
from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_cost_window import valid_positions
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto

from . import hlo_cost_cases, hlo_fusion_cases, hlo_oracle
from .hlo_cost_cases import ADD, computation, entry

COMPARED = {
    f"{group}: {name}": text
    for group, cases in (
        ("elementwise", hlo_cost_cases.ELEMENTWISE),
        ("type", hlo_cost_cases.TYPES),
        ("convolution", hlo_cost_cases.CONVOLUTIONS),
        ("reduction", hlo_cost_cases.REDUCTIONS),
        ("algebra", hlo_cost_cases.LINEAR_ALGEBRA),
        ("data", hlo_cost_cases.DATA_MOVEMENT),
        ("collective", hlo_cost_cases.COLLECTIVES),
        ("fusion reads", hlo_fusion_cases.READS),
        ("fusion writes", hlo_fusion_cases.WRITES),
        ("fusion of", hlo_fusion_cases.WITHIN),
        ("fusion in a fusion", hlo_fusion_cases.NESTED),
    )
    for name, text in cases.items()
}
CASES = {**COMPARED, **{f"collective: {name}": text for name, text in hlo_cost_cases.UNCHECKED.items()}}


def costs_of(text: str, library_cost: Cost | None = None) -> dict[str, Cost]:
    """The costs of a module's instructions by name."""
    graph = ModuleGraph(HloModuleProto.FromString(hlo_oracle.module_of_text(text)))

    def library_call(of: ModuleGraph, instruction: Any) -> Cost:
        assert of is graph
        assert instruction.opcode == b"custom-call"
        assert library_cost is not None
        return library_cost

    costs = ModuleCosts(graph, library_call)
    return {instruction.name.decode(): costs.cost(instruction) for instruction in graph.instructions.values()}


@pytest.mark.parametrize("text", COMPARED.values(), ids=COMPARED.keys())
def test_costs_are_those_of_xla(text: str) -> None:
    assert hlo_oracle.disagreements(hlo_oracle.module_of_text(text), set()) == []


def test_random_fusions_cost_what_xla_says() -> None:
    generator = random.Random(6)
    checked: set[bytes] = set()
    for _ in range(1000):
        text = hlo_fusion_cases.random_fusion(generator)
        assert hlo_oracle.disagreements(hlo_oracle.module_of_text(text), checked) == [], text


def test_the_cases_have_every_opcode() -> None:
    words = {word.split("(")[0] for text in CASES.values() for word in text.split()}
    control_flow = {opcode for opcode, rule in RULE_BY_OPCODE.items() if rule == "control_flow"}
    assert {opcode.decode() for opcode in RULE_BY_OPCODE.keys() - control_flow} <= words


# Flops, transcendentals and bytes, on paper.
ON_PAPER = {
    # 2 * (4 * 6) * 5; (20 + 30 + 24) * 4 bytes
    "algebra: dot": (240, 0, 296, "dot"),
    # 2 * (2 * 4 * 6) * (3 * 5); (120 + 180 + 48) * 2 bytes
    "algebra: dot, batch and two contracted": (1440, 0, 696, "dot"),
    # 6 results of 3 kernel places per axis, all inside: 2 * batch 2 * features 3 * 4 * 18 * 18
    "convolution: plain": (15552, 0, 4 * (384 + 108 + 288), "convolution"),
    # 8 results of 3 places per axis, of which the first and the last lose one: 22
    "convolution: padding": (2 * 2 * 3 * 4 * 22 * 22, 0, 4 * (384 + 108 + 512), "convolution"),
    # 7 + 8 + 7 places meet an element at every 2nd place, 8 + 8 + 8 one at every 3rd place
    "convolution: dilated image": (2 * 2 * 3 * 4 * 22 * 24, 0, 4 * (384 + 108 + 2880), "convolution"),
    "convolution: groups": (2 * 2 * (9 // 3) * 6 * 18 * 18, 0, 4 * (1152 + 162 + 432), "convolution"),
    "convolution: batch groups": (2 * (4 // 2) * 3 * 8 * 18 * 18, 0, 4 * (768 + 216 + 576), "convolution"),
    # A 1x1 convolution is a matrix product.
    "convolution: no spatial dimension": (2 * 5 * 7 * 3, 0, 4 * (15 + 21 + 35), "convolution"),
    # 35 applications of two flops and a transcendental
    "reduction: reduce, transcendental": (70, 35, 4 * (36 + 1 + 1), "reduce"),
    # 8 additions per result
    "reduction: reduce-window, cumulative": (288, 0, 4 * (36 + 1 + 36), "reduce_window"),
    # As if each row were reduced and its result spread: 4 + 8 applications
    "reduction: reduce-window that spans everything": (24, 12, 4 * (36 + 1 + 36), "reduce_window"),
    # 8 windows of 4: 3 comparisons and one application each
    "reduction: select-and-scatter": (8 * 3 + 8 * 2, 8, 4 * (32 + 8 + 1 + 32), "select_and_scatter"),
    # Once per scanned element: 5 additions, 3 exponentials
    "reduction: scan": (5 * 50, 3 * 50, 4 * (3 + 50 + 3 + 50), "scan"),
    # 63 elements, 2^6 = 64
    "reduction: sort, two operands": (63 * 6, 0, 4 * 4 * 63, "sort"),
    "reduction: sort of none": (0, 0, 0, "sort"),
    # 7 updates: read, and their places read and written
    "reduction: scatter": (7, 0, 3 * 28 + 28, "scatter"),
    # The 11 rows are gone from the result, although each has a product: really 330 flops
    # 11 rows of 3 by one of two 3x5 matrices each
    "algebra: ragged-dot, rows in groups": (2 * 11 * 3 * 5, 0, 4 * (33 + 30 + 2 + 55), "ragged_dot"),
    # 5 rows of 7 by 11 columns, the 7 in two groups
    "algebra: ragged-dot, contracted in groups": (
        *(2 * 5 * 7 * 11, 0, 4 * (35 + 77 + 2 + 110)),
        "ragged_dot",
    ),
    # 3 halvings of 12, 3 of 10; 8 flops per complex product
    "algebra: fft": (480 * 3 * 3 * 8, 0, 2 * 8 * 480, "fft"),
    "algebra: cholesky": (3 * 5**3 // 3, 0, 4 * 75, "cholesky"),
    "algebra: triangular-solve": (2 * 4 * 24, 0, 4 * (48 // 2 + 24 + 24), "triangular_solve"),
    "elementwise: map": (18, 9, 4 * 27, "map"),
    "elementwise: complex product": (9, 0, 3 * 72, "elementwise"),
    "elementwise: tanh": (0, 15, 120, "elementwise"),
    "elementwise: bitcast": (0, 0, 0, "no_work"),
    "elementwise: bitcast-convert": (15, 0, 120, "elementwise"),
    "type: s4, packed": (13, 0, 3 * 7, "elementwise"),
    "type: dynamic": (24, 0, 3 * (96 + 2 * 4), "elementwise"),
    # Padded to 8 by 256, and to 130 by 128 by 8
    "type: tiles": (650, 0, 2 * 4 * 8 * 256, "elementwise"),
    "type: tiles, other order": (650, 0, 2 * 4 * 128 * 136, "elementwise"),
    "data: slice": (0, 0, 2 * 24, "data_movement"),
    "data: dynamic-slice": (0, 0, 2 * 24 + 4, "data_movement"),
    "data: dynamic-update-slice": (0, 0, 2 * 24 + 4, "data_movement"),
    "data: gather": (0, 0, 2 * 28 + 28, "gather"),
    "data: transpose": (0, 0, 48, "data_movement"),
    "data: transpose of nothing but names": (0, 0, 0, "data_movement"),
    "data: tuple": (0, 0, 2 * 4, "data_movement"),
    "data: rng": (0, 8, 4 * 10, "random"),
    "data: topk": (0, 0, 4 * (36 + 12 + 12), "traffic_only"),
    "collective: all-reduce": (4, 0, 32, "collective"),
    "collective: all-reduce of several": (9, 0, 72, "collective"),
    "collective: all-gather": (0, 0, 48, "collective"),
    "collective: send-done": (0, 0, 3 * 4, "collective"),
    "collective: recv-done": (0, 0, 3 * 4 + 16, "collective"),
    "fusion reads: a slice": (0, 0, 40 + 40, "fusion"),
    "fusion reads: a gather": (0, 0, 28 + 400 + 28, "fusion"),
    # Two broadcasts read it, and once the two others together
    "fusion reads: every broadcast": (110, 10, 400 + 3 * 40, "fusion"),
    # Only constants of more than one element are read
    "fusion reads: large constants": (2, 0, 3 * 8, "fusion"),
    "fusion writes: an update in place": (0, 0, 40 + 40 + 4, "fusion"),
    "fusion writes: several results with updates": (10, 0, 3 * 40 + 40 + 4, "fusion"),
    "fusion of: a reduction": (2 * 32, 36 + 32, 16 + 144, "fusion"),
    "fusion of: custom, a scatter and more": (7, 0, 3 * 28 + 28, "fusion"),
    "fusion in a fusion: that is sliced": (100, 0, 40 + 40, "fusion"),
}


@pytest.mark.parametrize("case", ON_PAPER)
def test_costs_on_paper(case: str) -> None:
    assert costs_of(CASES[case])["r"] == Cost(*ON_PAPER[case])


def brute_force_positions(
    image: int, kernel: int, result: int, stride: int, padding: int, dilation: int, base_dilation: int
) -> int:
    held = {place * base_dilation for place in range(image)}
    return sum(
        result_place * stride - padding + kernel_place * dilation in held
        for kernel_place in range(kernel)
        for result_place in range(result)
    )


def test_positions_of_a_window_by_brute_force() -> None:
    generator = random.Random(20)
    for _ in range(3000):
        sizes = [generator.randrange(9) for _ in range(3)]
        window = (generator.randrange(1, 5), generator.randrange(-4, 9), *generator.choices(range(1, 7), k=2))
        assert valid_positions(*sizes, *window) == brute_force_positions(*sizes, *window), (sizes, window)


def test_positions_of_a_window_as_long_as_its_array() -> None:
    """A convolution of a million values with as many: all of it, and the half that lies before each value."""
    length = 10**6
    assert valid_positions(2 * length - 1, length, length, 1, 0, 1, 1) == length**2
    assert valid_positions(length, length, length, 1, length - 1, 1, 1) == length * (length + 1) // 2


def test_control_flow_costs_nothing_itself() -> None:
    body = computation("twice", "x = f32[8] parameter(0)", "y = f32[8] add(x, x)", "ROOT z = f32[8] tanh(y)")
    other = computation("once", "u = f32[8] parameter(0)", "ROOT v = f32[8] negate(u)")
    apart = computation("apart", "s = f32[8] parameter(0)", "ROOT t = f32[8] negate(s)")
    count = computation("count", "c = s32[] parameter(0)", "ROOT d = s32[] add(c, c)")
    below = computation("below", "e = s32[] parameter(0)", "ROOT f = pred[] compare(e, e), direction=LT")
    main = computation(
        "ENTRY main",
        *("p = f32[8] parameter(0)", "q = pred[] parameter(1)", "n = s32[] parameter(2)"),
        "called = f32[8] call(p), to_apply=twice",
        "chosen = f32[8] conditional(q, p, p), true_computation=twice, false_computation=once",
        "looped = s32[] while(n), condition=below, body=count",
        "started = ((f32[8]), f32[8], s32[]) async-start(p), calls=apart",
        "updated = ((f32[8]), f32[8], s32[]) async-update(started)",
        "ROOT done = f32[8] async-done(updated)",
    )
    costs = costs_of("\n".join(["HloModule m", body, other, apart, count, below, main]))
    for name in ["called", "chosen", "looped", "started", "updated", "done"]:
        assert costs[name] == Cost(0, 0, 0, "control_flow")
    assert costs["y"] == Cost(8, 0, 96, "elementwise")
    assert costs["z"] == Cost(0, 8, 64, "elementwise")
    assert costs["v"] == Cost(8, 0, 64, "elementwise")
    assert costs["f"] == Cost(1, 0, 9, "elementwise")


def test_a_custom_call_costs_what_its_library_does() -> None:
    text = hlo_fusion_cases.WITHIN["a custom call"]
    known = Cost(100, 5, 7, "library", "why")
    costs = costs_of(text, known)
    assert costs["a"] is known
    assert costs["r"] == Cost(100 + 9, 5, 36 + 36, "fusion")


@pytest.mark.parametrize("known", [Cost(None, 5, 7, "x", "no formula"), Cost(5, None, 7, "x", "no formula")])
def test_a_fusion_of_an_unknown_custom_call_is_unknown(known: Cost) -> None:
    costs = costs_of(hlo_fusion_cases.WITHIN["a custom call"], known)
    assert costs["r"] == Cost(None, None, 36 + 36, "fusion", "a in it: no formula")


def test_a_library_that_does_not_say_why_still_gives_a_reason() -> None:
    costs = costs_of(hlo_fusion_cases.WITHIN["a custom call"], Cost(None, None, None, "x"))
    assert costs["r"].reason == "a in it: what the library does is not known"


def test_unknown_sizes_have_a_reason() -> None:
    costs = costs_of(entry("f32[?,4] negate(p0)", "f32[?,4]"))
    assert costs["r"] == Cost(None, None, None, "elementwise", "f32[?,4]{1,0} has no fixed size")
    costs = costs_of(entry("(f32[4]) tuple(p0)", "f32[4]"))
    assert costs["r"].bytes_accessed == 4


def test_a_reducer_may_call_others() -> None:
    outer = computation(
        "outer", "x = f32[] parameter(0)", "y = f32[] parameter(1)", "ROOT z = f32[] call(x, y), to_apply=add"
    )
    text = entry(
        "f32[] reduce(p0, p1), dimensions={0}, to_apply=outer", "f32[9]", "f32[]", before=f"{ADD}\n{outer}"
    )
    assert costs_of(text)["r"] == Cost(8, 0, 44, "reduce")
