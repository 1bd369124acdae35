"""Steps, device time, phases and components against a count of every picosecond of small random captures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracewh.ingest.op_names import split_op_name
from tracewh.sql.kept_views import keep_all_rows
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

CAPTURES = 3
DEVICES = 2
MAIN_THREAD, WORKER, OTHER_THREAD, STREAM = range(4)
# Each step has a slot of host time, in which its annotation lies on the main thread, and another one for the
# range of the worker that takes it over: the second slot of a step lies after the first of the next step.
SLOT = 6
WORKER_LAG = 9

# name_id: kind and event class of a device event with that name
KERNELS = {
    1: ("gemm", "kernel", "compute"),
    2: ("fusion_3", "kernel", "compute"),
    3: ("ncclDevKernel_AllReduce_Sum_f32", "kernel", "collective"),
    4: ("MemcpyD2D", "memcpy", "copy"),
    5: ("__amd_rocclr_copyBuffer.kd", "kernel", "copy"),
}
# name_id: op_name, phase and component
OP_NAMES: dict[int | None, tuple[str, str, str]] = {
    None: ("", "unattributed", "unattributed"),
    11: ("jit(f)/jvp(mlp)/dot", "forward", "mlp"),
    12: ("jit(f)/jvp(norm)/mul", "forward", "norm"),
    13: ("jit(f)/transpose(jvp(mlp))/dot", "backward", "mlp"),
    14: ("jit(f)/transpose(jvp(mlp))/checkpoint/rematted_computation/dot", "remat", "mlp"),
    15: ("jit(f)/optimizer/mul", "update", "optimizer"),
    16: ("jit(f)/mul", "unattributed", "unattributed"),
}
OTHER_NAME = 99


@dataclass(frozen=True)
class Interval:
    start: int
    end: int

    def holds(self, time: int) -> bool:
        return self.start <= time < self.end


@dataclass(frozen=True)
class Launch:
    thread: int
    time: int


@dataclass(frozen=True)
class Event:
    """A device event and its host call; with `is_id_lost` one without a call has an id nevertheless."""

    device: int
    name_id: int
    op_name_id: int | None
    role: str
    span: Interval
    launch: Launch | None
    is_id_lost: bool


@dataclass(frozen=True)
class Capture:
    annotations: dict[int, Interval]  # by step number
    worker_ranges: dict[int, Interval]
    events: list[Event]


@dataclass(frozen=True)
class Work:
    """A work event as a step or the whole capture counts it."""

    event: Event
    span: Interval
    found_rank: int


def slots(first: int) -> st.SearchStrategy[Interval]:
    """A whole slot that begins at `first`, a part of it, or an empty one."""
    offsets = st.sampled_from([(0, SLOT), (0, SLOT), (1, SLOT - 1), (2, 2)])
    return offsets.map(lambda pair: Interval(first + pair[0], first + pair[1]))


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    steps = draw(st.sampled_from([(0, 1), (1, 2), (0, 2), (0, 1, 2), (1,), ()]))
    annotations = {step: draw(slots(step * SLOT)) for step in steps}
    worker_ranges = {step: draw(slots(step * SLOT + WORKER_LAG)) for step in steps}
    return Capture(annotations, worker_ranges, draw(st.lists(EVENTS, min_size=10, max_size=16)))


LAUNCHES = st.builds(
    Launch, st.sampled_from([MAIN_THREAD, WORKER, OTHER_THREAD]), st.integers(0, 3 * SLOT + WORKER_LAG)
)
EVENTS = st.builds(
    Event,
    device=st.integers(0, DEVICES - 1),
    name_id=st.sampled_from(sorted(KERNELS)),
    op_name_id=st.sampled_from(list(OP_NAMES)),
    role=st.sampled_from(["work", "work", "work", "work", "work", "enclosing", "derived", "marker"]),
    span=st.builds(
        lambda start, length: Interval(start, start + length), st.integers(0, 16), st.integers(0, 8)
    ),
    launch=st.none() | LAUNCHES | LAUNCHES,
    is_id_lost=st.booleans(),
)


def step_of_launch(capture: Capture, launch: Launch) -> tuple[int, int] | None:
    """Step number and rank of the evidence for it."""
    for step, annotation in capture.annotations.items():
        if launch.thread == MAIN_THREAD and annotation.holds(launch.time):
            return step, 1
    for step, taken_over in capture.worker_ranges.items():
        # An empty annotation holds no event that could hand work over.
        is_handed_over = capture.annotations[step].start < capture.annotations[step].end
        if launch.thread == WORKER and is_handed_over and taken_over.holds(launch.time):
            return step, 2
    for step, annotation in capture.annotations.items():
        if annotation.holds(launch.time):
            return step, 3
    return None


def work_by_step(capture: Capture, device: int) -> dict[int | None, list[Work]]:
    """The work of one device: of the whole capture under None, and of each step."""
    work = [event for event in capture.events if event.device == device and event.role == "work"]
    found: dict[int | None, list[Work]] = defaultdict(list)
    for event in work:
        found[None].append(Work(event, event.span, 0))
        step_and_rank = step_of_launch(capture, event.launch) if event.launch else None
        if step_and_rank:
            step, rank = step_and_rank
            found[step].append(Work(event, event.span, rank))
    windows = {step: window_of(members) for step, members in found.items() if step is not None}
    for event in work:
        if event.launch is None:
            for step in sorted(windows):
                if windows[step].holds(event.span.start):
                    clipped = Interval(event.span.start, min(event.span.end, windows[step].end))
                    found[step].append(Work(event, clipped, 0))
                    break
    return found


def window_of(members: Iterable[Work]) -> Interval:
    spans = [member.span for member in members]
    return Interval(min(span.start for span in spans), max(span.end for span in spans))


def covered(members: Iterable[Work]) -> set[int]:
    """Every picosecond in which at least one of `members` runs."""
    return {time for member in members for time in range(member.span.start, member.span.end)}


def summed(members: Iterable[Work]) -> int:
    return sum(member.span.end - member.span.start for member in members)


def of_class(members: list[Work], event_class: str) -> set[int]:
    return covered(member for member in members if KERNELS[member.event.name_id][2] == event_class)


def phase(member: Work) -> str:
    is_collective = KERNELS[member.event.name_id][2] == "collective"
    return "communication" if is_collective else OP_NAMES[member.event.op_name_id][1]


def phase_and_component(member: Work) -> tuple[str, str]:
    return phase(member), OP_NAMES[member.event.op_name_id][2]


def grouped(members: list[Work], key: Callable[[Work], Any]) -> dict[Any, list[Work]]:
    groups: dict[Any, list[Work]] = defaultdict(list)
    for member in members:
        groups[key(member)].append(member)
    return groups


def ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def device_time_row(members: list[Work]) -> tuple[int, ...]:
    window = window_of(members)
    compute, communication, copy = (of_class(members, name) for name in ("compute", "collective", "copy"))
    busy = compute | communication | copy
    length = window.end - window.start
    return (
        length,
        len(busy),
        length - len(busy),
        len(compute),
        len(communication),
        len(copy),
        len(compute & communication),
        len(communication - compute),
        len(copy - compute - communication),
    )


def expected_rows(examples: list[Capture]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each view by its name."""
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for capture_id, capture in enumerate(examples):
        # What encloses or repeats other work is not the work that a call launched.
        without_work = [event.launch for event in capture.events if event.role in ("enclosing", "derived")]
        incomplete = {
            found[0] for launch in without_work if launch and (found := step_of_launch(capture, launch))
        }
        for device in range(DEVICES):
            for step, members in work_by_step(capture, device).items():
                key = (capture_id, device_id(capture_id, device), device, step)
                rows["device_time"].append((*key, *device_time_row(members)))
                for name, phase_members in grouped(members, phase).items():
                    total = summed(phase_members)
                    share = ratio(total, summed(members))
                    rows["phase_time"].append((*key, name, total, len(covered(phase_members)), share))
                    for names, component_members in grouped(phase_members, phase_and_component).items():
                        part = summed(component_members)
                        rows["component_time"].append(
                            (*key, *names, part, len(covered(component_members)), ratio(part, total))
                        )
                if step is not None:
                    window = window_of(members)
                    weakest = max(member.found_rank for member in members)
                    found_by = ("launch", "context", "host_time")[weakest - 1]
                    times = (window.start, window.end, window.end - window.start)
                    is_complete = step not in incomplete
                    rows["steps"].append((*key, *times, is_complete, found_by, len(members)))
    return rows


