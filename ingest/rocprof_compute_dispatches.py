"""Dispatches and agents of rocprof-compute's pmc_perf.csv as tables of rocpd."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median_low

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT
from tracewh.ingest.rocprof_compute_counters import CounterValues
from tracewh.ingest.rocprof_csv_references import References, present
from tracewh.ingest.rocprof_csv_tables import CsvTable
from tracewh.ingest.rocprof_csv_values import each, integer_of, nanoseconds_of
from tracewh.ingest.shared_rows import Column, distinct_rows

_TYPES = {
    "guid": TEXT,
    "kernelname": TEXT,
    "countername": TEXT,
    "countervalue": REAL,
    # Medians of several runs: not all are whole numbers, and they have more digits than a float.
    "starttimestamp": TEXT,
    "endtimestamp": TEXT,
    "dispatchid": INTEGER,
    "gpuid": INTEGER,
    "gridsize": INTEGER,
    "workgroupsize": INTEGER,
    "ldsperworkgroup": INTEGER,
    "scratchperworkitem": INTEGER,
    "archvgpr": INTEGER,
    "accumvgpr": INTEGER,
    "sgpr": INTEGER,
    "wavesize": INTEGER,
    "kernelid": INTEGER,
    "correlationid": INTEGER,
    "xccindex": INTEGER,
    "queueid": INTEGER,
    "pid": INTEGER,
    "tid": INTEGER,
}
# Columns of a dispatch that come again for each run that was joined.
_OF_ANOTHER_RUN = re.compile(rf"(?:{'|'.join(_TYPES)})\d+")
# What tells a dispatch of all runs, as the tool has it.
_KEY = ("gpu", "dispatch_id", "name_id", "grid_size", "workgroup_size", "group_segment_size")
_SYMBOL = ("name_id", "arch_vgpr_count", "accum_vgpr_count", "sgpr_count")
_NOT_OF_THE_GPU = re.compile(
    r"workload_\w+|command|ip_blocks|timestamp|version|hostname|cpu_\w+|sbios|linux_\w+|amd_gpu_kernel_version"
    r"|rocm_version"
)
# What agents of rocpd call the figures of sysinfo.
_NAMES_OF_ROCPD = {
    "cu_per_gpu": "cu_count",
    "num_xcd": "num_xcc",
    "wave_size": "wave_front_size",
    "max_sclk": "max_engine_clk_fcompute",
}


def column_type(column: str) -> pa.DataType:
    """Type of a column of pmc_perf.csv by its plain name; what is no column of a dispatch is a counter."""
    return TEXT if _OF_ANOTHER_RUN.fullmatch(column) else _TYPES.get(column, REAL)


class Dispatches:
    """The dispatches of one workload, each once, from one joined table or those of its runs."""

    def __init__(self, tables: Sequence[CsvTable], place: str, problems: ProblemCounter) -> None:
        self._tables, self._place, self._problems = tables, place, problems
        self._references = References()
        frames = [self._frame(table) for table in tables]
        self._rows = pa.concat_tables(frames).combine_chunks()
        codes, first = distinct_rows([Column.of(self._rows.column(name).combine_chunks()) for name in _KEY])
        self._codes, self._first = pa.array(codes), pa.array(first)

    def tables(self, system: Mapping[str, str | None]) -> dict[str, pa.Table]:
        """All tables, given what sysinfo says."""
        rows = self._rows.take(self._first)
        agents = rows.column("gpu").combine_chunks()
        count = len(rows)
        symbols, kernel_ids = self._symbols(rows)
        starts, ends = self._times()
        ids = pa.array(range(1, count + 1), INTEGER)
        ones = pa.repeat(pa.scalar(1, INTEGER), count)
        kept = ("dispatch_id", "group_segment_size", "private_segment_size", "queue_id", "tid")
        dispatches = {
            "id": ids,
            "event_id": ids,
            "agent_id": agents,
            "kernel_id": kernel_ids,
            "start": starts,
            "end": ends,
            **{name: rows.column(name).combine_chunks() for name in kept},
            **{f"{size}_size_{axis}": ones for size in ("grid", "workgroup") for axis in "yz"},
            **{
                f"{size}_size_x": rows.column(f"{size}_size").combine_chunks()
                for size in ("grid", "workgroup")
            },
            "event.category_id": self._references.string("KERNEL_DISPATCH", count),
            "event.stack_id": rows.column("stack_id").combine_chunks(),
        }
        numbers = distinct_rows([Column.of(agents), Column.of(dispatches["dispatch_id"])])[1]
        if len(numbers) < count:
            detail = (
                "one number for different kernels or sizes in different runs: taken for different dispatches"
            )
            self._problems.add("dispatch_mismatch", self._place, detail, count - len(numbers))
        found = {
            "kernel_dispatch": present(dispatches),
            "info_kernel_symbol": symbols,
            "info_agent": self._agents(agents, system),
            **self._counters().tables(agents, self._place, self._problems),
            **self._references.tables(),
        }
        processes = pc.unique(rows.column("pid")).drop_null()
        if len(processes) == 1:
            found["info_process"] = pa.table({"id": processes, "pid": processes})
        return found

    def _frame(self, table: CsvTable) -> pa.Table:
        repeated = [column for column in table.names if _OF_ANOTHER_RUN.fullmatch(column)]
        if repeated:
            detail = f"not loaded: column {table.names[repeated[0]]!r} is that of another run"
            self._problems.add("duplicate_column", table.file, detail, len(repeated))
        return pa.table(
            {
                "gpu": table.integers("gpuid"),
                "dispatch_id": table.integers("dispatchid"),
                "name_id": self._references.strings(table.texts("kernelname")),
                "grid_size": table.integers("gridsize"),
                "workgroup_size": table.integers("workgroupsize"),
                "group_segment_size": table.integers("ldsperworkgroup"),
                "private_segment_size": table.integers("scratchperworkitem"),
                "arch_vgpr_count": table.integers("archvgpr"),
                "accum_vgpr_count": table.integers("accumvgpr"),
                "sgpr_count": table.integers("sgpr"),
                "pid": table.integers("pid"),
                "wave_size": table.integers("wavesize"),
                "queue_id": self._references.used("queue", table.integers("queueid")),
                "tid": self._references.used("thread", table.integers("tid")),
                "stack_id": table.integers("correlationid"),
                "start": self._nanoseconds(table, "starttimestamp"),
                "end": self._nanoseconds(table, "endtimestamp"),
            }
        )

    def _nanoseconds(self, table: CsvTable, column: str) -> pa.Array:
        place = f"{table.file}: {table.names.get(column, column)}"
        return each(table.texts(column), nanoseconds_of, INTEGER, "not_an_integer", place, self._problems)

    def _times(self) -> tuple[pa.Array, pa.Array]:
        """Start and end of each dispatch: the medians of start and duration over its runs."""
        starts, ends = (self._rows.column(name).combine_chunks() for name in ("start", "end"))
        _, first = distinct_rows([Column.of(column) for column in (self._codes, starts, ends)])
        runs: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        columns = (column.take(pa.array(first)).to_pylist() for column in (self._codes, starts, ends))
        for code, start, end in zip(*columns, strict=True):
            if start is not None and end is not None:
                runs[code].append((start, end))
        medians: list[tuple[int | None, int | None]] = []
        for code in range(len(self._first)):
            start = median_low([start for start, _ in runs[code]]) if runs[code] else None
            duration = median_low([end - start for start, end in runs[code]]) if runs[code] else None
            medians.append((start, None if start is None or duration is None else start + duration))
        untimed = sum(start is None for start, _ in medians)
        if untimed:
            detail = "dispatches known by counters that have no times: their values are kept, they are not"
            self._problems.add("untimed_counters", self._place, detail, untimed)
        found = zip(*medians, strict=True) if medians else ((), ())
        start_column, end_column = (pa.array(values, INTEGER) for values in found)
        return start_column, end_column

    def _symbols(self, rows: pa.Table) -> tuple[pa.Table, pa.Array]:
        codes, first = distinct_rows([Column.of(rows.column(name).combine_chunks()) for name in _SYMBOL])
        one_each = rows.take(pa.array(first))
        names = self._references.texts(one_each.column("name_id").combine_chunks())
        columns = {"id": pa.array(range(len(first)), INTEGER), "display_name": names}
        columns |= {name: one_each.column(name).combine_chunks() for name in _SYMBOL[1:]}
        return pa.table(columns), pa.array(codes)

    def _agents(self, agents: pa.Array, system: Mapping[str, str | None]) -> pa.Table:
        ids = sorted(pc.unique(agents).drop_null().to_pylist())
        count = len(ids)
        wave_sizes = pc.unique(self._rows.column("wave_size")).drop_null().to_pylist()
        extdata = json.dumps(_figures(system, wave_sizes))
        texts = {
            "type": "GPU",
            "name": system.get("gpu_arch"),
            "model_name": system.get("gpu_model"),
            "vendor_name": "AMD",
            "extdata": extdata,
        }
        return pa.table(
            {
                "id": pa.array(ids, INTEGER),
                "type_index": pa.array(range(count), INTEGER),
                **{name: pa.array([text] * count, TEXT) for name, text in texts.items()},
            }
        )

    def _counters(self) -> CounterValues:
        values, start = CounterValues(), 0
        for table in self._tables:
            dispatches = self._codes.slice(start, len(table))
            start += len(table)
            if table.has("countername"):
                values.add_rows(table, dispatches)
            else:
                counters = [
                    column
                    for column in table.names
                    if column not in _TYPES and not _OF_ANOTHER_RUN.fullmatch(column)
                ]
                values.add_columns(table, counters, dispatches)
        return values


def _figures(system: Mapping[str, str | None], wave_sizes: Sequence[int]) -> dict[str, int | str]:
    """What sysinfo says of a GPU, by its own names and by those that rocpd has for the same."""
    figures: dict[str, int | str] = {}
    for name, text in system.items():
        if not _NOT_OF_THE_GPU.fullmatch(name) and text not in (None, "N/A"):
            number = integer_of(str(text))
            figures[name] = str(text) if number is None else number
    if len(wave_sizes) == 1:
        figures.setdefault("wave_size", wave_sizes[0])
    # Zero is what the tool writes for what it could not find out.
    figures |= {other: figures[name] for name, other in _NAMES_OF_ROCPD.items() if figures.get(name)}
    compute_units, simds = figures.get("cu_per_gpu"), figures.get("simd_per_cu")
    if isinstance(compute_units, int) and isinstance(simds, int):
        figures["simd_count"] = compute_units * simds
    return figures
