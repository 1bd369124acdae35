"""Options that several commands share."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from click.core import ParameterSource

warehouse_option = click.option(
    "-w",
    "--warehouse",
    type=click.Path(dir_okay=False, path_type=Path),
    default="tracewh.duckdb",
    envvar="TRACEWH_DB",
    show_default=True,
    show_envvar=True,
    metavar="FILE",
    help="The warehouse.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON instead of a table.")

steps_option = click.option(
    "--steps", metavar="A-B", help="Only these steps count, as 10-12; the views leave out the others."
)
step_marker_option = click.option(
    "--step-marker",
    metavar="REGEX",
    help="Host events whose name or marker text it matches, as a whole, are the steps.",
)


def hand_warehouse_down(ctx: click.Context, warehouse: Path) -> None:
    """Let a `-w` that stands before the name of a subcommand hold for the subcommand."""
    if ctx.get_parameter_source("warehouse") is ParameterSource.COMMANDLINE:
        assert isinstance(ctx.command, click.Group)
        ctx.default_map = {name: {"warehouse": str(warehouse)} for name in ctx.command.commands}


def example(*commands: str) -> str:
    """The epilog of a command's help: command lines to try."""
    return "\n".join(["\b", "Example:", *(f"  {command}" for command in commands)])


def spelled_command(ctx: click.Context, *words: str) -> str:
    """A `tracewh` command line to type next, on the same warehouse as this one.

    `-w` is spelled only where the user did: a default or TRACEWH_DB holds for the next command too.
    """
    command = ["tracewh", *words]
    if ctx.get_parameter_source("warehouse") is ParameterSource.COMMANDLINE:
        command[2:2] = ["-w", str(ctx.params["warehouse"])]
    return shlex.join(command)
