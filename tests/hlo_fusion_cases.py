"""Fusions as HLO text: what they read, what they write, and what runs within them."""

from __future__ import annotations

import re
from random import Random

from .hlo_cost_cases import ADD, GATHER, HEAVY, INDEX, PAIR, SCATTER, computation, fusion

NEGATE = computation("branch", "a = f32[8] parameter(0)", "ROOT b = f32[8] negate(a)")
COSINE = computation("other", "a = f32[8] parameter(0)", "ROOT b = f32[8] cosine(a)")
COUNT = computation(
    "body",
    "a = (s32[]) parameter(0)",
    "b = s32[] get-tuple-element(a), index=0",
    "c = s32[] constant(1)",
    "d = s32[] add(b, c)",
    "ROOT e = (s32[]) tuple(d)",
)
BELOW = computation(
    "condition",
    "a = (s32[]) parameter(0)",
    "b = s32[] get-tuple-element(a), index=0",
    "c = s32[] constant(5)",
    "ROOT d = pred[] compare(b, c), direction=LT",
)
INNER_SLICE = computation("inner", "x = f32[100] parameter(0)", "ROOT y = f32[10] slice(x), slice={[0:10]}")
INNER_NEGATE = computation("inner", "x = f32[100] parameter(0)", "ROOT y = f32[100] negate(x)")
INNER_TWO = computation(
    "inner", "x = f32[100] parameter(0)", "y = f32[100] negate(x)", "ROOT z = f32[100] negate(y)"
)
INNER_TUPLE = computation(
    "inner",
    "x = (f32[100], f32[3]) parameter(0)",
    "y = f32[100] get-tuple-element(x), index=0",
    "ROOT z = f32[100] negate(y)",
)

