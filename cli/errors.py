"""Which errors the command line shows as one line, and what that line says."""

from __future__ import annotations

import os
import re
import sys

import click

from tracewh.cli.table import printable
from tracewh.ingest.errors import TracewhError

# What DuckDB says of a parameter with bytes that are no UTF-8, which Python takes for lone surrogates.
_NO_UTF8 = "cannot encode str as UTF-8"
_LINE_OF_QUERY = re.compile(r"^LINE (\d+):", re.MULTILINE)


def is_interrupt(error: BaseException) -> bool:
    """Whether the user pressed Ctrl-C, also where DuckDB took the signal and raised an error of its own."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return True
    duckdb = sys.modules.get("duckdb")
    return (isinstance(error, RuntimeError) and str(error) == "Query interrupted") or (
        duckdb is not None and isinstance(error, duckdb.InterruptException)
    )


def user_message(error: Exception) -> str | None:
    """One line for an error that comes from the input, the files or the query; None for any other error."""
    if isinstance(error, BrokenPipeError):
        return None
    duckdb = sys.modules.get("duckdb")
    is_users = isinstance(error, TracewhError | OSError) or (
        duckdb is not None and isinstance(error, duckdb.Error)
    )
    return _one_line(_text(error)) if is_users else None


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}."
    if _NO_UTF8 in str(error):
        return "an argument is no UTF-8 text. Write it in UTF-8."
    return str(error)


def _one_line(text: str) -> str:
    # DuckDB's messages end with a copy of the query and a mark below it, which need more than a line.
    first_paragraph, _, rest = text.strip().partition("\n\n")
    place = _LINE_OF_QUERY.search(rest)
    line = printable(" ".join(first_paragraph.split("\n")))
    return line if place is None or place[1] == "1" else f"{line} (line {place[1]})"
