"""Rooflines of real captures: rates and peaks by arithmetic on public figures; nothing above its roof."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tracewh

from .shared_runs import ingested
from .xspace_files import SHARED

# M, N, K of the products of jax08_gemm by program, and their rates in TFLOP/s as 2MNK over kernel time, as
# other code measured them (shared/data).
GEMMS = {
    21: (1024, 1024, 1024, 205.4),
    34: (4096, 4096, 4096, 917.7),
    49: (8192, 8192, 4096, 899.8),
    64: (2048, 2048, 8192, 585.2),
    79: (16384, 4096, 1024, 745.7),
}
MI300X_BF16_TFLOPS = 1307.4


def test_gemms_of_an_mi300x_reach_a_share_of_its_bf16_peak(tmp_path: Path) -> None:
    with ingested("TraceLens-mi300-jax08_gemm", tmp_path) as run:
        rows = run.connection.execute(
            "SELECT program_id, dtype, unit, flops, achieved_flops_per_s, efficiency_ratio, bound_by, "
            "peak_flops_per_s FROM v1.roofline WHERE scope = 'op' AND scope_name = 'custom-call.1'"
        ).fetchall()
    assert {row[0] for row in rows} == set(GEMMS)
    for program, dtype, unit, flops, achieved, efficiency, bound_by, peak in rows:
        m, n, k, rate = GEMMS[program]
        assert (dtype, unit, bound_by) == ("bf16", "matrix", "compute")
        assert flops % (2 * m * n * k) == 0
        assert peak == pytest.approx(MI300X_BF16_TFLOPS * 1e12)
        assert achieved / 1e12 == pytest.approx(rate, abs=0.06)
        assert efficiency == pytest.approx(rate / MI300X_BF16_TFLOPS, abs=1e-4)


def test_a_reduction_on_an_mi355x_is_under_the_hbm_roof(tmp_path: Path) -> None:
    """Against the bandwidth that the trace states, half of the truth, it is at 172 %."""
    with ingested("TraceLens-te_fused_attn", tmp_path) as run:
        row = run.connection.execute(
            "SELECT memory_level, bytes, union_ps, peak_bytes_per_s, efficiency_ratio FROM v1.roofline "
            "WHERE scope = 'op' AND scope_name = 'loop_reduce_fusion.1'"
        ).fetchone()
    assert row is not None
    level, moved, union_ps, peak, efficiency = row
    assert (level, peak) == ("HBM", 8e12)
    assert moved == 5 * 251_658_240
    assert efficiency == pytest.approx(moved / (union_ps * 1e-12) / 8e12)
    assert 0.8 < efficiency < 0.9


@pytest.mark.parametrize(
    "name",
    [
        "TraceLens-mi300-jax08_gemm",
        "TraceLens-mi300-jax08_conv",
        "TraceLens-te_fused_attn",
        "h200x2_medium_fsdp2",
        "h200x2_medium_fsdp2_nocb",
        "hist_03",
    ],
)
def test_nothing_is_above_its_roof(name: str, tmp_path: Path) -> None:
    with ingested(name, tmp_path) as run:
        count, least, most, above = run.connection.execute(
            "SELECT COUNT(efficiency_ratio), MIN(efficiency_ratio), MAX(efficiency_ratio), "
            "COUNT(*) FILTER (problem LIKE 'more FLOPs%') FROM v1.roofline"
        ).fetchall()[0]
        sums = run.connection.execute(
            "SELECT device_id, scope, SUM(flops) FROM v1.roofline WHERE flops > 0 GROUP BY ALL"
        ).fetchall()
    assert count > 10
    assert least >= 0
    assert most <= 1
    assert above == 0
    # Each scope holds the FLOPs of all ops once.
    for device in {row[0] for row in sums}:
        by_scope = {scope: flops for device_id, scope, flops in sums if device_id == device}
        assert set(by_scope) == {"op", "component", "component_group", "phase", "program"}
        assert list(by_scope.values()) == pytest.approx([by_scope["op"]] * 5)


def test_useful_and_executed_rates_of_an_h200(tmp_path: Path) -> None:
    """Products of bf16 run at 989.4 TFLOP/s at most, and collectives at 450 GB/s, whatever the trace says."""
    with ingested("h200x2_medium_fsdp2", tmp_path) as run:
        peaks = run.connection.execute(
            "SELECT DISTINCT unit, dtype, memory_level, peak_bytes_per_s FROM v1.roofline WHERE scope = 'op'"
        ).fetchall()
        products = run.connection.execute(
            "SELECT MIN(peak_flops_per_s), MAX(peak_flops_per_s) FROM v1.roofline "
            "WHERE scope = 'op' AND evidence = 'analytical' AND dtype = 'bf16'"
        ).fetchone()
    assert {row[3] for row in peaks if row[2] == "network"} == {450e9}
    assert {row[3] for row in peaks if row[2] == "HBM"} == {4.8e12}
    assert ("matrix", "bf16") in {row[:2] for row in peaks}
    assert ("vector", "fp32") in {row[:2] for row in peaks}
    assert products == (pytest.approx(989.4e12), pytest.approx(989.4e12))


def test_counted_copies_move_what_they_copy(tmp_path: Path) -> None:
    """vcopy of rocprof-compute: 4096 blocks of 256 threads read a double each and write one."""
    copied = 2 * 4096 * 256 * 8
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    for kind in ("pmc_perf", "sysinfo"):
        source = SHARED / f"data/rocprof/rocm-systems-rocprof-compute-vcopy-MI300X_A1_rocpd-{kind}.csv"
        if not source.exists():
            pytest.skip(f"{source.name} is not at hand: shared/data lies outside the repository")
        shutil.copy(source, run_folder / f"{kind}.csv")
    tracewh.ingest_run(run_folder, warehouse=tmp_path / "w.duckdb")
    with tracewh.open(tmp_path / "w.duckdb") as opened:
        rows = opened.connection.execute(
            "SELECT memory_level, occurrences, bytes, peak_bytes_per_s, timed_ps FROM v1.kernel_roofline "
            "ORDER BY memory_level"
        ).fetchall()
    by_level = {row[0]: row[1:] for row in rows}
    # Memory reads are counted in full lines, and some are not the kernel's own.
    assert copied <= by_level["HBM"][1] <= 1.01 * copied
    assert by_level["L2"][1] == copied
    assert by_level["LDS"][1] == 0
    # Each level has a ceiling of its own, and counted dispatches have no time.
    assert [by_level[level][2] for level in ("HBM", "L2", "LDS")] == [5.3e12, 34.4e12, 81.7e12]
    assert {row[3] for row in by_level.values()} == {None}


def test_executed_work_is_useful_work_with_capacity_and_replay(tmp_path: Path) -> None:
    with ingested("h200x2_medium_fsdp2", tmp_path) as run:
        rows = run.connection.execute(
            "SELECT component, useful_flops, executed_flops, COALESCE(replayed_flops, 0), dtype, updates, "
            "union_ps, communication_ps FROM v1.worksheet"
        ).fetchall()
        config = run.config
    by_component = {row[0]: row[1:] for row in rows}
    # By hand: two of eight experts, three matrices, forward and twice that backward, on two devices.
    tokens = config["global_batch"] * config["seq"]
    experts = 3 * 2 * 3 * tokens * config["layers"] * 2 * config["d_model"] * config["ff"] / config["devices"]
    useful, executed, replayed, dtype, updates, *_ = by_component["Expert MLP"]
    assert useful == pytest.approx(experts)
    assert (dtype, updates) == ("bf16", run.profiled_steps)
    # Each expert has slots for 1.25 times its share of the tokens, and the backward pass replays the products
    # of the forward pass; activations are the rest.
    assert executed - replayed == pytest.approx(config["capacity_factor"] * useful, rel=2e-3)
    assert replayed == pytest.approx(config["capacity_factor"] * useful / 3, rel=2e-3)
    useful, executed, *_ = by_component["LM head"]
    assert executed == pytest.approx(useful, rel=1e-3)
    assert all(0 <= row[7] <= row[6] for row in rows)
