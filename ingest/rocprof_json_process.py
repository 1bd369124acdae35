"""One process of a JSON file of rocprofv3 as tables in the shape of rocpd."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_process import Strings
from tracewh.ingest.rocm_rows import TEXT
from tracewh.ingest.rocprof_json_columns import OWNER, POSITION, RecordColumns, concatenated
from tracewh.ingest.rocprof_json_counters import Counters, counter_values, monitor_samples, with_counted
from tracewh.ingest.rocprof_json_facts import FactShaper
from tracewh.ingest.rocprof_json_fields import plain_columns, table_integers
from tracewh.ingest.rocprof_json_metadata import node_and_process
from tracewh.ingest.rocprof_json_names import RecordNames
from tracewh.ingest.rocprof_json_references import (
    agents,
    code_objects,
    handles,
    kernel_symbols,
    threads,
    with_sample_agents,
)
from tracewh.ingest.rocprof_json_sections import COUNTER_SECTIONS, Sections, base_table

#: The place in the file of the rows of each table, as problems name it.
PLACES = {
    "kernel_dispatch": "buffer_records.kernel_dispatch",
    "memory_copy": "buffer_records.memory_copy",
    "memory_allocate": "buffer_records.memory_allocation",
    "graph_launch": "buffer_records.hip_graph",
    "hip_event": "buffer_records.hip_event",
    "region": "buffer_records.*_api",
    "gpu_pc_sample": "buffer_records.pc_sample_*",
    "sample": "callback_records.spm_counter_collection",
    "pmc_event": "callback_records.counter_collection.records",
    "arg": "buffer_records.*_api.args",
    "info_agent": "agents",
    "info_code_object": "code_objects",
    "info_kernel_symbol": "kernel_symbols",
    "info_node": "metadata.node",
    "info_pmc": "counters",
    "info_process": "metadata",
    "string": "strings",
}
# Queues and streams are numbered as they are met: in the order of the profiler's own rocpd writer.
_BASES = (
    "kernel_dispatch",
    "memory_copy",
    "memory_allocate",
    "graph_launch",
    "hip_event",
    "region",
    "gpu_pc_sample",
)


class ProcessTables:
    """Makes the tables of a process from its sections, whose records are let go on the way."""

    def __init__(self, sections: Sections) -> None:
        self._sections, self._strings = sections, Strings()
        self._tables = node_and_process(sections)
        self._tables["info_agent"] = agents(sections.values.get("agents"), sections.problems)
        self._names = RecordNames(sections)
        known_agents = self._tables["info_agent"].column("id").combine_chunks()
        self._shaper = FactShaper(self._names, self._strings, known_agents, sections.problems)
        self._events = 0

    def tables(self) -> dict[str, pa.Table]:
        """Return all tables that have rows, by their base names."""
        snapshots = self._sections.strings.get("code_object_snapshot_filenames")
        self._tables["info_kernel_symbol"] = kernel_symbols(self._taken("kernel_symbols").table())
        self._tables["info_code_object"] = code_objects(self._taken("code_objects").table(), snapshots)
        self._add_records()
        self._names.count_unused_messages()
        facts = [self._tables[base] for base in _BASES]
        self._tables["info_thread"] = threads(facts)
        self._tables["info_queue"] = handles(facts, "queue_id", "Queue")
        self._tables["info_stream"] = handles(facts, "stream_id", "Stream")
        self._tables["string"] = self._strings.table()
        return {base: table for base, table in self._tables.items() if table.num_rows}

    def _add_records(self) -> None:
        facts: dict[str, list[pa.Table]] = {base: [] for base in _BASES}
        lists: list[tuple[str, int, pa.Table]] = []
        for place in sorted(self._sections.records):
            base = base_table(place)
            if base is not None:
                records = self._taken(place)
                lists.append((base, sum(map(len, facts[base])), records.lists["args"].table()))
                facts[base].append(self._shaper.facts(place, base, records.table()))
        counted = {name: self._taken(name) for name in COUNTER_SECTIONS}
        dispatches, owners = with_counted(
            concatenated(facts["kernel_dispatch"]),
            [self._shaper.dispatches(records.table()) for records in counted.values()],
        )
        first_ids = {"kernel_dispatch": self._add_facts("kernel_dispatch", dispatches)}
        first_ids |= {base: self._add_facts(base, concatenated(facts.pop(base))) for base in _BASES[1:]}
        self._tables["gpu_pc_sample"] = with_sample_agents(
            self._tables["gpu_pc_sample"], dispatches, self._tables["info_code_object"]
        )
        self._tables["arg"] = concatenated(
            _arguments(elements, first_ids[base] + first_row) for base, first_row, elements in lists
        )
        self._add_counters([records.lists["records"].table() for records in counted.values()], owners)

    def _add_counters(self, elements: list[pa.Table], owners: list[pa.Array]) -> None:
        """Add the values of counters, those of streaming monitors with the sample that each is of."""
        counters = Counters(self._sections.values.get("counters"), self._sections.problems)
        self._tables["info_pmc"] = counters.table
        dispatches = self._tables["kernel_dispatch"]
        of_dispatches, of_samples = (
            counter_values(*pair, dispatches, counters) for pair in zip(elements, owners, strict=True)
        )
        samples, rows, self._tables["track"] = monitor_samples(of_samples, dispatches, self._strings)
        first_id = self._add_facts("sample", samples)
        columns = dict(zip(of_samples.column_names, of_samples.columns, strict=True))
        columns.pop("timestamp", None)
        of_samples = pa.table({**columns, "sample_id": pc.add(rows, first_id)})
        self._tables["pmc_event"] = concatenated([of_dispatches, of_samples])

    def _add_facts(self, base: str, facts: pa.Table) -> int:
        """Add facts with ids, which no other fact of the process has; return the first."""
        first = self._events + 1
        self._events += len(facts)
        ids = pa.array(np.arange(first, self._events + 1))
        self._tables[base] = facts.append_column("id", ids).append_column("event_id", ids)
        return first

    def _taken(self, place: str) -> RecordColumns:
        empty = RecordColumns(place, self._sections.problems, ("args", "records"))
        return self._sections.records.pop(place, empty)


def _arguments(elements: pa.Table, first_id: int) -> pa.Table:
    """Return arguments of calls; `first_id` is the event of the first call.

    The profiler lists arguments by their number, with empty ones for those that it was not told.
    """
    columns = plain_columns(elements, {}, ("event_id", "position"))
    columns["event_id"] = pc.add(table_integers(elements, OWNER), first_id)
    columns["position"] = table_integers(elements, POSITION)
    table = pa.table(columns)
    texts = [table.column(name).cast(TEXT) for name in ("type", "name", "value") if name in columns]
    is_told = [pc.not_equal(text, "").fill_null(False) for text in texts]
    return table.filter(functools.reduce(pc.or_, is_told)) if is_told else table
