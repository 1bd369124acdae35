"""Macro calls written out: what replaces what, and that the rows stay those of DuckDB's own macros."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
import sqlglot
from sqlglot.errors import ErrorLevel

from tracewh.sql.macro_expansion import MacroCallError, expanded_sql
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import View, load_views
from tracewh.views.macro_catalog import Macro, load_macros, macros_from_files

from .live_views import keep_rows
from .test_view_plans import CAPTURES, ROWS
from .view_text import macro_text

VIEWS = load_views()
PAIR = """\
WITH __rows AS (SELECT r.a AS a, p_value AS value FROM query_table(p_rows) AS r)
SELECT r.a AS a, r.value * 10 AS b FROM __rows AS r
JOIN query_table(p_others) AS o ON o.a = r.a WHERE p_value < p_limit"""


def pair() -> Macro:
    parameters = ("p_rows RELATION", "p_others RELATION", "p_value EXPRESSION", "p_limit EXPRESSION = NULL")
    return macros_from_files({"pair.sql": macro_text("v1.pair", PAIR, parameters=parameters)})[0]


def flat(sql: str) -> str:
    """The query written out, on one line."""
    return sqlglot.transpile(expanded_sql(sql, [pair()]), read="duckdb", write="duckdb")[0]


def test_a_call_becomes_a_subquery() -> None:
    assert flat("SELECT f.a AS a FROM v1.pair('_m', 'main.t', k, 5) AS f JOIN x AS x ON x.a = f.a") == (
        "SELECT f.a AS a FROM (WITH __rows AS (SELECT r.a AS a, k AS value FROM _m AS r) "
        "SELECT r.a AS a, r.value * 10 AS b FROM __rows AS r JOIN main.t AS o ON o.a = r.a WHERE k < 5) AS f "
        "JOIN x AS x ON x.a = f.a"
    )


def test_an_argument_keeps_its_bounds() -> None:
    sql = flat("SELECT f.a AS a FROM v1.pair('m', 't', k OR j, CASE WHEN k THEN 1 END + 2) AS f")
    assert "(k OR j) AS value" in sql
    assert "WHERE (k OR j) < (CASE WHEN k THEN 1 END + 2)" in sql


def test_an_argument_may_be_named_or_left_out() -> None:
    assert "WHERE k < 7" in flat("SELECT f.a AS a FROM v1.pair('m', 't', p_limit := 7, p_value := k) AS f")
    assert "WHERE k < NULL" in flat("SELECT f.a AS a FROM v1.pair('m', 't', k) AS f")


def test_a_column_of_an_argument_is_no_parameter() -> None:
    sql = flat("SELECT f.a AS a FROM v1.pair('m', 't', p_limit, p_value) AS f")
    assert "WHERE p_limit < p_value" in sql


def test_every_call_is_written_out() -> None:
    sql = flat(
        "WITH _f AS (SELECT f.a AS a FROM v1.pair('m', 't', k) AS f) "
        "SELECT f.a AS a FROM v1.pair('_f', 'm', k) AS f "
        "WHERE f.a IN (SELECT g.a FROM v1.pair('m', 'm', j) AS g)"
    )
    assert "v1" not in sql
    assert sql.count("WITH __rows AS") == 3
    assert "FROM _f AS r" in sql


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("v1.pair('m', 't') AS f", r"v1\.pair: p_value is not given; call it as v1\.pair\(p_rows, p_others"),
        ("v1.pair('m', 't', 1, 2, 3) AS f", "v1.pair: has no parameter for 3"),
        ("v1.pair('m', 't', 1, p_size := 3) AS f", "v1.pair: has no parameter for p_size := 3"),
        ("v1.pair('m', 't', 1, p_value := 3) AS f", "v1.pair: has no parameter for p_value := 3"),
        ("v1.pair(m, 't', 1) AS f", "v1.pair: p_rows is the name of a table, view or CTE in a string, not m"),
        ("v1.pair('m', 't', 1)", "v1.pair: give the call an alias"),
    ],
)
def test_a_wrong_call_is_an_error(call: str, message: str) -> None:
    with pytest.raises(MacroCallError, match=message):
        expanded_sql(f"SELECT a FROM {call}", [pair()])


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        # Three captures show as much as all.
        connection.execute(ROWS.replace(f"range({CAPTURES})", "range(3)"))
        install_views(connection, VIEWS)
        keep_rows(connection)
        yield connection


def test_views_call_macros() -> None:
    called = {reference for view in VIEWS for reference in view.references}
    assert called & {macro.name for macro in load_macros()}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_what_is_written_out_gives_the_same_rows(view: View, connection: duckdb.DuckDBPyConnection) -> None:
    native = connection.sql(f"FROM {view.name}")
    written_out = connection.sql(expanded_sql(view.sql, load_macros()))
    assert written_out.columns == native.columns
    assert written_out.types == native.types
    assert sorted(map(repr, written_out.fetchall())) == sorted(map(repr, native.fetchall()))


@pytest.mark.parametrize("dialect", ["spark", "clickhouse", "trino", "bigquery", "snowflake"])
@pytest.mark.parametrize("macro", load_macros(), ids=lambda macro: macro.name)
def test_macros_can_be_written_for_every_engine(macro: Macro, dialect: str) -> None:
    arguments = ["'main.captures'" if p.kind == "RELATION" else "capture_id + 1" for p in macro.parameters]
    sql = expanded_sql(f"SELECT m.capture_id AS a FROM {macro.name}({', '.join(arguments)}) AS m", [macro])
    (rendered,) = sqlglot.transpile(sql, read="duckdb", write=dialect, unsupported_level=ErrorLevel.RAISE)
    sqlglot.parse_one(rendered, read=dialect)
