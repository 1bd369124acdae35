"""Lint rules on the values a view computes: types, numbers, divisions, sums and regular expressions.

Each check walks a sqlglot tree and yields hits: the rule, the offending node, and what to write instead.
"""

import re
from collections.abc import Iterator

from sqlglot import exp

from tracewh.ingest.rule_patterns import anchor_fault, pattern_fault
from tracewh.sql.lint_structure import Hit

_Type = exp.DataType.Type
_INTEGERS = {_Type.BIGINT, _Type.INT}
_TYPES = {*_INTEGERS, _Type.DOUBLE, _Type.TEXT, _Type.BOOLEAN}


def check_types(tree: exp.Expr) -> Iterator[Hit]:
    """Casts go to BIGINT, INTEGER, DOUBLE, VARCHAR or BOOLEAN, and never from a double to an integer."""
    for cast in tree.find_all(exp.Cast):
        if cast.to.this not in _TYPES or cast.to.args.get("nested"):
            yield "type", cast, "types are BIGINT, INTEGER, DOUBLE, VARCHAR and BOOLEAN"
        elif cast.to.this in _INTEGERS and _is_double(cast.this):
            yield (
                "double-to-integer",
                cast,
                "engines round differently: keep the DOUBLE or compute in integers",
            )


def check_numbers(tree: exp.Expr) -> Iterator[Hit]:
    """A literal with a point is a DECIMAL; its divisions and products differ between engines."""
    for literal in tree.find_all(exp.Literal):
        if not literal.is_string and "." in literal.name and "e" not in literal.name.lower():
            yield "decimal", literal, "write a DOUBLE with an exponent: 1e-1, not 0.1"


def check_divisions(tree: exp.Expr) -> Iterator[Hit]:
    """Division by zero is infinity, NULL or an error, so every divisor is guarded or a nonzero literal."""
    for division in tree.find_all(exp.Div, exp.Mod):
        if not _is_guarded(division.expression):
            yield "denominator", division, "wrap the divisor: NULLIF(x, 0)"


def check_sums(tree: exp.Expr) -> Iterator[Hit]:
    """SUM over BIGINT is a HUGEINT in DuckDB; every SUM is cast where it is taken."""
    for total in tree.find_all(exp.Sum):
        node = total.parent
        while isinstance(node, exp.Paren | exp.Window | exp.Coalesce):
            node = node.parent
        if type(node) is not exp.Cast or node.to.this not in (_Type.BIGINT, _Type.DOUBLE):
            yield "sum-cast", total, "write CAST(SUM(...) AS BIGINT) or AS DOUBLE"


def check_regexes(tree: exp.Expr) -> Iterator[Hit]:
    """Patterns mean the same in POSIX, RE2 and Java, match whole strings, and a missing group is NULL."""
    for match in tree.find_all(exp.RegexpLike):
        pattern = match.expression
        if match.args.get("flag"):
            yield "regex", match, "no flags"
        elif isinstance(pattern, exp.Literal):
            if fault := pattern_fault(pattern.name) or anchor_fault(pattern.name):
                yield "regex", match, fault
        elif not isinstance(pattern, exp.Column):
            yield "regex", match, "the pattern is a literal or a column of a rules table"
    for extract in tree.find_all(exp.RegexpExtract):
        pattern, outer = extract.expression, extract.parent
        if not isinstance(pattern, exp.Literal):
            yield "regex", extract, "the pattern is a literal"
        elif fault := pattern_fault(pattern.name):
            yield "regex", extract, fault
        if extract.args.get("parameters") or extract.args["group"] != exp.Literal.number(1):
            yield "regex", extract, "write REGEXP_EXTRACT(s, pattern, 1)"
        if not (isinstance(outer, exp.Nullif) and outer.this is extract and outer.expression.name == ""):
            yield "regex", extract, "engines give '' or NULL without a match: NULLIF(..., '')"


def _is_guarded(divisor: exp.Expr) -> bool:
    if isinstance(divisor, exp.Paren | exp.Cast | exp.Neg):
        return _is_guarded(divisor.this)
    if isinstance(divisor, exp.Mul):
        return _is_guarded(divisor.this) and _is_guarded(divisor.expression)
    if isinstance(divisor, exp.Nullif):
        return _is_number(divisor.expression) and float(divisor.expression.name) == 0
    return _is_number(divisor) and float(divisor.name) != 0


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _is_double(node: exp.Expr) -> bool:
    """Whether the value is known to be a DOUBLE without the columns' types."""
    match node:
        case exp.Div() | exp.Sqrt() | exp.Ln():
            return True
        case exp.Literal():
            return not node.is_string and re.search("[.eE]", node.name) is not None
        case exp.Cast():
            return bool(node.to.this == _Type.DOUBLE)
        case exp.Case():
            values = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
            return any(_is_double(value) for value in values if value is not None)
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return any(_is_double(value) for value in [node.this, *node.expressions])
        case exp.Add() | exp.Sub() | exp.Mul():
            return _is_double(node.this) or _is_double(node.expression)
        case exp.Paren() | exp.Neg() | exp.Abs() | exp.Nullif() | exp.Window():
            return _is_double(node.this)
        case exp.Sum() | exp.Min() | exp.Max() | exp.Lag() | exp.Lead():
            return _is_double(node.this)
    return False
