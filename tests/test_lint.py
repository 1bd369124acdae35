"""The lint of the portable SQL subset: for each rule, what it refuses and the closest thing that it takes."""

from dataclasses import replace

import pytest
import sqlglot
from sqlglot.errors import ErrorLevel

from tracewh.sql.lint import Finding, lint_header, lint_macro, lint_view
from tracewh.views.catalog import View, views_from_files
from tracewh.views.macro_catalog import Macro, macros_from_files

from .view_text import macro_text, view_text, views_of


def lint(sql: str) -> list[Finding]:
    return lint_view(views_of({"v1.x": sql})["v1.x"])


def select(expression: str, source: str = "main.device_events AS d") -> str:
    return f"SELECT {expression} AS result FROM {source}"


def over(function: str, window: str) -> str:
    return select(f"{function} OVER ({window})")


def walk(step: str, first: str = "SELECT r.scope_range_id AS id FROM main.scope_ranges AS r") -> str:
    return f"WITH RECURSIVE _w AS ({first} UNION ALL {step}) SELECT w.id AS id FROM _w AS w"


KEY = "d.start_ps NULLS FIRST"
ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
PAIR = "main.steps AS s JOIN main.captures AS c"

REFUSED = [
    ("parse", "SELECT FROM WHERE"),
    ("parse", "CREATE TABLE t (a BIGINT)"),
    ("parse", "VALUES (1, 2)"),
    ("function", select("LOWER(d.kind)")),
    ("function", select("MEDIAN(d.start_ps)")),
    ("function", select("QUANTILE_CONT(d.start_ps, 5e-1)")),
    ("function", select("LOG(d.start_ps)")),
    ("function", select("REGEXP_REPLACE(d.kind, 'a', 'b')")),
    ("function", select("HASH(d.kind)")),
    ("function", select("MY_MACRO(d.kind)")),
    ("function", select("FIRST_VALUE(d.kind) OVER (ORDER BY d.start_ps NULLS FIRST)")),
    ("function", select("[d.start_ps, d.end_ps]")),
    ("function", select("{'a': d.start_ps}")),
    ("function", select("MAP {'a': d.start_ps}")),
    ("function", select("UNNEST(d.start_ps)")),
    ("function", "SELECT r.range AS result FROM RANGE(10) AS r"),
    ("node", select("IF(d.start_ps > 0, 1, 2)")),
    ("node", select("TRY_CAST(d.kind AS BIGINT)")),
    ("node", select("d.kind ILIKE 'a%'")),
    ("node", select("d.start_ps[1]")),
    ("node", select("d.start_ps IS TRUE")),
    ("node", select("d.start_ps IS DISTINCT FROM d.end_ps")),
    ("node", select("main.device_events.kind", "main.device_events")),
    ("node", select("SUM(d.start_ps) FILTER (WHERE d.kind = 'a')")),
    ("node", select("LAG(d.start_ps IGNORE NULLS) OVER (ORDER BY d.end_ps NULLS FIRST)")),
    ("node", select("d.kind") + " QUALIFY ROW_NUMBER() OVER (ORDER BY d.start_ps NULLS FIRST) = 1"),
    ("node", select("d.kind") + " LIMIT 1"),
    ("node", "SELECT DISTINCT ON (d.kind) d.kind AS kind FROM main.device_events AS d"),
    ("node", select("d.kind") + " UNION " + select("d.kind")),
    ("node", select("d.kind") + " UNION ALL BY NAME " + select("d.kind")),
    ("node", select("d.kind") + " EXCEPT " + select("d.kind")),
    ("node", select("d.kind") + " WHERE (d.kind, d.start_ps) IN (SELECT 'a', 1)"),
    ("node", "SELECT l.a AS a FROM main.runs AS r CROSS JOIN LATERAL (SELECT r.run_id AS a) AS l"),
    ("node", select("d.kind", "main.device_events AS d TABLESAMPLE 10%")),
    ("star", "SELECT * FROM main.runs"),
    ("star", "SELECT r.* FROM main.runs AS r"),
    ("star", "SELECT * EXCLUDE (path) FROM main.runs"),
    ("star", "FROM main.runs"),
    ("star", "WITH _v AS (VALUES (1)) SELECT v.col0 AS a FROM _v AS v"),
    ("join", f"SELECT c.run_id AS a FROM {PAIR} USING (capture_id)"),
    ("join", "SELECT c.run_id AS a FROM main.steps AS s NATURAL JOIN main.captures AS c"),
    ("join", "SELECT c.run_id AS a FROM main.steps AS s, main.captures AS c"),
    (
        "join",
        "SELECT c.run_id AS a FROM main.steps AS s ASOF JOIN main.captures AS c ON s.start_ps >= c.run_id",
    ),
    (
        "join",
        "SELECT s.step_id AS a FROM main.steps AS s SEMI JOIN main.captures AS c ON s.step_id = c.run_id",
    ),
    ("group-by", "SELECT d.kind AS kind, COUNT(*) AS n FROM main.device_events AS d GROUP BY ALL"),
    ("group-by", "SELECT d.kind AS kind, COUNT(*) AS n FROM main.device_events AS d GROUP BY 1"),
    ("group-by", "SELECT COUNT(*) AS n FROM main.device_events AS d GROUP BY d.start_ps + 1"),
    ("group-by", "SELECT COUNT(*) AS n FROM main.device_events AS d GROUP BY ROLLUP (d.kind)"),
    ("order-by", select("d.kind") + " ORDER BY 1"),
    ("order-by", select("d.kind") + " ORDER BY ALL"),
    ("order-by", select("MIN(d.kind ORDER BY d.start_ps)")),
    ("named-window", select("ROW_NUMBER() OVER w") + f" WINDOW w AS (ORDER BY {KEY})"),
    ("window-order", over("ROW_NUMBER()", "PARTITION BY d.kind")),
    ("frame", over("MAX(d.end_ps)", f"ORDER BY {KEY}")),
    ("frame", over("MAX(d.end_ps)", f"ORDER BY {KEY} RANGE BETWEEN 1 PRECEDING AND CURRENT ROW")),
    ("frame", over("MAX(d.end_ps)", f"ORDER BY {KEY} {ROWS} EXCLUDE TIES")),
    ("nulls-first", over("ROW_NUMBER()", "ORDER BY d.start_ps")),
    ("nulls-first", over("ROW_NUMBER()", f"ORDER BY {KEY}, d.end_ps NULLS LAST")),
    ("nulls-first", over("MAX(d.end_ps)", f"ORDER BY d.start_ps DESC NULLS FIRST {ROWS}")),
    ("table-name", "SELECT r.path AS path FROM runs AS r"),
    ("table-name", "SELECT r.path AS path FROM other.main.runs AS r"),
    ("table-name", "SELECT s.schema_name AS a FROM information_schema.schemata AS s"),
    ("table-name", "SELECT r.a AS a FROM 'runs.parquet' AS r"),
    (
        "cte-name",
        "WITH paths AS (SELECT r.path AS path FROM main.runs AS r) SELECT p.path AS path FROM paths AS p",
    ),
    ("cte-columns", "WITH _p (a) AS (SELECT r.path FROM main.runs AS r) SELECT p.a AS a FROM _p AS p"),
    (
        "cte-hint",
        "WITH _p AS MATERIALIZED (SELECT r.path AS a FROM main.runs AS r) SELECT p.a AS a FROM _p AS p",
    ),
    (
        "recursion",
        "WITH RECURSIVE _p AS (SELECT r.path AS a FROM main.runs AS r) SELECT p.a AS a FROM _p AS p",
    ),
    ("recursion", walk("SELECT w.id AS id FROM _w AS w", first="SELECT w.id AS id FROM _w AS w")),
    ("recursion", walk("SELECT w.id AS id FROM _w AS w JOIN _w AS v ON v.id = w.id")),
    ("recursion", walk("SELECT s.id AS id FROM (SELECT w.id AS id FROM _w AS w) AS s")),
    ("recursion", walk("SELECT w.id AS id FROM _w AS w LEFT JOIN main.steps AS s ON s.step_id = w.id")),
    ("recursion", walk("SELECT MAX(w.id) AS id FROM _w AS w")),
    ("recursion", walk("SELECT w.id AS id FROM _w AS w GROUP BY w.id")),
    ("recursion", walk("SELECT DISTINCT w.id AS id FROM _w AS w")),
    ("recursion", walk("SELECT LAG(w.id) OVER (ORDER BY w.id NULLS FIRST) AS id FROM _w AS w")),
    ("node", walk("SELECT w.id AS id FROM _w AS w").replace("UNION ALL", "UNION")),
    ("qualified-alias", "SELECT r.path FROM main.runs AS r"),
    ("qualified-alias", "WITH _p AS (SELECT r.path FROM main.runs AS r) SELECT p.path AS path FROM _p AS p"),
    ("qualified-alias", "SELECT p.path AS path FROM (SELECT r.path FROM main.runs AS r) AS p"),
    ("qualified-alias", "SELECT COUNT(*) FROM main.runs AS r"),
    ("shadowed-alias", "SELECT CAST(SUM(d.end_ps) AS BIGINT) AS end_ps FROM main.device_events AS d"),
    ("shadowed-alias", "SELECT MAX(d.end_ps) AS start_ps, MIN(d.start_ps) AS a FROM main.device_events AS d"),
    ("shadowed-alias", f"SELECT LAG(d.end_ps) OVER (ORDER BY {KEY}) AS end_ps FROM main.device_events AS d"),
    ("lateral-alias", "SELECT d.end_ps - d.start_ps AS long, long * 2 AS twice FROM main.device_events AS d"),
    ("lateral-alias", "SELECT d.end_ps - 1 AS long FROM main.device_events AS d WHERE long > 0"),
    (
        "lateral-alias",
        "SELECT d.end_ps - 1 AS long, COUNT(*) AS n FROM main.device_events AS d GROUP BY long",
    ),
    ("lateral-alias", "SELECT COALESCE(d.end_ps, 0) AS end_ps, end_ps - 1 AS a FROM main.device_events AS d"),
    ("type", select("CAST(d.start_ps AS HUGEINT)")),
    ("type", select("CAST(d.start_ps AS FLOAT)")),
    ("type", select("CAST(d.start_ps AS DECIMAL(18, 3))")),
    ("type", select("d.start_ps::UBIGINT")),
    ("type", select("CAST(d.start_ps AS BIGINT[])")),
    ("type", select("DATE '2026-01-01'")),
    ("double-to-integer", select("CAST(d.start_ps / 2 AS BIGINT)")),
    ("double-to-integer", select("CAST(1 + SQRT(d.start_ps) AS INTEGER)")),
    ("double-to-integer", select("CAST(COALESCE(d.start_ps, 5e-1) AS BIGINT)")),
    ("double-to-integer", select("CAST(CASE WHEN d.start_ps > 0 THEN 1e0 ELSE d.start_ps END AS BIGINT)")),
    ("double-to-integer", select("CAST(SUM(d.start_ps / 2) AS BIGINT)")),
    ("double-to-integer", select("CAST(-(CAST(d.start_ps AS DOUBLE) * 3) AS BIGINT)")),
    ("decimal", select("d.start_ps * 0.1")),
    ("decimal", select("d.start_ps + 1.")),
    ("denominator", select("d.start_ps / d.end_ps")),
    ("denominator", select("d.start_ps / 0")),
    ("denominator", select("d.start_ps / COUNT(*)")),
    ("denominator", select("d.start_ps / NULLIF(d.end_ps, 1)")),
    ("denominator", select("d.start_ps / CAST(d.end_ps AS DOUBLE)")),
    ("denominator", select("d.start_ps / (2 * d.end_ps)")),
    ("denominator", select("MOD(d.start_ps, d.end_ps)")),
    ("node", select("d.start_ps // 10")),
    ("sum-cast", select("SUM(d.start_ps)")),
    ("sum-cast", select("CAST(SUM(d.start_ps) AS INTEGER)")),
    ("sum-cast", select("CAST(SUM(d.start_ps) - SUM(d.end_ps) AS BIGINT)")),
    ("sum-cast", over("SUM(d.start_ps)", f"ORDER BY {KEY} {ROWS}")),
    ("regex", select("REGEXP_MATCHES(d.kind, 'kernel')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^kernel')")),
    ("regex", select("REGEXP_MATCHES(d.kind, 'kernel$')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^a|b$')")),
    ("regex", select(r"REGEXP_MATCHES(d.kind, '^\d+$')")),
    ("regex", select(r"REGEXP_MATCHES(d.kind, '^.*\bjvp.*$')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^(?:a)$')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^(?!a).*$')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^.*?a$')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^a$', 'i')")),
    ("regex", select("REGEXP_MATCHES(d.kind, '^' || d.copy_kind || '$')")),
    ("regex", select("REGEXP_EXTRACT(d.kind, '([a-z]+)', 1)")),
    ("regex", select("NULLIF(REGEXP_EXTRACT(d.kind, '([a-z]+)', 1), 'x')")),
    ("regex", select("NULLIF(REGEXP_EXTRACT(d.kind, '([a-z]+)'), '')")),
    ("regex", select("NULLIF(REGEXP_EXTRACT(d.kind, '([a-z])([a-z])', 2), '')")),
    ("regex", select(r"NULLIF(REGEXP_EXTRACT(d.kind, '(\w+)', 1), '')")),
    ("regex", select("NULLIF(REGEXP_EXTRACT(d.kind, d.copy_kind, 1), '')")),
    ("operator", select("d.kind ~ '^a$'")),
]

