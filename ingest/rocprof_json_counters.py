"""Counters of a JSON file of rocprofv3: what they are, and their values for dispatches and samples."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_process import Strings
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_json_columns import OWNER, concatenated
from tracewh.ingest.rocprof_json_fields import Columns, integers, plain_columns, table_integers
from tracewh.ingest.rocprof_json_names import looked_up, positions
from tracewh.ingest.rocprof_json_objects import handle_of, integer_column, objects, text_column

# The place of each dimension in the id of a counter's instance: its lowest bit and its number of bits. The
# lower 48 bits have seven dimensions of 6 bits; what is left over belongs to the last.
_DIMENSIONS = {
    "aid": ("DIMENSION_AID", 6, 6),
    "xcc": ("DIMENSION_XCC", 0, 6),
    "shader_engine": ("DIMENSION_SHADER_ENGINE", 12, 6),
    "shader_array": ("DIMENSION_SHADER_ARRAY", 24, 6),
    "wgp": ("DIMENSION_WGP", 30, 6),
    "instance": ("DIMENSION_INSTANCE", 36, 12),
}
_TEXT_COLUMNS = ("name", "description", "block", "expression", "dimensions", "dimension_ids")
_INTEGER_COLUMNS = ("is_constant", "is_derived", "spm_support")


class Counters:
    """The counters that a process had; `table` is info_pmc.

    The id of a counter is its handle. Where counters of several agents have the same handle, those after the
    first get an id of their own.
    """

    def __init__(self, value: Any, problems: ProblemCounter) -> None:
        entries = objects(value, "counters", problems)
        handles = [handle_of(entry.get("id")) for entry in entries]
        agents = [handle_of(entry.get("agent_id")) for entry in entries]
        ids = _distinct_ids(handles)
        self._ids = dict(zip(zip(agents, handles, strict=True), ids, strict=True))
        self._places: dict[int | None, dict[Any, Any]] = {}
        for entry in entries:
            for instance in objects(entry.get("instances"), "counters.instances", problems):
                at = objects(instance.get("dimensions"), "counters.instances.dimensions", problems)
                place = {str(dimension.get("dimension_name")): dimension.get("index") for dimension in at}
                self._places[handle_of(instance.get("instance_id"))] = place
        texts = {name: text_column(entries, name) for name in _TEXT_COLUMNS}
        numbers = {name: integer_column(entries, name, "counters", problems) for name in _INTEGER_COLUMNS}
        place = {"id": pa.array(ids, INTEGER), "agent_id": pa.array(agents, INTEGER)}
        self.table = pa.table({**place, "symbol": texts["name"], **texts, **numbers})

    def ids(self, agents: pa.Array, handles: pa.Array) -> pa.Array:
        """Return the id of each counter, given the agent that it counted on; its handle if it is unknown."""
        known = self._ids
        return looked_up([agents, handles], lambda agent, handle: known.get((agent, handle), handle), INTEGER)

    def places(self, instances: pa.Array) -> Columns:
        """Return where on its agent each instance is, as the file tells it or else by the bits of its id."""
        return {
            column: looked_up([instances], lambda instance, at=at: self._place(instance, *at), INTEGER)
            for column, at in _DIMENSIONS.items()
        }

    def _place(self, instance: int | None, dimension: str, lowest_bit: int, bits: int) -> int | None:
        if instance is None:
            return None
        if instance in self._places:
            return handle_of(self._places[instance].get(dimension))
        return instance >> lowest_bit & (1 << bits) - 1


def with_counted(dispatches: pa.Table, counted: Sequence[pa.Table]) -> tuple[pa.Table, list[pa.Array]]:
    """Return the dispatches, with those that only counters tell of, and the row of each record's dispatch.

    A record is of the dispatch with its id and start; where none has both, of the first with its id. Records
    of a dispatch that is not recorded otherwise stand for it: those with the same id and start for one.
    """
    owners = []
    for records in counted:
        if not len(records):
            owners.append(pa.nulls(0, INTEGER))
            continue
        keys = _keys(records)
        exact = pc.index_in(keys, value_set=_keys(dispatches))
        ids = table_integers(records, "dispatch_id")
        same_id = positions(ids, table_integers(dispatches, "dispatch_id"))
        found = pc.coalesce(exact, same_id)
        is_new = found.is_null()
        new = keys.filter(is_new).dictionary_encode()
        first = np.unique(np.asarray(new.indices), return_index=True)[1]
        rows = np.asarray(found.fill_null(0)).astype(np.int64)
        rows[np.asarray(is_new)] = np.asarray(new.indices) + len(dispatches)
        owners.append(pa.array(rows))
        dispatches = concatenated([dispatches, records.filter(is_new).take(pa.array(first))])
    return dispatches, owners


def counter_values(
    elements: pa.Table, owners: pa.Array, dispatches: pa.Table, counters: Counters
) -> pa.Table:
    """Return the list elements of counter records as pmc_event; `owners` are the rows of their dispatches."""
    columns, rows = plain_columns(elements, {"counter_id": "pmc_id"}), len(elements)
    dispatch_rows = owners.take(table_integers(elements, OWNER))
    agents = table_integers(dispatches, "agent_id").take(dispatch_rows)
    columns["pmc_id"] = counters.ids(agents, integers(columns, "pmc_id", rows))
    columns["event_id"] = dispatches.column("event_id").combine_chunks().take(dispatch_rows)
    if "instance_id" in columns:
        columns |= counters.places(integers({"id": columns.pop("instance_id")}, "id", rows))
    return pa.table(columns)


def monitor_samples(
    values: pa.Table, dispatches: pa.Table, strings: Strings
) -> tuple[pa.Table, pa.Array, pa.Table]:
    """Return the samples that values of streaming monitors are of, the row of each value's, and their tracks.

    Values of one dispatch with one time are of one sample.
    """
    keys = _pairs(table_integers(values, "event_id"), table_integers(values, "timestamp")).dictionary_encode()
    first = pa.array(np.unique(np.asarray(keys.indices), return_index=True)[1])
    events = positions(table_integers(values, "event_id").take(first), table_integers(dispatches, "event_id"))
    tids = table_integers(dispatches, "tid").take(events).dictionary_encode(null_encoding="encode")
    tracks = pa.table(
        {
            "id": pa.array(range(1, len(tids.dictionary) + 1), INTEGER),
            "tid": tids.dictionary,
            "name_id": strings.ids(pa.array(["SPM_COUNTER_COLLECTION"] * len(tids.dictionary), TEXT)),
        }
    )
    stack = table_integers(dispatches, "event.stack_id").take(events)
    samples = {
        "tid": table_integers(dispatches, "tid").take(events),
        "track_id": pc.add(tids.indices.cast(INTEGER), 1),
        "timestamp": table_integers(values, "timestamp").take(first),
        "event.stack_id": stack,
        "event.parent_stack_id": stack,
    }
    return pa.table(samples), keys.indices.cast(INTEGER), tracks


def _distinct_ids(handles: Sequence[int | None]) -> list[int | None]:
    free = itertools.filterfalse(set(handles).__contains__, itertools.count(1))
    seen: set[int | None] = set()
    ids = []
    for handle in handles:
        ids.append(next(free) if handle in seen and handle is not None else handle)
        seen.add(handle)
    return ids


def _keys(dispatches: pa.Table) -> pa.Array:
    return _pairs(table_integers(dispatches, "dispatch_id"), table_integers(dispatches, "start"))


def _pairs(first: pa.Array, second: pa.Array) -> pa.Array:
    """Return both integers of each row as one value that can be compared; null as -1."""
    parts = [np.asarray(part.fill_null(-1), np.int64) for part in (first, second)]
    data = np.ascontiguousarray(np.stack(parts, axis=1))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(data), [None, pa.py_buffer(data)])
