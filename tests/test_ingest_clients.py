"""Other DuckDB clients at a warehouse, and the removal of a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh
from tracewh.ingest.errors import WarehouseError
from tracewh.sql.warehouse import Warehouse
from tracewh.views.catalog import load_views

from .ingest_runs import (
    CAPTURES,
    FIXTURES,
    SURROGATES,
    content,
    query,
    reading,
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


# --- other clients ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with all bundled XSpace runs."""
    warehouse = tmp_path_factory.mktemp("filled") / "w.duckdb"
    for name in CAPTURES:
        tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    return warehouse


def views_of(connection: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    rows = connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE database_name = ? AND schema_name = 'v1' ORDER BY 1",
        [database],
    ).fetchall()
    return [row[0] for row in rows]


def test_a_plain_client_reads_every_view(filled: Path) -> None:
    with duckdb.connect(str(filled), read_only=True) as connection:
        names = views_of(connection, "w")
        assert [f"v1.{name}" for name in names] == sorted(view.name for view in load_views())
        counts = {
            name: connection.execute(f"SELECT COUNT(*) FROM (SELECT * FROM v1.{name})").fetchone()
            for name in names
        }
    assert counts["captures"] == (3,)
    for name in names:
        assert counts[name] is not None


def rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A sum of doubles depends on their order, in the last digits."""
    return [
        tuple(float(f"{value:.9g}") if isinstance(value, float) else value for value in row) for row in rows
    ]


def test_an_attached_warehouse_answers_under_another_name(filled: Path) -> None:
    with duckdb.connect(str(filled), read_only=True) as connection:
        names = views_of(connection, "w")
        direct = {
            name: rounded(connection.execute(f"SELECT * FROM v1.{name} ORDER BY ALL").fetchall())
            for name in names
        }
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{filled}' AS elsewhere (READ_ONLY)")
        # Tables of the same names in front of the views' own must not be taken.
        connection.execute("CREATE TABLE main.captures AS SELECT 1 AS x")
        connection.execute("CREATE TABLE main.names AS SELECT 1 AS x")
        assert views_of(connection, "elsewhere") == names
        for name in names:
            found = connection.execute(f"SELECT * FROM elsewhere.v1.{name} ORDER BY ALL").fetchall()
            assert rounded(found) == direct[name], name


def test_views_need_no_extension_and_no_setting(filled: Path) -> None:
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(str(filled), read_only=True, config=settings) as connection:
        for name in views_of(connection, "w"):
            connection.execute(f"SELECT * FROM v1.{name} LIMIT 1").fetchall()


def test_reading_leaves_the_file_alone(filled: Path) -> None:
    before = filled.read_bytes()
    with tracewh.open(filled) as warehouse:
        relation = warehouse.sql("SELECT COUNT(*) FROM v1.captures")
        assert relation is not None
        assert relation.fetchall() == [(3,)]
    assert filled.read_bytes() == before


# --- removal ------------------------------------------------------------------------------------------------


def owned_rows(warehouse: Path, ids: Callable[[str], set[Any]]) -> dict[str, int]:
    """Rows that refer to a run, capture, artifact or device in `ids`, by table."""
    result = {}
    with reading(warehouse) as connection:
        columns = connection.execute(
            """SELECT c.table_name, c.column_name
            FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_oid)
            WHERE c.schema_name = 'main'
            AND c.column_name IN ('run_id', 'capture_id', 'artifact_id', 'device_id')"""
        ).fetchall()
        for table, column in columns:
            values = ", ".join(map(str, ids(column))) or "NULL"
            row = connection.execute(
                f"SELECT COUNT(*) FROM main.{table} WHERE {column} IN ({values})"
            ).fetchone()
            assert row is not None
            if row[0]:
                result[f"{table}.{column}"] = row[0]
    return result


@pytest.mark.parametrize("name", CAPTURES)
def test_a_removed_run_leaves_no_row(filled: Path, warehouse: Path, name: str) -> None:
    shutil.copyfile(filled, warehouse)
    run = f"run_id = (SELECT run_id FROM runs WHERE run_name = '{name}')"
    tables = {"run_id": "runs", "capture_id": "captures", "artifact_id": "artifacts", "device_id": "devices"}
    owned = {
        column: {row[0] for row in query(warehouse, f"SELECT {column} FROM {table} WHERE {run}")}
        for column, table in tables.items()
    }
    assert all(owned.values())
    assert owned_rows(warehouse, owned.__getitem__)
    kernels = "SELECT * FROM v1.kernel_stats JOIN v1.captures USING (capture_id)"
    others = query(warehouse, f"{kernels} WHERE NOT ({run}) ORDER BY ALL")
    with Warehouse.open(warehouse, read_only=False) as handle:
        removed = handle.remove_run(name)
    assert (removed.run_name, removed.captures) == (name, 1)
    assert owned_rows(warehouse, owned.__getitem__) == {}
    assert query(warehouse, "SELECT COUNT(*) FROM runs") == [(2,)]
    assert (
        query(warehouse, "SELECT * FROM v1.kernel_stats JOIN v1.captures USING (capture_id) ORDER BY ALL")
        == others
    )
    # It can come back, with the same content.
    tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    ids = SURROGATES | {"device_id"}
    assert content(warehouse, ids) == content(filled, ids)


def test_removing_an_unknown_run_names_those_held(filled: Path, warehouse: Path) -> None:
    shutil.copyfile(filled, warehouse)
    before = content(warehouse)
    with (
        Warehouse.open(warehouse, read_only=False) as handle,
        pytest.raises(WarehouseError, match="h200_moe_direct"),
    ):
        handle.remove_run("no such run")
    assert content(warehouse) == before
