"""Warehouses for rows that a test writes by hand. Views take seconds to install: that is done once."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from tracewh.sql.kept_views import KEPT_TABLES
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

_numbers = count()


class LiveWarehouse:
    """A warehouse in which what an ingest keeps is computed anew before a query that follows a change."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._is_changed = False

    def execute(self, query: str, *parameters: Any) -> duckdb.DuckDBPyConnection:
        """As of a connection."""
        if not query.lstrip().upper().startswith(("SELECT", "WITH", "FROM", "EXPLAIN")):
            self._is_changed = True
        elif self._is_changed:
            keep_rows(self._connection)
            self._is_changed = False
        return self._connection.execute(query, *parameters)

    def executemany(self, query: str, *parameters: Any) -> None:
        """As of a connection."""
        self._is_changed = True
        self._connection.executemany(query, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> LiveWarehouse:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()


def keep_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute all that an ingest keeps, of all captures at once."""
    for table in KEPT_TABLES:
        connection.execute(f"DELETE FROM main.{table}")
        connection.execute(f"INSERT INTO main.{table} BY NAME SELECT * FROM v1._{table}")


def new_warehouse() -> duckdb.DuckDBPyConnection:
    """A new warehouse with all packaged views."""
    path = _folder() / f"{next(_numbers)}.duckdb"
    shutil.copy(_template(), path)
    connection = duckdb.connect(path)
    # It goes when the connection does.
    path.unlink()
    return connection


def live_warehouse() -> LiveWarehouse:
    """A new warehouse whose views follow each statement."""
    return LiveWarehouse(new_warehouse())


@cache
def _template() -> Path:
    path = _folder() / "template.duckdb"
    with duckdb.connect(path) as connection:
        create_schema(connection)
        install_views(connection, load_views())
    return path


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="tracewh-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
