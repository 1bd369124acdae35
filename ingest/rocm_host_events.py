"""Regions and samples of a ROCm process as rows of host_events, and step markers as steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.event_stats import intern
from tracewh.ingest.rocm_devices import Tracks
from tracewh.ingest.rocm_facts import Clock, Facts, read_facts
from tracewh.ingest.rocm_owners import Owners
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import NULL, Source
from tracewh.ingest.shared_details import CALL_DETAILS_TYPES
from tracewh.ingest.shared_rows import SharedRows
from tracewh.ingest.step_markers import step_marker

STEP_TYPES = {
    "step_id": pa.int64(),
    "host_event_id": pa.int64(),
    "step_num": pa.int64(),
    "name_id": pa.int64(),
    "track_id": pa.int64(),
    "start_ps": pa.int64(),
    "end_ps": pa.int64(),
    "source": pa.string(),
}
_MAPPED = {"region": ("name_id",), "sample": ("timestamp", "track_id")}


@dataclass
class HostEvents:
    """Makes the rows of host_events, of call_details and call_parents, and of steps.

    `owners` get the event of each row, `samples` have the id of each sample. `name_ids` has the name of each
    row that came so far.
    """

    source: Source
    tracks: Tracks
    owners: Owners

    def __post_init__(self) -> None:
        self.call_details = SharedRows("call_details_id", CALL_DETAILS_TYPES)
        self._name_ids: list[pa.Array] = []
        self._count = self._step_count = 0
        self.samples = Owners()

    @property
    def name_ids(self) -> pa.Array:
        """Return the name id of each row."""
        return pa.concat_arrays([pa.array([], pa.int64()), *self._name_ids])

    def rows(self, clock: Clock | None) -> Iterator[tuple[str, pa.Table]]:
        """Return the rows by table, some at a time: regions, then samples."""
        for base in _MAPPED:
            self.samples = Owners(self._count)
            for facts in read_facts(self.source, base, clock):
                yield from self._tables(base, facts)

    def _tables(self, base: str, facts: Facts) -> Iterator[tuple[str, pa.Table]]:
        source, rows, count = self.source, facts.rows, len(facts)
        ids = pa.array(np.arange(self._count, self._count + count))
        self.owners.claim(rows.integers("event_id"))
        if base == "sample":
            self.samples.claim(rows.integers("id"))
        self._count += count
        names = self._region_names(rows) if base == "region" else self._sample_names(rows)
        self._name_ids.append(names)
        stack_ids, parents = facts.stack_ids, facts.parent_stack_ids
        # A row without an id of its own is below its parent all the same.
        source.stats.add_column(
            "host_event", ids, "parent_correlation_id", pc.if_else(stack_ids.is_null(), parents, NULL)
        )
        source.add_fact_stats("host_event", ids, rows, _MAPPED[base], skip=("message",))
        shared = {
            "category": source.texts(rows.integers("event.category_id"), f"{rows.place}.category_id"),
            "message_name_id": intern(source.names, self._messages(rows)),
        }
        events = {
            "host_event_id": ids,
            "track_id": self.tracks.of_threads(self._threads(base, rows)),
            "name_id": names,
            "start_ps": facts.start_ps,
            "end_ps": facts.end_ps,
            "correlation_id": stack_ids,
            "call_details_id": self.call_details.ids_of_arrays(shared, count),
        }
        yield "tracks", self.tracks.new_rows()
        yield "call_details", self.call_details.new_rows()
        yield "host_events", pa.table(events)
        yield "call_parents", _parents(stack_ids, parents)
        if base == "region":
            yield "steps", self._steps(events, shared["message_name_id"])
        yield "event_stats", source.stats.take()

    def _steps(self, events: dict[str, pa.Array], message_ids: pa.Array) -> pa.Table:
        """Return rows of `steps` for the regions that mark a training step (ROCTx ranges).

        Their name is the marker's text without the number, so that all steps of a kind have one name.
        """
        names = self.source.names
        messages = message_ids.dictionary_encode()
        markers = [step_marker(names.strings[name_id]) for name_id in messages.dictionary.to_pylist()]
        step_nums = pa.array([marker and marker[1] for marker in markers], pa.int64()).take(messages.indices)
        words = pa.array([marker and marker[0] for marker in markers], pa.string()).take(messages.indices)
        is_step = step_nums.is_valid()
        step_nums = step_nums.drop_null()
        columns = {
            "step_id": pa.array(np.arange(self._step_count, self._step_count + len(step_nums))),
            "step_num": step_nums,
            "name_id": intern(names, words.drop_null()),
            "source": pa.repeat("roctx", len(step_nums)),
            **{
                name: events[name].filter(is_step)
                for name in ("host_event_id", "track_id", "start_ps", "end_ps")
            },
        }
        self._step_count += len(step_nums)
        return pa.table({name: columns[name].cast(kind) for name, kind in STEP_TYPES.items()})

    def _threads(self, base: str, rows: Rows) -> pa.Array:
        tracks, place = self.source.reference("track"), f"{rows.place}.tid"
        threads = rows.integers("tid")
        if base == "sample":
            positions = self.source.positions("track", rows.integers("track_id"), f"{rows.place}.track_id")
            threads, place = tracks.integers("tid").take(positions), f"{tracks.place}.tid"
        self.source.positions("info_thread", threads, place)
        return threads

    def _messages(self, rows: Rows) -> pa.Array:
        """Return the text of each marker; null for events that carry none."""
        encoded = rows.texts("event.extdata").dictionary_encode()
        texts: list[str | None] = []
        for extdata in encoded.dictionary.to_pylist():
            value = self.source.parse(extdata)
            message = value.get("message") if isinstance(value, dict) else None
            texts.append(message if message is None or isinstance(message, str) else json.dumps(message))
        return pa.array(texts, pa.string()).take(encoded.indices)

    def _region_names(self, rows: Rows) -> pa.Array:
        texts, place = self.source.reference("string").texts("string"), f"{rows.place}.name_id"
        return self.source.name_ids("string", texts, rows.integers("name_id"), place, "region")

    def _sample_names(self, rows: Rows) -> pa.Array:
        tracks = self.source.reference("track")
        track_ids = rows.integers("track_id")
        positions = pc.index_in(track_ids, value_set=tracks.integers("id"))
        positions = pc.if_else(track_ids.is_valid(), positions, pa.scalar(None, positions.type))
        texts, name_ids = self.source.reference("string").texts("string"), tracks.integers("name_id")
        place = f"{tracks.place}.name_id"
        return self.source.name_ids("string", texts, name_ids.take(positions), place, "sample")


def _parents(stack_ids: pa.Array, parents: pa.Array) -> pa.Table:
    is_nested = pc.fill_null(pc.not_equal(stack_ids, parents), False)
    return pa.table(
        {
            "correlation_id": stack_ids.filter(is_nested),
            "parent_correlation_id": parents.filter(is_nested),
        }
    )
