"""op_names: the expected segments are written by hand from the names that JAX and XLA produce."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracewh.ingest.op_names import split_op_name

BODY = "jit(train_step)/microbatches/while/body/eval_jaxpr"
BODY_SEGMENTS = ["jit(train_step)", "microbatches", "while", "body", "eval_jaxpr"]


@pytest.mark.parametrize(
    ("op_name", "segments"),
    [
        ("", []),
        ("broadcast.101", ["broadcast.101"]),
        ("state['mu']['wo']", ["state['mu']['wo']"]),
        ("jit(f)/add", ["jit(f)", "add"]),
        ("jit(f)//add/", ["jit(f)", "add"]),
        (
            f"{BODY}/jvp(layers)/while/body/eval_jaxpr/decoder_layer/wi_0/ebcd,edf->ebcf/dot_general",
            [
                *BODY_SEGMENTS,
                *("jvp(layers)", "while", "body", "eval_jaxpr", "decoder_layer", "wi_0"),
                *("ebcd,edf->ebcf", "dot_general"),
            ],
        ),
        (
            f"{BODY}/jvp(embedding)/jit(_take)/gather",
            [*BODY_SEGMENTS, "jvp(embedding)", "jit(_take)", "gather"],
        ),
        # Not groups.
        ("a/(b)/c", ["a", "(b)", "c"]),
        ("a/jvp(b/c)/d", ["a", "jvp(b/c)", "d"]),
        ("a/(b/c)x/d", ["a", "(b/c)x", "d"]),
        ("layer:0/add", ["layer:0", "add"]),
        # Parentheses without a partner.
        ("a/transpose(jvp(b/c", ["a", "transpose(jvp(b", "c"]),
        ("a)/b)/jvp(c)", ["a)", "b)", "jvp(c)"]),
    ],
)
def test_segments(op_name: str, segments: list[str]) -> None:
    found = split_op_name(op_name)
    assert [segment.segment for segment in found] == segments
    assert [segment.position for segment in found] == list(range(1, len(segments) + 1))
    assert [segment.is_last for segment in found] == [False] * (len(segments) - 1) + [True] * bool(segments)


@pytest.mark.parametrize(
    ("segment", "transforms", "scope"),
    [
        ("layers", "", "layers"),
        ("transpose", "", "transpose"),
        ("jvp(layers)", "jvp", "layers"),
        ("transpose(jvp(layers))", "transpose(jvp", "layers"),
        ("transpose(jvp(vmap(layers)))", "transpose(jvp(vmap", "layers"),
        ("vmap(transpose(jvp(vmap(jvp()))))", "vmap(transpose(jvp(vmap(jvp", ""),
        ("jvp()", "jvp", ""),
        ("transpose(jvp())", "transpose(jvp", ""),
        ("jit(train_step)", "jit", "train_step"),
        ("jit(_take)", "jit", "_take"),
        ("jit(<lambda>)", "jit", "<lambda>"),
        ("vmap(jit(_where))", "vmap(jit", "_where"),
        ("jvp(Module.method)", "jvp", "Module.method"),
        ("vmap(BNTS,BSNH->BTNH)", "vmap", "BNTS,BSNH->BTNH"),
        ("ebcd,edf->ebcf", "", "ebcd,edf->ebcf"),
        ("rematted_computation", "", "rematted_computation"),
        ("f(x)(y)", "", "f(x)(y)"),
        ("f(x)y", "", "f(x)y"),
        ("(x)", "", "(x)"),
    ],
)
def test_transforms_are_taken_off_the_scope(segment: str, transforms: str, scope: str) -> None:
    (found,) = split_op_name(segment)
    assert (found.transforms, found.scope) == (transforms, scope)


@given(st.text(alphabet="ab/():;.>", max_size=40))
def test_any_text_splits_and_every_segment_is_part_of_it(text: str) -> None:
    for segment in split_op_name(text):
        assert segment.segment
        assert segment.segment in text
        assert segment.transforms + "(" * bool(segment.transforms) + segment.scope in segment.segment


@given(st.lists(st.text(alphabet="ab.->,", min_size=1, max_size=5), min_size=1, max_size=6))
def test_without_parentheses_it_is_a_plain_split(names: list[str]) -> None:
    assert [segment.segment for segment in split_op_name("/".join(names))] == names


def test_deep_nesting_is_no_recursion() -> None:
    depth = 20_000
    (wrapped,) = split_op_name("f(" * depth + "x" + ")" * depth)
    assert wrapped.scope == "x"


# What all of them begin with, and what each goes on with.
@pytest.mark.parametrize(
    ("op_name", "shared", "members"),
    [
        ("a/b;c/d;e", [], [["a", "b"], ["c", "d"], ["e"]]),
        (
            "a/vmap(BNTS,BSNH->BTNH)/transpose;a/vmap()/transpose",
            ["a"],
            [["vmap(BNTS,BSNH->BTNH)", "transpose"], ["vmap()", "transpose"]],
        ),
        (
            f"{BODY}/(transpose(jvp(final_norm))/reduce_sum:transpose(jvp(lm_head))/dot_general:jvp(loss)/sum)",
            BODY_SEGMENTS,
            [
                ["transpose(jvp(final_norm))", "reduce_sum"],
                ["transpose(jvp(lm_head))", "dot_general"],
                ["jvp(loss)", "sum"],
            ],
        ),
        ("a/attention/(key/mul:out/add)", ["a", "attention"], [["key", "mul"], ["out", "add"]]),
        ("(a/b:c/d)", [], [["a", "b"], ["c", "d"]]),
        ("a/(b:c)", ["a"], [["b"], ["c"]]),
        ("a/(b/c:d/e)/f", ["a"], [["b", "c", "f"], ["d", "e", "f"]]),
        ("a/(b/(c/d:e/f):g/h)/i", ["a"], [["b", "c", "d", "i"], ["b", "e", "f", "i"], ["g", "h", "i"]]),
        ("a/((b/c:d):e)", ["a"], [["b", "c"], ["d"], ["e"]]),
        ("a/(b/c;d/e:f/g)/h", ["a"], [["b", "c", "h"], ["d", "e", "h"], ["f", "g", "h"]]),
        ("a/(b/c:d/e);f/g", [], [["a", "b", "c"], ["a", "d", "e"], ["f", "g"]]),
        ("a/(b/jvp(x:y):c/d)", ["a"], [["b", "jvp(x:y)"], ["c", "d"]]),
        # The last segment of each stays its own.
        ("a/b;a/b", ["a"], [["b"], ["b"]]),
        ("a/b;a/b/c", ["a"], [["b"], ["b", "c"]]),
    ],
)  # fmt: skip
def test_joined_names(op_name: str, shared: list[str], members: list[list[str]]) -> None:
    found = split_op_name(op_name)
    assert [segment.segment for segment in found if segment.member == 0] == shared
    assert not any(segment.is_last for segment in found if segment.member == 0)
    for member, expected in enumerate(members, 1):
        own = [segment for segment in found if segment.member == member]
        assert [segment.segment for segment in own] == expected
        assert [segment.position for segment in own] == [
            len(shared) + place for place in range(1, len(expected) + 1)
        ]
        assert [segment.is_last for segment in own] == [False] * (len(expected) - 1) + [True]
    assert len(found) == len(shared) + sum(map(len, members))


@pytest.mark.parametrize(
    ("op_name", "segments"),
    [
        ("a/b/(" + ":".join(["c/d"] * 65) + ")", ["a", "b"]),
        (";".join(["a/b"] * 65), []),
        ("a/(" + ":".join(["c/d"] * 65) + ");e", []),
        ("a/" * 3000 + "(b:c)", ["a"] * 3000),
        ("a/" + "(b/" * 40 + "x" + ":y)" * 40, ["a"]),
    ],
)
def test_of_too_many_joined_names_what_they_share_counts(op_name: str, segments: list[str]) -> None:
    found = split_op_name(op_name)
    assert [segment.segment for segment in found] == segments
    assert all(segment.member is None and not segment.is_last for segment in found)
