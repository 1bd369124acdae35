"""The fact rows of a rocpd shard: rows without a usable time rejected, times made relative, events joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocpd_database import FACT_TABLES
from tracewh.ingest.rocpd_source import Source, zero_as_null
from tracewh.ingest.sqlite_file import Rows

# Half of what BIGINT picoseconds hold, in ns (26 days). A time further from the median is not from this run,
# and taking it as the origin would push every other row out of range.
_FARTHEST_NS = 2**61 // 1000
_EVENT_COLUMNS = ("id", "category_id", "stack_id", "parent_stack_id", "correlation_id")


@dataclass
class Facts:
    """Accepted rows of one fact table with their times in ps, and the position of each row's event."""

    rows: Rows
    start_ps: pa.Array
    end_ps: pa.Array
    events: pa.Array

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, keep: pa.Array) -> Facts:
        """Return the rows for which `keep` is true."""
        return Facts(
            self.rows.where(keep),
            self.start_ps.filter(keep),
            self.end_ps.filter(keep),
            self.events.filter(keep),
        )


def read_facts(source: Source) -> tuple[dict[str, Facts], int | None]:
    """Read all fact tables; return them by base name, with the earliest start in ns of the source's clock.

    Rejected and counted with the table as place: `missing_time`, `zero_time`, `negative_duration` and
    `time_out_of_range`.
    """
    accepted = {base: _with_sane_times(source.read(base)) for base in FACT_TABLES}
    starts = _starts(accepted)
    if len(starts):
        middle = int(np.partition(starts, len(starts) // 2)[len(starts) // 2])
        accepted = {base: _near(rows, middle) for base, rows in accepted.items()}
        starts = _starts(accepted)
    origin = int(starts.min()) if len(starts) else None
    return {base: _facts(source, rows, origin or 0) for base, rows in accepted.items()}, origin


def _starts(tables: Mapping[str, Rows]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([_times(rows)[0].to_numpy() for rows in tables.values()])


def _times(rows: Rows) -> tuple[pa.Array, pa.Array]:
    if rows.place == "rocpd_sample":
        return rows.integers("timestamp"), rows.integers("timestamp")
    return rows.integers("start"), rows.integers("end")


def _with_sane_times(rows: Rows) -> Rows:
    start, end = _times(rows)
    rows = _reject(rows, pc.or_(start.is_null(), end.is_null()), "missing_time", "start or end is no integer")
    start, end = _times(rows)
    rows = _reject(rows, pc.less_equal(start, 0), "zero_time", "the profiler never filled in the start")
    start, end = _times(rows)
    return _reject(rows, pc.less(end, start), "negative_duration", "the row ends before it starts")


def _near(rows: Rows, middle: int) -> Rows:
    start, end = _times(rows)
    too_early = pc.less(start, middle - _FARTHEST_NS)
    too_late = pc.greater(end, min(middle + _FARTHEST_NS, 2**63 - 1))
    return _reject(
        rows, pc.or_(too_early, too_late), "time_out_of_range", "more than 26 days from the other rows"
    )


def _reject(rows: Rows, is_bad: pa.Array, problem: str, detail: str) -> Rows:
    count = pc.sum(is_bad).as_py()
    if not count:
        return rows
    first = rows.where(is_bad).integers("id")[0]
    rows.problems.add(problem, rows.place, f"row rejected: {detail} (first: id {first})", count)
    return rows.where(pc.invert(is_bad))


def _facts(source: Source, rows: Rows, origin: int) -> Facts:
    start_ps, end_ps = (pc.multiply(pc.subtract(time, origin), 1000) for time in _times(rows))
    events = source.positions("event", rows.integers("event_id"), f"{rows.place}.event_id")
    return Facts(rows, start_ps, end_ps, events)


class Events:
    """The columns of rocpd_event, to be taken at `Facts.events`, and the loaded row each belongs to."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.rows = rows = source.reference("event")
        self.stack_id = zero_as_null(rows.integers("stack_id"))
        self.parent_stack_id = zero_as_null(rows.integers("parent_stack_id"))
        self.external_correlation_id = zero_as_null(rows.integers("correlation_id"))
        self.category = source.strings(rows.integers("category_id"), f"{rows.place}.category_id")
        self.extdata = rows.texts("extdata")
        self._owners = {owner: np.full(len(rows), -1, np.int64) for owner in ("device_event", "host_event")}

    def claim(self, owner: str, owner_ids: pa.Array, events: pa.Array) -> None:
        """Record that these rows of `owner` have these events; of several rows the first keeps the event."""
        owner_of = self._owners[owner]
        positions, ids = np.asarray(events.drop_null()), np.asarray(owner_ids.filter(events.is_valid()))
        is_free = owner_of[positions] < 0
        # Assigned from the last to the first, because the last assignment to a position stays.
        owner_of[positions[is_free][::-1]] = ids[is_free][::-1]

    def owner_ids(self, owner: str, events: pa.Array) -> pa.Array:
        """Return the id of the `owner` row that has each event; null for none."""
        ids = self._owners[owner]
        return pa.array(ids, mask=ids < 0).take(events)

    def count_unclaimed(self) -> None:
        """Count the events that no loaded row has: nothing else says when they happened."""
        unclaimed = int(np.all([owner_of < 0 for owner_of in self._owners.values()], axis=0).sum())
        if unclaimed:
            self._source.problems.add(
                "orphan_event", self.rows.place, "row rejected: no loaded row refers to the event", unclaimed
            )

    def add_stats(
        self, owner: str, owner_ids: pa.Array, events: pa.Array, skip: tuple[str, ...] = ()
    ) -> None:
        """Add what the events say beyond the columns of `owner`."""
        stats = self._source.stats
        stats.add_column(
            owner, owner_ids, "external_correlation_id", self.external_correlation_id.take(events)
        )
        rows = Rows(self.rows.place, self.rows.table.take(events), self._source.problems)
        self._source.add_remaining(owner, owner_ids, rows, _EVENT_COLUMNS, skip=skip)
