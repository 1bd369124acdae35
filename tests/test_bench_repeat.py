"""The benchmark's maker of large captures, against protobuf's own reading of what it wrote."""

from __future__ import annotations

import functools
import gzip
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from .xspace_oracle import Ref, SpaceBuilder, Unsigned, XSpace, fields

ROOT = Path(__file__).parents[1]
REPEATER = ROOT / "bench" / "repeat_capture.py"
FIXTURE = ROOT / "fixtures" / "h200_moe_direct" / "profile" / "vm.xplane.pb.gz"
SCOPES = b"/host:__ScopeRangeCallStack__"
# What a copy has of its own: everything else is to be as in the capture.
OWN = {b"correlation_id", b"scope_range_id", b"run_id", b"_p", b"_c", b"step_num"}
EXTRA = 1000


def repeat(capture: Path, out: Path, events: int) -> Any:
    command = [sys.executable, REPEATER, capture, out, "--events", str(events)]
    subprocess.run(command, check=True, capture_output=True)
    return XSpace.FromString(out.read_bytes())


@functools.cache
def source() -> Any:
    return XSpace.FromString(gzip.decompress(FIXTURE.read_bytes()))


def event_count(space: Any) -> int:
    return sum(len(line.events) for plane in space.planes for line in plane.lines)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repeated") / "out.xplane.pb"


@pytest.fixture(scope="module")
def repeated(out: Path) -> Any:
    """Three whole copies of the fixture, and the first EXTRA events of a fourth."""
    return repeat(FIXTURE, out, 3 * event_count(source()) + EXTRA)


def value(stat: Any) -> Any:
    which = stat.WhichOneof("value")
    return which and getattr(stat, which)


def stat(plane: Any, event: Any, *names: bytes) -> list[int]:
    """Values of the event's stats of those names."""
    return [value(s) for s in event.stats if plane.stat_metadata[s.metadata_id].name in names]


def content(plane: Any, event: Any) -> tuple[Any, ...]:
    """What a copy of an event shares with it."""
    stats = [
        (s.metadata_id, s.WhichOneof("value"), value(s))
        for s in event.stats
        if plane.stat_metadata[s.metadata_id].name not in OWN
    ]
    return event.metadata_id, event.duration_ps, stats


def lines_of(space: Any, planes: Iterable[int]) -> list[tuple[Any, Any]]:
    return [(space.planes[index], line) for index in planes for line in space.planes[index].lines]


def pairs(space: Any) -> list[tuple[Any, Any, Any]]:
    """(plane, line in the fixture, line in `space`)."""
    everywhere = range(len(source().planes))
    return [
        (plane, before, after)
        for (plane, before), (_, after) in zip(
            lines_of(source(), everywhere), lines_of(space, everywhere), strict=True
        )
    ]


def copies_of(before: Any, after: Any) -> list[list[Any]]:
    size = len(before.events)
    return [list(after.events[start : start + size]) for start in range(0, len(after.events), size)]


def period_ps(space: Any) -> int:
    _, before, after = max(pairs(space), key=lambda pair: len(pair[1].events))
    first, second = copies_of(before, after)[:2]
    return int(second[0].offset_ps - first[0].offset_ps)


def correlated(space: Any, plane_prefix: bytes) -> list[tuple[int, int]]:
    """(correlation id, start) of the events of those planes."""
    return [
        (number, line.timestamp_ns * 1000 + event.offset_ps)
        for plane in space.planes
        if plane.name.startswith(plane_prefix)
        for line in plane.lines
        for event in line.events
        for number in stat(plane, event, b"correlation_id")
    ]


def delays(space: Any) -> list[int]:
    """From each launch to its device event."""
    launches = dict(correlated(space, b"/host:CPU"))
    return [start - launches[n] for n, start in correlated(space, b"/device:") if n in launches]


def test_it_holds_exactly_the_events_asked_for(repeated: Any) -> None:
    assert event_count(repeated) == 3 * event_count(source()) + EXTRA
    for _, before, after in pairs(repeated):
        assert 3 * len(before.events) <= len(after.events) <= 4 * len(before.events)


