"""Idle gaps and their causes against a walk over every picosecond of small random captures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracewh.sql.kept_views import keep_rows_of_captures
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

CAPTURES = 2
DEVICES = 2
# name_id: name and whether it communicates
KERNELS = {1: ("gemm", False), 2: ("ncclDevKernel_AllReduce", True), 3: ("MemcpyD2D", False)}
LAUNCH, HOST_FUNCTION, STEP_NAME = 10, 11, 12
THREADS = (0, 1)
STREAMS = (5, 6)


@dataclass(frozen=True)
class Call:
    thread: int
    start: int
    length: int
    is_host_function: bool

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True)
class Event:
    """A device event; `call` is a position in the calls of the capture."""

    device: int
    stream: int
    name_id: int
    start: int
    length: int
    call: int | None


@dataclass(frozen=True)
class Capture:
    step: tuple[int, int] | None  # when the annotation begins and ends
    calls: list[Call]
    events: list[Event]


@dataclass(frozen=True)
class Work:
    """An event as a step or the whole capture counts it."""

    number: int
    event: Event
    start: int
    end: int


CALLS = st.builds(
    Call,
    thread=st.sampled_from(THREADS),
    start=st.integers(0, 16),
    length=st.sampled_from([0, 1, 2, 5]),
    is_host_function=st.sampled_from([False, False, False, True]),
)


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    calls = draw(st.lists(CALLS, min_size=1, max_size=10))
    events = st.builds(
        Event,
        device=st.sampled_from([0, 0, 0, 1]),
        stream=st.sampled_from(STREAMS),
        name_id=st.sampled_from([1, 1, 1, 2, 2, 3]),
        start=st.integers(0, 30),
        length=st.sampled_from([0, 1, 1, 2, 2, 3, 8]),
        call=st.none() | st.integers(0, len(calls) - 1) | st.integers(0, len(calls) - 1),
    )
    step = draw(st.sampled_from([None, (0, 8), (4, 20), (3, 3)]))
    return Capture(step, calls, draw(st.lists(events, min_size=1, max_size=12)))


def scoped_work(capture: Capture, device: int) -> Iterator[tuple[int | None, list[Work]]]:
    """The work of a device in the whole capture (None), and in step 0 where it has any."""
    work = [
        Work(number, event, event.start, event.start + event.length)
        for number, event in enumerate(capture.events)
        if event.device == device
    ]
    if work:
        yield None, work
    if capture.step is None:
        return
    begin, end = capture.step
    launched = [
        item
        for item in work
        if item.event.call is not None and begin <= capture.calls[item.event.call].start < end
    ]
    if not launched:
        return
    first, last = min(item.start for item in launched), max(item.end for item in launched)
    # Work without a launch is part of the step in whose window it begins.
    unlaunched = [item for item in work if item.event.call is None and first <= item.start < last]
    yield 0, launched + [Work(u.number, u.event, u.start, min(u.end, last)) for u in unlaunched]


def free_stretches(work: list[Work]) -> Iterator[tuple[int, int]]:
    busy = {time for item in work for time in range(item.start, item.end)}
    empty = {item.start for item in work if item.start == item.end}
    begin = None
    for time in range(min(item.start for item in work), max(item.end for item in work) + 1):
        is_free = time not in busy and time < max(item.end for item in work)
        if begin is not None and (not is_free or time in empty):
            yield begin, time
            begin = None
        if is_free and begin is None:
            begin = time


def host_function_before(capture: Capture, number: int) -> int | None:
    """Start of the last host function that the thread of a call enqueued before it."""
    call = capture.calls[number]
    starts = [
        other.start
        for position, other in enumerate(capture.calls)
        if other.is_host_function
        and other.thread == call.thread
        and (other.start, position) < (call.start, number)
    ]
    return max(starts, default=None)


def explained(capture: Capture, previous: Event, following: Event, begin: int, end: int) -> tuple[Any, ...]:
    """Cause, the part in which the host was late, and the host function in between."""
    if following.call is None:
        return "unknown", None, None
    call = capture.calls[following.call]
    late = max(0, min(call.end, end) - begin)
    function = None
    if previous.call is not None and capture.calls[previous.call].thread == call.thread:
        function = host_function_before(capture, following.call)
        if function is not None and function < capture.calls[previous.call].start:
            function = None
    if previous.call == following.call:
        cause = "in_graph"
    elif call.end > begin:
        cause = "host_late"
    elif function is not None:
        cause = "host_callback"
    elif KERNELS[previous.name_id][1]:
        cause = "collective"
    else:
        cause = "same_stream" if previous.stream == following.stream else "other_stream"
    return cause, late, function


def expected_gaps(examples: list[Capture]) -> list[tuple[Any, ...]]:
    rows = []
    for capture_id, capture in enumerate(examples):
        for device in range(DEVICES):
            for step, work in scoped_work(capture, device):
                for begin, end in free_stretches(work):
                    ended = [item for item in work if item.end == begin]
                    previous = max(ended, key=lambda item: (item.start, item.number))
                    following = min(
                        (item for item in work if item.start == end), key=lambda item: item.number
                    )
                    cause = explained(capture, previous.event, following.event, begin, end)
                    names = (KERNELS[item.event.name_id][0] for item in (previous, following))
                    place = (capture_id, device, step, begin, end)
                    rows.append((*place, previous.number, following.number, *names, *cause))
    return rows


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse whose events each example replaces; without op_names, most kept tables are empty."""
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        names = {name_id: name for name_id, (name, _) in KERNELS.items()}
        names |= {LAUNCH: "cuLaunchKernel", HOST_FUNCTION: "cuLaunchHostFunc", STEP_NAME: "train"}
        connection.executemany("INSERT INTO main.names (name_id, name) VALUES (?, ?)", list(names.items()))
        connection.executemany(
            "INSERT INTO main.devices (device_id, run_id, hostname, device_type, device_ordinal) "
            "VALUES (?, 1, '', 'GPU', ?)",
            [(device, device) for device in range(DEVICES)],
        )
        connection.executemany(
            "INSERT INTO main.tracks (capture_id, track_id, track_kind, track_name) VALUES (?, ?, ?, '')",
            [
                (capture, track, "stream" if track in STREAMS else "thread")
                for capture in range(CAPTURES)
                for track in (*THREADS, *STREAMS)
            ],
        )
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, target: str, rows: list[tuple[Any, ...]]) -> None:
    literals = [", ".join("NULL" if value is None else repr(value) for value in row) for row in rows]
    if literals:
        connection.execute(f"INSERT INTO main.{target} VALUES ({'), ('.join(literals)})")


