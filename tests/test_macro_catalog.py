"""Reading macro files: headers, signatures and fingerprints."""

import pytest

from tracewh.views.macro_catalog import Parameter, load_macros, macros_from_files
from tracewh.views.sql_files import Column, SqlFileError

from .view_text import macro_text

FULL = """\
-- name: v1.shorter
-- version: 2
-- grain: one row per interval that is
--   short
-- summary: Leaves out what is long.
-- parameters:
--   p_intervals RELATION: a table with start_ps and end_ps
--   p_longest EXPRESSION: in picoseconds
--   p_key EXPRESSION = NULL: to tell them
--     apart
-- columns:
--   key ANY: value of p_key
--   length_ps BIGINT (ps): end_ps - start_ps
-- example: WITH _a AS (SELECT 1 AS start_ps, 3 AS end_ps)
--   SELECT s.length_ps FROM v1.shorter('_a', 10) AS s

SELECT p_key AS key, i.end_ps - i.start_ps AS length_ps
FROM query_table(p_intervals) AS i
WHERE i.end_ps - i.start_ps < p_longest
"""


def test_header() -> None:
    (macro,) = macros_from_files({"shorter.sql": FULL})
    assert (macro.name, macro.version, macro.path) == ("v1.shorter", 2, "shorter.sql")
    assert macro.grain == "one row per interval that is short"
    assert macro.parameters == (
        Parameter("p_intervals", "RELATION", False, "a table with start_ps and end_ps"),
        Parameter("p_longest", "EXPRESSION", False, "in picoseconds"),
        Parameter("p_key", "EXPRESSION", True, "to tell them apart"),
    )
    assert macro.columns == (
        Column("key", "ANY", None, "value of p_key"),
        Column("length_ps", "BIGINT", "ps", "end_ps - start_ps"),
    )
    assert macro.example.splitlines() == [
        "WITH _a AS (SELECT 1 AS start_ps, 3 AS end_ps)",
        "SELECT s.length_ps FROM v1.shorter('_a', 10) AS s",
    ]
    assert macro.algorithm is None
    assert macro.signature == "v1.shorter(p_intervals, p_longest, p_key := NULL)"
    assert macro.definition.startswith(f"CREATE OR REPLACE MACRO {macro.signature} AS TABLE\nSELECT p_key")


def edited(old: str, new: str) -> str:
    assert old in FULL
    return FULL.replace(old, new, 1)


MALFORMED = {
    "no parameters": (
        edited(FULL[FULL.index("--   p_int") : FULL.index("-- columns")], ""),
        r"x\.sql, line 6: the header declares no parameters",
    ),
    "parameter of another kind": (
        edited("p_longest EXPRESSION", "p_longest BIGINT"),
        r"x\.sql, line 8: expected 'p_name RELATION",
    ),
    "parameter with another default": (
        edited("p_key EXPRESSION = NULL", "p_key EXPRESSION = 0"),
        r"x\.sql, line 9: expected 'p_name RELATION",
    ),
    "parameter twice": (
        edited("p_longest EXPRESSION", "p_intervals EXPRESSION"),
        r"x\.sql, line 8: parameter p_intervals is declared twice",
    ),
    "key of views": (edited("-- columns:", "-- evidence: derived\n-- columns:"), "unknown key 'evidence'"),
    "no example": (FULL[: FULL.index("-- example")] + FULL[FULL.index("\nSELECT") :], "without example"),
    "another macro": (
        edited("FROM query_table(p_intervals) AS i", "FROM v1.other(p_intervals) AS i"),
        r"x\.sql: v1\.shorter reads v1\.other; a macro reads its parameters only",
    ),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_files_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(SqlFileError, match=message):
        macros_from_files({"x.sql": text})


def fingerprint(text: str) -> str:
    return macros_from_files({"x.sql": text})[0].fingerprint


@pytest.mark.parametrize(
    "text",
    [
        edited("version: 2", "version: 3"),
        edited("v1.shorter\n", "v1.brief\n"),
        edited("p_key EXPRESSION = NULL:", "p_key EXPRESSION:"),
        edited("< p_longest", "<= p_longest"),
    ],
)
def test_what_changes_the_fingerprint(text: str) -> None:
    assert fingerprint(text) != fingerprint(FULL)


def test_texts_do_not_change_the_fingerprint() -> None:
    assert fingerprint(edited("Leaves out", "Drops")) == fingerprint(FULL)
    assert fingerprint(edited("in picoseconds", "a limit")) == fingerprint(FULL)


def test_macros_come_by_name() -> None:
    texts = {"one.sql": macro_text("v1.b"), "two.sql": macro_text("v1.a")}
    assert [macro.name for macro in macros_from_files(texts)] == ["v1.a", "v1.b"]


def test_a_caller_cannot_change_the_cached_list() -> None:
    load_macros().clear()
    assert load_macros() != []
