"""Create the tables of a new warehouse from the packaged SQL files."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

import duckdb

from tracewh import __version__
from tracewh.ingest.errors import WarehouseError
from tracewh.sql.rows import first_row

_SCHEMA_FILE = re.compile(r"([0-9]{3})_[a-z0-9_]+\.sql")


def _schema_files() -> list[tuple[int, Traversable]]:
    found = []
    for entry in (files("tracewh.sql") / "schema").iterdir():
        match = _SCHEMA_FILE.fullmatch(entry.name)
        if match:
            found.append((int(match[1]), entry))
    return sorted(found, key=lambda item: item[0])


def _reference_files() -> list[Traversable]:
    folder = files("tracewh.sql") / "reference"
    # A wheel has no empty folders, so without reference data there is none.
    entries = folder.iterdir() if folder.is_dir() else iter(())
    return sorted((entry for entry in entries if entry.name.endswith(".sql")), key=lambda entry: entry.name)


def table_definition(name: str) -> str | None:
    """Return the statement that creates a table, with its comments; None where there is no such table."""
    statement = re.compile(rf"^CREATE TABLE {re.escape(name)} \(.*?^\);", re.DOTALL | re.MULTILINE)
    found = (statement.search(file.read_text(encoding="utf-8")) for _, file in _schema_files())
    return next((match[0] for match in found if match), None)


SCHEMA_VERSION = max(number for number, _ in _schema_files())


def create_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every table, its reference data and the schema_version row, in the caller's transaction.

    Raises WarehouseError when the database already holds tables.
    """
    held = first_row(
        connection,
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() "
        "WHERE database_name = current_database() AND NOT internal ORDER BY ALL LIMIT 1",
    )
    if held is not None:
        raise WarehouseError(
            f"The database already holds tables ({held[0]} is one); create the warehouse in a new file."
        )
    for _, file in _schema_files():
        connection.execute(file.read_text(encoding="utf-8"))
    connection.execute("INSERT INTO main.schema_version VALUES (?, ?)", [SCHEMA_VERSION, __version__])
    for file in _reference_files():
        connection.execute(file.read_text(encoding="utf-8"))
