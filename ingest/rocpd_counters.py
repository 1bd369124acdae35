"""Performance counters and API arguments of a rocpd shard: rows that hang on the events of others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocpd_devices import Agents
from tracewh.ingest.rocpd_facts import Events
from tracewh.ingest.rocpd_source import Source, empty_as_null

COUNTER_TYPES = {
    "counter_id": pa.int64(),
    "device_index": pa.int64(),
    "counter_name": pa.string(),
    "description": pa.string(),
    "block": pa.string(),
    "expression": pa.string(),
    "units": pa.string(),
    "is_derived": pa.bool_(),
}
COUNTER_VALUE_TYPES = {
    "counter_id": pa.int64(),
    "device_event_id": pa.int64(),
    "instance": pa.int64(),
    "value": pa.float64(),
}
_MAPPED_COUNTER = ("id", "nid", "pid", "agent_id", "name", "is_derived")
_MAPPED_VALUE = ("id", "event_id", "pmc_id", "value")
_TEXTS = ("description", "block", "expression", "units")


def counters(source: Source, agents: Agents) -> pa.Table:
    """Return the rows of `counters`, in the order of rocpd_info_pmc; the rest of each becomes stats."""
    rows = source.reference("info_pmc")
    ids = pa.array(range(len(rows)), pa.int64())
    agent_ids = rows.integers("agent_id")
    source.positions("info_agent", agent_ids, f"{rows.place}.agent_id")
    mapped = source.mapped((*_MAPPED_COUNTER, *_TEXTS))
    source.add_remaining("capture", ids, rows, mapped, prefix="counter.")
    names = pc.coalesce(*(empty_as_null(rows.texts(column)) for column in ("name", "symbol")))
    columns = {
        "counter_id": ids,
        "device_index": agents.indices(agent_ids),
        "counter_name": pc.fill_null(names, "unnamed counter"),
        **{column: empty_as_null(rows.texts(column)) for column in _TEXTS},
        "is_derived": pc.not_equal(rows.integers("is_derived"), 0),
    }
    return pa.table({name: column.cast(COUNTER_TYPES[name]) for name, column in columns.items()})


def counter_values(source: Source, events: Events, counter_names: pa.Array) -> pa.Table:
    """Return the rows of `counter_values`; instances are numbered in source order per event and counter.

    A value without a counter is rejected. A value of a host event has no device event; it is also a stat of
    that host event, under the counter's name, because nothing else would tie the two.
    """
    rows = source.read("pmc_event")
    counter_ids = source.positions("info_pmc", rows.integers("pmc_id"), f"{rows.place}.pmc_id").cast(
        pa.int64()
    )
    if counter_ids.null_count:
        source.problems.add(
            "missing_counter", rows.place, "row rejected: its counter is not defined", counter_ids.null_count
        )
        rows, counter_ids = rows.where(counter_ids.is_valid()), counter_ids.drop_null()
    event_ids, samples, values = rows.integers("event_id"), rows.integers("sample_id"), rows.numbers("value")
    positions = source.positions("event", event_ids, f"{rows.place}.event_id")
    # Values with a sample are of streaming monitors: taken during a dispatch at most, not for it.
    owned = pc.if_else(samples.is_null(), positions, pa.scalar(None, positions.type))
    device_event_ids = events.owner_ids("device_event", owned)
    host_event_ids = events.owner_ids("host_event", owned)
    lost = pc.and_(owned.is_valid(), pc.and_(device_event_ids.is_null(), host_event_ids.is_null()))
    if pc.any(lost).as_py():
        source.problems.add(
            "lost_owner",
            f"{rows.place}.event_id",
            "value kept without the row it was for",
            pc.sum(lost).as_py(),
        )
    is_host = pc.and_(host_event_ids.is_valid(), device_event_ids.is_null())
    source.stats.add_column(
        "host_event",
        host_event_ids.filter(is_host),
        counter_names.take(counter_ids.filter(is_host)),
        values.filter(is_host),
    )
    value_numbers = pa.array(range(len(rows)), pa.int64())
    source.add_remaining("capture", value_numbers, rows, _MAPPED_VALUE, prefix="counter_value.")
    columns = {
        "counter_id": counter_ids,
        "device_event_id": device_event_ids,
        "instance": _running_number([event_ids, samples, counter_ids]),
        "value": values,
    }
    return pa.table({name: column.cast(COUNTER_VALUE_TYPES[name]) for name, column in columns.items()})


def add_arguments(source: Source, events: Events, host: pa.Table) -> None:
    """Add the arguments of API calls as stats named for the argument, and once per API their C types.

    The stat `<api>(<argument>)` of the capture, with the argument's position as owner_id, holds the type.
    """
    rows = source.read("arg")
    positions = source.positions("event", rows.integers("event_id"), f"{rows.place}.event_id")
    owner_ids = {owner: events.owner_ids(owner, positions) for owner in ("host_event", "device_event")}
    orphans = pc.and_(*(ids.is_null() for ids in owner_ids.values()))
    if pc.any(orphans).as_py():
        source.problems.add(
            "orphan_argument",
            rows.place,
            "row rejected: no loaded row has its event",
            pc.sum(orphans).as_py(),
        )
    names = pc.fill_null(rows.texts("name"), "argument")
    values = pc.fill_null(rows.texts("value"), "")
    is_free = pa.repeat(True, len(rows))
    for owner, ids in owner_ids.items():
        chosen = pc.and_(is_free, ids.is_valid())
        is_free = pc.and_(is_free, ids.is_null())
        source.stats.add_column(owner, ids.filter(chosen), names.filter(chosen), values.filter(chosen))
        source.add_json(
            owner, ids.filter(chosen), rows.texts("extdata").filter(chosen), f"{rows.place}.extdata"
        )
    apis = host.column("name_id").combine_chunks().take(owner_ids["host_event"])
    signature = pa.table(
        {"api": apis, "position": rows.integers("position"), "name": names, "type": rows.texts("type")}
    ).filter(apis.is_valid())
    for row in signature.group_by(signature.column_names, use_threads=False).aggregate([]).to_pylist():
        api = source.names.strings[row["api"]]
        source.stats.add_value("capture", row["position"] or 0, f"{api}({row['name']})", row["type"])


def _running_number(keys: list[pa.Array]) -> pa.Array:
    """Number the rows with equal keys 0, 1, ... in their order."""
    count = len(keys[0])
    codes = np.zeros(count, np.int64)
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + np.asarray(encoded.indices)
    order = np.argsort(codes, kind="stable")
    is_first = np.ones(count, bool)
    is_first[1:] = np.diff(codes[order]) != 0
    starts = np.maximum.accumulate(np.where(is_first, np.arange(count), 0))
    numbers = np.empty(count, np.int64)
    numbers[order] = np.arange(count) - starts
    return pa.array(numbers)