def device_id(capture_id: int, device: int) -> int:
    return 10 * capture_id + device


QUERIES = {
    "device_time": """SELECT capture_id, device_id, device_ordinal, step_num, window_ps, busy_ps, idle_ps,
        compute_ps, communication_ps, copy_ps, overlap_ps, exposed_communication_ps, exposed_copy_ps
        FROM v1.device_time""",
    "phase_time": """SELECT capture_id, device_id, device_ordinal, step_num, phase, sum_ps, union_ps,
        share_ratio FROM v1.phase_time""",
    "component_time": """SELECT capture_id, device_id, device_ordinal, step_num, phase, component, sum_ps,
        union_ps, share_ratio FROM v1.component_time""",
    "steps": """SELECT capture_id, device_id, device_ordinal, step_num, start_ps, end_ps, duration_ps,
        is_complete, found_by, device_event_count FROM v1.steps""",
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse with empty captures, whose events each example replaces."""
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        names = {name_id: kernel[0] for name_id, kernel in KERNELS.items()}
        names |= {name_id: op[0] for name_id, op in OP_NAMES.items() if name_id is not None}
        insert(connection, "names (name_id, name)", [*names.items(), (OTHER_NAME, "host")])
        insert(
            connection,
            "op_name_scopes (name_id, position, segment, scope, transforms, is_last)",
            [
                (name_id, part.position, part.segment, part.scope, part.transforms, part.is_last)
                for name_id, (op_name, _, _) in OP_NAMES.items()
                if name_id is not None
                for part in split_op_name(op_name)
            ],
        )
        ids = range(CAPTURES)
        insert(
            connection,
            "captures (capture_id, run_id, artifact_id, source_kind)",
            [(capture_id, 1, capture_id, "xspace") for capture_id in ids],
        )
        insert(
            connection,
            "devices (device_id, run_id, hostname, device_type, device_ordinal)",
            [(device_id(capture_id, n), 1, "", "GPU", n) for capture_id in ids for n in range(DEVICES)],
        )
        insert(
            connection,
            "tracks (capture_id, track_id, track_kind, track_name)",
            [
                (capture_id, track, "stream" if track == STREAM else "thread", "")
                for capture_id in ids
                for track in (MAIN_THREAD, WORKER, OTHER_THREAD, STREAM)
            ],
        )
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, target: str, rows: Iterable[tuple[Any, ...]]) -> None:
    literals = [
        "(" + ", ".join("NULL" if value is None else repr(value) for value in row) + ")" for row in rows
    ]
    if literals:
        connection.execute(f"INSERT INTO main.{target} VALUES {', '.join(literals)}")


def fill(connection: duckdb.DuckDBPyConnection, examples: list[Capture]) -> None:
    for table in ("steps", "host_events", "host_flows", "ops", "device_events"):
        connection.execute(f"DELETE FROM main.{table}")
    steps: list[tuple[Any, ...]] = []
    host: list[tuple[Any, ...]] = []
    flows: list[tuple[Any, ...]] = []
    ops: list[tuple[Any, ...]] = []
    device: list[tuple[Any, ...]] = []

    def add_host_event(capture_id: int, track: int, span: Interval, correlation_id: int | None) -> None:
        host.append((capture_id, len(host), track, OTHER_NAME, span.start, span.end, correlation_id))

    def add_flow(capture_id: int, *links: int | None) -> None:
        flows.append((capture_id, len(host) - 1, *links))

    for capture_id, capture in enumerate(examples):
        for step, span in capture.annotations.items():
            steps.append((capture_id, step, step, OTHER_NAME, MAIN_THREAD, span.start, span.end, "test"))
        for step, span in capture.worker_ranges.items():
            begin = capture.annotations[step].start
            add_host_event(capture_id, MAIN_THREAD, Interval(begin, begin), None)
            add_flow(capture_id, 14, step, None, None)
            add_host_event(capture_id, WORKER, span, None)
            add_flow(capture_id, None, None, 14, step)
        op_names = [name_id for name_id in OP_NAMES if name_id is not None]
        ops += [(capture_id, op_id, name_id) for op_id, name_id in enumerate(op_names)]
        for number, event in enumerate(capture.events):
            op_id = None if event.op_name_id is None else op_names.index(event.op_name_id)
            # A lost id is above those of the calls: one below them would be of before the capture.
            correlation_id = len(capture.events) + number if event.is_id_lost else None
            if event.launch is not None:
                correlation_id = number
                begin = event.launch.time
                call = Interval(begin, begin + 1)
                add_host_event(capture_id, event.launch.thread, call, number)
            device.append(
                (
                    *(capture_id, number, device_id(capture_id, event.device), STREAM, event.name_id),
                    *(event.span.start, event.span.end, KERNELS[event.name_id][1], event.role),
                    *(correlation_id, op_id),
                )
            )
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
        "host_flows (capture_id, host_event_id, producer_type, producer_id, consumer_type, consumer_id)",
        flows,
    )
    insert(connection, "ops (capture_id, op_id, op_name_id)", ops)
    insert(
        connection,
        "device_events (capture_id, device_event_id, device_id, track_id, name_id, start_ps, end_ps, kind, "
        "role, correlation_id, op_id)",
        device,
    )
    keep_all_rows(connection)


@given(examples=st.lists(captures(), min_size=CAPTURES, max_size=CAPTURES))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_views_agree_with_a_count_of_every_picosecond(
    connection: duckdb.DuckDBPyConnection, examples: list[Capture]
) -> None:
    fill(connection, examples)
    expected = expected_rows(examples)
    for view, query in QUERIES.items():
        found = connection.execute(query).fetchall()
        assert sorted(found, key=sort_key) == sorted(expected[view], key=sort_key), view


def sort_key(row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is None, 0 if value is None else value) for value in row)
