"""Lint rules on the shape of a view's query: what may appear at all, names, joins, grouping and windows.

Each check walks a sqlglot tree and yields hits: the rule, the offending node, and what to write instead.
"""

import re
from collections.abc import Iterator

from sqlglot import exp

Hit = tuple[str, exp.Expr, str]

_ROW_ORDER_FUNCTIONS = (exp.RowNumber, exp.Rank, exp.Lag, exp.Lead)
_AGGREGATES = (exp.Sum, exp.Count, exp.Min, exp.Max)
_FUNCTIONS: set[type[exp.Expr]] = {
    *_AGGREGATES, *_ROW_ORDER_FUNCTIONS,
    exp.Coalesce, exp.Nullif, exp.Abs, exp.Sqrt, exp.Ln, exp.Least, exp.Greatest,
    exp.Case, exp.Cast, exp.RegexpLike, exp.RegexpExtract, exp.Exists, exp.And, exp.Or,
}  # fmt: skip
_NODES: set[type[exp.Expr]] = {
    exp.Select, exp.Union, exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Group, exp.Having,
    exp.Order, exp.Ordered, exp.Subquery, exp.Table, exp.TableAlias, exp.Values, exp.Tuple,
    exp.Window, exp.WindowSpec, exp.Distinct,
    exp.Identifier, exp.Column, exp.Alias, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.DataType,
    exp.Paren, exp.Not, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like,
}  # fmt: skip
_INSTEAD: dict[type[exp.Expr], str] = {
    exp.Qualify: "filter in a following CTE",
    exp.Filter: "aggregate a CASE",
    exp.IntDiv: "x // k goes through DOUBLE elsewhere: use (x - MOD(x, k)) for a bucket",
    exp.If: "write CASE WHEN",
    exp.TryCast: "clean the value at ingest",
    exp.Limit: "rank with ROW_NUMBER and filter",
}
_READABLE_SCHEMA = re.compile(r"main|v[0-9]+")


def check_allowed(tree: exp.Expr) -> Iterator[Hit]:
    """Only node types and functions that every engine agrees on; an allowlist, so new syntax is refused."""
    for node in tree.walk():
        kind = type(node)
        if kind is exp.If and isinstance(node.parent, exp.Case):
            continue
        if kind not in _FUNCTIONS and kind not in _NODES:
            rule = "function" if isinstance(node, exp.Func) and kind not in _INSTEAD else "node"
            named = node.name if isinstance(node, exp.Anonymous) else kind.__name__
            yield rule, node, _INSTEAD.get(kind, f"{named} is not in the portable subset")
    for distinct in tree.find_all(exp.Distinct):
        if distinct.args.get("on"):
            yield "node", distinct, "DISTINCT ON: rank with ROW_NUMBER and filter"
    for union in tree.find_all(exp.Union):
        if union.args.get("distinct") or union.args.get("by_name"):
            yield "node", union, "write UNION ALL, by position; remove duplicates with GROUP BY"
    for tuple_ in tree.find_all(exp.Tuple):
        if not isinstance(tuple_.parent, exp.Values):
            yield "node", tuple_, "compare the columns one by one"
    for test in tree.find_all(exp.Is):
        if not isinstance(test.expression, exp.Null):
            yield "node", test, "IS TRUE and IS FALSE are rendered wrongly: use COALESCE"
    for column in tree.find_all(exp.Column):
        if column.args.get("db"):
            yield "node", column, "write alias.column; there are no struct fields"


def check_stars(tree: exp.Expr) -> Iterator[Hit]:
    """No SELECT *, whose columns change with its source; also what a bare VALUES becomes."""
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            yield "star", star.parent or star, "list the columns; VALUES needs (VALUES ...) AS v (a, b)"


def check_joins(tree: exp.Expr) -> Iterator[Hit]:
    """Joins are INNER, LEFT, RIGHT or FULL with ON, or say CROSS JOIN."""
    for join in tree.find_all(exp.Join):
        if join.args.get("using") or join.method:
            yield "join", join, "write JOIN ... ON; no USING, NATURAL, ASOF or POSITIONAL"
        elif join.kind not in ("", "INNER", "OUTER", "CROSS"):
            yield "join", join, f"{join.kind} JOIN is not portable: use EXISTS"
        elif join.kind != "CROSS" and not join.args.get("on"):
            yield "join", join, "the join has no ON; write CROSS JOIN if that is meant"


