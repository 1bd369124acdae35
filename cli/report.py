"""`tracewh report`: where the step of a run went, as tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tracewh.cli.options import example, plain_command, spelled_command, warehouse_option
from tracewh.cli.report_values import table_formats
from tracewh.cli.table import Header, Style, is_whole, printable, style_for, write_table

if TYPE_CHECKING:
    from tracewh.sql.run_report import ReportTable

FORMATS = ("text", "markdown", "html")
_SUFFIX_FORMATS = {
    ".htm": "html",
    ".html": "html",
    ".markdown": "markdown",
    ".md": "markdown",
    ".text": "text",
    ".txt": "text",
    "": "text",
}
_NOTE_WIDTH = 100
# Headings of numbers are broken into lines of at most so many characters, or else at every word; then they
# also name the unit, so that the cells need not.
_LAYOUTS = ((11, False), (1, False), (1, True))
_CLOSING = "What makes numbers of a run wrong or easily misread:"


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
@click.pass_context
def report_command(
    ctx: click.Context, run: str, format_name: str | None, output: Path | None, warehouse: Path
) -> None:
    """Show where the step of RUN went: phases, timeline, components, communication and idle time.

    Numbers are means over the complete steps of all devices of the run, or over its whole captures where it
    has none. Each table is a view of the warehouse (`tracewh views`), so that every number can be asked for
    again.
    """
    from tracewh.cli.output import replacing
    from tracewh.ingest.errors import WarehouseError
    from tracewh.sql.run_report import report_tables, what_instead
    from tracewh.sql.warehouse import Warehouse

    chosen = format_name or ("text" if output is None else _format_by_suffix(output))
    with Warehouse.open(warehouse, read_only=True) as opened:
        tables = report_tables(opened, run)
        instead = None if tables else what_instead(opened, run)
    if instead is not None:
        raise WarehouseError(
            f"There is no report: run {_line(run)} {instead}. For a report profile it with device tracing "
            "on, and ingest that."
        )
    if output is None:
        # A page goes to others, whose warehouse lies elsewhere.
        check = spelled_command(ctx, "check", run) if chosen == "text" else plain_command("check", run)
        _write(tables, run, chosen, sys.stdout, check)
        return
    with replacing(output) as target, open(target, "w", encoding="utf-8") as stream:
        _write(tables, run, chosen, stream, plain_command("check", run))


def _format_by_suffix(output: Path) -> str:
    suffix = output.suffix.lower()
    if suffix not in _SUFFIX_FORMATS:
        known = ", ".join(filter(None, _SUFFIX_FORMATS))
        raise click.BadParameter(
            f"{printable(output.name)} has no suffix of a format: {known}. Or choose one with --format.",
            param_hint="--output",
        )
    return _SUFFIX_FORMATS[suffix]


def _write(tables: Sequence[ReportTable], run: str, format_name: str, stream: TextIO, check: str) -> None:
    if format_name == "html":
        from tracewh.cli.report_html import html_report

        stream.write(html_report(tables, run, f"{_CLOSING} {check}"))
    elif format_name == "markdown":
        _write_markdown(tables, run, stream)
        stream.write(f"\n{_CLOSING}\n\n    {check}\n")
    else:
        _write_text(tables, run, stream)
        stream.write(f"\n{_CLOSING}\n  {check}\n")


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
        headers, cells = _laid_out(table, style)
        write_table(headers, cells, stream, style)


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


def _laid_out(table: ReportTable, style: Style) -> tuple[list[Header], list[list[str]]]:
    """Headers and cells, as wide as the style has room for without breaking a word."""
    headers: list[Header] = []
    cells: list[list[str]] = []
    for width, is_narrow in _LAYOUTS:
        cells = _cells(table, is_narrow=is_narrow)
        headers = [
            Header(_broken(header.title, max(width, *(len(row[position]) for row in cells))), True)
            if header.is_number
            else header
            for position, header in enumerate(_headers(table, is_narrow=is_narrow))
        ]
        if is_whole(headers, cells, style):
            break
    return headers, cells


def _broken(title: str, width: int) -> str:
    """A heading of numbers in several lines, where one would be wider than the numbers."""
    import textwrap

    return "\n".join(textwrap.wrap(title, width, break_long_words=False, break_on_hyphens=False))


def _headers(table: ReportTable, *, is_narrow: bool = False) -> list[Header]:
    formats = table_formats(table, is_narrow=is_narrow)
    return [
        Header(form.heading(column.heading), form.is_number)
        for column, form in zip(table.columns, formats, strict=True)
    ]


def _cells(table: ReportTable, *, is_narrow: bool = False) -> list[list[str]]:
    formats = table_formats(table, is_narrow=is_narrow)
    return [[form.text(value) for value, form in zip(row, formats, strict=True)] for row in table.rows]
