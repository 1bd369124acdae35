"""Reader of the analysis databases of rocprof-compute: workloads with their dispatches, metrics and peaks.

The dispatches are of runs that collected counters, where kernels run one by one, and their times are medians
over these runs. A file may hold several workloads, and has been written with several schemas; what it holds
follows from its tables and columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.measured_peaks import MeasuredPeak
from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows
from tracewh.ingest.rocprof_compute_description import Description, flattened
from tracewh.ingest.rocprof_compute_metrics import read_metrics
from tracewh.ingest.sqlite_file import SqliteFile
from tracewh.ingest.sqlite_tables import SqliteTables, positions_in

READER_VERSION = 1

_PLACES = {"kernel_dispatch": "compute_dispatch", "info_kernel_symbol": "compute_kernel"}
_NODE_TYPES = {"id": INTEGER, "hostname": TEXT}
_PROCESS_TYPES = {"id": INTEGER, "pid": INTEGER, "command": TEXT}
_AGENT_TYPES = {
    "id": INTEGER,
    "type": TEXT,
    "type_index": INTEGER,
    "name": TEXT,
    "model_name": TEXT,
    "vendor_name": TEXT,
    "extdata": TEXT,
}


@dataclass(frozen=True)
class Workload:
    """What rocprof-compute analysed of one workload.

    `metrics` has the columns of METRIC_TYPES; `peaks` are what it measured of the machine.
    """

    process: TableProcess
    metrics: pa.Table
    peaks: list[MeasuredPeak]

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """What the file says of machine and profiler: `sys_info.gpu_arch`, `profiling_config.device`, ..."""
        return self.process.attributes


def read_workloads(file: SqliteFile) -> list[Workload]:
    """Read the workloads of an analysis database, by id.

    What is wrong with the file as a whole is among the problems of the first of them.
    """
    tables = SqliteTables(file)
    described, kernels = tables.read("compute_workload"), tables.read("compute_kernel")
    dispatches, metadata = tables.read("compute_dispatch"), tables.read("compute_metadata")
    metrics = read_metrics(tables, kernels)
    tables.count_unread()
    of_kernel, of_dispatch = kernels.integers("workload_id"), dispatches.integers("kernel_uuid")
    of_dispatch = of_kernel.take(positions_in(of_dispatch, kernels.integers("kernel_uuid")))
    named = {*described.integers("workload_id").to_pylist(), *of_kernel.to_pylist()} - {None}
    ids = sorted(named | set(metrics.workloads.to_pylist())) or [0]
    # A dispatch of no known kernel still is one of some workload.
    of_dispatch = pc.fill_null(of_dispatch, ids[0])
    versions: dict[str, Any] = next(iter(metadata.table.to_pylist()), {})
    versions.pop("id", None)
    workloads = []
    for number, workload in enumerate(ids):
        problems = tables.problems if number == 0 else ProblemCounter()
        rows = described.where(_is(described.integers("workload_id"), workload))
        description = Description(next(iter(rows.table.to_pylist()), {}), described.place, problems)
        own_dispatches = dispatches.where(_is(of_dispatch, workload))
        own_kernels = kernels.where(_is(of_kernel, workload))
        content = _process_tables(own_dispatches, own_kernels, description)
        attributes = {**flattened(versions), **description.attributes()}
        process = TableProcess("rocprof_compute", content, _PLACES, attributes, problems)
        workloads.append(Workload(process, metrics.of(workload), description.peaks()))
    return workloads


def _is(values: pa.Array, wanted: int) -> pa.Array:
    return pc.fill_null(pc.equal(values, wanted), False)


def _process_tables(dispatches: Rows, kernels: Rows, description: Description) -> dict[str, pa.Table]:
    process_ids = dispatches.integers("pid")
    distinct = process_ids.drop_null().unique().to_pylist()
    columns = {
        "id": dispatches.integers("dispatch_uuid"),
        "agent_id": dispatches.integers("gpu_id"),
        "kernel_id": dispatches.integers("kernel_uuid"),
        "dispatch_id": dispatches.integers("dispatch_id"),
        "start": dispatches.integers("start_timestamp"),
        "end": dispatches.integers("end_timestamp"),
    }
    if len(distinct) > 1:
        columns["process_id"] = process_ids
    symbols = {"id": kernels.integers("kernel_uuid"), "display_name": kernels.texts("kernel_name")}
    process = {
        "id": 0,
        "pid": distinct[0] if len(distinct) == 1 else None,
        "command": description.said("command"),
    }
    agent = {
        "type": "GPU",
        "name": description.said("gpu_arch"),
        "model_name": description.said("gpu_model"),
        "vendor_name": "AMD",
        "extdata": description.agent_fields(),
    }
    gpus = sorted(dispatches.integers("gpu_id").drop_null().unique().to_pylist())
    agents = [{"id": gpu, "type_index": gpu, **agent} for gpu in gpus]
    return {
        "kernel_dispatch": pa.table(columns),
        "info_kernel_symbol": pa.table(symbols),
        "info_node": _table([{"id": 0, "hostname": description.said("hostname")}], _NODE_TYPES),
        "info_process": _table([process], _PROCESS_TYPES),
        "info_agent": _table(agents, _AGENT_TYPES),
    }


def _table(rows: list[dict[str, Any]], types: dict[str, pa.DataType]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema(list(types.items())))
