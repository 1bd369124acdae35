"""Which row has which id: against a dictionary."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tracewh.ingest.rocm_owners import Owners, count_distinct


def integers(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64())


@pytest.mark.parametrize("kind", ["ascending", "shuffled", "repeated", "with nulls"])
@pytest.mark.parametrize("first_row", [0, 40])
def test_ids_lead_to_the_first_row_that_has_them(kind: str, first_row: int) -> None:
    generator = random.Random(kind)
    ids: list[int | None] = list(range(3, 600, 2))
    if kind != "ascending":
        generator.shuffle(ids)
    if kind == "repeated":
        ids = generator.choices(ids, k=500)
    if kind == "with nulls":
        ids = [None if generator.random() < 0.3 else found for found in ids]
    owners, expected = Owners(first_row), {}
    at = 0
    while at < len(ids):
        part = ids[at : at + generator.choice((0, 1, 7, 100))]
        owners.claim(integers(part))
        for row, found in enumerate(part, first_row + at):
            if found is not None:
                expected.setdefault(found, row)
        at += len(part)
        # Asked in between, and asked again after more of them came.
        wanted = [generator.choice((None, 0, 2**63 - 1, *range(1, 620))) for _ in range(30)]
        assert owners.rows(integers(wanted)).to_pylist() == [expected.get(found) for found in wanted]
    assert sorted(set(owners.ids().tolist())) == sorted(expected)


def test_no_ids() -> None:
    owners = Owners()
    assert owners.rows(integers([1, None, 0])).to_pylist() == [None] * 3
    owners.claim(integers([None, None]))
    assert owners.rows(integers([1, None, -1])).to_pylist() == [None] * 3
    assert owners.ids().tolist() == []
    assert owners.rows(integers([])).to_pylist() == []


def test_ids_of_several_tables_count_once() -> None:
    first, second, third = Owners(), Owners(), Owners()
    first.claim(integers([5, 3, None, 3]))
    second.claim(integers([3, 9]))
    assert count_distinct([first, second, third]) == 3
    assert count_distinct([third]) == 0
