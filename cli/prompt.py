"""The prompt of `tracewh sql`: statements that end with `;`, and a few dot commands."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import complete_statement
from typing import TYPE_CHECKING

import click

from tracewh import __version__
from tracewh.cli.errors import is_interrupt, user_message
from tracewh.ingest.errors import QueryError

if TYPE_CHECKING:
    from tracewh.sql.warehouse import Warehouse

HISTORY_LINES = 1_000
HELP = """\
Type SQL and end it with ; to run it. Ctrl-C drops what you typed, Ctrl-D quits.
  .tables         tables of the warehouse
  .views          views and macros, and what one row of each is
  .schema NAME    columns of a table, view or macro
  .help           this text
  .quit           leave"""

# What people type at other prompts; none of these words is a statement.
_BARE_COMMANDS = {"help": ".help", "quit": ".quit", "exit": ".quit", "q": ".quit", "\\q": ".quit"}
_NAME = re.compile(r"\w+(\.\w+)*")


def run_prompt(warehouse: Warehouse, answer: Callable[[str], None]) -> None:
    """Read statements and pass each to `answer` until end of input or .quit; an error does not end it."""
    click.echo(f"tracewh {__version__}: {warehouse.path}, read-only. Type .help for help.", err=True)
    with _history():
        for statement in _statements():
            try:
                if statement.startswith("."):
                    if statement in (".quit", ".exit"):
                        return
                    _run_dot_command(statement, answer)
                else:
                    answer(statement)
            except (Exception, KeyboardInterrupt) as error:
                _show_error(error)


def _show_error(error: Exception | KeyboardInterrupt) -> None:
    if is_interrupt(error):
        click.echo("\nInterrupted.", err=True)
        return
    message = user_message(error) if isinstance(error, Exception) else None
    if message is None:
        raise error
    click.echo(f"Error: {message}", err=True)


def _statements() -> Iterator[str]:
    """Complete statements and dot commands as they are typed."""
    typed = ""
    while True:
        try:
            line = input("    ...> " if typed else "tracewh> ")
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            typed = ""
            continue
        word = line.strip()
        if not typed and (word.startswith(".") or word in _BARE_COMMANDS):
            yield _BARE_COMMANDS.get(word, word)
            continue
        typed = f"{typed}\n{line}" if typed else line
        if not typed.strip():
            typed = ""
        # SQLite's own test whether a ; ends the text: one in a string or a comment does not.
        elif complete_statement(typed):
            statement, typed = typed, ""
            yield statement


def _run_dot_command(line: str, answer: Callable[[str], None]) -> None:
    from tracewh.cli.views import find_macro, find_view, list_all, show_macro, show_view

    match line.split():
        case [".help"]:
            click.echo(HELP, err=True)
        case [".tables"]:
            from tracewh.sql.listing import tables_query

            answer(tables_query())
        case [".views"]:
            list_all()
        case [".schema", name]:
            view, macro = find_view(name), find_macro(name)
            if view is not None:
                show_view(view)
            elif macro is not None:
                show_macro(macro)
            elif _NAME.fullmatch(name):
                answer(f"DESCRIBE {name}")
            else:
                raise QueryError(f"{name} is not the name of a table, view or macro.")
        case _:
            raise QueryError(f"There is no command {line}; .help lists them.")


@contextmanager
def _history() -> Iterator[None]:
    """Line editing with a history that outlives the prompt, where the platform and the home allow it."""
    try:
        import readline
    except ImportError:
        yield
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tracewh"
    path = state / "sql_history"
    readline.set_history_length(HISTORY_LINES)
    with suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        with suppress(OSError):
            state.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)
