"""Hashes of computations: the same for the same work under other names and numbers, and for no other work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto, HloProto
from tracewh.ingest.hlo_structure import structure_hashes

from .hlo_oracle import module_of_text
from .hlo_wire import Field, array, computation, instruction, message, module, packed
from .shared_runs import find_run

# One computation of each kind of attribute; what calls them is the entry.
TEXT = """HloModule m
add_op { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
work { x = f32[8,4]{1,0} parameter(0)
  y = f32[8,4]{1,0} parameter(1)
  c = f32[] constant(1.5)
  n = s32[] constant(3)
  spread = f32[8,4]{1,0} broadcast(c), dimensions={}
  difference = f32[8,4]{1,0} subtract(x, y)
  product = f32[8,4]{1,0} multiply(difference, spread)
  turned = f32[4,8]{1,0} transpose(product), dimensions={1,0}
  dot = f32[4,4]{1,0} dot(turned, product), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  part = f32[2,4]{1,0} slice(dot), slice={[0:2], [0:4]}
  padded = f32[4,4]{1,0} pad(part, c), padding=1_1x0_0
  sorted = f32[4,4]{1,0} sort(padded), dimensions={0}, is_stable=true, to_apply=less
  rounded = f32[4,4]{1,0} reduce-precision(sorted), exponent_bits=5, mantissa_bits=10
  sums = f32[4]{0} reduce(rounded, c), dimensions={0}, to_apply=add_op
  ROOT all = f32[4]{0} all-reduce(sums), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=add_op }
ENTRY main { x = f32[8,4]{1,0} parameter(0)
  ROOT f = f32[4]{0} fusion(x, x), kind=kLoop, calls=work }
"""

# What is written instead of what.
SAME = {
    "names": [("difference", "a.7"), ("product", "b"), ("turned", "product"), ("sums", "all.1")],
    "names of computations": [("work", "fused.3"), ("add_op", "region_0.12"), ("less", "compare.4")],
    "order": [("  c = f32[] constant(1.5)\n", ""), ("  spread =", "  c = f32[] constant(1.5)\n  spread =")],
    "channel": [("channel_id=1", "channel_id=7")],
    "metadata": [("subtract(x, y)", 'subtract(x, y), metadata={op_name="jit(f)/sub" source_line=3}')],
    "configuration": [("subtract(x, y)", 'subtract(x, y), backend_config="tile"')],
    "hint": [("subtract(x, y)", 'subtract(x, y), frontend_attributes={hint="1"}')],
}
DIFFERENT = {
    "opcode": ("subtract", "divide"),
    "order of operands": ("subtract(x, y)", "subtract(y, x)"),
    "operands": ("subtract(x, y)", "subtract(x, x)"),
    "float constant": ("1.5", "2.5"),
    "integer constant, of no use": ("constant(3)", "constant(4)"),
    "element type": ("s32[]", "s64[]"),
    "layout": ("turned = f32[4,8]{1,0}", "turned = f32[4,8]{0,1}"),
    "dimensions": ("dimensions={0}, is_stable", "dimensions={1}, is_stable"),
    "contraction": (
        "dot(turned, product), lhs_contracting_dims={1}",
        "dot(product, product), lhs_contracting_dims={0}",
    ),
    "slice": ("slice={[0:2]", "slice={[1:3]"),
    "padding": ("1_1x0_0", "2_0x0_0"),
    "stable sort": (", is_stable=true", ""),
    "precision": ("mantissa_bits=10", "mantissa_bits=7"),
    "comparison in the called": ("direction=LT", "direction=GT"),
    "operation in the called": ("add(a, b)", "multiply(a, b)"),
    "replica groups": ("{{0,1},{2,3}}", "{{0,2},{1,3}}"),
    "number of equal instructions": ("  n = ", "  m = s32[] constant(3)\n  n = "),
}


def hashes(data: bytes) -> dict[int, str]:
    return structure_hashes(ModuleGraph(HloModuleProto.FromString(data)))


def work_hash(*edits: tuple[str, str]) -> str:
    """Of the computation that the fusion of TEXT calls, edited."""
    text = TEXT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    data = module_of_text(text)
    (called,) = [
        item.called_computation_ids[0]
        for part in HloModuleProto.FromString(data).computations
        for item in part.instructions
        if item.opcode == b"fusion"
    ]
    return hashes(data)[called]


@pytest.mark.parametrize("name", SAME)
def test_same_work(name: str) -> None:
    assert work_hash(*SAME[name]) == work_hash()


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_work(name: str) -> None:
    assert work_hash(DIFFERENT[name]) != work_hash()


def test_form() -> None:
    assert re.fullmatch("[0-9a-f]{16}", work_hash())


# --- by hand ------------------------------------------------------------------------------------------------


def small(first_id: int, *fields: Field, root: int = 2, called: int = 0) -> bytes:
    """A computation of a parameter and two operations on it, whose ids count from `first_id` on."""
    calls = {"called": (called,)} if called else {}
    return computation(
        first_id,
        instruction(first_id, "parameter", shape=array(4)),
        instruction(first_id + 1, "map", *fields, shape=array(4), operands=(first_id,), **calls),
        instruction(first_id + 2, "negate", shape=array(4), operands=(first_id + 1, first_id)),
        root=first_id + root,
    )


def test_numbers_do_not_count() -> None:
    found = hashes(module(small(1), small(101), small(2**40 + 7), entry=1))
    assert len(found) == 3
    assert len(set(found.values())) == 1


def test_the_root_counts() -> None:
    assert len(set(hashes(module(small(1), small(101, root=1), entry=1)).values())) == 2


@pytest.mark.parametrize(
    "field",
    [
        *((9, 1), (11, "kLoop"), (13, 1), (14, packed(1)), (28, "target"), (31, 1), (63, "GT"), (70, 1)),
        *((33, message((1, 1))), (48, message((1, 1))), (59, message((1, 1))), (62, message((1, 1)))),
    ],
)
def test_attributes_that_no_text_above_has(field: Field) -> None:
    assert len(set(hashes(module(small(1), small(101, field), entry=1)).values())) == 2


def test_callers_stored_before_what_they_call() -> None:
    """A chain of calls longer than Python's stack, stored in either order."""
    chain = [small(10 * number, called=10 * (number + 1)) for number in range(1, 3000)] + [small(30_000)]
    found = hashes(module(*chain, entry=10))
    assert found == hashes(module(*reversed(chain), entry=10))
    assert len(set(found.values())) == 3000


def test_damage() -> None:
    """A loop of calls, a call and an operand that lead nowhere, no root, an operand after its user."""
    circle = [small(1, called=11), small(11, called=21), small(21, called=1)]
    lost = [small(31, called=9999), small(41, root=9999)]
    late = computation(
        51, instruction(51, "negate", operands=(52, 9999)), instruction(52, "parameter"), root=51
    )
    assert hashes(module(*circle, *lost, late, entry=1)).keys() == {1, 11, 21, 31, 41, 51}


# --- two compilations ---------------------------------------------------------------------------------------


def compiled(scope: str, operation: Callable[[Any, Any], Any]) -> Counter[str]:
    """Of a program as JAX compiles it for the host, how many computations have each hash."""
    jax = pytest.importorskip("jax")
    from jax import numpy as jnp

    def step(x: Any, y: Any) -> Any:
        with jax.named_scope(scope):
            return jax.lax.fori_loop(0, 7, lambda _, z: jnp.tanh(operation(z, y)) @ y, x).sum()

    step.__name__ = f"step_{scope}"
    jax.clear_caches()
    program = jax.jit(step).lower(jnp.ones((16, 16)), jnp.ones((16, 16))).compile()
    (part,) = program.runtime_executable().hlo_modules()
    return Counter(hashes(part.as_serialized_hlo_module_proto()).values())


def test_compiled_twice() -> None:
    first = compiled("mlp", lambda x, y: x - y)
    assert sum(first.values()) > 3
    assert compiled("attention", lambda x, y: x - y) == first
    assert compiled("mlp", lambda x, y: y - x) != first


def fused(module_proto: Any) -> Counter[str]:
    """How many fusions of a module compute what has each hash."""
    found = structure_hashes(ModuleGraph(module_proto))
    return Counter(
        found[item.called_computation_ids[0]]
        for part in module_proto.computations
        for item in part.instructions
        if item.opcode == b"fusion"
    )


def test_runs_of_two_commits(tmp_path: Path) -> None:
    """Two processes compiled one program for a GPU. They chose other emitters, but fused the same work."""
    protos, texts = [], []
    for name in ("hist_01", "hist_02"):
        (path,) = find_run(name, tmp_path).glob("xla_dump/*jit_train_step*after_optimizations.hlo.pb")
        protos.append(HloProto.FromString(path.read_bytes()).hlo_module)
        texts.append(path.with_suffix("").with_suffix(".txt").read_text())
    assert [text.count("kind=kCustom") for text in texts] != [texts[0].count("kind=kCustom")] * 2
    assert fused(protos[0]) == fused(protos[1])
    assert sum(fused(protos[0]).values()) == texts[0].count(" fusion(")
