"""Regions, allocations and samples of a rocpd shard as rows of host_events, and step markers as steps."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import Interner
from tracewh.ingest.event_stats import intern
from tracewh.ingest.rocpd_devices import Tracks
from tracewh.ingest.rocpd_facts import Events, Facts
from tracewh.ingest.rocpd_source import Source
from tracewh.ingest.shared_details import CALL_DETAILS_TYPES, split_shared

HOST_EVENT_TYPES = {
    "host_event_id": pa.int64(),
    "track_id": pa.int64(),
    "name_id": pa.int64(),
    "start_ps": pa.int64(),
    "end_ps": pa.int64(),
    "correlation_id": pa.int64(),
}
_TYPES = HOST_EVENT_TYPES | CALL_DETAILS_TYPES
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
_COMMON = ("id", "nid", "pid", "tid", "start", "end", "event_id", "name_id")
_MAPPED = {
    "region": _COMMON,
    "memory_allocate": (*_COMMON, "type", "agent_id"),
    "sample": (*_COMMON, "timestamp", "track_id"),
}
_STEP_MARKER = re.compile(
    r"(?P<word>train|step|train_step|training_step)"
    r"(?:[ _](?P<plain>\d{1,18})|#(?:[^#]*,)?step_num=(?P<annotated>\d{1,18})(?:,[^#]*)?#)",
    re.IGNORECASE,
)


def host_events(
    source: Source, facts: Mapping[str, Facts], events: Events, tracks: Tracks
) -> dict[str, pa.Table]:
    """Return the shard's rows of call_details, of steps and of host_events.

    The events are regions, then allocations, then samples.
    """
    threads = {base: _threads(source, base, facts[base]) for base in _MAPPED}
    track_ids = tracks.of_threads(pa.concat_arrays(list(threads.values())))
    tables = {}
    first_id = 0
    for base in _MAPPED:
        group = facts[base]
        ids = pa.array(range(first_id, first_id + len(group)), pa.int64())
        columns = _common_columns(source, base, group, events, ids)
        columns["track_id"] = track_ids.slice(first_id, len(group))
        columns |= _OWN_COLUMNS[base](source, group, events)
        columns["message_name_id"] = intern(source.names, _messages(source, events, group))
        parents = columns.pop("parent_correlation_id")
        source.stats.add_column("host_event", ids, "parent_correlation_id", parents)
        tables[base] = pa.table({name: column.cast(_TYPES[name]) for name, column in columns.items()})
        first_id += len(group)
    empty = pa.schema(list(_TYPES.items())).empty_table()
    rows = pa.concat_tables([empty, *tables.values()], promote_options="default").combine_chunks()
    rows, call_details = split_shared(rows, "call_details_id", CALL_DETAILS_TYPES)
    steps = _steps(tables["region"], source.names)
    return {"call_details": call_details, "host_events": rows, "steps": steps}


def _steps(regions: pa.Table, names: Interner) -> pa.Table:
    """Return rows of `steps` for the regions that mark a training step (ROCTx ranges).

    Their name is the marker's text without the number, so that all steps of a kind have one name.
    """
    messages = regions.column("message_name_id").combine_chunks().dictionary_encode()
    markers = [step_marker(names.strings[name_id]) for name_id in messages.dictionary.to_pylist()]
    step_nums = pa.array([marker and marker[1] for marker in markers], pa.int64()).take(messages.indices)
    words = pa.array([marker and marker[0] for marker in markers], pa.string()).take(messages.indices)
    marked = regions.filter(step_nums.is_valid())
    columns = {
        "step_id": pa.array(range(len(marked)), pa.int64()),
        "host_event_id": marked.column("host_event_id"),
        "step_num": step_nums.drop_null(),
        "name_id": intern(names, words.drop_null()),
        "track_id": marked.column("track_id"),
        "start_ps": marked.column("start_ps"),
        "end_ps": marked.column("end_ps"),
        "source": pa.repeat("roctx", len(marked)),
    }
    return pa.table(columns, schema=pa.schema(list(STEP_TYPES.items())))


def step_marker(text: str) -> tuple[str, int] | None:
    """Return what the text of a marker calls a step and its number, or None for another text.

    `train_step 12` and `train_step#step_num=12#` are both step 12 of `train_step`.
    """
    found = _STEP_MARKER.fullmatch(text.strip())
    return (found["word"], int(found["plain"] or found["annotated"])) if found else None


def _threads(source: Source, base: str, facts: Facts) -> pa.Array:
    if base == "sample":
        track_ids, place = facts.rows.integers("track_id"), "rocpd_sample.track_id"
        positions = source.positions("track", track_ids, place)
        threads, place = source.reference("track").integers("tid").take(positions), "rocpd_track.tid"
    else:
        threads, place = facts.rows.integers("tid"), f"{facts.rows.place}.tid"
    source.positions("info_thread", threads, place)
    return threads


def _common_columns(
    source: Source, base: str, facts: Facts, events: Events, ids: pa.Array
) -> dict[str, pa.Array]:
    events.claim("host_event", ids, facts.events)
    source.add_remaining("host_event", ids, facts.rows, source.mapped(_MAPPED[base]))
    events.add_stats("host_event", ids, facts.events, skip=("message",))
    return {
        "host_event_id": ids,
        "start_ps": facts.start_ps,
        "end_ps": facts.end_ps,
        "category": events.category.take(facts.events),
        "correlation_id": events.stack_id.take(facts.events),
        "parent_correlation_id": events.parent_stack_id.take(facts.events),
    }


def _messages(source: Source, events: Events, facts: Facts) -> pa.Array:
    """Return the text of each marker; null for events that carry none."""
    texts: list[str | None] = []
    for extdata in events.extdata.take(facts.events).to_pylist():
        value = source.parse(extdata) if extdata is not None else None
        message = value.get("message") if isinstance(value, dict) else None
        texts.append(message if message is None or isinstance(message, str) else json.dumps(message))
    return pa.array(texts, pa.string())


def _region_columns(source: Source, facts: Facts, _events: Events) -> dict[str, pa.Array]:
    name_ids, place = facts.rows.integers("name_id"), f"{facts.rows.place}.name_id"
    texts = source.reference("string").texts("string")
    return {"name_id": source.name_ids("string", texts, name_ids, place, "region")}


def _allocation_columns(source: Source, facts: Facts, events: Events) -> dict[str, pa.Array]:
    agents = facts.rows.integers("agent_id")
    source.positions("info_agent", agents, f"{facts.rows.place}.agent_id")
    return {
        "name_id": intern(source.names, pc.fill_null(facts.rows.texts("type"), "allocation")),
        "category": pc.fill_null(events.category.take(facts.events), "MEMORY_ALLOCATION"),
        # The stack id is that of the API call around the allocation: were it the correlation id, work that
        # the same call launches would have two launching host events.
        "correlation_id": pa.nulls(len(facts), pa.int64()),
        "parent_correlation_id": pc.coalesce(
            events.stack_id.take(facts.events), events.parent_stack_id.take(facts.events)
        ),
        "native_device_id": agents,
    }


def _sample_columns(source: Source, facts: Facts, _events: Events) -> dict[str, pa.Array]:
    tracks = source.reference("track")
    positions = pc.index_in(facts.rows.integers("track_id"), value_set=tracks.integers("id"))
    texts = source.reference("string").texts("string")
    name_ids = tracks.integers("name_id").take(positions)
    return {"name_id": source.name_ids("string", texts, name_ids, "rocpd_track.name_id", "sample")}


_OWN_COLUMNS = {
    "region": _region_columns,
    "memory_allocate": _allocation_columns,
    "sample": _sample_columns,
}
