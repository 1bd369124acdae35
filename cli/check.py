"""`tracewh check`: what is wrong with a run, before its numbers are believed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracewh.cli.interrupt import interruptible
from tracewh.cli.json_text import json_text
from tracewh.cli.options import example, json_option, spelled_command, warehouse_option
from tracewh.cli.table import Header, Style, print_table, printable, style_for, write_table

if TYPE_CHECKING:
    from tracewh.sql.audits import AuditResult
    from tracewh.views.audit_catalog import Audit

EXIT_FAULTS = 1
EXIT_USAGE = 2
DEFAULT_MAX_ROWS = 5
_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}
_LONGEST_CELL = 120
_DIGITS = 4
# To say passed would claim more: a check of devices finds nothing where there is none.
_NOTHING_FOUND = "Nothing found by (also where a run lacks what the check looks at):"


class _UnknownName(click.ClickException):
    exit_code = EXIT_USAGE


@click.command(
    "check",
    short_help="Say what is wrong with runs.",
    epilog=example(
        "tracewh check base",
        "tracewh check --strict --json > faults.json",
        "tracewh check base --only unattributed_time --max-rows 50",
        "tracewh check --list",
        'tracewh sql "$(tracewh check --sql few_steps)"',
    ),
)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@warehouse_option
@click.option("--only", metavar="NAME", multiple=True, help="Make this check alone; may be repeated.")
@click.option("--skip", metavar="NAME", multiple=True, help="Leave this check out; may be repeated.")
@click.option("--strict", is_flag=True, help="Notes count as faults too.")
@click.option("--all", "show_all", is_flag=True, help="Show the checks that found nothing, too.")
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Rows shown of each check.  [default: {DEFAULT_MAX_ROWS}; all in JSON]",
)
@click.option("--list", "as_list", is_flag=True, help="List the checks and what each asks, and make none.")
@click.option("--sql", "sql_name", metavar="NAME", help="Print the query of a check, and make none.")
@json_option
@click.pass_context
def check_command(
    ctx: click.Context,
    runs: tuple[str, ...],
    warehouse: Path,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    strict: bool,
    show_all: bool,
    max_rows: int | None,
    as_list: bool,
    sql_name: str | None,
    as_json: bool,
) -> None:
    """Check each RUN, or all runs, for what makes its numbers wrong or easily misread.

    Each check is a query whose rows are faults. Errors make numbers wrong, warnings make some of them
    doubtful, notes say what a reader should know. The exit code is 1 with an error or a warning, else 0.
    """
    audits = _chosen(only, skip)
    if sql_name is not None:
        click.echo(_find(sql_name).sql)
        return
    if as_list:
        _list(audits, as_json)
        return
    from tracewh.sql.audits import run_audits, run_names
    from tracewh.sql.listing import missing_run
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened, interruptible(opened.connection):
        known = run_names(opened)
        chosen = list(dict.fromkeys(runs)) or known
        for name in chosen:
            if name not in known:
                raise _UnknownName(printable(missing_run(name, known)))
        results = list(run_audits(opened, audits, chosen if runs else None))
    if as_json:
        click.echo(json_text(_report(chosen, results, show_all, max_rows)))
    elif not known:
        click.echo(f"No runs yet. Load one: {spelled_command(ctx, 'ingest', 'DIRECTORY')}", err=True)
    else:
        _print(ctx, chosen, results, show_all, DEFAULT_MAX_ROWS if max_rows is None else max_rows)
    if any(result.rows and (strict or result.audit.severity != "note") for result in results):
        ctx.exit(EXIT_FAULTS)


def _chosen(only: Sequence[str], skip: Sequence[str]) -> list[Audit]:
    from tracewh.views.audit_catalog import load_audits

    wanted, unwanted = ({_find(name).name for name in names} for names in (only, skip))
    return [
        audit
        for audit in load_audits()
        if (not wanted or audit.name in wanted) and audit.name not in unwanted
    ]


def _find(name: str) -> Audit:
    from tracewh.views.audit_catalog import load_audits

    audits = {audit.name: audit for audit in load_audits()}
    if name not in audits:
        from tracewh.sql.audits import missing_audit

        raise _UnknownName(printable(missing_audit(name, list(audits))))
    return audits[name]


def _list(audits: Sequence[Audit], as_json: bool) -> None:
    if as_json:
        click.echo(json_text([_record(audit) for audit in audits]))
        return
    headers = [Header("severity"), Header("check"), Header("question")]
    print_table(headers, [(audit.severity, audit.name, audit.question) for audit in audits])


def _record(audit: Audit) -> dict[str, object]:
    return {
        "check": audit.name,
        "severity": audit.severity,
        "question": audit.question,
        "meaning": audit.meaning,
        "next": audit.next_step,
        "evidence": audit.evidence,
    }


def _report(
    runs: Sequence[str], results: Sequence[AuditResult], show_all: bool, max_rows: int | None
) -> dict[str, object]:
    return {
        "runs": list(runs),
        "checks": [
            {
                **_record(result.audit),
                "row_count": len(result.rows),
                "rows": [
                    {column.name: value for column, value in zip(result.audit.columns, row, strict=True)}
                    for row in result.rows[:max_rows]
                ],
            }
            for result in results
            if result.rows or show_all
        ],
    }


def _print(
    ctx: click.Context, runs: Sequence[str], results: Sequence[AuditResult], show_all: bool, max_rows: int
) -> None:
    style = style_for(sys.stdout, wrap=True)
    for result in results:
        if result.rows:
            _print_faults(ctx, runs, result, max_rows, style)
    if show_all:
        silent = [result.audit for result in results if not result.rows]
        if silent:
            click.echo(_paragraph(_NOTHING_FOUND, style))
            headers = [Header("check"), Header("question")]
            print_table(headers, [(audit.name, audit.question) for audit in silent])
            click.echo()
    click.echo(_summary(runs, results))


def _print_faults(
    ctx: click.Context, runs: Sequence[str], result: AuditResult, max_rows: int, style: Style
) -> None:
    audit, rows = result.audit, result.rows
    title = f"{audit.severity.upper()}  {audit.name}"
    click.echo(click.style(title, fg=_COLORS[audit.severity], bold=True) if style.color else title)
    click.echo(_paragraph(audit.meaning, style))
    click.echo()
    shown = [
        (position, column)
        for position, column in enumerate(audit.columns)
        if not (column.name == "run_name" and len(runs) == 1)
        and any(row[position] is not None for row in rows[:max_rows])
    ]
    if shown:
        # A title of two words stands on two lines: its column of numbers is narrower.
        headers = [
            Header(column.name.replace("_", "\n"), column.type in ("BIGINT", "INTEGER", "DOUBLE"))
            for _, column in shown
        ]
        cells = [[_cell(row[position]) for position, _ in shown] for row in rows[:max_rows]]
        write_table(headers, cells, sys.stdout, style)
    if len(rows) > max_rows:
        options = ["--only", audit.name, "--max-rows", str(len(rows))]
        more = _count("more row" if shown else "row", len(rows) - (max_rows if shown else 0))
        click.echo(f"... {more}: {spelled_command(ctx, 'check', *ctx.params['runs'], options=options)}")
    click.echo()
    click.echo(_paragraph(f"Next: {audit.next_step}", style))
    click.echo()


def _paragraph(text: str, style: Style) -> str:
    return text if style.width is None else click.wrap_text(text, style.width)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


def _number(value: float) -> str:
    """Four significant digits, and all before the point."""
    if not value or not math.isfinite(value) or not 1e-4 <= abs(value) < 1e12:
        return f"{value:.{_DIGITS}g}"
    return f"{value:,.{max(0, _DIGITS - 1 - math.floor(math.log10(abs(value))))}f}"


def _summary(runs: Sequence[str], results: Sequence[AuditResult]) -> str:
    found = [result.audit.severity for result in results if result.rows]
    counts = [_count(severity, found.count(severity)) for severity in _COLORS if severity in found]
    whole = f"{_count('check', len(results))} of {_count('run', len(runs))}"
    return f"{whole}: {', '.join(counts) or 'nothing found'}."


def _count(noun: str, count: int) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
