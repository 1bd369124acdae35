"""`tracewh steps`, and the options of `tracewh ingest` that choose steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main

from .generated_rocpd import write_file

RUN = "1_results"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A rocpd run of 5 steps, 0 to 4, on one GPU."""
    path = write_file(tmp_path / "1_results.db", steps=5, gpus=1, counts=False)
    file = tmp_path / "w.duckdb"
    assert CliRunner().invoke(main, ["ingest", str(path), "-w", str(file), "--run", RUN]).exit_code == 0
    return file


def steps(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["steps", RUN, "-w", str(warehouse), *arguments])


def numbers(warehouse: Path, *arguments: str) -> list[int]:
    result = steps(warehouse, "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return [record["step"] for record in json.loads(result.stdout)["steps"]]


def test_steps_are_shown(warehouse: Path) -> None:
    result = steps(warehouse)
    assert (result.exit_code, result.stderr) == (0, "")
    header, _, *rows = [line.split() for line in result.stdout.splitlines()]
    assert " ".join(header) == "capture process device step duration_ms complete found_by class name"
    assert [row[3] for row in rows] == ["0", "1", "2", "3", "4"]
    assert {(row[5], row[6], row[7], row[8]) for row in rows} == {("yes", "launch", "regular", "train_step")}


def test_a_choice_holds_until_it_is_reset(warehouse: Path) -> None:
    assert numbers(warehouse, "--steps", "1-3") == [1, 2, 3]
    assert numbers(warehouse) == [1, 2, 3]
    # The other part of the choice stays: of graphs 0 to 4, in order, 1 to 3 count.
    assert numbers(warehouse, "--step-marker", "hipGraphLaunch") == [1, 2, 3]
    result = steps(warehouse)
    assert result.stderr == "Chosen: steps 1-3, marked by ^hipGraphLaunch$\n"
    assert numbers(warehouse, "--steps", "0") == [0]
    assert numbers(warehouse, "--reset") == [0, 1, 2, 3, 4]
    assert steps(warehouse).stderr == ""


def test_json_has_the_choice(warehouse: Path) -> None:
    found: dict[str, Any] = json.loads(steps(warehouse, "--steps", "2", "--json").stdout)
    assert (found["run"], found["choice"]) == (RUN, {"steps": "2", "step_marker": None})
    (record,) = found["steps"]
    assert (record["step"], record["complete"], record["class"]) == (2, True, "only")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--steps", "3-1"), ["Write 1-3"]),
        (("--steps", "first"), ["as 10-12"]),
        (("--steps", "7-9"), ["none of steps 7-9", "the run has 0-4"]),
        (("--step-marker", "hip"), ["a part of: hip", ".*"]),
        (("--step-marker", "eval.*"), ["no host event or marker", "tracewh sql"]),
        (("--step-marker", r"\w+"), ["no backslash"]),
        (("--step-marker", "\udcff"), ["no UTF-8 text"]),
        (("--step-marker", "(?=a)"), ["lookaround"]),
    ],
)
def test_errors_change_nothing(warehouse: Path, arguments: tuple[str, ...], words: list[str]) -> None:
    result = steps(warehouse, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert all(word in result.stderr for word in words)
    assert numbers(warehouse) == [0, 1, 2, 3, 4]


def test_reset_stands_alone(warehouse: Path) -> None:
    result = steps(warehouse, "--reset", "--steps", "1")
    assert result.exit_code == 2
    assert "give it alone" in result.stderr


def test_steps_that_are_there_in_part(warehouse: Path) -> None:
    result = steps(warehouse, "--steps", "3-9")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == "Warning: of steps 3-9 only 3-4 is there; the run has 0-4."


def test_an_unknown_run(warehouse: Path) -> None:
    result = CliRunner().invoke(main, ["steps", "nope", "-w", str(warehouse)])
    assert result.exit_code == 1
    assert "nope" in result.stderr
    assert RUN in result.stderr


def test_no_warehouse(tmp_path: Path) -> None:
    result = steps(tmp_path / "none.duckdb")
    assert result.exit_code == 1
    assert "tracewh ingest" in result.stderr


def test_ingest_chooses(tmp_path: Path) -> None:
    path = write_file(tmp_path / "1_results.db", steps=4, gpus=1, counts=False)
    file = tmp_path / "w.duckdb"
    command = ["ingest", str(path), "-w", str(file), "--run", RUN]
    result = CliRunner().invoke(main, [*command, "--steps", "1-2", "--step-marker", "train_step ([0-9]+)"])
    assert (result.exit_code, numbers(file)) == (0, [1, 2])
    # What is already there can be chosen anew, and what fits nothing changes nothing.
    assert CliRunner().invoke(main, [*command, "--steps", "2-3"]).exit_code == 0
    assert numbers(file) == [2, 3]
    result = CliRunner().invoke(main, [*command, "--steps", "8"])
    assert result.exit_code == 0
    assert "Warning: 1_results: the steps are not chosen: none of steps 8 is there" in result.stderr
    assert numbers(file) == [2, 3]


def test_a_malformed_choice_loads_nothing(tmp_path: Path) -> None:
    path = write_file(tmp_path / "1_results.db", steps=1, gpus=1, counts=False)
    command = ["ingest", str(path), "-w", str(tmp_path / "w.duckdb"), "--steps", "12-10"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert "Write 10-12" in result.stderr
    assert not (tmp_path / "w.duckdb").exists()


def test_a_removed_run_leaves_no_choice(warehouse: Path) -> None:
    steps(warehouse, "--step-marker", "hipGraphLaunch")
    assert CliRunner().invoke(main, ["rm", RUN, "-w", str(warehouse), "--yes"]).exit_code == 0
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        for table in ("step_choices", "step_marker_texts"):
            assert connection.execute(f"SELECT COUNT(*) FROM {table}").fetchall() == [(0,)]
