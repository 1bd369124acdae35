"""Reading view files: headers, references, order and fingerprints."""

import subprocess
import sys

import pytest

from tracewh.ingest.errors import TracewhError
from tracewh.views.catalog import load_views, views_from_files
from tracewh.views.macro_catalog import macros_from_files
from tracewh.views.sql_files import Column, SqlFileError, sql_tokens

from .view_text import macro_text, view_text, views_of

FULL = """\
-- name: v1.steps
-- version: 3
-- grain: one row per capture, device and step
-- summary: Device window of each training step, found from
--   the work it launched.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   duration_ps BIGINT (ps): end_ps - start_ps; a longer text may
--     continue here
--   rate DOUBLE (bytes/s): bytes (copied): per second
-- algorithm: gaps and islands
--     a  |---|
--     b    |---|
--
--   union of both

-- A comment of the body.
SELECT d.capture_id AS capture_id FROM main.device_events AS d
"""


def test_header() -> None:
    (view,) = views_from_files({"time/steps.sql": FULL})
    assert (view.name, view.version, view.path) == ("v1.steps", 3, "time/steps.sql")
    assert view.grain == "one row per capture, device and step"
    assert view.summary == "Device window of each training step, found from the work it launched."
    assert view.evidence == "measured"
    assert view.columns == (
        Column("capture_id", "BIGINT", None, "the capture"),
        Column("duration_ps", "BIGINT", "ps", "end_ps - start_ps; a longer text may continue here"),
        Column("rate", "DOUBLE", "bytes/s", "bytes (copied): per second"),
    )
    assert view.algorithm == "gaps and islands\n  a  |---|\n  b    |---|\n\nunion of both"
    assert view.sql.startswith("-- A comment of the body.\nSELECT")
    assert view.references == ()
    assert not view.is_private


def edited(old: str, new: str) -> str:
    assert old in FULL
    return FULL.replace(old, new, 1)


MALFORMED = {
    "no header": ("SELECT 1 AS a\n", r"x\.sql, line 1: the header ends without name, version"),
    "missing key": (edited("-- evidence: measured\n", ""), r"x\.sql, line 16: .* without evidence"),
    "unknown key": (edited("-- grain:", "-- grian:"), r"x\.sql, line 3: unknown key 'grian'"),
    "key twice": (
        edited("-- evidence:", "-- grain: b\n-- evidence:"),
        r"x\.sql, line 6: grain is given twice",
    ),
    "stray comment": (edited("-- evidence:", "-- hello\n-- evidence:"), r"x\.sql, line 6: expected '-- key"),
    "under-indented": (edited("--   the work", "--  the work"), r"x\.sql, line 5: expected '-- key"),
    "empty key": (edited("one row per capture, device and step", ""), r"x\.sql, line 3: grain is empty"),
    "name": (edited("v1.steps", "steps"), r"x\.sql, line 1: 'steps' is not a name such as v1\.steps"),
    "version": (edited("version: 3", "version: 03"), r"x\.sql, line 2: version '03'"),
    "column without type": (
        edited("capture_id BIGINT:", "capture_id:"),
        r"x\.sql, line 8: expected 'name TYPE",
    ),
    "column without text": (edited("BIGINT: the capture", "BIGINT:"), r"x\.sql, line 8: expected 'name TYPE"),
    "column twice": (
        edited("duration_ps B", "capture_id B"),
        r"x\.sql, line 9: column capture_id is declared twice",
    ),
    "columns on the key's line": (edited("columns:", "columns: a BIGINT: x"), r"x\.sql, line 7: .* one each"),
    "no columns": (
        view_text("v1.x", "SELECT 1 AS a").replace("--   a BIGINT: the value\n", ""),
        "no columns",
    ),
    "no query": (FULL[: FULL.index("SELECT")], r"x\.sql, line 17: there is no query"),
    "semicolon": (FULL.rstrip() + ";\n", r"x\.sql: .* remove the semicolon"),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_files_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(SqlFileError, match=message) as raised:
        views_from_files({"topic/x.sql": text})
    assert isinstance(raised.value, TracewhError)
    assert "topic/x.sql" in str(raised.value)


def test_parents_come_before_children() -> None:
    views = views_of(
        {
            "v1.a": "SELECT c.a AS a FROM v1.c AS c JOIN v1._b AS b ON b.a = c.a",
            "v1._b": "SELECT c.a AS a FROM v1.c AS c",
            "v1.c": "SELECT d.capture_id AS a FROM main.device_events AS d",
        }
    )
    assert list(views) == ["v1.c", "v1._b", "v1.a"]
    assert views["v1.a"].references == ("v1._b", "v1.c")
    assert views["v1._b"].is_private


def test_names_in_strings_and_comments_are_no_references() -> None:
    query = "SELECT 'v1.x' AS a /* v1.y */ FROM main.runs AS r -- v1.z\nWHERE r.path <> 'it''s v1.w'"
    assert views_of({"v1.b": query})["v1.b"].references == ()


def test_a_relation_that_is_given_to_a_macro_is_a_reference() -> None:
    macro = macros_from_files({"f.sql": macro_text("v1.f")})[0]
    texts = {
        "a.sql": view_text("v1.a", "SELECT f.a AS a FROM v1.f('v1.b', COALESCE(a, 'v1.c'), 'v1.d') AS f"),
        "b.sql": view_text("v1.b", "SELECT 1 AS a"),
        "d.sql": view_text("v1.d", "SELECT 'v1.a' AS a, COALESCE('v1.a', ('v1.a')) AS b"),
    }
    views = {view.name: view for view in views_from_files(texts, [macro])}
    assert views["v1.a"].references == ("v1.b", "v1.d", "v1.f")
    assert views["v1.d"].references == ()


def test_a_macros_change_reaches_the_views_that_call_it() -> None:
    texts = {
        "a.sql": view_text("v1.a", "SELECT f.a AS a FROM v1.f('v1.b', a) AS f"),
        "b.sql": view_text("v1.b", "SELECT 1 AS a"),
    }

    def fingerprints(body: str) -> list[str]:
        macros = macros_from_files({"f.sql": macro_text("v1.f", body)})
        return [view.fingerprint for view in views_from_files(texts, macros)]

    before = fingerprints("SELECT p_value AS a FROM query_table(p_rows) AS r")
    after = fingerprints("SELECT (p_value) AS a FROM query_table(p_rows) AS r")
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False]


