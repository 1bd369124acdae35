"""Names inferred for instructions: modules are written as text, and the expected names by hand."""

from __future__ import annotations

import pytest

from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_calls import library_call_cost
from tracewh.ingest.hlo_loops import ComputationRuns
from tracewh.ingest.hlo_op_names import FoundNames, ModuleOpNames
from tracewh.ingest.hlo_text import read_text_program

LAYER = "jit(f)/transpose(jvp(layers))/while/body/checkpoint/decoder_layer"


def found_in(text: str) -> dict[str, FoundNames]:
    """What is found for each instruction, by name."""
    proto = read_text_program(text, None, "test").module.proto
    graph = ModuleGraph(proto)
    runs = ComputationRuns(graph, proto)
    names = ModuleOpNames(graph, runs, ModuleCosts(graph, library_call_cost).cost)
    return {
        instruction.name.decode(): names.of(instruction)
        for computation in proto.computations
        for instruction in computation.instructions
    }


def named(op_name: str) -> str:
    return f'metadata={{op_name="{op_name}"}}'


def entry(body: str, before: str = "") -> dict[str, FoundNames]:
    return found_in(f"HloModule m\n{before}\nENTRY main {{\n{body}\n}}\n")


ADD = """
add_two {
  add_a = f32[] parameter(0)
  add_b = f32[] parameter(1)
  ROOT add_sum = f32[] add(add_a, add_b)
}
"""


def test_own_name_is_kept() -> None:
    found = entry(f"p = f32[8] parameter(0)\n ROOT x = f32[8] negate(p), {named('jit(f)/a/neg')}")
    assert found["x"] == FoundNames(None, "own")
    assert found["p"] == FoundNames()


def test_root_of_a_fusion() -> None:
    found = entry(
        "p = f32[8] parameter(0)\n ROOT x = f32[8] fusion(p), kind=kLoop, calls=body",
        f"body {{\n q = f32[8] parameter(0)\n e = f32[8] exponential(q), {named('jit(f)/a/exp')}\n"
        f" ROOT r = f32[8] negate(e), {named('jit(f)/b/neg')}\n}}",
    )
    assert found["x"] == FoundNames("jit(f)/b/neg", "root")


def test_most_work_inside_of_a_fusion() -> None:
    # 128 FLOP in a, 3 * 8 in b, of which the second has most, and 8 without a name.
    found = entry(
        "p = f32[8,8] parameter(0)\n ROOT x = f32[8] fusion(p), kind=kLoop, calls=body",
        f"body {{\n q = f32[8,8] parameter(0)\n c = f32[8,1] slice(q), slice={{[0:8], [0:1]}}\n"
        " d = f32[8,1] dot(q, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        f"{named('jit(f)/a/dot')}\n"
        f" e = f32[8] reshape(d), {named('jit(f)/b/reshape')}\n"
        f" g = f32[8] negate(e), {named('jit(f)/b/neg')}\n ROOT r = f32[8] negate(g)\n}}",
    )
    assert found["x"] == FoundNames("jit(f)/a/dot", "inner")


def test_many_small_operations_of_one_scope_outweigh_a_larger_one() -> None:
    operations = "\n".join(
        f"e{i} = f32[8] negate(e{i - 1}), {named(f'jit(f)/b/neg{i}')}" for i in range(1, 4)
    )
    found = entry(
        "p = f32[8] parameter(0)\n w = f32[16] parameter(1)\n"
        " ROOT x = (f32[8], f32[16]) fusion(p, w), kind=kLoop, calls=body",
        f"body {{\n e0 = f32[8] parameter(0)\n v = f32[16] parameter(1)\n{operations}\n"
        f" n = f32[16] negate(v), {named('jit(f)/a/neg')}\n ROOT r = (f32[8], f32[16]) tuple(e3, n)\n}}",
    )
    assert found["x"] == FoundNames("jit(f)/b/neg1", "inner")


def test_bytes_count_where_nothing_is_computed() -> None:
    found = entry(
        "p = f32[8] parameter(0)\n ROOT x = f32[4,8] fusion(p), kind=kLoop, calls=body",
        f"body {{\n q = f32[8] parameter(0)\n c = f32[8] copy(q), {named('jit(f)/a/copy')}\n"
        f" d = f32[4,8] broadcast(c), dimensions={{1}}, {named('jit(f)/b/broadcast')}\n"
        f" ROOT r = f32[4,8] bitcast(d)\n}}",
    )
    # The root is as large as the broadcast, which comes first.
    assert found["x"] == FoundNames("jit(f)/b/broadcast", "inner")