TAKEN = [
    select("COUNT(*)"),
    select("COUNT(DISTINCT d.kind)"),
    select("LEAST(ABS(d.start_ps), GREATEST(d.end_ps, 0))"),
    select("SQRT(LN(CAST(d.start_ps AS DOUBLE)))"),
    select("CASE WHEN d.kind LIKE 'a%' THEN 'x' || d.kind ELSE NULL END"),
    select("CASE d.kind WHEN 'a' THEN TRUE ELSE FALSE END"),
    select("d.start_ps BETWEEN 1 AND 2 OR d.kind IN ('a', 'b') AND NOT d.kind IS NULL"),
    select("d.kind") + " WHERE EXISTS (SELECT 1 FROM main.steps AS s WHERE s.step_id = d.device_id)",
    select("d.kind") + " WHERE d.device_id IN (SELECT s.step_id FROM main.steps AS s)",
    select("d.kind") + " WHERE d.device_id = (SELECT MAX(s.step_id) FROM main.steps AS s)",
    select("d.kind") + " UNION ALL SELECT 'other'",
    select("d.kind") + " ORDER BY result, d.start_ps",
    "SELECT DISTINCT kind FROM main.device_events",
    "WITH _v AS (SELECT v.a AS a FROM (VALUES (1), (2)) AS v (a)) SELECT v.a AS a FROM _v AS v",
    f"SELECT c.run_id AS a FROM {PAIR} ON s.capture_id = c.capture_id",
    "SELECT c.run_id AS a FROM main.steps AS s LEFT JOIN main.captures AS c ON s.capture_id = c.capture_id",
    "SELECT c.run_id AS a FROM main.steps AS s FULL OUTER JOIN main.captures AS c ON s.step_id = c.run_id",
    "SELECT c.run_id AS a FROM main.steps AS s CROSS JOIN main.captures AS c",
    "SELECT d.kind AS kind, COUNT(*) AS n FROM main.device_events AS d GROUP BY d.kind HAVING COUNT(*) > 1",
    over("ROW_NUMBER()", f"PARTITION BY d.kind ORDER BY {KEY}"),
    over("RANK()", "ORDER BY d.start_ps DESC NULLS FIRST"),
    over("LAG(d.end_ps)", f"ORDER BY {KEY}"),
    over("LEAD(d.end_ps, 1, 0)", f"ORDER BY {KEY}"),
    over("MAX(d.end_ps)", f"PARTITION BY d.kind ORDER BY {KEY} {ROWS}"),
    over("COUNT(*)", "PARTITION BY d.kind"),
    "WITH _p AS (SELECT r.path AS path FROM main.runs AS r) SELECT p.path AS path FROM _p AS p",
    "SELECT path FROM main.runs",
    walk(
        "SELECT r.scope_range_id AS id FROM _w AS w "
        "JOIN main.scope_ranges AS r ON r.parent_scope_range_id = w.id"
    ),
    "SELECT CAST(SUM(d.end_ps) AS BIGINT) AS total, MAX(d.start_ps) AS top FROM main.device_events AS d",
    "SELECT d.kind AS kind, d.end_ps - d.start_ps AS long, d.kind || 'x' AS b FROM main.device_events AS d",
    "SELECT COALESCE(d.end_ps, 0) AS end_ps, d.end_ps - 1 AS a FROM main.device_events AS d",
    "SELECT kind AS kind, kind || 'x' AS longer FROM main.device_events WHERE kind <> 'a'",
    select("CAST(d.kind AS VARCHAR)"),
    select("CAST(d.start_ps - MOD(d.start_ps, 10) AS INTEGER)"),
    select("CAST(NULL AS BOOLEAN)"),
    select("CAST(CASE WHEN d.start_ps / 2 > 1 THEN 1 ELSE 0 END AS BIGINT)"),
    select("d.start_ps * 1e-1 + 1.5e0"),
    select("CAST(d.start_ps AS DOUBLE) / NULLIF(d.end_ps, 0)"),
    select("d.start_ps / CAST(NULLIF(d.end_ps, 0) AS DOUBLE)"),
    select("d.start_ps / (2 * NULLIF(d.end_ps, 0))"),
    select("d.start_ps / 1e12"),
    select("d.start_ps / -2"),
    select("MOD(d.start_ps, NULLIF(d.end_ps, 0))"),
    select("CAST(SUM(d.start_ps) AS BIGINT)"),
    select("CAST(SUM(d.occupancy_ratio) AS DOUBLE)"),
    select("COALESCE(CAST(SUM(d.start_ps) AS BIGINT), 0)"),
    select("CAST(COALESCE(SUM(d.start_ps), 0) AS BIGINT)"),
    select(f"CAST(SUM(d.start_ps) OVER (ORDER BY {KEY} {ROWS}) AS BIGINT)"),
    select("REGEXP_MATCHES(d.kind, '^(.*/)?jvp[(].*$')"),
    select("REGEXP_MATCHES(d.kind, '^(a|b)[|(?][*+]?$')"),
    select("REGEXP_MATCHES(d.kind, d.copy_kind)"),
    select("NULLIF(REGEXP_EXTRACT(d.kind, '([a-z]+)', 1), '')"),
]


