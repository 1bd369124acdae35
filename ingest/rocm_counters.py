"""Performance counters of a ROCm process: their definitions, and a row per value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_devices import Agents
from tracewh.ingest.rocm_owners import Owners
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source, empty_as_null
from tracewh.ingest.shared_rows import Column, distinct_rows

_MAPPED_COUNTER = ("id", "nid", "pid", "agent_id", "name", "is_derived")
_TEXTS = ("description", "block", "expression", "units")
_DIMENSIONS = {
    "xcc": "xcc",
    "shader_engine": "shader_engine",
    "shader_array": "shader_array",
    "wgp": "workgroup_processor",
}
_MAPPED_VALUE = ("id", "event_id", "pmc_id", "sample_id", "value", "instance", *_DIMENSIONS)


def counters(source: Source, agents: Agents) -> pa.Table:
    """Return the rows of `counters`, in the order of info_pmc; the rest of each becomes stats."""
    rows = source.reference("info_pmc")
    ids = pa.array(np.arange(len(rows)))
    agent_ids = rows.integers("agent_id")
    source.positions("info_agent", agent_ids, f"{rows.place}.agent_id")
    mapped = source.mapped((*_MAPPED_COUNTER, *_TEXTS))
    source.add_remaining("capture", ids, rows, mapped, prefix="counter.")
    names = pc.coalesce(*(empty_as_null(rows.texts(column)) for column in ("name", "symbol")))
    return pa.table(
        {
            "counter_id": ids,
            "device_index": agents.indices(agent_ids),
            "counter_name": pc.fill_null(names, "unnamed counter").cast(pa.string()),
            **{column: empty_as_null(rows.texts(column)).cast(pa.string()) for column in _TEXTS},
            "is_derived": pc.not_equal(rows.integers("is_derived"), 0),
        }
    )


@dataclass
class CounterValues:
    """Makes the rows of counter_values.

    A value without a counter is rejected. The value of a sample belongs to the host event that the sample is.
    """

    source: Source
    device_events: Owners
    host_events: Owners
    samples: Owners

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Return the rows by table, some at a time."""
        first, carried = 0, _Carried()
        for rows in self.source.facts("pmc_event"):
            place = rows.place
            counter_ids = self.source.positions("info_pmc", rows.integers("pmc_id"), f"{place}.pmc_id")
            if counter_ids.null_count:
                self.source.problems.add(
                    "missing_counter",
                    place,
                    "row rejected: its counter is not defined",
                    counter_ids.null_count,
                )
                rows, counter_ids = rows.where(counter_ids.is_valid()), counter_ids.drop_null()
            events, samples = rows.integers("event_id"), rows.integers("sample_id")
            device_event_ids, host_event_ids = self._owners(rows, events, samples)
            ids = pa.array(np.arange(first, first + len(rows)))
            first += len(rows)
            self.source.add_remaining(
                "capture", ids, rows, self.source.mapped(_MAPPED_VALUE), "counter_value."
            )
            keys = [events, samples, counter_ids.cast(pa.int64())]
            yield (
                "counter_values",
                pa.table(
                    {
                        "counter_id": counter_ids.cast(pa.int64()),
                        "device_event_id": device_event_ids,
                        "host_event_id": host_event_ids,
                        "instance": pc.coalesce(rows.integers("instance"), carried.numbers(keys)),
                        **{ours: rows.integers(theirs) for theirs, ours in _DIMENSIONS.items()},
                        "value": rows.numbers("value"),
                    }
                ),
            )
            yield "event_stats", self.source.stats.take()

    def _owners(self, rows: Rows, events: pa.Array, samples: pa.Array) -> tuple[pa.Array, pa.Array]:
        is_sampled = samples.is_valid()
        # Values with a sample are of streaming monitors: taken during the dispatch, and not the whole of it.
        owned = pc.if_else(is_sampled, pa.scalar(None, events.type), events)
        host_event_ids = pc.coalesce(self.samples.rows(samples), self.host_events.rows(owned))
        is_told_apart = pc.or_(pc.invert(is_sampled), host_event_ids.is_valid())
        device_event_ids = self.device_events.rows(
            pc.if_else(is_told_apart, events, pa.scalar(None, events.type))
        )
        for ids, column, is_wanted in (
            (events, "event_id", pc.and_(owned.is_valid(), device_event_ids.is_null())),
            (samples, "sample_id", is_sampled),
        ):
            lost = pc.and_(is_wanted, host_event_ids.is_null())
            count = pc.sum(lost).as_py()
            if count:
                detail = f"value kept without the row it was for (first: {column} {ids.filter(lost)[0]})"
                self.source.problems.add("lost_owner", f"{rows.place}.{column}", detail, count)
        return device_event_ids, host_event_ids


class _Carried:
    """Numbers rows with equal keys 0, 1, ... in their order, from one part of a table to the next.

    The rows of one event follow each other, so the last event of a part is all that may go on in the next.
    """

    def __init__(self) -> None:
        self._last: tuple[object, ...] | None = None
        self._counts: dict[object, int] = {}

    def numbers(self, keys: list[pa.Array]) -> pa.Array:
        """Return the number of each row; the first keys are those of its event, the last of its counter."""
        count = len(keys[0])
        if not count:
            return pa.array([], pa.int64())
        numbers = _running_number([Column.of(key) for key in keys])
        *event_keys, counter_key = keys
        counters = np.asarray(pc.fill_null(counter_key, -1))
        if self._last is not None:
            again = self._rows_of(event_keys, self._last)
            before = [self._counts.get(counter, 0) for counter in counters[again].tolist()]
            numbers[again] += np.array(before, np.int64)
        last = tuple(key[count - 1].as_py() for key in event_keys)
        of_last = self._rows_of(event_keys, last)
        # One event may go on for more than a part: then counters of earlier parts can come again.
        if last != self._last:
            self._counts = {}
        for counter, number in zip(counters[of_last].tolist(), numbers[of_last].tolist(), strict=True):
            self._counts[counter] = max(number + 1, self._counts.get(counter, 0))
        self._last = last
        return pa.array(numbers)

    def _rows_of(self, keys: list[pa.Array], event: tuple[object, ...]) -> npt.NDArray[np.int64]:
        is_of = np.ones(len(keys[0]), bool)
        for key, value in zip(keys, event, strict=True):
            is_of &= np.asarray(key.is_null() if value is None else pc.fill_null(pc.equal(key, value), False))
        return np.flatnonzero(is_of)


def _running_number(keys: list[Column]) -> npt.NDArray[np.int64]:
    codes, _ = distinct_rows(keys)
    order = np.argsort(codes, kind="stable")
    is_first = np.ones(len(codes), bool)
    is_first[1:] = np.diff(codes[order]) != 0
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(codes)), 0))
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - starts
    return numbers
