"""Counter runs of several passes as one run: ranks, roles, formulas over passes, and passes that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracewh

from .generated_rocpd import counters, layouts, twins, write_complete, write_file
from .ingest_runs import FIXTURES, query, small_capture

TIMING_VIEWS = (
    "device_time",
    "phase_time",
    "component_time",
    "kernel_stats",
    "op_stats",
    "launches",
    "attribution",
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "w.duckdb"


def test_passes_are_one_process_each_time_counted_anew(warehouse: Path) -> None:
    report = tracewh.ingest_run(FIXTURES / "rocpd_counters", warehouse=warehouse)
    assert (report.captures, report.problems, report.devices) == (3, 0, 1)
    assert query(warehouse, "SELECT COUNT(*), MIN(process_index), MAX(process_index) FROM captures") == [
        (3, 0, 0)
    ]


def test_no_timing_view_has_the_times_of_a_counter_run(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "rocpd_counters", warehouse=warehouse)
    assert query(warehouse, "SELECT role, COUNT(*) FROM device_events GROUP BY 1") == [("serialized", 18)]
    for view in TIMING_VIEWS:
        assert query(warehouse, f"SELECT COUNT(*) FROM v1.{view}") == [(0,)], view
    assert query(warehouse, "SELECT DISTINCT device_event_count, span_ps, device_kind FROM v1.captures") == [
        (0, None, "AMD Instinct MI300X")
    ]


def test_flops_and_bytes_over_passes_are_those_of_the_model(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "rocpd_counters", warehouse=warehouse)
    found = query(
        warehouse,
        "SELECT kernel_name, derived, value FROM (SELECT kernel_name, counter_name AS derived, value "
        "FROM v1.counters WHERE occurrence = 1 AND formula_id IS NOT NULL)",
    )
    values = {(kernel, derived): value for kernel, derived, value in found}
    gemm = "Cijk_Alik_Bljk_BBS_BH_MT256x256x64_MI16x16x1"
    # By the shapes: 2 M N K operations in bf16.
    assert values[gemm, "matrix_flops_bf16"] == 2 * 4096 * 3584 * 2048
    assert values[gemm, "memory_read_bytes"] == 2 * (4096 * 2048 + 3584 * 2048)
    assert values[gemm, "memory_write_bytes"] == 2 * 4096 * 3584
    elements = 1_048_576
    assert values["loop_multiply_fusion_5", "memory_read_bytes"] == 2 * 4 * elements
    assert values["loop_multiply_fusion_5", "memory_write_bytes"] == 4 * elements


def test_a_kernel_that_a_pass_lacks_is_a_problem_of_the_run(tmp_path: Path, warehouse: Path) -> None:
    run = tmp_path / "run"
    counters.write_passes(run, lost=1)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.problems == 1
    problem = "SELECT problem, place, occurrences, capture_id FROM ingest_problems"
    ((name, place, occurrences, capture_id),) = query(warehouse, problem)
    assert (name, occurrences) == ("pass_mismatch", 1)
    assert place.startswith("pass_3/")
    assert query(warehouse, f"SELECT COUNT(*) FROM device_events WHERE capture_id = {capture_id}") == [(5,)]
    tracewh.ingest_run(run, warehouse=warehouse, force=True)
    assert len(query(warehouse, problem)) == 1


def test_the_passes_in_other_formats_count_the_same(tmp_path: Path, warehouse: Path) -> None:
    """rocprofv3 sums the instances before it writes CSV, so that raw counters have one value each."""
    sources = sorted((FIXTURES / "rocpd_counters").glob("pass_*/*.db"))
    for database in sources:
        twins.write_csv(database, tmp_path / "csv" / database.parent.name)
        twins.write_json(database, tmp_path / "json" / database.parent.name)
    tracewh.ingest_run(FIXTURES / "rocpd_counters", warehouse=warehouse)
    wanted = {"SQ_WAVES", "TCC_EA0_RDREQ", "SQ_INSTS_VALU_MFMA_MOPS_BF16"}
    sums = (
        "SELECT kernel_name, counter_name, SUM(value) FROM v1.counters WHERE formula_id IS NULL "
        "AND counter_name IN ('SQ_WAVES', 'TCC_EA0_RDREQ', 'SQ_INSTS_VALU_MFMA_MOPS_BF16') "
        "GROUP BY ALL ORDER BY ALL"
    )
    expected = query(warehouse, sums)
    assert {row[1] for row in expected} == wanted
    for form in ("csv", "json"):
        other = tmp_path / f"{form}.duckdb"
        tracewh.ingest_run(tmp_path / form, warehouse=other)
        assert query(other, "SELECT DISTINCT role FROM device_events") == [("serialized",)]
        assert query(other, sums) == expected, form


def test_processes_of_one_file_have_ranks_of_their_own(tmp_path: Path, warehouse: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    layouts.write_merged(run / "merged_results.db", ranks=3)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT process_index FROM captures ORDER BY 1") == [(0,), (1,), (2,)]


def test_a_rank_per_process_whatever_its_formats(tmp_path: Path, warehouse: Path) -> None:
    run = tmp_path / "run"
    for rank in range(2):
        write_file(run / f"{100 + rank}_results.db", process_id=100 + rank)
        twins.write_json(run / f"{100 + rank}_results.db", run)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT process_id, process_index FROM captures ORDER BY 1") == [
        (100, 0),
        (101, 1),
    ]


def test_each_profiler_counts_the_processes_of_its_own_execution(tmp_path: Path, warehouse: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "host.xplane.pb").write_bytes(small_capture())
    for process_id in (100, 101):
        write_file(run / f"{process_id}_results.db", process_id=process_id)
    tracewh.ingest_run(run, warehouse=warehouse)
    found = query(warehouse, "SELECT source_kind, process_index FROM captures ORDER BY ALL")
    assert found == [("rocpd", 0), ("rocpd", 1), ("xspace", 0)]


def test_a_dispatch_that_was_run_again_is_no_mismatch_of_the_others(tmp_path: Path, warehouse: Path) -> None:
    path = write_complete(tmp_path / "t.db")
    tracewh.ingest_run(path, warehouse=warehouse)
    replayed = "SELECT COUNT(DISTINCT replay_pass) > 1 FROM launch_details"
    assert query(warehouse, replayed) == [(True,)]
    assert query(warehouse, "SELECT COUNT(*) FROM ingest_problems WHERE problem = 'pass_mismatch'") == [(0,)]
