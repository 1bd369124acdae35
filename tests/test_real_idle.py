"""Idle gaps, collectives and occurrences of real training runs against the bytes of their captures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh

from .shared_runs import find_run, ingested
from .test_real_captures import COLLECTIVE, host_steps, stat_value
from .xspace_expected import DEVICE_PLANE
from .xspace_oracle import XSpace, text

RUNS = ["h200x2_medium_fsdp2", "h200x2_medium_fsdp2_nocb", "h200x1_small", "h200_2proc"]
WITH_COMMAND_BUFFERS = ["h200x2_medium_fsdp2", "h200x1_small", "h200_2proc", "hist_01"]


@dataclass(frozen=True)
class Call:
    thread: int
    start: int
    end: int
    # Start of the last host function that the thread enqueued before it.
    host_function: int | None


@dataclass(frozen=True)
class Event:
    """A device event; `number` is its position in the file."""

    number: int
    stream: tuple[int, int]
    name: str
    hlo_op: str | None
    correlation_id: int | None
    step: int | None
    start: int
    end: int


def host_calls(message: Any) -> dict[int, Call]:
    """The first call with each correlation id."""
    wanted: list[tuple[int, int, int, int | None, bool]] = []
    thread = 0
    for plane in message.planes:
        if DEVICE_PLANE.match(text(plane.name)):
            continue
        ids = {key for key, value in plane.stat_metadata.items() if value.name == b"correlation_id"}
        for line in plane.lines:
            thread += 1
            for event in line.events:
                values = [stat_value(stat) for stat in event.stats if stat.metadata_id in ids]
                is_function = plane.event_metadata[event.metadata_id].name.startswith(b"cuLaunchHostFunc")
                if values or is_function:
                    start = line.timestamp_ns * 1000 + event.offset_ps
                    end = start + event.duration_ps
                    wanted.append((start, thread, end, values[0] if values else None, is_function))
    calls: dict[int, Call] = {}
    functions: dict[int, int] = {}
    for start, number, end, correlation_id, is_function in sorted(wanted, key=lambda item: item[0]):
        if correlation_id is not None and correlation_id not in calls:
            calls[correlation_id] = Call(number, start, end, functions.get(number))
        if is_function:
            functions[number] = start
    return calls


def device_events(message: Any) -> dict[int, list[Event]]:
    """The events of the GPUs by ordinal."""
    steps = host_steps(message)
    found: dict[int, list[Event]] = defaultdict(list)
    number = 0
    for plane_number, plane in enumerate(message.planes):
        device = DEVICE_PLANE.match(text(plane.name))
        if device is None:
            continue
        stat_names = {key: text(value.name) for key, value in plane.stat_metadata.items()}
        for line_number, line in enumerate(plane.lines):
            for event in line.events:
                stats = {stat_names[stat.metadata_id]: stat_value(stat) for stat in event.stats}
                op, correlation_id = stats.get("hlo_op"), stats.get("correlation_id")
                start = line.timestamp_ns * 1000 + event.offset_ps
                found[int(device[2])].append(
                    Event(
                        number,
                        (plane_number, line_number),
                        text(plane.event_metadata[event.metadata_id].name),
                        stat_names[op] if isinstance(op, int) else None if op is None else text(op),
                        correlation_id,
                        None if correlation_id is None else steps.get(correlation_id),
                        start,
                        start + event.duration_ps,
                    )
                )
                number += 1
    return found


def is_collective(event: Event) -> bool:
    return event.name.startswith("nccl") or COLLECTIVE.fullmatch(event.hlo_op or "") is not None


def cause(calls: dict[int, Call], previous: Event, following: Event) -> str:
    call = calls.get(following.correlation_id) if following.correlation_id is not None else None
    before = calls.get(previous.correlation_id) if previous.correlation_id is not None else None
    if following.correlation_id is not None and following.correlation_id == previous.correlation_id:
        return "in_graph"
    if call is None:
        return "unknown"
    if call.end > previous.end:
        return "host_late"
    if before is None or before.thread != call.thread or call.host_function is None:
        function = None
    else:
        function = call.host_function if call.host_function >= before.start else None
    if function is not None:
        return "host_callback"
    if is_collective(previous):
        return "collective"
    return "same_stream" if previous.stream == following.stream else "other_stream"


def gaps(calls: dict[int, Call], events: list[Event]) -> Iterator[tuple[Any, ...]]:
    """Start, end, what is around, and cause of each gap, by a walk in the order of time."""
    last: Event | None = None
    for event in sorted(events, key=lambda item: (item.start, item.number)):
        if last is not None and last.end < event.start:
            yield last.end, event.start, last.name, event.name, cause(calls, last, event)
        if last is None or event.end >= last.end:
            last = event


@pytest.mark.parametrize("name", RUNS)
def test_idle_gaps(name: str, tmp_path: Path) -> None:
    expected: Counter[tuple[Any, ...]] = Counter()
    with ingested(name, tmp_path) as run:
        for process, path in enumerate(sorted(run.path.rglob("*.xplane.pb"))):
            message = XSpace.FromString(path.read_bytes())
            calls = host_calls(message)
            for ordinal, events in device_events(message).items():
                by_step: dict[int | None, list[Event]] = defaultdict(list, {None: events})
                for event in events:
                    if event.step is not None:
                        by_step[event.step].append(event)
                for step, members in by_step.items():
                    expected.update((process, ordinal, step, *gap) for gap in gaps(calls, members))
        found = run.rows(
            """SELECT c.process_index, g.device_ordinal, g.step_num, g.start_ps, g.end_ps, g.previous_kernel,
                g.next_kernel, g.cause
            FROM v1.idle_gaps AS g JOIN captures AS c USING (capture_id)"""
        )
    assert len(expected) > 500
    assert {row[-1] for row in expected} >= {"host_late", "same_stream"}
    assert Counter(found) == expected


@pytest.mark.parametrize("name", RUNS)
def test_ledgers_and_exposed_time_add_up(name: str, tmp_path: Path) -> None:
    with ingested(name, tmp_path) as run:
        wrong = run.rows("SELECT * FROM v1.reconciliation WHERE is_exact AND difference_ps <> 0")
        per_device = run.rows(
            """SELECT t.exposed_communication_ps, t.communication_ps, SUM(e.exposed_ps), SUM(e.duration_ps)
            FROM v1.device_time AS t JOIN v1.collective_executions AS e USING (capture_id, device_id)
            WHERE t.step_num IS NULL
            GROUP BY t.capture_id, t.device_id, t.exposed_communication_ps, t.communication_ps"""
        )
        waits = run.rows("SELECT end_ps - start_ps, wait_ps, device_count FROM v1.collective_skew")
    assert wrong == []
    # Collectives of these runs do not overlap each other, so that their sums are those of the device.
    for exposed_ps, communication_ps, exposed_sum, duration_sum in per_device:
        assert (exposed_sum, duration_sum) == (exposed_ps, communication_ps)
    assert all(wait is None or 0 <= wait <= duration for duration, wait, _ in waits)
    assert all(count in (None, 2) for _, _, count in waits)


@pytest.mark.parametrize("name", WITH_COMMAND_BUFFERS)
def test_every_op_of_a_whole_capture_is_complete(name: str, tmp_path: Path) -> None:
    with ingested(name, tmp_path) as run:
        found = run.rows(
            "SELECT status, COUNT(*), SUM(expected), SUM(actual) FROM v1.occurrences GROUP BY status"
        )
    ((status, count, expected, actual),) = found
    assert status == "complete"
    assert count > 200
    assert expected == actual


def cut(message: Any, share: float) -> bytes:
    """The capture without what its devices began after `share` of the time between first and last start."""
    for plane in message.planes:
        if DEVICE_PLANE.match(text(plane.name)):
            starts = [event.offset_ps for line in plane.lines for event in line.events]
            last = min(starts) + share * (max(starts) - min(starts))
            for line in plane.lines:
                kept = [event for event in line.events if event.offset_ps < last]
                del line.events[:]
                line.events.extend(kept)
    return bytes(message.SerializeToString())


@pytest.mark.parametrize("share", [0.2, 0.4, 0.5, 0.75, 0.9])
def test_ops_of_a_cut_capture_are_missing(share: float, tmp_path: Path) -> None:
    (path,) = find_run("h200x1_small_nocb", tmp_path).rglob("*.xplane.pb")
    (tmp_path / "cut.xplane.pb").write_bytes(cut(XSpace.FromString(path.read_bytes()), share))
    message = XSpace.FromString((tmp_path / "cut.xplane.pb").read_bytes())
    (events,) = device_events(message).values()
    begun = len({event.step for event in events})
    counts = Counter(event.hlo_op for event in events)
    warehouse = tmp_path / "w.duckdb"
    assert tracewh.ingest_run(tmp_path / "cut.xplane.pb", warehouse=warehouse).status == "loaded"
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        rows = connection.execute(
            "SELECT hlo_op, executions_per_run, expected, actual, status FROM v1.occurrences"
        ).fetchall()
    # Each op of this run launches one kernel.
    for op, per_run, expected, actual, status in rows:
        assert (expected, actual) == (begun * per_run, counts[op])
        assert status == ("complete" if actual == expected else "missing")
    assert Counter(row[-1] for row in rows).keys() == {"complete", "missing"}
