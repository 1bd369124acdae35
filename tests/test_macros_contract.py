"""The packaged macros: portable, documented as they are, and tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tracewh.sql.lint import lint_header, lint_macro
from tracewh.sql.warehouse import Warehouse
from tracewh.views.macro_catalog import Macro, load_macros

from .small_warehouse import make_small_warehouse

SQL_TESTS = Path(__file__).parent / "sql"
# An argument of a type that no column of a macro has by itself.
ARGUMENTS = {"RELATION": "'_rows'", "EXPRESSION": "CAST(1 AS SMALLINT)"}

each_macro = pytest.mark.parametrize("macro", load_macros(), ids=lambda macro: macro.name)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    path = make_small_warehouse(tmp_path_factory.mktemp("small") / "small.duckdb")
    with Warehouse.open(path) as warehouse:
        yield warehouse.connection


@each_macro
def test_query_is_portable(macro: Macro) -> None:
    assert "\n".join(map(str, lint_macro(macro))) == ""


@each_macro
def test_header_is_complete(macro: Macro) -> None:
    assert "\n".join(map(str, lint_header(macro))) == ""


@each_macro
def test_header_columns_are_those_of_the_result(macro: Macro, connection: duckdb.DuckDBPyConnection) -> None:
    arguments = ", ".join(ARGUMENTS[parameter.kind] for parameter in macro.parameters)
    described = connection.execute(
        "DESCRIBE WITH _rows AS (SELECT capture_id, device_id, start_ps, end_ps FROM device_events) "
        f"SELECT * FROM {macro.name}({arguments})"
    ).fetchall()
    types = {"SMALLINT": "ANY"}
    assert [(column.name, column.type) for column in macro.columns] == [
        (row[0], types.get(row[1], row[1])) for row in described
    ]


@each_macro
def test_optional_arguments_may_be_left_out(macro: Macro, connection: duckdb.DuckDBPyConnection) -> None:
    needed = [parameter for parameter in macro.parameters if not parameter.is_optional]
    arguments = ["'device_events'" if parameter.kind == "RELATION" else "1" for parameter in needed]
    result = connection.sql(f"FROM {macro.name}({', '.join(arguments)})")
    assert result.columns == [column.name for column in macro.columns]


@each_macro
def test_example_runs(macro: Macro, connection: duckdb.DuckDBPyConnection) -> None:
    assert macro.name in macro.example
    connection.execute(macro.example).fetchall()


@each_macro
def test_macro_has_a_test_of_its_own(macro: Macro) -> None:
    path = SQL_TESTS / "macros" / macro.path.replace(".sql", ".test")
    assert re.search(rf"\b{re.escape(macro.name)}\(", path.read_text(encoding="utf-8"))
