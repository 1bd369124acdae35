"""Values of counters: to which instance each belongs, however the table is cut into parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tracewh.ingest.rocm_counters import _Carried

from .rocpd_files import read_one, rows, write

Row = tuple[int | None, int | None, int]


def brute_force(values: list[Row]) -> list[int]:
    """How many rows with the same event, sample and counter come before each."""
    seen: Counter[Row] = Counter()
    numbers = []
    for row in values:
        numbers.append(seen[row])
        seen[row] += 1
    return numbers


def in_parts(values: list[Row], cuts: list[int]) -> list[int]:
    carried, found = _Carried(), []
    for start, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        columns = zip(*values[start:end], strict=True) if start < end else ((), (), ())
        numbers = carried.numbers([pa.array(column, pa.int64()) for column in columns])
        assert numbers.type == pa.int64()
        found += numbers.to_pylist()
    return found


@pytest.mark.parametrize("seed", range(8))
def test_instances_are_numbered_within_each_event(seed: int) -> None:
    """The values of an event follow each other, those of its counters in any order."""
    random = Random(seed)
    values: list[Row] = []
    events = random.sample([None, *range(100)], 25)
    for event in events:
        for sample in random.choice(([None], [7, 8, None])):
            values += [(event, sample, random.randrange(3)) for _ in range(random.choice((0, 1, 5, 60)))]
    expected = brute_force(values)
    for size in (1, 2, 3, 7, 50, 1000):
        assert in_parts(values, list(range(size, len(values), size))) == expected
    for _ in range(20):
        cuts = sorted(random.choices(range(len(values) + 1), k=random.randrange(30)))
        assert in_parts(values, cuts) == expected


def test_an_event_of_more_parts_than_two() -> None:
    """A counter that does not come in a part goes on in the next."""
    values: list[Row] = [(1, None, counter) for counter in (5, 5, 6, 6, 6, 5, 5, 6)]
    assert in_parts(values, [2, 5, 7]) == [0, 1, 0, 1, 2, 2, 3, 3]


def test_instances_and_places_that_the_source_names(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        run = writer.run
        writer.connection.execute(f'DELETE FROM "{run.table("pmc_event")}"')
        events = writer.connection.execute(
            f'SELECT event_id FROM "{run.table("kernel_dispatch")}" LIMIT 2'
        ).fetchall()
        for (event,) in events:
            for xcc, engine, instance in ((0, 0, 3), (0, 1, 3), (1, 0, 5)):
                where = {
                    "xcc": xcc,
                    "shader_engine": engine,
                    "instance": instance,
                    "shader_array": 1,
                    "wgp": 2,
                }
                writer.insert("pmc_event", event_id=event, pmc_id=100, value=xcc + 0.5, **where)
            writer.insert("pmc_event", event_id=event, pmc_id=100, value=9.0)

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, schema_version="3.0.5", steps=1))
    names = ("xcc", "shader_engine", "instance", "shader_array", "workgroup_processor", "value")
    of_one = [
        (0, 0, 3, 1, 2, 0.5),
        (0, 1, 3, 1, 2, 0.5),
        (1, 0, 5, 1, 2, 1.5),
        (None, None, 3, None, None, 9.0),
    ]
    values = rows(capture, "counter_values")
    assert [tuple(row[name] for name in names) for row in values] == of_one * 2
    assert [row["device_event_id"] for row in values] == [0] * 4 + [1] * 4
    assert {row["role"] for row in rows(capture, "device_events") if row["kind"] == "kernel"} == {
        "serialized"
    }
    assert capture.problems == []


def test_values_without_an_event(tmp_path: Path) -> None:
    """They belong to nothing, and are numbered by their counter."""

    def change(writer: Any) -> None:
        table = writer.run.table("pmc_event")
        writer.connection.execute(f'DELETE FROM "{table}"')
        for pmc_id in (100, 101, 100, 100, 101):
            writer.insert("pmc_event", event_id=None, pmc_id=pmc_id, value=1.0)

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    values = rows(capture, "counter_values")
    assert [(row["counter_id"], row["instance"]) for row in values] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (0, 2),
        (1, 1),
    ]
    assert {(row["device_event_id"], row["host_event_id"]) for row in values} == {(None, None)}
    # No kernel was slowed down for them.
    assert {row["role"] for row in rows(capture, "device_events")} == {"work"}
    assert capture.problems == []


def test_columns_of_counters_and_values_that_have_no_place_are_kept(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("pmc_event")
        writer.connection.execute(f'ALTER TABLE "{table}" ADD COLUMN novelty INTEGER')
        writer.connection.execute(
            f'UPDATE "{table}" SET novelty = 3, extdata = \'{{"raw": 5}}\' WHERE id = 2'
        )

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, schema_version="3.0.3", steps=1))
    found = {
        (row["stat_name"], row["owner_id"]): row["int_value"]
        for row in rows(capture, "event_stats")
        if row["owner"] == "capture" and row["stat_name"].startswith("counter_value.")
    }
    # The position of the value in the table.
    assert found == {("counter_value.novelty", 1): 3, ("counter_value.raw", 1): 5}
    of_counter = {
        row["stat_name"]: row["value_name"]
        for row in rows(capture, "event_stats")
        if row["owner"] == "capture" and row["owner_id"] == 1 and row["stat_name"].startswith("counter.")
    }
    assert of_counter["counter.component"] == "rocm"
    assert of_counter["counter.value_type"] == "ABS"
