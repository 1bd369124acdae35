"""Creating the tables of a new warehouse."""

import re
from pathlib import Path

import duckdb
import pytest

from tracewh import __version__
from tracewh.ingest.errors import WarehouseError
from tracewh.sql.schema_files import SCHEMA_VERSION, create_schema

SCHEMA_FOLDER = Path(__file__).parents[1] / "sql" / "schema"


def test_every_table_of_the_files_exists() -> None:
    declared = {
        name
        for path in SCHEMA_FOLDER.glob("[0-9]*.sql")
        for name in re.findall(r"^CREATE TABLE ([a-z_]+) \(", path.read_text(), re.MULTILINE)
    }
    with duckdb.connect() as connection:
        create_schema(connection)
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert "device_events" in declared
    assert declared <= tables


def test_version_is_the_highest_file_and_is_recorded_once() -> None:
    assert max(int(path.name[:3]) for path in SCHEMA_FOLDER.glob("[0-9]*.sql")) == SCHEMA_VERSION
    with duckdb.connect() as connection:
        create_schema(connection)
        rows = connection.execute("SELECT version, applied_by FROM main.schema_version").fetchall()
    assert rows == [(SCHEMA_VERSION, __version__)]


def test_a_database_with_tables_is_refused_untouched() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE measurements (a BIGINT)")
        with pytest.raises(WarehouseError, match=r"main\.measurements"):
            create_schema(connection)
        assert connection.execute("SELECT COUNT(*) FROM duckdb_tables()").fetchone() == (1,)


def test_rolls_back_with_the_callers_transaction() -> None:
    with duckdb.connect() as connection:
        connection.execute("BEGIN")
        create_schema(connection)
        connection.execute("ROLLBACK")
        assert connection.execute("SELECT COUNT(*) FROM duckdb_tables()").fetchone() == (0,)
