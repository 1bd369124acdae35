"""`tracewh history`."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.sparkline import can_show_blocks, sparkline
from tracewh.sql.history_values import HistoryError, Question
from tracewh.sql.metric_history import metric_history
from tracewh.sql.warehouse import Warehouse

from .git_repositories import Repository
from .metric_rows import add_metric, add_run
from .small_warehouse import EVIL_NAME

# About 100 and then about 120, each with a few thousandths of noise.
BEFORE = [100.0, 100.3, 99.8, 100.1, 99.9, 100.2, 100.0, 99.7]
AFTER = [120.1, 119.8, 120.0, 120.3, 119.9, 120.2]


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path / "w.duckdb"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Commits c0 .. c16 on main."""
    made = Repository(tmp_path / "checkout")
    made.commit(*(f"c{number}" for number in range(17)))
    return made


@pytest.fixture
def tested(warehouse: Path, repository: Repository) -> Path:
    """Runs of c0 .. c7 and, three commits later, c11 .. c16, ingested and captured newest first."""
    with Warehouse.open(warehouse, read_only=False) as opened:
        commits = [number for number in range(17) if number not in (8, 9, 10)]
        for run_id, number in enumerate(reversed(commits), start=1):
            sha = repository.commits[f"c{number}"]
            add_run(opened.connection, run_id, f"run_{number}", sha, unix_ns=10**18 + run_id)
        times = [*reversed(AFTER), *reversed(BEFORE)]
        add_metric(opened.connection, "step_time", times)
        add_metric(
            opened.connection, "tokens_per_s", [1e6 / value for value in times],
            unit="tokens/s", polarity="higher", evidence="derived",
        )  # fmt: skip
        add_metric(
            opened.connection, "hlo_fusions", [*(6 * [120]), *(8 * [100])],
            unit="count", polarity="none", evidence="compiler", timing=None,
        )  # fmt: skip
    return warehouse


def write_runs(path: Path, values: list[float | None], **options: Any) -> None:
    """Runs r1, r2 ... of commits 0001.. with these step times, captured in their order."""
    with Warehouse.open(path, read_only=False) as opened:
        for run_id in range(1, len(values) + 1):
            add_run(
                opened.connection, run_id, f"r{run_id}", f"{run_id:04d}{36 * 'a'}", unix_ns=10**18 + run_id
            )
        add_metric(opened.connection, "step_time", values, **options)


def history(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["history", *arguments, "-w", str(warehouse)])


