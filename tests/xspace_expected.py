"""What an XSpace must become in the warehouse, worked out from the oracle's reading; queries to compare."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from typing import Any

import duckdb

from .xspace_oracle import Event, Line, Space, Stat

DEVICE_PLANE = re.compile(r"/device:(GPU|TPU):(\d+)")

Row = dict[str, Any]


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def rows_of(connection: duckdb.DuckDBPyConnection, query: str, *parameters: Any) -> list[Row]:
    cursor = connection.execute(query, list(parameters))
    names = [item[0] for item in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def values_of(connection: duckdb.DuckDBPyConnection, query: str, *parameters: Any) -> list[Any]:
    return [row[0] for row in connection.execute(query, list(parameters)).fetchall()]


# --- what a file must become --------------------------------------------------------------------------------

INTEGER_STATS = {
    "correlation_id": "correlation_id",
    "cuda_graph_id": "graph_id",
    "hip_graph_id": "graph_id",
    "program_id": "program_id",
    "run_id": "execution_id",
    "scope_range_id": "scope_range_id",
}
DEVICE_INTEGER_STATS = INTEGER_STATS | {
    "cuda_graph_node_id": "graph_node_id",
    "hip_graph_node_id": "graph_node_id",
    "unique_hlo_op_id": "unique_hlo_op_id",
    "occupancy_min_grid_size": "occupancy_min_grid_size",
    "occupancy_suggested_block_size": "occupancy_suggested_block_size",
}
HOST_INTEGER_STATS = INTEGER_STATS | {
    "device_id": "native_device_id",
    "_pt": "producer_type",
    "_p": "producer_id",
    "_ct": "consumer_type",
    "_c": "consumer_id",
}
HOST_TEXT_STATS = {
    "kernel_details": "details",
    "memcpy_details": "details",
    "Memset_details": "details",
    "memset_details": "details",
}
DEVICE_TEXT_STATS = HOST_TEXT_STATS | {
    "hlo_op": "hlo_op",
    "hlo_module": "hlo_module",
    "name": "op_name",
    "tf_op": "tf_op",
    "annotation": "annotation",
    "nvtx_range": "nvtx_range",
}
DEVICE_QUERY = """
    SELECT e.device_event_id AS id, e.track_id, d.device_type, d.device_ordinal, n.name AS name,
        ho.name AS hlo_op, hm.name AS hlo_module, o.name AS op_name, tf.name AS tf_op, a.name AS annotation,
        nv.name AS nvtx_range, de.name AS details, e.start_ps, e.end_ps, e.correlation_id, l.context_id,
        l.stream_id, l.graph_id, e.graph_node_id, op.program_id, e.execution_id, op.unique_hlo_op_id,
        e.scope_range_id, l.registers_per_thread, l.static_shared_memory_bytes, l.dynamic_shared_memory_bytes,
        l.private_memory_bytes, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z,
        l.occupancy_ratio, l.occupancy_min_grid_size, l.occupancy_suggested_block_size, l.copy_kind,
        l.copy_bytes, e.kind, e.role
    FROM device_events AS e JOIN devices AS d USING (device_id)
    JOIN names AS n ON n.name_id = e.name_id
    LEFT JOIN ops AS op USING (capture_id, op_id)
    LEFT JOIN launch_details AS l USING (capture_id, launch_details_id)
    LEFT JOIN names AS ho ON ho.name_id = op.hlo_op_name_id
    LEFT JOIN names AS hm ON hm.name_id = op.hlo_module_name_id
    LEFT JOIN names AS o ON o.name_id = op.op_name_id
    LEFT JOIN names AS tf ON tf.name_id = op.tf_op_name_id
    LEFT JOIN names AS a ON a.name_id = op.annotation_name_id
    LEFT JOIN names AS nv ON nv.name_id = op.nvtx_range_name_id
    LEFT JOIN names AS de ON de.name_id = l.details_name_id
    WHERE e.capture_id = ? ORDER BY e.track_id, e.device_event_id
"""
HOST_QUERY = """
    SELECT e.host_event_id AS id, e.track_id, n.name AS name, de.name AS details, e.start_ps, e.end_ps,
        e.correlation_id, c.context_id, c.graph_id, c.program_id, e.execution_id, e.scope_range_id,
        c.native_device_id, f.producer_type, f.producer_id, f.consumer_type, f.consumer_id
    FROM host_events AS e
    JOIN names AS n ON n.name_id = e.name_id
    LEFT JOIN host_flows AS f USING (capture_id, host_event_id)
    LEFT JOIN call_details AS c USING (capture_id, call_details_id)
    LEFT JOIN names AS de ON de.name_id = c.details_name_id
    WHERE e.capture_id = ? ORDER BY e.track_id, e.host_event_id
