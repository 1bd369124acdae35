"""Write out macro calls: other engines have no table macros, so they get a query with subqueries instead."""

from collections.abc import Mapping, Sequence
from functools import cache

import sqlglot
from sqlglot import exp

from tracewh.ingest.errors import TracewhError
from tracewh.views.macro_catalog import Macro, Parameter

# What needs no parentheses, wherever it replaces a parameter.
_ATOMS = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren)


class MacroCallError(TracewhError):
    """A query calls a macro otherwise than its header says; the text names the macro and the parameter."""


def expanded_sql(sql: str, macros: Sequence[Macro]) -> str:
    """`sql` in DuckDB's dialect with each call of `macros` written out; raises MacroCallError."""
    return expanded(sqlglot.parse_one(sql, read="duckdb"), macros).sql("duckdb", pretty=True)


def expanded(query: exp.Expr, macros: Sequence[Macro]) -> exp.Expr:
    """A copy of `query` in which each call of `macros` is a subquery; raises MacroCallError."""
    by_name = {macro.name: macro for macro in macros}
    tree = query.copy()
    for table in list(tree.find_all(exp.Table)):
        macro = by_name.get(called_name(table) or "")
        if macro is not None:
            if not table.alias:
                raise MacroCallError(f"{macro.name}: give the call an alias, by which its columns are read.")
            subquery = exp.Subquery(
                this=body(macro, _arguments(macro, table.this.expressions)), alias=table.args["alias"]
            )
            table.replace(subquery)
    return tree


def called_name(table: exp.Table) -> str | None:
    """Schema and name of the function that stands in place of a table; None for a table."""
    return f"{table.db}.{table.this.name}" if isinstance(table.this, exp.Anonymous) else None


def body(macro: Macro, arguments: Mapping[str, exp.Expr]) -> exp.Expr:
    """The query of `macro` with `arguments` by parameter: an exp.Table for a relation, else an expression."""
    tree = _parsed(macro.sql).copy()
    # Collected before any is replaced, since an argument may have a column with the name of a parameter.
    for node in list(tree.find_all(exp.Table, exp.Column)):
        if isinstance(node, exp.Table) and called_name(node) == ".query_table":
            relation = arguments[node.this.expressions[0].name].copy()
            relation.set("alias", node.args.get("alias"))
            node.replace(relation)
        elif isinstance(node, exp.Column) and not node.table and _is_expression(macro, node.name):
            argument = arguments[node.name].copy()
            node.replace(argument if isinstance(argument, _ATOMS) else exp.Paren(this=argument))
    return tree


@cache
def _parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="duckdb")


def _is_expression(macro: Macro, name: str) -> bool:
    return any(parameter.name == name and parameter.kind == "EXPRESSION" for parameter in macro.parameters)


def _arguments(macro: Macro, given: Sequence[exp.Expr]) -> dict[str, exp.Expr]:
    """The arguments of a call by parameter: by position, then by name, then NULL."""
    parameters = {parameter.name: parameter for parameter in macro.parameters}
    unused = list(parameters)
    arguments: dict[str, exp.Expr] = {}
    for argument in given:
        is_named = isinstance(argument, exp.PropertyEQ)
        name = argument.this.name if is_named else next(iter(unused), "")
        if name not in unused:
            raise MacroCallError(f"{macro.name}: has no parameter for {argument.sql('duckdb')}.")
        unused.remove(name)
        arguments[name] = _argument(macro, parameters[name], argument.expression if is_named else argument)
    for name in unused:
        if not parameters[name].is_optional:
            raise MacroCallError(f"{macro.name}: {name} is not given; call it as {macro.signature}.")
        arguments[name] = exp.Null()
    return arguments


def _argument(macro: Macro, parameter: Parameter, given: exp.Expr) -> exp.Expr:
    if parameter.kind == "EXPRESSION":
        return given
    if not (isinstance(given, exp.Literal) and given.is_string):
        raise MacroCallError(
            f"{macro.name}: {parameter.name} is the name of a table, view or CTE in a string, "
            f"not {given.sql('duckdb')}."
        )
    return exp.to_table(given.name, dialect="duckdb")
