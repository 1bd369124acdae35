"""`tracewh views`: the views that queries are written against."""

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
    from tracewh.views.catalog import View


@click.command(
    "views",
    short_help="List the views, or explain one.",
    epilog=example("tracewh views", "tracewh views v1.phase_time", "tracewh views v1.phase_time --sql"),
)
@click.argument("name", required=False)
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL of the view.")
@json_option
def views_command(name: str | None, as_sql: bool, as_json: bool) -> None:
    """List the views with what one row of each is, or show the columns of the view or table NAME."""
    if as_sql and name is None:
        raise click.UsageError("--sql needs the NAME of a view.")
    if as_sql and as_json:
        raise click.UsageError("--sql and --json are two different outputs; choose one.")
    if name is None:
        views = public_views()
        if as_json:
            click.echo(json_text([_summary_record(view) for view in views]))
        else:
            list_views(views)
        return
    view = find_view(name)
    if view is None:
        from tracewh.sql.schema_files import table_definition

        definition = None if as_json else table_definition(name.removeprefix("main."))
        if definition is None:
            raise QueryError(f"There is no view {name}; `tracewh views` lists them.")
        click.echo(definition)
        return
    if as_sql:
        click.echo(view.sql)
    elif as_json:
        columns = [dataclasses.asdict(column) for column in view.columns]
        click.echo(json_text({**_summary_record(view), "algorithm": view.algorithm, "columns": columns}))
    else:
        show_view(view)


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
    same = [view for view in public_views() if view.name.split(".")[1] == name]
    return max(same, key=lambda view: int(view.name.split(".")[0].removeprefix("v")), default=None)


def list_views(views: list[View]) -> None:
    """Print the name and the grain of each view."""
    print_table([Header("view"), Header("grain")], [(view.name, view.grain) for view in views])


def show_view(view: View) -> None:
    """Print what a view is and its columns with types, units and descriptions."""
    click.secho(f"{view.name}, version {view.version}", bold=True)
    paragraphs = [view.grain, view.summary, f"Evidence: {view.evidence}"]
    width = style_for(sys.stdout).width
    for paragraph in paragraphs:
        click.echo(paragraph if width is None else textwrap.fill(paragraph, width))
    if view.algorithm:
        click.echo(f"\n{view.algorithm}")
    click.echo()
    print_table(
        [Header("column"), Header("type"), Header("unit"), Header("description")],
        [(column.name, column.type, column.unit, column.description) for column in view.columns],
    )


def _summary_record(view: View) -> dict[str, object]:
    return {
        "name": view.name,
        "version": view.version,
        "grain": view.grain,
        "summary": view.summary,
        "evidence": view.evidence,
    }
