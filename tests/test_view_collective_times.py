"""Exposed time and waits of single collectives against a count of every picosecond of random captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

DEVICES = 4
# name_id: kernel and whether it communicates
KERNELS = {1: ("gemm", False), 2: ("ncclDevKernel_AllReduce", True), 3: ("ncclDevKernel_AllGather", True)}
# op_id: its groups of devices, in the order of their ordinals; None where they are unknown
OPS: dict[int, list[list[int]] | None] = {
    20: [[0, 1, 2, 3]],
    21: [[0, 2], [1, 3]],
    22: [[0], [1, 2, 3]],
    23: None,
}


@dataclass(frozen=True)
class Event:
    device: int
    name_id: int
    op_id: int
    start: int
    length: int

    @property
    def is_collective(self) -> bool:
        return KERNELS[self.name_id][1]

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def cells(self) -> set[int]:
        return set(range(self.start, self.end))


EVENTS = st.builds(
    Event,
    device=st.integers(0, DEVICES - 1),
    name_id=st.sampled_from([1, 2, 2, 3]),
    op_id=st.sampled_from(list(OPS)),
    start=st.integers(0, 16),
    length=st.sampled_from([0, 1, 2, 3, 6, 9]),
)
# Rounds of one op on several devices, so that there is something to compare.
ROUNDS = st.lists(
    st.tuples(st.integers(0, DEVICES - 1), st.integers(0, 16), st.sampled_from([0, 2, 5, 9])),
    max_size=DEVICES,
    unique_by=lambda item: item[0],
)


@st.composite
def captures(draw: st.DrawFn) -> list[Event]:
    events = draw(st.lists(EVENTS, max_size=8))
    for op_id, members in draw(st.lists(st.tuples(st.sampled_from(list(OPS)), ROUNDS), max_size=3)):
        events += [Event(device, 2, op_id, start, length) for device, start, length in members]
    return events


def exposed(events: list[Event], event: Event) -> int:
    compute = [other for other in events if other.device == event.device and not other.is_collective]
    return len(event.cells.difference(*(other.cells for other in compute)))


def numbered(events: list[Event]) -> dict[tuple[int, int, int], dict[int, int]]:
    """Numbers of the collectives: by op, kernel and occurrence, of each device."""
    found: dict[tuple[int, int, int], dict[int, int]] = defaultdict(dict)
    occurrences: dict[tuple[int, int, int], int] = defaultdict(int)
    for number, event in sorted(enumerate(events), key=lambda item: (item[1].start, item[0])):
        if event.is_collective:
            occurrences[event.device, event.op_id, event.name_id] += 1
            occurrence = occurrences[event.device, event.op_id, event.name_id]
            found[event.op_id, event.name_id, occurrence][event.device] = number
    return found


def compared(events: list[Event]) -> Iterator[list[int]]:
    """Numbers of the collectives that are one execution of one group."""
    executions = numbered(events)
    counts: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (op_id, name_id, _), members in executions.items():
        for device in members:
            counts[op_id, name_id][device] += 1
    for (op_id, name_id, _), members in executions.items():
        groups = OPS[op_id]
        if groups is None or len(set(counts[op_id, name_id].values())) > 1:
            continue
        if len(groups) == 1:
            yield list(members.values())
        elif len(members) == DEVICES:
            yield from ([members[device] for device in group] for group in groups)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse whose device events each example replaces."""
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        names = {name_id: name for name_id, (name, _) in KERNELS.items()}
        names |= {op_id: f"fusion.{op_id}" for op_id in OPS}
        connection.executemany("INSERT INTO main.names (name_id, name) VALUES (?, ?)", list(names.items()))
        connection.executemany(
            "INSERT INTO main.devices (device_id, run_id, hostname, device_type, device_ordinal) "
            "VALUES (?, 1, '', 'GPU', ?)",
            [(10 - device, device) for device in range(DEVICES)],
        )
        connection.execute(
            "INSERT INTO main.hlo_programs (capture_id, program_id, module_id, artifact_id) "
            "VALUES (1, 7, 1, 1)"
        )
        for op_id, groups in OPS.items():
            connection.execute(
                "INSERT INTO main.ops (capture_id, op_id, program_id, hlo_op_name_id) VALUES (1, $1, 7, $1)",
                [op_id],
            )
            connection.execute(
                "INSERT INTO main.hlo_instructions (module_id, instruction_id, computation_id, position, "
                "name_id, opcode, shape, is_root, operand_count) "
                "VALUES (1, $1, 1, 0, $1, 'fusion', '', FALSE, 0)",
                [op_id],
            )
            connection.execute(
                "INSERT INTO main.hlo_collectives (module_id, instruction_id, collective_kind, is_done, "
                "group_set_id) VALUES (1, ?, 'all-reduce', FALSE, ?)",
                [op_id, None if groups is None else op_id],
            )
            for index, group in enumerate(groups or []):
                connection.executemany(
                    "INSERT INTO main.hlo_replica_groups VALUES (1, ?, ?, ?, ?)",
                    [(op_id, index, position, member) for position, member in enumerate(group)],
                )
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, events: list[Event]) -> None:
    connection.execute("DELETE FROM main.device_events")
    values = [
        f"(1, {number}, {10 - event.device}, 0, {event.name_id}, {event.start}, {event.end}, 'kernel', "
        f"'work', {event.op_id if event.is_collective else 'NULL'})"
        for number, event in enumerate(events)
    ]
    if values:
        connection.execute(
            "INSERT INTO main.device_events (capture_id, device_event_id, device_id, track_id, name_id, "
            f"start_ps, end_ps, kind, role, op_id) VALUES {', '.join(values)}"
        )


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


@given(events=captures())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_exposed_time_of_each_execution(connection: duckdb.DuckDBPyConnection, events: list[Event]) -> None:
    fill(connection, events)
    found = rows(
        connection,
        "SELECT device_event_id, device_ordinal, occurrence, duration_ps, exposed_ps, hidden_ps "
        "FROM v1.collective_executions",
    )
    occurrences = {
        number: occurrence
        for (_, _, occurrence), members in numbered(events).items()
        for number in members.values()
    }
    expected = [
        (
            *(number, event.device, occurrences[number], event.length),
            *(exposed(events, event), event.length - exposed(events, event)),
        )
        for number, event in enumerate(events)
        if event.is_collective
    ]
    assert sorted(found) == expected


@given(events=captures())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_waits_in_each_execution(connection: duckdb.DuckDBPyConnection, events: list[Event]) -> None:
    fill(connection, events)
    found = rows(
        connection,
        "SELECT device_event_id, device_count, wait_ps, start_skew_ps, end_skew_ps, is_last "
        "FROM v1.collective_skew",
    )
    expected: dict[int, tuple[Any, ...]] = {
        number: (number, None, None, None, None, None)
        for number, event in enumerate(events)
        if event.is_collective
    }
    for numbers in compared(events):
        members = [events[number] for number in numbers]
        starts, ends = [event.start for event in members], [event.end for event in members]
        if len(members) > 1:
            for number, event in zip(numbers, members, strict=True):
                wait = min(max(starts), event.end) - event.start
                skews = (max(starts) - min(starts), max(ends) - min(ends))
                expected[number] = (number, len(members), wait, *skews, event.start == max(starts))
    assert sorted(found) == sorted(expected.values())
