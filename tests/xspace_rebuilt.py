"""The content of an XSpace out of the warehouse's tables alone, in the form of xspace_content."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb

from .xspace_content import (
    OCCUPANCY,
    Event,
    Header,
    Line,
    Metadata,
    Plane,
    Stat,
    canonical,
    context_value,
    in_order,
    ratio_value,
    shared_name,
)

# Above this a line's timestamp is a wall clock, which the capture's origin is taken off.
WALL_CLOCK_NS = 10**15
COUNT, OFFSET, DURATION = "XEvent.num_occurrences", "XEvent.offset_ps", "XEvent.duration_ps"

EVENT_COLUMNS = {
    "e.correlation_id": "correlation_id",
    "e.execution_id": "run_id",
    "e.scope_range_id": "scope_range_id",
}
DEVICE_COLUMNS = EVENT_COLUMNS | {
    "e.graph_node_id": "graph_node_id",
    "o.program_id": "program_id",
    "o.unique_hlo_op_id": "unique_hlo_op_id",
    "o.hlo_module_name_id": "hlo_module",
    "o.op_name_id": "name",
    "o.tf_op_name_id": "tf_op",
    "o.annotation_name_id": "annotation",
    "o.nvtx_range_name_id": "nvtx_range",
    "l.context_id": "context_id",
    "l.graph_id": "graph_id",
    "l.details_name_id": "details",
    "l.occupancy_ratio": OCCUPANCY,
    "l.occupancy_min_grid_size": "occupancy_min_grid_size",
    "l.occupancy_suggested_block_size": "occupancy_suggested_block_size",
    "o.hlo_op_name_id": "hlo_op",
}
HOST_COLUMNS = EVENT_COLUMNS | {
    "c.native_device_id": "device_id",
    "c.context_id": "context_id",
    "c.graph_id": "graph_id",
    "c.program_id": "program_id",
    "c.details_name_id": "details",
    "f.producer_type": "_pt",
    "f.producer_id": "_p",
    "f.consumer_type": "_ct",
    "f.consumer_id": "_c",
}
_EVENT = "m.native_id, e.name_id, e.start_ps, e.end_ps"
DEVICE_QUERY = f"""
    SELECT e.device_event_id, {_EVENT}, d.device_type = 'TPU' AND e.kind = 'op', {", ".join(DEVICE_COLUMNS)}
    FROM device_events AS e
    JOIN event_metadata AS m USING (capture_id, event_metadata_id)
    JOIN devices AS d USING (device_id)
    LEFT JOIN ops AS o USING (capture_id, op_id)
    LEFT JOIN launch_details AS l USING (capture_id, launch_details_id)
    WHERE e.capture_id = ? AND e.track_id = ? ORDER BY e.device_event_id
"""
HOST_QUERY = f"""
    SELECT e.host_event_id, {_EVENT}, FALSE, {", ".join(HOST_COLUMNS)}
    FROM host_events AS e
    JOIN event_metadata AS m USING (capture_id, event_metadata_id)
    LEFT JOIN host_flows AS f USING (capture_id, host_event_id)
    LEFT JOIN call_details AS c USING (capture_id, call_details_id)
    WHERE e.capture_id = ? AND e.track_id = ? ORDER BY e.host_event_id