@pytest.mark.parametrize(("rule", "sql"), REFUSED)
def test_refused(rule: str, sql: str) -> None:
    assert rule in [finding.rule for finding in lint(sql)]


@pytest.mark.parametrize("sql", TAKEN)
def test_taken(sql: str) -> None:
    assert [str(finding) for finding in lint(sql)] == []


@pytest.mark.parametrize("dialect", ["spark", "clickhouse", "trino", "bigquery", "snowflake"])
def test_what_is_taken_can_be_written_for_every_engine(dialect: str) -> None:
    for sql in TAKEN:
        (rendered,) = sqlglot.transpile(sql, read="duckdb", write=dialect, unsupported_level=ErrorLevel.RAISE)
        sqlglot.parse_one(rendered, read=dialect)


@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        ("decimal", select("d.start_ps * 0.1")),
        ("sum-cast", select("SUM(d.start_ps)")),
        ("frame", over("MAX(d.end_ps)", f"ORDER BY {KEY}")),
        ("lateral-alias", "SELECT d.end_ps - 1 AS long FROM main.device_events AS d WHERE long > 0"),
        ("join", f"SELECT c.run_id AS a FROM {PAIR} USING (capture_id)"),
        ("named-window", select("ROW_NUMBER() OVER w") + f" WINDOW w AS (ORDER BY {KEY})"),
    ],
)
def test_one_fault_is_one_finding(rule: str, sql: str) -> None:
    assert [finding.rule for finding in lint(sql)] == [rule]


