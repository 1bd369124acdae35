"""`tracewh ls`: what a warehouse holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tracewh.cli.commit_names import SHORT_SHA, short_commits
from tracewh.cli.json_text import json_text
from tracewh.cli.options import example, json_option, spelled_command, warehouse_option
from tracewh.cli.table import Header, is_whole, print_table, printable, style_for, value_text

_NUMBERS = {
    *("captures", "capture", "process", "devices", "steps", "device_events", "serialized"),
    *("problems", "bytes"),
}
# What is left out, one by one, where a terminal has no room for all.
_RUN_LEFT_OUT = ("device_events", "captures", "device_kind", "commit")
_CAPTURE_LEFT_OUT = ("serialized", "platform", "process")

_Record = dict[str, Any]


@click.command(
    "ls",
    short_help="List the runs, or the captures of a run.",
    epilog=example("tracewh ls", "tracewh ls base --json"),
)
@click.argument("run", required=False)
@warehouse_option
@json_option
@click.pass_context
def ls_command(ctx: click.Context, run: str | None, warehouse: Path, as_json: bool) -> None:
    """List the runs of a warehouse, or the captures and files of one RUN."""
    from tracewh.sql import listing
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened:
        if run is None:
            _show_runs(ctx, listing.runs(opened), as_json)
            return
        listing.check_run(opened, run)
        captures = listing.captures(opened, run)
        artifacts = listing.artifacts(opened, run)
        labels = listing.labels(opened, run)
    if as_json:
        click.echo(json_text({"run": run, "labels": labels, "captures": captures, "artifacts": artifacts}))
        return
    _print_fitting(captures, _CAPTURE_LEFT_OUT)
    if labels:
        click.echo("\nlabels: " + ", ".join(printable(f"{label}={value}") for label, value in labels.items()))
    click.echo()
    _print_records([_with_detail_below(artifact) for artifact in artifacts])


def _show_runs(ctx: click.Context, runs: Sequence[_Record], as_json: bool) -> None:
    if as_json:
        click.echo(json_text(runs))
        return
    names = short_commits(run["commit"] for run in runs if run["commit"])
    first = ["commit"] if any(len(name) > SHORT_SHA for name in names.values()) else []
    shown = [{**run, "commit": run["commit"] and names[run["commit"]]} for run in runs]
    _print_fitting(shown, [*first, *_RUN_LEFT_OUT])
    if not runs:
        click.echo(f"No runs yet. Load one: {spelled_command(ctx, 'ingest', 'DIRECTORY')}", err=True)


def _with_detail_below(artifact: _Record) -> _Record:
    # Both are long: side by side they would leave each other no room on a terminal.
    lines = [text for text in (artifact["path"], artifact["detail"]) if text is not None]
    shown = {name: value for name, value in artifact.items() if name != "detail"}
    return {**shown, "path": "\n  ".join(lines)}


def _print_fitting(records: Sequence[_Record], expendable: Sequence[str]) -> None:
    """Print records without the first of the expendable fields, of as many as there is no room for."""
    left_out: list[str] = []
    for name in dict.fromkeys(expendable):
        if _has_room(records):
            break
        left_out.append(name)
        records = [{key: value for key, value in record.items() if key != name} for record in records]
    _print_records(records)
    if left_out:
        names = ", ".join(name.replace("_", " ") for name in left_out)
        click.echo(f"No room for {names}: a wider terminal or --json shows all.", err=True)


def _has_room(records: Sequence[_Record]) -> bool:
    """Whether the terminal is wide enough for records, with no word of theirs broken."""
    rows = [[value_text(value) for value in record.values()] for record in records]
    return not records or is_whole(_headers(records[0]), rows, style_for(sys.stdout, wrap=True))


def _headers(record: _Record) -> list[Header]:
    # A title of two words stands on two lines: its column of numbers is narrower.
    return [Header(name.replace("_", "\n"), name in _NUMBERS) for name in record]


def _print_records(records: Sequence[_Record]) -> None:
    if records:
        print_table(_headers(records[0]), [tuple(record.values()) for record in records])
