"""Where the rows of an RPD trace happened: nodes, processes, threads, GPUs, queues and streams."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows

_LARGEST_BIGINT = 2**63 - 1


@dataclass(frozen=True)
class Strides:
    """How a file of several nodes numbers: with the stride times the node added. 0 for a file that does not.

    The tracer adds the stride of processes to ids of threads too, and none to the devices of monitors.
    """

    process: int
    gpu: int

    @classmethod
    def of(cls, metadata: dict[str, str | None]) -> Strides:
        """Read the strides from the metadata of a file."""
        process, gpu = (metadata.get(f"{name}_stride") or "" for name in ("pid", "gpu"))
        return cls(*(int(text) if text.isdecimal() and len(text) < 19 else 0 for text in (process, gpu)))

    def node_of_process(self, process: int | None) -> int:
        """Return the node of a process."""
        return process // self.process if self.process and process is not None and process > 0 else 0

    def own_process(self, process: int) -> int:
        """Return the process or thread id on its node."""
        return process % self.process if self.process and process > 0 else process

    def own_gpu(self, gpu: int, node: int) -> int:
        """Return the index of a GPU on a node; of a GPU of another node, the number as it is."""
        return gpu % self.gpu if self.gpu and gpu // self.gpu == node else gpu


def stream_ids(rows: Rows) -> pa.Array:
    """Return the streams, which the file has as text of a pointer, as integers.

    Text that is none becomes null and is counted.
    """
    encoded = rows.texts("stream").dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    ids = [_pointer(text) for text in texts]
    streams = pa.array(ids, INTEGER).take(encoded.indices)
    is_bad = pa.array([bool(text) and stream is None for text, stream in zip(texts, ids, strict=True)])
    bad = pc.sum(is_bad.cast(pa.int8()).take(encoded.indices)).as_py()
    if bad:
        example = next(text for text, flag in zip(texts, is_bad.to_pylist(), strict=True) if flag)
        detail = f"stored as null: {example[:80]!r} is no pointer"
        rows.problems.add("not_an_integer", f"{rows.place}.stream", detail, bad)
    return streams


def reference_tables(
    strides: Strides,
    process: int | None,
    is_one_of_nodes: bool,
    used: dict[str, list[int]],
    vendor: str | None,
) -> dict[str, pa.Table]:
    """Return the tables that describe a process, its threads, GPUs, queues and streams.

    `used` are the ids of `tid`, `agent_id`, `queue_id` and `stream_id` in its rows. The nodes of a file of
    several have no names in it: they are told by number.
    """
    node = strides.node_of_process(process)
    own_id = None if process is None else strides.own_process(process)
    return {
        "info_node": pa.table(
            {"id": [node], "hostname": pa.array([f"node {node}" if is_one_of_nodes else None], TEXT)}
        ),
        "info_process": pa.table({"id": pa.array([own_id], INTEGER), "pid": pa.array([own_id], INTEGER)}),
        "info_thread": pa.table(
            {
                "id": pa.array(used["tid"], INTEGER),
                "tid": pa.array([strides.own_process(thread) for thread in used["tid"]], INTEGER),
            }
        ),
        "info_agent": pa.table(
            {
                "id": pa.array(used["agent_id"], INTEGER),
                "type": pa.array(["GPU"] * len(used["agent_id"]), TEXT),
                "type_index": pa.array([strides.own_gpu(gpu, node) for gpu in used["agent_id"]], INTEGER),
                "vendor_name": pa.array([vendor] * len(used["agent_id"]), TEXT),
            }
        ),
        "info_queue": pa.table({"id": pa.array(used["queue_id"], INTEGER)}),
        "info_stream": pa.table(
            {
                "id": pa.array(used["stream_id"], INTEGER),
                "name": pa.array(
                    [f"Stream {stream:#x}" if stream else "Default Stream" for stream in used["stream_id"]],
                    TEXT,
                ),
            }
        ),
    }


def _pointer(text: str | None) -> int | None:
    try:
        value = int(text or "", 16)
    except ValueError:
        return None
    return value if 0 <= value <= _LARGEST_BIGINT else None
