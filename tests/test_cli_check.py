"""`tracewh check`: which runs and checks it takes, what it prints, and how it exits."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.sql.warehouse import Warehouse
from tracewh.views.audit_catalog import load_audits

from .small_warehouse import EVIL_NAME, make_small_warehouse

FIXTURES = Path(__file__).parents[1] / "fixtures"
SHOWN_EVIL_NAME = "evil\\x1b[31m"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run base with a rejected file, evil with nothing, and ok with two step times of one capture."""
    path = make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute(
            "INSERT INTO runs (run_id, run_name, path) VALUES (3, 'timed-once', ''), (4, 'timed', '')"
        )
        opened.connection.execute(
            "INSERT INTO timing_samples (run_id, artifact_id, sample_index, metric, value, is_profiled) "
            "VALUES (3, 9, 0, 'step_time_s', 0.00012346, FALSE), (4, 9, 0, 'step_time_s', 2, FALSE), "
            "(4, 9, 1, 'step_time_s', 3, FALSE)"
        )
        opened.connection.execute(
            "INSERT INTO run_params (run_id, artifact_id, param, value) "
            "VALUES (3, 9, 'useful_flops_per_update.total', '1'), "
            "(4, 9, 'useful_flops_per_update.total', '1')"
        )
    os.chmod(path, 0o444)
    return path


def check(warehouse: Path, *arguments: str) -> Result:
    return invoke("check", "-w", str(warehouse), *arguments)


def test_faults_are_explained(warehouse: Path) -> None:
    result = check(warehouse, "timed-once", "timed", "--only", "median_of_one")
    audit = next(audit for audit in load_audits() if audit.name == "median_of_one")
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["WARNING  median_of_one", audit.meaning, ""]
    assert lines[4].split() == ["name"]
    assert lines[6].split() == ["timed-once", "step_time_s", "1", "0.0001235"]
    assert lines[8] == f"Next: {audit.next_step}"
    assert lines[-1] == "1 check of 2 runs: 1 warning."


def test_a_run_of_its_own_is_not_named_in_each_row(warehouse: Path) -> None:
    result = check(warehouse, "timed-once", "--only", "median_of_one")
    assert result.stdout.splitlines()[5].split() == ["step_time_s", "1", "0.0001235"]


def test_nothing_found(warehouse: Path) -> None:
    result = check(warehouse, "timed")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{len(load_audits())} checks of 1 run: nothing found.\n"


def test_all_shows_what_passed(warehouse: Path) -> None:
    lines = check(warehouse, "timed", "--all", "--only", "few_steps").stdout.splitlines()
    assert lines[0] == "Nothing found by (also where a run lacks what the check looks at):"
    assert lines[3].split()[0] == "few_steps"
    assert lines[-1] == "1 check of 1 run: nothing found."


def test_every_run_is_checked_unless_some_are_named(warehouse: Path) -> None:
    report = json.loads(check(warehouse, "--json").stdout)
    assert report["runs"] == ["base", EVIL_NAME, "timed-once", "timed"]
    found = {check["check"]: check for check in report["checks"]}
    assert found["lost_events"]["rows"] == [
        {
            "run_name": "base",
            "capture_id": None,
            "problem": "unreadable_file",
            "occurrences": 1,
            "place": "c.xplane.pb",
            "detail": "truncated at byte 7",
        }
    ]
    assert found["median_of_one"]["row_count"] == 1
    assert all(check["rows"] for check in report["checks"])


def test_captures_of_other_runs_are_left_out(warehouse: Path) -> None:
    report = json.loads(check(warehouse, "timed-once", "--json").stdout)
    assert [check["check"] for check in report["checks"]] == ["median_of_one"]


def test_json_has_the_checks_that_passed_on_request(warehouse: Path) -> None:
    report = json.loads(check(warehouse, "timed", "--json", "--all").stdout)
    assert [check["check"] for check in report["checks"]] == [audit.name for audit in load_audits()]
    assert {check["row_count"] for check in report["checks"]} == {0}