def test_work_without_a_name_can_be_the_most() -> None:
    found = entry(
        "p = f32[8,8] parameter(0)\n ROOT x = f32[] fusion(p), kind=kLoop, calls=body",
        ADD + "body {\n q = f32[8,8] parameter(0)\n z = f32[] constant(0)\n"
        f" c = f32[1,8] slice(q), slice={{[0:1], [0:8]}}\n n = f32[1,8] negate(c), {named('jit(f)/a/neg')}\n"
        " s = f32[] reduce(q, z), dimensions={0,1}, to_apply=add_two\n"
        " t = f32[] reduce(n, s), dimensions={0,1}, to_apply=add_two\n ROOT r = f32[] negate(t)\n}",
    )
    assert found["x"] == FoundNames()


def test_what_moves_data_is_what_made_it() -> None:
    found = entry(
        f"p = f32[4,8] parameter(0)\n a = f32[4,8] negate(p), {named('jit(f)/a/neg')}\n"
        " t = f32[8,4] transpose(a), dimensions={1,0}\n c = bf16[8,4] convert(t)\n"
        f" ROOT b = bf16[8,4] negate(c), {named('jit(f)/b/neg')}"
    )
    assert found["t"] == FoundNames("jit(f)/a/neg", "operand")
    assert found["c"] == FoundNames("jit(f)/a/neg", "operand")


def test_what_moves_data_of_no_name_is_what_it_is_for() -> None:
    found = entry(
        "p = f32[4,8] parameter(0)\n t = f32[8,4] transpose(p), dimensions={1,0}\n"
        f" a = f32[8,4] negate(t), {named('jit(f)/a/neg')}\n"
        f" ROOT b = f32[8,4] add(t, a), {named('jit(f)/a/add')}"
    )
    assert found["t"] == FoundNames("jit(f)/a/neg", "user")


def test_users_that_disagree_name_nothing() -> None:
    found = entry(
        "p = f32[4,8] parameter(0)\n t = f32[8,4] transpose(p), dimensions={1,0}\n"
        f" a = f32[8,4] negate(t), {named('jit(f)/a/neg')}\n"
        f" ROOT b = f32[8,4] add(t, a), {named('jit(f)/b/add')}"
    )
    assert found["t"] == FoundNames()


def test_data_that_leaves_is_for_nobody_known() -> None:
    found = entry(
        "p = f32[4,8] parameter(0)\n t = f32[8,4] transpose(p), dimensions={1,0}\n"
        f" a = f32[8,4] negate(t), {named('jit(f)/a/neg')}\n"
        " ROOT r = (f32[8,4], f32[8,4]) tuple(t, a)"
    )
    assert found["t"] == FoundNames()


@pytest.mark.parametrize(("user", "inferred"), [("a", "jit(f)/a/x"), ("b", None)])
def test_what_computes_needs_one_name_on_both_sides(user: str, inferred: str | None) -> None:
    # Two in a row: both are passed.
    found = entry(
        f"p = f32[8] parameter(0)\n a = f32[8] negate(p), {named('jit(f)/a/x')}\n"
        " e = f32[8] exponential(a)\n c = f32[8] copy(e)\n g = f32[8] negate(c)\n"
        f" ROOT b = f32[8] negate(g), {named(f'jit(f)/{user}/jit(h)/y')}"
    )
    assert found["e"] == found["g"] == FoundNames(inferred, None if inferred is None else "operand")
    # From a copy the search ends at what computes.
    assert found["c"] == FoundNames()


def test_first_values_of_a_loop_belong_to_it() -> None:
    found = entry(
        "z = f32[] constant(0)\n b = f32[8] broadcast(z), dimensions={}\n i = s32[] constant(0)\n"
        " t = (s32[], f32[8]) tuple(i, b)\n"
        f" ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body, {named(f'{LAYER}/while')}",
        "body {\n p = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
        " x = f32[8] get-tuple-element(p), index=1\n ROOT r = (s32[], f32[8]) tuple(i, x)\n}\n"
        "cond {\n p = (s32[], f32[8]) parameter(0)\n ROOT k = pred[] constant(false)\n}",
    )
    assert found["b"] == FoundNames(f"{LAYER}/while", "user")


