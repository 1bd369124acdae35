"""Durations of device events that cannot be true: what no sum holds is a problem, and not summed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracewh
from tracewh.ingest.device_time import LONGEST_PS, DeviceTime
from tracewh.views.catalog import load_views

from .generated_rocpd import write_file
from .ingest_runs import query
from .rocpd_files import write
from .xspace_ingest import Ingest, ingesting
from .xspace_oracle import SpaceBuilder, Unsigned

THREE_HOURS_NS = 3 * 3600 * 10**9


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    yield from ingesting(tmp_path)


def test_what_is_counted() -> None:
    time = DeviceTime()
    first = time.takes(np.array([LONGEST_PS, LONGEST_PS + 1, 2**63 - 1, 0, 5]))
    assert first.tolist() == [True, False, False, True, True]
    # With the one before, 512 of them are 2**62 ps.
    assert time.takes(np.full(600, LONGEST_PS)).tolist() == [True] * 511 + [False] * 89
    assert time.takes(np.array([2**20])).tolist() == [False]
    assert time.takes(np.array([2**20 - 1])).tolist() == [True]
    assert time.takes(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("duration", [2**53, 2**58])
def test_views_answer_whatever_durations_a_capture_states(ingest: Ingest, duration: int) -> None:
    """Of either duration, 8,800 kernels are together more than BIGINT holds."""
    space = SpaceBuilder()
    thread, stream = space.plane("/host:CPU").line("python"), space.gpu().line("Stream #1(Compute)")
    thread.event("train", 0, 10_000_000, {"_r": 1, "step_num": 3})
    stream.event("good", 0, 70, {"correlation_id": Unsigned(1)})
    thread.event("cuLaunchKernel", 10, 5, {"correlation_id": Unsigned(1)})
    for number in range(8800):
        stream.event("long", 100 + number, duration, {"hlo_op": "fusion.1", "program_id": Unsigned(7)})
    connection = ingest(space)
    for view in load_views():
        connection.execute(f"SELECT * FROM {view.name}").fetchall()
    # 512 of 2**53 ps, less the good one's, which is below a microsecond, are as much as half of BIGINT.
    counted = 512 if duration == 2**53 else 0
    roles = "SELECT role, COUNT(*) FROM device_events GROUP BY 1 ORDER BY 1"
    assert connection.execute(roles).fetchall() == [("marker", 8800 - counted), ("work", 1 + counted)]
    assert connection.execute(
        "SELECT problem, place, occurrences, detail FROM ingest_problems"
    ).fetchall() == [
        (
            "impossible_time",
            "/device:GPU:0, line 'Stream #1(Compute)'",
            8800 - counted,
            "a duration of over 2.5 hours, or one with which that of all is over 53 days; it is not counted",
        )
    ]
    total = "SELECT CAST(SUM(sum_ps) AS BIGINT) FROM v1.phase_time WHERE step_num IS NULL"
    assert connection.execute(total).fetchall() == [(70 + counted * 2**53,)]


def test_waits_may_last(ingest: Ingest) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1(Compute)").event("good", 0, 70)
    space.plane("/host:CPU").line("python").event("serve", 0, 2**60)
    connection = ingest(space)
    assert connection.execute("SELECT * FROM ingest_problems").fetchall() == []
    assert connection.execute("SELECT end_ps FROM host_events").fetchall() == [(2**60,)]


def test_a_kernel_of_rocm(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(f'UPDATE "{table}" SET "end" = start + {THREE_HOURS_NS} WHERE id = 2')

    path, warehouse = write(tmp_path / "t.db", change, steps=1, counts=False), tmp_path / "w.duckdb"
    whole = write_file(tmp_path / "whole.db", steps=1, counts=False)
    tracewh.ingest_run(path, warehouse=warehouse)
    tracewh.ingest_run(whole, warehouse=tmp_path / "whole.duckdb")
    kernels = "SELECT COUNT(*) FROM device_events WHERE kind = 'kernel' AND role = 'work'"
    ((expected,),) = query(tmp_path / "whole.duckdb", kernels)
    assert query(warehouse, kernels) == [(expected - 1,)]
    problems = "SELECT place, occurrences FROM ingest_problems WHERE problem = 'impossible_time'"
    assert query(warehouse, problems) == [("rocpd_kernel_dispatch", 1)]