def fill(connection: duckdb.DuckDBPyConnection, examples: list[Capture]) -> None:
    for table in ("steps", "host_events", "device_events"):
        connection.execute(f"DELETE FROM main.{table}")
    steps: list[tuple[Any, ...]] = []
    host: list[tuple[Any, ...]] = []
    device: list[tuple[Any, ...]] = []
    for capture_id, capture in enumerate(examples):
        if capture.step is not None:
            steps.append((capture_id, 0, 0, STEP_NAME, THREADS[0], *capture.step, "step_trace_annotation"))
        for number, call in enumerate(capture.calls):
            name_id = HOST_FUNCTION if call.is_host_function else LAUNCH
            host.append((capture_id, number, call.thread, name_id, call.start, call.end, number + 1))
        for number, event in enumerate(capture.events):
            times = (event.start, event.start + event.length)
            kind = "memcpy" if KERNELS[event.name_id][0].startswith("Memcpy") else "kernel"
            call_id = None if event.call is None else event.call + 1
            row = (
                capture_id,
                number,
                event.device,
                event.stream,
                event.name_id,
                *times,
                kind,
                "work",
                call_id,
            )
            device.append(row)
    insert(
        connection,
        "steps (capture_id, step_id, step_num, name_id, track_id, start_ps, end_ps, source)",
        steps,
    )
    insert(
        connection,
        "host_events (capture_id, host_event_id, track_id, name_id, start_ps, end_ps, correlation_id)",
        host,
    )
    insert(
        connection,
        "device_events (capture_id, device_event_id, device_id, track_id, name_id, start_ps, end_ps, kind, "
        "role, correlation_id)",
        device,
    )
    keep_rows_of_captures(connection, range(CAPTURES), ["event_links"])


def row_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in row[:5])


@given(examples=st.lists(captures(), min_size=CAPTURES, max_size=CAPTURES))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_gaps_agree_with_a_walk_over_every_picosecond(
    connection: duckdb.DuckDBPyConnection, examples: list[Capture]
) -> None:
    fill(connection, examples)
    found = connection.execute(
        """SELECT capture_id, device_id, step_num, start_ps, end_ps, previous_device_event_id,
            next_device_event_id, previous_kernel, next_kernel, cause, host_late_ps, host_function_start_ps
        FROM v1.idle_gaps"""
    ).fetchall()
    assert sorted(found, key=row_key) == sorted(expected_gaps(examples), key=row_key)


@given(examples=st.lists(captures(), min_size=CAPTURES, max_size=CAPTURES))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_every_ledger_adds_up(connection: duckdb.DuckDBPyConnection, examples: list[Capture]) -> None:
    fill(connection, examples)
    found = connection.execute(
        """SELECT capture_id, device_id, step_num, ledger, expected_ps, actual_ps, difference_ps
        FROM v1.reconciliation WHERE is_exact"""
    ).fetchall()
    expected = []
    for capture_id, capture in enumerate(examples):
        for device in range(DEVICES):
            for step, work in scoped_work(capture, device):
                window = max(item.end for item in work) - min(item.start for item in work)
                idle = sum(end - begin for begin, end in free_stretches(work))
                summed = sum(item.end - item.start for item in work)
                ledgers = {
                    "window": window,
                    "classes": window - idle,
                    "idle_gaps": idle,
                    "phases": summed,
                    "components": summed,
                }
                if step is None:
                    ledgers["steps"] = summed
                for ledger, value in ledgers.items():
                    expected.append((capture_id, device, step, ledger, value, value, 0))
    assert sorted(found, key=row_key) == sorted(expected, key=row_key)
