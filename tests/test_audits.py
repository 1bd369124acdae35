"""The packaged audits: portable, documented as they are, each with faults to find and runs to pass.

In tests/audits/NAME.test the query of the audit is the view `audit`, and the views that it reads are tables
of their declared columns, filled by hand: what those views compute is tested with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tracewh.sql.lint import lint_header, lint_view
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.audit_catalog import SEVERITIES, Audit, audits_from_files, load_audits
from tracewh.views.catalog import View, load_views
from tracewh.views.macro_catalog import load_macros
from tracewh.views.sql_files import SqlFileError

from .sqllogic import parse_file, run_file
from .test_view_plans import CAPTURES, EVENT_TABLES, ROWS, operators_below, scanned_table

AUDITS = load_audits()
FOLDER = Path(__file__).parent / "audits"
NEEDED = (
    "host_only_trace", "device_not_identified", "no_steps", "incomplete_step", "sum_is_not_union",
    "efficiency_over_one", "occurrence_mismatch", "median_of_one", "profiled_time_as_throughput",
    "counters_used_for_timing", "unattributed_time", "reconciliation",
)  # fmt: skip

each_audit = pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.name)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        yield connection


def as_view(audit: Audit) -> View:
    """The audit in the shape that the lint of views takes."""
    return View(
        name=f"v1.{audit.name}",
        version=1,
        grain="one row per fault",
        summary=audit.meaning,
        evidence=audit.evidence,
        columns=audit.columns,
        algorithm=audit.algorithm,
        sql=audit.sql,
        path=audit.path,
        references=audit.references,
        fingerprint="",
    )


@each_audit
def test_query_is_portable(audit: Audit) -> None:
    assert "\n".join(map(str, lint_view(as_view(audit)))) == ""


@each_audit
def test_header_is_complete(audit: Audit) -> None:
    assert "\n".join(map(str, lint_header(as_view(audit)))) == ""
    assert audit.question.endswith("?")
    assert audit.meaning.endswith(".")
    assert audit.next_step.endswith(".")


@each_audit
def test_reads_no_private_view(audit: Audit) -> None:
    assert [name for name in audit.references if name.split(".")[1].startswith("_")] == []


@each_audit
def test_header_columns_are_those_of_the_query(audit: Audit, connection: duckdb.DuckDBPyConnection) -> None:
    described = connection.execute(f"DESCRIBE {audit.sql}").fetchall()
    assert [(column.name, column.type) for column in audit.columns] == [row[:2] for row in described]


@contextmanager
def database_for(audit: Audit) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the macros that the audit calls, and each view that it reads as an empty table."""
    views = {view.name: view for view in load_views()}
    macros = {macro.name: macro for macro in load_macros()}
    with duckdb.connect() as connection:
        create_schema(connection)
        connection.execute("CREATE SCHEMA v1")
        for name in audit.references:
            if name in macros:
                connection.execute(macros[name].definition)
            else:
                columns = ", ".join(f"{column.name} {column.type}" for column in views[name].columns)
                connection.execute(f"CREATE TABLE {name} ({columns})")
        yield connection


@each_audit
def test_finds_and_passes(audit: Audit) -> None:
    path = FOLDER / f"{audit.name}.test"
    with database_for(audit) as connection:
        connection.execute(f"CREATE VIEW audit AS {audit.sql}")
        run_file(path, connection)
    expected = [record.expected for record in parse_file(path) if record.directive[0] == "query"]
    assert any(expected), "no fault is found"


# Rows for a table of any columns, with a range of values wide enough that no filter is known to be false.
SOME_VALUES = {
    "BIGINT": "n",
    "INTEGER": "n",
    "DOUBLE": "n",
    "VARCHAR": "repeat('z', n)",
    "BOOLEAN": "n % 2 = 0",
}


@pytest.mark.parametrize(
    "audit",
    [audit for audit in AUDITS if audit.filter_column == "capture_id"],
    ids=lambda audit: audit.name,
)
def test_a_filter_reaches_what_the_audit_reads(audit: Audit) -> None:
    views = {view.name: view for view in load_views()}
    read = [views[name] for name in audit.references if name in views]
    with database_for(audit) as connection:
        connection.execute(ROWS)
        for view in read:
            values = ", ".join(SOME_VALUES[column.type] for column in view.columns)
            connection.execute(f"INSERT INTO {view.name} SELECT {values} FROM range({CAPTURES}) AS r (n)")
        (row,) = connection.execute(
            f"EXPLAIN (FORMAT JSON) SELECT * FROM (\n{audit.sql}\n) AS a WHERE a.capture_id BETWEEN 7 AND 9"
        ).fetchall()
    scans = [operator for operator in operators_below(json.loads(row[1])) if scanned_table(operator)]
    tables = {*EVENT_TABLES, *(view.name.split(".")[1] for view in read)}
    assert scans
    for scan in scans:
        if scanned_table(scan) in tables:
            assert "capture_id >= 7" in str(scan["extra_info"].get("Filters")), scanned_table(scan)


def test_every_test_is_of_an_audit() -> None:
    assert {path.stem for path in FOLDER.glob("*.test")} == {audit.name for audit in AUDITS}


def test_the_method_is_covered() -> None:
    assert {audit.name for audit in AUDITS} >= set(NEEDED)


def test_errors_come_first() -> None:
    order = [(SEVERITIES.index(audit.severity), audit.name) for audit in AUDITS]
    assert order == sorted(order)


HEADER = """-- name: x
-- severity: note
-- filter: run_name
-- question: Is it?
-- meaning: It is not.
-- next: Do it.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture

SELECT r.run_name AS run_name, CAST(NULL AS BIGINT) AS capture_id FROM main.runs AS r
"""


def test_a_file_is_read() -> None:
    (audit,) = audits_from_files({"audits/x.sql": HEADER})
    assert (audit.name, audit.severity, audit.filter_column) == ("x", "note", "run_name")
    assert (audit.question, audit.meaning, audit.next_step) == ("Is it?", "It is not.", "Do it.")
    assert replace(audit, sql="").references == ()


@pytest.mark.parametrize(
    ("text", "changed", "message"),
    [
        ("severity: note", "severity: fatal", "severity is one of error, warning, note"),
        ("filter: run_name", "filter: run_id", "filter is one of run_name, capture_id"),
        ("name: x", "name: v1.x", "'v1.x' is not a name such as few_steps"),
        (
            "--   capture_id BIGINT: the capture\n",
            "",
            "first columns of an audit are run_name and capture_id",
        ),
        ("-- next: Do it.\n", "", "the header ends without next"),
    ],
)
def test_malformed(text: str, changed: str, message: str) -> None:
    with pytest.raises(SqlFileError, match=re.escape(message)):
        audits_from_files({"audits/x.sql": HEADER.replace(text, changed)})
