"""Files that are hostile, damaged or of another format: read safely, or refused with a reason."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tracewh.ingest import rocpd
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.sqlite_file import SqliteFile

from .rocpd_files import (
    FIXTURE,
    SHARED,
    Change,
    kind,
    make_rocpd,
    needs_shared,
    query,
    read_all,
    read_one,
    write,
)


def test_stored_code_is_never_run(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) AS {} FROM t"

    def change(writer: Any) -> None:
        execute = writer.connection.execute
        execute("DROP VIEW rocpd_string")
        execute(f"CREATE VIEW rocpd_string AS {endless.format('string')}")
        execute(f"CREATE VIEW rocpd_metadata_zz AS {endless.format('tag')}")
        execute(f"CREATE VIEW rocpd_event_zz AS {endless.format('stack_id')}")
        execute(
            f'ALTER TABLE "{writer.run.table("event")}" ADD COLUMN trap INTEGER '
            "GENERATED ALWAYS AS (abs(-9223372036854775807 - 1)) VIRTUAL"
        )
        execute(
            f'CREATE TRIGGER trap AFTER INSERT ON "{writer.run.table("string")}" BEGIN '
            f'DELETE FROM "{writer.run.table("event")}"; END'
        )

    path = write(tmp_path / "t.db", change, steps=1)
    with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
        query(path, f'SELECT trap FROM "rocpd_event_{make_rocpd.GUID.replace("-", "_")}"')
    capture = read_one(path)
    assert len(kind(capture, "kernel")) == 30
    assert capture.problems == []


def test_a_view_cannot_be_read_even_by_name(tmp_path: Path) -> None:
    with SqliteFile(write(tmp_path / "t.db")) as file:
        assert "kernels" not in file.tables
        with pytest.raises(UnreadableFile, match="kernels"):
            file.read("kernels", "kernels", ProblemCounter())


def test_tables_of_other_tools_are_ignored(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute("CREATE TABLE roc_optiq_notes (id INTEGER, note TEXT)")
        writer.connection.execute("INSERT INTO roc_optiq_notes VALUES (1, 'hello')")
        writer.connection.execute(f'CREATE INDEX roc_optiq_i ON "{writer.run.table("event")}" (stack_id)')

    assert read_one(write(tmp_path / "t.db", change, steps=1)).problems == []


def test_reading_leaves_the_directory_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", steps=1)
    before = path.read_bytes()
    read_all(path)
    assert [file.name for file in tmp_path.iterdir()] == ["t.db"]
    assert path.read_bytes() == before


def test_write_ahead_log_is_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wal.db"
    (writer,) = make_rocpd.write_database(path, [make_rocpd.Run(steps=1)])
    connection = writer.connection
    connection.commit()
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f'DELETE FROM "{writer.run.table("kernel_dispatch")}" WHERE id > 20')
    connection.commit()
    assert (tmp_path / "wal.db-wal").stat().st_size > 0
    assert len(kind(read_one(path), "kernel")) == 20  # 30 of them in the file proper
    connection.close()
    # Closed: the log is merged, and the header still says WAL.
    assert not (tmp_path / "wal.db-wal").exists()
    assert len(kind(read_one(path), "kernel")) == 20


def test_path_with_characters_of_a_uri(tmp_path: Path) -> None:
    assert len(read_all(write(tmp_path / "100%25 a?b#c.db", steps=1))) == 1


def test_text_file_named_db(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("these are not the rows you are looking for\n")
    assert rocpd.detect(path) == "not_sqlite"
    with pytest.raises(UnreadableFile, match=r"notes\.db is not a SQLite database"):
        read_all(path)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3", bytes(range(256)) * 64])
def test_files_that_are_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    assert rocpd.detect(path) == "not_sqlite"
    with pytest.raises(UnreadableFile, match=r"x\.db"):
        read_all(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"nowhere\.db cannot be read"):
        read_all(tmp_path / "nowhere.db")
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_all(tmp_path)


@pytest.mark.parametrize("kept_ratio", [0.02, 0.3, 0.75, 0.999])
def test_truncated_database(tmp_path: Path, kept_ratio: float) -> None:
    path = tmp_path / "cut.db"
    content = FIXTURE.read_bytes()
    path.write_bytes(content[: int(len(content) * kept_ratio)])
    with pytest.raises(UnreadableFile, match=r"cut\.db") as raised:
        read_all(path)
    assert "copy it again" in str(raised.value)


def test_damaged_pages(tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    content = bytearray(FIXTURE.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"bad\.db cannot be read as a SQLite database"):
        read_all(path)


def test_random_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "fuzz.db"
    content = FIXTURE.read_bytes()
    random = Random(20260101)
    refusals = []
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(random.choice((1, 8, 64))):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        path.write_bytes(damaged)
        try:
            read_all(path)
        except UnreadableFile as error:
            refusals.append(str(error))
    assert 0 < len(refusals) < 60
    assert all("fuzz.db" in refusal for refusal in refusals)


def make_tables(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def draft(writer: Any) -> None:
    table = writer.run.table("kernel_dispatch")
    writer.connection.execute(f'ALTER TABLE "{table}" ADD COLUMN track_id INTEGER')


def category_table(writer: Any) -> None:
    writer.connection.execute(f'CREATE TABLE "{writer.run.table("info_category")}" (id INTEGER)')


def compressed(writer: Any) -> None:
    writer.insert("metadata", tag="compression", value="lz4-frame-v1")


@pytest.mark.parametrize("change", [draft, category_table, compressed])
def test_drafts_of_schema_4_are_refused(tmp_path: Path, change: Change) -> None:
    path = write(tmp_path / "t.db", change)
    assert rocpd.detect(path) == "rocpd_v4_draft"
    with pytest.raises(UnreadableFile, match="schema 4"):
        read_all(path)


def test_databases_of_other_programs(tmp_path: Path) -> None:
    other = make_tables(tmp_path / "other.db", "CREATE TABLE customers (id INTEGER)")
    assert rocpd.detect(other) == "not_rocpd"
    with pytest.raises(UnreadableFile, match="rocprofv3"):
        read_all(other)
    rpd = make_tables(
        tmp_path / "trace.rpd",
        "CREATE TABLE rocpd_metadata (tag TEXT, value TEXT)",
        "INSERT INTO rocpd_metadata VALUES ('schema_version', '3')",
        "CREATE TABLE rocpd_api (id INTEGER)",
        "CREATE TABLE rocpd_op (id INTEGER)",
    )
    assert rocpd.detect(rpd) == "rpd_v2"
    without_events = write(
        tmp_path / "no_events.db",
        lambda writer: writer.connection.execute(f'DROP TABLE "{writer.run.table("event")}"'),
    )
    assert rocpd.detect(without_events) == "not_rocpd"
    odd = make_tables(
        tmp_path / "odd.db",
        "CREATE TABLE rocpd_metadata_1 (tag TEXT, value TEXT)",
        "CREATE TABLE rocpd_event_1 (id INTEGER)",
    )
    assert rocpd.detect(odd) == "not_rocpd"


@needs_shared
@pytest.mark.parametrize(
    ("name", "family", "message"),
    [
        ("negative/babeltrace2-rocpd-plugin-test_rocm_database.db", "not_rocpd", "rocprofv3"),
    ],
)
def test_public_files_of_other_families(name: str, family: str, message: str) -> None:
    assert rocpd.detect(SHARED / name) == family
    with pytest.raises(UnreadableFile, match=message) as raised:
        read_all(SHARED / name)
    assert Path(name).name in str(raised.value)


def test_a_database_in_the_middle_of_a_transaction_is_refused(tmp_path: Path) -> None:
    """Its file holds half of the change, and the journal what was there before: SQLite's lock says so."""
    path = write(tmp_path / "t.db", steps=1)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("CREATE TABLE spilled (value TEXT)")
    writer.executemany("INSERT INTO spilled VALUES (?)", [("x" * 4000,) for _ in range(100)])
    assert path.with_name("t.db-journal").stat().st_size > 0
    with pytest.raises(UnreadableFile, match="locked"):
        read_all(path)
    writer.execute("ROLLBACK")
    writer.close()
    assert len(read_all(path)) == 1
