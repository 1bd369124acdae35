"""`tracewh sql`: ask the warehouse."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tracewh.cli.interrupt import interruptible
from tracewh.cli.options import example, warehouse_option
from tracewh.cli.output import FORMATS, SUFFIX_FORMATS, write_result

if TYPE_CHECKING:
    from tracewh.sql.warehouse import Warehouse

# Views that read what is kept of metrics.
_OF_METRICS = re.compile(r"\bv1\.(metric|step_change|kernel_changes)", re.IGNORECASE)


@click.command(
    "sql",
    short_help="Run a query, or open a prompt.",
    epilog=example(
        'tracewh sql "SELECT * FROM v1.captures"',
        'tracewh sql "SELECT * FROM v1.phase_time" --format csv > phases.csv',
        "tracewh sql -f question.sql -o answer.parquet",
    ),
)
@click.argument("query", required=False)
@warehouse_option
@click.option(
    "-f",
    "--file",
    "query_file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Read the query from FILE.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="How the result is written; unless given, what the name after -o says, else table.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the result to FILE instead of stdout.",
)
def sql_command(
    query: str | None,
    warehouse: Path,
    query_file: TextIO | None,
    format_name: str | None,
    output: Path | None,
) -> None:
    """Run QUERY, which may read the warehouse but not change it, and write its result.

    Without a QUERY it is read from stdin; at a terminal that opens a prompt. A table is never cut in a pipe
    or a file. In JSON, NaN and infinity are null and bytes are hexadecimal.
    """
    if query is not None and query_file is not None:
        raise click.UsageError("Give a QUERY or a file with -f, not both.")
    chosen = format_name or (SUFFIX_FORMATS.get(output.suffix.lower()) if output else None) or "table"
    if chosen == "parquet" and output is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is binary: name a file with -o, or pipe it.")
    at_prompt = query is None and query_file is None and sys.stdin.isatty() and sys.stdout.isatty()
    if at_prompt and output is not None:
        raise click.UsageError("-o needs a QUERY or a file with -f.")
    text = query if query is not None else _read_query(query_file, at_prompt)
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened, interruptible(opened.connection):
        if at_prompt:
            from tracewh.cli.prompt import run_prompt

            run_prompt(opened, lambda statement: answer(opened, statement, chosen, None))
        else:
            answer(opened, text, chosen, output)
            _note_missing_metrics(opened, text)


def _note_missing_metrics(warehouse: Warehouse, query: str) -> None:
    """Say so where a query asks for metrics that are not computed yet, rather than answer with fewer rows."""
    if _OF_METRICS.search(query) is None:
        return
    from tracewh.sql.kept_metrics import outdated_metrics

    missing = len(outdated_metrics(warehouse.connection))
    if missing:
        runs = "1 run" if missing == 1 else f"{missing:,} runs"
        click.echo(f"Metrics of {runs} are not computed, or outdated: `tracewh metrics` does that.", err=True)


def _read_query(query_file: TextIO | None, at_prompt: bool) -> str:
    if at_prompt:
        return ""
    text = (query_file or sys.stdin).read()
    if not text.strip():
        raise click.UsageError("There is no query: give one as an argument, with -f, or on stdin.")
    return text


def answer(warehouse: Warehouse, query: str, format_name: str, output: Path | None) -> None:
    """Run a query and write its result to `output`, or to stdout where that is None.

    Raises QueryError, and what DuckDB raises while rows are read.
    """
    relation = warehouse.sql(query)
    if relation is None:
        return
    count = write_result(relation, format_name, output)
    if output is not None or (format_name == "table" and sys.stdout.isatty()):
        rows = f"{count:,} row" + ("" if count == 1 else "s")
        click.echo(f"({rows})" if output is None else f"Wrote {rows} to {output}.", err=True)
