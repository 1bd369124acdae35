"""Comparing two sides of runs whose metrics are written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tracewh.sql.comparison import Comparison, ComparisonError, MetricChange, compare
from tracewh.sql.run_selection import select_runs
from tracewh.sql.warehouse import Warehouse

from .metric_rows import add_metric, add_run

# Twelve runs: a1 .. a6 and b1 .. b6.
NAMES = [f"{side}{number}" for side in "ab" for number in range(1, 7)]
BASE = [100.0, 100.4, 99.7, 100.1, 99.9, 100.3]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "w.duckdb", read_only=False) as warehouse:
        for run_id, name in enumerate(NAMES, start=1):
            add_run(warehouse.connection, run_id, name, tokens=512)
        yield warehouse


def compared(warehouse: Warehouse, base: str = "a*", head: str = "b*", **options: float) -> Comparison:
    sides = [select_runs(warehouse, side, repository=None) for side in (base, head)]
    return compare(warehouse, *sides, **options)


def only(found: Comparison, metric: str, scope: str = "", timing: str = "unprofiled") -> MetricChange:
    (change,) = [
        item for item in found.metrics if (item.metric, item.scope, item.timing) == (metric, scope, timing)
    ]
    return change


def test_a_real_change_is_told(opened: Warehouse) -> None:
    add_metric(opened.connection, "step_time", [*BASE, *(1.05 * value for value in BASE)])
    found = compared(opened)
    assert found.verdict == "regressed"
    assert found.headline == only(found, "step_time")
    judgement = found.headline.judgement
    assert judgement.ratio == pytest.approx(1.05)
    # All of one side above all of the other: 2 of C(12, 6) = 924 ways.
    assert judgement.p == pytest.approx(2 / 924)
    assert compared(opened, "b*", "a*").verdict == "improved"
    assert compared(opened, min_effect=0.1).verdict == "unchanged"
    assert compared(opened, level=0.001).verdict == "too_few_runs"
    assert compared(opened, "a[1-3]", "b[1-3]").verdict == "too_few_runs"


def test_more_tokens_a_second_are_better(opened: Warehouse) -> None:
    add_metric(
        opened.connection, "tokens_per_s", [*BASE, *(1.05 * value for value in BASE)],
        unit="tokens/s", polarity="higher",
    )  # fmt: skip
    found = compared(opened)
    assert only(found, "tokens_per_s").judgement.verdict == "improved"
    assert found.headline is None
    assert found.verdict == "no_metric"


def test_profiled_and_unprofiled_times_never_meet(opened: Warehouse) -> None:
    add_metric(opened.connection, "step_time", BASE)
    add_metric(opened.connection, "step_time", [120.0] * 6, first_run=7, timing="profiled")
    add_metric(opened.connection, "device_step_time", [90.0] * 12, timing="profiled")
    found = compared(opened)
    assert only(found, "step_time").judgement.verdict == "only_base"
    assert only(found, "step_time", timing="profiled").judgement.verdict == "only_head"
    # What both sides have is what the verdict is of.
    assert found.headline == only(found, "device_step_time", timing="profiled")
    assert found.verdict == "unchanged"


def test_evidence_never_meets(opened: Warehouse) -> None:
    memory = {"unit": "bytes", "timing": None}
    add_metric(opened.connection, "memory_peak", [8.0] * 6, evidence="compiler", **memory)  # type: ignore[arg-type]
    add_metric(opened.connection, "memory_peak", [9.0] * 6, first_run=7, **memory)  # type: ignore[arg-type]
    verdicts = {(item.evidence, item.judgement.verdict) for item in compared(opened).metrics}
    assert verdicts == {("compiler", "only_base"), ("measured", "only_head")}


def test_what_the_compiler_says_needs_no_replicates(opened: Warehouse) -> None:
    add_metric(opened.connection, "executed_flops", [100.0], evidence="compiler", timing=None)
    add_metric(opened.connection, "executed_flops", [103.0], first_run=7, evidence="compiler", timing=None)
    # A rate has a measured time in it, whoever counted the FLOPs.
    add_metric(opened.connection, "mfu", [100.0], evidence="analytical", polarity="higher")
    add_metric(opened.connection, "mfu", [90.0], first_run=7, evidence="analytical", polarity="higher")
    found = compared(opened, "a1", "b1")
    assert only(found, "executed_flops", timing="").judgement.verdict == "regressed"
    assert only(found, "mfu").judgement.verdict == "too_few_runs"


def test_of_many_kernels_some_differ_by_chance(opened: Warehouse) -> None:
    """One kernel alone is told from chance; among forty that do not differ its p is no longer enough."""
    up = [*(100.0 + place for place in range(6)), *(104.4 + place for place in range(6))]
    add_metric(opened.connection, "phase_time", up, scope="one", timing="profiled")
    add_metric(opened.connection, "kernel_time", up, scope="one", timing="profiled")
    same = [*range(100, 106), *range(100, 106)]
    for number in range(39):
        add_metric(opened.connection, "kernel_time", same, scope=f"k{number}", timing="profiled")  # type: ignore[arg-type]
    found = compared(opened, min_effect=0)
    alone, among = (only(found, metric, "one", "profiled") for metric in ("phase_time", "kernel_time"))
    assert alone.judgement.p is not None
    assert alone.judgement.p < 0.05
    assert among.judgement.p == pytest.approx(min(1, 40 * alone.judgement.p))


def test_runs_of_one_side_tell_the_noise(opened: Warehouse) -> None:
    """Sides that do not meet, but are no further apart than two runs of one side are."""
    wide = [80.0, 84.0, 88.0, 92.0, 96.0, 100.0]
    add_metric(opened.connection, "step_time", [*wide, *(value + 20.5 for value in wide)])
    noise = only(compared(opened), "step_time").judgement.noise_ratio
    # The pairs of 80 .. 100, one by one.
    ratios = sorted(b / a - 1 for i, a in enumerate(wide) for b in wide[i + 1 :])
    assert noise == pytest.approx(ratios[len(ratios) // 2])
    assert compared(opened).verdict == "regressed"
    add_metric(opened.connection, "busy", [*wide, *(value + 7 for value in wide)], timing="profiled")
    assert only(compared(opened), "busy", timing="profiled").judgement.verdict == "unchanged"


def test_noise_of_the_head_is_no_excuse(opened: Warehouse) -> None:
    erratic = [105.0, 105.1, 105.2, 205.0, 205.1, 205.2]
    add_metric(opened.connection, "step_time", [*BASE, *erratic])
    found = only(compared(opened), "step_time").judgement
    assert found.verdict == "regressed"
    assert found.noise_ratio is not None
    assert found.noise_ratio < 0.01
    # Of too few runs of base nothing is known: then it is that of head.
    found = only(compared(opened, "a1,a2", "b*"), "step_time").judgement
    assert found.noise_ratio is not None
    assert found.noise_ratio > 0.5


def test_a_run_on_both_sides_says_nothing(opened: Warehouse) -> None:
    with pytest.raises(ComparisonError, match="a6 is on both sides"):
        compared(opened, "a*", "a6,b1")


def test_other_definitions_are_not_comparable(opened: Warehouse) -> None:
    add_metric(opened.connection, "step_time", [*BASE, *BASE])
    opened.connection.execute("UPDATE kept_metrics SET view_version = '0:old' WHERE run_id = 8")
    assert compared(opened).verdict == "not_comparable"
    assert compared(opened, head="b[3-6]").verdict == "unchanged"


def test_other_work_is_not_comparable(opened: Warehouse) -> None:
    add_metric(opened.connection, "step_time", [*BASE, *BASE])
    opened.connection.execute("UPDATE run_params SET value = '1024' WHERE run_id >= 7")
    found = compared(opened)
    assert found.verdict == "not_comparable"
    assert any("tokens_per_update is 512 against 1024" in reason for reason in found.reasons)


def test_nothing_stays_behind(opened: Warehouse) -> None:
    add_metric(opened.connection, "step_time", [*BASE, *BASE])
    compared(opened)
    found = opened.connection.execute(
        "SELECT count(*) FROM (SELECT table_name FROM duckdb_tables() WHERE temporary "
        "UNION ALL SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal)"
    ).fetchone()
    assert found == (0,)
