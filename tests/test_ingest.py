"""Ingest of whole runs: what lands in the warehouse, what does not, and what a failure leaves behind."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh
from tracewh.ingest.errors import NothingToIngest, UnreadableFile, WarehouseError
from tracewh.sql.warehouse import Warehouse
from tracewh.views.catalog import load_views

from .xspace_oracle import SpaceBuilder, Unsigned, read_space

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURES = {
    "cpu_train": FIXTURES / "cpu_train" / "profile" / "cpu.xplane.pb.gz",
    "h200_moe": FIXTURES / "h200_moe" / "profile" / "vm.xplane.pb.gz",
    "h200_moe_direct": FIXTURES / "h200_moe_direct" / "profile" / "vm.xplane.pb.gz",
}
# Ids that the warehouse gives out; loading again may give others.
SURROGATES = {"run_id", "capture_id", "artifact_id"}

Hashes = dict[str, tuple[int, str]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


@contextmanager
def reading(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        yield connection


def query(warehouse: Path, text: str) -> list[tuple[Any, ...]]:
    with reading(warehouse) as connection:
        return connection.execute(text).fetchall()


def content(warehouse: Path, without: Collection[str] = ()) -> Hashes:
    """Row count and order-independent hash of every table, leaving out the columns `without`."""
    result = {}
    with reading(warehouse) as connection:
        tables = connection.execute(
            "SELECT c.table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() AS c "
            "JOIN duckdb_tables() AS t USING (table_oid) WHERE c.schema_name = 'main' GROUP BY 1"
        ).fetchall()
        for table, columns in tables:
            kept = ", ".join(f'"{column}"' for column in columns if column not in without)
            row = connection.execute(
                f"SELECT COUNT(*), COALESCE(SUM(hash(row({kept}))::HUGEINT), 0)::VARCHAR FROM main.{table}"
            ).fetchone()
            assert row is not None
            result[table] = row
    return result


def statuses(report: Any) -> dict[str, str]:
    return {artifact.path: artifact.status for artifact in report.artifacts}


def small_capture(kernel: str = "k", steps: int = 1) -> bytes:
    """An XSpace with one kernel for each step."""
    space = SpaceBuilder()
    stream = space.gpu().line("Stream #1")
    thread = space.plane("/host:CPU").line("python")
    for step in range(steps):
        launch = {"correlation_id": Unsigned(step + 1)}
        stream.event(kernel, 1000 * step + 100, 50, launch)
        thread.event("train", 1000 * step, 90, {"_r": 1, "step_num": step})
        thread.event("cuLaunchKernel", 1000 * step + 10, 5, launch)
    return space.serialize()


def write_run(folder: Path, captures: dict[str, bytes], files: dict[str, Any] | None = None) -> Path:
    """A run directory; values of `files` that are no text are written as JSON."""
    for name, data in captures.items():
        path = folder / "profile" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, value in (files or {}).items():
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


# --- the same bytes again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CAPTURES)
def test_ingesting_twice_changes_nothing(warehouse: Path, name: str) -> None:
    first = tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    assert (first.status, first.run_name, first.captures, first.steps) == ("loaded", name, 1, 3)
    assert set(statuses(first).values()) == {"loaded"}
    before = content(warehouse)
    again = tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    assert again.status == "already there"
    assert set(statuses(again).values()) == {"already there"}
    assert (again.captures, again.events, again.problems) == (0, 0, 0)
    assert content(warehouse) == before


@pytest.mark.parametrize("name", CAPTURES)
def test_force_loads_the_same_content_again(warehouse: Path, name: str) -> None:
    first = tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    before = content(warehouse, SURROGATES)
    again = tracewh.ingest_run(FIXTURES / name, warehouse=warehouse, force=True)
    assert again.status == "loaded"
    counts = ("captures", "devices", "events", "modules", "steps", "problems")
    assert [getattr(again, count) for count in counts] == [getattr(first, count) for count in counts]
    assert content(warehouse, SURROGATES) == before
    assert query(warehouse, "SELECT run_name, device_count FROM v1.captures") == [
        (name, 2 if name == "cpu_train" else 1)
    ]


def test_force_beside_another_run(warehouse: Path) -> None:
    for name in ("cpu_train", "h200_moe"):
        tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    before = content(warehouse, SURROGATES)
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse, force=True)
    assert content(warehouse, SURROGATES) == before


def test_order_of_runs_does_not_matter(tmp_path: Path) -> None:
    # What depends on the order is only which ids are given out.
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    for warehouse, order in ((one, list(CAPTURES)), (other, list(CAPTURES)[::-1])):
        for name in order:
            tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    columns = query(
        one, "SELECT DISTINCT column_name FROM duckdb_columns() WHERE column_name LIKE '%name_id'"
    )
    ids = SURROGATES | {"device_id"} | {column for (column,) in columns}
    assert content(one, ids) == content(other, ids)
    for view, kept in (
        ("kernel_stats", "kernel_name, op_name, occurrences, total_ps, median_ps, grid"),
        ("device_time", "device_ordinal, step_num, window_ps, busy_ps, exposed_communication_ps"),
        ("component_time", "device_ordinal, step_num, phase, component, sum_ps, union_ps"),
    ):
        text = f"SELECT run_name, {kept} FROM v1.{view} JOIN v1.captures USING (capture_id) ORDER BY ALL"
        assert query(one, text) == query(other, text)


def test_plain_and_compressed_bytes_are_the_same(tmp_path: Path, warehouse: Path) -> None:
    packed = CAPTURES["cpu_train"].read_bytes()
    one = write_run(tmp_path / "packed", {"a.xplane.pb.gz": packed})
    other = write_run(tmp_path / "plain", {"a.xplane.pb": gzip.decompress(packed)})
    tracewh.ingest_run(one, warehouse=warehouse)
    before = content(warehouse)
    report = tracewh.ingest_run(other, warehouse=warehouse)
    assert (report.status, report.run_name) == ("already there", "packed")
    assert content(warehouse) == before
    alone = tmp_path / "alone.duckdb"
    tracewh.ingest_run(other, warehouse=alone)
    tables = [table for table in before if table not in ("runs", "artifacts")]
    assert {table: content(alone)[table] for table in tables} == {table: before[table] for table in tables}


def test_the_same_capture_twice_in_one_run(tmp_path: Path, warehouse: Path) -> None:
    data = small_capture()
    run = write_run(tmp_path / "run", {"a.xplane.pb": data, "b.xplane.pb.gz": gzip.compress(data)})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert (report.captures, sorted(statuses(report).values())) == (1, ["already there", "loaded"])
    assert query(warehouse, "SELECT COUNT(*) FROM captures") == [(1,)]


def test_a_copied_run_is_recognized(tmp_path: Path, warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    before = content(warehouse)
    shutil.copytree(FIXTURES / "cpu_train", tmp_path / "copy")
    report = tracewh.ingest_run(tmp_path / "copy", warehouse=warehouse)
    assert (report.status, report.run_name) == ("already there", "cpu_train")
    assert content(warehouse) == before


def test_captures_of_two_runs_together_change_nothing(tmp_path: Path, warehouse: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / "all" / name, {"h.xplane.pb": small_capture(name)})
        tracewh.ingest_run(tmp_path / "all" / name, warehouse=warehouse)
    before = content(warehouse)
    report = tracewh.ingest_run(tmp_path / "all", warehouse=warehouse)
    assert report.status == "already there"
    assert content(warehouse) == before


@pytest.mark.parametrize("files", [{}, {"config.json": {"layers": 2}}], ids=["alone", "with config"])
def test_another_name_for_a_held_capture_changes_nothing(
    tmp_path: Path, warehouse: Path, files: dict[str, Any]
) -> None:
    run = write_run(tmp_path / "run", {"h.xplane.pb": small_capture()}, files)
    tracewh.ingest_run(run, warehouse=warehouse)
    before = content(warehouse)
    report = tracewh.ingest_run(run, warehouse=warehouse, run_name="other")
    assert report.status == "already there"
    assert report.artifacts[0].detail == "in run run"
    assert content(warehouse) == before


def test_a_capture_that_was_added_later_joins_its_run(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture("a")})
    tracewh.ingest_run(run, warehouse=warehouse)
    write_run(run, {"b.xplane.pb": small_capture("b")})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report) == {"profile/a.xplane.pb": "already there", "profile/b.xplane.pb": "loaded"}
    assert query(warehouse, "SELECT run_name, process_index FROM v1.captures ORDER BY capture_id") == [
        ("run", 0),
        ("run", 1),
    ]


# --- bad files ----------------------------------------------------------------------------------------------


def test_a_damaged_capture_does_not_stop_a_good_one(tmp_path: Path, warehouse: Path) -> None:
    good, damaged = small_capture("good"), small_capture("damaged")[:-7]
    run = write_run(
        tmp_path / "run", {"a.xplane.pb": damaged, "b.xplane.pb": good}, {"config.json": {"n": 1}}
    )
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.status == "failed"
    assert (report.captures, report.problems) == (1, 1)
    assert statuses(report) == {
        "profile/a.xplane.pb": "rejected",
        "profile/b.xplane.pb": "loaded",
        "config.json": "loaded",
    }
    (detail,) = [artifact.detail for artifact in report.artifacts if artifact.status == "rejected"]
    assert detail is not None
    assert str(run / "profile" / "a.xplane.pb") in detail
    assert query(warehouse, "SELECT DISTINCT kernel_name FROM v1.kernel_stats") == [("good",)]
    found = query(
        warehouse,
        """SELECT a.path, a.status, p.problem, p.detail = a.detail FROM artifacts AS a
        LEFT JOIN ingest_problems AS p USING (artifact_id) ORDER BY a.path""",
    )
    assert [row[:2] for row in found] == [
        ("config.json", "loaded"),
        ("profile/a.xplane.pb", "rejected"),
        ("profile/b.xplane.pb", "loaded"),
    ]
    assert found[1][2:] == ("unreadable_file", True)
    assert (found[0][2], found[2][2]) == (None, None)


def test_a_damaged_capture_is_recorded_once(tmp_path: Path, warehouse: Path) -> None:
    captures = {
        "a.xplane.pb": small_capture("a")[:-7],
        "b.xplane.pb": small_capture("b"),
        "c.xplane.pb.gz": gzip.compress(small_capture("c"))[:-9],
    }
    run = write_run(tmp_path / "run", captures)
    tracewh.ingest_run(run, warehouse=warehouse)
    before = content(warehouse)
    again = tracewh.ingest_run(run, warehouse=warehouse)
    assert again.status == "failed"
    assert content(warehouse) == before
    assert query(warehouse, "SELECT COUNT(*) FROM artifacts WHERE status = 'rejected'") == [(2,)]


def test_a_repaired_capture_replaces_the_rejected_one(tmp_path: Path, warehouse: Path) -> None:
    data = small_capture("a")
    run = write_run(tmp_path / "run", {"a.xplane.pb": data[:-7], "b.xplane.pb": small_capture("b")})
    tracewh.ingest_run(run, warehouse=warehouse)
    write_run(run, {"a.xplane.pb": data})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.status == "loaded"
    assert query(warehouse, "SELECT path, status FROM artifacts ORDER BY ALL") == [
        ("profile/a.xplane.pb", "loaded"),
        ("profile/b.xplane.pb", "loaded"),
    ]
    assert query(warehouse, "SELECT COUNT(*) FROM ingest_problems") == [(0,)]


def test_only_damaged_captures_leave_no_warehouse(tmp_path: Path, warehouse: Path) -> None:
    captures = {"a.xplane.pb": small_capture()[:-7], "b.xplane.pb": b"text"}
    run = write_run(tmp_path / "run", captures, {"config.json": {"layers": 2}, "timing.json": {}})
    with pytest.raises(UnreadableFile) as caught:
        tracewh.ingest_run(run, warehouse=warehouse)
    assert all(str(run / "profile" / name) in str(caught.value) for name in captures)
    assert list(tmp_path.iterdir()) == [run]


def test_only_damaged_captures_leave_a_warehouse_as_it_was(tmp_path: Path, warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    before = content(warehouse)
    run = write_run(tmp_path / "run", {"a.xplane.pb": b"\n\xff"}, {"config.json": {"layers": 2}})
    with pytest.raises(UnreadableFile):
        tracewh.ingest_run(run, warehouse=warehouse)
    assert content(warehouse) == before


@pytest.mark.parametrize("existing", [False, True])
def test_nothing_to_ingest(tmp_path: Path, warehouse: Path, existing: bool) -> None:
    if existing:
        tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    before = content(warehouse) if existing else None
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.md").write_text("# nothing here")
    (tmp_path / "config_only").mkdir()
    (tmp_path / "config_only" / "config.json").write_text("{}")
    for name in ("missing", "empty", "notes", "config_only", "notes/notes.md"):
        with pytest.raises(NothingToIngest) as caught:
            tracewh.ingest_run(tmp_path / name, warehouse=warehouse)
        assert str(tmp_path / name) in str(caught.value)
    assert (content(warehouse) if existing else None) == before
    assert warehouse.exists() == existing


def test_invalid_json_is_one_clear_error(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": '{"layers": 2,'})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.status == "failed"
    assert statuses(report) == {"profile/a.xplane.pb": "loaded", "config.json": "rejected"}
    assert query(warehouse, "SELECT COUNT(*) FROM device_events") == [(1,)]
    assert query(warehouse, "SELECT COUNT(*) FROM run_params") == [(0,)]
    ((problem, detail),) = query(warehouse, "SELECT problem, detail FROM ingest_problems")
    assert problem == "unreadable_file"
    assert str(run / "config.json") in detail
    assert "line 1" in detail
    (run / "config.json").write_text('{"layers": 2}')
    assert tracewh.ingest_run(run, warehouse=warehouse).status == "loaded"
    assert query(warehouse, "SELECT param, value FROM run_params") == [("layers", "2")]
    assert query(warehouse, "SELECT COUNT(*) FROM ingest_problems") == [(0,)]


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]", "3", "null", '"text"', "", "\x00", '{"a": ' * 100_000, '{"a": 1e999}', '{"a": NaN}',
        '{"a": "\\ud800"}',
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_odd_config_never_loses_the_capture(tmp_path: Path, warehouse: Path, text: str) -> None:
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": text})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)["profile/a.xplane.pb"] == "loaded"
    assert report.status in ("loaded", "failed")
    assert query(warehouse, "SELECT COUNT(*) FROM device_events") == [(1,)]


def test_caches_of_xprof_are_no_artifacts(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"vm.xplane.pb": small_capture()})
    # An OpsStats message: like an HloProto, it begins with field 1. XProf leaves it when one opens the trace.
    cache = b"\n\x04\n\x02ab\x12\x00"
    for name in ("ALL_HOSTS.op_stats_v2.pb", "ALL_HOSTS.op_stats.pb", "vm.SSTABLE", "vm.trie.SSTABLE"):
        (run / "profile" / name).write_bytes(cache)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report) == {"profile/vm.xplane.pb": "loaded"}
    assert query(warehouse, "SELECT COUNT(*) FROM hlo_modules") == [(0,)]


# --- names, commits, labels ---------------------------------------------------------------------------------


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


def commits(warehouse: Path) -> list[tuple[Any, ...]]:
    return query(warehouse, "SELECT commit_sha, commit_source FROM runs ORDER BY run_id")


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
    single = write_run(tmp_path / "three", {"host-7.xplane.pb.gz": gzip.compress(small_capture("3"))})
    report = tracewh.ingest_run(single / "profile" / "host-7.xplane.pb.gz", warehouse=warehouse)
    assert report.run_name == "host-7"
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


# --- files beside the captures ------------------------------------------------------------------------------


def params(warehouse: Path) -> dict[str, str | None]:
    rows = query(warehouse, "SELECT param, value FROM run_params")
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_config_is_flattened(tmp_path: Path, warehouse: Path) -> None:
    config = {
        "model": {"layers": 56, "name": "8x22b", "rope": {"theta": 1e6}},
        "mesh": [["fsdp", 2], ["ep", 4]],
        "remat": None,
        "scan": True,
        "lr": 3e-4,
        "empty": {},
        "big": 2**70,
    }
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": config})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert params(warehouse) == {
        "model.layers": "56",
        "model.name": "8x22b",
        "model.rope.theta": "1000000.0",
        "mesh[0][0]": "fsdp",
        "mesh[0][1]": "2",
        "mesh[1][0]": "ep",
        "mesh[1][1]": "4",
        "remat": None,
        "scan": "true",
        "lr": "0.0003",
        "big": str(2**70),
    }


def test_config_in_yaml(tmp_path: Path, warehouse: Path) -> None:
    text = "model:\n  layers: 56\nhf_token: s3cret\ncommit: c0ffee\nday: 2026-11-30\n"
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.yml": text})
    tracewh.ingest_run(run, warehouse=warehouse)
    found = params(warehouse)
    assert found["model.layers"] == "56"
    assert found["hf_token"] is None
    assert commits(warehouse) == [("c0ffee", "config")]


def test_yaml_that_would_run_code_is_refused(tmp_path: Path, warehouse: Path) -> None:
    text = f"a: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']\n"
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.yaml": text})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)["config.yaml"] == "rejected"
    assert not (tmp_path / "made").exists()


SECRETS: dict[str, Any] = {
    "hf_token": "s3cret",
    "HF_TOKEN": "s3cret",
    "env": {"WANDB_API_KEY": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "GITHUB_TOKEN": "s3cret"},
    "token": "s3cret",
    "password": "s3cret",
    "db": {"passwd": "s3cret", "credentials": {"user": "s3cret", "key": "s3cret"}},
    "secrets": ["s3cret"],
    "tokens_of_services": {"access_token": "s3cret", "token": {"value": "s3cret"}},
    "auth_token": ["s3cret"],
    "private_key": "s3cret",
    "argv": ["train.py", "--hf_token=s3cret", "--api_key", "s3cret"],
}
HARMLESS: dict[str, Any] = {
    "tokens_per_update": 65536,
    "tokenizer_path": "assets/tokenizer.model",
    "tokens_per_s": 1.5,
    "max_tokens": 8,
    "token_count": 9,
    "key_heads": 4,
}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_dropped(tmp_path: Path, warehouse: Path, name: str) -> None:
    config = {name: SECRETS[name]} | HARMLESS
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": config})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert "s3cret" not in json.dumps(params(warehouse))
    assert b"s3cret" not in warehouse.read_bytes()
    assert ("secret_dropped",) in query(warehouse, "SELECT problem FROM ingest_problems")
    assert {param: params(warehouse)[param] for param in HARMLESS} == {
        param: value if isinstance(value, str) else json.dumps(value) for param, value in HARMLESS.items()
    }


def test_step_times(tmp_path: Path, warehouse: Path) -> None:
    timing = {"unprofiled_step_s": [0.5, 0.25], "profiled_step_s": [0.75], "median_s": 0.375, "warmup": 2}
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"timing.json": timing})
    tracewh.ingest_run(run, warehouse=warehouse)
    found = query(warehouse, "SELECT metric, value, is_profiled FROM timing_samples ORDER BY sample_index")
    assert found == [
        ("step_time_s", 0.5, False),
        ("step_time_s", 0.25, False),
        ("step_time_s", 0.75, True),
    ]


def test_step_times_that_are_no_numbers_are_counted(tmp_path: Path, warehouse: Path) -> None:
    timing = {"unprofiled_step_s": [0.5, "fast", None, True, {"s": 1}], "profiled_step_s": "slow"}
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"timing.json": timing})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT value FROM timing_samples") == [(0.5,)]
    found = query(warehouse, "SELECT SUM(occurrences) FROM ingest_problems WHERE problem = 'not_a_number'")
    assert found == [(5,)]


def test_bundled_step_times(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "h200_moe", warehouse=warehouse)
    timing = json.loads((FIXTURES / "h200_moe" / "timing.json").read_text())
    found = query(warehouse, "SELECT value, is_profiled FROM timing_samples ORDER BY sample_index")
    expected = [(value, False) for value in timing["unprofiled_step_s"]]
    assert found == expected + [(value, True) for value in timing["profiled_step_s"]]


def test_memory_figures_with_their_devices(tmp_path: Path, warehouse: Path) -> None:
    space = SpaceBuilder()
    for ordinal in (0, 1):
        space.gpu(ordinal).line("Stream #1").event("k", 0, 1)
    stats = {"end": {f"cuda:{ordinal}": {"peak_bytes_in_use": 100 + ordinal} for ordinal in (0, 1, 9)}}
    analysis = {"temp_size_in_bytes": 7, "argument_size_in_bytes": 8, "peak_memory_in_bytes": 15}
    run = write_run(
        tmp_path / "run",
        {"a.xplane.pb": space.serialize()},
        {"memory_stats.json": stats, "memory_analysis.json": analysis},
    )
    tracewh.ingest_run(run, warehouse=warehouse)
    found = query(
        warehouse,
        """SELECT d.device_ordinal, m.sample_label, m.kind, m.bytes, m.evidence
        FROM memory_samples AS m LEFT JOIN devices AS d USING (device_id) ORDER BY m.evidence, m.bytes""",
    )
    assert [row for row in found if row[4] == "measured"] == [
        (0, "end", "peak_bytes_in_use", 100, "measured"),
        (1, "end", "peak_bytes_in_use", 101, "measured"),
        (None, "end", "peak_bytes_in_use", 109, "measured"),
    ]
    compiler = [(row[0], row[2], row[3]) for row in found if row[4] == "compiler"]
    assert compiler == [(None, "temporary", 7), (None, "argument", 8), (None, "peak_memory", 15)]
    # A device that no capture has is no device of the run.
    assert query(warehouse, "SELECT problem FROM ingest_problems") == [("unknown_device",)]


def test_bundled_memory_figures(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "h200_moe", warehouse=warehouse)
    stats = json.loads((FIXTURES / "h200_moe" / "memory_stats.json").read_text())
    found = query(
        warehouse,
        """SELECT m.sample_label, m.kind, m.bytes, d.device_ordinal, d.device_type
        FROM memory_samples AS m JOIN devices AS d USING (device_id) ORDER BY ALL""",
    )
    assert found == sorted(
        (label, kind, value, 0, "GPU")
        for label, devices in stats.items()
        for kind, value in devices["cuda:0"].items()
    )


def test_training_log(tmp_path: Path, warehouse: Path) -> None:
    log = (
        "INFO: start\n"
        "completed step: 0, seconds: 20.635, TFLOP/s/device: 385.3, Tokens/s/device: 794.0, "
        "total_weights: 65536, loss: 10.87\n"
        "completed step: 1, seconds: 2.5, TFLOP/s/device: nan, Tokens/s/device: 6553.6, loss: 9.5\n"
    )
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"train.log": log})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)["train.log"] == "loaded"
    found = query(
        warehouse, "SELECT step_num, metric, value FROM timing_samples WHERE NOT isnan(value) ORDER BY ALL"
    )
    assert found == [
        (0, "loss", 10.87),
        (0, "step_time_s", 20.635),
        (0, "tflops_per_device", 385.3),
        (0, "tokens_per_s_per_device", 794.0),
        (0, "total_weights", 65536.0),
        (1, "loss", 9.5),
        (1, "step_time_s", 2.5),
        (1, "tokens_per_s_per_device", 6553.6),
    ]
    assert query(warehouse, "SELECT DISTINCT is_profiled FROM timing_samples") == [(None,)]


def test_changed_metadata_replaces_what_it_said(tmp_path: Path, warehouse: Path) -> None:
    files: dict[str, Any] = {
        "config.json": {"layers": 2, "old": 1},
        "timing.json": {"unprofiled_step_s": [1.0, 2.0]},
    }
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, files)
    tracewh.ingest_run(run, warehouse=warehouse)
    write_run(run, {}, {"config.json": {"layers": 3}, "timing.json": {"unprofiled_step_s": [3.0]}})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report) == {
        "profile/a.xplane.pb": "already there",
        "config.json": "loaded",
        "timing.json": "loaded",
    }
    assert params(warehouse) == {"layers": "3"}
    assert query(warehouse, "SELECT value FROM timing_samples") == [(3.0,)]
    assert query(warehouse, "SELECT COUNT(*) FROM artifacts") == [(3,)]


# --- HLO alone ----------------------------------------------------------------------------------------------


def hlo_protos() -> dict[str, bytes]:
    """HloProto of each program of the CPU fixture, by `name(program id)`."""
    space = read_space(gzip.decompress(CAPTURES["cpu_train"].read_bytes()))
    return {
        metadata.name: stat.value
        for metadata in space.plane("/host:metadata").event_metadata.values()
        for stat in metadata.stats
        if isinstance(stat.value, bytes)
    }


def test_hlo_alone_is_a_capture(tmp_path: Path, warehouse: Path) -> None:
    name, proto = max(hlo_protos().items(), key=lambda item: len(item[1]))
    dump = tmp_path / "dump"
    dump.mkdir()
    module = name.partition("(")[0]
    (dump / f"module_0042.{module}.cpu_after_optimizations.hlo.pb").write_bytes(proto)
    (dump / f"module_0042.{module}.before_optimizations.hlo.pb").write_bytes(proto)
    report = tracewh.ingest_run(dump, warehouse=warehouse)
    assert (report.status, report.captures, report.modules, report.events) == ("loaded", 1, 1, 0)
    captures = query(
        warehouse,
        """SELECT run_name, source_kind, module_count, device_event_count, step_count
        FROM v1.captures""",
    )
    assert captures == [("dump", "hlo", 1, 0, 0)]
    assert query(warehouse, "SELECT module_name FROM hlo_modules") == [(module,)]
    before = content(warehouse)
    assert tracewh.ingest_run(dump, warehouse=warehouse).status == "already there"
    assert content(warehouse) == before


def test_hlo_beside_a_capture_that_has_it_is_merged(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"cpu.xplane.pb.gz": CAPTURES["cpu_train"].read_bytes()})
    alone = tmp_path / "alone.duckdb"
    tracewh.ingest_run(run, warehouse=alone)
    name, proto = max(hlo_protos().items(), key=lambda item: len(item[1]))
    module, _, program_id = name.removesuffix(")").partition("(")
    dump = run / f"module_{int(program_id):04}.{module}.cpu_after_optimizations.hlo.pb"
    dump.write_bytes(proto)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)[dump.name] == "merged"
    assert content(warehouse)["hlo_instructions"] == content(alone)["hlo_instructions"]
    assert report.captures == 1


# --- several processes, and death ---------------------------------------------------------------------------

HOLD = """
import os, sys
from tracewh.sql.warehouse import Warehouse
with Warehouse.open(sys.argv[1], read_only=False):
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""
INGEST = """
import sys
import tracewh
print("ready", flush=True)
tracewh.ingest_run(sys.argv[2], warehouse=sys.argv[1])
"""


