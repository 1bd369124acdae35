"""The number by which two files about one process are known: of its times, whatever their order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tracewh.ingest import rocpd, sqlite_file
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_fingerprint import fingerprint
from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.sqlite_file import SqliteFile

from .rocpd_files import query, read_one, write

Times = list[tuple[int | None, int | None]]


def process(**tables: Times) -> TableProcess:
    """A process with times of the given facts and nothing else."""
    arrays = {
        base: pa.table(
            {
                "id": pa.array(range(len(times)), pa.int64()),
                "start": pa.array([start for start, _ in times], pa.int64()),
                "end": pa.array([end for _, end in times], pa.int64()),
            }
        )
        for base, times in tables.items()
    }
    return TableProcess("made up", arrays, {}, {}, ProblemCounter())


def some_times(seed: int = 1, count: int = 500) -> Times:
    generator = random.Random(seed)
    starts = [generator.randrange(10**15, 2 * 10**15) for _ in range(count)]
    return [(start, start + generator.randrange(10**6)) for start in starts]


def test_order_does_not_count() -> None:
    times = some_times()
    shuffled = random.Random(2).sample(times, len(times))
    assert (
        fingerprint(process(kernel_dispatch=shuffled))
        == fingerprint(process(kernel_dispatch=times))
        is not None
    )


@pytest.mark.parametrize("change", [1, -1, 1 << 40, 256])
def test_each_time_counts(change: int) -> None:
    times = some_times()
    known = {fingerprint(process(kernel_dispatch=times))}
    for position in (0, 250, 499):
        start, end = times[position]
        assert start is not None
        assert end is not None
        for other in (
            (start + change, end),
            (start, end + change),
            (start + change, end + change),
            (end, start),
        ):
            known.add(
                fingerprint(process(kernel_dispatch=[*times[:position], other, *times[position + 1 :]]))
            )
    assert len(known) == 1 + 3 * 4


def test_times_belong_together() -> None:
    """Swapped ends, moved parts, and rows more or fewer give other numbers."""
    times = some_times(count=6)
    ends = [end for _, end in times]
    swapped = [(start, end) for (start, _), end in zip(times, [ends[1], ends[0], *ends[2:]], strict=True)]
    variants = [times, swapped, times[:-1], [*times, times[0]], [*times, (0, 0)], [*times[:-1], times[0]]]
    assert len({fingerprint(process(kernel_dispatch=variant)) for variant in variants}) == len(variants)


def test_what_it_is_made_of() -> None:
    times = some_times()
    of_kernels = fingerprint(process(kernel_dispatch=times, memory_copy=some_times(2), region=some_times(3)))
    assert of_kernels == fingerprint(process(kernel_dispatch=times))
    of_copies = fingerprint(process(kernel_dispatch=[], memory_copy=times, region=some_times(3)))
    assert of_copies == fingerprint(process(memory_copy=times)) != of_kernels
    of_calls = fingerprint(process(region=times))
    assert len({of_kernels, of_copies, of_calls}) == 3


def test_nothing_has_none() -> None:
    assert fingerprint(process()) is None
    assert fingerprint(process(kernel_dispatch=[], memory_copy=[], region=[])) is None
    assert fingerprint(process(kernel_dispatch=[(None, 5), (5, None)])) is None


def test_a_row_without_a_time_does_not_count() -> None:
    times = some_times()
    assert fingerprint(process(kernel_dispatch=[(None, 7), *times])) == fingerprint(
        process(kernel_dispatch=times)
    )


def test_of_a_database_and_of_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any number of parts, and with the rows in another order."""
    path = write(tmp_path / "t.db", steps=1)
    times: Any = query(path, 'SELECT start, "end" FROM rocpd_kernel_dispatch')
    expected = fingerprint(process(kernel_dispatch=times))
    assert read_one(path).fingerprint == expected
    monkeypatch.setattr(sqlite_file, "_ROWS_PER_FETCH", 7)
    with SqliteFile(path, compiled=False) as file:
        (found,) = rocpd.read_processes(file)
        assert fingerprint(found) == expected

    def reverse(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(f'UPDATE "{table}" SET id = -id')
        writer.connection.execute(f'UPDATE "{table}" SET id = id + 1000')

    assert read_one(write(tmp_path / "reversed.db", reverse, steps=1)).fingerprint == expected

    def shift(writer: Any) -> None:
        writer.connection.execute(
            f'UPDATE "{writer.run.table("kernel_dispatch")}" SET "end" = "end" + 1 WHERE id = 9'
        )

    assert read_one(write(tmp_path / "shifted.db", shift, steps=1)).fingerprint not in (expected, None)
