"""Stats go to the columns that they are for: both decoders against a loop over the stats, one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracewh.ingest.distinct_values import distinct
from tracewh.ingest.xspace_compiled import CompiledSpace
from tracewh.ingest.xspace_protobuf import ProtobufSpace
from tracewh.ingest.xspace_space import NONE, Placed, Stats

PLACING = [ProtobufSpace.placed, CompiledSpace.placed]
NUMBERS = st.integers(-(2**63), 2**63 - 1)
COLUMNS = [2, 3, 7]
# The column of a stat, less than 0 for one that cannot hold it, with its type and value.
STATS = st.tuples(st.sampled_from([-3, 0, *COLUMNS]), st.integers(2, 8), NUMBERS)
OWNERS = st.lists(st.lists(STATS, max_size=6), max_size=6)


@pytest.mark.parametrize("placed", PLACING)
@settings(deadline=None)
@given(owners=OWNERS)
def test_last_stat_of_an_owner_holds(
    placed: Callable[..., Placed], owners: list[list[tuple[int, int, int]]]
) -> None:
    expected: dict[int, dict[int, tuple[int, int]]] = {}
    left = [list[int]() for _ in owners]
    for owner, stats in enumerate(owners):
        for index, (column, value_type, value) in enumerate(stats):
            is_last = column not in [later for later, _, _ in stats[index + 1 :]]
            left[owner].append(column if column <= 0 or is_last else 0)
            if column > 0:
                expected.setdefault(column, {})[owner] = (value_type, value)

    rows = [(owner, *stat) for owner, stats in enumerate(owners) for stat in stats]
    owner, slot, value_type, value = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    narrow = slot.astype(np.int8)
    stats = Stats(
        owner, np.zeros_like(owner), value_type.astype(np.int8), value, pa.array([], pa.large_binary())
    )
    result = placed(stats, narrow, COLUMNS, len(owners))
    assert narrow.tolist() == [column for columns in left for column in columns]
    assert {
        column: {
            owner: found
            for owner, found in enumerate(zip(types.tolist(), values.tolist(), strict=True))
            if found != (NONE, 0)
        }
        for column, (types, values) in result.items()
    } == expected


@pytest.mark.parametrize("scale", [1, 10**15])
@settings(deadline=None)
@given(values=st.lists(st.integers(-9, 9), max_size=30))
def test_distinct_values_are_numbered_as_they_come(scale: int, values: list[int]) -> None:
    codes, first = distinct(np.array(values, np.int64) * scale)
    known = list(dict.fromkeys(values))
    assert codes.tolist() == [known.index(value) for value in values]
    assert first.tolist() == [values.index(value) for value in known]


def test_distinct_values_at_the_ends_of_their_range() -> None:
    codes, first = distinct(np.array([2**63 - 1, -(2**63), 0, -(2**63)]))
    assert (codes.tolist(), first.tolist()) == ([0, 1, 2, 1], [0, 1, 2])
