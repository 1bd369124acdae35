"""Bring the views and macros that a warehouse holds in line with those that this version ships."""

from collections.abc import Sequence

import duckdb

from tracewh.ingest.errors import WarehouseError
from tracewh.views.catalog import View
from tracewh.views.macro_catalog import Macro, load_macros


def outdated_views(
    connection: duckdb.DuckDBPyConnection, views: Sequence[View], macros: Sequence[Macro] | None = None
) -> list[str]:
    """Names of the macros and views that `install_views` would create or replace, in order."""
    return [item.name for item in _changed(connection, views, macros)]


def install_views(
    connection: duckdb.DuckDBPyConnection, views: Sequence[View], macros: Sequence[Macro] | None = None
) -> list[str]:
    """Create and replace what differs from `views` and `macros` (by default the packaged ones).

    Macros come first, then parents before children, in the caller's transaction. Returns the names of
    `outdated_views`. Nothing is ever dropped: a released version stays queryable, and one that this version
    does not know may come from a newer one. Raises WarehouseError, naming the view or macro and its file,
    when the database refuses one.
    """
    changed = _changed(connection, views, macros)
    for schema in sorted({item.name.split(".")[0] for item in changed}):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for item in changed:
        try:
            connection.execute(item.definition)
        except duckdb.Error as error:
            folder = "views" if isinstance(item, View) else "sql/macros"
            raise WarehouseError(f"{item.name} ({folder}/{item.path}) cannot be created: {error}") from error
        # A conflict clause, since DuckDB checks the key against rows deleted in the same transaction.
        connection.execute(
            "INSERT OR REPLACE INTO main.view_versions (view_name, version, fingerprint) VALUES (?, ?, ?)",
            [item.name, item.version, item.fingerprint],
        )
    return [item.name for item in changed]


def _changed(
    connection: duckdb.DuckDBPyConnection, views: Sequence[View], macros: Sequence[Macro] | None
) -> list[View | Macro]:
    recorded: dict[str, str] = dict(
        connection.execute("SELECT view_name, fingerprint FROM main.view_versions").fetchall()
    )
    present = {
        name
        for (name,) in connection.execute(
            "SELECT schema_name || '.' || view_name FROM duckdb_views() "
            "WHERE database_name = current_database() AND NOT internal "
            "UNION ALL SELECT schema_name || '.' || function_name FROM duckdb_functions() "
            "WHERE database_name = current_database() AND function_type = 'table_macro' AND NOT internal"
        ).fetchall()
    }
    wanted: list[View | Macro] = [*(load_macros() if macros is None else macros), *views]
    return [
        item for item in wanted if recorded.get(item.name) != item.fingerprint or item.name not in present
    ]
