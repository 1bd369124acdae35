"""Ingest of whole runs: the same bytes again, and damaged files among good ones."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

import tracewh
from tracewh.ingest.errors import NothingToIngest, UnreadableFile

from .ingest_runs import (
    CAPTURES,
    FIXTURES,
    SURROGATES,
    content,
    query,
    small_capture,
    statuses,
    write_run,
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


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
    run = write_run(tmp_path / "run", {"a.xplane.pb": data, "b.xplane.pb.gz": gzip.compress(data, mtime=0)})
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
    assert report.artifacts[0].detail == "in run run, where it stays unless that run is removed (tracewh rm)"
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
        "c.xplane.pb.gz": gzip.compress(small_capture("c"), mtime=0)[:-9],
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
    assert query(warehouse, "SELECT COUNT(*) FROM hlo_programs") == [(0,)]


def test_a_copy_with_other_files_says_whose_run_it_is(tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    for name in ("first", "second"):
        shutil.copytree(FIXTURES / "cpu_train", tmp_path / name)
    first = tracewh.ingest_run(tmp_path / "first", warehouse=warehouse)
    again = tracewh.ingest_run(tmp_path / "first", warehouse=warehouse)
    second = tracewh.ingest_run(tmp_path / "second", warehouse=warehouse)
    assert (first.warnings, again.warnings) == ([], [])
    assert second.run_name == "first"
    (warning,) = second.warnings
    assert (
        f"{tmp_path / 'second'} has a capture of this run, which was read from {tmp_path / 'first'}"
        in warning
    )
