"""Columns in the type that a reader wants, whatever type they came in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import BYTES, INTEGER, REAL, TEXT, Rows, typed

INFINITY = float("inf")


def rows(values: list[Any], kind: pa.DataType) -> Rows:
    return Rows("place", pa.table({"a": pa.array(values, kind)}), ProblemCounter())


def counted(problems: ProblemCounter) -> dict[tuple[str, str], int]:
    return {(item.problem, item.place): item.occurrences for item in problems.problems()}


@pytest.mark.parametrize(
    ("values", "kind", "expected", "rejected"),
    [
        ([1, None, -5], pa.int32(), [1, None, -5], 0),
        ([2**64 - 1, 7], pa.uint64(), [None, 7], 1),
        ([1.0, 1.5, -(2.0**63), 2.0**63, None], REAL, [1, None, -(2**63), None, None], 2),
        (["12", "-7", None], TEXT, [12, -7, None], 0),
        # Arrow would take this for 16.
        (["0x10", "12"], TEXT, [None, 12], 1),
        (["+5", " 5", "1.0", "1e3", "", "9223372036854775808", "soon"], TEXT, [5, *[None] * 6], 6),
        ([b"5", None], BYTES, [5, None], 0),
        ([None, None], pa.null(), [None, None], 0),
        ([True, False], pa.bool_(), [1, 0], 0),
    ],
)
def test_integers(values: list[Any], kind: pa.DataType, expected: list[Any], rejected: int) -> None:
    found = rows(values, kind)
    assert found.integers("a").equals(pa.array(expected, INTEGER))
    # Asked again, it is known: nothing is counted twice.
    assert found.integers("a").equals(pa.array(expected, INTEGER))
    assert counted(found.problems) == ({("not_an_integer", "place.a"): rejected} if rejected else {})


@pytest.mark.parametrize(
    ("values", "kind", "expected", "rejected"),
    [
        ([1, None, 2**53], INTEGER, [1.0, None, 2.0**53], 0),
        ([1.5, None, -0.0], REAL, [1.5, None, -0.0], 0),
        (["1.5", "-2", "1e3", None], TEXT, [1.5, -2.0, 1000.0, None], 0),
        (["nan", "inf", "-inf", "1.5", "soon", ""], TEXT, [None, None, None, 1.5, None, None], 5),
    ],
)
def test_numbers(values: list[Any], kind: pa.DataType, expected: list[Any], rejected: int) -> None:
    found = rows(values, kind)
    assert found.numbers("a").equals(pa.array(expected, REAL))
    assert counted(found.problems) == ({("not_a_number", "place.a"): rejected} if rejected else {})


def test_texts() -> None:
    assert rows([1, None], INTEGER).texts("a").equals(pa.array(["1", None], TEXT))
    assert rows(["é"], pa.string()).texts("a").equals(pa.array(["é"], TEXT))
    assert rows([b"a\xff", b"b", None], BYTES).texts("a").equals(pa.array(["a\\xff", "b", None], TEXT))


def test_a_column_that_is_not_there_is_null() -> None:
    found = rows([1, 2], INTEGER)
    assert found.integers("b").equals(pa.nulls(2, INTEGER))
    assert found.numbers("b").equals(pa.nulls(2, REAL))
    assert found.texts("b").equals(pa.nulls(2, TEXT))
    assert found.table.column_names == ["a"]
    assert len(Rows.empty("place", ProblemCounter())) == 0
    assert len(Rows.empty("place", ProblemCounter()).integers("a")) == 0


def test_some_of_the_rows() -> None:
    found = rows(["1", "soon", "3"], TEXT).where(pa.array([True, False, True]))
    assert found.integers("a").to_pylist() == [1, 3]
    assert counted(found.problems) == {}


def test_values_of_python() -> None:
    problems = ProblemCounter()
    assert typed([1, 2.0, "3", b"4", None, 2**63, 1.5], INTEGER, "p", problems).to_pylist() == [
        *(1, 2, 3, None, None, None, None),
    ]
    assert typed([1, 2.5, "3", b"4", None, INFINITY, float("nan")], REAL, "p", problems).to_pylist() == [
        *(1.0, 2.5, 3.0, None, None, None, None),
    ]
    assert typed([1, 2.5, "3", b"\xff", None], TEXT, "p", problems).to_pylist() == [
        "1",
        "2.5",
        "3",
        "\\xff",
        None,
    ]
    assert typed([1, "é", b"\xff", None], BYTES, "p", problems).to_pylist() == [
        b"1",
        "é".encode(),
        b"\xff",
        None,
    ]
    assert typed([], INTEGER, "p", problems).equals(pa.array([], INTEGER))
    assert [(item.problem, item.detail, item.occurrences) for item in problems.problems()] == [
        ("not_an_integer", "stored as null: \"b'4'\" is no 64-bit integer", 3),
        ("not_a_number", "stored as null: \"b'4'\" is no finite number", 3),
    ]
