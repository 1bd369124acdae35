"""Options that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

_ANSI_C = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}

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
git_option = click.option(
    "--git",
    "repository",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The git checkout that knows the commits; the current directory unless given.",
)

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


def spelled_command(ctx: click.Context, command: str, *arguments: str, options: Sequence[str] = ()) -> str:
    """A `tracewh` command line to type next, on the same warehouse as this one, safe to print and to paste.

    `-w` is spelled only where the user did: a default or TRACEWH_DB holds for the next command too.
    """
    is_spelled = ctx.get_parameter_source("warehouse") is ParameterSource.COMMANDLINE
    warehouse = ["-w", str(ctx.params["warehouse"])] if is_spelled else []
    return _command_line([command, *warehouse], arguments, options)


def plain_command(command: str, *arguments: str) -> str:
    """A `tracewh` command line on the warehouse that its reader has, safe to print and to paste."""
    return _command_line([command], arguments, [])


def _command_line(start: Sequence[str], arguments: Sequence[str], options: Sequence[str]) -> str:
    if any(argument.startswith("-") for argument in arguments):
        # What begins like an option is an argument after -- alone.
        words = [*start, *options, "--", *arguments]
    else:
        words = [*start, *arguments, *options]
    return " ".join(map(_shell_word, ["tracewh", *words]))


def _shell_word(word: str) -> str:
    """A word as bash and zsh read it, without a character that would drive a terminal."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(
        char if char.isprintable() and char not in "\\'" else _ANSI_C.get(char) or _escaped(char)
        for char in word
    )
    return f"$'{escaped}'"


def _escaped(char: str) -> str:
    # Of a name that is not UTF-8, Python keeps the bytes as lone surrogates.
    if 0xDC80 <= ord(char) <= 0xDCFF:
        return f"\\x{ord(char) - 0xDC00:02x}"
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
