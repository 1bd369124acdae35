"""Reader of RPD traces of rocmProfileData (`.rpd`): each process of a file as tables in the shape of rocpd's.

The files say `schema_version` 2 or 3, and so do databases of rocprofiler-sdk, which have other tables: what
a file is read as follows from its tables and columns. `rocpd_api` become regions, `rocpd_op` dispatches,
copies and other events of queues, `rocpd_monitor` samples, whose values are counters. A call and what it
starts share the call's id as stack id. Several processes may have written one file, of several nodes too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rpd_calls import argument_table, call_arguments, region_table
from tracewh.ingest.rpd_counters import Readings, read_readings
from tracewh.ingest.rpd_file import Positions, RpdFile
from tracewh.ingest.rpd_links import Links, link
from tracewh.ingest.rpd_ops import Operations, read_operations
from tracewh.ingest.rpd_places import Strides, reference_tables
from tracewh.ingest.sqlite_file import SqliteFile

READER_VERSION = 1

_PLACES = {
    "region": "rocpd_api",
    "arg": "rocpd_api",
    "kernel_dispatch": "rocpd_op",
    "memory_copy": "rocpd_op",
    "hip_event": "rocpd_op",
    "sample": "rocpd_monitor",
    "pmc_event": "rocpd_counter",
    "string": "rocpd_string",
}
_VENDORS = {"CUDA_API": "NVIDIA", "HIP_RUNTIME_API_EXT": "AMD"}


def read_processes(file: SqliteFile) -> list[TableProcess]:
    """Read the processes of an RPD trace, by process id; last, if any, what is of no process.

    Of each row of rocpd_api and rocpd_op there is one fact. What is wrong with the file as a whole is among
    the problems of the first process, and so are the monitors, which record no process. Times are those of
    the file, also where they cannot be true.
    """
    rpd = RpdFile(file)
    calls, ops = rpd.read("rocpd_api"), rpd.read("rocpd_op")
    metadata = _metadata(rpd)
    strides = Strides.of(metadata)
    links = link(rpd, calls, ops)
    arguments = call_arguments(rpd, calls)
    regions = region_table(rpd, calls, arguments)
    operations = read_operations(rpd, calls, ops, links, strides, first_event=len(calls))
    args = argument_table(rpd, calls, arguments, (operations.launches, operations.copies))
    readings = read_readings(rpd, ops, first_op_event=len(calls))
    rpd.count_unread()
    facts = _facts(links, regions, operations, args, readings)
    string_table = rpd.texts.table()
    vendor = _vendor(regions, string_table)
    nodes = {strides.node_of_process(process) for process in links.processes}
    if len(nodes) > 1 and len(readings.samples):
        detail = "kept with the first process: the tracer does not record the node of a monitor"
        rpd.problems.add("unknown_node", "rocpd_monitor.deviceId", detail, len(readings.samples))
    processes = []
    for number, process_id in enumerate(links.processes):
        tables = {base: table.filter(pa.array(of == number)) for base, (table, of) in facts.items()}
        tables |= _counter_tables(readings, tables)
        used = {column: _distinct(tables, column) for column in ("tid", "agent_id", "queue_id", "stream_id")}
        tables |= reference_tables(strides, process_id, len(nodes) > 1, used, vendor)
        tables |= {"string": string_table, "info_kernel_symbol": operations.kernel_symbols}
        attributes = {**metadata, "grid_unit_in_file": operations.grid_unit}
        problems = rpd.problems if number == 0 else ProblemCounter()
        processes.append(TableProcess("rpd", tables, _PLACES, attributes, problems))
    return processes


def _metadata(file: RpdFile) -> dict[str, str | None]:
    rows = file.read("rocpd_metadata")
    pairs = zip(rows.texts("tag").to_pylist(), rows.texts("value").to_pylist(), strict=True)
    return {tag: value for tag, value in pairs if tag}


def _facts(
    links: Links, regions: pa.Table, operations: Operations, args: pa.Table, readings: Readings
) -> dict[str, tuple[pa.Table, Positions]]:
    """Each table with the process of each of its rows."""
    of_sample = np.zeros(len(readings.samples), np.int64)
    of_event = np.concatenate([links.process_of_call, links.process_of_op, of_sample])
    return {
        "region": (regions, links.process_of_call),
        **{base: (table, links.process_of_op[where]) for base, (table, where) in operations.facts.items()},
        "sample": (readings.samples, of_sample),
        **{
            base: (table, of_event[np.asarray(table.column("event_id"))])
            for base, table in (("arg", args), ("pmc_event", readings.pmc_events))
        },
    }


def _counter_tables(readings: Readings, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The counters and tracks that the rows of a process refer to."""
    chosen = {}
    for base, table, user, column in (
        ("info_pmc", readings.pmcs, "pmc_event", "pmc_id"),
        ("track", readings.tracks, "sample", "track_id"),
    ):
        used = tables[user].column(column).unique()
        chosen[base] = table.filter(pc.is_in(table.column("id"), value_set=used))
    return chosen


def _distinct(tables: dict[str, pa.Table], column: str) -> list[int]:
    """The ids in a column of all tables, in order; agents are at both ends of copies too."""
    names = (column, "src_agent_id", "dst_agent_id") if column == "agent_id" else (column,)
    found: set[Any] = set()
    for table in tables.values():
        for name in names:
            if name in table.column_names:
                found.update(table.column(name).unique().to_pylist())
    return sorted(found - {None})


def _vendor(regions: pa.Table, strings: pa.Table) -> str | None:
    """Whose GPUs they are, by the runtime that was called: the tracer records other than AMD's too."""
    categories = strings.column("string").take(regions.column("event.category_id").unique()).to_pylist()
    return next((vendor for category, vendor in _VENDORS.items() if category in categories), None)
