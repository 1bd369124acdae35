"""One run read from several places: its paths, the ranks of its processes, its commit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import tracewh

from .ingest_runs import query, small_capture, write_run

PAIR = {"process_count": 2}
RANKS = """SELECT a.path, c.process_index FROM captures AS c JOIN artifacts AS a USING (artifact_id)
    ORDER BY ALL"""
# Nine levels of nine references each: a few lines that stand for 387 million values.
BOMB = "k0: &k0 [1, 1]\n" + "".join(
    f"k{level + 1}: &k{level + 1} [{', '.join([f'*k{level}'] * 9)}]\n" for level in range(9)
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    for rank in (0, 1):
        write_run(
            tmp_path / "pair" / f"proc{rank}",
            {"h.xplane.pb": small_capture(str(rank))},
            {"config.json": PAIR, "timing.json": {"unprofiled_step_s": [1.0 + rank]}},
        )
    return tmp_path / "pair"


def state(warehouse: Path) -> dict[str, list[tuple[object, ...]]]:
    return {
        "paths": query(warehouse, "SELECT path, status FROM artifacts ORDER BY ALL"),
        "ranks": query(
            warehouse,
            RANKS,
        ),
        "times": query(warehouse, "SELECT value FROM timing_samples ORDER BY ALL"),
    }


def test_a_process_first_and_then_its_run(pair: Path, warehouse: Path) -> None:
    tracewh.ingest_run(pair, warehouse=warehouse)
    whole = state(warehouse)
    warehouse.unlink()
    tracewh.ingest_run(pair / "proc1", warehouse=warehouse)
    tracewh.ingest_run(pair, warehouse=warehouse)
    assert state(warehouse) == whole
    assert [rank for _, rank in whole["ranks"]] == [0, 1]
    assert whole["times"] == [(1.0,), (2.0,)]
    assert query(warehouse, "SELECT path FROM runs") == [(str(pair),)]


def test_a_run_and_then_one_of_its_processes(pair: Path, warehouse: Path) -> None:
    tracewh.ingest_run(pair, warehouse=warehouse)
    whole = state(warehouse)
    assert tracewh.ingest_run(pair / "proc1", warehouse=warehouse).status == "already there"
    assert state(warehouse) == whole


def test_one_file_again_by_force(pair: Path, warehouse: Path) -> None:
    tracewh.ingest_run(pair, warehouse=warehouse)
    whole = state(warehouse)
    capture = pair / "proc1" / "profile" / "h.xplane.pb"
    assert tracewh.ingest_run(capture, warehouse=warehouse, force=True).status == "loaded"
    assert state(warehouse) == whole


def test_directories_of_two_hosts_by_one_name(tmp_path: Path, warehouse: Path) -> None:
    for host in ("h0", "h1"):
        run = write_run(
            tmp_path / "all" / host,
            {"vm.xplane.pb": small_capture(host)},
            {"config.json": {"host": host}},
        )
        tracewh.ingest_run(run, warehouse=warehouse, run_name="pair")
    assert state(warehouse)["ranks"] == [("h0/profile/vm.xplane.pb", 0), ("h1/profile/vm.xplane.pb", 1)]
    assert query(warehouse, "SELECT value FROM run_params ORDER BY ALL") == [("h0",), ("h1",)]
    assert query(warehouse, "SELECT run_name, path FROM runs") == [("pair", str(tmp_path / "all"))]


def test_a_copy_of_a_run_is_the_run(pair: Path, tmp_path: Path, warehouse: Path) -> None:
    tracewh.ingest_run(pair, warehouse=warehouse)
    whole = state(warehouse)
    shutil.copytree(pair, tmp_path / "elsewhere" / "copy")
    assert tracewh.ingest_run(tmp_path / "elsewhere" / "copy", warehouse=warehouse).status == "already there"
    assert state(warehouse) == whole


def test_a_newer_config_brings_a_newer_commit(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"h.xplane.pb": small_capture()}, {"config.json": {"commit": "aaaa"}})
    tracewh.ingest_run(run, warehouse=warehouse)
    (run / "config.json").write_text(json.dumps({"commit": "bbbb"}))
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT commit_sha, commit_source FROM runs") == [("bbbb", "config")]
    report = tracewh.ingest_run(run, warehouse=warehouse, commit_sha="cccc")
    assert report.warnings == ["The commit of run run is now cccc; it was bbbb."]
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT commit_sha, commit_source FROM runs") == [("cccc", "option")]


def test_ranks_of_processes_that_write_apart(tmp_path: Path, warehouse: Path) -> None:
    # Two sessions of two processes, whose clocks differ by a second.
    for number, place in enumerate(
        ("p0/plugins/profile/t1", "p1/plugins/profile/t2", "p0/plugins/profile/t5")
    ):
        folder = tmp_path / "run" / place
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(small_capture(str(number)))
    tracewh.ingest_run(tmp_path / "run", warehouse=warehouse)
    ranks = query(
        warehouse,
        RANKS,
    )
    assert ranks == [
        ("p0/plugins/profile/t1/vm.xplane.pb", 0),
        ("p0/plugins/profile/t5/vm.xplane.pb", 0),
        ("p1/plugins/profile/t2/vm.xplane.pb", 1),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "a: &x {b: 1, c: *x}\n"),
        ("config.yaml", BOMB),
        ("config.json", '{"process_index": 99999999999}'),
        ("timing.json", '{"unprofiled_step_s": [1' + "0" * 400 + "]}"),
        ("memory_analysis.json", '{"temp_size_in_bytes": 18446744073709551615, "host": true}'),
        ("memory_stats.json", '{"end": {"cuda:0": {"bytes_in_use": true, "peak": 1e30}}}'),
        ("train.log", "completed step: 99999999999999999999, seconds: 1.0\ncompleted step: 1, seconds: x\n"),
    ],
    ids=["self", "bomb", "rank", "huge", "memory", "stats", "log"],
)  # fmt: skip
def test_odd_metadata_never_stops_a_run(tmp_path: Path, warehouse: Path, name: str, text: str) -> None:
    run = write_run(tmp_path / "run", {"h.xplane.pb": small_capture()})
    (run / name).write_text(text)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.captures == 1
    assert query(warehouse, "SELECT COUNT(*) FROM device_events") == [(1,)]


def test_step_numbers_that_come_again_are_counted(tmp_path: Path, warehouse: Path) -> None:
    from .xspace_oracle import SpaceBuilder

    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 10)
    thread = space.plane("/host:CPU").line("python")
    for start, number in ((0, 0), (100, 1), (200, 0), (300, 1)):
        thread.event("train", start, 50, {"_r": 1, "step_num": number})
    run = write_run(tmp_path / "run", {"h.xplane.pb": space.serialize()})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.steps == 2
    found = query(warehouse, "SELECT problem, occurrences FROM ingest_problems")
    assert found == [("repeated_step_number", 2)]
