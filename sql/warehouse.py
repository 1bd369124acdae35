"""Opening a warehouse file: one DuckDB database with the schema and the views of this version."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import duckdb

from tracewh.ingest.errors import QueryError, WarehouseError
from tracewh.ingest.piped import PIPED_RUN
from tracewh.sql.database_file import connect, reason
from tracewh.sql.kept_metrics import mark_metrics_of_new_views
from tracewh.sql.kept_views import keep_rows_of_new_views, keep_rows_of_op_names
from tracewh.sql.pattern_answers import remember_matches
from tracewh.sql.rows import first_row
from tracewh.sql.schema_files import SCHEMA_VERSION, create_schema
from tracewh.sql.view_install import install_views, outdated_views
from tracewh.views.catalog import View, load_views

# How long an opener waits for another process to let go of the file.
DEFAULT_WAIT_SECONDS = 10.0
_LOAD_SETTINGS = {"memory_limit": "1GB", "threads": "1"}


@dataclass(frozen=True)
class RemovedRun:
    """What `remove_run` took out; `rows` counts all tables."""

    run_name: str
    captures: int
    rows: int


class Warehouse:
    """An open warehouse. Use `Warehouse.open`; works as a context manager."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, read_only: bool, is_new: bool):
        self.path = path
        self.connection = connection
        self.read_only = read_only
        self._is_new = is_new

    @classmethod
    def open(
        cls, path: str | Path, read_only: bool = True, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> Warehouse:
        """Open the warehouse at `path`; for writing, create it and bring its views up to date.

        Raises WarehouseError where the file is missing (read-only), is no warehouse, has a newer schema,
        holds a run whose ingest was cut short (read-only: else what is kept of it is computed), or stays
        locked by another process for `wait_seconds`.
        """
        path = Path(path)
        if not path.exists() and read_only:
            raise WarehouseError(f"{path}: no warehouse there. Make one with `tracewh ingest RUN -w {path}`.")
        if not path.absolute().parent.is_dir():
            raise WarehouseError(f"{path}: its directory does not exist. Create it, or choose another place.")
        if path.exists() and not path.is_file():
            raise WarehouseError(f"{path}: not a regular file. Choose another place with -w.")
        if not read_only and path.exists() and not path.stat().st_size:
            # A process that died while it made the warehouse left it; DuckDB takes it for no database.
            path.unlink()
        existed = path.exists()
        connection = connect(path, read_only, wait_seconds)
        try:
            views = load_views()
            is_new = not read_only and _is_empty(connection)
            if is_new:
                with transaction(connection):
                    create_schema(connection)
                    install_views(connection, views)
            else:
                _check_schema(path, connection)
                if read_only:
                    _check_finished(path, connection)
                else:
                    _bring_up_to_date(connection, views)
        except BaseException:
            connection.close()
            if not existed:
                path.unlink(missing_ok=True)
            raise
        return cls(path, connection, read_only, is_new)

    def sql(self, query: str) -> duckdb.DuckDBPyRelation | None:
        """Run `query`; return its rows as a DuckDB relation, or None for a statement without a result.

        Of several statements only the last may return rows. Raises QueryError with the database's reason.
        """
        try:
            statements = self.connection.extract_statements(_without_tail(query))
            for statement in statements[:-1]:
                if statement.type == duckdb.StatementType.SELECT:
                    raise QueryError(
                        "only the last of several statements may return rows; run them one by one"
                    )
                self.connection.execute(statement).fetchall()
            if not statements:
                return None
            last = statements[-1]
            if duckdb.ExpectedResultType.NOTHING not in last.expected_result_type:
                return self.connection.sql(last.query)
            self.connection.execute(last).fetchall()
        except duckdb.Error as error:
            raise QueryError(reason(error)) from error
        return None

    def remove_run(self, name: str) -> RemovedRun:
        """Delete a run and all that belongs to it. Raises WarehouseError where there is no such run."""
        found = first_row(self.connection, "SELECT run_id FROM main.runs WHERE run_name = ?", [name])
        if found is None:
            known = [
                row[0]
                for row in self.connection.execute("SELECT run_name FROM main.runs ORDER BY 1").fetchall()
            ]
            listed = ", ".join(known) if known else "none"
            raise WarehouseError(f"{self.path}: no run named {name}. It holds: {listed}.")
        run_id = int(found[0])
        captures = [
            int(row[0])
            for row in self.connection.execute(
                "SELECT capture_id FROM main.captures WHERE run_id = ?", [run_id]
            ).fetchall()
        ]

        with transaction(self.connection):
            removed = sum(
                delete_everywhere(self.connection, "capture_id", capture_id) for capture_id in captures
            )
            removed += delete_everywhere(self.connection, "run_id", run_id)
            removed += delete_unused_modules(self.connection)
            # A run may have had rules of its own.
            remember_matches(self.connection)
            keep_rows_of_op_names(self.connection)
        return RemovedRun(name, len(captures), removed)

    def close(self) -> None:
        """Close the file. A warehouse that was created and got no run is removed again."""
        try:
            # A connection of its own sees what is committed, and nothing of a statement that was interrupted.
            is_empty = self._is_new and not self.connection.cursor().execute("FROM main.runs").fetchall()
        finally:
            self.connection.close()
        if is_empty:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def loading(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Set DuckDB for what is written inside; afterwards it is as before.

    Rows that are loaded are not read again soon, yet by default they would fill most of the machine's memory.
    A batch has too few rows to be shared between threads.
    """
    before = {name: first_row(connection, "SELECT current_setting(?)", [name]) for name in _LOAD_SETTINGS}
    for name, value in _LOAD_SETTINGS.items():
        connection.execute(f"SET {name} = '{value}'")
    try:
        yield
    finally:
        # As of _roll_back.
        with suppress(duckdb.ConnectionException):
            for name, row in before.items():
                assert row is not None
                connection.execute(f"SET {name} = '{row[0]}'")


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All or nothing: what happens inside is committed at the end, or rolled back on an error."""
    connection.begin()
    try:
        yield
    except BaseException:
        _roll_back(connection)
        raise
    connection.commit()


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.rollback()
    except duckdb.InterruptException:
        # Ctrl-C asks for an interrupt more than once, and one of them met the rollback.
        connection.rollback()
    except duckdb.ConnectionException:
        # Ctrl-C may also come before the end of the block is noticed: then the file is closed first.
        pass


def delete_everywhere(connection: duckdb.DuckDBPyConnection, column: str, value: int) -> int:
    """Delete the rows of every table that has `column`, where it is `value`; return how many.

    Runs in the caller's transaction.
    """
    tables = connection.execute(
        "SELECT c.table_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_oid) "
        "WHERE c.database_name = current_database() AND c.schema_name = 'main' AND c.column_name = ? "
        "ORDER BY 1",
        [column],
    ).fetchall()
    removed = 0
    for (table,) in tables:
        row = first_row(connection, f"DELETE FROM main.{table} WHERE {column} = ?", [value])
        removed += int(row[0]) if row else 0
    return removed


def delete_unused_modules(connection: duckdb.DuckDBPyConnection) -> int:
    """Delete the HLO modules that no capture refers to any more; return the number of rows.

    Runs in the caller's transaction.
    """
    unused = connection.execute(
        "SELECT module_id FROM main.hlo_modules ANTI JOIN main.hlo_programs USING (module_id)"
    ).fetchall()
    return sum(delete_everywhere(connection, "module_id", module_id) for (module_id,) in unused)


def _is_empty(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database holds nothing: it is new, or its maker died before the first commit."""
    row = first_row(
        connection, "SELECT COUNT(*) FROM duckdb_tables() WHERE database_name = current_database()"
    )
    return row == (0,)


def _check_schema(path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    try:
        row = first_row(connection, "SELECT MAX(version) FROM main.schema_version")
    except duckdb.CatalogException as error:
        raise WarehouseError(
            f"{path}: a DuckDB file, but not a warehouse of tracewh. Choose another file with -w."
        ) from error
    version = None if row is None else row[0]
    if version != SCHEMA_VERSION:
        raise WarehouseError(
            f"{path}: has schema {version}, this tracewh knows schema {SCHEMA_VERSION}. "
            "Use the tracewh that wrote it, or ingest into a new file."
        )


def _check_finished(path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    row = first_row(
        connection,
        "SELECT r.run_name, r.path FROM main.unfinished_runs JOIN main.runs AS r USING (run_id) "
        "ORDER BY r.run_id",
    )
    if row is not None:
        run, place = row
        again = shlex.join(["tracewh", "ingest", "-" if place == str(PIPED_RUN) else place, "-w", str(path)])
        away = shlex.join(["tracewh", "rm", run, "-w", str(path)])
        raise WarehouseError(
            f"{path}: the ingest of run {run} was cut short, so that answers would be wrong. "
            f"Ingest it again with `{again}`, or remove it with `{away}`."
        )


def _bring_up_to_date(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> None:
    from tracewh.sql.unfinished_runs import finish_interrupted_runs

    if outdated_views(connection, views):
        with transaction(connection):
            installed = install_views(connection, views)
            keep_rows_of_new_views(connection, installed)
            mark_metrics_of_new_views(connection, installed)
    if first_row(connection, "SELECT 1 FROM main.unfinished_runs LIMIT 1") is not None:
        with transaction(connection):
            finish_interrupted_runs(connection)


def _without_tail(query: str) -> str:
    """`query` without the comments and semicolons at its end, which DuckDB's relations do not accept."""
    text = query.encode()
    tokens = list(duckdb.tokenize(query))
    while tokens:
        offset, kind = tokens.pop()
        if kind != duckdb.token_type.comment and text[offset : offset + 1] != b";":
            break
        text = text[:offset]
    return text.decode()
