"""`tracewh ls`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.table import Style
from tracewh.sql.warehouse import Warehouse

from .small_warehouse import EVIL_NAME, make_small_warehouse


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")


def ls(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["ls", "-w", str(warehouse), *arguments])


def test_runs(warehouse: Path) -> None:
    result = ls(warehouse)
    assert (result.exit_code, result.stderr) == (0, "")
    # No device event of the small warehouse is of its step.
    first, second, _, base, evil = [line.split() for line in result.stdout.splitlines()]
    assert " ".join(first) == "run captures devices steps commit device device problems"
    assert " ".join(second) == "kind events"
    assert base == ["base", "2", "2", "0", "4f2a91c0dead", "NVIDIA", "H200", "30", "1"]
    assert evil == ["evil\\x1b[31m", "0", "0", "0", "0"]


def test_commits_are_as_long_as_it_takes_to_tell_them_apart(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute(
            "INSERT INTO runs (run_id, run_name, path, commit_sha) VALUES "
            "(8, 'a', '', '4f2a91c0deadbeefcaff'), (9, 'b', '', '4f2a91c0deadbeefcaff')"
        )
    lines = [line.split() for line in ls(path).stdout.splitlines()[3:]]
    assert [word for line in lines for word in line if word.startswith("4f2a")] == [
        "4f2a91c0deadbeefcafe",
        *["4f2a91c0deadbeefcaff"] * 2,
    ]


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    for module in ("ls", "table"):
        monkeypatch.setattr(
            f"tracewh.cli.{module}.style_for", lambda stream, *, wrap=False: Style(width, wrap=wrap)
        )


def test_a_terminal_without_room_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.connection.execute("UPDATE runs SET run_name = 'h200x2_medium_fsdp2' WHERE run_id = 1")
    narrow(monkeypatch, 80)
    # 19 + 8 + 7 + 5 + 12 + 6 + 6 + 8 characters and seven gaps: 85; without device events 77.
    result = ls(path)
    lines = result.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[3].split() == ["h200x2_medium_fsdp2", "2", "2", "0", "4f2a91c0dead", "NVIDIA", "1"]
    assert result.stderr == "No room for device events: a wider terminal or --json shows all.\n"


def test_captures_without_room_for_all(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, 72)
    result = ls(warehouse, "base")
    assert "-- row" not in result.stdout
    assert result.stderr.startswith("No room for serialized")


def test_runs_as_json(warehouse: Path) -> None:
    base, evil = json.loads(ls(warehouse, "--json").stdout)
    assert base == {
        "run": "base",
        "captures": 2,
        "devices": 2,
        "steps": 0,
        "commit": "4f2a91c0deadbeefcafe",
        "device_kind": "NVIDIA H200",
        "device_events": 30,
        "problems": 1,
    }
    assert evil["run"] == EVIL_NAME
    assert evil["commit"] is None


def test_captures_and_artifacts_of_a_run(warehouse: Path) -> None:
    lines = ls(warehouse, "base").stdout.splitlines()
    first, second = (line.split() for line in lines[3:5])
    assert first == ["1", "xspace", "0", "cuda", "NVIDIA", "H200", "1", "0", "10", "0", "0"]
    assert second == ["2", "xspace", "1", "cuda", "NVIDIA", "H200", "1", "0", "20", "0", "0"]
    assert lines[5] == ""
    assert [line.split() for line in lines[8:]] == [
        ["xspace", "5,000", "loaded", "1", "a.xplane.pb"],
        ["xspace", "6,000", "loaded", "2", "b.xplane.pb"],
        ["xspace", "7", "rejected", "c.xplane.pb"],
        ["truncated", "at", "byte", "7"],
    ]


def test_captures_and_artifacts_as_json(warehouse: Path) -> None:
    record = json.loads(ls(warehouse, "base", "--json").stdout)
    assert [capture["device_events"] for capture in record["captures"]] == [10, 20]
    assert [capture["capture"] for capture in record["captures"]] == [1, 2]
    assert record["artifacts"][2] == {
        "kind": "xspace",
        "bytes": 7,
        "status": "rejected",
        "capture": None,
        "path": "c.xplane.pb",
        "detail": "truncated at byte 7",
    }


def test_an_unknown_run_is_an_error_that_lists_the_known_ones(warehouse: Path) -> None:
    result = ls(warehouse, "basis")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no run basis" in result.stderr
    assert "base" in result.stderr


def test_a_warehouse_without_runs_says_what_to_do(tmp_path: Path) -> None:
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with Warehouse.open(path, read_only=False) as opened:
        opened.remove_run("base")
        opened.remove_run(EVIL_NAME)
    result = ls(path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"tracewh ingest -w {path} DIRECTORY" in result.stderr
    assert json.loads(ls(path, "--json").stdout) == []