"""
STATS_QUERY = """
    SELECT s.owner, s.owner_id, n.name AS stat, s.value_type, s.int_value, s.double_value, v.name AS text,
        s.bytes_value
    FROM event_stats AS s JOIN names AS n ON n.name_id = s.stat_name_id
    LEFT JOIN names AS v ON v.name_id = s.value_name_id
    WHERE s.capture_id = ?
"""


def expected_row(event: Event, is_device: bool) -> tuple[Row, list[Stat]]:
    """Columns that come straight from the event and its stats; and its own stats that have no column."""
    integers = DEVICE_INTEGER_STATS if is_device else HOST_INTEGER_STATS
    texts = DEVICE_TEXT_STATS if is_device else HOST_TEXT_STATS
    row: Row = {"name": event.display_name or event.name, "start_ps": event.start_ps, "end_ps": event.end_ps}
    rest = []
    if event.num_occurrences is not None:
        rest.append(Stat("XEvent.num_occurrences", "int64", event.num_occurrences))
    inherited = len(event.stats) - len(event.own_stats)
    for position, stat in enumerate(event.stats):
        if stat.name in integers and stat.type in ("int64", "uint64"):
            row[integers[stat.name]] = signed(stat.value)
        elif stat.name in texts and stat.type in ("string", "ref"):
            row[texts[stat.name]] = stat.value
        elif stat.name == "context_id" and str(stat.value).startswith("$$"):
            row["context_id"] = int(stat.value[2:])
        elif stat.name == "theoretical_occupancy_pct" and is_device:
            row["occupancy_ratio"] = stat.value / 100
        elif position >= inherited:
            rest.append(stat)
    return row, rest


def detail_columns(event: Event) -> Row:
    """What kernel_details or memcpy_details say, split at blanks and colons."""
    details = {kind: event.stat(f"{kind}_details") for kind in ("kernel", "memcpy", "Memset", "memset")}
    kind = next((kind.lower() for kind, text in details.items() if text), "kernel")
    pairs = dict(item.split(":", 1) for text in details.values() if text for item in text.split())
    row: Row = {}
    registers = int(pairs.get("regs", -1))
    # No GPU has more than 512 registers for a thread: the tracer wrote uninitialized memory.
    row["registers_per_thread"] = registers if 0 <= registers <= 1024 else None
    shared = pairs.get("static_shared", pairs.get("group_mem", pairs.get("shm")))
    row["static_shared_memory_bytes"] = None if shared is None else int(shared)
    row["dynamic_shared_memory_bytes"] = int(pairs["dynamic_shared"]) if "dynamic_shared" in pairs else None
    row["private_memory_bytes"] = int(pairs["private_mem"]) if "private_mem" in pairs else None
    for name in ("grid", "block"):
        sizes = [int(size) for size in pairs[name].split(",")] if name in pairs else [None] * 3
        row |= dict(zip((f"{name}_x", f"{name}_y", f"{name}_z"), sizes, strict=True))
    occupancy = float(pairs.get("occ_pct", 0))
    row["occupancy_ratio"] = occupancy / 100 if occupancy else None
    size = pairs.get("size", pairs.get("num_bytes"))
    row["copy_bytes"] = None if size is None else int(size)
    row["copy_kind"] = None
    if kind == "memcpy":
        ends = {"device": "D", "host": "H", "pinned": "H", "pageable": "H"}
        if "kind_src" in pairs and pairs["kind_src"] in ends:
            row["copy_kind"] = f"{ends[pairs['kind_src']]}2{ends[pairs['kind_dst']]}"
        else:
            spelled = {"CopyDeviceToDevice": "D2D", "CopyHostToDevice": "H2D", "CopyDeviceToHost": "D2H"}
            row["copy_kind"] = spelled.get(event.name, "unknown")
    return row | {"kind": kind}


def encloses(outer: Event, outer_index: int, line: list[Event]) -> bool:
    """Whether another op of the line lies inside `outer`, by comparing with every one of them."""
    return any(
        index != outer_index
        and inner.duration_ps > 0
        and outer.start_ps <= inner.start_ps
        and inner.end_ps <= outer.end_ps
        and (inner.duration_ps < outer.duration_ps or index > outer_index)
        for index, inner in enumerate(line)
    )


def op_role(ops: list[Event], index: int) -> str:
    name = ops[index].stat("hlo_op") or ops[index].name
    is_loop = re.match(r"%?(while|conditional)\b", name) is not None
    return "enclosing" if is_loop or encloses(ops[index], index, ops) else "work"


def tpu_columns(line: Line, index: int) -> Row:
    event = line.events[index]
    if line.name == "XLA Ops":
        row = {"kind": "op", "role": op_role(line.events, index)}
    elif line.name == "Async XLA Ops":
        # Copies in flight at once: one that begins and ends during another is no part of it.
        row = {"kind": "op", "role": "work"}
    elif line.name in ("XLA TraceMe", "Overlay"):
        return {"kind": "marker", "role": "marker"}
    else:
        return {"kind": "group", "role": "derived"}
    return row | {"hlo_op": event.stat("hlo_op") or event.display_name or event.name}


def plain(stat: Stat) -> tuple[str, str, Any]:
    value = signed(stat.value) if stat.type in ("int64", "uint64") else stat.value
    return (stat.name, stat.type, value)


def stored(row: Row) -> tuple[str, str, Any]:
    """Name, type and value of a row of event_stats; only one of its columns may hold something."""
    value_type = row["value_type"]
    held = [
        row[name] for name in ("int_value", "double_value", "text", "bytes_value") if row[name] is not None
    ]
    assert len(held) == (0 if value_type == "none" else 1)
    if value_type == "gzip":
        return (row["stat"], "bytes", gzip.decompress(held[0]))
    return (row["stat"], value_type, held[0] if held else None)


def is_cpu_op(event: Event, accelerated: bool) -> bool:
    """Whether an event of the host is an op that a CPU device ran."""
    launches = event.stat("correlation_id") is not None
    told = event.stat("device_ordinal") is not None or not accelerated
    return event.stat("hlo_op") is not None and not launches and told


def expected_events(space: Space) -> tuple[list[Row], list[Row], list[Row]]:
    """Tracks, device rows and host rows in the order of the file; `rest` of a row are its event_stats."""
    tracks, device_rows, host_rows = [], [], []
    accelerated = any(DEVICE_PLANE.match(plane.name) for plane in space.planes)
    for plane in space.planes:
        found = DEVICE_PLANE.match(plane.name)
        for line in plane.lines:
            track_id = len(tracks)
            line_name = line.display_name or line.name
            tracks.append({"plane_name": plane.name, "track_name": line_name, "native_id": line.id})
            is_op = [found is None and is_cpu_op(event, accelerated) for event in line.events]
            cpu_ops = [event for event, is_op_ in zip(line.events, is_op, strict=True) if is_op_]
            for index, event in enumerate(line.events):
                is_device = found is not None or is_op[index]
                row, rest = expected_row(event, is_device)
                row["track_id"] = track_id
                if not is_device:
                    host_rows.append(row | {"rest": Counter(map(plain, rest))})
                    continue
                if found is None:
                    row |= {
                        "device_type": "CPU",
                        "device_ordinal": event.stat("device_ordinal") or 0,
                        "kind": "op",
                    }
                    row["role"] = op_role(cpu_ops, next(i for i, op in enumerate(cpu_ops) if op is event))
                elif found[1] == "TPU":
                    row |= {"device_type": "TPU", "device_ordinal": int(found[2]), **tpu_columns(line, index)}
                    if row["kind"] == "op":
                        # The column also holds the name of an op that has no such stat.
                        rest += [stat for stat in event.own_stats if stat.name == "hlo_op"]
                else:
                    row |= {"device_type": "GPU", "device_ordinal": int(found[2]), "role": "work"}
                    details = detail_columns(event)
                    if "occupancy_ratio" in row:
                        del details["occupancy_ratio"]
                    row |= details
                    stream = re.match(r"Stream #(\d+)", line_name)
                    row["stream_id"] = None if stream is None else int(stream[1])
                device_rows.append(row | {"rest": Counter(map(plain, rest))})
    return tracks, device_rows, host_rows


def compare(found: list[Row], expected: list[Row], columns: list[str]) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        differing = {
            column: (row[column], wanted.get(column))
            for column in columns
            if row[column] != wanted.get(column)
        }
        assert differing == {}, f"{row['name']} at {row['start_ps']}: (found, expected) {differing}"