def check_grouping(tree: exp.Expr) -> Iterator[Hit]:
    """GROUP BY lists columns; ORDER BY names its keys and stays out of aggregates."""
    for group in tree.find_all(exp.Group):
        if group.args.get("all") or not group.expressions:
            yield "group-by", group, "list the columns"
        for key in group.expressions:
            if not isinstance(key, exp.Column):
                yield "group-by", key, "group by columns; compute the expression in a CTE before"
    for order in tree.find_all(exp.Order):
        if not isinstance(order.parent, exp.Window | exp.Query):
            yield "order-by", order, "an ordered aggregate loses its order elsewhere"
        for key in order.expressions:
            if isinstance(key.this, exp.Literal | exp.Var):
                yield "order-by", key, "name the columns; no ordinals, no ALL"


def check_windows(tree: exp.Expr) -> Iterator[Hit]:
    """Windows are inline, ordered with NULLS FIRST, and framed by ROWS wherever a frame matters."""
    for window in tree.find_all(exp.Window):
        if window.arg_key == "windows":
            yield "named-window", window, "write the window out in OVER"
        if window.arg_key == "windows" or window.args.get("alias"):
            continue
        order, spec = window.args.get("order"), window.args.get("spec")
        by_row_order = isinstance(window.this, _ROW_ORDER_FUNCTIONS)
        if by_row_order and order is None:
            yield "window-order", window, "without ORDER BY the result is arbitrary"
        if spec is None and order is not None and not by_row_order:
            yield "frame", window, "add a frame: ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        if spec is not None and (spec.args.get("kind") != "ROWS" or spec.args.get("exclude")):
            yield "frame", window, "only ROWS frames, without EXCLUDE"
        for key in order.expressions if order is not None else []:
            if not key.args.get("nulls_first"):
                yield "nulls-first", key, "say NULLS FIRST; engines differ in the default"
            elif key.args.get("desc") and not by_row_order:
                yield (
                    "nulls-first",
                    key,
                    "DESC NULLS FIRST has no BigQuery form here: order by the negated key",
                )


def check_tables(tree: exp.Expr) -> Iterator[Hit]:
    """Tables are main.x or v1.x, or CTEs; CTEs are private, plain and named in their own select list."""
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        is_cte = not table.db and table.name in ctes
        if table.catalog or not (is_cte or _READABLE_SCHEMA.fullmatch(table.db)):
            yield "table-name", table, "read main.<table>, v1.<view> or a CTE"
    for cte in tree.find_all(exp.CTE):
        if not cte.alias.startswith("_"):
            yield "cte-name", cte.args["alias"], "begin the CTE's name with an underscore"
        if cte.args["alias"].columns:
            yield "cte-columns", cte.args["alias"], "name the columns in the CTE's own select list"
        if cte.args.get("materialized") is not None:
            yield (
                "cte-hint",
                cte.args["alias"],
                "[NOT] MATERIALIZED is DuckDB's own; every engine gets the text",
            )


def check_view_names(tree: exp.Expr) -> Iterator[Hit]:
    """A view's names are none that a macro has for itself: __names of CTEs, p_names of parameters."""
    for cte in tree.find_all(exp.CTE):
        if cte.alias.startswith("__"):
            yield "cte-name", cte.args["alias"], "two underscores begin the CTEs of macros: write one"
    for identifier in tree.find_all(exp.Identifier):
        if identifier.name.startswith("p_") and not isinstance(identifier.parent, exp.PropertyEQ):
            yield "parameter-name", identifier, "p_ begins the parameters of macros: rename it"


def check_macro_names(tree: exp.Expr, parameters: set[str]) -> Iterator[Hit]:
    """A macro's names are none that its caller has: see `check_view_names`; and it uses each parameter."""
    for cte in tree.find_all(exp.CTE):
        if not cte.alias.startswith("__"):
            yield "cte-name", cte.args["alias"], "begin the CTE's name with two underscores"
    columns = {column.name: column for column in tree.find_all(exp.Column) if not column.table}
    for name in sorted(parameters | {name for name in columns if name.startswith("p_")}):
        if name not in parameters:
            yield "parameter-name", columns[name], "the header declares no such parameter"
        elif not name.startswith("p_"):
            yield "parameter-name", exp.to_identifier(name), "begin the parameter's name with p_"
        elif name not in columns:
            yield "parameter-name", exp.to_identifier(name), "the query does not use it"


