"""Metrics of kernels and workloads in an analysis database of rocprof-compute, as it states them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT, Rows
from tracewh.ingest.sqlite_tables import SqliteTables, positions_in

#: Columns of metrics: those of `kernel_metrics`, with the name of the kernel itself, null for the whole
#: workload.
METRIC_TYPES = {
    "kernel_name": TEXT,
    "metric_group": TEXT,
    "metric_name": TEXT,
    "metric_id": TEXT,
    "description": TEXT,
    "value_name": TEXT,
    "unit": TEXT,
    "value": REAL,
}
ROOFLINE_GROUP = "Roofline data"
# The tables under the names that they have had, newest first. In the oldest files a metric is defined for
# each kernel, so that its values name none, and a point of the roofline names its kernel by text.
_DEFINITIONS = ("compute_metric_definition", "compute_metric")
_KERNEL_VALUES = ("compute_kernel_metric_value", "compute_metric_value", "compute_value")
_KERNEL_ROOFLINES = ("compute_kernel_roofline_data", "compute_roofline_data")
_WORKLOAD_VALUES = ("compute_workload_metric_value",)
_WORKLOAD_ROOFLINES = ("compute_workload_roofline_data",)
# SQLite's own text for the first row whose value is no finite number.
_NO_NUMBER = "WHERE typeof(value) NOT IN ('null', 'integer', 'real') OR abs(value) = 9e999 LIMIT 1"
_ROOFLINE_KEYS = ("roofline_uuid", "kernel_uuid", "workload_id", "kernel_name")
# The columns state no units. By rocprof-compute's documentation the first is a rate, despite its name, and
# data of a cache are operations per byte that it moved.
_ROOFLINE_UNITS = {
    "total_flops": "GFLOP/s",
    **{f"{level}_cache_data": "FLOP/byte" for level in ("l0", "l1", "l2", "hbm", "lds")},
    "total_duration_ns": "ns",
    "percent_runtime": "Percent",
}


@dataclass(frozen=True)
class Metrics:
    """Metrics of all workloads of a file, with columns as in METRIC_TYPES, and the workload of each."""

    table: pa.Table
    workloads: pa.Array

    def of(self, workload: int) -> pa.Table:
        """Return the metrics of one workload."""
        return self.table.filter(pc.equal(self.workloads, workload))


def read_metrics(tables: SqliteTables, kernels: Rows) -> Metrics:
    """Read the values of metrics and the points of the roofline.

    Rejected and counted with the table as place are rows whose metric, kernel or workload the file lacks.
    """
    definitions = tables.read_first(_DEFINITIONS)
    parts = [
        _values(_read_values(tables, _KERNEL_VALUES, definitions), definitions, kernels),
        _values(_read_values(tables, _WORKLOAD_VALUES, definitions), definitions, None),
        *_rooflines(tables.read_first(_KERNEL_ROOFLINES), kernels),
        *_rooflines(tables.read_first(_WORKLOAD_ROOFLINES), None),
    ]
    kept = [part.filter(part.column("workload_id").is_valid()) for part in parts]
    table = pa.concat_tables(kept)
    return Metrics(table.select(list(METRIC_TYPES)), table.column("workload_id").combine_chunks())


def _read_values(tables: SqliteTables, names: Sequence[str], definitions: Rows) -> Rows:
    """Read values; where some are no numbers, the problem names the metric of the first."""
    # A copy shares what was read, but not the problems.
    own = copy.copy(tables)
    own.problems = ProblemCounter()
    rows = own.read_first(names)
    place = f"{rows.place}.value"
    for found in own.problems.problems():
        detail = found.detail
        if found.place == place:
            first = tables.file.read(rows.place, rows.place, ProblemCounter(), where=_NO_NUMBER)
            metric = positions_in(first.integers("metric_uuid"), definitions.integers("metric_uuid"))
            detail += f" (metric {next(iter(_metric_names(definitions).take(metric).to_pylist()), None)})"
        tables.problems.add(found.problem, found.place, detail, found.occurrences)
    return Rows(rows.place, rows.table, tables.problems)


def _metric_names(definitions: Rows) -> pa.Array:
    return pc.coalesce(definitions.texts("name"), definitions.texts("metric_id"))


def _values(rows: Rows, definitions: Rows, kernels: Rows | None) -> pa.Table:
    metrics = positions_in(rows.integers("metric_uuid"), definitions.integers("metric_uuid"))
    if kernels is not None:
        kernel_ids = rows.integers("kernel_uuid")
        if "kernel_uuid" not in rows.table.column_names:
            kernel_ids = definitions.integers("kernel_uuid").take(metrics)
        names, workloads = _kernels(kernel_ids, kernels)
    else:
        names, workloads = pa.nulls(len(rows), TEXT), rows.integers("workload_id")
    workloads = pc.if_else(metrics.is_valid(), workloads, pa.scalar(None, INTEGER))
    _count_lost(rows, workloads, "value_uuid")
    groups, parts = (definitions.texts(column) for column in ("table_name", "sub_table_name"))
    is_one = pc.or_kleene(pc.equal(groups, parts), parts.is_null())
    groups = pc.coalesce(
        pc.if_else(is_one, groups, pc.binary_join_element_wise(groups, parts, pa.scalar(" / ", TEXT))), parts
    )
    columns = {
        "kernel_name": names,
        "metric_group": groups.take(metrics),
        "metric_name": _metric_names(definitions).take(metrics),
        "metric_id": _unless_empty(definitions.texts("metric_id")).take(metrics),
        "description": _unless_empty(definitions.texts("description")).take(metrics),
        "value_name": rows.texts("value_name"),
        "unit": definitions.texts("unit").take(metrics),
        "value": rows.numbers("value"),
    }
    return _table(columns, workloads)


def _rooflines(rows: Rows, kernels: Rows | None) -> list[pa.Table]:
    """One metric per column of numbers."""
    names, workloads = rows.texts("kernel_name"), rows.integers("workload_id")
    if kernels is not None and "kernel_uuid" in rows.table.column_names:
        names, workloads = _kernels(rows.integers("kernel_uuid"), kernels)
    _count_lost(rows, workloads, "roofline_uuid")
    tables = []
    for column in rows.table.column_names:
        if column in _ROOFLINE_KEYS:
            continue
        columns = {
            "kernel_name": names,
            "metric_group": pa.repeat(pa.scalar(ROOFLINE_GROUP, TEXT), len(rows)),
            "metric_name": pa.repeat(pa.scalar(column, TEXT), len(rows)),
            "metric_id": pa.nulls(len(rows), TEXT),
            "description": pa.nulls(len(rows), TEXT),
            "value_name": pa.repeat(pa.scalar("Value", TEXT), len(rows)),
            "unit": pa.repeat(pa.scalar(_ROOFLINE_UNITS.get(column), TEXT), len(rows)),
            "value": rows.numbers(column),
        }
        tables.append(_table(columns, workloads))
    return tables


def _unless_empty(texts: pa.Array) -> pa.Array:
    """The file has an empty text where a metric has none."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, TEXT), texts)


def _kernels(kernel_ids: pa.Array, kernels: Rows) -> tuple[pa.Array, pa.Array]:
    """Names and workloads of kernels; a kernel without a name still is one, and not the whole workload."""
    where = positions_in(kernel_ids, kernels.integers("kernel_uuid"))
    names = pc.fill_null(kernels.texts("kernel_name"), "").take(where)
    return names, kernels.integers("workload_id").take(where)


def _count_lost(rows: Rows, workloads: pa.Array, key: str) -> None:
    if workloads.null_count:
        example = rows.integers(key).filter(workloads.is_null())[0]
        detail = f"row rejected: the file lacks its metric, kernel or workload (first: {key} {example})"
        rows.problems.add("dangling_reference", rows.place, detail, workloads.null_count)


def _table(columns: dict[str, pa.Array], workloads: pa.Array) -> pa.Table:
    """Texts that a metric must have are empty where the file has none."""
    needed = ("metric_group", "metric_name", "value_name")
    filled = {
        name: pc.fill_null(column, "") if name in needed else column for name, column in columns.items()
    }
    return pa.table({**filled, "workload_id": workloads})
