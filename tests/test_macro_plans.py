"""How DuckDB answers a macro for one capture of many: by sorts alone, and the others stay unread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tracewh.views.macro_catalog import load_macros

CALLS = {
    "v1.interval_union": "v1.interval_union('_a', stream)",
    "v1.interval_islands": "v1.interval_islands('_a', stream)",
    "v1.interval_gaps": "v1.interval_gaps('_a', stream)",
    "v1.interval_intersection": "v1.interval_intersection('_a', '_b', stream)",
    "v1.interval_subtraction": "v1.interval_subtraction('_a', '_b', stream)",
    "v1.interval_exclusive": "v1.interval_exclusive('_a', stream + 1, stream)",
    "v1.interval_coverage": "v1.interval_coverage('_a', '_b', id)",
    "v1.interval_containment": "v1.interval_containment('_a', id, '_b', id, stream)",
}
RELATIONS = (
    "WITH _a AS (SELECT a.* FROM a WHERE a.stream < 3), "
    "_b AS (SELECT b.capture_id, b.device_id, b.stream, b.start_ps + 1 AS start_ps, b.end_ps, b.id FROM b)"
)
each_call = pytest.mark.parametrize("name", CALLS)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA v1")
        for macro in load_macros():
            connection.execute(macro.definition)
        for table in ("a", "b"):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT i AS id, i // 1000 AS capture_id, i % 2 AS device_id, "
                "i % 5 AS stream, i AS start_ps, i + 7 AS end_ps FROM range(50000) AS r (i)"
            )
        for name, call in CALLS.items():
            view = f"v1.used_{name.split('.')[1]}"
            connection.execute(f"CREATE VIEW {view} AS {RELATIONS} SELECT * FROM {call} AS c")
        yield connection


def plan(connection: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    """All operators of a query for one capture of a view that calls the macro."""
    view = f"v1.used_{name.split('.')[1]}"
    (row,) = connection.execute(f"EXPLAIN (FORMAT JSON) FROM {view} WHERE capture_id = 7").fetchall()
    return list(below(json.loads(row[1])))


def below(operators: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for operator in operators:
        yield operator
        yield from below(operator["children"])


def test_every_macro_is_called() -> None:
    assert sorted(CALLS) == [macro.name for macro in load_macros()]


@each_call
def test_nothing_is_joined(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    names = {operator["name"] for operator in plan(connection, name)}
    assert "WINDOW" in names
    assert not {operator for operator in names if "JOIN" in operator or "PRODUCT" in operator}


@each_call
def test_a_filter_on_the_capture_reaches_every_scan(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    scans = [
        operator["extra_info"] for operator in plan(connection, name) if "Table" in operator["extra_info"]
    ]
    read = {str(scan["Table"]).rsplit(".", 1)[-1] for scan in scans}
    assert read == ({"a", "b"} if "_b" in CALLS[name] else {"a"})
    for scan in scans:
        assert "capture_id=7" in str(scan.get("Filters", "")).replace(" ", "")


@each_call
def test_a_macro_reads_each_relation_once(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    scans = [operator for operator in plan(connection, name) if "Table" in operator["extra_info"]]
    assert len(scans) == CALLS[name].count("'_")
