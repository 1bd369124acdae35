"""Replays a heap trace of XLA's buffer assignment: which buffers share memory, and when each is live.

XLA places temporary buffers by walking through the program in schedule order and noting an event wherever a
buffer begins or ends. A buffer either gets memory of its own or shares that of an earlier one; the memory is
in use as long as any buffer of the group is live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ALLOC, FREE, SHARE = 0, 1, 2
EVENT_KINDS = {ALLOC: "alloc", FREE: "free", SHARE: "share"}
MAX_BYTES = 2**63 - 1


@dataclass(frozen=True)
class HeapReplay:
    """What a heap trace says, event by event; times are positions in the trace.

    `live_bytes[i]` is the memory in use after event i. `lifetimes` has for each buffer the half-open range of
    events after which it is live: from the event that begins it up to, not including, the one that frees it.
    `canonical` maps each buffer to the one whose memory it uses, itself where it shares none, so `live_bytes`
    is the sum of the sizes of the distinct canonical buffers that are live. `peak_event` is the first event
    after which most memory is in use, -1 in a trace without events.
    """

    live_bytes: list[int]
    lifetimes: dict[int, tuple[int, int]]
    canonical: dict[int, int]
    peak_event: int
    peak_bytes: int


def replay_heap(
    events: Iterable[Any], sizes: Mapping[int, int], complain: Callable[[str], None]
) -> HeapReplay:
    """Replay the events of a HeapSimulatorTrace over buffers of `sizes` bytes.

    `complain` is called with a sentence for each event that contradicts the ones before it. Such an event is
    ignored, except that a buffer may live a second time (its lifetime then spans both lives) and may share
    memory that was never allocated. A buffer without a known size counts as empty, one that is never freed
    lives to the end of the trace. Amounts above MAX_BYTES are cut to it.
    """
    live_bytes: list[int] = []
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    canonical: dict[int, int] = {}
    live_buffers: set[int] = set()
    users: dict[int, int] = {}  # live buffers by the canonical buffer whose memory they use
    live = peak_bytes = 0
    peak_event = index = -1
    for index, event in enumerate(events):
        buffer_id, kind = event.buffer_id, event.kind
        if kind == FREE:
            if buffer_id in live_buffers:
                live_buffers.remove(buffer_id)
                ends[buffer_id] = index
                owner = canonical[buffer_id]
                users[owner] -= 1
                if users[owner] == 0:
                    live -= sizes.get(owner, 0)
            else:
                complain(f"event {index} frees buffer {buffer_id}, which is not live")
        elif kind not in (ALLOC, SHARE):
            complain(f"event {index} is of the unknown kind {kind}")
        elif buffer_id in live_buffers:
            complain(f"event {index} begins buffer {buffer_id}, which is live")
        else:
            if buffer_id in starts:
                complain(f"event {index} begins buffer {buffer_id} a second time")
            owner = buffer_id
            if kind == SHARE:
                shared = event.share_with_canonical_id
                owner = canonical.get(shared, shared)
                if shared not in canonical:
                    complain(f"event {index} shares buffer {shared}, which was never allocated")
            starts.setdefault(buffer_id, index)
            live_buffers.add(buffer_id)
            canonical[buffer_id] = owner
            users[owner] = users.get(owner, 0) + 1
            if users[owner] == 1:
                live += sizes.get(owner, 0)
        live_bytes.append(live)
        if peak_event < 0 or live > peak_bytes:
            peak_event, peak_bytes = index, live
    if live_buffers:
        complain(f"{len(live_buffers)} buffers with {live} bytes are never freed")
        ends.update(dict.fromkeys(live_buffers, index + 1))
    if peak_bytes > MAX_BYTES:
        complain(f"{peak_bytes} bytes are live after event {peak_event}, more than any memory has")
        peak_bytes = MAX_BYTES
        live_bytes = [min(amount, MAX_BYTES) for amount in live_bytes]
    return HeapReplay(
        live_bytes=live_bytes,
        lifetimes={buffer_id: (start, ends[buffer_id]) for buffer_id, start in starts.items()},
        canonical=canonical,
        peak_event=peak_event,
        peak_bytes=peak_bytes,
    )
