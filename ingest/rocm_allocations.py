"""What the runtime allocated and freed, as rows of memory_allocations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_devices import Agents, Tracks
from tracewh.ingest.rocm_facts import Clock, read_facts
from tracewh.ingest.rocm_owners import Owners
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source

_FLAGS = "flags"
_DIGITS = re.compile("[0-9]{1,18}")
_MAPPED = ("agent_id", "type", "level", "address", "size", "queue_id", "stream_id")


@dataclass
class Allocations:
    """Makes the rows of memory_allocations; `owners` get the event of each."""

    source: Source
    agents: Agents
    tracks: Tracks
    owners: Owners

    def rows(self, clock: Clock | None) -> Iterator[tuple[str, pa.Table]]:
        """Return the rows by table, some at a time."""
        first = 0
        for facts in read_facts(self.source, "memory_allocate", clock):
            rows, place = facts.rows, facts.rows.place
            ids = pa.array(np.arange(first, first + len(facts)))
            self.owners.claim(rows.integers("event_id"))
            first += len(facts)
            agent_ids, threads = rows.integers("agent_id"), rows.integers("tid")
            self.source.positions("info_agent", agent_ids, f"{place}.agent_id")
            self.source.positions("info_thread", threads, f"{place}.tid")
            flags = self._flags(rows)
            columns = {
                "memory_allocation_id": ids,
                "track_id": self.tracks.of_threads(threads),
                "device_index": self.agents.indices(agent_ids),
                "operation": _word(rows, "type", "allocation"),
                "memory_level": _word(rows, "level", "real"),
                "address": rows.integers("address"),
                "bytes": rows.integers("size"),
                "queue_id": rows.integers("queue_id"),
                "stream_id": rows.integers("stream_id"),
                "flags": flags,
                # That of the call around it: an allocation has no launch of its own.
                "correlation_id": pc.coalesce(facts.stack_ids, facts.parent_stack_ids),
                "start_ps": facts.start_ps,
                "end_ps": facts.end_ps,
            }
            # Flags that are no number are kept as they came.
            is_number = flags.is_valid()
            for part, taken in ((is_number, (_FLAGS,)), (pc.invert(is_number), ())):
                own = ids.filter(part)
                self.source.add_fact_stats("memory_allocation", own, rows.where(part), _MAPPED, skip=taken)
            yield "tracks", self.tracks.new_rows()
            yield "memory_allocations", pa.table(columns)
            yield "event_stats", self.source.stats.take()

    def _flags(self, rows: Rows) -> pa.Array:
        encoded = rows.texts("extdata").dictionary_encode()
        flags = []
        for text in encoded.dictionary.to_pylist():
            value = self.source.parse(text)
            flags.append(_whole_number(value.get(_FLAGS) if isinstance(value, dict) else None))
        return pa.array(flags, pa.int64()).take(encoded.indices)


def _whole_number(value: object) -> int | None:
    """The number that a value of JSON is, or spells: writers differ."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    return None


def _word(rows: Rows, column: str, fallback: str) -> pa.Array:
    encoded = pc.fill_null(pc.utf8_lower(rows.texts(column)), fallback)
    return encoded.cast(pa.string())
