"""Bring the views that a warehouse holds in line with the views that this version ships."""

from collections.abc import Sequence

import duckdb

from tracewh.ingest.errors import WarehouseError
from tracewh.views.catalog import View


def outdated_views(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> list[str]:
    """Names of the views that `install_views` would create or replace, in order."""
    return [view.name for view in _changed(connection, views)]


def install_views(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> list[str]:
    """Create and replace what differs from `views`, parents first, in the caller's transaction.

    Returns the names of `outdated_views`. No view is ever dropped: a released version stays queryable, and
    one that this version does not know may come from a newer one. Raises WarehouseError, naming the view and
    its file, when the database refuses one.
    """
    changed = _changed(connection, views)
    for schema in sorted({view.name.split(".")[0] for view in changed}):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for view in changed:
        try:
            connection.execute(f"CREATE OR REPLACE VIEW {view.name} AS\n{view.sql}")
        except duckdb.Error as error:
            raise WarehouseError(f"{view.name} (views/{view.path}) cannot be created: {error}") from error
        # A conflict clause, since DuckDB checks the key against rows deleted in the same transaction.
        connection.execute(
            "INSERT OR REPLACE INTO main.view_versions (view_name, version, fingerprint) VALUES (?, ?, ?)",
            [view.name, view.version, view.fingerprint],
        )
    return [view.name for view in changed]


def _changed(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> list[View]:
    recorded: dict[str, str] = dict(
        connection.execute("SELECT view_name, fingerprint FROM main.view_versions").fetchall()
    )
    present = {
        name
        for (name,) in connection.execute(
            "SELECT schema_name || '.' || view_name FROM duckdb_views() "
            "WHERE database_name = current_database() AND NOT internal"
        ).fetchall()
    }
    return [view for view in views if recorded.get(view.name) != view.fingerprint or view.name not in present]