def test_rows_beyond_those_shown_are_counted(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute(
            "INSERT INTO ingest_problems (run_id, artifact_id, problem, place, occurrences, detail) "
            "SELECT 1, 3, 'dangling_reference', 'table ' || i, 1, 'no row' FROM range(8) AS t(i)"
        )
    result = check(path, "base", "--only", "lost_events", "--max-rows", "2")
    command = f"tracewh check -w {path} base --only lost_events --max-rows 9"
    assert f"... 7 more rows: {command}" in result.stdout.splitlines()
    assert "more" not in check(path, "base", "--only", "lost_events", "--max-rows", "9").stdout
    shown = check(path, "base", "--only", "lost_events", "--max-rows", "0").stdout.splitlines()
    assert shown[3] == f"... 9 rows: {command}"
    report = json.loads(check(path, "--only", "lost_events", "--json").stdout)
    assert len(report["checks"][0]["rows"]) == 9
    report = json.loads(check(path, "--only", "lost_events", "--json", "--max-rows", "1").stdout)
    assert (len(report["checks"][0]["rows"]), report["checks"][0]["row_count"]) == (1, 9)


def test_captures_between_those_of_a_run_are_left_out(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute(
            "INSERT INTO captures (capture_id, run_id, artifact_id, source_kind) "
            "SELECT i, CASE i WHEN 4 THEN 2 ELSE 1 END, i, 'rocpd' FROM range(3, 6) AS t(i)"
        )
        opened.connection.execute(
            "INSERT INTO device_events (capture_id, device_event_id, device_id, track_id, name_id, start_ps, "
            "end_ps, kind, role) SELECT i, 0, 1, 0, 1, 0, 1, 'kernel', 'serialized' FROM range(3, 6) AS t(i)"
        )

    def captures(*runs: str) -> list[int]:
        report = json.loads(check(path, *runs, "--only", "counters_beside_timing", "--json").stdout)
        return [row["capture_id"] for found in report["checks"] for row in found["rows"]]

    assert captures("base") == [3, 5]
    assert captures(EVIL_NAME) == [4]
    assert captures() == [3, 5, 4]


def test_notes_are_faults_only_when_asked(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    assert check(path, "--only", "peak_unknown").exit_code == 0
    assert check(path, "--only", "peak_unknown", "--strict").exit_code == 1


def test_skip(warehouse: Path) -> None:
    result = check(warehouse, "timed-once", "--skip", "median_of_one")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bas"], f"There is no run bas; its runs: base, {SHOWN_EVIL_NAME}, timed-once, timed."),
        (["base", "qqq"], f"There is no run qqq; its runs: base, {SHOWN_EVIL_NAME}, timed-once, timed."),
        (
            ["--only", "few_step"],
            "There is no check few_step; did you mean few_steps or no_steps? "
            "`tracewh check --list` lists them.",
        ),
        (["--skip", "qqq"], "There is no check qqq; `tracewh check --list` lists them."),
        (["--sql", "qqq"], "There is no check qqq; `tracewh check --list` lists them."),
    ],
)
def test_unknown_names(warehouse: Path, arguments: list[str], message: str) -> None:
    result = check(warehouse, *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {message}\n")


def test_wrong_use(warehouse: Path) -> None:
    assert check(warehouse, "--max-rows", "-1").exit_code == 2


def test_names_cannot_drive_a_terminal(warehouse: Path) -> None:
    result = check(warehouse, "evil\x1b[32m")
    assert "\x1b" not in result.stderr
    assert "its runs: base, evil\\x1b[31m, timed-once, timed." in result.stderr


def test_list(warehouse: Path) -> None:
    lines = check(warehouse, "--list").stdout.splitlines()
    assert [line.split()[1] for line in lines[2:]] == [audit.name for audit in load_audits()]
    listed = json.loads(check(warehouse, "--list", "--json", "--only", "few_steps").stdout)
    assert [(item["check"], item["severity"]) for item in listed] == [("few_steps", "warning")]


def test_the_query_of_a_check_runs_in_any_client(warehouse: Path) -> None:
    query = check(warehouse, "--sql", "median_of_one").stdout
    result = invoke("sql", "-w", str(warehouse), query, "--format", "csv")
    assert result.stdout.splitlines()[1] == "timed-once,,step_time_s,1,0.00012346"


def test_a_warehouse_without_runs(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.remove_run("base")
        opened.remove_run(EVIL_NAME)
    result = check(path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"tracewh ingest -w {path} DIRECTORY" in result.stderr


def test_views_of_another_version(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute("DELETE FROM main.view_versions WHERE view_name = 'v1.steps'")
    result = check(path)
    assert result.exit_code == 1
    assert "views of another tracewh, without v1.steps" in result.stderr
    assert "tracewh ingest" in result.stderr


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """Rows of each check on the runs in fixtures/, by run."""
    path = tmp_path_factory.mktemp("fixtures") / "runs.duckdb"
    names = ("h200_moe_direct", "cpu_train", "rocpd_train", "rocpd_counters")
    for name in names:
        assert invoke("ingest", "-w", str(path), str(FIXTURES / name)).exit_code == 0
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for record in json.loads(check(path, "--json").stdout)["checks"]:
        for row in record["rows"]:
            counts = found[row["run_name"]]
            counts[record["check"]] = counts.get(record["check"], 0) + 1
    return found


# What depends on the peaks that are known, and on how much of the model the rules name.
MOVING = {
    *("peak_unknown", "trace_peaks_differ", "efficiency_over_one", "bandwidth_over_peak"),
    "unattributed_time",
}


def test_a_clean_run(fixtures: dict[str, dict[str, int]]) -> None:
    # Three whole steps on two CPU devices, five unprofiled step times, HLO of every program. Its config
    # names no model.
    assert fixtures["cpu_train"] == {"model_unknown": 1}


def test_a_run_that_the_profiler_slows_down(fixtures: dict[str, dict[str, int]]) -> None:
    # Its timing.json: the median of three profiled steps is over a tenth above that of eight unprofiled ones.
    timing = json.loads((FIXTURES / "h200_moe_direct" / "timing.json").read_text())
    profiled, unprofiled = sorted(timing["profiled_step_s"]), sorted(timing["unprofiled_step_s"])
    assert profiled[1] > 1.1 * unprofiled[4]
    found = fixtures["h200_moe_direct"]
    assert {name for name in found if name not in MOVING} == {"profile_perturbs"}


def test_overlapping_streams_and_no_times(fixtures: dict[str, dict[str, int]]) -> None:
    # The steps of both devices have a collective beside compute, and no file of the run tells step times.
    found = fixtures["rocpd_train"]
    assert {name: count for name, count in found.items() if name not in MOVING} == {
        "no_unprofiled_time": 1,
        "sum_is_not_union": 2,
    }


def test_counter_passes(fixtures: dict[str, dict[str, int]]) -> None:
    # Three passes, each a process of its own and a capture, and no trace.
    found = fixtures["rocpd_counters"]
    assert {name: count for name, count in found.items() if name not in MOVING} == {
        "counters_used_for_timing": 1,
        "counters_beside_timing": 3,
    }
