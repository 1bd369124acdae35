"""Dispatches, copies, graph launches and event barriers of a ROCm process as rows of device_events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.device_time import IMPOSSIBLE, DeviceTime
from tracewh.ingest.event_stats import intern
from tracewh.ingest.rocm_devices import Agents, Tracks
from tracewh.ingest.rocm_facts import Clock, Facts, read_facts
from tracewh.ingest.rocm_owners import Owners
from tracewh.ingest.rocm_process import RocmProcess
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import NULL, Source, empty_as_null, zero_as_null
from tracewh.ingest.shared_details import LAUNCH_DETAILS_TYPES, OP_TYPES
from tracewh.ingest.shared_rows import SharedRows

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
# A graph launch encloses the kernels of the graph, which are rows of their own.
_KIND_AND_ROLE = {
    "kernel_dispatch": ("kernel", "work"),
    "memory_copy": ("memcpy", "work"),
    "graph_launch": ("group", "enclosing"),
    "hip_event": ("barrier", "marker"),
}
# Columns that have a place of their own in every mapping.
_COMMON = ("queue_id", "stream_id", "graph_exec_id", "graph_node_id", "region_name_id")
_MAPPED = {
    "kernel_dispatch": (
        *_COMMON,
        "agent_id",
        "kernel_id",
        "dispatch_id",
        "private_segment_size",
        "group_segment_size",
        "replay_pass",
        *(f"{shape}_size_{axis}" for shape in ("grid", "workgroup") for axis in "xyz"),
    ),
    "memory_copy": (*_COMMON, "name_id", "size", "src_agent_id", "dst_agent_id"),
    "graph_launch": (*_COMMON, "agent_id", "kernel_dispatch_count"),
    "hip_event": (*_COMMON, "agent_id", "name_id"),
}
_FILL = re.compile("fill|memset", re.IGNORECASE)
_BARRIER = re.compile("event|barrier|wait", re.IGNORECASE)
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


def counts_per_dispatch(process: RocmProcess) -> bool:
    """Whether counters were read for each dispatch: then kernels ran one by one, and slower."""
    if process.source_kind == "rocprof_compute":
        return True
    if not process.count("pmc_event"):
        return False
    dispatches = Owners()
    for rows in process.columns("kernel_dispatch", ["event_id"]):
        dispatches.claim(rows.integers("event_id"))
    for rows in process.columns("pmc_event", ["event_id", "sample_id"]):
        # Values with a sample are of streaming monitors: taken during a dispatch at most, not for it.
        events = rows.integers("event_id").filter(rows.integers("sample_id").is_null())
        if dispatches.rows(events).null_count < len(events):
            return True
    return False


@dataclass
class DeviceEvents:
    """Makes the rows of device_events and of what they share."""

    source: Source
    agents: Agents
    tracks: Tracks
    owners: Owners
    is_serialized: bool

    def __post_init__(self) -> None:
        self.ops = SharedRows("op_id", OP_TYPES)
        self.launch_details = SharedRows("launch_details_id", LAUNCH_DETAILS_TYPES)
        self._count = 0
        self._time = DeviceTime()
        symbols = self.source.reference("info_kernel_symbol")
        names = (empty_as_null(symbols.texts(name)) for name in ("display_name", "kernel_name"))
        self._symbol_names = pc.coalesce(*names)
        self._agent_types = {
            agent: device.device_type
            for agent, device in zip(self.agents.ids.to_pylist(), self.agents.devices, strict=True)
        }

    def rows(self, clock: Clock | None) -> Iterator[tuple[str, pa.Table]]:
        """Return the rows by table, some at a time.

        A row whose agent is unknown is rejected and counted as `missing_agent`: nothing tells where it ran.
        """
        for base in _KIND_AND_ROLE:
            for facts in read_facts(self.source, base, clock):
                agent_ids = self._agent_ids(base, facts.rows)
                devices = self.agents.indices(agent_ids)
                if devices.null_count:
                    self._reject_without_agent(
                        facts, agent_ids.filter(devices.is_null())[0], devices.null_count
                    )
                    facts, devices = facts.where(devices.is_valid()), devices.drop_null()
                if len(facts):
                    yield from self._tables(base, facts, devices)

    def _tables(self, base: str, facts: Facts, devices: pa.Array) -> Iterator[tuple[str, pa.Table]]:
        count = len(facts)
        ids = pa.array(np.arange(self._count, self._count + count))
        self.owners.claim(facts.rows.integers("event_id"))
        self._count += count
        columns = self._common_columns(base, facts, ids)
        own = {
            "kernel_dispatch": self._kernel_columns,
            "memory_copy": self._copy_columns,
            "graph_launch": self._graph_columns,
            "hip_event": self._barrier_columns,
        }
        columns |= own[base](facts.rows, ids)
        queues, streams = facts.rows.integers("queue_id"), facts.rows.integers("stream_id")
        events = {
            "device_event_id": ids,
            "device_index": devices,
            "track_id": self.tracks.of_device_work(devices, queues, streams),
            "start_ps": facts.start_ps,
            "end_ps": facts.end_ps,
            **{name: columns[name] for name in DEVICE_EVENT_TYPES if name in columns},
            "op_id": self.ops.ids_of_arrays(columns, count),
            "launch_details_id": self.launch_details.ids_of_arrays(columns, count),
        }
        yield "tracks", self.tracks.new_rows()
        yield "ops", self.ops.new_rows()
        yield "launch_details", self.launch_details.new_rows()
        yield "device_events", pa.table(events)
        if base == "graph_launch":
            launched = facts.rows.integers("kernel_dispatch_count")
            yield "graph_launches", pa.table({"device_event_id": ids, "kernel_dispatch_count": launched})
        yield "event_stats", self.source.stats.take()

    def _agent_ids(self, base: str, rows: Rows) -> pa.Array:
        if base != "memory_copy":
            return rows.integers("agent_id")
        # A copy is counted on the GPU it goes to, else on the GPU it comes from.
        gpus = self.agents.of_type("GPU")
        ends = [rows.integers("dst_agent_id"), rows.integers("src_agent_id")]
        on_gpu = (pc.if_else(pc.is_in(end, value_set=gpus), end, NULL) for end in ends)
        return pc.coalesce(*on_gpu, *ends)

    def _reject_without_agent(self, facts: Facts, example: pa.Scalar, count: int) -> None:
        detail = f"row rejected: no agent has id {example}"
        self.source.problems.add("missing_agent", facts.rows.place, detail, count)

    def _common_columns(self, base: str, facts: Facts, ids: pa.Array) -> dict[str, pa.Array]:
        source, rows, place, count = self.source, facts.rows, facts.rows.place, len(facts)
        kind, role = _KIND_AND_ROLE[base]
        if self.is_serialized and role == "work":
            role = "serialized"
        for column in ("queue_id", "stream_id"):
            base_of = f"info_{column.removesuffix('_id')}"
            source.positions(base_of, rows.integers(column), f"{place}.{column}")
        threads = rows.integers("tid")
        positions = source.positions("info_thread", threads, f"{place}.tid")
        native_threads = source.reference("info_thread").integers("tid").take(positions)
        region_names = source.texts(rows.integers("region_name_id"), f"{place}.region_name_id")
        stack_ids, parents = facts.stack_ids, facts.parent_stack_ids
        is_own = pc.fill_null(pc.equal(parents, stack_ids), False)
        source.stats.add_column("device_event", ids, "parent_stack_id", pc.if_else(is_own, NULL, parents))
        category = source.texts(rows.integers("event.category_id"), f"{place}.category_id")
        encoded = category.dictionary_encode()
        is_usual = pc.match_substring(encoded.dictionary, base, ignore_case=True).take(encoded.indices)
        unusual = pc.if_else(pc.fill_null(is_usual, False), pa.scalar(None, category.type), category)
        source.stats.add_column("device_event", ids, "category", unusual)
        source.add_fact_stats("device_event", ids, rows, _MAPPED[base])
        graph_ids = zero_as_null(rows.integers("graph_exec_id"))
        return {
            "kind": pa.repeat(kind, count),
            "role": self._roles(role, facts),
            "correlation_id": stack_ids,
            "queue_id": rows.integers("queue_id"),
            "stream_id": rows.integers("stream_id"),
            "thread_id": pc.coalesce(native_threads, threads),
            "graph_id": graph_ids,
            "graph_node_id": pc.if_else(graph_ids.is_valid(), rows.integers("graph_node_id"), NULL),
            "nvtx_range_name_id": intern(source.names, empty_as_null(region_names)),
        }

    def _roles(self, role: str, facts: Facts) -> pa.Array:
        if role == "marker":
            return pa.repeat(role, len(facts))
        duration = np.asarray(facts.end_ps) - np.asarray(facts.start_ps)
        is_counted = pa.array(self._time.takes(duration))
        left_out = len(facts) - (pc.sum(is_counted).as_py() or 0)
        if left_out:
            self.source.problems.add("impossible_time", facts.rows.place, IMPOSSIBLE, left_out)
        return pc.if_else(is_counted, role, "marker")

    def _kernel_columns(self, rows: Rows, ids: pa.Array) -> dict[str, pa.Array]:
        source = self.source
        symbols = source.reference("info_kernel_symbol")
        kernel_ids, place = rows.integers("kernel_id"), f"{rows.place}.kernel_id"
        positions = pc.index_in(kernel_ids, value_set=symbols.integers("id"))
        positions = pc.if_else(kernel_ids.is_valid(), positions, pa.scalar(None, positions.type))
        static_bytes = symbols.integers("group_segment_size").take(positions)
        total_bytes = rows.integers("group_segment_size")
        # Where the two do not add up, the total is kept as the source gave it.
        is_sum = pc.fill_null(pc.greater_equal(total_bytes, static_bytes), False)
        stat = pc.if_else(is_sum, NULL, total_bytes)
        source.stats.add_column("device_event", ids, "group_segment_size", stat)
        names = self._symbol_names
        columns = {
            "name_id": source.name_ids("info_kernel_symbol", names, kernel_ids, place, "kernel"),
            "dispatch_id": rows.integers("dispatch_id"),
            "kernel_symbol_id": positions.cast(pa.int64()),
            "replay_pass": rows.integers("replay_pass"),
            "registers_per_thread": symbols.integers("arch_vgpr_count").take(positions),
            "accum_registers_per_thread": symbols.integers("accum_vgpr_count").take(positions),
            "scalar_registers": symbols.integers("sgpr_count").take(positions),
            "static_shared_memory_bytes": static_bytes,
            "dynamic_shared_memory_bytes": pc.max_element_wise(
                pc.subtract(total_bytes, static_bytes), 0, skip_nulls=False
            ),
            "private_memory_bytes": pc.coalesce(
                rows.integers("private_segment_size"),
                symbols.integers("private_segment_size").take(positions),
            ),
        }
        for axis in "xyz":
            columns |= self._launch_shape(rows, ids, axis)
        return columns

    def _launch_shape(self, rows: Rows, ids: pa.Array, axis: str) -> dict[str, pa.Array]:
        """Return grid and block of one axis; rocpd counts the grid in work-items."""
        work_items, block = rows.integers(f"grid_size_{axis}"), rows.integers(f"workgroup_size_{axis}")
        is_usable = pc.greater(block, 0)
        unusable = pc.sum(pc.invert(is_usable)).as_py()
        if unusable:
            place, detail = f"{rows.place}.workgroup_size_{axis}", "stored as null: not above 0"
            self.source.problems.add("empty_workgroup", place, detail, unusable)
        block = pc.if_else(is_usable, block, NULL)
        whole = pc.divide(work_items, block)
        is_exact = pc.fill_null(pc.equal(pc.multiply(whole, block), work_items), False)
        # A last block that is not full: the number of blocks alone would lose the size.
        stat = pc.if_else(is_exact, NULL, work_items)
        self.source.stats.add_column("device_event", ids, f"grid_size_{axis}", stat)
        return {f"grid_{axis}": pc.if_else(is_exact, whole, pc.add(whole, 1)), f"block_{axis}": block}

    def _copy_columns(self, rows: Rows, _ids: pa.Array) -> dict[str, pa.Array]:
        names = self._name_ids(rows, "memory copy")
        ends = {}
        for end in ("src", "dst"):
            ends[end] = rows.integers(f"{end}_agent_id")
            self.source.positions("info_agent", ends[end], f"{rows.place}.{end}_agent_id")
        types = self._agent_types
        kinds = [
            _copy_kind(
                self.source.names.strings[name], origin, target, (types.get(origin), types.get(target))
            )
            for name, origin, target in zip(
                names.to_pylist(), ends["src"].to_pylist(), ends["dst"].to_pylist(), strict=True
            )
        ]
        is_fill = _matches(self.source, names, _FILL)
        return {
            "name_id": names,
            "kind": pc.if_else(is_fill, "memset", "memcpy"),
            "copy_kind": pa.array(kinds, pa.string()),
            "copy_bytes": rows.integers("size"),
            "source_device_index": self.agents.indices(ends["src"]),
            "target_device_index": self.agents.indices(ends["dst"]),
        }

    def _graph_columns(self, rows: Rows, _ids: pa.Array) -> dict[str, pa.Array]:
        name = pa.scalar(self.source.names.id_of("graph launch"), pa.int64())
        return {"name_id": pa.repeat(name, len(rows))}

    def _barrier_columns(self, rows: Rows, _ids: pa.Array) -> dict[str, pa.Array]:
        names = self._name_ids(rows, "event barrier")
        return {
            "name_id": names,
            "kind": pc.if_else(_matches(self.source, names, _BARRIER), "barrier", "other"),
        }

    def _name_ids(self, rows: Rows, fallback: str) -> pa.Array:
        texts, ids = self.source.reference("string").texts("string"), rows.integers("name_id")
        return self.source.name_ids("string", texts, ids, f"{rows.place}.name_id", fallback)


def _matches(source: Source, name_ids: pa.Array, pattern: re.Pattern[str]) -> pa.Array:
    """Whether the pattern is in each name."""
    encoded = name_ids.dictionary_encode()
    found = [
        pattern.search(source.names.strings[name]) is not None for name in encoded.dictionary.to_pylist()
    ]
    return pa.array(found, pa.bool_()).take(encoded.indices)


@cache
def _copy_kind(
    name: str, origin: int | None, target: int | None, types: tuple[str | None, str | None]
) -> str:
    kind = next((kind for pattern, kind in _COPY_KINDS if pattern.search(name)), None)
    if kind is None and None not in types:
        kind = _COPY_KIND_OF_TYPES.get(types)
    # The runtime names a copy between two GPUs device to device.
    return "P2P" if kind == "D2D" and types == ("GPU", "GPU") and origin != target else kind or "unknown"
