"""The exclusive time of events against a painting of every picosecond of small random captures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .live_views import live_warehouse

DEVICES = 2
# name_id: kernel, kind and rank of the event class
KERNELS = {
    1: ("gemm", "kernel", 1),
    2: ("ncclDevKernel_AllReduce_Sum_f32", "kernel", 2),
    3: ("MemcpyD2D", "memcpy", 3),
}


@dataclass(frozen=True)
class Event:
    device: int
    name_id: int
    role: str
    start: int
    length: int


# Most events are on one device, so that they meet.
EVENTS = st.builds(
    Event,
    device=st.sampled_from([0, 0, 0, 1]),
    name_id=st.sampled_from([1, 1, 1, 2, 2, 3, 3]),
    role=st.sampled_from(["work", "work", "work", "work", "marker"]),
    start=st.integers(0, 16),
    length=st.sampled_from([0, 1, 1, 2, 3, 4, 6, 9]),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with live_warehouse() as opened:
        opened.execute("INSERT INTO main.runs (run_id, run_name, path) VALUES (1, 'r', '')")
        opened.execute(
            "INSERT INTO main.captures (capture_id, run_id, artifact_id, source_kind) "
            "VALUES (1, 1, 1, 'xspace')"
        )
        for device in range(DEVICES):
            opened.execute(
                "INSERT INTO main.devices (device_id, run_id, hostname, device_type, device_ordinal) "
                f"VALUES ({device}, 1, '', 'GPU', {device})"
            )
        for name_id, (name, _, _) in KERNELS.items():
            opened.execute("INSERT INTO main.names VALUES (?, ?)", [name_id, name])
        yield opened  # type: ignore[misc]


@settings(max_examples=60, deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=12))
def test_each_moment_belongs_to_one_event(connection: duckdb.DuckDBPyConnection, events: list[Event]) -> None:
    connection.execute("DELETE FROM main.device_events")
    connection.executemany(
        "INSERT INTO main.device_events (capture_id, device_event_id, device_id, track_id, name_id, "
        "start_ps, end_ps, kind, role) VALUES (1, ?, ?, 1, ?, ?, ?, ?, ?)",
        [
            [number, e.device, e.name_id, e.start, e.start + e.length, KERNELS[e.name_id][1], e.role]
            for number, e in enumerate(events)
        ],
    )
    owner: dict[tuple[int, int], int] = {}
    # The last to paint a moment keeps it: what comes first in the order is painted last.
    order = sorted(
        (number for number, event in enumerate(events) if event.role == "work"),
        key=lambda number: (KERNELS[events[number].name_id][2], events[number].start, number),
        reverse=True,
    )
    for number in order:
        event = events[number]
        for cell in range(event.start, event.start + event.length):
            owner[event.device, cell] = number
    expected = {number: (events[number].length, 0) for number in order}
    for number in owner.values():
        expected[number] = (expected[number][0], expected[number][1] + 1)
    found = connection.execute(
        "SELECT device_event_id, sum_ps, exclusive_ps FROM v1._exclusive_events"
    ).fetchall()
    assert {number: tuple(times) for number, *times in found} == expected
    # With the idle time they are the window.
    windows = connection.execute(
        "SELECT CAST(sum(exclusive_ps) AS BIGINT), max(device_steps) FROM v1._step_parts"
    ).fetchone()
    by_device: dict[int, list[Event]] = {}
    for number in order:
        by_device.setdefault(events[number].device, []).append(events[number])
    total = sum(
        max(event.start + event.length for event in members) - min(event.start for event in members)
        for members in by_device.values()
    )
    assert windows == ((total, len(by_device)) if by_device else (None, None))
