"""Which step launched a kernel: the views against a brute force, on random threads and handovers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracewh.sql.kept_views import keep_rows_of_captures

from .live_views import live_warehouse

FLOW_TYPE = 14
MAX_HOPS = 6
DEVICE = 1


@dataclass(frozen=True)
class Range:
    start: int
    end: int
    step: int | None = None
    flow: int | None = None  # that it takes up
    is_mark: bool = False


@dataclass
class Layout:
    """Marks and taken-up ranges by thread; where each flow is handed over; launches by id; kernels."""

    threads: int
    marks: dict[int, list[Range]] = field(default_factory=dict)
    carriers: dict[int, list[Range]] = field(default_factory=dict)
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    launches: dict[int, tuple[int, int]] = field(default_factory=dict)
    kernels: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)


def random_layout(seed: int) -> Layout:
    """A layout in which no two things happen at one time."""
    rng = random.Random(seed)
    times = iter(rng.sample(range(1, 5000), 400))

    def interval() -> tuple[int, int]:
        start, end = sorted((next(times), next(times)))
        return start, min(end, start + rng.choice((30, 300, 5000)))

    layout = Layout(rng.randint(1, 4))
    threads = range(layout.threads)
    for thread in threads:
        layout.marks[thread], layout.carriers[thread] = [], []
    for step in range(rng.randint(0, 4)):
        layout.marks[rng.choice(threads)].append(Range(*interval(), step, is_mark=True))
    for flow in range(rng.randint(0, 8)):
        layout.carriers[rng.choice(threads)].append(Range(*interval(), flow=flow))
        if rng.random() < 0.9:
            layout.producers[flow] = (rng.choice(threads), next(times))
    for number in range(rng.randint(0, 12)):
        layout.launches[10 + number] = (rng.choice(threads), next(times))
    device_times = iter(rng.sample(range(10_000, 20_000), 60))
    for number in range(rng.randint(1, 16)):
        start, end = sorted((next(device_times), next(device_times)))
        # Ids 5 and 99 are of no call of the capture: 5 is from before it.
        link = rng.choice([*layout.launches, None, 5, 99])
        layout.kernels[number] = (start, end, link)
    return layout


def open_range(ranges: Sequence[Range], time: int) -> Range | None:
    """The last to begin, or where that has ended, the last to end."""
    begun = [item for item in ranges if item.start <= time]
    if not begun:
        return None
    for latest in (max(begun, key=lambda item: item.start), max(begun, key=lambda item: item.end)):
        if latest.end > time:
            return latest
    return None


def flow_step(layout: Layout, flow: int | None, hops: int = 1) -> int | None:
    """The step that a flow comes from, over at most MAX_HOPS threads."""
    if flow is None or flow not in layout.producers or hops > MAX_HOPS:
        return None
    thread, time = layout.producers[flow]
    mark = open_range(layout.marks[thread], time)
    known = [item for item in layout.carriers[thread] if item.flow in layout.producers]
    carrier = open_range(known, time)
    step = None
    if carrier is not None and (mark is None or carrier.start > mark.start):
        step = flow_step(layout, carrier.flow, hops + 1)
    return mark.step if step is None and mark is not None else step


def step_ranges(layout: Layout, thread: int) -> list[Range]:
    """Ranges of a thread that work for a step, without those inside an earlier one of the same step."""
    taken = [
        Range(item.start, item.end, flow_step(layout, item.flow))
        for item in layout.carriers[thread]
        if flow_step(layout, item.flow) is not None
    ]
    kept: list[Range] = []
    for item in sorted([*layout.marks[thread], *taken], key=lambda item: item.start):
        if all(other.step != item.step or other.end < item.end for other in kept):
            kept.append(item)
    return kept


def expected_steps(layout: Layout) -> dict[int, tuple[int, int]]:
    """Step and rank of each kernel that belongs to one."""
    launched: dict[int, tuple[int, int] | None] = {}
    ranges = {thread: step_ranges(layout, thread) for thread in range(layout.threads)}
    marks = [item for items in ranges.values() for item in items if item.is_mark]
    for number, (thread, time) in layout.launches.items():
        own, any_mark = open_range(ranges[thread], time), open_range(marks, time)
        if own is not None and own.step is not None:
            launched[number] = (own.step, 1 if own.is_mark else 2)
        elif any_mark is not None and any_mark.step is not None:
            launched[number] = (any_mark.step, 3)
        else:
            launched[number] = None
    found: dict[int, tuple[int, int]] = {}
    windows: dict[int, tuple[int, int]] = {}
    for kernel, (start, end, link) in layout.kernels.items():
        if link is not None and (place := launched.get(link)) is not None:
            found[kernel] = place
            low, high = windows.get(place[0], (start, end))
            windows[place[0]] = (min(low, start), max(high, end))
    for kernel, (start, _, link) in layout.kernels.items():
        is_early = link is not None and bool(layout.launches) and link < min(layout.launches)
        if link in launched or is_early:
            continue
        around = [step for step, (low, high) in windows.items() if low <= start < high]
        if around:
            found[kernel] = (min(around), 4)
    return found


def insert(connection: duckdb.DuckDBPyConnection, capture: int, layout: Layout) -> None:
    events: list[tuple[int | None, ...]] = []
    flows: list[tuple[int | None, ...]] = []
    steps: list[tuple[int | str, ...]] = []
    for thread in range(layout.threads):
        connection.execute(
            "INSERT INTO tracks (capture_id, track_id, track_kind, track_name) VALUES (?, ?, 'thread', '')",
            [capture, thread],
        )
        for mark in layout.marks[thread]:
            assert mark.step is not None
            steps.append((capture, mark.step, mark.step, 1, thread, mark.start, mark.end, "roctx"))
        for item in layout.carriers[thread]:
            flows.append((capture, len(events), None, None, FLOW_TYPE, item.flow))
            events.append((capture, len(events), thread, 1, item.start, item.end, None))
    for flow, (thread, time) in layout.producers.items():
        flows.append((capture, len(events), FLOW_TYPE, flow, None, None))
        events.append((capture, len(events), thread, 1, time, time + 1, None))
    for number, (thread, time) in layout.launches.items():
        events.append((capture, len(events), thread, 1, time, time + 1, number))
    kernels = [
        (capture, kernel, DEVICE, 99, 1, start, end, "kernel", "work", link)
        for kernel, (start, end, link) in layout.kernels.items()
    ]
    for table, columns, rows in (
        ("steps", "capture_id, step_id, step_num, name_id, track_id, start_ps, end_ps, source", steps),
        (
            "host_events",
            "capture_id, host_event_id, track_id, name_id, start_ps, end_ps, correlation_id",
            events,
        ),
        (
            "host_flows",
            "capture_id, host_event_id, producer_type, producer_id, consumer_type, consumer_id",
            flows,
        ),
        (
            "device_events",
            "capture_id, device_event_id, device_id, track_id, name_id, start_ps, end_ps, kind, role, "
            "correlation_id",
            kernels,
        ),
    ):
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with live_warehouse() as connection:
        yield connection


_captures = count(1)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_steps_of_kernels(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    layout, capture = random_layout(seed), next(_captures)
    insert(connection, capture, layout)
    keep_rows_of_captures(connection, [capture], ["flow_chains", "numbered_marks"])
    rows = connection.execute(
        "SELECT device_event_id, step_num, found_rank FROM v1._event_links WHERE capture_id = ?", [capture]
    ).fetchall()
    found = {kernel: (step, rank) for kernel, step, rank in rows}
    assert len(found) == len(rows)
    assert found == expected_steps(layout)


def test_the_layouts_have_every_kind_of_link() -> None:
    ranks = {rank for seed in range(100) for _, rank in expected_steps(random_layout(seed)).values()}
    assert ranks == {1, 2, 3, 4}
    assert any(
        flow_step(layout, flow) is not None and flow_step(layout, flow, MAX_HOPS) is None
        for layout in map(random_layout, range(100))
        for flow in layout.producers
    )