def found(warehouse: Path, *arguments: str) -> Any:
    result = history(warehouse, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def failed(warehouse: Path, *arguments: str) -> str:
    result = history(warehouse, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    return result.stderr


def test_one_new_value_is_no_level_yet(warehouse: Path) -> None:
    write_runs(warehouse, [100.0, 100.3, 99.8, 100.1, 99.9, 100.2, 100.0, 99.7, 100.1, 110.0])
    (series,) = found(warehouse, "step_time")["series"]
    assert series["changes"] == []
    # Squared distances of the nine from their median, 100: 0.29 in all.
    assert series["newest_z"] == pytest.approx(10 / math.sqrt(0.29 / 8))
    said = history(warehouse, "step_time").stdout
    assert "The newest value is 52.5 standard deviations above the level before it" in said
    write_runs(warehouse.with_name("usual.duckdb"), [100.0, 100.3, 99.8, 100.1, 99.9, 100.2])
    assert "newest value" not in history(warehouse.with_name("usual.duckdb"), "step_time").stdout


def test_the_change_is_placed_between_commits(tested: Path, repository: Repository) -> None:
    said = found(tested, "step_time", "--git", str(repository.folder))
    commits = repository.commits
    assert (said["order"], said["git"], said["runs"]) == ("git", str(repository.folder), "all runs")
    assert said["notes"] == []
    (series,) = said["series"]
    assert [point["value"] for point in series["points"]] == BEFORE + AFTER
    assert [point["runs"] for point in series["points"]][6:9] == [["run_6"], ["run_7"], ["run_11"]]
    (change,) = series["changes"]
    assert change["last_before"] == {"commit": commits["c7"], "runs": ["run_7"]}
    assert change["first_after"] == {"commit": commits["c11"], "runs": ["run_11"]}
    assert change["untested_commits"] == [commits[name] for name in ("c8", "c9", "c10")]
    assert (change["at"], change["direction"], change["is_descendant"]) == (8, "regressed", True)
    # Medians of the values above, by hand.
    assert (change["old"], change["new"]) == (100.0, pytest.approx(120.05))
    assert change["ratio"] == pytest.approx(1.2005)
    first, second = series["levels"]
    assert [(level["first"], level["last"]) for level in (first, second)] == [(0, 7), (8, 13)]
    assert 0 < first["spread"] < 1


def test_the_text_of_a_change(tested: Path, repository: Repository) -> None:
    result = history(tested, "step_time", "--git", str(repository.folder))
    assert result.exit_code == 0
    before, after = (repository.commits[name][:12] for name in ("c7", "c11"))
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "step_time, unprofiled, measured: lower is better",
        "1 x NVIDIA H200",
        f"14 points of 14 runs, in the order of git at {repository.folder}",
    ]
    assert lines[4] == "  ▁▁▁▁▁▁▁▁██████"
    assert lines[5] == "  99.70 ms to 120.3 ms"
    assert f"{after}  run_11  120.1 ms  regressed +20.0%" in lines
    assert lines[-1] == f"regressed +20.0% in {before}..{after}, with 3 untested commits between"
    assert all(len(line) <= 80 for line in lines[3:])


def test_polarity_says_what_a_change_is(tested: Path, repository: Repository) -> None:
    git = ("--git", str(repository.folder))
    (series,) = found(tested, "tokens_per_s", *git)["series"]
    assert [change["direction"] for change in series["changes"]] == ["regressed"]
    assert series["changes"][0]["ratio"] == pytest.approx(100 / 120.05, rel=1e-3)
    (series,) = found(tested, "hlo_fusions", *git)["series"]
    assert [(change["direction"], change["old"], change["new"]) for change in series["changes"]] == [
        ("changed", 100, 120)
    ]
    assert "changed +20.0%" in history(tested, "hlo_fusions", *git).stdout


def test_what_improved(warehouse: Path) -> None:
    write_runs(warehouse, [*AFTER, *BEFORE])
    (series,) = found(warehouse, "step_time")["series"]
    assert [change["direction"] for change in series["changes"]] == ["improved"]
    assert (
        "improved -16.7% after 0006aaaaaaaa and by 0007aaaaaaaa\n" in history(warehouse, "step_time").stdout
    )


def test_without_git_the_order_is_that_of_capture(tested: Path) -> None:
    said = found(tested, "step_time")
    assert (said["order"], said["git"]) == ("time", None)
    assert said["notes"] == ["In order of capture: no git checkout knows the commits (--git)."]
    (series,) = said["series"]
    assert [point["runs"][0] for point in series["points"]][:2] == ["run_16", "run_15"]
    (change,) = series["changes"]
    assert (change["direction"], change["untested_commits"], change["is_descendant"]) == (
        "improved",
        None,
        None,
    )


def test_a_checkout_that_knows_none_of_the_commits(tested: Path, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("x")
    said = found(tested, "step_time", "--git", str(other.folder))
    assert said["order"] == "time"
    assert said["notes"] == [f"In order of capture: git at {other.folder} knows none of the commits (--git)."]


def test_runs_without_a_time_or_a_commit(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for run_id, time in enumerate([None, 30, 10, None, 20], start=1):
            add_run(opened.connection, run_id, f"r{run_id}", unix_ns=time)
        add_metric(opened.connection, "step_time", [1.0, 2.0, 3.0, 4.0, 5.0])
    said = found(warehouse, "step_time")
    (series,) = said["series"]
    assert [(point["commit"], point["runs"]) for point in series["points"]] == [
        (None, ["r3"]), (None, ["r5"]), (None, ["r2"]), (None, ["r1"]), (None, ["r4"]),
    ]  # fmt: skip
    assert said["notes"][1] == "2 runs without a time of capture: last, in order of ingest."


def test_commits_that_git_does_not_know_are_placed_by_time(tested: Path, repository: Repository) -> None:
    with Warehouse.open(tested, read_only=False) as opened:
        # Run 14 is of c0, the first, and was captured last.
        add_run(opened.connection, 20, "lost", 40 * "d", unix_ns=10**18 + 20)
        add_run(opened.connection, 21, "early", None, unix_ns=10**18)
        add_metric(opened.connection, "step_time", [120.0, 100.0], first_run=20)
    said = found(tested, "step_time", "--git", str(repository.folder))
    assert [point["runs"][0] for point in said["series"][0]["points"]] == [
        "early", *(f"run_{number}" for number in (*range(8), *range(11, 17))), "lost",
    ]  # fmt: skip
    assert said["notes"] == ["Placed by time of capture, since git does not know their commits: early, lost."]


def test_runs_of_one_commit_are_one_point(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for run_id, commit in enumerate(["a", "b", "a", "a", "b"], start=1):
            add_run(opened.connection, run_id, f"r{run_id}", 40 * commit, unix_ns=run_id)
        add_metric(opened.connection, "step_time", [10.0, 20.0, 14.0, 11.0, 22.0])
    first, second = found(warehouse, "step_time")["series"][0]["points"]
    assert first == {
        "commit": 40 * "a",
        "runs": ["r1", "r3", "r4"],
        "captured_unix_ns": 1,
        "value": 11.0,
        "low": 10.0,
        "high": 14.0,
    }
    assert (second["runs"], second["value"], second["low"], second["high"]) == (
        ["r2", "r5"],
        21.0,
        20.0,
        22.0,
    )
    text = history(warehouse, "step_time").stdout
    assert "aaaaaaaaaaaa  3 runs  11.00 ms  10.00 ms  14.00 ms" in text
    assert "2 points of 5 runs" in text


def test_an_abbreviated_commit_is_the_same_point(tested: Path, repository: Repository) -> None:
    with Warehouse.open(tested, read_only=False) as opened:
        add_run(opened.connection, 20, "again", repository.commits["c3"][:9], unix_ns=1)
        add_metric(opened.connection, "step_time", [100.5], first_run=20)
    (series,) = found(tested, "step_time", "--git", str(repository.folder))["series"]
    assert series["points"][3]["runs"] == ["run_3", "again"]
    assert series["points"][3]["commit"] == repository.commits["c3"]


def test_other_devices_and_other_work_are_series_of_their_own(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for run_id, (kind, tokens) in enumerate(
            [("NVIDIA H200", 512), ("AMD gfx950", 512), ("NVIDIA H200", 512), ("NVIDIA H200", 1024)], start=1
        ):
            add_run(opened.connection, run_id, f"r{run_id}", device_kind=kind, unix_ns=run_id, tokens=tokens)
        add_metric(opened.connection, "step_time", [1.0, 2.0, 3.0, 4.0])
    series = found(warehouse, "step_time")["series"]
    # The one with the newest point comes first.
    assert [
        (item["device_kind"], item["work"], [point["runs"] for point in item["points"]]) for item in series
    ] == [
        ("NVIDIA H200", "1024 tokens", [["r4"]]),
        ("NVIDIA H200", "512 tokens", [["r1"], ["r3"]]),
        ("AMD gfx950", "512 tokens", [["r2"]]),
    ]
    text = history(warehouse, "step_time").stdout
    assert (
        "\n\nstep_time, unprofiled, measured: lower is better\n1 x AMD gfx950, 512 tokens\n1 point of 1 run,"
        in text
    )


def test_evidence_is_never_mixed(warehouse: Path) -> None:
    write_runs(warehouse, [1.0, 2.0], timing=None)
    with Warehouse.open(warehouse, read_only=False) as opened:
        add_metric(opened.connection, "step_time", [5.0, 6.0], evidence="compiler", timing=None)
    series = found(warehouse, "step_time")["series"]
    assert [(item["evidence"], [point["value"] for point in item["points"]]) for item in series] == [
        ("compiler", [5.0, 6.0]), ("measured", [1.0, 2.0]),
    ]  # fmt: skip


def test_timings_are_never_mixed(warehouse: Path) -> None:
    write_runs(warehouse, [10.0, None, 11.0])
    with Warehouse.open(warehouse, read_only=False) as opened:
        add_metric(opened.connection, "step_time", [20.0, 21.0, 22.0], timing="profiled")
    said = found(warehouse, "step_time")
    assert said["timing"] == "profiled"
    assert said["notes"][0] == "Only profiled values; --timing shows the others: 2 runs unprofiled."
    said = found(warehouse, "step_time", "--timing", "unprofiled")
    assert [point["value"] for point in said["series"][0]["points"]] == [10.0, 11.0]
    assert len(said["notes"]) == 1
    message = failed(warehouse, "step_time", "--timing", "unknown")
    assert message == "Error: step_time has no unknown value; it is profiled, unprofiled.\n"


def test_of_as_many_timings_the_unprofiled_counts(warehouse: Path) -> None:
    write_runs(warehouse, [20.0, 21.0], timing="profiled")
    with Warehouse.open(warehouse, read_only=False) as opened:
        add_metric(opened.connection, "step_time", [10.0, 11.0])
        add_metric(opened.connection, "flops", [1.0], timing=None, unit="count")
    assert found(warehouse, "step_time")["timing"] == "unprofiled"
    assert "flops has no profiled value; it is no time" in failed(warehouse, "flops", "--timing", "profiled")


def test_scopes(warehouse: Path) -> None:
    write_runs(warehouse, [1.0])
    with Warehouse.open(warehouse, read_only=False) as opened:
        for scope, value in (("Attention", 2.0), ("Expert MLP", 5.0), ("", 9.0)):
            add_metric(opened.connection, "component_time", [value], scope=scope)
        add_metric(opened.connection, "phase_time", [1.0], scope="backward")
        for scope, value in (("forward", 2.0), ("backward", 3.0)):
            add_metric(opened.connection, "kernel_time", [value], scope=scope)
    value = found(warehouse, "component_time", "--scope", "Expert MLP")["series"][0]["points"][0]["value"]
    assert value == 5.0
    # The whole is meant where there is one, and the only scope where there is one.
    assert found(warehouse, "component_time")["series"][0]["points"][0]["value"] == 9.0
    assert found(warehouse, "phase_time")["scope"] == "backward"
    assert failed(warehouse, "kernel_time") == (
        "Error: kernel_time is of several scopes. Give one with --scope: backward, forward.\n"
    )
    message = failed(warehouse, "component_time", "--scope", "Expert")
    assert "component_time has no scope Expert; did you mean Expert MLP? its scopes: " in message
    assert history(warehouse, "phase_time").stdout.startswith("phase_time of backward, unprofiled, measured")


def test_many_scopes_are_counted(warehouse: Path) -> None:
    write_runs(warehouse, [1.0])
    with Warehouse.open(warehouse, read_only=False) as opened:
        for number in range(20):
            add_metric(opened.connection, "kernel_time", [float(number)], scope=f"k{number}")
    message = failed(warehouse, "kernel_time")
    assert "--scope: k19, k18, " in message
    assert message.endswith(" and 8 more.\n")


def test_metrics_that_are_not_there(warehouse: Path) -> None:
    write_runs(warehouse, [1.0, None])
    assert failed(warehouse, "stp_time") == (
        f"Error: {warehouse} has no metric stp_time; did you mean step_time? it has step_time.\n"
    )
    assert failed(warehouse, "step_time", "r2") == f"Error: {warehouse}: step_time has no value in run r2.\n"
    assert "r7 is no run" in failed(warehouse, "step_time", "r7")


def test_a_warehouse_without_metrics(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        add_run(opened.connection, 1, "r1")
    assert "has no metrics." in failed(warehouse, "step_time")


def test_selected_runs(tested: Path, repository: Repository) -> None:
    git = ("--git", str(repository.folder))
    said = found(tested, "step_time", "main~3..main", *git)
    assert [point["runs"] for point in said["series"][0]["points"]] == [["run_14"], ["run_15"], ["run_16"]]
    assert said["runs"] == "3 runs of git main~3..main (3 of 3 commits)"
    assert len(found(tested, "step_time", "run_1", "run_2,run_3", *git)["series"][0]["points"]) == 3


def test_another_line_of_history(warehouse: Path, repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side", repository.commits["c1"])
    repository.commit("s1", "s2", "s3", "s4", "s5", "s6")
    with Warehouse.open(warehouse, read_only=False) as opened:
        names = [*(f"s{number}" for number in range(1, 7)), *(f"c{number}" for number in range(2, 10))]
        for run_id, name in enumerate(names, start=1):
            add_run(opened.connection, run_id, f"run_{name}", repository.commits[name], unix_ns=run_id)
        add_metric(opened.connection, "step_time", [*AFTER, *BEFORE])
    said = found(warehouse, "step_time", "--git", str(repository.folder))
    (change,) = said["series"][0]["changes"]
    assert change["is_descendant"] is False
    (note,) = said["notes"]
    assert (
        "of other lines of history than the newest: a range of git, as main~20..main, leaves them out."
        in note
    )
    assert note[0] in "68"
    assert (
        "which is on another line of history\n"
        in history(warehouse, "step_time", "--git", str(repository.folder)).stdout
    )
    said = found(warehouse, "step_time", "side..main", "--git", str(repository.folder))
    assert (said["series"][0]["changes"], said["notes"]) == ([], [])


def test_few_points_are_shown_with_a_word(warehouse: Path) -> None:
    write_runs(warehouse, [*BEFORE[:5], *AFTER[:3]])
    result = history(warehouse, "step_time")
    assert "With 10 points or more, smaller changes show; here are 8.\n" in result.stderr
    assert "regressed +20.0% after 0005aaaaaaaa and by 0006aaaaaaaa\n" in result.stdout
    write_runs(warehouse.with_name("one.duckdb"), [7.0])
    result = history(warehouse.with_name("one.duckdb"), "step_time")
    assert "1 point of 1 run, in the order of capture\n" in result.stdout
    assert "  7.000 ms\n" in result.stdout
    assert result.stdout.endswith("No change of the level is seen.\n")


def test_noise_alone_is_no_change(warehouse: Path) -> None:
    write_runs(warehouse, [*BEFORE, 100.1, 99.9, 100.2, 99.8])
    assert found(warehouse, "step_time")["series"][0]["changes"] == []


def test_values_that_are_no_numbers(warehouse: Path) -> None:
    write_runs(warehouse, [1.0, math.nan, 2.0, math.inf, None])
    said = found(warehouse, "step_time")
    assert [point["runs"] for point in said["series"][0]["points"]] == [["r1"], ["r3"]]
    assert said["notes"][0] == "Left out: 2 runs whose value is no number."
    assert "step_time has no value that is a number in 1 run." in failed(warehouse, "step_time", "r2")


def test_a_level_of_zero_has_no_ratio(warehouse: Path) -> None:
    write_runs(warehouse, [*(6 * [0.0]), *(6 * [5.0])])
    (change,) = found(warehouse, "step_time")["series"][0]["changes"]
    assert (change["old"], change["new"], change["ratio"]) == (0.0, 5.0, None)
    assert "regressed from 0 after" in history(warehouse, "step_time").stdout


def test_values_of_an_older_definition_are_left_out(warehouse: Path) -> None:
    write_runs(warehouse, [1.0, 2.0, 3.0])
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("UPDATE kept_metrics SET is_current = FALSE WHERE run_id = 2")
        said = metric_history(opened, Question("step_time"), [], repository=None)
        assert [point.value for point in said.series[0].points] == [1.0, 3.0]
        assert said.notes[0].startswith(
            "Left out: 1 run whose values are of before a change of rules, steps or"
        )
        opened.connection.execute("UPDATE kept_metrics SET is_current = FALSE")
        with pytest.raises(HistoryError, match="has no value that counts: 3 runs whose values are of before"):
            metric_history(opened, Question("step_time"), [], repository=None)


def test_metrics_that_are_not_current_are_computed_anew(warehouse: Path) -> None:
    write_runs(warehouse, [1.0, 2.0, 3.0])
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("UPDATE kept_metrics SET is_current = FALSE WHERE run_id = 2")
    # Run 2 has no steps that its time could be of.
    assert [point["runs"] for point in found(warehouse, "step_time")["series"][0]["points"]] == [
        ["r1"],
        ["r3"],
    ]
    with Warehouse.open(warehouse) as opened:
        assert opened.connection.execute("SELECT is_current FROM kept_metrics").fetchall() == 3 * [(True,)]


def test_the_newest_points_are_listed(warehouse: Path) -> None:
    write_runs(warehouse, [*BEFORE, *AFTER])
    result = history(warehouse, "step_time", "--limit", "2")
    assert "r13  119.9 ms" in result.stdout
    assert "r12 " not in result.stdout
    assert "12 older ones are not listed: --limit or --json shows them.\n" in result.stderr
    assert "regressed +20.0% after 0008aaaaaaaa" in result.stdout
    assert len(found(warehouse, "step_time", "--limit", "2")["series"][0]["points"]) == 14
    assert "r14" not in history(warehouse, "step_time", "--limit", "0").stdout


def test_commits_that_look_alike_are_told_apart(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for run_id in range(1, 13):
            commit = f"{'c0ffee':<038}".replace(" ", "0") + f"{run_id:02d}"
            add_run(opened.connection, run_id, f"r{run_id}", commit, unix_ns=run_id)
        add_metric(opened.connection, "step_time", [*BEFORE[:6], *AFTER])
    text = history(warehouse, "step_time").stdout
    assert f"c0ffee{'0' * 32}07  r7   120.1 ms  regressed +20.0%" in text
    assert text.endswith("regressed +20.0% after r6 and by r7\n")


def test_names_from_files_cannot_drive_the_terminal(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        add_run(opened.connection, 1, EVIL_NAME, device_kind="GPU\x1b[2J")
        add_metric(opened.connection, "step_time", [1.0], scope="scope\x1b[2J")
    result = history(warehouse, "step_time")
    assert "\x1b" not in result.output
    assert "step_time of scope\\x1b[2J" in result.stdout
    assert "1 x GPU\\x1b[2J\n" in result.stdout


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "▁▂▃▄▅▆▇█"),
        ([8.0, 1.0], "█▁"),
        ([5.0], "▅"),
        ([0.0, 0.0], "▁▁"),
        # A thousandth of difference is no hill.
        ([100.0, 100.1, 100.0], "▄▅▄"),
        ([-4.0, 4.0], "▁█"),
    ],
)
def test_sparklines(values: list[float], line: str) -> None:
    assert sparkline(values, 80) == line


def test_a_sparkline_keeps_to_its_width() -> None:
    assert sparkline([*(500 * [1.0]), *(500 * [2.0])], 10) == "▁▁▁▁▁█████"
    assert sparkline([1.0, 2.0], 10, is_ascii=True) == "_#"
    assert len(sparkline([float(number) for number in range(77)], 76)) == 76


def test_a_stream_says_whether_it_has_blocks() -> None:
    assert can_show_blocks(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert not can_show_blocks(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert not can_show_blocks(io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
