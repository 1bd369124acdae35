"""Dispatches, kernel symbols and counters of CSVs as tables of rocpd.

A counter belongs to the dispatch of its number in the kernel trace. Without a trace the dispatch is made from
the counters' own rows, which have the products of its sizes only: those become x, with 1 for y and z. Rows of
old versions have no times, and so do their dispatches.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_csv_agents import Agents
from tracewh.ingest.rocprof_csv_references import References, matches, present
from tracewh.ingest.rocprof_csv_tables import CsvTable
from tracewh.ingest.shared_rows import Column, distinct_rows

_SYMBOL_COLUMNS = {
    "kernel_id": "id",
    "name_id": None,
    "static_group_size": "group_segment_size",
    "arch_vgpr_count": "arch_vgpr_count",
    "accum_vgpr_count": "accum_vgpr_count",
    "sgpr_count": "sgpr_count",
}
_SHAPE_COLUMNS = {
    f"{size}_size_{axis}": f"{size}size{axis}" for size in ("workgroup", "grid") for axis in "xyz"
}


class Dispatches:
    """Builds the tables from the kernel traces and the counter collections of one process, in this order."""

    def __init__(self, references: References, agents: Agents, problems: ProblemCounter) -> None:
        self._references, self._agents, self._problems = references, agents, problems
        self._frames: list[pa.Table] = []
        self._counts = 0
        self._counter_ids: dict[tuple[int | None, str | None], int] = {}
        self._counter_values: list[pa.Table] = []

    def add_trace(self, table: CsvTable) -> None:
        """Add the rows of a kernel_trace."""
        shape = {name: table.integers(column) for name, column in _SHAPE_COLUMNS.items()}
        self._add_frame(table, shape)

    def add_counters(self, table: CsvTable) -> None:
        """Add the rows of a counter_collection, one value each."""
        numbers, agents = table.integers("dispatchid"), self._agent_ids(table)
        keys, names = [numbers, agents], ["dispatch_id", "agent_id"]
        passes = table.integers("replaypass")
        if passes.null_count < len(passes):
            # Each time that a dispatch was run again is one of its own, told by its start.
            keys, names = [*keys, table.integers("starttimestamp")], [*names, "start"]
        dispatches = self._all_frames()
        among = [
            dispatches.column(name).combine_chunks() if name in dispatches.column_names else None
            for name in names
        ]
        positions = pa.nulls(len(table), INTEGER) if None in among else matches(keys, among)
        is_new = pc.and_(positions.is_null(), numbers.is_valid())
        fresh = table.where(is_new)
        if len(fresh):
            codes, first = distinct_rows([Column.of(key.filter(is_new)) for key in (numbers, agents, passes)])
            start = self._counts
            self._add_made(CsvTable(fresh.place, fresh.table.take(pa.array(first)), fresh.names))
            positions = pc.replace_with_mask(positions, is_new, pa.array(codes + start))
        if numbers.null_count:
            detail = "value kept, but its dispatch has no number"
            self._problems.add("missing_dispatch", table.file, detail, numbers.null_count)
        self._counter_values.append(
            pa.table(
                {
                    # The events of dispatches come first, from 1 on.
                    "event_id": pc.add(positions, 1),
                    "pmc_id": self._counters(agents, table.texts("countername")),
                    "value": table.numbers("countervalue"),
                }
            )
        )

    def tables(self) -> dict[str, pa.Table]:
        """kernel_dispatch, info_kernel_symbol, pmc_event and info_pmc, those that there are."""
        found: dict[str, pa.Table] = {}
        if self._frames:
            frames = self._all_frames()
            symbols, kernel_ids = self._symbols(frames)
            dispatches = frames.drop_columns(
                [name for name in _SYMBOL_COLUMNS if name in frames.column_names]
            )
            found["kernel_dispatch"] = dispatches.append_column("kernel_id", kernel_ids)
            found["info_kernel_symbol"] = symbols
        if self._counter_values:
            found["pmc_event"] = pa.concat_tables(self._counter_values).combine_chunks()
            agents, names = zip(*self._counter_ids, strict=True) if self._counter_ids else ((), ())
            found["info_pmc"] = pa.table(
                {
                    "id": pa.array(self._counter_ids.values(), INTEGER),
                    "agent_id": pa.array(agents, INTEGER),
                    "name": pa.array(names, TEXT),
                }
            )
        return found

    def _agent_ids(self, table: CsvTable) -> pa.Array:
        return self._agents.ids(table.texts("agentid"), table.file)

    def _add_made(self, table: CsvTable) -> None:
        """Add the dispatches of counters: one row of each."""
        ones = pa.repeat(pa.scalar(1, INTEGER), len(table))
        shape = dict.fromkeys(_SHAPE_COLUMNS, ones) | {
            "workgroup_size_x": table.integers("workgroupsize"),
            "grid_size_x": table.integers("gridsize"),
        }
        untimed = table.integers("starttimestamp").null_count
        if untimed:
            detail = "dispatches known by counters that have no times: their values are kept, they are not"
            self._problems.add("untimed_counters", table.file, detail, untimed)
        self._add_frame(table, shape)

    def _add_frame(self, table: CsvTable, shape: dict[str, pa.Array]) -> None:
        references, count = self._references, len(table)
        agents = self._agent_ids(table)
        self._agents.count_dispatches_on_cpus(agents, table.file)
        stack_ids = table.integers("correlationid")
        size = table.integers("ldsblocksize")
        # The profiler itself prints what the kernel needs, the converter of rocpd what the launch asked for.
        is_of_launch = table.has("guid") or table.has("pid")
        columns = {
            "agent_id": agents,
            "dispatch_id": table.integers("dispatchid"),
            "queue_id": references.used("queue", table.integers("queueid")),
            "stream_id": references.used("stream", table.integers("streamid")),
            "tid": references.used("thread", table.integers("threadid")),
            "start": table.integers("starttimestamp"),
            "end": table.integers("endtimestamp"),
            "private_segment_size": pc.coalesce(
                table.integers("scratchsize"), table.integers("privatesegmentsize")
            ),
            "group_segment_size": size if is_of_launch else table.integers("groupsegmentsize"),
            **shape,
            "graph_exec_id": table.integers("graphexecid"),
            "graph_node_id": table.integers("graphnodeid"),
            "replay_pass": table.integers("replaypass"),
            "event.category_id": references.string("KERNEL_DISPATCH", count),
            "event.stack_id": stack_ids,
            "event.parent_stack_id": stack_ids,
            "kernel_id": table.integers("kernelid"),
            "name_id": references.strings(table.texts("kernelname")),
            "static_group_size": pa.nulls(count, INTEGER) if is_of_launch else size,
            "arch_vgpr_count": table.integers("vgprcount"),
            "accum_vgpr_count": table.integers("accumvgprcount"),
            "sgpr_count": table.integers("sgprcount"),
        }
        self._frames.append(present(columns))
        self._counts += count

    def _all_frames(self) -> pa.Table:
        if not self._frames:
            return pa.table({})
        return pa.concat_tables(self._frames, promote_options="default").combine_chunks()

    def _symbols(self, frames: pa.Table) -> tuple[pa.Table, pa.Array]:
        """info_kernel_symbol, and the id of the symbol of each dispatch."""
        told = {
            name: frames.column(name).combine_chunks()
            for name in _SYMBOL_COLUMNS
            if name in frames.column_names
        }
        if not told:
            return pa.table({"id": pa.array([], INTEGER)}), pa.nulls(len(frames), INTEGER)
        codes, first = distinct_rows([Column.of(column) for column in told.values()])
        positions = pa.array(first)
        kernels = (
            told["kernel_id"].take(positions).to_pylist() if "kernel_id" in told else [None] * len(first)
        )
        ids = pa.array(_unique(kernels), INTEGER)
        columns = {"id": ids}
        if "name_id" in told:
            names = self._references.texts(told["name_id"].take(positions))
            is_mangled = pc.match_substring_regex(names, r"^_Z|\.kd$")
            columns["display_name"] = names
            columns["kernel_name"] = pc.if_else(is_mangled, names, pa.scalar(None, TEXT))
        for name, column in _SYMBOL_COLUMNS.items():
            if name in told and column not in (None, "id"):
                columns[column] = told[name].take(positions)
        return pa.table(columns), ids.take(pa.array(codes))

    def _counters(self, agents: pa.Array, names: pa.DictionaryArray) -> pa.Array:
        """The id in info_pmc of the counter of each row: one for each agent and name."""
        codes, first = distinct_rows([Column.of(agents), Column.of(names.indices)])
        pairs = zip(
            agents.take(pa.array(first)).to_pylist(), names.take(pa.array(first)).to_pylist(), strict=True
        )
        ids = [self._counter_ids.setdefault(pair, len(self._counter_ids)) for pair in pairs]
        return pa.array(ids, INTEGER).take(pa.array(codes))


def _unique(numbers: Sequence[int | None]) -> list[int]:
    """The numbers, with new ones for null and for what comes again."""
    free = max((number for number in numbers if number is not None), default=-1) + 1
    seen: set[int] = set()
    found = []
    for number in numbers:
        if number is None or number in seen:
            number, free = free, free + 1
        seen.add(number)
        found.append(number)
    return found
