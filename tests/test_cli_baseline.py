"""`tracewh baseline`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tracewh
from tracewh.cli import main
from tracewh.sql.warehouse import Warehouse

from .git_repositories import Repository
from .ingest_runs import query, small_capture, write_run
from .metric_rows import add_metric, add_run
from .small_warehouse import EVIL_NAME

A, B = 40 * "a", 40 * "b"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs r1 .. r4 of commit A, r5 of commit B on another device; step times of all but r4."""
    path = tmp_path / "w.duckdb"
    with Warehouse.open(path, read_only=False) as opened:
        for run_id in range(1, 5):
            add_run(opened.connection, run_id, f"r{run_id}", A, tokens=512)
        add_run(opened.connection, 5, "r5", B, device_kind="AMD gfx950", tokens=512)
        add_run(opened.connection, 6, EVIL_NAME)
        times = [100.0, 102.0, 101.0, None, 300.0]
        add_metric(opened.connection, "step_time", times)
        add_metric(opened.connection, "busy", [80.0, 80.0, 80.0, float("nan")], timing="profiled")
        add_metric(opened.connection, "phase_time", times, scope="backward")
    monkeypatch.chdir(tmp_path)
    return path


def baseline(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["baseline", *arguments, "-w", str(warehouse)])


def said(warehouse: Path, *arguments: str) -> str:
    result = baseline(warehouse, *arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def listed(warehouse: Path, *arguments: str) -> Any:
    return json.loads(said(warehouse, "ls", *arguments, "--json"))


def rows(warehouse: Path) -> list[tuple[Any, ...]]:
    return query(warehouse, "SELECT baseline, run_id FROM baselines ORDER BY ALL")


def test_a_baseline_is_not_called_like_a_run(warehouse: Path) -> None:
    for command in ("set", "add"):
        result = baseline(warehouse, command, "r1", "r2")
        assert result.exit_code == 1
        assert "r1 is a run" in result.stderr
    assert rows(warehouse) == []


def test_each_change_is_one_line(warehouse: Path) -> None:
    assert said(warehouse, "set", "main", "r1", "r2") == "New baseline main: 2 runs.\n"
    assert (
        said(warehouse, "set", "main", "r2,r3", "r4") == "Baseline main: 2 added, 1 removed; it has 3 runs.\n"
    )
    assert rows(warehouse) == [("main", 2), ("main", 3), ("main", 4)]
    assert said(warehouse, "add", "main", "r1", "r2") == "Baseline main: 1 added; it has 4 runs.\n"
    assert said(warehouse, "add", "main", "r1") == "Baseline main: nothing changed; it has 4 runs.\n"
    assert said(warehouse, "rm", "main", "r[23]") == "Baseline main: 2 removed; it has 2 runs.\n"
    assert said(warehouse, "rm", "main", "r5") == "Baseline main: nothing changed; it has 2 runs.\n"
    assert said(warehouse, "add", "other", f"commit:{B}") == "New baseline other: 1 run.\n"
    assert rows(warehouse) == [("main", 1), ("main", 4), ("other", 5)]
    assert said(warehouse, "rm", "other", "r5") == "Removed baseline other, which had 1 run.\n"
    assert said(warehouse, "rm", "main") == "Removed baseline main, which had 2 runs.\n"
    assert rows(warehouse) == []


def test_a_run_is_in_a_baseline_once(warehouse: Path) -> None:
    said(warehouse, "set", "main", "r1", "r1", "r*", "aaaa")
    assert [run for _, run in rows(warehouse)] == [1, 2, 3, 4, 5]


def test_a_baseline_of_a_baseline_and_of_git(warehouse: Path, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "checkout")
    repository.commit("one", "two")
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute(
            "UPDATE runs SET commit_sha = $1 WHERE run_id = 4", [repository.commits["two"]]
        )
    said(warehouse, "set", "old", "r1", "r2")
    said(warehouse, "set", "new", "baseline:old", "main", "--git", str(repository.folder))
    assert [run for name, run in rows(warehouse) if name == "new"] == [1, 2, 4]


def test_listing(warehouse: Path) -> None:
    for arguments in ((), ("ls",)):
        result = baseline(warehouse, *arguments)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("No baselines yet. Make one: tracewh baseline ")
    assert listed(warehouse) == []
    said(warehouse, "set", "main", "r*")
    said(warehouse, "set", "dark", f"run:{EVIL_NAME}")
    assert said(warehouse, "ls") == baseline(warehouse).stdout
    assert said(warehouse, "ls").splitlines() == [
        "baseline  runs  commits  names",
        "--------  ----  -------  ------------------",
        "dark         1  0        evil\\x1b[31m",
        "main         5  2        r1, r2, r3, r4, r5",
    ]
    assert listed(warehouse) == [
        {"baseline": "dark", "runs": [{"run": EVIL_NAME, "commit": None}]},
        {
            "baseline": "main",
            "runs": [{"run": f"r{run}", "commit": B if run == 5 else A} for run in range(1, 6)],
        },
    ]


def test_many_runs_are_counted(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for run_id in range(10, 20):
            add_run(opened.connection, run_id, f"n{run_id}", A)
    said(warehouse, "set", "main", "n*")
    assert "main        10  aaaaaaaaaaaa  n10, n11, n12, n13 and 6 more" in said(warehouse, "ls")


def test_the_noise_of_a_baseline(warehouse: Path) -> None:
    from tracewh.sql.change_statistics import noise_ratio

    said(warehouse, "set", "main", "r1", "r2", "r3", "r4")
    found = listed(warehouse, "main")
    step_time, busy = found["noise"]
    assert step_time == {
        "metric": "step_time",
        "timing": "unprofiled",
        "device_kind": "NVIDIA H200",
        "devices": 1,
        "work": "512 tokens",
        "unit": "ms",
        "runs": 3,
        "median": 101.0,
        "min": 100.0,
        "max": 102.0,
        "noise_ratio": noise_ratio([100.0, 102.0, 101.0]),
    }
    # NaN is no value.
    assert (busy["metric"], busy["timing"], busy["runs"], busy["median"]) == ("busy", "profiled", 3, 80.0)
    text = said(warehouse, "ls", "main")
    assert "r1   aaaaaaaaaaaa\n" in text
    assert "step_time  unprofiled     3  101.0 ms  100.0 ms  102.0 ms" in text
    assert "devices and work" not in text


def test_the_noise_is_of_runs_that_may_be_compared(warehouse: Path) -> None:
    said(warehouse, "set", "main", "r1", "r2", "r3", "r5")
    found = {
        (record["metric"], record["device_kind"]): (record["runs"], record["noise_ratio"])
        for record in listed(warehouse, "main")["noise"]
    }
    assert found["step_time", "NVIDIA H200"][0] == 3
    assert found["step_time", "AMD gfx950"] == (1, None)
    result = baseline(warehouse, "ls", "main")
    assert "1 x AMD gfx950, 512 tokens" in result.stdout
    assert "?: too few runs to tell.\n" in result.stderr
    assert "The runs are of 2 commits: their noise has what changed between.\n" in result.stderr


def test_a_baseline_without_metrics(warehouse: Path) -> None:
    said(warehouse, "set", "main", "r4")
    result = baseline(warehouse, "ls", "main")
    assert (result.exit_code, result.stderr) == (0, "None of the runs has step times or device times.\n")
    assert listed(warehouse, "main")["noise"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "main", "r9"), "r9 is no run, commit, label or baseline; "),
        (("set", "a,b", "r1"), "'a,b' is no name for a baseline. Letters, digits and . _ + - / @ are,"),
        (("add", "run:x", "r1"), "'run:x' is no name for a baseline."),
        (("set", "", "r1"), "'' is no name for a baseline."),
        (("set", 101 * "x", "r1"), "is no name for a baseline."),
        (("rm", "none"), "has no baseline none; its baselines: main."),
        (("ls", "mian"), "has no baseline mian; its baselines: main."),
        (("set", "main", "r1", "--git", "nowhere"), "nowhere: no such directory."),
    ],
)
def test_mistakes(warehouse: Path, arguments: tuple[str, ...], message: str) -> None:
    said(warehouse, "set", "main", "r1")
    result = baseline(warehouse, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert rows(warehouse) == [("main", 1)]


def test_of_many_baselines_the_nearest_are_named(warehouse: Path) -> None:
    assert "make it with `tracewh baseline set main RUN...`" in baseline(warehouse, "ls", "main").stderr
    for number in range(9):
        said(warehouse, "set", f"release-{number}", "r1")
    result = baseline(warehouse, "rm", "relase-3")
    assert "did you mean release-3" in result.stderr
    assert "`tracewh baseline ls` lists the baselines." in result.stderr


def test_a_removed_run_is_gone_from_its_baselines(warehouse: Path) -> None:
    said(warehouse, "set", "main", "r1", "r2")
    said(warehouse, "set", "other", "r1")
    result = CliRunner().invoke(main, ["rm", "r1", "--yes", "-w", str(warehouse)])
    assert result.exit_code == 0
    assert result.stderr == "It is gone from baseline main, other too.\n"
    assert rows(warehouse) == [("main", 2)]
    tables = query(
        warehouse,
        "SELECT c.table_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_oid) "
        "WHERE c.schema_name = 'main' AND c.column_name = 'run_id'",
    )
    for (table,) in tables:
        assert query(warehouse, f"SELECT * FROM {table} WHERE run_id = 1") == [], table


def test_a_run_that_is_ingested_again_stays(tmp_path: Path) -> None:
    path = tmp_path / "ingested.duckdb"
    run = write_run(tmp_path / "one", {"a.xplane.pb": small_capture()})
    tracewh.ingest_run(run, warehouse=path)
    said(path, "set", "main", "one")
    assert tracewh.ingest_run(run, warehouse=path, force=True).status == "loaded"
    assert [run["run"] for run in listed(path, "main")["runs"]] == ["one"]
    # Another run of the name is no member.
    assert CliRunner().invoke(main, ["rm", "one", "--yes", "-w", str(path)]).exit_code == 0
    tracewh.ingest_run(run, warehouse=path)
    assert listed(path) == []


def test_the_warehouse_may_be_named_before_the_command(warehouse: Path) -> None:
    result = CliRunner().invoke(main, ["baseline", "-w", str(warehouse), "set", "main", "r1"])
    assert result.exit_code == 0, result.output
    assert rows(warehouse) == [("main", 1)]
