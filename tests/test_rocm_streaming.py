"""Captures read some rows at a time: the same rows, numbers and ids wherever a part ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest import batches, rocm_arguments, rocpd, sqlite_file, sqlite_pages
from tracewh.ingest.capture import Capture
from tracewh.ingest.rocm_capture import read_capture
from tracewh.ingest.sqlite_file import SqliteFile

from .generated_rocpd import damage, write_file
from .rocpd_damaged import spoil, write_every_record
from .rocpd_files import content, make_rocpd, read_with


def small_pages(path: Path) -> Path:
    """Store a database anew in pages that hold a few rows each, as a batch of the loops is whole pages."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")
    connection.close()
    return path


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("streams")
    found = {
        "every kind of record": write_every_record(folder / "complete.db"),
        "every kind of fault": spoil(write_every_record(folder / "spoiled.db")),
        "training": write_file(folder / "training.db", steps=1),
        "not in order": write_file(folder / "unsorted.db", damage.unsorted_times, enforce=False, steps=1),
    }
    runs = [make_rocpd.Run(steps=1), make_rocpd.Run(guid="other", steps=1, process_id=7)]
    writers = make_rocpd.write_database(folder / "merged.db", runs)
    writers[0].connection.commit()
    writers[0].connection.close()
    return {name: small_pages(path) for name, path in (found | {"merged": folder / "merged.db"}).items()}


NAMES = ["every kind of record", "every kind of fault", "training", "not in order", "merged"]


def comparable(captures: list[Capture]) -> list[dict[str, Any]]:
    """What the captures say, apart from the order of stats, which come by part."""
    found = [content(capture) for capture in captures]
    for capture in found:
        capture["event_stats"] = sorted(map(repr, capture["event_stats"]))
    return found


@pytest.mark.parametrize("rows", [7, 29])
@pytest.mark.parametrize("name", NAMES)
def test_parts_of_any_size_by_sqlite(
    databases: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str, rows: int
) -> None:
    expected = comparable(read_with(databases[name], compiled=False))
    monkeypatch.setattr(sqlite_file, "_ROWS_PER_FETCH", rows)
    monkeypatch.setattr(batches, "BATCH_ROWS", rows)
    found = read_with(databases[name], compiled=False)
    assert sum(capture.row_count("device_events") for capture in found) > rows
    assert comparable(found) == expected


@pytest.mark.parametrize("rows", [12, 31])
@pytest.mark.parametrize("name", NAMES)
def test_parts_of_any_size_by_the_loops(
    databases: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str, rows: int
) -> None:
    expected = comparable(read_with(databases[name], compiled=False))
    monkeypatch.setattr(sqlite_pages, "BATCH_ROWS", rows)
    monkeypatch.setattr(batches, "BATCH_ROWS", rows)
    # The loops for numbers in texts take a few, too.
    monkeypatch.setattr(rocm_arguments, "_COMPILED_FROM_ROWS", rows)
    assert comparable(read_with(databases[name], compiled=True)) == expected


def test_the_loops_do_read_the_parts(databases: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests above rely on: no table is left to SQLite because a page has more rows than a batch."""

    def fail(*_arguments: object) -> None:
        raise AssertionError("SQLite was asked for rows")

    monkeypatch.setattr(sqlite_pages, "BATCH_ROWS", 12)
    monkeypatch.setattr(sqlite_file, "_from_tuples", fail)
    (capture,) = read_with(databases["every kind of record"], compiled=True)
    assert capture.row_count("device_events") > 12


def test_a_stream_has_batches_of_the_size_that_is_stored_well(
    databases: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_ROWS_PER_FETCH", 5)
    monkeypatch.setattr(batches, "BATCH_ROWS", 16)
    with SqliteFile(databases["training"], compiled=False) as file:
        (process,) = rocpd.read_processes(file)
        capture = read_capture(process)
        assert "device_events" not in capture.tables
        sizes: dict[str, list[int]] = {}
        for table, rows in capture.stream:
            sizes.setdefault(table, []).append(rows.num_rows)
    for counts in sizes.values():
        assert set(counts[:-1]) <= {16}
        assert 0 < counts[-1] <= 16
    assert capture.streamed_events == sum(sizes["device_events"]) + sum(sizes["host_events"])
