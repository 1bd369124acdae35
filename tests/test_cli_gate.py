"""`tracewh gate`: exit codes, and one screen of what got worse."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.sql.gate import Limit, LimitError, parse_limit
from tracewh.sql.warehouse import Warehouse

from .git_repositories import Repository
from .metric_rows import add_metric, add_run

BASE = [100.0, 100.4, 99.7, 100.1, 99.9, 100.3]
SCREEN = 24


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    path = tmp_path / "w.duckdb"
    with Warehouse.open(path, read_only=False) as opened:
        connection = opened.connection
        for run_id in range(1, 13):
            name = f"{'a' if run_id <= 6 else 'b'}{(run_id - 1) % 6 + 1}"
            add_run(connection, run_id, name, tokens=512)
        worse = [value * 1.05 for value in BASE]
        add_metric(connection, "step_time", [*BASE, *worse])
        add_metric(connection, "mfu", [*worse, *BASE], unit="ratio", polarity="higher", evidence="analytical")
        add_metric(connection, "memory_peak", 12 * [2.0**30], unit="bytes", timing=None)
        add_metric(connection, "device_events", 12 * [5.0], polarity="none", unit="count", timing=None)
        for number in range(30):
            add_metric(connection, "kernel_time", [*BASE, *worse], scope=f"k{number}", timing="profiled")
        add_metric(connection, "executed_flops", [7.0], evidence="compiler", unit="count", timing=None)
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["gate", "-w", "w.duckdb", *arguments])


@pytest.mark.parametrize(
    "limits",
    [
        ("step_time=6%",),
        ("step_time=10ms",),
        ("mfu=5%", "memory_peak=0%"),
        ("kernel_time=6%",),
        ("memory_peak=1MiB",),
    ],
)
def test_silence_where_limits_hold(warehouse: Path, limits: tuple[str, ...]) -> None:
    result = run("a*", "b*", *(f"--max={limit}" for limit in limits))
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("step_time=2%", "step_time (unprofiled)"),
        ("step_time=4.9ms", "step_time (unprofiled)"),
        # MFU falls by 1 - 1 / 1.05, 4.76 %.
        ("mfu=4%", "mfu (unprofiled)"),
        ("kernel_time:k7=2%", "kernel_time (k7, profiled)"),
    ],
)
def test_what_got_worse_fails(warehouse: Path, limit: str, told: str) -> None:
    result = run("a*", "b*", "--max", limit)
    assert result.exit_code == 1
    assert told in result.output
    assert "Limits: 1 broken" in result.output
    assert "tracewh diff -w w.duckdb 'a*' 'b*'" in result.output


def test_a_scope_that_is_named_is_judged_alone(warehouse: Path) -> None:
    """Four against four are enough for one kernel, and not for one of thirty of which one alone differs."""
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("DELETE FROM run_metrics WHERE metric = 'kernel_time'")
        for number in range(30):
            worse = [value * 1.05 for value in BASE] if number == 7 else BASE
            add_metric(
                opened.connection, "kernel_time", [*BASE, *worse], scope=f"k{number}", timing="profiled"
            )
    sides = ("a[1-4]", "b[1-4]")
    assert run(*sides, "--max", "kernel_time:k7=2%").exit_code == 1
    among = run(*sides, "--max", "kernel_time=2%")
    assert among.exit_code == 3
    assert "would be enough" in " ".join(among.output.split())
    # What is within the limit passes: nothing is open there.
    assert run(*sides, "--max", "kernel_time=6%").exit_code == 0


def test_the_compiler_decides_where_few_runs_measured(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        planned = [*(6 * [2.0**30]), *(6 * [2.0**30 + 2**20])]
        add_metric(opened.connection, "memory_peak", planned, unit="bytes", timing=None, evidence="compiler")
        opened.connection.execute(
            "UPDATE run_metrics SET value = value - run_id "
            "WHERE metric = 'memory_peak' AND evidence = 'measured'"
        )
    assert run("a1", "b1", "--max", "memory_peak=2MiB").exit_code == 0
    assert run("a1", "b1", "--max", "memory_peak=512KiB").exit_code == 1


def test_all_limits_are_shown_where_that_is_asked(warehouse: Path) -> None:
    result = run("a*", "b*", "--max", "step_time=6%", "--max", "memory_peak=0%", "--verbose")
    assert result.exit_code == 0
    assert "Limits: 2 hold" in result.output


def test_a_question_that_is_none_is_no_failure(warehouse: Path) -> None:
    assert run("a*", "nothing", "--max", "step_time=2%").exit_code == 2
    assert run("a*", "a1", "--max", "step_time=2%").exit_code == 2
    missing = CliRunner().invoke(main, ["gate", "-w", "no.duckdb", "a", "b", "--max", "step_time=2%"])
    assert missing.exit_code == 2
    Path("text.duckdb").write_text("no database")
    damaged = CliRunner().invoke(main, ["gate", "-w", "text.duckdb", "a", "b", "--max", "step_time=2%"])
    assert damaged.exit_code == 2


def test_what_got_better_passes(warehouse: Path) -> None:
    assert run("b*", "a*", "--max", "step_time=0%", "--max", "mfu=0%").exit_code == 0


def test_failure_fits_a_screen(warehouse: Path) -> None:
    result = run("a*", "b*", "--max", "step_time=1%", "--max", "kernel_time=1%")
    assert result.exit_code == 1
    assert "31 broken" in result.output
    assert len(result.output.splitlines()) <= SCREEN


def test_too_few_runs_do_not_pass_by_themselves(warehouse: Path) -> None:
    result = run("a1", "b1", "--max", "step_time=2%")
    assert result.exit_code == 3
    assert "it takes 4 on both sides" in " ".join(result.output.split())
    assert run("a1", "b1", "--max", "step_time=2%", "--allow-too-few").exit_code == 0


def test_a_metric_of_one_side_cannot_be_told(warehouse: Path) -> None:
    result = run("a1", "b1", "--max", "executed_flops=2%", "--allow-too-few")
    assert result.exit_code == 3
    assert "known of one side alone" in result.output


def test_a_new_scope_is_not_overlooked(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        connection = opened.connection
        for scope, first_run in (("gone", 1), ("new", 7)):
            add_metric(
                connection, "phase_time", 6 * [9.0], scope=scope, first_run=first_run, timing="profiled"
            )
        add_metric(connection, "phase_time", 12 * [5.0], scope="same", timing="profiled")
    result = run("a*", "b*", "--max", "phase_time=5%", "--allow-too-few")
    assert result.exit_code == 3
    assert "phase_time (new, profiled)" in result.output
    # What is gone takes no time any more.
    assert "gone" not in result.output
    assert run("a*", "b*", "--max", "phase_time:gone=5%").exit_code == 0
    assert run("a*", "b*", "--max", "phase_time:new=5%").exit_code == 3


def test_evidence_that_is_no_longer_there_is_not_overlooked(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        connection = opened.connection
        add_metric(connection, "memory_peak", 12 * [2.0**30], unit="bytes", timing=None, evidence="compiler")
        connection.execute(
            "DELETE FROM run_metrics WHERE metric = 'memory_peak' AND evidence = 'measured' AND run_id > 6"
        )
    assert run("a*", "b*", "--max", "memory_peak=2%").exit_code == 3


def test_scopes_of_which_some_have_no_better_direction(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for scope, polarity in (("alias", "none"), ("temporary", "lower")):
            values = [*(6 * [2.0**30]), *(6 * [2.0**31])]
            add_metric(
                opened.connection, "planned_memory", values, scope=scope, unit="bytes", timing=None,
                evidence="compiler", polarity=polarity,
            )  # fmt: skip
    result = run("a1", "b1", "--max", "planned_memory=2%")
    assert result.exit_code == 1
    assert "temporary" in result.output
    assert "alias" not in result.output


def test_the_next_command_asks_the_same(warehouse: Path, tmp_path: Path) -> None:
    Repository(tmp_path / "checkout of model").commit("one")
    result = run("a*", "b*", "--max", "step_time=2%", "--force", "--git", "checkout of model")
    assert result.exit_code == 1
    assert "tracewh diff -w w.duckdb 'a*' 'b*' --git 'checkout of model' --force" in result.output


def test_other_work_cannot_be_told(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("UPDATE run_params SET value = '1024' WHERE run_id > 6")
    result = run("a*", "b*", "--max", "step_time=50%")
    assert result.exit_code == 3
    assert "Not comparable: tokens_per_update is 512 against 1024" in result.output
    assert run("a*", "b*", "--max", "step_time=50%", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("step_time", "is no limit"),
        ("step_time=2", "say the unit, as step_time=2ms"),
        ("memory_peak=30", "say the unit, as memory_peak=30MiB"),
        ("step_time=x%", "is no limit"),
        ("step_time=-2%", "is no limit"),
        ("step_time=2parsec", "parsec is no unit"),
        ("step_time=2MiB", "step_time is in ms"),
        ("steptime=2%", "did you mean step_time"),
        ("kernel_time:k99=2%", "no scope k99"),
        ("device_events=2%", "neither more nor less is better"),
    ],
)
def test_limits_that_are_none(warehouse: Path, limit: str, message: str) -> None:
    result = run("a*", "b*", "--max", limit)
    # 1 would be taken for a metric that got worse.
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_units_of_limits() -> None:
    assert parse_limit("step_time=1.5s") == Limit("step_time=1.5s", "step_time", None, 1500, "ms")
    assert parse_limit("phase_time:a=b:c=2%") == Limit(
        "phase_time:a=b:c=2%", "phase_time", "a=b:c", 0.02, None
    )
    assert parse_limit("memory_peak=2GiB").size == 2**31
    with pytest.raises(LimitError):
        parse_limit("memory_peak=")
