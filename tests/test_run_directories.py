"""A folder of runs is several runs; the processes of one run are one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.run_directories import run_directories

ONE_PROCESS: dict[str, Any] = {"layers": 2}
OF_TWO: dict[str, Any] = {"layers": 2, "process_count": 2}


def make(root: Path, name: str, config: dict[str, Any] | None, *, capture: bool = True) -> None:
    folder = root / name
    (folder / "profile").mkdir(parents=True)
    if capture:
        (folder / "profile" / "h.xplane.pb").write_bytes(b"")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))


def found(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in run_directories(root)]


def test_several_configs_are_several_runs(tmp_path: Path) -> None:
    make(tmp_path, "a", ONE_PROCESS)
    make(tmp_path, "nested/b", ONE_PROCESS)
    make(tmp_path, "c", ONE_PROCESS | {"process_count": 1})
    assert found(tmp_path) == ["a", "c", "nested/b"]


def test_processes_of_one_run_are_one(tmp_path: Path) -> None:
    make(tmp_path, "proc0", OF_TWO)
    make(tmp_path, "proc1", OF_TWO)
    assert found(tmp_path) == ["."]


def test_a_run_of_two_processes_among_others(tmp_path: Path) -> None:
    make(tmp_path, "a", ONE_PROCESS)
    make(tmp_path, "pair/proc0", OF_TWO)
    make(tmp_path, "pair/proc1", OF_TWO)
    assert found(tmp_path) == ["a", "pair"]


def test_processes_by_a_yaml_config(tmp_path: Path) -> None:
    for name in ("proc0", "proc1"):
        make(tmp_path, name, None)
        (tmp_path / name / "config.yaml").write_text("layers: 2\nprocess_count: 2\n")
    assert found(tmp_path) == ["."]


def test_one_config_above_several_captures(tmp_path: Path) -> None:
    make(tmp_path, "a", None)
    make(tmp_path, "b", None)
    (tmp_path / "config.json").write_text("{}")
    assert found(tmp_path) == ["."]


def test_a_capture_beside_the_runs_keeps_them_together(tmp_path: Path) -> None:
    make(tmp_path, "a", ONE_PROCESS)
    make(tmp_path, "b", ONE_PROCESS)
    make(tmp_path, "c", None)
    assert found(tmp_path) == ["."]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"process_count": "two"}'])
def test_configs_that_say_nothing_of_processes(tmp_path: Path, text: str) -> None:
    make(tmp_path, "a", None)
    make(tmp_path, "b", None)
    for name in "ab":
        (tmp_path / name / "config.json").write_text(text)
    assert found(tmp_path) == ["a", "b"]


def test_one_run_and_one_file(tmp_path: Path) -> None:
    make(tmp_path, "a", ONE_PROCESS)
    assert found(tmp_path / "a") == ["."]
    assert found(tmp_path) == ["a"]
    capture = tmp_path / "a" / "profile" / "h.xplane.pb"
    assert run_directories(capture) == [capture]
