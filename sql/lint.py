"""Check that a view keeps to the portable SQL subset, and that its header says all that it must.

One text of a view runs embedded in DuckDB and, rendered by sqlglot, on other engines. Several things that
DuckDB takes would give other rows there without any error, so they are refused here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tracewh.sql import lint_structure, lint_values
from tracewh.views.catalog import View, sql_tokens

EVIDENCE = ("measured", "counter", "compiler", "analytical", "derived")
COLUMN_TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN")

_TREE_CHECKS = (
    lint_structure.check_allowed,
    lint_structure.check_stars,
    lint_structure.check_joins,
    lint_structure.check_grouping,
    lint_structure.check_windows,
    lint_structure.check_tables,
    lint_structure.check_recursion,
    lint_structure.check_aliases,
    lint_values.check_types,
    lint_values.check_numbers,
    lint_values.check_divisions,
    lint_values.check_sums,
    lint_values.check_regexes,
)
_EXCERPT_LENGTH = 80


@dataclass(frozen=True)
class Finding:
    """One violation: the rule's short name, the view, the offending SQL or header line, and the remedy."""

    rule: str
    view: str
    excerpt: str
    message: str

    def __str__(self) -> str:
        return f"{self.view}: [{self.rule}] {self.message} (at: {self.excerpt})"


def lint_view(view: View) -> list[Finding]:
    """Violations in the query of `view`, in the order of the rules; an unparsable query is one finding."""
    try:
        statements = sqlglot.parse(view.sql, read="duckdb")
    except SqlglotError as error:
        return [Finding("parse", view.name, str(error).splitlines()[0], "sqlglot cannot parse the query")]
    tree = statements[0]
    if len(statements) != 1 or not isinstance(tree, exp.Select | exp.SetOperation):
        return [Finding("parse", view.name, view.sql[:_EXCERPT_LENGTH], "the body must be one query")]
    hits = (hit for check in _TREE_CHECKS for hit in check(tree))
    findings = [Finding(rule, view.name, _excerpt(node), message) for rule, node, message in hits]
    return [*findings, *_text_findings(view, tree)]


def lint_header(view: View) -> list[Finding]:
    """Violations in the header of `view`; that its columns are those of the query needs a database."""

    def found(rule: str, excerpt: str, message: str) -> Finding:
        return Finding(rule, view.name, excerpt, message)

    findings = []
    stem = view.path.rsplit("/", 1)[-1].removesuffix(".sql")
    if stem.lstrip("_") != view.name.split(".")[1].lstrip("_"):
        findings.append(
            found("file-name", view.path, "the file is named after the view; its underscore may go")
        )
    if not view.grain.startswith("one row per "):
        findings.append(found("grain", view.grain, "the grain begins with 'one row per'"))
    if not set(re.split(r", | and | or ", view.evidence)) <= set(EVIDENCE):
        findings.append(found("evidence", view.evidence, f"evidence is of {', '.join(EVIDENCE)}"))
    for column in view.columns:
        if column.type not in COLUMN_TYPES:
            findings.append(found("column-type", column.name, f"types are {', '.join(COLUMN_TYPES)}"))
        suffix = column.name.rsplit("_", 1)[-1]
        if suffix in ("ps", "ns", "us", "ms", "s", "bytes") and column.unit is None:
            findings.append(
                found("column-unit", column.name, "a quantity declares its unit: name TYPE (unit): ...")
            )
    return findings


def _text_findings(view: View, tree: exp.Expr) -> Iterator[Finding]:
    # The tree does not tell ~ (which matches whole strings) from REGEXP_MATCHES.
    if "~" in sql_tokens(view.sql):
        yield Finding("operator", view.name, "~", "write REGEXP_MATCHES or LIKE")
    tables = {
        f"{table.db}.{table.name}" for table in tree.find_all(exp.Table) if table.db not in ("", "main")
    }
    if tables != set(view.references):
        differing = ", ".join(sorted(tables ^ set(view.references)))
        yield Finding("references", view.name, differing, "write references unquoted, as v1.name")


def _excerpt(node: exp.Expr) -> str:
    text = " ".join(node.sql("duckdb").split())
    return text if len(text) <= _EXCERPT_LENGTH else f"{text[: _EXCERPT_LENGTH - 3]}..."
