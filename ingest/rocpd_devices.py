"""Devices, queues, streams and threads of a rocpd shard: where its events happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import Device
from tracewh.ingest.rocpd_source import Source

_INTEGER_COLUMNS = ("id", "absolute_index", "type_index")
_COLUMNS_OF_THE_ROW = ("id", "nid", "pid", "type", "extdata")
TRACK_TYPES = {
    "track_id": pa.int64(),
    "track_kind": pa.string(),
    "track_name": pa.string(),
    "device_index": pa.int64(),
    "native_id": pa.int64(),
}


def agents_of_type(source: Source, agent_type: str) -> pa.Array:
    """Return the ids of the agents of a type: GPU, CPU, NIC."""
    rows = source.reference("info_agent")
    return rows.integers("id").filter(pc.equal(pc.utf8_upper(rows.texts("type")), agent_type))


class Agents:
    """The agents of a shard as devices: every GPU, and of the others those in `needed`.

    A GPU's ordinal is its index among the GPUs of the node; `attributes` hold what else the agent row says,
    its extdata (clocks, compute units, memory) included.
    """

    def __init__(self, source: Source, hostname: str, needed: Collection[int]) -> None:
        self._source = source
        table = source.reference("info_agent")
        for column in _INTEGER_COLUMNS:
            table.integers(column)
        rows = table.table.to_pylist()
        for row in rows:
            row["type"] = (row.get("type") or "UNKNOWN").upper()
        used = [row for row in rows if row["type"] == "GPU" or row["id"] in needed]
        self.devices: list[Device] = []
        self._ids: list[int] = []
        for kind in sorted({row["type"] for row in used}, key=lambda kind: (kind != "GPU", kind)):
            for ordinal, row in _ordinals([row for row in used if row["type"] == kind]):
                self._ids.append(row["id"])
                self.devices.append(self._device(row, hostname, ordinal))

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
        extdata = self._source.parse(row.get("extdata") or "{}", "rocpd_info_agent.extdata")
        said = (extdata if isinstance(extdata, dict) else {"extdata": extdata}) | said
        attributes = tuple(
            (name, value if isinstance(value, str) else json.dumps(value))
            for name, value in said.items()
            if value not in (None, "")
        )
        return Device(
            hostname=hostname,
            device_type=row["type"],
            ordinal=ordinal,
            kind=row.get("product_name") or row.get("model_name") or row.get("name"),
            vendor=row.get("vendor_name") or None,
            attributes=attributes,
        )


class Tracks:
    """Rows of `tracks`: one per device, queue and stream that had work, one per thread that had events."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rows: list[dict[str, Any]] = []

    def of_device_work(self, devices: pa.Array, queues: pa.Array, streams: pa.Array) -> pa.Array:
        """Return the track of each device event, given its device index, queue id and stream id."""
        queue_names, stream_names = self._names("info_queue", queues), self._names("info_stream", streams)

        def row(device: int, queue: int | None, stream: int | None) -> dict[str, Any]:
            parts = [queue_names.get(queue), stream_names.get(stream)]
            kind = "queue" if queue is not None else "stream" if stream is not None else "device_line"
            return {
                "track_kind": kind,
                "track_name": ", ".join(part for part in parts if part) or "no queue",
                "device_index": device,
                "native_id": queue if queue is not None else stream,
            }

        return self._add([devices, queues, streams], row)

    def of_threads(self, thread_ids: pa.Array) -> pa.Array:
        """Return the track of each thread, given ids of rocpd_info_thread."""
        threads = self._source.reference("info_thread")
        details = {
            thread: (tid if tid is not None else thread, name)
            for thread, tid, name in zip(
                threads.integers("id").to_pylist(),
                threads.integers("tid").to_pylist(),
                threads.texts("name").to_pylist(),
                strict=True,
            )
        }

        def row(thread: int | None) -> dict[str, Any]:
            native, name = details.get(thread, (thread, None))
            return {
                "track_kind": "thread",
                "track_name": name or ("no thread" if native is None else f"Thread {native}"),
                "native_id": native,
            }

        return self._add([thread_ids], row)

    def table(self) -> pa.Table:
        """Return the rows of `tracks`; their ids count from 0 in this order."""
        rows = [{"track_id": number, **row} for number, row in enumerate(self._rows)]
        return pa.Table.from_pylist(rows, schema=pa.schema(list(TRACK_TYPES.items())))

    def _names(self, base: str, ids: pa.Array) -> dict[int | None, str]:
        named = self._source.reference(base)
        label = base.removeprefix("info_").capitalize()
        names = dict(zip(named.integers("id").to_pylist(), named.texts("name").to_pylist(), strict=True))
        return {one: names.get(one) or f"{label} {one}" for one in ids.unique().drop_null().to_pylist()}

    def _add(self, keys: list[pa.Array], row_of: Callable[..., dict[str, Any]]) -> pa.Array:
        codes = np.zeros(len(keys[0]), np.int64)
        for key in keys:
            encoded = key.dictionary_encode(null_encoding="encode")
            codes = codes * max(len(encoded.dictionary), 1) + np.asarray(encoded.indices)
        _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        distinct = list(zip(*(key.take(pa.array(firsts)).to_pylist() for key in keys), strict=True))
        order = sorted(range(len(distinct)), key=lambda i: [(one is None, one or 0) for one in distinct[i]])
        track_ids = np.empty(len(distinct), np.int64)
        for position in order:
            track_ids[position] = len(self._rows)
            self._rows.append(row_of(*distinct[position]))
        return pa.array(track_ids[inverse], pa.int64())


def _ordinals(rows: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Pair agents of one type with their index among it; by position on the node where that is not usable."""
    indices = [row.get("type_index") for row in rows]
    if None in indices or len(set(indices)) < len(indices):
        by_position = sorted(rows, key=lambda row: (row.get("absolute_index") or 0, row["id"]))
        return list(enumerate(by_position))
    return sorted(((row["type_index"], row) for row in rows), key=lambda pair: pair[0])
