"""One process of a profiler that several files tell of is one capture."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import tracewh

from .generated_rocpd import layouts, twins, write_file
from .ingest_runs import query, statuses

CAPTURES = "SELECT source_kind, process_id, process_index FROM captures ORDER BY capture_id"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A run with counters left out, so that its dispatches are work."""
    return write_file(tmp_path / "made" / "41337_results.db")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "w.duckdb"


def put(run: Path, database: Path, forms: Sequence[str]) -> None:
    """Put the process into the run in these formats."""
    for form in forms:
        if form == "rocpd":
            shutil.copy(database, run)
        elif form == "json":
            twins.write_json(database, run)
        else:
            twins.write_csv(database, run)


@pytest.mark.parametrize("forms", [("rocpd", "json", "csv"), ("json", "csv"), ("rocpd", "csv")])
def test_several_formats_are_one_capture(
    database: Path, run: Path, warehouse: Path, forms: tuple[str, ...]
) -> None:
    put(run, database, forms)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    kinds = {"rocpd": "rocpd", "json": "rocprof_json", "csv": "rocprof_csv"}
    assert query(warehouse, CAPTURES) == [(kinds[forms[0]], 41337, 0)]
    assert report.captures == 1
    files = [path for path in run.rglob("*") if path.is_file()]
    assert len(report.artifacts) == len(files)
    assert sorted(set(statuses(report).values())) == ["loaded", "merged"]
    assert query(warehouse, "SELECT COUNT(*), COUNT(DISTINCT capture_id) FROM artifacts") == [(len(files), 1)]
    dispatches = "SELECT COUNT(*) FROM device_events WHERE kind = 'kernel'"
    assert query(warehouse, dispatches) == [(90,)]


@pytest.mark.parametrize(("first", "then"), [("csv", "rocpd"), ("csv", "json"), ("json", "rocpd")])
def test_a_richer_file_that_comes_later_replaces_the_poorer(
    database: Path, run: Path, warehouse: Path, first: str, then: str
) -> None:
    put(run, database, [first])
    tracewh.ingest_run(run, warehouse=warehouse)
    put(run, database, [then])
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.status == "loaded"
    ((kind, _, _),) = query(warehouse, CAPTURES)
    assert kind == {"rocpd": "rocpd", "json": "rocprof_json"}[then]
    found = query(warehouse, "SELECT status, COUNT(DISTINCT capture_id) FROM artifacts GROUP BY 1 ORDER BY 1")
    assert [row[0] for row in found] == ["loaded", "merged"]
    assert query(warehouse, "SELECT DISTINCT a.capture_id = c.capture_id FROM artifacts a, captures c") == [
        (True,)
    ]
    again = tracewh.ingest_run(run, warehouse=warehouse)
    assert again.status == "already there"
    assert set(statuses(again).values()) == {"already there"}


def test_what_the_kept_file_lacks_is_counted(database: Path, run: Path, warehouse: Path) -> None:
    import sqlite3

    put(run, database, ["csv"])
    poor = shutil.copy(database, run)
    with sqlite3.connect(poor) as connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_region_%'"
        ).fetchone()
        (regions,) = connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()
        connection.execute(f'DELETE FROM "{table}"')
    connection.close()
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, CAPTURES)[0][0] == "rocpd"
    found = query(warehouse, "SELECT place, occurrences FROM ingest_problems WHERE problem = 'rows_of_twin'")
    assert len(found) == 1
    assert found[0][0] == "host_events"
    assert 0 < found[0][1] <= regions


def test_another_run_with_the_same_process_is_not_loaded(
    database: Path, run: Path, tmp_path: Path, warehouse: Path
) -> None:
    tracewh.ingest_run(database, warehouse=warehouse)
    put(run, database, ["csv"])
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.captures == 0
    assert query(warehouse, "SELECT run_name FROM runs") == [("41337_results",)]
    assert query(warehouse, "SELECT COUNT(*) FROM captures") == [(1,)]


def test_the_files_that_a_merged_one_was_made_of_add_nothing(run: Path, warehouse: Path) -> None:
    layouts.write_merged(run / "merged_results.db", ranks=2)
    for path in layouts.write_ranks(run / "ranks", ranks=2):
        assert path.is_file()
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*), COUNT(DISTINCT fingerprint || process_id) FROM captures") == [
        (2, 2)
    ]


def test_runs_that_differ_in_one_time_are_two(run: Path, tmp_path: Path, warehouse: Path) -> None:
    write_file(run / "a" / "1_results.db")
    write_file(run / "b" / "1_results.db", clock_start_ns=815_204_113_000_001)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*), COUNT(DISTINCT fingerprint) FROM captures") == [(2, 2)]


def test_processes_of_a_merged_file_that_look_alike_stay_two(tmp_path: Path, warehouse: Path) -> None:
    path = layouts.write_merged(tmp_path / "merged.db", ranks=2)
    tracewh.ingest_run(path, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*) FROM captures") == [(2,)]


def test_a_later_process_with_the_same_number_stands_beside_the_earlier(
    run: Path, tmp_path: Path, warehouse: Path
) -> None:
    """As of a container, where each training process is number 1, and overwrites the file of the last."""
    path = write_file(run / "1_results.db", process_id=1)
    tracewh.ingest_run(run, warehouse=warehouse)
    path.unlink()
    other_guid = "0198c3d4-5e6f-7a8b-9c0d-1e2f3a4b5c6e"
    write_file(path, process_id=1, guid=other_guid, clock_start_ns=915_204_113_000_000)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*), COUNT(DISTINCT fingerprint) FROM captures") == [(2, 2)]
