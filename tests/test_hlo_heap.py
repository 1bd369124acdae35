"""The replay of heap traces, against sums over the buffers that are live."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracewh.ingest.hlo_heap import ALLOC, FREE, MAX_BYTES, SHARE, HeapReplay, replay_heap


@dataclass(frozen=True)
class Event:
    kind: int
    buffer_id: int
    share_with_canonical_id: int = 0


def alloc(buffer_id: int) -> Event:
    return Event(ALLOC, buffer_id)


def free(buffer_id: int) -> Event:
    return Event(FREE, buffer_id)


def share(buffer_id: int, canonical_id: int) -> Event:
    return Event(SHARE, buffer_id, canonical_id)


def replay(events: list[Event], sizes: dict[int, int]) -> tuple[HeapReplay, list[str]]:
    complaints: list[str] = []
    return replay_heap(events, sizes, complaints.append), complaints


SIZES = {1: 100, 2: 30, 3: 7, 4: 100}


@pytest.mark.parametrize(
    ("events", "live_bytes", "peak_event"),
    [
        ([], [], -1),
        ([alloc(1), free(1)], [100, 0], 0),
        ([alloc(1), alloc(2), free(1), alloc(3), free(2), free(3)], [100, 130, 30, 37, 7, 0], 1),
        # The peak is reached twice: the first time counts.
        ([alloc(1), free(1), alloc(4), free(4)], [100, 0, 100, 0], 0),
        # Shared memory counts once, until the last user is gone, whoever that is.
        ([alloc(1), share(4, 1), alloc(2), free(1), free(4), free(2)], [100, 100, 130, 130, 30, 0], 2),
        ([alloc(1), share(4, 1), free(4), alloc(2), free(1), free(2)], [100, 100, 100, 130, 30, 0], 3),
        # A smaller user keeps all of it.
        ([alloc(1), share(3, 1), free(1), alloc(2), free(3), free(2)], [100, 100, 100, 130, 30, 0], 3),
        # Memory is taken over after it was freed; its size is that of the first owner.
        ([alloc(1), free(1), share(3, 1), alloc(2), free(3), free(2)], [100, 0, 100, 130, 30, 0], 3),
        # A chain of users ends at the first owner.
        ([alloc(1), free(1), share(2, 1), free(2), share(3, 2), free(3)], [100, 0, 100, 0, 100, 0], 0),
        # Buffers without bytes: the peak is the first event.
        ([alloc(9), free(9)], [0, 0], 0),
    ],
)
def test_live_bytes(events: list[Event], live_bytes: list[int], peak_event: int) -> None:
    found, complaints = replay(events, {**SIZES, 9: 0})
    assert found.live_bytes == live_bytes
    assert (found.peak_event, found.peak_bytes) == (peak_event, max(live_bytes, default=0))
    assert complaints == []


def test_lifetimes_and_owners() -> None:
    found, _ = replay(
        [alloc(1), alloc(2), free(1), share(4, 1), share(3, 4), free(4), free(2), free(3)], SIZES
    )
    assert found.lifetimes == {1: (0, 2), 2: (1, 6), 4: (3, 5), 3: (4, 7)}
    assert found.canonical == {1: 1, 2: 2, 4: 1, 3: 1}


@pytest.mark.parametrize(
    ("events", "live_bytes", "complaints"),
    [
        ([free(1), alloc(1), free(1)], [0, 100, 0], ["event 0 frees buffer 1, which is not live"]),
        (
            [alloc(1), free(1), free(1), alloc(2), free(2)],
            [100, 0, 0, 30, 0],
            ["event 2 frees buffer 1, which is not live"],
        ),
        ([alloc(1), alloc(1), free(1)], [100, 100, 0], ["event 1 begins buffer 1, which is live"]),
        (
            [alloc(1), alloc(2), share(2, 1), free(1), free(2)],
            [100, 130, 130, 30, 0],
            ["event 2 begins buffer 2, which is live"],
        ),
        (
            [alloc(1), free(1), alloc(1), free(1)],
            [100, 0, 100, 0],
            ["event 2 begins buffer 1 a second time"],
        ),
        ([share(2, 1), free(2)], [100, 0], ["event 0 shares buffer 1, which was never allocated"]),
        ([share(2, 77), free(2)], [0, 0], ["event 0 shares buffer 77, which was never allocated"]),
        ([share(2, 2), free(2)], [30, 0], ["event 0 shares buffer 2, which was never allocated"]),
        ([Event(7, 1), alloc(1), free(1)], [0, 100, 0], ["event 0 is of the unknown kind 7"]),
        ([Event(-1, 1)], [0], ["event 0 is of the unknown kind -1"]),
        ([alloc(1), alloc(2), free(1)], [100, 130, 30], ["1 buffers with 30 bytes are never freed"]),
    ],
)
def test_contradictions(events: list[Event], live_bytes: list[int], complaints: list[str]) -> None:
    found, complained = replay(events, SIZES)
    assert found.live_bytes == live_bytes
    assert complained == complaints


def test_a_buffer_that_is_never_freed_lives_to_the_end() -> None:
    found, _ = replay([alloc(1), alloc(2), free(1)], SIZES)
    assert found.lifetimes == {1: (0, 2), 2: (1, 3)}


def test_a_second_life_prolongs_the_first() -> None:
    found, _ = replay([alloc(1), free(1), alloc(2), alloc(1), free(1), free(2)], SIZES)
    assert found.lifetimes == {1: (0, 4), 2: (2, 5)}


def test_more_bytes_than_a_bigint_holds() -> None:
    found, complaints = replay([alloc(1), alloc(2), free(1), free(2)], {1: MAX_BYTES, 2: 5})
    assert found.live_bytes == [MAX_BYTES, MAX_BYTES, 5, 0]
    assert (found.peak_event, found.peak_bytes) == (1, MAX_BYTES)
    assert complaints == [f"{MAX_BYTES + 5} bytes are live after event 1, more than any memory has"]


BUFFERS = st.integers(0, 5)
EVENTS = st.lists(
    st.builds(alloc, BUFFERS) | st.builds(free, BUFFERS) | st.builds(share, BUFFERS, BUFFERS), max_size=30
)


@given(EVENTS, st.lists(st.integers(0, 1000), min_size=3, max_size=6))
def test_any_events(events: list[Event], sizes: list[int]) -> None:
    """Against a heap that is summed up anew after each event; buffers without a size have none."""
    size = dict(enumerate(sizes))
    owners: dict[int, int] = {}
    live: set[int] = set()
    expected = []
    contradictions = 0
    begun: set[int] = set()
    for event in events:
        buffer_id = event.buffer_id
        if event.kind == FREE:
            contradictions += buffer_id not in live
            live.discard(buffer_id)
        elif buffer_id in live:
            contradictions += 1
        else:
            contradictions += buffer_id in begun
            begun.add(buffer_id)
            if event.kind == SHARE:
                shared = event.share_with_canonical_id
                contradictions += shared not in owners
                owners[buffer_id] = owners.get(shared, shared)
            else:
                owners[buffer_id] = buffer_id
            live.add(buffer_id)
        expected.append(sum(size.get(owner, 0) for owner in {owners[user] for user in live}))
    contradictions += bool(live)

    found, complaints = replay(events, size)
    assert found.live_bytes == expected
    assert found.peak_bytes == max(expected, default=0)
    assert len(complaints) == contradictions
    if contradictions == 0:
        for position, bytes_then in enumerate(expected):
            users = [it for it, (start, end) in found.lifetimes.items() if start <= position < end]
            assert sum(size.get(owner, 0) for owner in {found.canonical[it] for it in users}) == bytes_then