@contextmanager
def process(script: str, *arguments: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process that has said its first line."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def writer(warehouse: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has the warehouse open for writing, and its id."""
    with process(HOLD, warehouse) as holder:
        assert holder.stdout is not None
        yield holder, holder.stdout.readline().strip()


@pytest.mark.parametrize("read_only", [True, False])
def test_another_process_writes(warehouse: Path, read_only: bool) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    with writer(warehouse) as (_, pid):
        with pytest.raises(WarehouseError) as caught:
            Warehouse.open(warehouse, read_only=read_only, wait_seconds=0.3)
        assert str(warehouse) in str(caught.value)
        assert pid in str(caught.value)
        assert "\n" not in str(caught.value)
    Warehouse.open(warehouse, read_only=read_only, wait_seconds=0.3).close()


def test_a_second_writer_waits_for_the_first(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    with writer(warehouse) as (holder, _):
        waiting = subprocess.Popen(
            [sys.executable, "-c", INGEST, str(warehouse), str(FIXTURES / "h200_moe")], stdout=subprocess.PIPE
        )
        assert waiting.stdout is not None
        waiting.stdout.readline()
        time.sleep(1)
        assert waiting.poll() is None
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        holder.wait()
        waiting.communicate()
    assert waiting.returncode == 0
    assert query(warehouse, "SELECT run_name FROM runs ORDER BY 1") == [("cpu_train",), ("h200_moe",)]


def test_another_handle_of_this_process_writes(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as handle:
        handle.connection.execute("INSERT INTO main.runs VALUES (1, 'r', '/', NULL, NULL)")
        with pytest.raises(WarehouseError, match="this process"):
            Warehouse.open(warehouse, wait_seconds=0.1)


@pytest.fixture(scope="module")
def large_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose capture takes a second or so to load."""
    space = SpaceBuilder()
    stream = space.gpu().line("Stream #1")
    thread = space.plane("/host:CPU").line("python")
    for number in range(20_000):
        stats = {"correlation_id": Unsigned(number), "program_id": 7, "order": number}
        stream.event(f"kernel_{number % 300}", 1000 * number, 900, stats)
        thread.event("cuLaunchKernel", 1000 * number, 10, {"correlation_id": Unsigned(number), "order": 1})
    return write_run(tmp_path_factory.mktemp("large") / "run", {"a.xplane.pb": space.serialize()})


@pytest.mark.parametrize("tenths", range(1, 13, 2))
def test_a_killed_ingest_leaves_nothing_or_the_whole_capture(
    warehouse: Path, large_run: Path, tenths: int
) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    before = content(warehouse)
    with process(INGEST, warehouse, large_run) as started:
        assert started.stdout is not None
        started.stdout.readline()
        # Wherever this falls, a kill leaves one of two states.
        time.sleep(tenths / 10)
        started.send_signal(signal.SIGKILL)
        started.wait()
    found = query(
        warehouse, "SELECT run_name, device_event_count, host_event_count FROM v1.captures ORDER BY 1"
    )
    if len(found) == 1:
        assert content(warehouse) == before
    assert found in (
        [("cpu_train", *found[0][1:])],
        [("cpu_train", *found[0][1:]), ("run", 20_000, 20_000)],
    )
    tracewh.ingest_run(large_run, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*) FROM event_stats WHERE capture_id = 2") == [(40_000,)]


@pytest.mark.parametrize("tenths", range(0, 10, 3))
def test_a_killed_first_ingest_leaves_a_usable_file(warehouse: Path, large_run: Path, tenths: int) -> None:
    with process(INGEST, warehouse, large_run) as started:
        assert started.stdout is not None
        started.stdout.readline()
        time.sleep(tenths / 10)
        started.send_signal(signal.SIGKILL)
        started.wait()
    report = tracewh.ingest_run(large_run, warehouse=warehouse)
    assert report.status in ("loaded", "already there")
    assert query(warehouse, "SELECT COUNT(*) FROM device_events") == [(20_000,)]


@pytest.mark.parametrize("kind", ["no bytes", "no tables"])
def test_a_file_left_by_a_process_that_died_at_once_is_used(warehouse: Path, kind: str) -> None:
    # Between the creation of the file and the commit of its schema a kill leaves one of these.
    if kind == "no bytes":
        warehouse.touch()
    else:
        duckdb.connect(str(warehouse)).close()
    assert tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse).status == "loaded"
    assert query(warehouse, "SELECT run_name FROM v1.captures") == [("cpu_train",)]


def test_a_database_of_others_is_refused(warehouse: Path) -> None:
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS x")
    with pytest.raises(WarehouseError, match="not a warehouse"):
        tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    assert query(warehouse, "SELECT x FROM mine") == [(1,)]


# --- other clients ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with all bundled XSpace runs."""
    warehouse = tmp_path_factory.mktemp("filled") / "w.duckdb"
    for name in CAPTURES:
        tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    return warehouse


def views_of(connection: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    rows = connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE database_name = ? AND schema_name = 'v1' ORDER BY 1",
        [database],
    ).fetchall()
    return [row[0] for row in rows]


def test_a_plain_client_reads_every_view(filled: Path) -> None:
    with duckdb.connect(str(filled), read_only=True) as connection:
        names = views_of(connection, "w")
        assert [f"v1.{name}" for name in names] == sorted(view.name for view in load_views())
        counts = {
            name: connection.execute(f"SELECT COUNT(*) FROM (SELECT * FROM v1.{name})").fetchone()
            for name in names
        }
    assert counts["captures"] == (3,)
    for name in names:
        assert counts[name] is not None


def test_an_attached_warehouse_answers_under_another_name(filled: Path) -> None:
    with duckdb.connect(str(filled), read_only=True) as connection:
        names = views_of(connection, "w")
        direct = {
            name: connection.execute(f"SELECT * FROM v1.{name} ORDER BY ALL").fetchall() for name in names
        }
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{filled}' AS elsewhere (READ_ONLY)")
        # Tables of the same names in front of the views' own must not be taken.
        connection.execute("CREATE TABLE main.captures AS SELECT 1 AS x")
        connection.execute("CREATE TABLE main.names AS SELECT 1 AS x")
        assert views_of(connection, "elsewhere") == names
        for name in names:
            found = connection.execute(f"SELECT * FROM elsewhere.v1.{name} ORDER BY ALL").fetchall()
            assert found == direct[name], name


def test_views_need_no_extension_and_no_setting(filled: Path) -> None:
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(str(filled), read_only=True, config=settings) as connection:
        for name in views_of(connection, "w"):
            connection.execute(f"SELECT * FROM v1.{name} LIMIT 1").fetchall()


def test_reading_leaves_the_file_alone(filled: Path) -> None:
    before = filled.read_bytes()
    with tracewh.open(filled) as warehouse:
        relation = warehouse.sql("SELECT COUNT(*) FROM v1.captures")
        assert relation is not None
        assert relation.fetchall() == [(3,)]
    assert filled.read_bytes() == before


# --- removal ------------------------------------------------------------------------------------------------


def owned_rows(warehouse: Path, ids: Callable[[str], set[Any]]) -> dict[str, int]:
    """Rows that refer to a run, capture, artifact or device in `ids`, by table."""
    result = {}
    with reading(warehouse) as connection:
        columns = connection.execute(
            """SELECT c.table_name, c.column_name
            FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_oid)
            WHERE c.schema_name = 'main'
            AND c.column_name IN ('run_id', 'capture_id', 'artifact_id', 'device_id')"""
        ).fetchall()
        for table, column in columns:
            values = ", ".join(map(str, ids(column))) or "NULL"
            row = connection.execute(
                f"SELECT COUNT(*) FROM main.{table} WHERE {column} IN ({values})"
            ).fetchone()
            assert row is not None
            if row[0]:
                result[f"{table}.{column}"] = row[0]
    return result


@pytest.mark.parametrize("name", CAPTURES)
def test_a_removed_run_leaves_no_row(filled: Path, warehouse: Path, name: str) -> None:
    shutil.copyfile(filled, warehouse)
    run = f"run_id = (SELECT run_id FROM runs WHERE run_name = '{name}')"
    tables = {"run_id": "runs", "capture_id": "captures", "artifact_id": "artifacts", "device_id": "devices"}
    owned = {
        column: {row[0] for row in query(warehouse, f"SELECT {column} FROM {table} WHERE {run}")}
        for column, table in tables.items()
    }
    assert all(owned.values())
    assert owned_rows(warehouse, owned.__getitem__)
    kernels = "SELECT * FROM v1.kernel_stats JOIN v1.captures USING (capture_id)"
    others = query(warehouse, f"{kernels} WHERE NOT ({run}) ORDER BY ALL")
    with Warehouse.open(warehouse, read_only=False) as handle:
        removed = handle.remove_run(name)
    assert (removed.run_name, removed.captures) == (name, 1)
    assert owned_rows(warehouse, owned.__getitem__) == {}
    assert query(warehouse, "SELECT COUNT(*) FROM runs") == [(2,)]
    assert (
        query(warehouse, "SELECT * FROM v1.kernel_stats JOIN v1.captures USING (capture_id) ORDER BY ALL")
        == others
    )
    # It can come back, with the same content.
    tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    ids = SURROGATES | {"device_id"}
    assert content(warehouse, ids) == content(filled, ids)


def test_removing_an_unknown_run_names_those_held(filled: Path, warehouse: Path) -> None:
    shutil.copyfile(filled, warehouse)
    before = content(warehouse)
    with (
        Warehouse.open(warehouse, read_only=False) as handle,
        pytest.raises(WarehouseError, match="h200_moe_direct"),
    ):
        handle.remove_run("no such run")
    assert content(warehouse) == before