def check_recursion(tree: exp.Expr) -> Iterator[Hit]:
    """Recursion only walks: the rows found last, joined with rows that do not change, UNION ALL.

    DuckDB, Spark (from 4.1), ClickHouse, Trino, BigQuery and Snowflake all have that form. They stop long
    walks: Trino and Athena after 10 rounds by default, Spark after 100. No filter is pushed into it, so it
    belongs on small tables, never on events.
    """
    for with_ in tree.find_all(exp.With):
        if not with_.args.get("recursive"):
            continue
        walks = [cte for cte in with_.expressions if any(_tables_named(cte.this, cte.alias))]
        if not walks:
            yield "recursion", with_, "no CTE reads itself: drop RECURSIVE"
        for cte in walks:
            if fault := _recursion_fault(cte):
                yield "recursion", cte, fault


def _recursion_fault(cte: exp.CTE) -> str | None:
    query = cte.this
    if not isinstance(query, exp.Union) or not isinstance(query.expression, exp.Select):
        return "write: first rows UNION ALL a SELECT of the next rows"
    step = query.expression
    reads = list(_tables_named(query, cte.alias))
    if len(reads) != 1 or reads[0].find_ancestor(exp.Select) is not step:
        return "read the CTE itself once, in the SELECT after UNION ALL"
    if any(join.side for join in step.args.get("joins") or []):
        return "join inner in the SELECT that repeats: engines differ on outer joins there"
    if any(step.args.get(part) for part in ("group", "having", "distinct")) or step.find(
        exp.AggFunc, exp.Window
    ):
        return "no grouping, DISTINCT or window in the SELECT that repeats: it sees one round of rows"
    return None


def _tables_named(query: exp.Expr, name: str) -> Iterator[exp.Table]:
    return (table for table in query.find_all(exp.Table) if not table.db and table.name == name)


def check_aliases(tree: exp.Expr) -> Iterator[Hit]:
    """Output names are explicit and never mistaken for input columns."""
    for select in tree.find_all(exp.Select):
        aliased = {item.alias: item for item in select.expressions if isinstance(item, exp.Alias)}
        if _names_matter(select):
            for item in select.expressions:
                if isinstance(item, exp.Column) and item.table and not isinstance(item.this, exp.Star):
                    yield "qualified-alias", item, f"write {item.sql('duckdb')} AS {item.name}"
                elif not isinstance(item, exp.Column | exp.Alias | exp.Star):
                    yield "qualified-alias", item, "name the expression with AS"
        nodes = list(_own_nodes(select))
        aggregated = {
            column.name
            for node in nodes
            if isinstance(node, exp.AggFunc)
            for column in node.find_all(exp.Column)
        }
        for alias, item in aliased.items():
            if alias in aggregated and item.this.find(exp.AggFunc):
                yield "shadowed-alias", item, "the alias is also a column inside an aggregate: rename it"
        for column in nodes:
            if not isinstance(column, exp.Column) or column.table or column.name not in aliased:
                continue
            item = aliased[column.name]
            is_passed_on = isinstance(item.this, exp.Column) and item.this.name == column.name
            if (
                not is_passed_on
                and not _is_inside(column, item)
                and not _is_inside(column, select.args.get("order"))
            ):
                yield "lateral-alias", column, "is an alias of the same SELECT: qualify it or use a CTE"


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    # A nested query has names of its own.
    return select.walk(prune=lambda node: isinstance(node, exp.Query | exp.CTE) and node is not select)


def _is_inside(node: exp.Expr, ancestor: exp.Expr | None) -> bool:
    current: exp.Expr | None = node
    while current is not None and current is not ancestor:
        current = current.parent
    return ancestor is not None and current is ancestor


def _names_matter(select: exp.Select) -> bool:
    """Whether the columns are read by name: not so in EXISTS, IN, a scalar query or a later UNION arm."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.Union | exp.Subquery):
        if isinstance(node.parent, exp.Union) and node.arg_key == "expression":
            return False
        node = node.parent
    return node.parent is None or isinstance(node.parent, exp.CTE | exp.From | exp.Join)