"""
_STAT = (
    "s.owner_id, s.stat_name_id, s.value_type, s.int_value, s.double_value, s.value_name_id, s.bytes_value"
)


class Rebuilt:
    """One capture of a warehouse, read with SQL."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, capture_id: int) -> None:
        self._connection, self._capture_id = connection, capture_id
        self._names = dict(connection.execute("SELECT name_id, name FROM names").fetchall())
        ((self._origin_ns,),) = self._rows("SELECT origin_unix_ns FROM captures WHERE capture_id = ?")
        self._known: dict[tuple[str, Any], Stat] = {}

    def _rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, [self._capture_id, *parameters]).fetchall()

    def header(self) -> Header:
        texts: dict[str, list[str]] = {"errors": [], "warnings": [], "hostnames": []}
        for position, name, value in self._texts("capture"):
            found = texts[name.removeprefix("XSpace.")]
            assert len(found) == position
            found.append(value)
        return Header(**texts)

    def planes(self) -> list[Plane]:
        found = self._rows(
            "SELECT plane_index, native_id, plane_name FROM planes WHERE capture_id = ? ORDER BY plane_index"
        )
        assert [row[0] for row in found] == list(range(len(found)))
        stats, metadata, descriptions = self._stats("plane"), self._metadata(), self._texts("stat_metadata")
        ranges = self._rows(
            "SELECT scope_range_id, parent_scope_range_id FROM scope_ranges "
            "WHERE capture_id = ? ORDER BY rowid"
        )
        planes = []
        for position, native_id, name in found:
            # A capture has one plane of scopes, the first of that name.
            own_ranges = ranges if name == "/host:__ScopeRangeCallStack__" else []
            ranges = [] if own_ranges else ranges
            texts = sorted((stat, value) for plane, stat, value in descriptions if plane == position)
            planes.append(
                Plane(
                    native_id,
                    name,
                    in_order(stats[position]),
                    tuple((scope, parent % 2**64) for scope, parent in own_ranges),
                    tuple(texts),
                    metadata[position],
                )
            )
        assert ranges == []
        return planes

    def lines(self, plane_index: int) -> Iterator[Line]:
        """The lines of a plane; events of a line are fetched when it is its turn."""
        tracks = self._rows(
            "SELECT track_id, native_id, display_id, track_name, full_name, timestamp_ns, duration_ps "
            "FROM tracks WHERE capture_id = ? AND plane_index = ? ORDER BY track_id",
            plane_index,
        )
        for track_id, native_id, display_id, name, full_name, timestamp_ns, duration_ps in tracks:
            own_name, display_name = (name, "") if full_name is None else (full_name, name)
            line = Line(native_id, display_id or 0, own_name, display_name, timestamp_ns, duration_ps or 0)
            line.device_events = self._events("device_event", DEVICE_QUERY, DEVICE_COLUMNS, track_id, line)
            line.host_events = self._events("host_event", HOST_QUERY, HOST_COLUMNS, track_id, line)
            yield line

    def _texts(self, owner: str) -> list[tuple[int, str, str]]:
        """Owner id, name and text of stats that are all texts, in the order of the owners."""
        return self._rows(
            "SELECT s.owner_id, n.name, v.name FROM event_stats AS s "
            "JOIN names AS n ON n.name_id = s.stat_name_id "
            "LEFT JOIN names AS v ON v.name_id = s.value_name_id "
            "WHERE s.capture_id = ? AND s.owner = ? ORDER BY s.owner_id, n.name",
            owner,
        )

    def _metadata(self) -> defaultdict[int, dict[int, Metadata]]:
        stats = self._stats("event_metadata")
        found: defaultdict[int, dict[int, Metadata]] = defaultdict(dict)
        for metadata_id, plane_index, native_id, name_id, display_name_id in self._rows(
            "SELECT event_metadata_id, plane_index, native_id, name_id, display_name_id "
            "FROM event_metadata WHERE capture_id = ?"
        ):
            own = stats[metadata_id]
            raw = [value for name, _, value in own if name == "XEventMetadata.metadata"]
            children = [value for name, _, value in own if name == "XEventMetadata.child_id"]
            assert native_id not in found[plane_index]
            found[plane_index][native_id] = Metadata(
                self._names[name_id],
                "" if display_name_id is None else self._names[display_name_id],
                raw[0] if raw else b"",
                tuple(child - 2**64 if child >= 2**63 else child for child in children),
                in_order(stat for stat in own if not stat[0].startswith("XEventMetadata.")),
            )
        return found

    def _stats(self, owner: str) -> defaultdict[int, list[Stat]]:
        """The stats of one kind of owner, in the order in which they were stored."""
        query = f"SELECT {_STAT} FROM event_stats AS s WHERE s.capture_id = ? AND s.owner = ? ORDER BY rowid"
        return self._by_owner(self._rows(query, owner))

    def _by_owner(self, rows: list[tuple[Any, ...]]) -> defaultdict[int, list[Stat]]:
        stats: defaultdict[int, list[Stat]] = defaultdict(list)
        for owner_id, name_id, value_type, integer, double, text_id, raw in rows:
            stats[owner_id].append(
                self._stored(self._names[name_id], value_type, integer, double, text_id, raw)
            )
        return stats

    def _stored(
        self,
        name: str,
        value_type: str,
        integer: int | None,
        double: float | None,
        text_id: int | None,
        raw: bytes | None,
    ) -> Stat:
        """A row of event_stats as a stat; only the column of its type may hold something."""
        present = [value for value in (integer, double, text_id, raw) if value is not None]
        assert len(present) == (0 if value_type == "none" else 1)
        match value_type:
            case "string" | "ref":
                assert text_id is not None
                return canonical(name, value_type, self._names[text_id])
            case "compressed":
                if text_id is None:
                    return shared_name(name), "compressed bytes", raw
                return shared_name(name), "compressed text", self._names[text_id]
            case "gzip":
                assert raw is not None
                return canonical(name, "bytes", gzip.decompress(raw))
            case "double":
                return canonical(name, "double", double)
            case "bytes":
                return canonical(name, "bytes", raw)
            case _:
                assert value_type in ("int64", "uint64", "none")
                return canonical(name, value_type, integer)

    def _column(self, name: str, column: str, value: Any) -> Stat:
        key = (name, value)
        if key not in self._known:
            if column.endswith("name_id"):
                self._known[key] = (name, "text", self._names[value])
            elif name == "context_id":
                self._known[key] = (name, *context_value(str(value)))
            elif name == OCCUPANCY:
                return name, *ratio_value(value)
            else:
                self._known[key] = canonical(name, "int64", value)
        return self._known[key]

    def _events(
        self, owner: str, query: str, columns: dict[str, str], track_id: int, line: Line
    ) -> list[Event]:
        stats = self._by_owner(
            self._rows(
                f"SELECT {_STAT} FROM event_stats AS s JOIN {owner}s AS e "
                f"ON e.capture_id = s.capture_id AND e.{owner}_id = s.owner_id "
                "WHERE s.capture_id = $1 AND s.owner = $2 AND e.track_id = $3",
                owner,
                track_id,
            )
        )
        # A file whose lines with such a timestamp are all empty need not have an origin.
        origin_ns = self._origin_ns or 0 if line.timestamp_ns > WALL_CLOCK_NS else 0
        line_start_ps = (line.timestamp_ns - origin_ns) * 1000
        events = []
        for event_id, metadata_id, name_id, start_ps, end_ps, is_tpu_op, *values in self._rows(
            query, track_id
        ):
            own = stats.get(event_id, [])
            fields = {name: value for name, _, value in own if name in (COUNT, OFFSET, DURATION)}
            rest = [stat for stat in own if stat[0] not in fields]
            shown = self._names[name_id]
            held = [
                self._column(name, column, value)
                for (column, name), value in zip(columns.items(), values, strict=True)
                if value is not None
            ]
            if is_tpu_op and (
                held[-1] == ("hlo_op", "text", shown) or any(stat[0] == "hlo_op" for stat in rest)
            ):
                # The column says what the op is; where it is a stat of the event, that is kept beside.
                held.pop()
            offset = fields[OFFSET] if OFFSET in fields else start_ps - line_start_ps
            when = ("count", fields[COUNT]) if COUNT in fields else ("offset", offset)
            duration = fields.get(DURATION, end_ps - start_ps)
            events.append(
                (
                    metadata_id,
                    shown,
                    (when[0], signed(when[1])),
                    signed(duration),
                    in_order(rest + held),
                )
            )
        return events


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