def test_each_copy_is_the_capture_later(repeated: Any) -> None:
    period = period_ps(repeated)
    for plane, before, after in pairs(repeated):
        first_ps = min((event.offset_ps for event in before.events), default=0)
        last_ps = max((event.offset_ps + event.duration_ps for event in before.events), default=0)
        assert last_ps - first_ps <= period
        for index, copy in enumerate(copies_of(before, after)[:3]):
            for event, copied in zip(before.events, copy, strict=True):
                assert copied.offset_ps == event.offset_ps + index * period
                assert content(plane, copied) == content(plane, event)
        offsets = [event.offset_ps for event in after.events]
        assert offsets == sorted(offsets)


def test_the_last_copy_is_the_first_events_in_time(repeated: Any) -> None:
    period = period_ps(repeated)

    def start(line: Any, event: Any) -> int:
        return int(line.timestamp_ns * 1000 + event.offset_ps)

    wanted = sorted(start(line, event) for _, line, _ in pairs(repeated) for event in line.events)[:EXTRA]
    found = [
        start(after, event) - 3 * period
        for _, before, after in pairs(repeated)
        for event in after.events[3 * len(before.events) :]
    ]
    assert sorted(found) == wanted


def test_correlation_ids_stay_unique_and_join(repeated: Any) -> None:
    for prefix in (b"/host:CPU", b"/device:"):
        once = Counter(number for number, _ in correlated(source(), prefix))
        often = Counter(number for number, _ in correlated(repeated, prefix))
        assert set(once.values()) == set(often.values()) == {1}
        assert len(often) >= 3 * len(once)
    once, often = Counter(delays(source())), Counter(delays(repeated))
    in_the_cut = often - Counter({delay: 3 * count for delay, count in once.items()})
    # Each delay three times, and those of the cut copy, where not every kernel starts before the cut.
    assert often.total() == 3 * once.total() + in_the_cut.total()
    assert in_the_cut
    assert not in_the_cut - once


def test_steps_and_producers_go_on(repeated: Any) -> None:
    def values(space: Any, *names: bytes) -> list[int]:
        return [
            number
            for plane in space.planes
            for line in plane.lines
            for event in line.events
            for number in stat(plane, event, *names)
        ]

    steps = values(source(), b"step_num")
    wanted = list(range(min(steps), min(steps) + 3 * len(steps)))
    assert values(repeated, b"step_num")[: len(wanted)] == wanted
    for names in ([b"run_id"], [b"_p"]):
        assert len(set(values(repeated, *names))) == len(values(repeated, *names))

    def joined(space: Any) -> int:
        return len({number for number in values(space, b"_p") if number} & set(values(space, b"_c")))

    assert 3 * joined(source()) <= joined(repeated) <= 4 * joined(source())
    assert joined(source()) > 0


def test_scopes_of_copies_are_on_the_call_stack(repeated: Any) -> None:
    def depths(space: Any) -> list[int]:
        """Depth of the scope of each event of the first three copies of the lines."""
        (stack,) = (plane for plane in space.planes if plane.name == SCOPES)
        parents = {s.metadata_id: s.int64_value for s in stack.stats}
        assert len(parents) == len(stack.stats)
        found = []
        for plane, before, _ in pairs(space):
            everywhere = lines_of(space, range(len(space.planes)))
            after = next(line for _, line in everywhere if line.id == before.id)
            for event in after.events[: 3 * len(before.events)]:
                for scope in stat(plane, event, b"scope_range_id"):
                    depth = 0
                    while scope in parents:
                        scope, depth = parents[scope], depth + 1
                    found.append(depth)
        return found

    once = Counter(depths(source()))
    assert Counter(depths(repeated)) == Counter({depth: 3 * count for depth, count in once.items()})
    assert max(once) > 1


def test_metadata_is_kept_once_behind_the_lines(repeated: Any, out: Path) -> None:
    for before, after in zip(source().planes, repeated.planes, strict=True):
        assert after.name == before.name
        assert after.event_metadata == before.event_metadata
        assert after.stat_metadata == before.stat_metadata
        if before.name not in (SCOPES, b"Task Environment"):
            assert list(after.stats) == list(before.stats)
    planes = [data for number, data in fields(out.read_bytes()) if number == 1]
    numbers = [[number for number, _ in fields(plane)] for plane in planes]
    assert all(of_plane == sorted(of_plane) for of_plane in numbers)
    assert any({3, 4, 5} <= set(of_plane) for of_plane in numbers)


