"""CSVs as rocprofv3 writes them, and what the reader makes of them in rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rocprof_csv import read_processes

SHARED = Path(__file__).parents[1].parent / "shared" / "data" / "rocprof"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared captures beside the checkout")

KERNEL_HEADER = (
    "Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id"
    " Start_Timestamp End_Timestamp LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count"
    " Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y Grid_Size_Z"
)
COUNTER_HEADER = (
    "Correlation_Id Dispatch_Id Agent_Id Queue_Id Process_Id Thread_Id Grid_Size Kernel_Id Kernel_Name"
    " Workgroup_Size LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count Counter_Name"
    " Counter_Value Start_Timestamp End_Timestamp"
)
API_HEADER = "Domain Function Process_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp"
AGENT_HEADER = (
    "Node_Id Logical_Node_Id Agent_Type Cpu_Cores_Count Cu_Count Num_Xcc Max_Engine_Clk_Fcompute Gpu_Id Name"
    " Vendor_Name Product_Name Model_Name"
)


def text_of(header: str, *rows: Iterable[object]) -> bytes:
    """A CSV in the profiler's own way: texts between quotes, with nothing in them escaped."""

    def line(cells: Iterable[object]) -> str:
        return ",".join(f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in cells) + "\n"

    return "".join(map(line, (header.split(), *rows))).encode()


def kernel(
    name: str = "gemm(float*)",
    dispatch: int = 1,
    agent: str = "Agent 4",
    kernel_id: int = 10,
    start: int = 1_000,
    size: int = 0,
) -> list[object]:
    """A row of a kernel trace, 500 ns long."""
    place = ["KERNEL_DISPATCH", agent, 1, 2, 77, dispatch, kernel_id, name, 100 + dispatch]
    return [*place, start, start + 500, size, 16, 24, 4, 32, 64, 2, 1, 1024, 4, 3]


def counter(
    name: str, value: object, dispatch: int = 1, agent: str = "Agent 4", kernel_name: str = "gemm(float*)"
) -> list[object]:
    """A row of a counter collection, with the process 55."""
    place = [100 + dispatch, dispatch, agent, 1, 55, 77, 12_288, 10, kernel_name]
    return [*place, 128, 512, 16, 24, 4, 32, name, value, 1_000, 1_500]


def read(**files: bytes) -> list[TableProcess]:
    """Read files, given by name without `.csv`."""
    return read_processes([(f"run/{name.lstrip('_')}.csv", content) for name, content in files.items()])


def read_one(**files: bytes) -> TableProcess:
    """Read files of one process."""
    [process] = read(**files)
    return process


def rows(process: TableProcess, base: str) -> list[dict[str, Any]]:
    """The rows of a table, with the texts of string ids and without ids of events."""
    strings = {row["id"]: row["string"] for row in process.reference("string").table.to_pylist()}
    found = process.reference(base).table.to_pylist()
    for row in found:
        for column in ("name_id", "event.category_id", "instruction_id", "comment_id"):
            if row.get(column) is not None:
                row[column] = strings[row[column]]
    return found


def counters(process: TableProcess) -> list[tuple[int | None, str, float | None]]:
    """The value of each counter, with the number of its dispatch."""
    dispatches = {row["event_id"]: row["dispatch_id"] for row in rows(process, "kernel_dispatch")}
    names = {row["id"]: row["name"] for row in rows(process, "info_pmc")}
    return [
        (dispatches.get(row["event_id"]), names[row["pmc_id"]], row["value"])
        for row in rows(process, "pmc_event")
    ]


def problems(process: TableProcess) -> dict[str, int]:
    """How often each problem was counted."""
    found: dict[str, int] = {}
    for problem in process.problems.problems():
        found[problem.problem] = found.get(problem.problem, 0) + problem.occurrences
    return found


def shared(name: str) -> tuple[TableProcess, list[dict[str, str]]]:
    """A shared file as the reader has it, and as the csv module of Python does."""
    content = (SHARED / name).read_bytes()
    [process] = read_processes([(name, content)])
    return process, list(csv.DictReader(io.StringIO(content.decode())))


def integers(row: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, int]:
    """The cells of a row as integers, by the names of the columns of rocpd."""
    return {name: int(row[column]) for name, column in columns.items()}


def picked(row: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Some columns of a row; None for one that it lacks."""
    return {name: row.get(name) for name in names}
