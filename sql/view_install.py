"""Bring the views that a warehouse holds in line with the views that this version ships."""

from collections.abc import Sequence

import duckdb

from tracewh.ingest.errors import WarehouseError
from tracewh.views.catalog import View


def outdated_views(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> list[str]:
    """Names that `install_views` would create or replace, in order, then those that it would drop."""
    changed, retired = _differences(connection, views)
    return [view.name for view in changed] + retired


def install_views(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> list[str]:
    """Create, replace and drop what differs from `views` (parents first), in the caller's transaction.

    Returns the names of `outdated_views`. A view that somebody else put into the schema stays. Raises
    WarehouseError, naming the view and its file, when the database refuses one.
    """
    changed, retired = _differences(connection, views)
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
    for name in retired:
        connection.execute(f"DROP VIEW IF EXISTS {name}")
        connection.execute("DELETE FROM main.view_versions WHERE view_name = ?", [name])
    return [view.name for view in changed] + retired


def _differences(
    connection: duckdb.DuckDBPyConnection, views: Sequence[View]
) -> tuple[list[View], list[str]]:
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
    changed = [
        view for view in views if recorded.get(view.name) != view.fingerprint or view.name not in present
    ]
    return changed, sorted(recorded.keys() - {view.name for view in views})
