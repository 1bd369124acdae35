"""Opening a warehouse, querying it, and what can be wrong with the file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import tracewh
from tracewh.ingest.errors import QueryError, UnreadableFile, WarehouseError
from tracewh.sql.ingestion import IngestOptions, SilentProgress, ingest_path
from tracewh.sql.schema_files import SCHEMA_VERSION
from tracewh.sql.warehouse import Warehouse, loading, transaction

CPU_RUN = Path(__file__).parents[1] / "fixtures" / "cpu_train"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("warehouse") / "w.duckdb"
    tracewh.ingest_run(CPU_RUN, warehouse=path)
    return path


def test_relation_becomes_frames(warehouse: Path) -> None:
    with tracewh.open(warehouse) as handle:
        relation = handle.sql("SELECT run_name, step_count FROM v1.captures")
        assert relation.fetchall() == [("cpu_train", 3)]
        assert relation.df().to_dict("list") == {"run_name": ["cpu_train"], "step_count": [3]}
        assert relation.pl().rows() == [("cpu_train", 3)]
        assert relation.to_arrow_table().to_pylist() == [{"run_name": "cpu_train", "step_count": 3}]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT 1", [(1,)]),
        ("SELECT 1;", [(1,)]),
        ("SELECT 1; -- why\n", [(1,)]),
        ("SELECT 'é;' -- é\n;", [("é;",)]),
        ("SET threads = 1; SELECT 2", [(2,)]),
        ("SET threads = 1", None),
        ("-- nothing", None),
        ("", None),
    ],
)
def test_statements(warehouse: Path, query: str, rows: list[tuple[object, ...]] | None) -> None:
    with tracewh.open(warehouse) as handle:
        relation = handle.sql(query)
        assert (None if relation is None else relation.fetchall()) == rows


def test_two_results_are_refused_rather_than_one_dropped(warehouse: Path) -> None:
    with tracewh.open(warehouse) as handle, pytest.raises(QueryError, match="one by one"):
        handle.sql("SELECT 1; SELECT 2")


@pytest.mark.parametrize("query", ["DELETE FROM runs", "CREATE TABLE t (a INTEGER)", "DROP VIEW v1.steps"])
def test_reading_cannot_write(warehouse: Path, query: str) -> None:
    before = warehouse.read_bytes()
    with tracewh.open(warehouse) as handle, pytest.raises(QueryError, match="read-only"):
        handle.sql(query)
    assert warehouse.read_bytes() == before


def test_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="tracewh ingest"):
        tracewh.open(tmp_path / "none.duckdb")
    assert not list(tmp_path.iterdir())


def test_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 1000)
    with pytest.raises(WarehouseError, match="not a warehouse"):
        tracewh.open(path)
    assert path.read_text().startswith("not a database")


def test_database_that_is_no_warehouse(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    duckdb.connect(str(path)).execute("CREATE TABLE mine (a INTEGER)").close()
    with pytest.raises(WarehouseError, match="not a warehouse of tracewh"):
        tracewh.open(path, read_only=False)


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer.duckdb"
    with Warehouse.open(path, read_only=False) as handle:
        handle.connection.execute("INSERT INTO runs VALUES (1, 'r', '/r', NULL, NULL)")
        handle.connection.execute("UPDATE schema_version SET version = 999")
    with pytest.raises(WarehouseError, match="schema 999"):
        tracewh.open(path)


def test_older_schema_is_refused_with_both_versions_and_a_way_on(tmp_path: Path) -> None:
    path = tmp_path / "older.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE schema_version (version INTEGER, applied_by VARCHAR)")
        connection.execute("INSERT INTO schema_version VALUES (1, '0.1.0')")
        # The launch columns were on the events themselves.
        connection.execute("CREATE TABLE device_events (capture_id BIGINT, grid_x BIGINT)")
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(WarehouseError) as refusal:
            tracewh.open(path, read_only=read_only)
        message = str(refusal.value)
        assert str(path) in message
        assert f"schema 1, this tracewh knows schema {SCHEMA_VERSION}" in message
        assert "ingest into a new file" in message
    assert path.read_bytes() == before


def test_new_warehouse_without_a_run_leaves_no_file(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "w.duckdb", read_only=False):
        pass
    assert not list(tmp_path.iterdir())


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="directory does not exist"):
        Warehouse.open(tmp_path / "no" / "w.duckdb", read_only=False)


def test_files_can_be_read_by_older_clients(warehouse: Path) -> None:
    connection = duckdb.connect(str(warehouse), read_only=True)
    tags = connection.execute(
        "SELECT tags FROM duckdb_databases() WHERE database_name = current_database()"
    ).fetchall()
    assert "v1.2" in str(tags), tags


def test_changed_views_are_installed_on_the_next_write(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as handle:
        handle.connection.execute("UPDATE view_versions SET fingerprint = 'old' WHERE view_name = 'v1.steps'")
        handle.connection.execute("CREATE OR REPLACE VIEW v1.steps AS SELECT 1 AS nothing")
    with Warehouse.open(warehouse, read_only=False) as handle:
        assert handle.sql("SELECT COUNT(DISTINCT step_num) FROM v1.steps").fetchall() == [(3,)]


def test_settings_of_a_load_end_with_it(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.xplane.pb"
    damaged.write_bytes(b"\x0a\x7f")
    settings = "SELECT current_setting('threads'), current_setting('memory_limit')"
    path = tmp_path / "w.duckdb"
    tracewh.ingest_run(CPU_RUN, warehouse=path)
    with Warehouse.open(path, read_only=False) as handle:
        handle.connection.execute("SET threads = 3; SET memory_limit = '2GiB'")
        before = handle.connection.execute(settings).fetchall()
        with loading(handle.connection):
            assert handle.connection.execute(settings).fetchall() != before
        assert handle.connection.execute(settings).fetchall() == before
        with pytest.raises(UnreadableFile):
            ingest_path(handle, damaged, IngestOptions(), SilentProgress())
        assert ingest_path(handle, CPU_RUN, IngestOptions(force=True), SilentProgress()).status == "loaded"
        assert handle.connection.execute(settings).fetchall() == before


def test_an_interrupt_in_a_transaction_stays_one(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Warehouse.open(tmp_path / "w.duckdb", read_only=False) as handle:
            handle.connection.begin()
            # The statement that the interrupt met leaves a transaction that refuses all that follows.
            with pytest.raises(duckdb.Error):
                handle.connection.execute("SELECT error('interrupted')").fetchall()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    # It is closed, and was new.
    assert not list(tmp_path.iterdir())


class InterruptedTwice:
    """A connection whose first rollback meets a late interrupt."""

    def __init__(self) -> None:
        self.rollbacks = 0

    def begin(self) -> None:
        pass

    def rollback(self) -> None:
        self.rollbacks += 1
        if self.rollbacks == 1:
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")


def test_an_interrupt_may_meet_the_rollback() -> None:
    connection = InterruptedTwice()
    with pytest.raises(KeyboardInterrupt), transaction(connection):  # type: ignore[arg-type]
        raise KeyboardInterrupt
    assert connection.rollbacks == 2