def test_a_finding_names_the_view_the_place_and_the_remedy() -> None:
    (finding,) = lint(select("d.start_ps * 0.1"))
    assert str(finding) == "v1.x: [decimal] write a DOUBLE with an exponent: 1e-1, not 0.1 (at: 0.1)"


def test_references_found_in_tokens_must_be_those_of_the_tree() -> None:
    views = views_of({"v1.parent": "SELECT 1 AS a", "v1.x": "SELECT p.a AS a FROM v1.parent AS p"})
    assert lint_view(views["v1.x"]) == []
    (finding,) = lint_view(replace(views["v1.x"], references=()))
    assert (finding.rule, finding.excerpt) == ("references", "v1.parent")
    quoted = views_of({"v1.x": 'SELECT p.a AS a FROM "v1"."parent" AS p'})["v1.x"]
    assert [finding.rule for finding in lint_view(quoted)] == ["references"]


def macro(sql: str, parameters: tuple[str, ...] = ("p_rows RELATION", "p_value EXPRESSION")) -> Macro:
    return macros_from_files({"f.sql": macro_text("v1.f", sql, parameters=parameters)})[0]


MACRO = """WITH __rows AS (SELECT p_value AS value FROM query_table(p_rows) AS r)
SELECT r.value AS a FROM __rows AS r"""


