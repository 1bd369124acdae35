"""Dispatches, copies and graph launches of a rocpd shard with the details that they share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.event_stats import intern
from tracewh.ingest.rocpd_devices import Agents, Tracks, agents_of_type
from tracewh.ingest.rocpd_facts import Events, Facts
from tracewh.ingest.rocpd_source import Source, empty_as_null, zero_as_null
from tracewh.ingest.shared_details import LAUNCH_DETAILS_TYPES, OP_TYPES, split_shared
from tracewh.ingest.sqlite_file import Rows

DEVICE_EVENT_TYPES = {
    "device_event_id": pa.int64(),
    "device_index": pa.int64(),
    "track_id": pa.int64(),
    "name_id": pa.int64(),
    "start_ps": pa.int64(),
    "end_ps": pa.int64(),
    "kind": pa.string(),
    "role": pa.string(),
    "correlation_id": pa.int64(),
    "dispatch_id": pa.int64(),
    "graph_node_id": pa.int64(),
}
_TYPES = DEVICE_EVENT_TYPES | OP_TYPES | LAUNCH_DETAILS_TYPES
_NULL = pa.scalar(None, pa.int64())
# A graph launch encloses the kernels of the graph, which are rows of their own.
_KIND_AND_ROLE = {
    "kernel_dispatch": ("kernel", "work"),
    "memory_copy": ("memcpy", "work"),
    "graph_launch": ("group", "enclosing"),
}
# Columns of a fact that have a place of their own in every mapping.
_COMMON = (
    *("id", "nid", "pid", "tid", "start", "end", "event_id", "queue_id", "stream_id"),
    *("graph_exec_id", "graph_node_id", "region_name_id"),
)
_MAPPED = {
    "kernel_dispatch": (
        *_COMMON,
        "agent_id",
        "dispatch_id",
        "private_segment_size",
        "group_segment_size",
        *(f"{shape}_size_{axis}" for shape in ("grid", "workgroup") for axis in "xyz"),
    ),
    "memory_copy": (*_COMMON, "name_id", "size"),
    "graph_launch": (*_COMMON, "agent_id"),
}
_COPY_KINDS = (
    (re.compile("HOST_?TO_?DEVICE|H2D|HTOD", re.IGNORECASE), "H2D"),
    (re.compile("DEVICE_?TO_?HOST|D2H|DTOH", re.IGNORECASE), "D2H"),
    (re.compile("DEVICE_?TO_?DEVICE|D2D|DTOD", re.IGNORECASE), "D2D"),
    (re.compile("HOST_?TO_?HOST|H2H|HTOH", re.IGNORECASE), "H2H"),
    (re.compile("PEER_?TO_?PEER|P2P", re.IGNORECASE), "P2P"),
)
_COPY_KIND_OF_TYPES: dict[tuple[str | None, str | None], str] = {
    ("CPU", "GPU"): "H2D",
    ("GPU", "CPU"): "D2H",
    ("GPU", "GPU"): "D2D",
    ("CPU", "CPU"): "H2H",
}


def device_events(
    source: Source, facts: Mapping[str, Facts], events: Events, tracks: Tracks, hostname: str
) -> tuple[Agents, dict[str, pa.Table]]:
    """Return the devices of the shard and its rows of ops, launch_details and device_events.

    A row whose agent is unknown is rejected and counted as `missing_agent`: it cannot be told where it ran.
    """
    agent_ids = {
        "kernel_dispatch": facts["kernel_dispatch"].rows.integers("agent_id"),
        "memory_copy": _copy_agents(source, facts["memory_copy"].rows),
        "graph_launch": facts["graph_launch"].rows.integers("agent_id"),
    }
    agents = Agents(
        source, hostname, {agent for ids in agent_ids.values() for agent in ids.unique().to_pylist()}
    )
    placed: dict[str, Facts] = {}
    devices: dict[str, pa.Array] = {}
    for base, ids in agent_ids.items():
        devices[base] = agents.indices(ids)
        placed[base] = _with_device(source, facts[base], devices[base], ids)
        devices[base] = devices[base].drop_null()
    track_ids = tracks.of_device_work(
        pa.concat_arrays(list(devices.values())),
        *(
            pa.concat_arrays([group.rows.integers(column) for group in placed.values()])
            for column in ("queue_id", "stream_id")
        ),
    )
    tables = []
    first_id = 0
    for base, group in placed.items():
        ids = pa.array(range(first_id, first_id + len(group)), pa.int64())
        columns = _common_columns(source, base, group, events, ids)
        columns["device_index"] = devices[base]
        columns["track_id"] = track_ids.slice(first_id, len(group))
        columns |= _OWN_COLUMNS[base](source, group.rows, ids)
        tables.append(pa.table({name: column.cast(_TYPES[name]) for name, column in columns.items()}))
        first_id += len(group)
    empty = pa.schema(list(_TYPES.items())).empty_table()
    rows = pa.concat_tables([empty, *tables], promote_options="default").combine_chunks()
    rows, ops = split_shared(rows, "op_id", OP_TYPES)
    rows, launch_details = split_shared(rows, "launch_details_id", LAUNCH_DETAILS_TYPES)
    return agents, {"ops": ops, "launch_details": launch_details, "device_events": rows}


def _with_device(source: Source, facts: Facts, devices: pa.Array, agent_ids: pa.Array) -> Facts:
    if devices.null_count:
        example = agent_ids.filter(devices.is_null())[0]
        source.problems.add(
            "missing_agent", facts.rows.place, f"row rejected: no agent has id {example}", devices.null_count
        )
    return facts.where(devices.is_valid())


def _copy_agents(source: Source, rows: Rows) -> pa.Array:
    """Return the agent that each copy is counted on: the GPU it goes to, else the GPU it comes from."""
    gpus = agents_of_type(source, "GPU")
    ends = [rows.integers("dst_agent_id"), rows.integers("src_agent_id")]
    nothing = pa.scalar(None, pa.int64())
    return pc.coalesce(*(pc.if_else(pc.is_in(end, value_set=gpus), end, nothing) for end in ends), *ends)


def _common_columns(
    source: Source, base: str, facts: Facts, events: Events, ids: pa.Array
) -> dict[str, pa.Array]:
    rows, place = facts.rows, facts.rows.place
    stack_id = events.stack_id.take(facts.events)
    kind, role = _KIND_AND_ROLE[base]
    graph_id = zero_as_null(rows.integers("graph_exec_id"))
    graph_node_id = rows.integers("graph_node_id")
    events.claim("device_event", ids, facts.events)

    for column in ("queue_id", "stream_id"):
        source.positions(f"info_{column.removesuffix('_id')}", rows.integers(column), f"{place}.{column}")
    threads = rows.integers("tid")
    positions = source.positions("info_thread", threads, f"{place}.tid")
    thread = pc.coalesce(source.reference("info_thread").integers("tid").take(positions), threads)
    source.stats.add_column("device_event", ids, "tid", thread)
    region_names = source.strings(rows.integers("region_name_id"), f"{place}.region_name_id")
    parent = events.parent_stack_id.take(facts.events)
    is_own = pc.fill_null(pc.equal(parent, stack_id), False)
    source.stats.add_column("device_event", ids, "parent_stack_id", pc.if_else(is_own, _NULL, parent))
    category = events.category.take(facts.events)
    is_usual = pc.fill_null(pc.match_substring(category, base, ignore_case=True), False)
    unusual = pc.if_else(is_usual, pa.scalar(None, category.type), category)
    source.stats.add_column("device_event", ids, "category", unusual)
    source.add_remaining("device_event", ids, rows, source.mapped(_MAPPED[base]))
    events.add_stats("device_event", ids, facts.events)
    return {
        "device_event_id": ids,
        "start_ps": facts.start_ps,
        "end_ps": facts.end_ps,
        "kind": pa.repeat(kind, len(facts)),
        "role": pa.repeat(role, len(facts)),
        "correlation_id": stack_id,
        "queue_id": rows.integers("queue_id"),
        "stream_id": rows.integers("stream_id"),
        "graph_id": graph_id,
        "graph_node_id": pc.if_else(graph_id.is_valid(), graph_node_id, _NULL),
        "nvtx_range_name_id": intern(source.names, empty_as_null(region_names)),
    }


def _kernel_columns(source: Source, rows: Rows, ids: pa.Array) -> dict[str, pa.Array]:
    symbols = source.reference("info_kernel_symbol")
    kernel_ids, place = rows.integers("kernel_id"), f"{rows.place}.kernel_id"
    names = pc.coalesce(*(empty_as_null(symbols.texts(name)) for name in ("display_name", "kernel_name")))
    positions = pc.index_in(kernel_ids, value_set=symbols.integers("id"))
    static_bytes = symbols.integers("group_segment_size").take(positions)
    total_bytes = rows.integers("group_segment_size")
    is_sum = pc.fill_null(pc.greater_equal(total_bytes, static_bytes), False)
    # Where the two do not add up, the total is kept as the source gave it.
    source.stats.add_column("device_event", ids, "group_segment_size", pc.if_else(is_sum, _NULL, total_bytes))
    columns = {
        "name_id": source.name_ids("info_kernel_symbol", names, kernel_ids, place, "kernel"),
        "dispatch_id": rows.integers("dispatch_id"),
        "registers_per_thread": symbols.integers("arch_vgpr_count").take(positions),
        "accum_registers_per_thread": symbols.integers("accum_vgpr_count").take(positions),
        "scalar_registers": symbols.integers("sgpr_count").take(positions),
        "static_shared_memory_bytes": static_bytes,
        "dynamic_shared_memory_bytes": pc.max_element_wise(
            pc.subtract(total_bytes, static_bytes), 0, skip_nulls=False
        ),
        "private_memory_bytes": pc.coalesce(
            rows.integers("private_segment_size"), symbols.integers("private_segment_size").take(positions)
        ),
    }
    for axis in "xyz":
        columns |= _launch_shape(source, rows, ids, axis)
    return columns


def _launch_shape(source: Source, rows: Rows, ids: pa.Array, axis: str) -> dict[str, pa.Array]:
    """Return grid and block of one axis; rocpd counts the grid in work-items."""
    work_items, block = rows.integers(f"grid_size_{axis}"), rows.integers(f"workgroup_size_{axis}")
    is_usable = pc.greater(block, 0)
    unusable = pc.sum(pc.invert(is_usable)).as_py()
    if unusable:
        source.problems.add(
            "empty_workgroup", f"{rows.place}.workgroup_size_{axis}", "stored as null: not above 0", unusable
        )
    block = pc.if_else(is_usable, block, _NULL)
    whole = pc.divide(work_items, block)
    is_exact = pc.fill_null(pc.equal(pc.multiply(whole, block), work_items), False)
    # A last block that is not full: the number of blocks alone would lose the size.
    source.stats.add_column("device_event", ids, f"grid_size_{axis}", pc.if_else(is_exact, _NULL, work_items))
    return {f"grid_{axis}": pc.if_else(is_exact, whole, pc.add(whole, 1)), f"block_{axis}": block}


def _copy_columns(source: Source, rows: Rows, _ids: pa.Array) -> dict[str, pa.Array]:
    name_ids, place = rows.integers("name_id"), f"{rows.place}.name_id"
    texts = source.reference("string").texts("string")
    names = source.name_ids("string", texts, name_ids, place, "memory copy")
    types = {
        agent: agent_type
        for agent_type in ("GPU", "CPU")
        for agent in agents_of_type(source, agent_type).to_pylist()
    }
    ends = {}
    for end in ("src", "dst"):
        ends[end] = rows.integers(f"{end}_agent_id")
        source.positions("info_agent", ends[end], f"{rows.place}.{end}_agent_id")
    kinds = [
        _copy_kind(source.names.strings[name], origin, target, (types.get(origin), types.get(target)))
        for name, origin, target in zip(
            names.to_pylist(), ends["src"].to_pylist(), ends["dst"].to_pylist(), strict=True
        )
    ]
    return {
        "name_id": names,
        "copy_kind": pa.array(kinds, pa.string()),
        "copy_bytes": rows.integers("size"),
    }


@cache
def _copy_kind(
    name: str, origin: int | None, target: int | None, types: tuple[str | None, str | None]
) -> str:
    kind = next((kind for pattern, kind in _COPY_KINDS if pattern.search(name)), None)
    if kind is None and None not in types:
        kind = _COPY_KIND_OF_TYPES.get(types)
    # The runtime names a copy between two GPUs device to device.
    return "P2P" if kind == "D2D" and types == ("GPU", "GPU") and origin != target else kind or "unknown"


def _graph_columns(source: Source, rows: Rows, _ids: pa.Array) -> dict[str, pa.Array]:
    name = pa.scalar(source.names.id_of("graph launch"), pa.int64())
    return {"name_id": pa.repeat(name, len(rows))}


_OWN_COLUMNS = {
    "kernel_dispatch": _kernel_columns,
    "memory_copy": _copy_columns,
    "graph_launch": _graph_columns,
}
