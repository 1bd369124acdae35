"""Metrics that are kept: computed when asked for, for one run or many, and told when they are outdated."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import tracewh
from tracewh.cli import main
from tracewh.ingest.errors import WarehouseError
from tracewh.sql.current_metrics import open_with_metrics
from tracewh.sql.kept_metrics import keep_metrics, outdated_metrics
from tracewh.sql.warehouse import Warehouse, transaction

FIXTURES = Path(__file__).parents[1] / "fixtures"
NAMES = ("cpu_train", "h200_moe", "h200_moe_direct")
TABLES = ("run_metrics", "metric_samples", "step_parts", "run_modules", "kept_metrics")


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ingested") / "w.duckdb"
    for name in NAMES:
        tracewh.ingest_run(FIXTURES / name, warehouse=path)
    return path


@pytest.fixture(scope="module")
def kept(ingested: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "w.duckdb"
    shutil.copy(ingested, path)
    open_with_metrics(path, lambda runs: None).close()
    return path


@pytest.fixture
def warehouse(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(kept, tmp_path / "w.duckdb"))


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(f"FROM main.{table} ORDER BY ALL").fetchall()


def rounded(path: Path, table: str) -> list[tuple[object, ...]]:
    """Rows without the digits that the order of a sum decides."""
    return [
        tuple(f"{value:.12g}" if isinstance(value, float) else value for value in row)
        for row in rows(path, table)
    ]


def outdated(path: Path) -> list[str]:
    with Warehouse.open(path) as opened:
        ids = outdated_metrics(opened.connection)
        found = opened.connection.execute(
            "SELECT run_name FROM runs WHERE list_contains($1, run_id) ORDER BY 1", [ids]
        ).fetchall()
        told = opened.connection.execute(
            "SELECT DISTINCT run_name FROM v1.metrics WHERE NOT is_current ORDER BY 1"
        ).fetchall()
    assert set(told) <= set(found)
    return [name for (name,) in found]


def invoke(path: Path, command: str, *arguments: str) -> str:
    result = CliRunner().invoke(main, [command, *arguments, "-w", str(path)])
    assert result.exit_code == 0, result.output
    return result.output


def test_metrics_are_computed_when_they_are_asked_for(ingested: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(ingested, tmp_path / "w.duckdb"))
    assert rows(path, "run_metrics") == []
    query = "SELECT count(DISTINCT run_name) AS runs FROM v1.metrics"
    assert "Metrics of 3 runs are not computed, or outdated: `tracewh metrics`" in invoke(path, "sql", query)
    asked: list[int] = []
    with open_with_metrics(path, asked.append) as opened:
        assert opened.connection.execute(query).fetchone() == (3,)
        assert outdated_metrics(opened.connection) == []
    assert asked == [3]
    open_with_metrics(path, asked.append).close()
    assert asked == [3]
    assert "not computed" not in invoke(path, "sql", query)


def test_runs_computed_together_are_as_alone(kept: Path, ingested: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(ingested, tmp_path / "w.duckdb"))
    with Warehouse.open(path, read_only=False) as opened:
        for run_id in outdated_metrics(opened.connection):
            with transaction(opened.connection):
                keep_metrics(opened.connection, [run_id])
    for table in TABLES:
        assert rounded(path, table) == rounded(kept, table)


def add_rule(path: Path) -> None:
    invoke(path, "rules", "add", "--component", "wi_0", "--group", "Renamed", "--reason", "test")


def add_rule_of_run(path: Path) -> None:
    options = ("--component", "wi_0", "--group", "Renamed", "--reason", "test", "--run", "h200_moe")
    invoke(path, "rules", "add", *options)


def choose_steps(path: Path) -> None:
    invoke(path, "steps", "h200_moe", "--steps", "1-9999")


def add_peak(path: Path) -> None:
    invoke(path, "peaks", "add", "%H200%", "--dtype", "bf16", "--tflops", "500", "--source", "test")


def ingest_again(path: Path) -> None:
    tracewh.ingest_run(FIXTURES / "h200_moe", warehouse=path, force=True)


def change_view(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE kept_metrics SET view_version = '0:of another version'")


def install_view(path: Path) -> None:
    """Another version had other step programs: the next that writes installs the view of this one."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE view_versions SET fingerprint = 'other' WHERE view_name = 'v1._run_modules'"
        )
    Warehouse.open(path, read_only=False).close()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (add_rule, list(NAMES)),
        (add_rule_of_run, ["h200_moe"]),
        (choose_steps, ["h200_moe"]),
        (add_peak, list(NAMES)),
        (ingest_again, ["h200_moe"]),
        (change_view, list(NAMES)),
        (install_view, list(NAMES)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_metrics_are_made_of_changes(
    warehouse: Path, change: Callable[[Path], None], expected: list[str]
) -> None:
    assert outdated(warehouse) == []
    change(warehouse)
    assert outdated(warehouse) == expected
    open_with_metrics(warehouse, lambda runs: None).close()
    assert outdated(warehouse) == []


def test_a_rule_is_in_the_metrics(warehouse: Path) -> None:
    add_rule(warehouse)
    found = json.loads(invoke(warehouse, "metrics", "h200_moe", "component_group_time", "--json"))
    assert "Renamed" in {row["scope"] for row in found}


def test_a_removed_run_leaves_nothing(warehouse: Path) -> None:
    invoke(warehouse, "rm", "h200_moe", "--yes")
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        for table in TABLES:
            found = connection.execute(f"SELECT count(DISTINCT run_id) FROM {table}").fetchone()
            assert found == (2,)


def test_a_file_that_may_not_be_written_is_refused(
    ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(ingested, tmp_path / "w.duckdb"))
    # As of a file system that is mounted to be read: root may write any other file.
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(WarehouseError, match="may not be written"):
        open_with_metrics(path, lambda runs: None)


def test_views_of_another_version_are_brought_up_to_date(warehouse: Path) -> None:
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE OR REPLACE VIEW v1.metric_history AS SELECT 1 AS x")
        connection.execute(
            "UPDATE view_versions SET fingerprint = 'other' WHERE view_name = 'v1.metric_history'"
        )
    with open_with_metrics(warehouse, lambda runs: None) as opened:
        found = opened.connection.execute("SELECT count(DISTINCT run_name) FROM v1.metric_history").fetchone()
    assert found == (3,)


def test_a_run_that_loses_a_capture_has_other_metrics(ingested: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name in ("h200_moe", "h200_moe_direct"):
        (source,) = (FIXTURES / name).rglob("*.xplane.pb.gz")
        (run / name).mkdir(parents=True)
        shutil.copy(source, run / name / f"{name}.xplane.pb.gz")
    path = tmp_path / "w.duckdb"
    tracewh.ingest_run(run, warehouse=path)
    open_with_metrics(path, lambda runs: None).close()
    tracewh.ingest_run(run / "h200_moe", warehouse=path, run_name="other", force=True)
    with Warehouse.open(path) as opened:
        assert len(outdated_metrics(opened.connection)) == 2
    with open_with_metrics(path, lambda runs: None) as opened:
        found = opened.connection.execute(
            "SELECT samples FROM v1.metrics WHERE run_name = 'run' AND metric = 'busy'"
        ).fetchall()
        steps = opened.connection.execute(
            "SELECT device_step_count FROM v1.run_time WHERE run_name = 'run'"
        ).fetchall()
    assert found == steps == [(3,)]


def test_metrics_are_listed(warehouse: Path) -> None:
    listed = {row["metric"]: row for row in json.loads(invoke(warehouse, "metrics", "--json"))}
    assert listed["device_step_time"]["better"] == "lower"
    assert listed["kernel_time"]["scopes"] > 20
    of_run = json.loads(invoke(warehouse, "metrics", "h200_moe", "step_time", "--json"))
    timing = json.loads((FIXTURES / "h200_moe" / "timing.json").read_text())
    assert [row["timing"] for row in of_run] == ["unprofiled"]
    assert of_run[0]["value"] == pytest.approx(1000 * timing["median_s"], rel=1e-9)
    # Without a metric, scopes are left out.
    assert "gemm_fusion_dot" not in invoke(warehouse, "metrics", "h200_moe")
    assert "gemm_fusion_dot" in invoke(warehouse, "metrics", "h200_moe", "kernel_time")
    for arguments, message in (
        (("nothing",), "has no run nothing"),
        (("h200_moe", "steptime"), "did you mean step_time"),
    ):
        result = CliRunner().invoke(main, ["metrics", *arguments, "-w", str(warehouse)])
        assert result.exit_code == 1
        assert message in result.output