def test_a_portable_macro_is_taken() -> None:
    assert lint_macro(macro(MACRO)) == []
    assert lint_header(macro(MACRO)) == []


@pytest.mark.parametrize(
    ("rule", "sql"),
    [
        ("parse", "SELECT FROM WHERE p_value, p_rows"),
        ("operator", MACRO + " WHERE r.value ~ 'x'"),
        ("decimal", MACRO.replace("r.value AS", "r.value * 0.1 AS")),
        ("denominator", MACRO.replace("p_value AS", "1 / p_value AS")),
        ("table-name", MACRO.replace("query_table(p_rows)", "captures") + " WHERE p_rows > 0"),
        ("cte-name", MACRO.replace("__rows", "_rows")),
        ("parameter-name", MACRO.replace("p_value", "1")),
        ("parameter-name", MACRO.replace("p_value", "p_value + p_more")),
    ],
)
def test_macro_refused(rule: str, sql: str) -> None:
    assert rule in [finding.rule for finding in lint_macro(macro(sql))]


def test_parameters_of_a_macro_begin_with_p() -> None:
    named = macro(MACRO.replace("p_value", "amount"), ("p_rows RELATION", "amount EXPRESSION"))
    assert [finding.rule for finding in lint_macro(named)] == ["parameter-name"]


