"""Strange folders and files of ROCm profilers: nothing is counted twice, mixed up, left behind or endless."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import tracewh
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocprof_json_sections import read_sections
from tracewh.ingest.rocprof_json_text import JsonCursor
from tracewh.ingest.sqlite_file import SqliteFile

from .generated_rocpd import GUID, layouts, twins, write_file
from .ingest_runs import query, statuses

RANKS = "SELECT process_id, process_index FROM captures ORDER BY process_id"
DEVICES = "SELECT hostname, device_type, device_ordinal FROM devices ORDER BY ALL"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "w.duckdb"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def table_of(connection: sqlite3.Connection, base: str) -> str:
    (name,) = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ?", [f"rocpd_{base}_%"]
    ).fetchone()
    return str(name)


def test_every_process_of_several_merged_files_has_a_rank_of_its_own(run: Path, warehouse: Path) -> None:
    ranks = [layouts.rank_run(rank, 4, steps=1) for rank in range(4)]
    for name, two in (("a", ranks[:2]), ("b", ranks[2:])):
        writers = layouts.write_database(run / f"{name}_results.db", two)
        writers[0].connection.commit()
        writers[0].connection.close()
    tracewh.ingest_run(run, warehouse=warehouse)
    expected = [(41337, 0), (41338, 1), (41339, 2), (41340, 3)]
    assert query(warehouse, RANKS) == expected
    # A file alone does not tell them, and they stay.
    assert tracewh.ingest_run(run / "b_results.db", warehouse=warehouse, force=True).captures == 2
    assert query(warehouse, RANKS) == expected


def test_files_that_were_merged_take_no_rank(run: Path, warehouse: Path) -> None:
    layouts.write_merged(run / "merged_results.db", ranks=3, steps=1)
    tracewh.ingest_run(run, warehouse=warehouse)
    layouts.write_ranks(run / "ranks", ranks=4, steps=1)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert [rank for _, rank in query(warehouse, RANKS)] == [0, 1, 2, 3]


def test_numbers_in_names_count_as_numbers(run: Path, warehouse: Path) -> None:
    for rank in (2, 10, 9):
        path = run / f"node{rank}" / "results.db"
        write_file(path, steps=1, process_id=rank, clock_start_ns=10**12 + rank)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, RANKS) == [(2, 0), (9, 1), (10, 2)]


def test_parts_of_a_run_in_any_order_have_ranks_of_their_own(tmp_path: Path, warehouse: Path) -> None:
    for rank in (1, 0):
        path = tmp_path / "all" / f"h{rank}" / "results.db"
        write_file(path, steps=1, process_id=rank, clock_start_ns=10**12 + rank)
        tracewh.ingest_run(path.parent, warehouse=warehouse, run_name="pair")
    assert sorted(rank for _, rank in query(warehouse, RANKS)) == [0, 1]
    tracewh.ingest_run(tmp_path / "all", warehouse=warehouse, run_name="pair")
    assert query(warehouse, RANKS) == [(0, 0), (1, 1)]


def test_a_richer_file_alone_keeps_the_rank_of_its_process(run: Path, warehouse: Path) -> None:
    (run.parent / "made").mkdir()
    ranks = layouts.write_ranks(run.parent / "made", ranks=3, steps=1)
    for path in ranks:
        twins.write_csv(path, run)
    tracewh.ingest_run(run, warehouse=warehouse)
    shutil.copy(ranks[1], run / "other_results.db")
    tracewh.ingest_run(run / "other_results.db", warehouse=warehouse, run_name="run")
    assert query(warehouse, RANKS) == [(41337, 0), (41338, 1), (41339, 2)]


def test_tables_beside_their_compressed_copies_count_once(run: Path, warehouse: Path) -> None:
    database = write_file(run.parent / "41337_results.db")
    for path in twins.write_csv(database, run):
        (run / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*) FROM device_events WHERE kind = 'kernel'") == [(90,)]
    files = {path.name for path in run.iterdir()}
    assert statuses(report).keys() == files
    assert {row[0] for row in query(warehouse, "SELECT path FROM artifacts")} == files
    assert tracewh.ingest_run(run, warehouse=warehouse).status == "already there"


def test_devices_of_a_capture_that_was_replaced_are_gone(run: Path, warehouse: Path) -> None:
    database = write_file(run.parent / "41337_results.db")
    twins.write_csv(database, run)
    tracewh.ingest_run(run, warehouse=warehouse)
    assert {row[0] for row in query(warehouse, DEVICES)} == {""}
    shutil.copy(database, run)
    tracewh.ingest_run(run, warehouse=warehouse)
    host = "mi300x-node"
    expected = [(host, "CPU", 0), (host, "CPU", 1), (host, "GPU", 0), (host, "GPU", 1)]
    assert query(warehouse, DEVICES) == expected


def test_a_database_that_grew_replaces_what_was_read_of_it(run: Path, warehouse: Path) -> None:
    path = write_file(run / "1_results.db")
    dispatches = "SELECT COUNT(*) FROM device_events WHERE kind = 'kernel'"
    connection = sqlite3.connect(path)
    table = table_of(connection, "kernel_dispatch")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    # The file itself stays as it is: all changes are in the log beside it.
    for left in (80, 20):
        connection.execute(f'DELETE FROM "{table}" WHERE id > ?', [left])
        connection.commit()
        tracewh.ingest_run(path, warehouse=warehouse)
        assert query(warehouse, dispatches) == [(left,)]
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    tracewh.ingest_run(path, warehouse=warehouse)
    assert query(warehouse, dispatches) == [(20,)]
    assert query(warehouse, "SELECT status, COUNT(*) FROM artifacts GROUP BY 1") == [("loaded", 1)]


def test_a_database_that_is_written_to_is_read_as_of_one_moment(tmp_path: Path) -> None:
    path = write_file(tmp_path / "1_results.db")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    table = table_of(connection, "kernel_dispatch")
    connection.execute(f'DELETE FROM "{table}" WHERE id > 80')
    connection.commit()
    with SqliteFile(path) as file:
        assert file.count(table) == 80
        connection.execute(f'DELETE FROM "{table}" WHERE id > 20')
        connection.commit()
        assert file.count(table) == 80
    connection.close()


def test_processes_of_two_guids_are_two_even_where_all_else_is_the_same(run: Path, warehouse: Path) -> None:
    for number in range(2):
        write_file(run / f"{number}_results.db", guid=f"{GUID[:-1]}{number}")
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*), COUNT(DISTINCT fingerprint) FROM captures") == [(2, 1)]


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_names_that_are_no_utf8(tmp_path: Path, warehouse: Path) -> None:
    run = tmp_path / os.fsdecode(b"run\xff")
    database = write_file(run / os.fsdecode(b"a\xfe_results.db"))
    twins.write_csv(database, run / "csv")
    (run / "csv" / "41337_kernel_trace.csv").rename(run / "csv" / os.fsdecode(b"41337\xfe_kernel_trace.csv"))
    (run / os.fsdecode(b"bad\xfe_results.db")).write_bytes(b"nothing")
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.run_name == r"run\xff"
    found = dict(query(warehouse, "SELECT path, status FROM artifacts"))
    assert found[r"a\xfe_results.db"] == "loaded"
    assert found[r"bad\xfe_results.db"] == "rejected"
    assert found[r"csv/41337\xfe_kernel_trace.csv"] == "merged"
    again = tracewh.ingest_run(run, warehouse=warehouse)
    assert (again.captures, len(again.artifacts)) == (0, len(report.artifacts))
    assert query(warehouse, "SELECT COUNT(*) FROM runs") == [(1,)]
    warehouse.unlink()
    for _ in range(2):
        assert tracewh.ingest_run(database, warehouse=warehouse).run_name == r"a\xfe_results"
        assert query(warehouse, "SELECT path FROM artifacts") == [(r"a\xfe_results.db",)]


def test_agents_without_end(run: Path, warehouse: Path) -> None:
    def multiply(writer: Any) -> None:
        table = writer.run.table("info_agent")
        columns = [row[1] for row in writer.connection.execute(f'PRAGMA table_info("{table}")')]
        values = ", ".join("a.id + 100 * n" if name == "id" else f'a."{name}"' for name in columns)
        numbers = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 5000)"
        writer.connection.execute(f'INSERT INTO "{table}" {numbers} SELECT {values} FROM "{table}" a, s')

    path = write_file(run / "1_results.db", multiply, enforce=False)
    with sqlite3.connect(path) as connection:
        table = table_of(connection, "info_agent")
        (agents,) = connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()
    connection.close()
    tracewh.ingest_run(run, warehouse=warehouse)
    found = "SELECT occurrences FROM ingest_problems WHERE problem = 'too_many_agents'"
    assert query(warehouse, found) == [(agents - 10_000,)]
    assert query(warehouse, "SELECT COUNT(*) FROM device_events WHERE kind = 'kernel'") == [(90,)]


def test_a_value_of_json_without_end(tmp_path: Path, warehouse: Path) -> None:
    path = tmp_path / "1_results.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"rocprofiler-sdk-tool": [{"metadata": "')
        for _ in range(160):
            file.write(bytes(1 << 20).replace(b"\0", b"A"))
        file.write(b'"}]}')
    with pytest.raises(UnreadableFile, match="byte 39: a value is larger"):
        tracewh.ingest_run(path, warehouse=warehouse)


def test_a_section_of_json_that_is_held_is_bounded() -> None:
    text = json.dumps({"agents": [{}] * 100_003}).encode()
    problems = ProblemCounter()
    sections = read_sections(JsonCursor(text, "x"), problems)
    assert len(sections.values["agents"]) == 100_000
    assert [(found.problem, found.occurrences) for found in problems.problems()] == [("too_many_rows", 3)]
