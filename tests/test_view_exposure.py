"""The exposed time of collectives against a count of every picosecond of small random captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .live_views import live_warehouse

CAPTURES = 2
DEVICES = 2
# name_id: kernel, kind and event class
KERNELS = {
    1: ("gemm", "kernel", "compute"),
    2: ("ncclDevKernel_AllReduce_Sum_f32", "kernel", "collective"),
    3: ("MemcpyD2D", "memcpy", "copy"),
}
# op_id: program and name of the HLO op
OPS: dict[int | None, tuple[int | None, int | None]] = {
    None: (None, None),
    0: (7, 21),
    1: (7, 22),
    2: (8, 21),
    3: (8, None),
}
# kernel_count, sum_ps, union_ps and exposed_ps by capture, device, program and op
Rows = dict[tuple[int, int, int | None, int | None], tuple[int, int, int, int]]


@dataclass(frozen=True)
class Event:
    capture: int
    device: int
    name_id: int
    op_id: int | None
    role: str
    start: int
    length: int

    @property
    def event_class(self) -> str:
        return KERNELS[self.name_id][2]

    @property
    def cells(self) -> range:
        return range(self.start, self.start + self.length)


# Most events are on one device, so that they meet.
EVENTS = st.builds(
    Event,
    capture=st.sampled_from([0, 0, 0, 1]),
    device=st.sampled_from([0, 0, 0, 1]),
    name_id=st.sampled_from([1, 1, 1, 2, 2, 2, 3]),
    op_id=st.sampled_from([0, 0, 1, 2, 3, None]),
    role=st.sampled_from(["work", "work", "work", "work", "work", "marker", "derived"]),
    start=st.integers(0, 16),
    length=st.sampled_from([0, 0, 1, 1, 2, 3, 4, 6, 9]),
)


def covered(events: Iterable[Event]) -> set[int]:
    return {cell for event in events for cell in event.cells}


def expected_rows(events: list[Event]) -> Rows:
    by_op: dict[tuple[int, int, int | None, int | None], list[Event]] = defaultdict(list)
    compute: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        place = event.capture, event.device
        if event.role == "work" and event.event_class == "collective":
            by_op[*place, *OPS[event.op_id]].append(event)
        elif event.role == "work" and event.event_class == "compute":
            compute[place].append(event)
    rows = {}
    for key, members in by_op.items():
        cells = covered(members)
        exposed = cells - covered(compute[key[:2]])
        rows[key] = len(members), sum(event.length for event in members), len(cells), len(exposed)
    return rows


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse whose device events each example replaces."""
    with live_warehouse() as connection:
        names = {name_id: kernel for name_id, (kernel, _, _) in KERNELS.items()}
        names |= {21: "all-reduce.1", 22: "all-reduce.2"}
        connection.executemany("INSERT INTO main.names (name_id, name) VALUES (?, ?)", list(names.items()))
        connection.executemany(
            "INSERT INTO main.ops (capture_id, op_id, program_id, hlo_op_name_id) VALUES (?, ?, ?, ?)",
            [
                (capture, op_id, *op)
                for capture in range(CAPTURES)
                for op_id, op in OPS.items()
                if op_id is not None
            ],
        )
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, events: list[Event]) -> None:
    connection.execute("DELETE FROM main.device_events")
    values = [
        f"({event.capture}, {number}, {event.device}, 0, {event.name_id}, {event.start}, "
        f"{event.start + event.length}, '{KERNELS[event.name_id][1]}', '{event.role}', "
        f"{'NULL' if event.op_id is None else event.op_id})"
        for number, event in enumerate(events)
    ]
    connection.execute(
        "INSERT INTO main.device_events (capture_id, device_event_id, device_id, track_id, name_id, "
        f"start_ps, end_ps, kind, role, op_id) VALUES {', '.join(values)}"
    )


@given(events=st.lists(EVENTS, min_size=1, max_size=24))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_exposed_time_agrees_with_a_count_of_every_picosecond(
    connection: duckdb.DuckDBPyConnection, events: list[Event]
) -> None:
    fill(connection, events)
    found = connection.execute(
        """SELECT capture_id, device_id, program_id, hlo_op_name_id, kernel_count, sum_ps, union_ps,
            exposed_ps
        FROM v1._collective_exposure"""
    ).fetchall()
    expected = expected_rows(events)
    assert {row[:4]: row[4:] for row in found} == expected
    assert len(found) == len(expected)