def lint_calling(sql: str, body: str = MACRO) -> list[str]:
    called = macro(body)
    (calling,) = views_from_files({"topic/x.sql": view_text("v1.x", sql)}, [called])
    return [finding.rule for finding in lint_view(calling, [called])]


CALL = "WITH _m AS (SELECT r.run_id AS k FROM main.runs AS r) SELECT f.a AS a FROM v1.f('_m', k) AS f"


def test_a_view_is_checked_with_its_calls_written_out() -> None:
    assert lint_calling(CALL) == []
    assert lint_calling(CALL, MACRO.replace("p_value AS", "p_value / 0 AS")) == ["denominator"]
    assert lint_calling(CALL.replace("'_m', k", "'_m', LOWER(k)")) == ["function"]
    assert lint_calling(CALL.replace("'_m'", "'runs'")) == ["table-name"]
    assert lint_calling(CALL.replace("'_m', k", "'_m'")) == ["macro-call"]
    assert lint_calling(CALL.replace(" AS f", "").replace("f.a", "a")) == ["macro-call"]


def test_a_view_leaves_the_names_of_macros_alone() -> None:
    assert lint_calling(CALL.replace("_m", "__m")) == ["cte-name"]
    assert lint_calling(CALL.replace("k)", "p_value := k)")) == []
    assert "parameter-name" in lint_calling(CALL.replace("AS k", "AS p_k").replace(", k)", ", p_k)"))


def test_a_call_of_an_unknown_macro_is_refused() -> None:
    assert "function" in [finding.rule for finding in lint("SELECT f.a AS a FROM f('_m') AS f")]


def view(old: str = "", new: str = "", path: str = "topic/x.sql") -> View:
    text = view_text("v1.x", "SELECT 1 AS a").replace(old, new)
    return views_from_files({path: text})[0]


def test_a_complete_header_is_taken() -> None:
    assert lint_header(view()) == []
    assert lint_header(view("evidence: derived", "evidence: measured, compiler or derived")) == []
    assert lint_header(view("a BIGINT:", "a_ps BIGINT (ps):")) == []
    assert lint_header(view("v1.x", "v1._x")) == []


@pytest.mark.parametrize(
    ("rule", "faulty"),
    [
        ("file-name", view(path="topic/y.sql")),
        ("grain", view("one row per value", "rows")),
        ("evidence", view("evidence: derived", "evidence: guessed")),
        ("column-type", view("a BIGINT:", "a HUGEINT:")),
        ("column-unit", view("a BIGINT:", "a_ps BIGINT:")),
    ],
)
def test_header_refused(rule: str, faulty: View) -> None:
    assert [finding.rule for finding in lint_header(faulty)] == [rule]
