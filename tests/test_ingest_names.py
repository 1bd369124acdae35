"""What a run is called, which commit and labels it has, and the ranks of its processes."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

import tracewh

from .ingest_runs import (
    commits,
    query,
    small_capture,
    write_run,
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, str]:
    """A git repository with one commit, and that commit."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder, git(folder, "rev-parse", "HEAD")


def test_commit_of_the_git_checkout(checkout: tuple[Path, str], warehouse: Path) -> None:
    folder, sha = checkout
    run = write_run(folder / "runs" / "one", {"a.xplane.pb": small_capture()})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert commits(warehouse) == [(sha, "git")]
    assert query(warehouse, "SELECT commit_sha FROM v1.captures") == [(sha,)]


def test_commit_of_the_config_before_git(checkout: tuple[Path, str], warehouse: Path) -> None:
    captures, files = {"a.xplane.pb": small_capture()}, {"config.json": {"commit": "c0ffee"}}
    tracewh.ingest_run(write_run(checkout[0] / "run", captures, files), warehouse=warehouse)
    assert commits(warehouse) == [("c0ffee", "config")]


def test_commit_of_the_option_before_all(checkout: tuple[Path, str], warehouse: Path) -> None:
    captures, files = {"a.xplane.pb": small_capture()}, {"config.json": {"commit": "c0ffee"}}
    run = write_run(checkout[0] / "run", captures, files)
    tracewh.ingest_run(run, warehouse=warehouse, commit_sha="4f2a91c")
    assert commits(warehouse) == [("4f2a91c", "option")]
    # What the caller said stays when nobody says otherwise, and changes when somebody does.
    tracewh.ingest_run(run, warehouse=warehouse)
    assert commits(warehouse) == [("4f2a91c", "option")]
    tracewh.ingest_run(run, warehouse=warehouse, commit_sha="beef")
    assert commits(warehouse) == [("beef", "option")]


def test_no_commit_anywhere(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": {"layers": 2}})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert commits(warehouse) == [(None, None)]


def test_commit_of_a_config_that_came_later(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()})
    tracewh.ingest_run(run, warehouse=warehouse)
    write_run(run, {}, {"config.json": {"commit": "c0ffee"}})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert commits(warehouse) == [("c0ffee", "config")]


def test_labels(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()})
    tracewh.ingest_run(run, warehouse=warehouse, labels={"batch": "64", "who": "me"})
    tracewh.ingest_run(run, warehouse=warehouse, labels={"batch": "128"})
    tracewh.ingest_run(run, warehouse=warehouse)
    other = write_run(tmp_path / "other", {"a.xplane.pb": small_capture("other")})
    tracewh.ingest_run(other, warehouse=warehouse, labels={"batch": "1"})
    found = query(
        warehouse, "SELECT run_name, label, value FROM run_labels JOIN runs USING (run_id) ORDER BY ALL"
    )
    assert found == [("other", "batch", "1"), ("run", "batch", "128"), ("run", "who", "me")]


def test_runs_of_one_basename_get_different_names(tmp_path: Path, warehouse: Path) -> None:
    names = []
    for parent in ("x/exp1", "x/exp2", "y/exp2"):
        run = write_run(tmp_path / parent / "run", {"a.xplane.pb": small_capture(parent)})
        names.append(tracewh.ingest_run(run, warehouse=warehouse).run_name)
    assert names == ["run", "exp2/run", "y/exp2/run"]
    assert query(warehouse, "SELECT run_name FROM runs ORDER BY run_id") == [(name,) for name in names]


def test_names_of_runs(tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "one", {"a.xplane.pb": small_capture("1")})
    monkeypatch.chdir(run)
    assert tracewh.ingest_run(".", warehouse=warehouse).run_name == "one"
    other = write_run(tmp_path / "two", {"a.xplane.pb": small_capture("2")})
    assert tracewh.ingest_run(other / "profile" / "..", warehouse=warehouse).run_name == "two"
    single = write_run(
        tmp_path / "three", {"host-7.xplane.pb.gz": gzip.compress(small_capture("3"), mtime=0)}
    )
    report = tracewh.ingest_run(single / "profile" / "host-7.xplane.pb.gz", warehouse=warehouse)
    assert report.run_name == "host-7"
    packed = pa.Codec("zstd").compress(small_capture("5"), asbytes=True)
    single = write_run(tmp_path / "five", {"host-8.xplane.pb.zst": packed})
    report = tracewh.ingest_run(single / "profile" / "host-8.xplane.pb.zst", warehouse=warehouse)
    assert report.run_name == "host-8"
    named = write_run(tmp_path / "four", {"a.xplane.pb": small_capture("4")})
    assert tracewh.ingest_run(named, warehouse=warehouse, run_name="baseline").run_name == "baseline"


def test_one_capture_per_process(tmp_path: Path, warehouse: Path) -> None:
    captures = {f"host-{letter}.xplane.pb": small_capture(letter) for letter in "cab"}
    report = tracewh.ingest_run(write_run(tmp_path / "run", captures), warehouse=warehouse)
    # Each names its host by its file, so that GPU 0 of one is not GPU 0 of another.
    assert (report.captures, report.devices) == (3, 3)
    hosts = query(warehouse, "SELECT hostname, device_ordinal FROM devices ORDER BY ALL")
    assert hosts == [(f"host-{letter}", 0) for letter in "abc"]
    found = query(
        warehouse,
        """SELECT a.path, c.process_index FROM captures AS c JOIN artifacts AS a USING (artifact_id)
        ORDER BY process_index""",
    )
    assert found == [(f"profile/host-{letter}.xplane.pb", rank) for rank, letter in enumerate("abc")]


def test_packed_and_plain_captures_of_one_process(tmp_path: Path, warehouse: Path) -> None:
    packed = {
        "1/h.xplane.pb": small_capture("1"),
        "2/h.xplane.pb.gz": gzip.compress(small_capture("2"), mtime=0),
        "3/h.xplane.pb.zst": pa.Codec("zstd").compress(small_capture("3"), asbytes=True),
    }
    captures = {f"plugins/profile/{name}": data for name, data in packed.items()}
    tracewh.ingest_run(write_run(tmp_path / "run", captures), warehouse=warehouse)
    assert query(warehouse, "SELECT process_index FROM captures") == [(0,), (0,), (0,)]


def test_config_states_the_process(tmp_path: Path, warehouse: Path) -> None:
    for folder, rank in (("p", 5), ("q", 3)):
        write_run(
            tmp_path / "run" / folder,
            {"h.xplane.pb": small_capture(folder)},
            {"config.json": {"process_index": rank, "process_count": 8}},
        )
    tracewh.ingest_run(tmp_path / "run", warehouse=warehouse)
    found = query(
        warehouse,
        """SELECT a.path, c.process_index FROM captures AS c JOIN artifacts AS a USING (artifact_id)
        ORDER BY a.path""",
    )
    assert found == [("p/profile/h.xplane.pb", 5), ("q/profile/h.xplane.pb", 3)]