@pytest.mark.parametrize("own", ["cumsum", "state['a/b']", "broadcast.3"])
def test_what_is_no_name_stack_gives_way(own: str) -> None:
    body = (
        f"p = f32[8] parameter(0)\n a = f32[8] negate(p), {named('jit(f)/a/x')}\n"
        f' ROOT c = f32[8] copy(a), metadata={{op_name="{own}"}}'
    )
    assert entry(body)["c"] == FoundNames("jit(f)/a/x", "operand")
    # Without another it stays what there is.
    lonely = f'p = f32[8] parameter(0)\n ROOT c = f32[8] copy(p), metadata={{op_name="{own}"}}'
    assert entry(lonely)["c"] == FoundNames(None, "own")


SLICE = "jit(f)/jvp(layers)/while/body/jit(dynamic_index_in_dim)/dynamic_slice"


def test_a_gather_is_for_what_takes_its_data() -> None:
    found = entry(
        "p = f32[4,8] parameter(0)\n"
        f" g = f32[8,8] all-gather(p), replica_groups={{{{0,1}}}}, dimensions={{0}}, {named(SLICE)}\n"
        f" c = bf16[8,8] convert(g), {named(SLICE)}\n"
        f" a = bf16[8,8] negate(c), {named(f'{LAYER}/wi_0/jit(h)/neg')}\n"
        f" b = bf16[8,8] negate(c), {named(f'{LAYER}/checkpoint/rematted_computation/wi_0/a,b->c/dot')}\n"
        " ROOT r = (bf16[8,8], bf16[8,8]) tuple(a, b)"
    )
    assert found["g"] == FoundNames(None, "own", f"{LAYER}/wi_0/jit(h)/neg")


def test_a_gather_for_several_is_for_none() -> None:
    found = entry(
        "p = f32[4,8] parameter(0)\n"
        f" g = f32[8,8] all-gather(p), replica_groups={{{{0,1}}}}, dimensions={{0}}, {named(SLICE)}\n"
        f" a = f32[8,8] negate(g), {named(f'{LAYER}/wi_0/neg')}\n"
        f" ROOT b = f32[8,8] add(a, g), {named(f'{LAYER}/wi_1/add')}"
    )
    assert found["g"] == FoundNames(None, "own")


def test_a_started_gather_is_for_what_takes_its_data() -> None:
    found = entry(
        "p = f32[4,8] parameter(0)\n"
        " s = ((f32[4,8]), f32[8,8]) async-start(p), calls=wrapped\n"
        f" d = f32[8,8] async-done(s), {named(SLICE)}\n"
        f" ROOT a = f32[8,8] negate(d), {named(f'{LAYER}/wo/neg')}",
        "wrapped {\n q = f32[4,8] parameter(0)\n"
        f" ROOT g = f32[8,8] all-gather(q), replica_groups={{{{0,1}}}}, dimensions={{0}}, {named(SLICE)}\n}}",
    )
    assert found["s"] == FoundNames(SLICE, "root", f"{LAYER}/wo/neg")
    assert found["d"] == FoundNames(None, "own", f"{LAYER}/wo/neg")
    assert found["g"] == FoundNames(None, "own", f"{LAYER}/wo/neg")


def test_a_reduction_is_of_what_makes_its_data() -> None:
    found = entry(
        f"p = f32[8,8] parameter(0)\n a = f32[8,8] negate(p), {named(f'{LAYER}/wi_1/neg')}\n"
        " s = ((f32[8,8]), f32[4,8]) async-start(a), calls=wrapped\n d = f32[4,8] async-done(s)\n"
        f" ROOT b = f32[4,8] negate(d), {named(f'{LAYER}/other/neg')}",
        ADD + "wrapped {\n q = f32[8,8] parameter(0)\n"
        " ROOT g = f32[4,8] reduce-scatter(q), replica_groups={{0,1}}, dimensions={0}, to_apply=add_two\n}",
    )
    assert {found[name].neighbour for name in ("s", "d", "g")} == {f"{LAYER}/wi_1/neg"}


@pytest.mark.parametrize(("user", "expected"), [("dispatch", f"{LAYER}/dispatch/neg"), ("wi_0", None)])
def test_an_exchange_is_inside_of_what_is_around_it(user: str, expected: str | None) -> None:
    found = entry(
        f"p = f32[8,8] parameter(0)\n a = f32[8,8] negate(p), {named(f'{LAYER}/dispatch/neg')}\n"
        f" x = f32[8,8] all-to-all(a), replica_groups={{{{0,1}}}}, dimensions={{0}}, {named(SLICE)}\n"
        f" ROOT b = f32[8,8] negate(x), {named(f'{LAYER}/{user}/dot')}"
    )
    assert found["x"].neighbour == expected
