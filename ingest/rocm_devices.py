"""Devices, queues, streams and threads of a ROCm process: where its events happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import Device
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source
from tracewh.ingest.shared_rows import Column, distinct_rows

_INTEGER_COLUMNS = ("id", "absolute_index", "type_index")
_TEXT_COLUMNS = ("type", "name", "model_name", "product_name", "vendor_name", "extdata")
# Far more than a node has. Each takes some ten kilobytes of memory.
_MAX_AGENTS = 10_000
_COLUMNS_OF_THE_ROW = ("id", "nid", "pid", "type", "extdata")
TRACK_TYPES = {
    "track_id": pa.int64(),
    "track_kind": pa.string(),
    "track_name": pa.string(),
    "device_index": pa.int64(),
    "native_id": pa.int64(),
}


class Agents:
    """The agents of a process as devices: GPUs first.

    A GPU's ordinal is its index among the GPUs of the node; `attributes` hold what else the agent row says,
    its extdata (clocks, compute units, memory) included.
    """

    def __init__(self, source: Source, hostname: str) -> None:
        self._source = source
        table = source.reference("info_agent")
        for column in _INTEGER_COLUMNS:
            table.integers(column)
        for column in _TEXT_COLUMNS:
            table.texts(column)
        is_known = table.integers("id").is_valid()
        unknown = len(table) - pc.sum(is_known).as_py() if len(table) else 0
        if unknown:
            # Nothing could refer to it.
            source.problems.add("missing_id", table.place, "row rejected: an agent without an id", unknown)
            table = table.where(is_known)
        beyond = len(table) - _MAX_AGENTS
        if beyond > 0:
            detail = f"row rejected: a process sees at most {_MAX_AGENTS:,} agents"
            source.problems.add("too_many_agents", table.place, detail, beyond)
            table = Rows(table.place, table.table.slice(0, _MAX_AGENTS), source.problems)
        rows = table.table.to_pylist()
        for row in rows:
            row["type"] = (row.get("type") or "UNKNOWN").upper()
        self.devices: list[Device] = []
        self._ids: list[int] = []
        for kind in sorted({row["type"] for row in rows}, key=lambda kind: (kind != "GPU", kind)):
            for ordinal, row in _ordinals([row for row in rows if row["type"] == kind]):
                self._ids.append(row["id"])
                self.devices.append(self._device(row, hostname, ordinal))

    def of_type(self, device_type: str) -> pa.Array:
        """Return the ids of the agents of a type: GPU, CPU, NIC."""
        ids = zip(self._ids, self.devices, strict=True)
        return pa.array([agent for agent, device in ids if device.device_type == device_type], pa.int64())

    @property
    def ids(self) -> pa.Array:
        """Return the agent ids of `devices`, in their order."""
        return pa.array(self._ids, pa.int64())

    def indices(self, agent_ids: pa.Array) -> pa.Array:
        """Return the position in `devices` of each agent; null where it is none of them."""
        return pc.index_in(agent_ids, value_set=self.ids).cast(pa.int64())

    def _device(self, row: dict[str, Any], hostname: str, ordinal: int) -> Device:
        said = {"agent_id": row["id"]}
        said |= {name: value for name, value in row.items() if name not in _COLUMNS_OF_THE_ROW}
        extdata = self._source.parse(
            row.get("extdata") or "{}", f"{self._source.reference('info_agent').place}.extdata"
        )
        said = (extdata if isinstance(extdata, dict) else {"extdata": extdata}) | said
        attributes = tuple((name, _as_text(value)) for name, value in said.items() if value not in (None, ""))
        return Device(
            hostname=hostname,
            device_type=row["type"],
            ordinal=ordinal,
            kind=row.get("product_name") or row.get("model_name") or row.get("name"),
            vendor=row.get("vendor_name") or None,
            attributes=attributes,
        )


class Tracks:
    """Rows of `tracks`: one per device, queue and stream that had work, one per thread that had events.

    Their ids count from 0 in the order in which they are met.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ids: dict[tuple[str, *tuple[int | None, ...]], int] = {}
        self._new: list[dict[str, Any]] = []
        self._names: dict[str, dict[int | None, str]] = {}

    def of_device_work(self, devices: pa.Array, queues: pa.Array, streams: pa.Array) -> pa.Array:
        """Return the track of each device event, given its device index, queue id and stream id."""

        def row(device: int, queue: int | None, stream: int | None) -> dict[str, Any]:
            parts = [self._name("queue", queue), self._name("stream", stream)]
            kind = "queue" if queue is not None else "stream" if stream is not None else "device_line"
            return {
                "track_kind": kind,
                "track_name": ", ".join(part for part in parts if part) or "no queue",
                "device_index": device,
                "native_id": queue if queue is not None else stream,
            }

        return self._track_ids("device", [devices, queues, streams], row)

    def of_threads(self, thread_ids: pa.Array) -> pa.Array:
        """Return the track of each thread, given ids of info_thread."""

        def row(thread: int | None) -> dict[str, Any]:
            native, name = self._threads.get(thread, (thread, None))
            return {
                "track_kind": "thread",
                "track_name": name or ("no thread" if native is None else f"Thread {native}"),
                "native_id": native,
            }

        return self._track_ids("thread", [thread_ids], row)

    def new_rows(self) -> pa.Table:
        """Return the rows of `tracks` that were met since the last call."""
        rows, self._new = self._new, []
        return pa.Table.from_pylist(rows, schema=pa.schema(list(TRACK_TYPES.items())))

    @cached_property
    def _threads(self) -> dict[int | None, tuple[int | None, str | None]]:
        threads = self._source.reference("info_thread")
        columns = (threads.integers("id"), threads.integers("tid"), threads.texts("name"))
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return {thread: (tid if tid is not None else thread, name) for thread, tid, name in rows}

    def _name(self, kind: str, native_id: int | None) -> str | None:
        if kind not in self._names:
            named = self._source.reference(f"info_{kind}")
            ids, texts = named.integers("id").to_pylist(), named.texts("name").to_pylist()
            self._names[kind] = dict(zip(ids, texts, strict=True))
        if native_id is None:
            return None
        return self._names[kind].get(native_id) or f"{kind.capitalize()} {native_id}"

    def _track_ids(self, kind: str, keys: list[pa.Array], row_of: Callable[..., dict[str, Any]]) -> pa.Array:
        codes, first = distinct_rows([Column.of(key) for key in keys])
        distinct = zip(*(key.take(pa.array(first)).to_pylist() for key in keys), strict=True)
        found = []
        for values in distinct:
            key = (kind, *values)
            if key not in self._ids:
                self._ids[key] = len(self._ids)
                self._new.append({"track_id": self._ids[key], **row_of(*values)})
            found.append(self._ids[key])
        return pa.array(found, pa.int64()).take(pa.array(codes))


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str) else json.dumps(value)


def _ordinals(rows: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Pair agents of one type with their index among it; by position on the node where that is not usable."""
    indices = [row.get("type_index") for row in rows]
    if None in indices or len(set(indices)) < len(indices):
        by_position = sorted(rows, key=lambda row: (row.get("absolute_index") or 0, row["id"]))
        return list(enumerate(by_position))
    return sorted(((row["type_index"], row) for row in rows), key=lambda pair: pair[0])
