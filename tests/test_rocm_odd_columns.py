"""Columns of other types, or missing, and values that nobody writes: read or refused, never a crash."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tracewh.ingest.errors import UnreadableFile

from .rocpd_damaged import write_every_record
from .rocpd_files import problems, read_all, read_one, rows, write

KINDS = ("INTEGER", "TEXT", "REAL", "BLOB", "", "JSONB")
VALUES: tuple[Any, ...] = (
    *(None, 0, -1, 1, 2**63 - 1, -(2**63), 1e300, -0.5, 1.0, float("inf")),
    *("", "text", "{}", "[1]", "null", "true", "é", "12", "0x10", '{"a": 1}', "x" * 5000),
    *('{"flags": true, "message": 5}', '{"message": {"deep": [1]}}', b"", b"\0\xff", b"{}"),
)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of record, without the views, which would not let tables be replaced."""
    path = write_every_record(tmp_path_factory.mktemp("complete") / "t.db")
    connection = sqlite3.connect(path)
    views = connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall()
    for (view,) in views:
        connection.execute(f'DROP VIEW "{view}"')
    connection.commit()
    connection.close()
    return path


def redeclare(connection: sqlite3.Connection, table: str, column: str, kind: str, random: Random) -> None:
    """Store a table anew without constraints and with another type for a column."""
    columns = [row[1:3] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    key = " PRIMARY KEY" if column != "id" and random.random() < 0.8 else ""
    declared = ", ".join(
        f'"{name}" {kind if name == column else usual}{key if name == "id" else ""}'
        for name, usual in columns
    )
    connection.execute(f"CREATE TABLE fresh ({declared})")
    connection.execute(f'INSERT INTO fresh SELECT * FROM "{table}"')
    connection.execute(f'DROP TABLE "{table}"')
    connection.execute(f'ALTER TABLE fresh RENAME TO "{table}"')


@pytest.mark.parametrize("seed", range(40))
def test_columns_of_any_type_with_any_value(tmp_path: Path, complete: Path, seed: int) -> None:
    random = Random(seed)
    path = tmp_path / "t.db"
    shutil.copy(complete, path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA legacy_alter_table = ON")
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_%' ORDER BY name"
    tables = [table for (table,) in connection.execute(query)]
    for _ in range(random.choice((1, 2, 6))):
        table = random.choice(tables)
        columns = [name for _, name, *_ in connection.execute(f'PRAGMA table_info("{table}")')]
        column = random.choice(columns)
        redeclare(connection, table, column, random.choice(KINDS), random)
        if random.random() < 0.25 and len(columns) > 1:
            connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            continue
        rows_changed = random.choice(("", "WHERE rowid = 1", "WHERE rowid % 2 = 0"))
        # A key may have no value twice, and none but numbers.
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(
                f'UPDATE "{table}" SET "{column}" = ? {rows_changed}', (random.choice(VALUES),)
            )
    connection.commit()
    connection.close()
    # Both ways of reading are compared.
    with contextlib.suppress(UnreadableFile):
        read_all(path)


def redeclared(table: str, columns: str, *values: str) -> Any:
    def change(writer: Any) -> None:
        execute, name = writer.connection.execute, writer.run.table(table)
        execute("PRAGMA legacy_alter_table = ON")
        execute(f'DROP VIEW IF EXISTS "rocpd_{table}"')
        execute(f'DROP TABLE "{name}"')
        execute(f'CREATE TABLE "{name}" ({columns})')
        for row in values:
            execute(f'INSERT INTO "{name}" VALUES ({row})')

    return change


def test_agents_whose_columns_are_of_other_types(tmp_path: Path) -> None:
    columns = (
        "id INTEGER PRIMARY KEY, type BLOB, type_index TEXT, absolute_index REAL, name BLOB, extdata BLOB, "
        "note BLOB"
    )
    change = redeclared(
        "info_agent",
        columns,
        "2, X'677075', '0', 2.0, X'67667839ff', '{\"cu_count\": 304}', X'00ff'",
        "3, 5, 'one', 3.5, NULL, NULL, 'text'",
        "0, NULL, NULL, NULL, 12, 'no json', NULL",
    )
    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    described = [(device.device_type, device.ordinal, device.kind) for device in capture.devices]
    assert described == [("GPU", 0, "gfx9\\xff"), ("5", 0, None), ("UNKNOWN", 0, "12")]
    assert dict(capture.devices[0].attributes) == {
        "agent_id": "2",
        "cu_count": "304",
        "type_index": "0",
        "absolute_index": "2",
        "name": "gfx9\\xff",
        "note": "\0\\xff",
    }
    assert problems(capture)[("not_an_integer", "rocpd_info_agent.type_index")] == 1
    assert problems(capture)[("not_an_integer", "rocpd_info_agent.absolute_index")] == 1
    assert problems(capture)[("invalid_json", "rocpd_info_agent.extdata")] == 1


def test_agents_without_an_id_are_rejected(tmp_path: Path) -> None:
    """Nothing could refer to them, and an event without an agent is not theirs."""
    change = redeclared("info_agent", "id TEXT, type TEXT", "2, 'GPU'", "NULL, 'GPU'", "'x', 'CPU'")
    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert [device.device_type for device in capture.devices] == ["GPU"]
    assert problems(capture)[("missing_id", "rocpd_info_agent")] == 2
    assert problems(capture)[("not_an_integer", "rocpd_info_agent.id")] == 1
    without_ids = redeclared("info_agent", "type TEXT", "'GPU'", "'CPU'")
    capture = read_one(write(tmp_path / "u.db", without_ids, steps=1))
    assert capture.devices == []
    assert problems(capture)[("missing_id", "rocpd_info_agent")] == 2
    assert rows(capture, "device_events") == []
