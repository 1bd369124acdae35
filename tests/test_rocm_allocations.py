"""Allocations and releases as rows of their own: where, how much, and inside which call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .rocpd_files import read_one, rows, stats, write


def allocate(writer: Any, event_id: int | None, **row: Any) -> None:
    """Insert an allocation of 7 ns, 100 ns after the clock's start."""
    start = writer.run.clock_start_ns + 100
    usual = {"type": "ALLOC", "level": "REAL", "start": start, "end": start + 7, "size": 64}
    writer.insert("memory_allocate", **writer.place(), event_id=event_id, **(usual | row))


def test_operations_levels_and_places(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute(f'DELETE FROM "{writer.run.table("memory_allocate")}"')
        event = writer.event("MEMORY_ALLOCATION", 900, 899)
        allocate(writer, event, agent_id=3, address=0x7F00_0000_0000, queue_id=1, stream_id=2)
        inside = writer.event("MEMORY_ALLOCATION", 0, 901)
        allocate(writer, inside, type="FREE", level="VIRTUAL", agent_id=None, address=-16, size=0)
        allocate(writer, None, type="REALLOC", agent_id=0)
        allocate(writer, writer.event("SCRATCH_MEMORY", 0), type="RECLAIM", level="SCRATCH", agent_id=2)
        allocate(writer, writer.event("MEMORY_ALLOCATION", 0), type=None, level=None, agent_id=1)

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    found = rows(capture, "memory_allocations")
    assert [row["memory_allocation_id"] for row in found] == [0, 1, 2, 3, 4]
    told = ("operation", "memory_level", "device_index", "address", "bytes", "queue_id", "stream_id")
    # GPUs are the first devices: agents 2 and 3, then the CPUs, agents 0 and 1.
    assert [tuple(row[name] for name in told) for row in found] == [
        ("alloc", "real", 1, 0x7F00_0000_0000, 64, 1, 2),
        ("free", "virtual", None, -16, 0, None, None),
        ("realloc", "real", 2, None, 64, None, None),
        ("reclaim", "scratch", 0, None, 64, None, None),
        ("allocation", "real", 3, None, 64, None, None),
    ]
    # The id of its own event, else that of the call around it.
    assert [row["correlation_id"] for row in found] == [900, 901, None, None, None]
    assert {(row["start_ps"], row["end_ps"]) for row in found} == {(100_000, 107_000)}
    (track,) = {row["track_id"] for row in found}
    assert rows(capture, "tracks")[track]["track_name"] == "python"
    # They are no events of the host or of a device.
    assert not {"MEMORY_ALLOCATION", "ALLOC"} & {row["name"] for row in rows(capture, "host_events")}
    # The event of the allocation that was deleted.
    assert [(item.problem, item.occurrences) for item in capture.problems] == [("orphan_event", 1)]


@pytest.mark.parametrize(
    ("extdata", "flags", "kept"),
    [
        ('{"flags": 5}', 5, {}),
        ('{"flags": "5"}', 5, {}),
        ('{"flags": 0}', 0, {}),
        ("{}", None, {}),
        ('{"flags": "0x5"}', None, {"flags": "0x5"}),
        ('{"flags": true}', None, {"flags": "true"}),
        ('{"flags": 18446744073709551615}', None, {"flags": -1}),
        ('{"flags": [1]}', None, {"flags": "[1]"}),
        ('{"flags": 7, "reason": "spill"}', 7, {"reason": "spill"}),
        ("[1]", None, {"extdata": "[1]"}),
    ],
)
def test_flags_of_scratch(tmp_path: Path, extdata: str, flags: int | None, kept: dict[str, Any]) -> None:
    """A number however it is written; what is none is kept as it came."""

    def change(writer: Any) -> None:
        writer.connection.execute(f'DELETE FROM "{writer.run.table("memory_allocate")}"')
        event = writer.event("SCRATCH_MEMORY", 0)
        allocate(writer, event, level="SCRATCH", agent_id=2, extdata=extdata)

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    (scratch,) = rows(capture, "memory_allocations")
    assert (scratch["memory_level"], scratch["flags"]) == ("scratch", flags)
    assert stats(capture, "memory_allocation", 0) == kept


def test_rows_that_lead_nowhere_are_kept(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        allocate(writer, None, agent_id=77)
        writer.connection.execute(f'UPDATE "{writer.run.table("memory_allocate")}" SET tid = 55')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert [row["device_index"] for row in rows(capture, "memory_allocations")] == [0, None]
    found = {(item.problem, item.place): item.occurrences for item in capture.problems}
    assert found == {
        ("dangling_reference", "rocpd_memory_allocate.agent_id"): 1,
        ("dangling_reference", "rocpd_memory_allocate.tid"): 2,
    }
