"""Write view and macro files for tests."""

from tracewh.views.catalog import View, views_from_files


def view_text(name: str, sql: str, version: int = 1, columns: str = "a BIGINT: the value") -> str:
    return (
        f"-- name: {name}\n-- version: {version}\n-- grain: one row per value\n-- summary: A view.\n"
        f"-- evidence: derived\n-- columns:\n--   {columns}\n\n{sql}\n"
    )


def macro_text(
    name: str,
    sql: str = "SELECT p_value AS a FROM query_table(p_rows) AS r",
    version: int = 1,
    parameters: tuple[str, ...] = ("p_rows RELATION", "p_value EXPRESSION = NULL"),
) -> str:
    listed = "".join(f"--   {parameter}: what it is\n" for parameter in parameters)
    return (
        f"-- name: {name}\n-- version: {version}\n-- grain: one row per row\n-- summary: A macro.\n"
        f"-- parameters:\n{listed}-- columns:\n--   a ANY: the value\n"
        f"-- example: SELECT f.a FROM {name}('captures', run_id) AS f\n\n{sql}\n"
    )


def views_of(queries: dict[str, str]) -> dict[str, View]:
    """The views of `{name: query}`, by name, parents first."""
    texts = {f"topic/{name.split('.')[1]}.sql": view_text(name, sql) for name, sql in queries.items()}
    return {view.name: view for view in views_from_files(texts)}
