"""What the facts of a JSON file of rocprofv3 refer to: agents, kernels, code objects, threads and queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_json_columns import as_text
from tracewh.ingest.rocprof_json_fields import either, integers, plain_columns, table_integers
from tracewh.ingest.rocprof_json_names import looked_up, positions, text_at
from tracewh.ingest.rocprof_json_objects import handle_of, integer_column, objects, text_column
from tracewh.ingest.storable_text import storable

_AGENT_TYPES = {1: "CPU", 2: "GPU"}
_AGENT_INDICES = {
    "absolute_index": "node_id",
    "logical_index": "logical_node_id",
    "type_index": "logical_node_type_id",
}
_AGENT_NAMES = ("name", "model_name", "vendor_name", "product_name")
_STORAGE_TYPES = {1: "FILE", 2: "MEMORY"}


def agents(value: Any, problems: ProblemCounter) -> pa.Table:
    """Return info_agent: the id is the handle that records carry, extdata all that the file says."""
    entries = objects(value, "agents", problems)
    columns = {
        "id": pa.array([handle_of(entry.get("id")) for entry in entries], INTEGER),
        "type": pa.array([_agent_type(entry.get("type")) for entry in entries], TEXT),
    }
    for column, field in _AGENT_INDICES.items():
        columns[column] = integer_column(entries, field, "agents", problems)
    columns |= {name: text_column(entries, name) for name in _AGENT_NAMES}
    return pa.table({**columns, "extdata": pa.array([as_text(entry) for entry in entries], TEXT)})


def kernel_symbols(records: pa.Table) -> pa.Table:
    """Return info_kernel_symbol without its placeholder, which has neither a kernel nor a code object."""
    columns = plain_columns(records, {"kernel_id": "id", "formatted_kernel_name": "display_name"})
    return _without_placeholder(columns, len(records), "code_object_id")


def code_objects(records: pa.Table, snapshots: Any) -> pa.Table:
    """Return info_code_object without its placeholder; `snapshots` are names of files, by code object."""
    columns, rows = plain_columns(records, {"code_object_id": "id"}), len(records)
    # Older writers name the agent of the profiler and that of HSA.
    of_profiler = columns.pop("rocp_agent", pa.nulls(rows))
    columns["agent_id"] = either(columns.get("agent_id", pa.nulls(rows)), of_profiler)
    columns["storage_type"] = looked_up([integers(columns, "storage_type", rows)], _STORAGE_TYPES.get, TEXT)
    columns["snapshot"] = text_at(snapshots, integers(columns, "id", rows))
    return _without_placeholder(columns, rows, "load_size")


def threads(facts: Iterable[pa.Table]) -> pa.Table:
    """Return info_thread: the threads that facts name."""
    ids = pa.chunked_array([table_integers(table, "tid") for table in facts], INTEGER).unique()
    ids = ids.drop_null().sort()
    return pa.table({"id": ids, "tid": ids})


def handles(facts: Iterable[pa.Table], column: str, label: str) -> pa.Table:
    """Return info_queue or info_stream: 0 is the default one, the others are numbered as they are met."""
    met = pa.chunked_array([pa.array([0], INTEGER), *(table_integers(table, column) for table in facts)])
    ids = met.unique().drop_null()
    names = [f"Default {label}", *(f"{label} {number}" for number in range(len(ids) - 1))]
    return pa.table({"id": ids, "name": pa.array(names, TEXT)})


def with_sample_agents(samples: pa.Table, dispatches: pa.Table, code_objects: pa.Table) -> pa.Table:
    """Return samples with the agent that each was taken on: that of its dispatch, or of its code object."""
    found = table_integers(samples, "agent_id")
    for table, table_id, sample_id in (
        (dispatches, "dispatch_id", "dispatch_id"),
        (code_objects, "id", "code_object_id"),
    ):
        ids = table_integers(samples, sample_id)
        # Both count from 1: 0 stands for none.
        ids = pc.if_else(pc.equal(ids, 0), pa.scalar(None, INTEGER), ids)
        found = pc.coalesce(
            found, table_integers(table, "agent_id").take(positions(ids, table_integers(table, table_id)))
        )
    columns = dict(zip(samples.column_names, samples.columns, strict=True))
    return pa.table({**columns, "agent_id": found})


def _agent_type(value: Any) -> str | None:
    return storable(value).upper() if isinstance(value, str) else _AGENT_TYPES.get(handle_of(value) or 0)


def _without_placeholder(columns: dict[str, pa.Array], rows: int, other: str) -> pa.Table:
    """Leave out rows whose id and `other` are 0: lists that are indexed by id have one at the start."""
    columns = {"id": pa.nulls(rows, INTEGER), **columns}
    is_zero = [pc.equal(integers(columns, name, rows), 0).fill_null(False) for name in ("id", other)]
    return pa.table(columns).filter(pc.invert(pc.and_(*is_zero)))
