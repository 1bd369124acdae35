"""The reader of rocprof-compute's workloads against Python's csv module, and hand-made files."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from statistics import median_low
from typing import Any

import pytest

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.measured_peaks import MeasuredPeak
from tracewh.ingest.rocprof_compute_csv import WorkloadCsv, kind_of, prefix_of, read_workload

from .rocprof_csv_files import SHARED, needs_shared, rows

WIDE = "rocm-systems-rocprof-compute-dispatch_0-MI300X_A1-pmc_perf.csv"
LONG = "rocm-systems-rocprof-compute-vcopy-MI300X_A1_rocpd-pmc_perf.csv"
SYSTEM = "rocm-systems-rocprof-compute-vcopy-MI300X_A1_rocpd-sysinfo.csv"
ROOFLINE = "rocm-systems-rocprof-compute-dispatch_0-MI200-roofline.csv"
DISPATCH = (
    "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR"
    ",SGPR,Kernel_Name"
)
LONG_HEADER = f"{DISPATCH},Start_Timestamp,End_Timestamp,Kernel_ID,Counter_Name,Counter_Value"
INSTANCE = re.compile(r"(.+)\[(\d+)\]")


def read(**files: str) -> WorkloadCsv:
    """Read files, given by name without `.csv`."""
    return read_workload([(f"work/{name}.csv", content.encode()) for name, content in files.items()])


def csv_of(header: str, *lines: Iterable[object]) -> str:
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\n").writerows([header.split(","), *lines])
    return content.getvalue()


def dispatch(number: int = 1, gpu: int = 2, kernel: str = "copy(int*, int*)") -> list[object]:
    return [gpu, number, 4096, 256, 512, 16, 8, 4, 24, kernel]


def counters(workload: WorkloadCsv) -> dict[tuple[int, str, int], float]:
    """The value of each counter by dispatch, name and instance."""
    assert workload.process is not None
    numbers = {row["event_id"]: row["dispatch_id"] for row in rows(workload.process, "kernel_dispatch")}
    names = {row["id"]: row["name"] for row in rows(workload.process, "info_pmc")}
    found = {}
    for row in rows(workload.process, "pmc_event"):
        key = (numbers[row["event_id"]], names[row["pmc_id"]], row["instance"])
        assert key not in found
        found[key] = row["value"]
    return found


def table(workload: WorkloadCsv, base: str) -> list[dict[str, Any]]:
    assert workload.process is not None
    return rows(workload.process, base)


def problems(workload: WorkloadCsv) -> dict[str, int]:
    found = {problem.problem: problem.occurrences for problem in workload.problems.problems()}
    if workload.process is not None:
        found |= {problem.problem: problem.occurrences for problem in workload.process.problems.problems()}
    return found


def expected_counters(said: dict[int, dict[str, float]]) -> tuple[dict[tuple[int, str, int], float], int]:
    """By dispatch, name and instance, without the sums of what has instances; how many of those differ."""
    expected, differing = {}, 0
    for number, values in said.items():
        totals: defaultdict[str, float] = defaultdict(float)
        for name, value in values.items():
            if match := INSTANCE.fullmatch(name):
                totals[match[1]] += value
                expected[number, match[1], int(match[2])] = value
        for name, value in values.items():
            if INSTANCE.fullmatch(name):
                continue
            if (counter := name.removesuffix("_sum")) != name and counter in totals:
                differing += totals[counter] != value
            else:
                expected[number, name, 0] = value
    return expected, differing


@needs_shared
def test_one_row_for_each_value() -> None:
    content = (SHARED / LONG).read_bytes()
    workload = read_workload([(LONG, content)])
    lines = list(csv.DictReader(io.StringIO(content.decode())))
    said: defaultdict[int, dict[str, float]] = defaultdict(dict)
    runs: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    for line in lines:
        number = int(line["Dispatch_ID"])
        said[number][line["Counter_Name"]] = float(line["Counter_Value"])
        runs[number].add((int(line["Start_Timestamp"]), int(line["End_Timestamp"])))
    expected, differing = expected_counters(said)
    assert len(expected) == len(lines) - 3 * 14
    assert counters(workload) == expected
    assert problems(workload) == {"counter_sum_differs": differing}
    found = table(workload, "kernel_dispatch")
    assert [row["dispatch_id"] for row in found] == [1, 2, 3]
    for row in found:
        times = runs[row["dispatch_id"]]
        assert len(times) == 12
        assert row["start"] == median_low([start for start, _ in times])
        assert row["end"] - row["start"] == median_low([end - start for start, end in times])
        assert row["grid_size_x"] == int(lines[0]["Grid_Size"])
        assert row["agent_id"] == int(lines[0]["GPU_ID"])
    [symbol] = table(workload, "info_kernel_symbol")
    assert symbol["display_name"] == lines[0]["Kernel_Name"]


@needs_shared
def test_one_column_for_each_counter() -> None:
    content = (SHARED / WIDE).read_bytes()
    workload = read_workload([(WIDE, content)])
    lines = list(csv.DictReader(io.StringIO(content.decode())))
    # All columns of dispatches, those of other runs included: what is left are counters.
    other = re.compile(
        r"(Dispatch_ID|GPU_ID|Grid_Size|Workgroup_Size|LDS_Per_Workgroup|Scratch_Per_Workitem|Arch_VGPR"
        r"|Accum_VGPR|SGPR|Wave_Size|Kernel_Name|Correlation_ID|XCC_Index|Start_Timestamp|End_Timestamp)(_\d+)?"
    )
    said = {
        int(line["Dispatch_ID"]): {
            name: float(value) for name, value in line.items() if not other.fullmatch(name)
        }
        for line in lines
    }
    expected, differing = expected_counters(said)
    assert counters(workload) == expected
    again = sum(match is not None and match[2] is not None for match in map(other.fullmatch, lines[0]))
    assert problems(workload) == {"duplicate_column": again, "counter_sum_differs": differing}
    # Names that end in a number are no columns of another run.
    assert (0, "SQC_DCACHE_REQ_READ_1", 0) in expected
    for row, line in zip(table(workload, "kernel_dispatch"), lines, strict=True):
        assert (row["start"], row["end"]) == (int(line["Start_Timestamp"]), int(line["End_Timestamp"]))
        assert (row["agent_id"], row["workgroup_size_x"]) == (
            int(line["GPU_ID"]),
            int(line["Workgroup_Size"]),
        )
    [agent] = table(workload, "info_agent")
    assert json.loads(agent["extdata"]) == {"wave_size": 64, "wave_front_size": 64}


@needs_shared
def test_sysinfo() -> None:
    content = (SHARED / SYSTEM).read_bytes()
    [said] = csv.DictReader(io.StringIO(content.decode()))
    workload = read_workload([(SYSTEM, content), (LONG, (SHARED / LONG).read_bytes())])
    assert workload.attributes == {name: value for name, value in said.items() if value}
    [agent] = table(workload, "info_agent")
    assert (agent["id"], agent["type"], agent["type_index"]) == (2, "GPU", 0)
    assert (agent["name"], agent["model_name"]) == ("gfx942", "MI300X_A1")
    figures = json.loads(agent["extdata"])
    assert "hostname" not in figures
    assert "cpu_model" not in figures
    for name, value in {
        "cu_per_gpu": 304,
        "cu_count": 304,
        "num_xcc": 8,
        "simd_per_cu": 4,
        "simd_count": 1216,
        "max_engine_clk_fcompute": 2100,
        "wave_front_size": 64,
        "compute_partition": "SPX",
    }.items():
        assert figures[name] == value
    assert [row["hostname"] for row in table(workload, "info_node")] == [said["hostname"]]


@needs_shared
def test_roofline() -> None:
    content = (SHARED / ROOFLINE).read_bytes()
    workload = read_workload([(ROOFLINE, content)])
    lines = list(csv.DictReader(io.StringIO(content.decode())))
    assert workload.process is None
    assert len(workload.peaks) == 11 * len(lines) == 44
    for line, peak in zip(lines, workload.peaks[::11], strict=True):
        range_text = f"range {float(line['HBMBwLow']):.10g} to {float(line['hbmBwHigh']):.10g} e9"
        source = f"{ROOFLINE}, device {line['device']}: HBMBw, {range_text}"
        value = float(line["HBMBw"]) * 1e9
        assert peak == MeasuredPeak(line["device"], "bytes_per_s", "HBM", None, value, source)
    integer = workload.peaks[10]
    assert (integer.quantity, integer.dtype) == ("matrix_flops_per_s", "int8")
    assert f"range {lines[0]['MFMAFI8OpsLow']} to {lines[0]['MFMAI8OpsHigh']} e9" in integer.source
    assert problems(workload) == {}


@pytest.mark.parametrize(
    ("name", "header", "kind", "prefix"),
    [
        ("pmc_perf.csv", f"{DISPATCH},SQ_WAVES", "pmc_perf", ""),
        ("pmc_perf.csv.gz", LONG_HEADER, "pmc_perf", ""),
        ("results_pmc_perf_3.csv", LONG_HEADER, "pmc_perf", ""),
        ("vcopy-pmc_perf.csv", LONG_HEADER, "pmc_perf", "vcopy-"),
        ("roofline.csv", "device,HBMBw,L2Bw", "roofline", ""),
        ("sysinfo.csv", "command,gpu_arch,cu_per_gpu", "sysinfo", ""),
        ("pmc_dispatch_info.csv", "Dispatch_ID,Kernel_Name,GPU_ID", "pmc_dispatch_info", ""),
        ("log.csv", "step,loss", None, "log"),
        (
            "1_counter_collection.csv",
            "Dispatch_Id,Agent_Id,Grid_Size,Kernel_Name",
            None,
            "1_counter_collection",
        ),
    ],
)
def test_kinds_and_prefixes(name: str, header: str, kind: str | None, prefix: str) -> None:
    assert kind_of(name, header.encode()) == kind
    assert prefix_of(name) == prefix


def test_columns_of_a_dispatch() -> None:
    row = [*dispatch(7), "100.5", 150.0, 9, "SQ_WAVES", 3]
    workload = read(pmc_perf=csv_of(LONG_HEADER, row))
    [found] = table(workload, "kernel_dispatch")
    assert found == {
        "id": 1,
        "event_id": 1,
        "agent_id": 2,
        "kernel_id": 0,
        # Half a nanosecond of a mean goes to the even number.
        "start": 100,
        "end": 150,
        "dispatch_id": 7,
        "group_segment_size": 512,
        "private_segment_size": 16,
        "grid_size_x": 4096,
        "grid_size_y": 1,
        "grid_size_z": 1,
        "workgroup_size_x": 256,
        "workgroup_size_y": 1,
        "workgroup_size_z": 1,
        "event.category_id": "KERNEL_DISPATCH",
    }
    [symbol] = table(workload, "info_kernel_symbol")
    assert symbol == {
        "id": 0,
        "display_name": "copy(int*, int*)",
        "arch_vgpr_count": 8,
        "accum_vgpr_count": 4,
        "sgpr_count": 24,
    }
    assert workload.process is not None
    assert workload.process.source_kind == "rocprof_compute"
    assert problems(workload) == {}


def test_the_median_of_start_and_duration_over_the_runs() -> None:
    runs = [(100, 10), (300, 40), (200, 20)]
    lines = [
        [*dispatch(), start, start + duration, 9, f"C{number}", value]
        for number, (start, duration) in enumerate(runs)
        # A run counts once, however many counters it had.
        for value in range(1 + 5 * number)
    ]
    lines = [[*line[:-2], f"{line[-2]}_{line[-1]}", line[-1]] for line in lines]
    [found] = table(read(pmc_perf=csv_of(LONG_HEADER, *lines)), "kernel_dispatch")
    assert (found["start"], found["end"]) == (200, 220)


def test_a_sum_yields_to_the_instances_of_its_dispatch() -> None:
    header = f"{DISPATCH},TCC_HIT[0],TCC_HIT[1],TCC_HIT_sum,TCC_MISS_sum,SQ_WAVES"
    content = csv_of(
        header,
        [*dispatch(1), 2, 3, 5, 7, 11],
        [*dispatch(2), 2, 3, 6, 7, ""],
        # Not collected of this dispatch: its sum is all there is.
        [*dispatch(3), "", "", 4, "", 12],
    )
    workload = read(pmc_perf=content)
    assert counters(workload) == {
        (1, "TCC_HIT", 0): 2,
        (1, "TCC_HIT", 1): 3,
        (1, "TCC_MISS_sum", 0): 7,
        (1, "SQ_WAVES", 0): 11,
        (2, "TCC_HIT", 0): 2,
        (2, "TCC_HIT", 1): 3,
        (2, "TCC_MISS_sum", 0): 7,
        (3, "TCC_HIT_sum", 0): 4,
        (3, "SQ_WAVES", 0): 12,
    }
    assert workload.process is not None
    [problem] = [p for p in workload.process.problems.problems() if p.problem == "counter_sum_differs"]
    assert problem.detail == "value rejected: TCC_HIT_sum is 6, the sum of its instances 5"
    # The dispatches have no times.
    assert problems(workload) == {"counter_sum_differs": 1, "untimed_counters": 3}


def test_columns_of_other_runs_are_not_counted_twice() -> None:
    header = f"{DISPATCH},SQ_WAVES,SQ_WAVES_1,Wave_Size,Wave_Size_1,XCC_Index,XCC_Index_1,SQC_REQ_READ_1"
    workload = read(pmc_perf=csv_of(header, [*dispatch(), 2, 3, 64, 64, 0, 0, 5]))
    assert counters(workload) == {(1, "SQ_WAVES", 0): 2, (1, "SQC_REQ_READ_1", 0): 5}
    assert problems(workload) == {"duplicate_column": 2, "repeated_counter": 1, "untimed_counters": 1}
    assert "xcc" not in table(workload, "pmc_event")[0]


def test_rows_of_several_dies_are_one_dispatch() -> None:
    header = f"{DISPATCH},XCC_Index,SQ_WAVES"
    workload = read(pmc_perf=csv_of(header, [*dispatch(), 0, 2], [*dispatch(), 1, 3], [*dispatch(), 1, 4]))
    assert len(table(workload, "kernel_dispatch")) == 1
    assert [(row["xcc"], row["value"]) for row in table(workload, "pmc_event")] == [(0, 2), (1, 3)]
    assert problems(workload)["repeated_counter"] == 1


def test_a_number_that_is_two_kernels_is_two_dispatches() -> None:
    lines = [[*dispatch(kernel=kernel), 100, 200, 9, "SQ_WAVES", 3] for kernel in ("a", "b")]
    workload = read(pmc_perf=csv_of(LONG_HEADER, *lines))
    assert [row["dispatch_id"] for row in table(workload, "kernel_dispatch")] == [1, 1]
    assert problems(workload) == {"dispatch_mismatch": 1}


def test_agents_are_numbered_in_the_order_of_their_ids() -> None:
    lines = [[*dispatch(gpu=gpu), 100, 200, 9, "SQ_WAVES", 3] for gpu in (60_633, 17)]
    workload = read(pmc_perf=csv_of(LONG_HEADER, *lines))
    assert [(row["id"], row["type_index"]) for row in table(workload, "info_agent")] == [(17, 0), (60_633, 1)]
    assert len(table(workload, "info_pmc")) == 2


def test_the_runs_are_read_where_nothing_joins_them() -> None:
    runs = {
        f"results_pmc_perf_{number}": csv_of(
            f"GUID,{LONG_HEADER}",
            ["aa", *dispatch(), 100 * number, 100 * number + 9, 9, f"C{number}", number],
        )
        for number in (1, 2, 3)
    }
    workload = read(**runs)
    assert counters(workload) == {(1, "C1", 0): 1, (1, "C2", 0): 2, (1, "C3", 0): 3}
    assert [(row["start"], row["end"]) for row in table(workload, "kernel_dispatch")] == [(200, 209)]
    listing = csv_of("Dispatch_ID,Kernel_Name,GPU_ID", [0, "copy", 0])
    workload = read(pmc_perf=runs["results_pmc_perf_1"], pmc_dispatch_info=listing, **runs)
    assert counters(workload) == {(1, "C1", 0): 1}
    assert {(p.problem, p.place) for p in workload.problems.problems()} == {
        ("derived_table", f"{name}.csv") for name in (*runs, "pmc_dispatch_info")
    }


def test_sysinfo_without_figures() -> None:
    system = csv_of(
        "hostname,gpu_arch,gpu_model,cu_per_gpu,max_sclk,compute_partition,gpu_chip_id",
        ["old", "gfx90a", "MI200", 104, 1700, "SPX", 1],
        ["", "gfx950", "MI350", 128, 0, "N/A", ""],
    )
    workload = read(sysinfo=system, pmc_perf=csv_of(LONG_HEADER, [*dispatch(), 1, 2, 9, "C", 3]))
    [agent] = table(workload, "info_agent")
    assert json.loads(agent["extdata"]) == {
        "gpu_arch": "gfx950",
        "gpu_model": "MI350",
        "cu_per_gpu": 128,
        "cu_count": 128,
        "max_sclk": 0,
    }
    assert table(workload, "info_node") == []
    assert problems(workload) == {"earlier_sysinfo": 1}


def test_a_workload_without_dispatches_is_a_problem() -> None:
    system = csv_of("hostname,gpu_arch,cu_per_gpu", ["node", "gfx942", 304])
    [problem] = read(sysinfo=system).problems.problems()
    assert (problem.problem, problem.place) == ("no_events", "sysinfo.csv")
    assert "Give the pmc_perf.csv of the same workload" in problem.detail
    listing = csv_of("Dispatch_ID,Kernel_Name,GPU_ID", [0, "copy", 0])
    assert problems(read(pmc_dispatch_info=listing)) == {"derived_table": 1, "no_events": 1}
    assert problems(read(pmc_perf=LONG_HEADER, sysinfo=system)) == {"no_events": 1}
    # Peaks are something by themselves.
    roofline = csv_of("device,HBMBw,HBMBwLow,HBMBwHigh", [0, 1.5, 1, 2])
    assert "no_events" not in problems(read(sysinfo=system, roofline=roofline))
    assert problems(read()) == {}


def test_damage() -> None:
    lines = csv_of(
        LONG_HEADER,
        [*dispatch(), 100, 200, 9, "A", "many"],
        [*dispatch(), "soon", 200, 9, "B", 3],
        [*dispatch(), 100, "", 9, "C", 4],
    )
    workload = read(pmc_perf=lines + '2,1,4096,256,512,16,8,4,24,"copy(int*')
    assert counters(workload) == {(1, "B", 0): 3, (1, "C", 0): 4}
    assert [(row["start"], row["end"]) for row in table(workload, "kernel_dispatch")] == [(100, 200)]
    assert problems(workload) == {"invalid_csv_row": 1, "not_a_number": 1, "not_an_integer": 1}
    with pytest.raises(
        UnreadableFile, match=r"work/x.csv: line 1: not the columns of a rocprof-compute table"
    ):
        read(x="step,loss\n1,2\n")
    empty = read(pmc_perf=LONG_HEADER)
    assert (table(empty, "kernel_dispatch"), table(empty, "pmc_event")) == ([], [])
    assert read().process is None
