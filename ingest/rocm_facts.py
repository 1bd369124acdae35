"""The fact rows of a ROCm process: rows without a usable time rejected, times made relative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_process import FACT_TIMES, RocmProcess
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source, zero_as_null

# Half of what BIGINT picoseconds hold, in ns (26 days). A time further from the median is not from this run,
# and taking it as the origin would push every other row out of range.
_FARTHEST_NS = 2**61 // 1000


@dataclass(frozen=True)
class Clock:
    """The earliest start of a process in ns of its clock, and between which times its rows are."""

    origin_ns: int
    earliest_ns: int
    latest_ns: int


@dataclass
class Facts:
    """Accepted rows of a fact table with their times in ps."""

    rows: Rows
    start_ps: pa.Array
    end_ps: pa.Array

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, keep: pa.Array) -> Facts:
        """Return the rows for which `keep` is true."""
        return Facts(self.rows.where(keep), self.start_ps.filter(keep), self.end_ps.filter(keep))

    @property
    def stack_ids(self) -> pa.Array:
        """The id that a launch and what it launches share; null for none."""
        return zero_as_null(self.rows.integers("event.stack_id"))

    @property
    def parent_stack_ids(self) -> pa.Array:
        """The id of the call around it; null for none."""
        return zero_as_null(self.rows.integers("event.parent_stack_id"))


def clock_of(process: RocmProcess) -> Clock | None:
    """Find the origin of a process in a pass over all its times; None where no row has a usable one."""
    earliest, latest = _bounds(process)
    if earliest is None or latest is None:
        return None
    if latest - earliest <= _FARTHEST_NS:
        return Clock(earliest, earliest, latest)
    starts = np.concatenate([np.zeros(0, np.int64), *(start for start, _ in _sane_times(process))])
    middle = int(np.partition(starts, len(starts) // 2)[len(starts) // 2])
    low, high = middle - _FARTHEST_NS, min(middle + _FARTHEST_NS, 2**63 - 1)
    near = [start[(start >= low) & (end <= high)] for start, end in _sane_times(process)]
    origin = min((int(start.min()) for start in near if len(start)), default=middle)
    return Clock(origin, low, high)


def read_facts(source: Source, base: str, clock: Clock | None) -> Iterator[Facts]:
    """Read a fact table, some rows at a time.

    Rejected and counted with the table as place: `missing_time`, `zero_time`, `negative_duration` and
    `time_out_of_range`.
    """
    for rows in source.facts(base):
        start, end = _times(rows, base)
        is_missing = pc.or_(start.is_null(), end.is_null())
        rows = _reject(rows, is_missing, "missing_time", "start or end is no integer")
        start, end = _times(rows, base)
        rows = _reject(rows, pc.less_equal(start, 0), "zero_time", "the profiler never filled in the start")
        start, end = _times(rows, base)
        rows = _reject(rows, pc.less(end, start), "negative_duration", "the row ends before it starts")
        if clock is None:
            continue
        start, end = _times(rows, base)
        is_far = pc.or_(pc.less(start, clock.earliest_ns), pc.greater(end, clock.latest_ns))
        rows = _reject(rows, is_far, "time_out_of_range", "more than 26 days from the other rows")
        start, end = _times(rows, base)
        if len(rows):
            yield Facts(
                rows, *(pc.multiply(pc.subtract(time, clock.origin_ns), 1000) for time in (start, end))
            )


def _times(rows: Rows, base: str) -> tuple[pa.Array, pa.Array]:
    start, end = FACT_TIMES[base]
    return rows.integers(start), rows.integers(end)


def _sane_times(process: RocmProcess) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    for base in FACT_TIMES:
        for rows in process.columns(base, FACT_TIMES[base]):
            start, end = _times(rows, base)
            is_known = pc.and_(start.is_valid(), end.is_valid())
            starts = np.asarray(start.filter(is_known).cast(pa.int64()))
            ends = np.asarray(end.filter(is_known).cast(pa.int64()))
            is_sane = (starts > 0) & (ends >= starts)
            yield starts[is_sane], ends[is_sane]


def _bounds(process: RocmProcess) -> tuple[int | None, int | None]:
    earliest, latest = [], []
    for start, end in _sane_times(process):
        if len(start):
            earliest.append(int(start.min()))
            latest.append(int(end.max()))
    return min(earliest, default=None), max(latest, default=None)


def _reject(rows: Rows, is_bad: pa.Array, problem: str, detail: str) -> Rows:
    count = pc.sum(is_bad).as_py()
    if not count:
        return rows
    first = rows.where(is_bad).integers("id")[0]
    rows.problems.add(problem, rows.place, f"row rejected: {detail} (first: id {first})", count)
    return rows.where(pc.invert(is_bad))
