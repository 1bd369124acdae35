"""The interval macros against a count of every picosecond of small random intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracewh.views.macro_catalog import load_macros

LONGEST = 8
RANKS = (1, 2, 3, 4, 5)
Row = tuple[Any, ...]
Group = tuple[int, int, int | None]


@dataclass(frozen=True)
class Interval:
    """The fields are the columns of the tables that the macros read."""

    id: int
    capture_id: int
    device_id: int
    stream: int | None
    rank: int | None
    start_ps: int
    end_ps: int

    @property
    def group(self) -> Group:
        return self.capture_id, self.device_id, self.stream

    @property
    def cells(self) -> range:
        return range(self.start_ps, self.end_ps)


# Most are on one device of one capture, so that they meet.
FIELDS = st.tuples(
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([0, 0, 1]),
    st.sampled_from([None, 1, 1, 2]),
    st.sampled_from([1, 1, 2, 2, 3, 4, 5, 0, 6, None]),
    st.integers(-3, 14),
    st.sampled_from([0, 0, 1, 1, 2, 3, 5, LONGEST]),
)
SETS = st.lists(FIELDS, max_size=12).flatmap(
    # The order of the rows and of the ids is no order of time.
    lambda fields: st.permutations(range(-2, len(fields) - 2)).map(
        lambda ids: [
            Interval(id_, *field[:5], field[4] + field[5]) for id_, field in zip(ids, fields, strict=True)
        ]
    )
)


def cells(intervals: Iterable[Interval]) -> set[int]:
    return {cell for interval in intervals for cell in interval.cells}


def runs(covered: set[int]) -> list[tuple[int, int]]:
    """The longest stretches of consecutive numbers, half-open."""
    starts = sorted(cell for cell in covered if cell - 1 not in covered)
    ends = sorted(cell + 1 for cell in covered if cell + 1 not in covered)
    return list(zip(starts, ends, strict=True))


def by_group(intervals: list[Interval]) -> dict[Group, list[Interval]]:
    groups: dict[Group, list[Interval]] = defaultdict(list)
    for interval in intervals:
        groups[interval.group].append(interval)
    return groups


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA v1")
        for macro in load_macros():
            connection.execute(macro.definition)
        for table in ("a", "b"):
            connection.execute(
                f"CREATE TABLE {table} (id BIGINT, capture_id BIGINT, device_id BIGINT, stream BIGINT, "
                "rank BIGINT, start_ps BIGINT, end_ps BIGINT)"
            )
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, table: str, intervals: list[Interval]) -> None:
    connection.execute(f"DELETE FROM {table}")
    values = [
        "(" + ", ".join("NULL" if value is None else str(value) for value in astuple(interval)) + ")"
        for interval in intervals
    ]
    if values:
        connection.execute(f"INSERT INTO {table} VALUES {', '.join(values)}")


def found(connection: duckdb.DuckDBPyConnection, columns: str, call: str) -> Counter[Row]:
    return Counter(connection.execute(f"SELECT {columns} FROM {call}").fetchall())


def given_sets(*names: str) -> Any:
    def decorate(test: Any) -> Any:
        examples = settings(max_examples=120, deadline=None, derandomize=True)
        return examples(given(**dict.fromkeys(names, SETS))(test))

    return decorate


@given_sets("a")
def test_union(connection: duckdb.DuckDBPyConnection, a: list[Interval]) -> None:
    fill(connection, "a", a)
    expected = [
        (
            *group,
            *(len(members), min(m.start_ps for m in members), max(m.end_ps for m in members)),
            *(sum(len(m.cells) for m in members), len(cells(members))),
        )
        for group, members in by_group(a).items()
    ]
    columns = "capture_id, device_id, key_1, interval_count, start_ps, end_ps, sum_ps, union_ps"
    assert found(connection, columns, "v1.interval_union('a', stream)") == Counter(expected)


@given_sets("a")
def test_islands_and_gaps(connection: duckdb.DuckDBPyConnection, a: list[Interval]) -> None:
    fill(connection, "a", a)
    islands, gaps = [], []
    for group, members in by_group(a).items():
        covered = cells(members)
        islands += [(*group, *run) for run in runs(covered)]
        whole = set(range(min(covered), max(covered))) if covered else set()
        gaps += [(*group, *run) for run in runs(whole - covered)]
    columns = "capture_id, device_id, key_2, start_ps, end_ps"
    assert found(connection, columns, "v1.interval_islands('a', NULL, stream)") == Counter(islands)
    assert found(connection, columns, "v1.interval_gaps('a', NULL, stream)") == Counter(gaps)


@given_sets("a", "b")
def test_intersection_and_subtraction(
    connection: duckdb.DuckDBPyConnection, a: list[Interval], b: list[Interval]
) -> None:
    fill(connection, "a", a)
    fill(connection, "b", b)
    first, second = by_group(a), by_group(b)
    shared, left = [], []
    for group in {*first, *second}:
        of_a, of_b = cells(first[group]), cells(second[group])
        shared += [(*group, *run) for run in runs(of_a & of_b)]
        left += [(*group, *run) for run in runs(of_a - of_b)]
    columns = "capture_id, device_id, key_3, start_ps, end_ps"
    arguments = "'a', 'b', p_key_3 := stream"
    assert found(connection, columns, f"v1.interval_intersection({arguments})") == Counter(shared)
    assert found(connection, columns, f"v1.interval_subtraction({arguments})") == Counter(left)


@given_sets("a")
def test_exclusive(connection: duckdb.DuckDBPyConnection, a: list[Interval]) -> None:
    fill(connection, "a", a)
    expected = []
    for group, members in by_group(a).items():
        unions, exclusives = [], []
        charged: set[int] = set()
        for rank in (*RANKS, None):
            covered = cells(m for m in members if (m.rank if m.rank in RANKS else None) == rank)
            unions.append(len(covered))
            exclusives.append(len(covered - charged))
            charged |= covered
        span = min(m.start_ps for m in members), max(m.end_ps for m in members)
        expected.append((*group, len(members), *span, len(charged), *unions, *exclusives))
    columns = "* EXCLUDE (key_2, key_3)"
    rows = found(connection, columns, "v1.interval_exclusive('a', rank, stream)")
    assert rows == Counter(expected)
    # What the header promises: each picosecond once.
    assert all(row[6] == sum(row[13:]) for row in rows)


@given_sets("a", "b")
def test_coverage(connection: duckdb.DuckDBPyConnection, a: list[Interval], b: list[Interval]) -> None:
    fill(connection, "a", a)
    fill(connection, "b", b)
    expected = []
    for window in a:
        inside = set(window.cells)
        covered = inside & cells(i for i in b if i.group[:2] == window.group[:2])
        bounds = window.start_ps, window.end_ps
        expected.append((*window.group, *bounds, len(covered), len(inside - covered)))
    columns = "capture_id, device_id, label_1, start_ps, end_ps, covered_ps, uncovered_ps"
    assert found(connection, columns, "v1.interval_coverage('a', 'b', stream)") == Counter(expected)


@given_sets("a", "b")
def test_containment(connection: duckdb.DuckDBPyConnection, a: list[Interval], b: list[Interval]) -> None:
    fill(connection, "a", a)
    fill(connection, "b", b)
    expected = []
    for event in a:
        holding = [w for w in b if w.group == event.group and event.start_ps in w.cells]
        best = min(holding, key=lambda w: (-w.end_ps, w.start_ps, w.id), default=None)
        expected.append((*event.group, event.id, event.start_ps, best.id if best else None))
    call = "v1.interval_containment('a', id, 'b', id, stream)"
    assert found(connection, "*", call) == Counter(expected)


def test_times_as_large_as_unix_picoseconds_are_exact(connection: duckdb.DuckDBPyConnection) -> None:
    base = 1_700_000_000 * 10**9  # nanoseconds times 10: more than a double holds exactly
    spans = [(0, 10), (5, 20), (30, 31)]
    rows = [Interval(n, 1, 1, 1, 1, base + start, base + end) for n, (start, end) in enumerate(spans)]
    fill(connection, "a", rows)
    fill(connection, "b", rows[1:])
    assert found(connection, "union_ps", "v1.interval_union('a')") == {(21,): 1}
    assert found(connection, "start_ps", "v1.interval_subtraction('a', 'b')") == {(base,): 1}
    assert found(connection, "covered_ps", "v1.interval_coverage('a', 'b', id)") == {
        (5,): 1,
        (15,): 1,
        (1,): 1,
    }
