"""`tracewh report`: where the step of a run went, as tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tracewh.cli.options import example, warehouse_option
from tracewh.cli.report_values import value_text
from tracewh.cli.table import Header, printable, style_for, write_table

if TYPE_CHECKING:
    from tracewh.sql.run_report import ReportTable

FORMATS = ("text", "markdown", "html")
_SUFFIX_FORMATS = {".html": "html", ".htm": "html", ".md": "markdown"}
_NOTE_WIDTH = 100
_HEADING_WIDTH = 11


@click.command(
    "report",
    short_help="Show where the step of a run went.",
    epilog=example("tracewh report base", "tracewh report base --output base.html"),
)
@click.argument("run")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="Format of the report; by the suffix of --output unless given, else text.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@warehouse_option
def report_command(run: str, format_name: str | None, output: Path | None, warehouse: Path) -> None:
    """Show where the step of RUN went: phases, timeline, components, communication and idle time.

    Numbers are means over the complete steps of all devices of the run. Each table is a view of the
    warehouse (`tracewh views`), so that every number can be asked for again.
    """
    from tracewh.cli.output import replacing
    from tracewh.ingest.errors import WarehouseError
    from tracewh.sql.run_report import report_tables
    from tracewh.sql.warehouse import Warehouse

    chosen = format_name or (_SUFFIX_FORMATS.get(output.suffix.lower(), "text") if output else "text")
    with Warehouse.open(warehouse, read_only=True) as opened:
        tables = report_tables(opened, run)
    if not tables:
        raise WarehouseError(
            f"Run {_line(run)} has no device work to report: profile it with device tracing on and ingest "
            "that; `tracewh check` says what its captures lack."
        )
    if output is None:
        _write(tables, run, chosen, sys.stdout)
        return
    with replacing(output) as target, open(target, "w", encoding="utf-8") as stream:
        _write(tables, run, chosen, stream)


def _write(tables: Sequence[ReportTable], run: str, format_name: str, stream: TextIO) -> None:
    if format_name == "html":
        from tracewh.cli.report_html import html_report

        stream.write(html_report(tables, run))
    elif format_name == "markdown":
        _write_markdown(tables, run, stream)
    else:
        _write_text(tables, run, stream)


def _write_text(tables: Sequence[ReportTable], run: str, stream: TextIO) -> None:
    import textwrap

    style = style_for(stream, wrap=True)
    width = min(style.width or _NOTE_WIDTH, _NOTE_WIDTH)

    def heading(text: str) -> str:
        return click.style(_line(text), bold=True) if style.color else _line(text)

    stream.write(heading(run) + "\n")
    for table in tables:
        stream.write(f"\n{heading(table.title)}\n")
        if table.note:
            stream.write(textwrap.fill(" ".join(table.note.split()), width) + "\n")
        stream.write("\n")
        cells = _cells(table)
        write_table(_broken_headers(table, cells), cells, stream, style)


def _line(text: str) -> str:
    """A name from outside as one line that cannot drive a terminal."""
    return printable(text).replace("\n", " ")


def _write_markdown(tables: Sequence[ReportTable], run: str, stream: TextIO) -> None:
    from tracewh.cli.output import markdown_cell

    stream.write(f"# {markdown_cell(run)}\n")
    for table in tables:
        stream.write(f"\n## {markdown_cell(table.title)}\n\n")
        if table.note:
            stream.write(markdown_cell(" ".join(table.note.split())) + "\n\n")
        headers = _headers(table)
        stream.write("| " + " | ".join(markdown_cell(header.title) for header in headers) + " |\n")
        stream.write("|" + "|".join("---:" if header.is_number else "---" for header in headers) + "|\n")
        for row in _cells(table):
            stream.write("| " + " | ".join(markdown_cell(cell) for cell in row) + " |\n")


def _broken_headers(table: ReportTable, cells: Sequence[Sequence[str]]) -> list[Header]:
    """Headers of number columns in several lines, where one would be wider than the numbers."""
    import textwrap

    headers = []
    for position, header in enumerate(_headers(table)):
        width = max(_HEADING_WIDTH, *(len(row[position]) for row in cells))
        lines = textwrap.wrap(header.title, width, break_long_words=False) if header.is_number else []
        headers.append(Header("\n".join(lines) or header.title, header.is_number))
    return headers


def _headers(table: ReportTable) -> list[Header]:
    return [Header(column.heading, column.unit is not None) for column in table.columns]


def _cells(table: ReportTable) -> list[list[str]]:
    return [
        [value_text(value, column.unit) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