def test_unknown_reference() -> None:
    with pytest.raises(SqlFileError, match=r"topic/a\.sql: v1\.a reads v1\.missing"):
        views_of({"v1.a": "SELECT m.a AS a FROM v1.missing AS m"})


def test_cycle() -> None:
    with pytest.raises(SqlFileError, match=r"read each other: v1\.[ab] -> v1\.[ab] -> v1\.[ab]"):
        views_of({"v1.a": "SELECT b.a AS a FROM v1.b AS b", "v1.b": "SELECT a.a AS a FROM v1.a AS a"})


def test_a_name_defined_twice() -> None:
    text = view_text("v1.x", "SELECT 1 AS a")
    with pytest.raises(SqlFileError, match=r"two/x\.sql: v1\.x is also defined in one/x\.sql"):
        views_from_files({"one/x.sql": text, "two/x.sql": text})


def fingerprint(sql: str, name: str = "v1.x", version: int = 1) -> str:
    (view,) = views_from_files({"x.sql": view_text(name, sql, version)})
    return view.fingerprint


def test_comments_and_blanks_do_not_change_the_fingerprint() -> None:
    plain = fingerprint("SELECT r.run_id AS a FROM main.runs AS r WHERE r.run_name <> 'a  b'")
    spaced = fingerprint(
        "-- why\nSELECT\n    r.run_id AS a -- the id\nFROM main . runs AS r\n"
        "/* only\n some */ WHERE r.run_name<>'a  b'"
    )
    assert plain == spaced
    assert len(plain) == 64


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 2 AS a, 'x y' AS b, c AS c",
        "SELECT 1 AS a, 'x  y' AS b, c AS c",
        "SELECT 1 AS a, 'X y' AS b, c AS c",
        "SELECT 1 AS a, 'x y' AS b, 'c' AS c",
        "SELECT 1 AS a, 'x y' AS b, \"c\" AS c",
        "SELECT 1 AS a, 'x -- y' AS b, c AS c",
        "SELECT 1. AS a, 'x y' AS b, c AS c",
    ],
)
def test_sql_changes_the_fingerprint(sql: str) -> None:
    assert fingerprint(sql) != fingerprint("SELECT 1 AS a, 'x y' AS b, c AS c")


def test_name_and_version_change_the_fingerprint() -> None:
    assert fingerprint("SELECT 1 AS a", version=2) != fingerprint("SELECT 1 AS a")
    assert fingerprint("SELECT 1 AS a", name="v1.y") != fingerprint("SELECT 1 AS a")


def test_texts_of_the_header_do_not_change_the_fingerprint() -> None:
    text = view_text("v1.x", "SELECT 1 AS a")
    (before,) = views_from_files({"x.sql": text})
    (after,) = views_from_files({"elsewhere/x.sql": text.replace("A view.", "A better text.")})
    assert before.fingerprint == after.fingerprint


def test_a_parents_change_reaches_every_descendant_only() -> None:
    queries = {
        "v1.a": "SELECT 1 AS a",
        "v1.b": "SELECT a.a AS a FROM v1.a AS a",
        "v1.c": "SELECT b.a AS a FROM v1.b AS b",
        "v1.other": "SELECT 5 AS a",
    }
    before = views_of(queries)
    after = views_of({**queries, "v1.a": "SELECT 2 AS a"})
    changed = {name for name in queries if before[name].fingerprint != after[name].fingerprint}
    assert changed == {"v1.a", "v1.b", "v1.c"}


def test_tokens() -> None:
    sql = "a.b,'it''s' || \"q\"\"x\" -- c\n, 1.5e-3+.5 /* 'd' */ >= x1"
    assert sql_tokens(sql) == (
        *("a", ".", "b", ",", "'it''s'", "|", "|", '"q""x"', ",", "1.5e-3", "+", ".5", ">", "=", "x1"),
    )  # fmt: skip


def test_loading_views_imports_neither_database_nor_parser() -> None:
    code = (
        "import sys; from tracewh.views.catalog import load_views; load_views();"
        "print(sorted({'duckdb', 'sqlglot', 'pyarrow', 'numpy', 'jax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_caller_cannot_change_the_cached_list() -> None:
    load_views().clear()
    assert load_views() == load_views()
    load_views().append(views_of({"v1.x": "SELECT 1 AS a"})["v1.x"])
    assert "v1.x" not in [view.name for view in load_views()]
