"""Check that views and macros keep to the portable SQL subset, and that their headers say all that they must.

One text of a view runs embedded in DuckDB and, with its macro calls written out and rendered by sqlglot, on
other engines. Several things that DuckDB takes would give other rows there without any error, so they are
refused here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tracewh.sql import lint_structure, lint_values
from tracewh.sql.macro_expansion import MacroCallError, body, called_name, expanded
from tracewh.views.catalog import View
from tracewh.views.macro_catalog import Macro, load_macros
from tracewh.views.sql_files import sql_tokens

EVIDENCE = ("measured", "counter", "compiler", "analytical", "derived")
COLUMN_TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN")
# Of a macro's column that has the type of an argument.
ARGUMENT_TYPE = "ANY"

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
    """One violation: the rule's short name, the view or macro, the offending text, and the remedy."""

    rule: str
    view: str
    excerpt: str
    message: str

    def __str__(self) -> str:
        return f"{self.view}: [{self.rule}] {self.message} (at: {self.excerpt})"


def lint_view(view: View, macros: Sequence[Macro] | None = None) -> list[Finding]:
    """Violations in the query of `view`, its calls of `macros` (by default the packaged ones) written out.

    They come in the order of the rules; an unparsable query is one finding.
    """
    tree = _parsed(view)
    if isinstance(tree, Finding):
        return [tree]
    try:
        written_out = expanded(tree, load_macros() if macros is None else macros)
    except MacroCallError as error:
        return [Finding("macro-call", view.name, str(error).split(":")[0], str(error))]
    hits = [*_tree_hits(written_out), *lint_structure.check_view_names(tree)]
    return [*_findings(view, hits), *_operator_findings(view), *_reference_findings(view, tree, written_out)]


def lint_macro(macro: Macro) -> list[Finding]:
    """Violations in the query of `macro`, in the order of the rules; an unparsable one is one finding."""
    tree = _parsed(macro)
    if isinstance(tree, Finding):
        return [tree]
    stand_ins = {
        parameter.name: exp.to_table("main.stand_in")
        if parameter.kind == "RELATION"
        else exp.column("stand_in")
        for parameter in macro.parameters
    }
    names = lint_structure.check_macro_names(tree, set(stand_ins))
    return [*_findings(macro, [*_tree_hits(body(macro, stand_ins)), *names]), *_operator_findings(macro)]


def lint_header(item: View | Macro) -> list[Finding]:
    """Violations in the header; that its columns are those of the query needs a database."""

    def found(rule: str, excerpt: str, message: str) -> Finding:
        return Finding(rule, item.name, excerpt, message)

    findings = []
    stem = item.path.rsplit("/", 1)[-1].removesuffix(".sql")
    if stem.lstrip("_") != item.name.split(".")[1].lstrip("_"):
        findings.append(
            found("file-name", item.path, "the file is named after what it defines; its underscore may go")
        )
    if not item.grain.startswith("one row per "):
        findings.append(found("grain", item.grain, "the grain begins with 'one row per'"))
    if isinstance(item, View) and not set(re.split(r", | and | or ", item.evidence)) <= set(EVIDENCE):
        findings.append(found("evidence", item.evidence, f"evidence is of {', '.join(EVIDENCE)}"))
    types = COLUMN_TYPES if isinstance(item, View) else (*COLUMN_TYPES, ARGUMENT_TYPE)
    for column in item.columns:
        if column.type not in types:
            findings.append(found("column-type", column.name, f"types are {', '.join(types)}"))
        suffix = column.name.rsplit("_", 1)[-1]
        if suffix in ("ps", "ns", "us", "ms", "s", "bytes") and column.unit is None:
            findings.append(
                found("column-unit", column.name, "a quantity declares its unit: name TYPE (unit): ...")
            )
    return findings


def _parsed(item: View | Macro) -> exp.Expr | Finding:
    try:
        statements = sqlglot.parse(item.sql, read="duckdb")
    except SqlglotError as error:
        return Finding("parse", item.name, str(error).splitlines()[0], "sqlglot cannot parse the query")
    tree = statements[0]
    if len(statements) != 1 or not isinstance(tree, exp.Select | exp.SetOperation):
        return Finding("parse", item.name, item.sql[:_EXCERPT_LENGTH], "the body must be one query")
    return tree


def _tree_hits(tree: exp.Expr) -> Iterator[lint_structure.Hit]:
    return (hit for check in _TREE_CHECKS for hit in check(tree))


def _findings(item: View | Macro, hits: Sequence[lint_structure.Hit]) -> Iterator[Finding]:
    return (Finding(rule, item.name, _excerpt(node), message) for rule, node, message in hits)


def _operator_findings(item: View | Macro) -> Iterator[Finding]:
    # The tree does not tell ~ (which matches whole strings) from REGEXP_MATCHES.
    if "~" in sql_tokens(item.sql):
        yield Finding("operator", item.name, "~", "write REGEXP_MATCHES or LIKE")


def _reference_findings(view: View, tree: exp.Expr, written_out: exp.Expr) -> Iterator[Finding]:
    read = {
        f"{table.db}.{table.name}"
        for table in written_out.find_all(exp.Table)
        if table.db not in ("", "main")
    }
    called = {name for table in tree.find_all(exp.Table) if (name := called_name(table)) is not None}
    if read | called != set(view.references):
        differing = ", ".join(sorted((read | called) ^ set(view.references)))
        yield Finding("references", view.name, differing, "write references unquoted, as v1.name")


def _excerpt(node: exp.Expr) -> str:
    text = " ".join(node.sql("duckdb").split())
    return text if len(text) <= _EXCERPT_LENGTH else f"{text[: _EXCERPT_LENGTH - 3]}..."