def test_the_profile_ends_later(repeated: Any) -> None:
    (before,), (after,) = (
        [
            s.uint64_value
            for plane in space.planes
            for s in plane.stats
            if plane.name == b"Task Environment"
            and plane.stat_metadata[s.metadata_id].name == b"profile_stop_time"
        ]
        for space in (source(), repeated)
    )
    assert (after - before) * 1000 == 3 * period_ps(repeated)


def synthetic() -> SpaceBuilder:
    """Ids signed, unsigned and 0 for none, an aggregate, and times told by stats and by the line."""
    builder = SpaceBuilder()
    builder.message.hostnames.append(b"host")
    builder.message.errors.append(b"dropped")
    host = builder.plane("/host:CPU", {"fact": Ref("text")}).line("thread", -5, 1000, "shown")
    host.event("launch", 10, 5, {"run_id": -2, "correlation_id": Unsigned(7)})
    host.event("enqueue", 20, 5, {"_p": Unsigned(2**64 - 2), "correlation_id": Unsigned(0)})
    host.event("consume", 30, 5, {"_c": 0})
    host.message.duration_ps = 40_000
    chip = builder.plane("/device:TPU:0").line("XLA Ops", 3)
    chip.event("fusion", 100, 2500, {"device_offset_ps": 100, "group_id": 4})
    chip.event("total", stats={"correlation_id": Unsigned(9)}, num_occurrences=6)
    return builder


def test_odd_ids_and_events_without_a_time(tmp_path: Path) -> None:
    capture = tmp_path / "capture.xplane.pb"
    capture.write_bytes(synthetic().serialize())
    space = repeat(capture, tmp_path / "out.xplane.pb", 10)
    (thread,), (chip,) = space.planes[0].lines, space.planes[1].lines
    # The longest line lasts 2500 ps, and times of a profile are whole nanoseconds.
    assert [event.offset_ps for event in thread.events] == [10, 20, 30, 3010, 3020, 3030]
    assert (thread.id, thread.timestamp_ns, thread.display_name) == (-5, 1000, b"shown")
    assert thread.duration_ps == 43_000
    ids = [[value(s) for s in event.stats] for event in thread.events]
    run_ids, producers = [ids[0][0], ids[3][0]], [ids[1][0], ids[4][0]]
    assert [number % 2**64 for number in run_ids] == producers
    assert run_ids[0] == -2 != run_ids[1]
    assert [ids[1][1], ids[4][1], ids[2], ids[5]] == [0, 0, [0], [0]]
    assert [event.WhichOneof("value") for event in chip.events] == ["offset_ps", "num_occurrences"] * 2
    assert [event.num_occurrences for event in chip.events] == [0, 6, 0, 6]
    assert [value(s) for event in (chip.events[0], chip.events[2]) for s in event.stats] == [100, 4, 3100, 5]
    numbers = [7, 9, value(thread.events[3].stats[1]), value(chip.events[3].stats[0])]
    assert len(set(numbers)) == 4
    assert (list(space.hostnames), list(space.errors)) == ([b"host"], [b"dropped"])


def test_less_than_the_capture_is_its_beginning(tmp_path: Path) -> None:
    capture = tmp_path / "capture.xplane.pb"
    capture.write_bytes(synthetic().serialize())
    space = repeat(capture, tmp_path / "out.xplane.pb", 3)
    # By start: fusion and total at 100 ps and 0 ps of a line at 0 ns, then launch at 1000 ns and 10 ps.
    assert [len(line.events) for plane in space.planes for line in plane.lines] == [1, 2]
    assert space.planes[0].lines[0].duration_ps == 40_000


def test_a_capture_without_events_is_named(tmp_path: Path) -> None:
    capture = tmp_path / "empty.xplane.pb"
    capture.write_bytes(b"")
    command = [sys.executable, REPEATER, capture, tmp_path / "out.xplane.pb", "--events", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"{capture}: The capture holds no events: there is nothing to repeat.\n"
