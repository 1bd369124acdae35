"""What a profiler of ROCm recorded of one process, whatever its file: tables in the shape of rocpd's.

Each format has a reader that presents its content as the tables of a rocpd database (schema 3, names without
`rocpd_` and suffix), and one mapping turns those into a capture.

Reference tables, told by `id`: string(string); info_node(hostname, machine_id, ...); info_process(pid, ppid,
command, ...); info_thread(tid, name); info_agent(type GPU or CPU, absolute_index, logical_index, type_index,
name, model_name, vendor_name, product_name, extdata as JSON text); info_queue(name), info_stream(name);
info_code_object(agent_id, uri, load_base, load_size); info_kernel_symbol(code_object_id, kernel_name as in
the code object, display_name, group_segment_size, private_segment_size, sgpr_count, arch_vgpr_count,
accum_vgpr_count); info_pmc(agent_id, name, symbol, description, block, expression, units, is_derived);
track(tid, name_id).

Fact tables, times in ns of the profiler's clock, bytes, grids in work-items. All but arg and pmc_event have
id, tid (joins info_thread), event_id and the columns of their event (see EVENT_COLUMNS):
kernel_dispatch(agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, end, private_segment_size,
group_segment_size, workgroup_size_x/y/z, grid_size_x/y/z, region_name_id, graph_exec_id, graph_node_id,
replay_pass); memory_copy(start, end, name_id, src_agent_id, src_address, dst_agent_id, dst_address, size,
queue_id, stream_id, region_name_id, graph_exec_id, graph_node_id); graph_launch(agent_id, queue_id,
start, end, graph_exec_id, kernel_dispatch_count); hip_event(agent_id, queue_id, stream_id, start, end,
name_id, hip_event_handle, source_queue_id); region(start, end, name_id); sample(track_id, timestamp);
memory_allocate(agent_id, type, level, start, end, address, size, queue_id, stream_id);
gpu_pc_sample(agent_id, dispatch_id, timestamp, exec, code_object_id, code_object_offset, wave_in_group,
correlation_id, instruction_id and comment_id (join string), sampling_method, wave_issued, instruction_type,
stall_reason, wave_count); pc_sampling(dispatch_id, timestamp, exec_mask, correlation_id, instruction,
instruction_comment), as one branch of rocpd has samples; arg(event_id, position, type, name, value);
pmc_event(event_id, sample_id, pmc_id, value, instance, xcc, shader_engine, shader_array, wgp).

A column that a format lacks is absent, and one with no place in the warehouse is kept as a stat. Every column
that ends in `_id` and joins another table may be null, or lead nowhere, which is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.batches import BATCH_ROWS
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import TEXT, Rows

#: Columns of rocpd_event that a fact has beside its own, so named. `stack_id` is the id that a launch
#: and what it launches share; `correlation_id` is the external one, which says nothing of launches.
EVENT_COLUMNS = tuple(
    f"event.{column}"
    for column in (
        "category_id",
        "stack_id",
        "parent_stack_id",
        "correlation_id",
        "call_stack",
        "line_info",
        "extdata",
    )
)
#: Tables whose rows are things that happened, as opposed to what they refer to, with their columns of time.
FACT_TIMES = {
    "kernel_dispatch": ("start", "end"),
    "memory_copy": ("start", "end"),
    "graph_launch": ("start", "end"),
    "hip_event": ("start", "end"),
    "region": ("start", "end"),
    "sample": ("timestamp", "timestamp"),
    "memory_allocate": ("start", "end"),
    "gpu_pc_sample": ("timestamp", "timestamp"),
    "pc_sampling": ("timestamp", "timestamp"),
}


class RocmProcess(Protocol):
    """The tables of one process, by their base names; a table that the source lacks has no rows."""

    @property
    def source_kind(self) -> str:
        """What the source is: `captures.source_kind`."""

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """What the source says of itself: attributes of the capture."""

    @property
    def problems(self) -> ProblemCounter:
        """Where the readers of its tables count what they reject."""

    def reference(self, base: str) -> Rows:
        """All rows of a reference table; the same rows at each call."""

    def facts(self, base: str) -> Iterator[Rows]:
        """The rows of a fact table in their order, some at a time."""

    def columns(self, base: str, names: Sequence[str]) -> Iterator[Rows]:
        """Those columns of a fact table, some rows at a time, for a pass that counts no problem."""

    def count(self, base: str) -> int:
        """Number of rows of a table."""


class TableProcess:
    """A process whose tables are in memory, each with the place that problems name."""

    def __init__(
        self,
        source_kind: str,
        tables: Mapping[str, pa.Table],
        places: Mapping[str, str],
        attributes: Mapping[str, str | None],
        problems: ProblemCounter,
    ) -> None:
        self.source_kind, self.attributes, self.problems = source_kind, attributes, problems
        self._rows = {base: Rows(places.get(base, base), table, problems) for base, table in tables.items()}

    def reference(self, base: str) -> Rows:
        """All rows of a reference table."""
        return self._rows.get(base) or Rows.empty(base, self.problems)

    def facts(self, base: str) -> Iterator[Rows]:
        """The rows of a fact table in their order, some at a time."""
        rows = self.reference(base)
        for first in range(0, len(rows), BATCH_ROWS):
            yield Rows(rows.place, rows.table.slice(first, BATCH_ROWS), self.problems)

    def columns(self, base: str, names: Sequence[str]) -> Iterator[Rows]:
        """Those columns of a fact table, if it has any rows."""
        for rows in self.facts(base):
            present = [name for name in dict.fromkeys(names) if name in rows.table.column_names]
            yield Rows(rows.place, rows.table.select(present), ProblemCounter())

    def count(self, base: str) -> int:
        """Number of rows of a table."""
        return len(self.reference(base))


class Strings:
    """Makes the table `string` of a format that has its texts in place."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def ids(self, texts: pa.Array) -> pa.Array:
        """Return the id of each text as int64; null stays null."""
        encoded = texts.cast(TEXT).dictionary_encode()
        ids = [self._ids.setdefault(text, len(self._ids)) for text in encoded.dictionary.to_pylist()]
        return pc.take(pa.array(ids, pa.int64()), encoded.indices)

    def table(self) -> pa.Table:
        """Return the table: id and string."""
        return pa.table(
            {"id": pa.array(self._ids.values(), pa.int64()), "string": pa.array(self._ids.keys(), TEXT)}
        )
