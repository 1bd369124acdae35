"""Comparisons of real runs: eight commits of one small program, and two remat policies of a larger one."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

import tracewh
from tracewh.sql.comparison import Comparison, MetricChange, compare
from tracewh.sql.current_metrics import open_with_metrics
from tracewh.sql.history_values import Question
from tracewh.sql.metric_history import metric_history
from tracewh.sql.run_selection import select_runs
from tracewh.sql.warehouse import Warehouse

from .shared_runs import find_run

HIST = [f"hist_{number:02}" for number in range(1, 9)]
FSDP, OPT = "h200x2_medium_fsdp2", "h200x2_medium_fsdp2_opt"
WORSE_OR_BETTER = ("regressed", "improved")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def warehouse(folder: Path) -> Iterator[Warehouse]:
    paths = [find_run(name, folder) for name in (*HIST, FSDP, OPT)]
    path = folder / "w.duckdb"
    for run in paths:
        assert tracewh.ingest_run(run, warehouse=path).status == "loaded"
    with open_with_metrics(path, lambda count: None) as opened:
        yield opened


def comparison(warehouse: Warehouse, base: str, head: str) -> Comparison:
    return compare(warehouse, *(select_runs(warehouse, side, repository=None) for side in (base, head)))


def change(found: Comparison, metric: str, scope: str = "") -> MetricChange:
    (only,) = [item for item in found.metrics if item.metric == metric and item.scope == scope]
    return only


def test_less_replay_with_one_run_a_side(warehouse: Warehouse, folder: Path) -> None:
    found = comparison(warehouse, FSDP, OPT)
    assert found.verdict == "too_few_runs"
    assert found.reasons == ()
    headline = found.headline
    assert headline is not None
    assert (headline.metric, headline.timing) == ("step_time", "unprofiled")
    # By the files of the runs.
    medians = []
    for name in (FSDP, OPT):
        timing = json.loads((folder / name / "timing.json").read_text())
        medians.append(1000 * statistics.median(timing["unprofiled_step_s"]))
    assert headline.judgement.base_median == pytest.approx(medians[0], rel=1e-12)
    assert headline.judgement.head_median == pytest.approx(medians[1], rel=1e-12)
    assert headline.judgement.ratio == pytest.approx(medians[1] / medians[0], rel=1e-12)
    assert headline.judgement.high is not None
    assert headline.judgement.high < 1
    assert "4 on both sides" in headline.judgement.reason
    remat = next(part for part in found.parts if part.path == ("remat",))
    assert remat.change_ps < -0.5 * remat.base_ps
    assert remat.change_ps == min(part.change_ps for part in found.parts if part.level == 1)


def test_contributions_add_up_to_the_change_of_the_step(warehouse: Warehouse) -> None:
    found = comparison(warehouse, FSDP, OPT)
    windows = dict(
        warehouse.connection.execute(
            "SELECT r.run_name, sum(t.window_ps) / count(*) FROM v1.device_time AS t "
            "JOIN v1.steps AS s USING (capture_id, device_id, step_num) JOIN captures USING (capture_id) "
            "JOIN runs AS r USING (run_id) WHERE s.is_complete GROUP BY 1"
        ).fetchall()
    )
    expected = windows[OPT] - windows[FSDP]
    assert expected < -17e9
    for level in range(5):
        parts = [part for part in found.parts if part.level == level]
        # To a picosecond, where a microsecond is asked.
        assert sum(part.change_ps for part in parts) == pytest.approx(expected, abs=1)
        assert sum(part.share_ratio or 0 for part in parts) == pytest.approx(1, abs=1e-9)


def test_work_that_the_compiler_knows_is_judged_without_chance(warehouse: Warehouse) -> None:
    found = comparison(warehouse, FSDP, OPT)
    flops = change(found, "executed_flops").judgement
    assert (flops.verdict, flops.p) == ("improved", None)
    assert change(found, "useful_flops").judgement.ratio == 1
    memory = [item for item in found.metrics if item.metric == "memory_peak" and item.evidence == "compiler"]
    assert [item.judgement.verdict for item in memory] == ["regressed"]


def test_a_fallen_replay_names_its_kernels(warehouse: Warehouse) -> None:
    found = comparison(warehouse, FSDP, OPT)
    gone = {
        row["component"] for row in found.kernels if row["change"] == "vanished" and row["phase"] == "remat"
    }
    assert {"wi_0", "wi_1", "wo"} <= gone
    retuned = [row for row in found.kernels if row["change"] == "retuned"]
    assert all(row["base_kernel"] != row["head_kernel"] for row in retuned)
    assert any(row["component"] == "wi_1" and row["phase"] == "backward" for row in retuned)


def test_the_capacity_factor_is_found_at_its_commit(warehouse: Warehouse) -> None:
    for metric, scope in (("component_group_time", "Expert MLP"), ("component_time", "wi_0")):
        found = metric_history(warehouse, Question(metric, scope, None), ["hist_*"], repository=None)
        (series,) = found.series
        assert [point.runs for point in series.points] == [(name,) for name in HIST]
        assert [segment.first for segment in series.segments] == [0, 6]
    found = comparison(warehouse, "hist_06", "hist_07")
    causes = {row["setting"] for row in found.settings if row["effect"] == "candidate_cause"}
    assert causes == {"capacity", "capacity_factor"}
    assert found.reasons == ()
    experts = [
        part.change_ps for part in found.parts if part.level == 2 and part.component in ("wi_0", "wi_1", "wo")
    ]
    assert sum(experts) > 20e6  # of 2.4 ms, 20 us at least
    products = [
        part.change_ps
        for part in found.parts
        if part.level == 3 and part.component in ("wi_0", "wi_1", "wo") and "ebc" in (part.op or "")
    ]
    assert sum(products) > 20e6
    shapes = [
        row for row in found.hlo if row["change"] == "shape_changed" and "ebc" in (row["op_name"] or "")
    ]
    assert any("64" in row["head_value"] for row in shapes)


def test_experts_that_do_more_work_are_told_by_enough_runs(warehouse: Warehouse) -> None:
    """Six against two are too few; the ranks are all there is, and those of two are as likely by chance."""
    found = comparison(warehouse, "hist_0[1-6]", "hist_07,hist_08")
    experts = change(found, "component_group_time", "Expert MLP").judgement
    assert experts.verdict == "too_few_runs"
    assert "8 against 2" in experts.reason
    assert experts.low is not None
    assert experts.low > 1.05


def test_noise_of_the_host_is_no_regression(warehouse: Warehouse) -> None:
    """All ways to split six runs of one program in half, and one of four and two."""
    names = HIST[:6]
    for half in combinations(names, 3):
        rest = [name for name in names if name not in half]
        found = comparison(warehouse, ",".join(half), ",".join(rest))
        assert found.verdict not in WORSE_OR_BETTER
        assert not [item for item in found.metrics if item.judgement.verdict in WORSE_OR_BETTER]
    for metric in ("step_time", "device_step_time", "busy"):
        (series,) = metric_history(
            warehouse, Question(metric, None, None), [",".join(names)], repository=None
        ).series
        assert len(series.segments) == 1


def test_other_work_is_not_comparable(warehouse: Warehouse) -> None:
    found = comparison(warehouse, "hist_01", FSDP)
    assert found.verdict == "not_comparable"
    assert any("layers is 4 against 8" in reason for reason in found.reasons)
