"""`tracewh views`: the views that queries are written against, and the macros that they call."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.options import example, json_option
from tracewh.cli.table import Header, print_table, style_for
from tracewh.ingest.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracewh.views.catalog import View
    from tracewh.views.macro_catalog import Macro
    from tracewh.views.sql_files import Column


@click.command(
    "views",
    short_help="List the views and macros, or explain one.",
    epilog=example(
        "tracewh views",
        "tracewh views v1.phase_time",
        "tracewh views v1.phase_time --sql",
        "tracewh views interval_union",
    ),
)
@click.argument("name", required=False)
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL of the view or macro.")
@json_option
def views_command(name: str | None, as_sql: bool, as_json: bool) -> None:
    """List the views and macros with what one row of each is, or explain the view, macro or table NAME.

    A macro is called on a table, view or CTE of your own, whose name is given in a string.
    """
    if as_sql and name is None:
        raise click.UsageError("--sql needs the NAME of a view or macro.")
    if as_sql and as_json:
        raise click.UsageError("--sql and --json are two different outputs; choose one.")
    if name is None:
        if as_json:
            records = [*map(_view_record, public_views()), *map(_macro_record, macros())]
            click.echo(json_text(records))
        else:
            list_all()
    elif (view := find_view(name)) is not None:
        if as_sql:
            click.echo(view.sql)
        elif as_json:
            click.echo(json_text({**_view_record(view), **_details(view)}))
        else:
            show_view(view)
    elif (macro := find_macro(name)) is not None:
        if as_sql:
            click.echo(f"{macro.definition};")
        elif as_json:
            parameters = [dataclasses.asdict(parameter) for parameter in macro.parameters]
            more = {"parameters": parameters, "example": macro.example}
            click.echo(json_text({**_macro_record(macro), **more, **_details(macro)}))
        else:
            show_macro(macro)
    else:
        from tracewh.sql.schema_files import table_definition

        definition = None if as_json else table_definition(name.removeprefix("main."))
        if definition is None:
            raise QueryError(f"There is no view or macro {name}; `tracewh views` lists them.")
        click.echo(definition)


def public_views() -> list[View]:
    """The packaged views that users query, by name."""
    from tracewh.views.catalog import load_views

    return sorted((view for view in load_views() if not view.is_private), key=lambda view: view.name)


def find_view(name: str) -> View | None:
    """The packaged view of that name; a private one is found by its full name only.

    `phase_time` finds the newest of v1.phase_time, v2.phase_time ...
    """
    from tracewh.views.catalog import load_views

    for view in load_views():
        if view.name == name:
            return view
    return max((view for view in public_views() if _bare(view) == name), key=_schema_number, default=None)


def macros() -> list[Macro]:
    """The packaged macros, by name."""
    from tracewh.views.macro_catalog import load_macros

    return load_macros()


def find_macro(name: str) -> Macro | None:
    """The packaged macro of that name; without its schema, the newest."""
    same = (macro for macro in macros() if name in (macro.name, _bare(macro)))
    return max(same, key=_schema_number, default=None)


def list_all() -> None:
    """Print the name and the grain of each view, and below them of each macro."""
    print_table([Header("view"), Header("grain")], [(view.name, view.grain) for view in public_views()])
    click.echo()
    print_table([Header("macro"), Header("grain")], [(macro.name, macro.grain) for macro in macros()])


def show_view(view: View) -> None:
    """Print what a view is and its columns with types, units and descriptions."""
    click.secho(f"{view.name}, version {view.version}", bold=True)
    _print_paragraphs(view.grain, view.summary, f"Evidence: {view.evidence}")
    if view.algorithm:
        click.echo(f"\n{view.algorithm}")
    click.echo()
    _print_columns(view.columns)


def show_macro(macro: Macro) -> None:
    """Print what a macro does, how it is called, and the columns of its result."""
    click.secho(f"{macro.name}, version {macro.version}", bold=True)
    _print_paragraphs(macro.grain, macro.summary)
    if macro.algorithm:
        click.echo(f"\n{macro.algorithm}")
    click.echo(f"\nCall:    FROM {macro.signature}")
    click.echo(textwrap.indent(macro.example, " " * 9).replace(" " * 9, "Example: ", 1))
    click.echo()
    print_table(
        [Header("parameter"), Header("is"), Header("default"), Header("description")],
        [
            (
                parameter.name,
                parameter.kind.lower(),
                "NULL" if parameter.is_optional else "",
                parameter.description,
            )
            for parameter in macro.parameters
        ],
    )
    click.echo()
    _print_columns(macro.columns)


def _print_paragraphs(*paragraphs: str) -> None:
    width = style_for(sys.stdout).width
    for paragraph in paragraphs:
        click.echo(paragraph if width is None else textwrap.fill(paragraph, width))


def _print_columns(columns: Sequence[Column]) -> None:
    print_table(
        [Header("column"), Header("type"), Header("unit"), Header("description")],
        [(column.name, column.type, column.unit, column.description) for column in columns],
    )


def _view_record(view: View) -> dict[str, object]:
    return {
        "name": view.name,
        "kind": "view",
        "version": view.version,
        "grain": view.grain,
        "summary": view.summary,
        "evidence": view.evidence,
    }


def _macro_record(macro: Macro) -> dict[str, object]:
    return {
        "name": macro.name,
        "kind": "macro",
        "version": macro.version,
        "grain": macro.grain,
        "summary": macro.summary,
    }


def _details(item: View | Macro) -> dict[str, object]:
    return {
        "algorithm": item.algorithm,
        "columns": [dataclasses.asdict(column) for column in item.columns],
    }


def _bare(item: View | Macro) -> str:
    return item.name.split(".")[1]


def _schema_number(item: View | Macro) -> int:
    return int(item.name.split(".")[0].removeprefix("v"))
