"""Reads the CSVs that rocprofv3 or `rocpd convert` left of a run: those with one prefix in one folder.

They are one capture for each process that they tell of. Correlation_Id is what rocpd calls stack_id. The
profiler has summed counters over the instances of the hardware, copies have no sizes, calls no arguments; in
which call another one was made is told by their times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_process import FACT_TIMES, TableProcess
from tracewh.ingest.rocm_rows import INTEGER
from tracewh.ingest.rocprof_csv_agents import AgentLabels, Agents
from tracewh.ingest.rocprof_csv_dispatches import Dispatches
from tracewh.ingest.rocprof_csv_events import Events, joined_scratch
from tracewh.ingest.rocprof_csv_kinds import DERIVED_KINDS, KINDS, STREAMED_COUNTERS, kind_of, prefix_of
from tracewh.ingest.rocprof_csv_owners import Owner, owners_of
from tracewh.ingest.rocprof_csv_parents import with_parents
from tracewh.ingest.rocprof_csv_references import References
from tracewh.ingest.rocprof_csv_tables import Bytes, CsvTable, read_csv

__all__ = ["READER_VERSION", "kind_of", "prefix_of", "read_processes"]

READER_VERSION = 1
SOURCE_KIND = "rocprof_csv"

_HEAD_BYTES = 1 << 16
# Which end of a copy is a device, by its direction.
_DEVICE_ENDS = {"sourceagentid": "DEVICE_TO_", "destinationagentid": "_TO_DEVICE"}
_TRACES = "kernel_trace.csv, hip_api_trace.csv and so on"
_OF_ANY_AGENT = "memory_allocation_trace"
_BUILDERS: dict[str, tuple[str, Callable[[Events, CsvTable], pa.Table]]] = {
    "api_trace": ("region", Events.regions),
    "memory_copy_trace": ("memory_copy", Events.copies),
    "graph_launch": ("graph_launch", Events.graph_launches),
    "hip_event": ("hip_event", Events.hip_events),
    "pc_sampling": ("gpu_pc_sample", Events.pc_samples),
    "memory_allocation_trace": ("memory_allocate", Events.allocations),
    "scratch_memory_trace": ("memory_allocate", Events.scratch),
}
_OTHER_PLACES = {
    "kernel_trace": "kernel_dispatch",
    "counter_collection": "pmc_event",
    "agent_info": "info_agent",
}


def read_processes(files: Sequence[tuple[str, Bytes]]) -> list[TableProcess]:
    """Read the files of one prefix, given as place and content, as processes in the form of rocpd.

    Rows are by Guid where a file has it, else by Process_Id; a process whose id no file tells has that of the
    prefix, as rocprofv3 names its files by it. Problems of a file are counted in the first process. Raises
    UnreadableFile, naming file, line and next step, for a file that is none of the tables or has no header.
    """
    problems = ProblemCounter()
    kinds: list[str] = []
    tables: list[CsvTable] = []
    derived: list[CsvTable] = []
    for place, buffer in files:
        kind = kind_of(PurePath(place).name, bytes(buffer[:_HEAD_BYTES]))
        if kind is None:
            raise UnreadableFile(
                f"{place}: line 1: not the columns of a rocprofv3 table. Leave the file out."
            )
        table = read_csv(place, buffer, KINDS[kind].type_of, problems, KINDS[kind].free_text)
        if kind in DERIVED_KINDS:
            derived.append(table)
        elif kind == STREAMED_COUNTERS:
            detail = "rows not loaded: counters streamed while kernels run are no values of dispatches"
            problems.add("unsupported_table", table.file, detail, len(table))
        else:
            kinds.append(kind)
            tables.append(table)
    if not set(kinds) - {"agent_info"}:
        for table in derived:
            detail = f"{len(table)} rows not loaded: sums of what {_TRACES} hold. Give those"
            problems.add("derived_table", table.file, f"{detail}, or profile with --output-format csv")
    owners = owners_of(tables, problems)
    prefix = prefix_of(PurePath(files[0][0]).name) if files else ""
    if len(owners) == 1 and owners[0].process_id is None and prefix.isdecimal():
        owners[0].process_id = int(prefix)
    return [
        _process(owner, kinds, ProblemCounter() if number else problems)
        for number, owner in enumerate(owners)
    ]


def _process(owner: Owner, kinds: Sequence[str], problems: ProblemCounter) -> TableProcess:
    tables: defaultdict[str, list[CsvTable]] = defaultdict(list)
    labels = AgentLabels()
    for number, table in owner.tables.items():
        tables[kinds[number]].append(table)
        _note_agents(labels, kinds[number], table)
    agents, references = Agents(tables["agent_info"], labels, problems), References()
    dispatches = Dispatches(references, agents, problems)
    for table in tables["kernel_trace"]:
        dispatches.add_trace(table)
    for table in tables["counter_collection"]:
        dispatches.add_counters(table)
    events = Events(references, agents, problems)
    found = _numbered({**dispatches.tables(), **_events(tables, events)})
    if owner.tables and not any(map(len, found.values())):
        files = ", ".join(table.file for table in owner.tables.values())
        detail = f"neither work nor calls are in these files. Give {_TRACES} of the same run, too"
        problems.add("no_events", files, detail)
    found |= references.tables() | {"info_agent": agents.table()}
    attributes: dict[str, str | None] = {}
    if owner.tables:
        attributes["tables"] = ", ".join(sorted(filter(tables.get, tables)))
    if owner.guid is not None:
        attributes["guid"] = owner.guid
    if owner.process_id is not None:
        numbers = pa.array([owner.process_id], INTEGER)
        found["info_process"] = pa.table({"id": numbers, "pid": numbers})
    return TableProcess(SOURCE_KIND, found, _places(tables), attributes, problems)


def _note_agents(labels: AgentLabels, kind: str, table: CsvTable) -> None:
    """Note what the table calls agents, and which of them it shows to be GPUs."""
    labels.add(table.texts("agentid"), kind != _OF_ANY_AGENT)
    directions = table.texts("direction")
    for column, sign in _DEVICE_ENDS.items():
        is_device = pc.match_substring(directions.dictionary, sign).take(directions.indices)
        ends = table.texts(column)
        labels.add(ends, False)
        labels.add(ends.filter(is_device), True)


def _events(tables: Mapping[str, Sequence[CsvTable]], events: Events) -> dict[str, pa.Table]:
    """The fact tables other than dispatches, without ids."""
    built = {
        kind: pa.concat_tables([build(events, table) for table in tables[kind]], promote_options="default")
        for kind, (_, build) in _BUILDERS.items()
        if tables.get(kind)
    }
    if _OF_ANY_AGENT in built and "scratch_memory_trace" in built:
        place = tables[_OF_ANY_AGENT][0].file
        built[_OF_ANY_AGENT], built["scratch_memory_trace"] = joined_scratch(
            built[_OF_ANY_AGENT], built["scratch_memory_trace"], place, events.problems
        )
    found: dict[str, pa.Table] = {}
    for kind, table in built.items():
        base = _BUILDERS[kind][0]
        parts = [found[base], table] if base in found else [table]
        found[base] = pa.concat_tables(parts, promote_options="default").combine_chunks()
    if "region" in found:
        found["region"] = with_parents(found["region"], events.references)
    return found


def _numbered(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables, the facts with ids and event ids that count through all of them from 1 on."""
    found, start = {}, 1
    for base in sorted(tables, key=lambda base: base != "kernel_dispatch"):
        table = tables[base]
        if base in FACT_TIMES:
            ids = pa.array(np.arange(start, start + len(table)))
            table = table.append_column("id", ids).append_column("event_id", ids)
            start += len(table)
        found[base] = table
    return found


def _places(tables: Mapping[str, Sequence[CsvTable]]) -> dict[str, str]:
    """The files of each table of rocpd, as problems tell them."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    bases = _OTHER_PLACES | {kind: base for kind, (base, _) in _BUILDERS.items()}
    for kind, found in tables.items():
        files[bases[kind]] += [table.file for table in found]
    # Without a trace dispatches are made from counters.
    files["kernel_dispatch"] = files["kernel_dispatch"] or files["pmc_event"]
    return {base: ", ".join(names) for base, names in files.items() if names}
