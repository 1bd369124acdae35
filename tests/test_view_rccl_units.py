"""v1._rccl_host_calls against a machine with a stack that walks through random calls of a thread."""

from __future__ import annotations

import random

import pytest

from .live_views import live_warehouse

SEEDS = range(200)
START, END, SEND, INIT = "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclCommInitRank"
Call = tuple[int, int, int, str]  # id, start, end, function


def random_calls(rng: random.Random) -> list[Call]:
    """Calls of one thread in order of start: groups that may be cut off, and calls inside of calls."""
    calls: list[Call] = []
    clock = 0
    for _ in range(rng.randrange(1, 30)):
        function = rng.choice([START, END, SEND, SEND, INIT])
        start = clock = clock + rng.randrange(1, 3)
        number = len(calls)
        calls.append((number, start, 0, function))
        inner = [] if rng.random() < 0.7 else [rng.choice([START, SEND, END]) for _ in range(3)]
        for name in inner:
            clock += 1
            calls.append((len(calls), clock, clock + 1, name))
            clock += 1
        clock += 1
        calls[number] = (number, start, clock, function)
    return calls


def expected_units(calls: list[Call]) -> dict[int, tuple[bool, int]]:
    """For each call whether it is inside of another one, and which call ends the unit that it belongs to."""
    units: dict[int, tuple[bool, int]] = {}
    waiting: list[int] = []  # calls of the open group
    depth, outer, outer_end = 0, -1, 0
    inside: dict[int, list[int]] = {}
    for number, start, end, function in calls:
        if start < outer_end:
            inside.setdefault(outer, []).append(number)
            continue
        outer, outer_end = number, end
        units[number] = (False, number)
        depth = max(0, depth + {START: 1, END: -1}.get(function, 0))
        waiting.append(number)
        if depth == 0:
            if function == END:
                units.update((member, (False, number)) for member in waiting)
            waiting.clear()
    for outer, members in inside.items():
        units.update((member, (True, units[outer][1])) for member in members)
    return units


@pytest.fixture(scope="module")
def units() -> dict[int, dict[int, tuple[bool, int]]]:
    """What the view says of the calls of each seed, which are a capture each."""
    functions = {START: 1, END: 2, SEND: 3, INIT: 4}
    with live_warehouse() as connection:
        connection.executemany(
            "INSERT INTO main.names (name_id, name) VALUES (?, ?)",
            [(name_id, name) for name, name_id in functions.items()],
        )
        connection.executemany(
            "INSERT INTO main.host_events (capture_id, host_event_id, track_id, name_id, start_ps, end_ps) "
            "VALUES (?, ?, 0, ?, ?, ?)",
            [
                (seed, number, functions[function], start, end)
                for seed in SEEDS
                for number, start, end, function in random_calls(random.Random(seed))
            ],
        )
        rows = connection.execute(
            "SELECT capture_id, host_event_id, is_nested, unit_place FROM v1._rccl_host_calls"
        ).fetchall()
    found: dict[int, dict[int, tuple[bool, int]]] = {seed: {} for seed in SEEDS}
    for seed, number, is_nested, place in rows:
        # A unit is told by the place of its last outermost call, which counts from 1.
        found[seed][number] = (is_nested, place - 1)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_units(units: dict[int, dict[int, tuple[bool, int]]], seed: int) -> None:
    assert units[seed] == expected_units(random_calls(random.Random(seed)))
