"""Reads a workload of rocprof-compute: pmc_perf.csv, sysinfo.csv and roofline.csv of one folder.

The tool runs a program again for each group of counters and joins the dispatches of all runs. The times of a
dispatch are those of its run, or of several the median start and the median duration. Sizes are products:
they become x, with 1 for y and z. GPU_ID is the agent, by whichever number the version of the tool uses.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import pyarrow as pa

from tracewh.ingest import content
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.measured_peaks import MeasuredPeak, peaks_of
from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_compute_dispatches import Dispatches, column_type
from tracewh.ingest.rocprof_csv_tables import Bytes, read_csv, read_header

READER_VERSION = 1
SOURCE_KIND = "rocprof_compute"

_HEAD_BYTES = 1 << 20
_COUNTERS, _DISPATCH_LIST, _SYSTEM, _ROOFLINE = "pmc_perf", "pmc_dispatch_info", "sysinfo", "roofline"
# The columns that tell a table, the more special ones first.
_REQUIRED = {
    _COUNTERS: frozenset(("dispatchid", "gpuid", "kernelname", "gridsize")),
    _DISPATCH_LIST: frozenset(("dispatchid", "gpuid", "kernelname")),
    _SYSTEM: frozenset(("gpuarch", "cupergpu")),
    _ROOFLINE: frozenset(("device", "hbmbw")),
}
_JOINED_NAME = re.compile(r"(?<!results_)pmc_perf\.csv")
_NAME = re.compile(
    r"(?:(?:results_)?pmc_perf(?:_\w+)?|SQC?_\w+|pmc_dispatch_info|sysinfo|roofline(?:_\w+)?)$"
)


@dataclass(frozen=True)
class WorkloadCsv:
    """A workload: what was counted, None without pmc_perf.csv; peaks of its devices; what sysinfo says.

    `problems` are those of the other files: the process has its own.
    """

    process: TableProcess | None
    peaks: list[MeasuredPeak]
    attributes: Mapping[str, str | None]
    problems: ProblemCounter


def kind_of(name: str, head: bytes) -> str | None:
    """Return pmc_perf, pmc_dispatch_info, sysinfo or roofline, by the columns; None for another file."""
    try:
        columns = frozenset(read_header(name, head).columns)
    except UnreadableFile:
        return None
    return next((kind for kind, required in _REQUIRED.items() if required <= columns), None)


def prefix_of(name: str) -> str:
    """Return what precedes the tool's own name of a file: empty unless a user renamed it.

    Files of one folder with one prefix are a workload.
    """
    return _NAME.sub("", content.uncompressed_name(name).removesuffix(".csv"))


def read_workload(files: Sequence[tuple[str, Bytes]]) -> WorkloadCsv:
    """Read the files of one workload, given as place and content.

    Where there is a pmc_perf.csv, results_pmc_perf_*.csv, which it joins, are counted and not read. Raises
    UnreadableFile, naming file, line and next step, for a file that is none of the tables or has no header.
    """
    problems = ProblemCounter()
    found: defaultdict[str, list[tuple[str, Bytes]]] = defaultdict(list)
    for place, buffer in files:
        kind = kind_of(PurePath(place).name, bytes(buffer[:_HEAD_BYTES]))
        if kind is None:
            raise UnreadableFile(
                f"{place}: line 1: not the columns of a rocprof-compute table. Leave the file out."
            )
        found[kind].append((place, buffer))
    for place, _ in found[_DISPATCH_LIST]:
        problems.add("derived_table", PurePath(place).name, "rows not loaded: all are in pmc_perf.csv")
    system = _system(found[_SYSTEM], problems)
    peaks = [peak for place, buffer in found[_ROOFLINE] for peak in _peaks(place, buffer, problems)]
    process = _process(_joined(found[_COUNTERS], problems), system)
    if files and not peaks and (process is None or not process.count("kernel_dispatch")):
        names = ", ".join(PurePath(place).name for place, _ in files)
        detail = (
            "neither dispatches nor peaks are in these files. Give the pmc_perf.csv of the same workload, too"
        )
        problems.add("no_events", names, detail)
    return WorkloadCsv(process, peaks, system, problems)


def _joined(files: Sequence[tuple[str, Bytes]], problems: ProblemCounter) -> Sequence[tuple[str, Bytes]]:
    """The files that hold all counters: the joined one, else those of each run."""
    names = [content.uncompressed_name(PurePath(place).name) for place, _ in files]
    joined = [file for file, name in zip(files, names, strict=True) if _JOINED_NAME.search(name)]
    if not joined:
        return files
    for file, name in zip(files, names, strict=True):
        if file not in joined:
            problems.add("derived_table", name, "rows not loaded: pmc_perf.csv joins them")
    return joined


def _system(files: Sequence[tuple[str, Bytes]], problems: ProblemCounter) -> dict[str, str | None]:
    """The figures of sysinfo by name: of the last row, as each run of the tool adds one."""
    figures: dict[str, str | None] = {}
    for place, buffer in files:
        table = read_csv(place, buffer, lambda _: TEXT, problems)
        if len(table) > 1:
            problems.add("earlier_sysinfo", table.file, "row rejected: the last one holds", len(table) - 1)
        for row in table.table.slice(max(len(table) - 1, 0)).to_pylist():
            figures |= {table.names[column]: value for column, value in row.items() if value is not None}
    return figures


def _peaks(place: str, buffer: Bytes, problems: ProblemCounter) -> list[MeasuredPeak]:
    table = read_csv(place, buffer, lambda _: TEXT, problems)
    peaks: list[MeasuredPeak] = []
    for number, row in enumerate(table.table.to_pylist()):
        device = row.pop("device") or str(number)
        values = {table.names[column]: value for column, value in row.items()}
        peaks += peaks_of(values, device, f"{table.file}, device {device}", problems)
    return peaks


def _process(files: Sequence[tuple[str, Bytes]], system: Mapping[str, str | None]) -> TableProcess | None:
    if not files:
        return None
    problems = ProblemCounter()
    tables = [read_csv(place, buffer, column_type, problems, "kernelname") for place, buffer in files]
    place = ", ".join(table.file for table in tables)
    found = Dispatches(tables, place, problems).tables(system)
    if system.get("hostname"):
        found["info_node"] = pa.table(
            {"id": pa.array([0], INTEGER), "hostname": pa.array([system["hostname"]], TEXT)}
        )
    places = dict.fromkeys(("kernel_dispatch", "pmc_event"), place)
    return TableProcess(SOURCE_KIND, found, places, system, problems)