_UPDATE = "dynamic-update-slice"
READS = {
    "all": fusion("f32[9]", "ROOT a = f32[9] add(p0, p1)", "f32[9]", "f32[9]"),
    "once, though used twice": fusion(
        "f32[9]", "a = f32[9] negate(p0)\nb = f32[9] cosine(p0)\nROOT c = f32[9] add(a, b)", "f32[9]"
    ),
    "once, though an operand twice": fusion("f32[9]", "ROOT a = f32[9] multiply(p0, p0)", "f32[9]"),
    "nothing": fusion("f32[9]", "ROOT a = f32[9] negate(p1)", "f32[100]", "f32[9]"),
    "a slice": fusion("f32[10]", "ROOT a = f32[10] slice(p0), slice={[0:10]}", "f32[100]"),
    "two slices": fusion(
        "f32[10]",
        "a = f32[10] slice(p0), slice={[0:10]}\nb = f32[10] slice(p0), slice={[0:10]}\n"
        "ROOT c = f32[10] add(a, b)",
        "f32[100]",
    ),
    "a slice and all": fusion(
        "(f32[10], f32[100])",
        "a = f32[10] slice(p0), slice={[0:10]}\nb = f32[100] negate(p0)\n"
        "ROOT c = (f32[10], f32[100]) tuple(a, b)",
        "f32[100]",
    ),
    "a dynamic slice": fusion(
        "f32[10]", "ROOT a = f32[10] dynamic-slice(p0, p1), dynamic_slice_sizes={10}", "f32[100]", INDEX
    ),
    "an index": fusion(
        "s32[10]", "ROOT a = s32[10] dynamic-slice(p1, p0), dynamic_slice_sizes={10}", INDEX, "s32[100]"
    ),
    "a number as array and index": fusion(
        "s32[1]",
        "a = s32[1] bitcast(p0)\nROOT b = s32[1] dynamic-slice(a, p0), dynamic_slice_sizes={1}",
        INDEX,
    ),
    "a slice behind a bitcast": fusion(
        "f32[10]",
        "a = f32[100] bitcast(p0)\nROOT b = f32[10] slice(a), slice={[0:10]}",
        "f32[10,10]",
    ),
    "a slice behind a reshape": fusion(
        "f32[10]",
        "a = f32[100] reshape(p0)\nROOT b = f32[10] slice(a), slice={[0:10]}",
        "f32[10,10]",
    ),
    "a gather": fusion("f32[7,1]", f"ROOT a = f32[7,1] {GATHER}", "f32[100]", "s32[7,1]"),
    "every broadcast": fusion(
        "f32[10,10]",
        "a = f32[10,10] broadcast(p0), dimensions={0}\nb = f32[10,10] broadcast(p0), dimensions={1}\n"
        "c = f32[10] negate(p0)\nd = f32[10] cosine(p0)\nROOT e = f32[10,10] add(a, b)",
        "f32[10]",
    ),
    "large constants": fusion(
        "f32[2]",
        "a = f32[2] constant({1, 2})\nb = f32[1] constant({3})\nc = f32[] constant(4)\n"
        "ROOT d = f32[2] add(p0, a)",
        "f32[2]",
    ),
    "members of a tuple": fusion(
        "f32[10]",
        "a = f32[100] get-tuple-element(p0), index=0\nb = f32[10] get-tuple-element(p0), index=1\n"
        "c = f32[10] slice(a), slice={[0:10]}\nROOT d = f32[10] add(b, c)",
        "(f32[100], f32[10])",
    ),
    "not all members of a tuple": fusion(
        "f32[10]",
        "a = f32[100] get-tuple-element(p0), index=0\nROOT b = f32[10] slice(a), slice={[0:10]}",
        "(f32[100], f32[10], f32[3])",
    ),
    "a member of a tuple, twice": fusion(
        "f32[10]",
        "a = f32[100] get-tuple-element(p0), index=0\nb = f32[100] get-tuple-element(p0), index=0\n"
        "c = f32[100] negate(b)\nROOT d = f32[10] slice(a), slice={[0:10]}",
        "(f32[100], f32[10])",
    ),
    "members of a tuple in a tuple": fusion(
        "f32[3]",
        "a = (f32[100], f32[3]) get-tuple-element(p0), index=1\nb = f32[3] get-tuple-element(a), index=1\n"
        "ROOT c = f32[3] negate(b)",
        "(f32[7], (f32[100], f32[3]), f32[5])",
    ),
}
WRITES = {
    "an update in place": fusion(
        "f32[100]", f"ROOT a = f32[100] {_UPDATE}(p0, p1, p2)", "f32[100]", "f32[10]", INDEX
    ),
    "an update of what is converted": fusion(
        "f32[100]",
        f"a = f32[100] convert(p0)\nROOT b = f32[100] {_UPDATE}(a, p1, p2)",
        *("bf16[100]", "f32[10]", INDEX),
    ),
    "an update behind a bitcast": fusion(
        "f32[10,10]",
        f"a = f32[100] {_UPDATE}(p0, p1, p2)\nROOT b = f32[10,10] bitcast(a)",
        *("f32[100]", "f32[10]", INDEX),
    ),
    "an update with itself": fusion(
        "f32[100]", f"ROOT a = f32[100] {_UPDATE}(p0, p0, p1)", "f32[100]", INDEX
    ),
    "several results": fusion(
        "(f32[9], s8[9])",
        "a = f32[9] negate(p0)\nb = s8[9] convert(a)\nROOT c = (f32[9], s8[9]) tuple(a, b)",
        "f32[9]",
    ),
    "several results with updates": fusion(
        "(f32[100], f32[10], f32[100])",
        f"a = f32[100] {_UPDATE}(p0, p1, p2)\nb = f32[10] negate(p1)\nc = f32[100] {_UPDATE}(a, b, p2)\n"
        "ROOT d = (f32[100], f32[10], f32[100]) tuple(a, b, c)",
        *("f32[100]", "f32[10]", INDEX),
    ),
    "a tuple in a tuple": fusion(
        "((f32[100]), f32[10])",
        f"a = f32[100] {_UPDATE}(p0, p1, p2)\nb = (f32[100]) tuple(a)\n"
        "ROOT c = ((f32[100]), f32[10]) tuple(b, p1)",
        *("f32[100]", "f32[10]", INDEX),
    ),
    "results of a reduction": fusion(
        "(f32[4], s32[4])",
        "ROOT a = (f32[4], s32[4]) reduce(p0, p1, p2, p3), dimensions={1}, to_apply=pair",
        *("f32[4,9]", "s32[4,9]", "f32[]", "s32[]"),
        kind="kInput",
        before=PAIR,
    ),
    "its own operand": fusion("f32[9]", "ROOT a = f32[9] copy(p0)", "f32[9]"),
}
WITHIN = {
    "a dot": fusion(
        "f32[4,6]",
        "ROOT a = f32[4,6] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        *("f32[4,5]", "f32[5,6]"),
        kind="kOutput",
    ),
    "a reduction": fusion(
        "f32[4]",
        "a = f32[] constant(0)\nb = f32[4,9] exponential(p0)\n"
        "ROOT c = f32[4] reduce(b, a), dimensions={1}, to_apply=heavy",
        "f32[4,9]",
        before=HEAVY,
    ),
    "what nobody uses": fusion("f32[9]", "a = f32[9] tanh(p0)\nROOT b = f32[9] negate(p0)", "f32[9]"),
    "a scatter": fusion(
        "f32[100]", f"ROOT a = f32[100] {SCATTER}", "f32[100]", "s32[7,1]", "f32[7]", before=ADD
    ),
    "a call": fusion("f32[]", "ROOT a = f32[] call(p0, p1), to_apply=heavy", "f32[]", "f32[]", before=HEAVY),
    "a custom call": fusion(
        "f32[9]",
        'a = f32[9] custom-call(p0), custom_call_target="x"\nROOT b = f32[9] negate(a)',
        "f32[9]",
        kind="kCustom",
    ),
    "a conditional": fusion(
        "f32[8]",
        "ROOT a = f32[8] conditional(p0, p1, p1), true_computation=branch, false_computation=other",
        *("pred[]", "f32[8]"),
        before=f"{NEGATE}\n{COSINE}",
    ),
    "a while": fusion(
        "(s32[])",
        "ROOT a = (s32[]) while(p0), condition=condition, body=body",
        "(s32[])",
        before=f"{COUNT}\n{BELOW}",
    ),
    "custom, a gather and more": fusion(
        "f32[7,1]",
        f"a = f32[7,1] {GATHER}\nROOT b = f32[7,1] tanh(a)",
        *("f32[100]", "s32[7,1]"),
        kind="kCustom",
    ),
    "custom, a scatter and more": fusion(
        "f32[100]",
        f"a = f32[100] {SCATTER}\nROOT b = f32[100] tanh(a)",
        *("f32[100]", "s32[7,1]", "f32[7]"),
        kind="kCustom",
        before=ADD,
    ),
    "custom, a dot": fusion(
        "f32[4,6]",
        "ROOT a = f32[4,6] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        *("f32[4,5]", "f32[5,6]"),
        kind="kCustom",
    ),
}
_CALL = "kind=kLoop, calls=inner"
NESTED = {
    "at the root": fusion("f32[10]", f"ROOT a = f32[10] fusion(p0), {_CALL}", "f32[100]", before=INNER_SLICE),
    "with a slice in it": fusion(
        "f32[10]",
        f"a = f32[10] fusion(p0), {_CALL}\nROOT b = f32[10] negate(a)",
        "f32[100]",
        before=INNER_SLICE,
    ),
    "that is sliced": fusion(
        "f32[10]",
        f"a = f32[100] fusion(p0), {_CALL}\nROOT b = f32[10] slice(a), slice={{[0:10]}}",
        "f32[100]",
        before=INNER_NEGATE,
    ),
    "that is sliced twice and used": fusion(
        "f32[100]",
        f"a = f32[100] fusion(p0), {_CALL}\nb = f32[10] slice(a), slice={{[0:10]}}\n"
        "c = f32[5] slice(a), slice={[0:5]}\nROOT d = f32[100] tanh(a)",
        "f32[100]",
        before=INNER_NEGATE,
    ),
    "that is sliced dynamically": fusion(
        "f32[10]",
        f"a = f32[100] fusion(p0), {_CALL}\n"
        "ROOT b = f32[10] dynamic-slice(a, p1), dynamic_slice_sizes={10}",
        *("f32[100]", INDEX),
        before=INNER_NEGATE,
    ),
    "that is updated": fusion(
        "f32[100]",
        f"a = f32[100] fusion(p0), {_CALL}\nROOT b = f32[100] {_UPDATE}(a, p1, p2)",
        *("f32[100]", "f32[10]", INDEX),
        before=INNER_NEGATE,
    ),
    "that is the update": fusion(
        "f32[200]",
        f"a = f32[100] fusion(p0), {_CALL}\nROOT b = f32[200] {_UPDATE}(p1, a, p2)",
        *("f32[100]", "f32[200]", INDEX),
        before=INNER_NEGATE,
    ),
    "of two steps that is sliced": fusion(
        "f32[10]",
        f"a = f32[100] fusion(p0), {_CALL}\nb = f32[5] slice(a), slice={{[0:5]}}\n"
        "ROOT c = f32[10] slice(a), slice={[0:10]}",
        "f32[100]",
        before=INNER_TWO,
    ),
    "of a tuple": fusion(
        "f32[100]",
        f"a = f32[100] fusion(p0), {_CALL}\nROOT b = f32[100] tanh(a)",
        "(f32[100], f32[3])",
        before=INNER_TUPLE,
    ),
    "with an operand twice": fusion(
        "f32[]",
        "a = f32[] fusion(p0, p0), kind=kLoop, calls=heavy\nROOT b = f32[] negate(a)",
        "f32[]",
        before=HEAVY,
    ),
}
_INNER_UPDATE = computation(
    "inner_update",
    *("x = f32[100] parameter(0)", "y = f32[10] parameter(1)", "i = s32[] constant(3)"),
    f"ROOT z = f32[100] {_UPDATE}(x, y, i)",
)
_INNERS = "\n".join(
    [
        INNER_SLICE.replace("inner", "inner_slice"),
        INNER_NEGATE.replace("inner", "inner_negate"),
        INNER_TWO.replace("inner", "inner_two"),
        _INNER_UPDATE,
    ]
)
# What makes a value of the first number of elements; L and S stand for values of 100 and of 10.
_STEPS = [
    *((100, "negate(L)"), (10, "negate(S)"), (100, "add(L, L)"), (10, "add(S, S)"), (100, "tanh(L)")),
    *((10, "slice(L), slice={[7:17]}"), (10, "dynamic-slice(L, index), dynamic_slice_sizes={10}")),
    *((100, f"{_UPDATE}(L, S, index)"), (100, f"{_UPDATE}(L, L, index)")),
    *((100, "reshape(L)"), (10, "broadcast(S), dimensions={0}"), (100, "bitcast(L)")),
    *((10, "fusion(L), kind=kLoop, calls=inner_slice"), (100, "fusion(L), kind=kLoop, calls=inner_negate")),
    *((100, "fusion(L), kind=kLoop, calls=inner_two"), (100, "fusion(L, S), kind=kLoop, calls=inner_update")),
]


def random_fusion(generator: Random) -> str:
    """A module with a fusion of a few instructions that use each other and the parameters at random."""
    values = {100: ["p0", "p1"], 10: ["p2"]}
    lines = ["index = s32[] constant(5)"]
    for number in range(generator.randrange(1, 9)):
        size, step = generator.choice(_STEPS)
        for letter, choices in (("L", values[100]), ("S", values[10])):
            step = re.sub(rf"\b{letter}\b", lambda _, choices=choices: generator.choice(choices), step)
        lines.append(f"v{number} = f32[{size}] {step}")
        values[size].append(f"v{number}")
    results = [(size, generator.choice(values[size])) for size in generator.choices((100, 10), k=3)]
    shape = "(" + ", ".join(f"f32[{size}]" for size, _ in results) + ")"
    if generator.random() < 0.5:
        lines.append(f"ROOT root = {shape} tuple({', '.join(value for _, value in results)})")
    else:
        shape = lines[-1].split()[2]
        lines[-1] = f"ROOT {lines[-1]}"
    return fusion(shape, "\n".join(lines), "f32[100]", "f32[100]", "f32[10]", before=_INNERS)
