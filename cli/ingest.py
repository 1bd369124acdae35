"""`tracewh ingest`: load the profiler output of runs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracewh.cli.interrupt import interruptible
from tracewh.cli.options import (
    example,
    json_option,
    spelled_command,
    step_marker_option,
    steps_option,
    warehouse_option,
)
from tracewh.cli.progress import IngestProgress
from tracewh.cli.table import Header, print_table, printable
from tracewh.ingest.errors import NothingToIngest, UnreadableFile
from tracewh.ingest.storable_text import storable

if TYPE_CHECKING:
    from tracewh.ingest.discovery import Artifact
    from tracewh.sql.ingestion import RunReport

_COUNTS = ("captures", "devices", "events", "modules", "steps", "problems")
# A first question for what was loaded; the views say more.
_PHASE_QUERY = (
    "SELECT capture_id, device_ordinal, phase, union_ps, share_ratio FROM v1.phase_time "
    "WHERE step_num IS NULL ORDER BY ALL"
)
_KERNEL_QUERY = (
    "SELECT kernel_name, occurrences, total_ms FROM v1.kernel_stats ORDER BY total_ms DESC LIMIT 10"
)
_COUNTER_QUERY = "SELECT * FROM v1.kernel_counters"
_CAPTURE_QUERY = "SELECT * FROM v1.captures"
_STANDARD_INPUT = Path("-")


def _parse_labels(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in values:
        label, equals, value = text.partition("=")
        if not label or not equals:
            raise click.BadParameter(f"{text!r} is not of the form K=V.")
        if label in labels:
            raise click.BadParameter(f"{label!r} is given twice.")
        labels[label] = value
    return labels


@click.command(
    "ingest",
    short_help="Load the captures of a run directory.",
    epilog=example(
        "tracewh ingest runs/base",
        "tracewh ingest runs/new --commit 4f2a91c --label batch=64",
        "tracewh ingest runs/rocprof --steps 10-12 --step-marker 'train_step ([0-9]+)'",
        "ssh host cat run/host.xplane.pb | tracewh ingest - --run base",
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@warehouse_option
@click.option("--run", "run_name", metavar="NAME", help="Name of the run; its directory's name unless given.")
@click.option("--commit", "commit_sha", metavar="SHA", help="Commit that the run was made from.")
@click.option(
    "--label",
    "labels",
    metavar="K=V",
    multiple=True,
    callback=_parse_labels,
    help="A label; may be repeated.",
)
@steps_option
@step_marker_option
@click.option("--force", is_flag=True, help="Load again what the warehouse already has.")
@json_option
@click.pass_context
def ingest_command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    warehouse: Path,
    run_name: str | None,
    commit_sha: str | None,
    labels: dict[str, str],
    steps: str | None,
    step_marker: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Find every artifact in each PATH, a run directory or a single file, and load its captures.

    A PATH that holds several runs, each with a config of its own, loads as several. The PATH - is an XSpace
    capture on standard input. A capture is loaded whole
    or not at all. Bytes that the warehouse already has change nothing. A file that cannot be read does not
    stop the others: it is named at the end, and the exit code is 1.
    """
    if run_name is not None and len(paths) > 1:
        raise click.UsageError("--run names one run; give one PATH with it.")
    for text in (run_name, commit_sha, *labels, *labels.values()):
        if text is not None and storable(text) != text:
            raise click.UsageError("--run, --commit and --label must be UTF-8 text.")
    from tracewh.sql.ingestion import IngestOptions, ingest_path, ingest_piped
    from tracewh.sql.step_choices import StepChoice
    from tracewh.sql.warehouse import Warehouse

    choice = StepChoice.parse(steps, step_marker)
    options = IngestOptions(run_name, commit_sha, labels, force, choice)
    reports: list[RunReport] = []
    failed: dict[Path, str] = {}
    with ExitStack() as stack:
        # Before the warehouse is opened, which a slow pipe would keep from others.
        piped = _read_stdin(stack, failed) if _STANDARD_INPUT in paths else None
        opened = stack.enter_context(Warehouse.open(warehouse, read_only=False))
        stack.enter_context(interruptible(opened.connection))
        progress = stack.enter_context(IngestProgress())
        for run in _runs(paths, run_name, failed):
            click.echo(printable(str(run)), err=True)
            try:
                if run == _STANDARD_INPUT and piped is not None:
                    reports.append(ingest_piped(opened, piped, options, progress))
                else:
                    reports.append(ingest_path(opened, run, options, progress))
            except (NothingToIngest, UnreadableFile) as error:
                failed[run] = str(error)
    if as_json:
        click.echo(_json_report(reports, failed))
    elif reports:
        _print_reports(reports)
        _print_next(ctx, reports)
    for text in _held_elsewhere(reports):
        click.echo(printable(text), err=True)
    for report in reports:
        for text in report.warnings:
            click.echo(f"Warning: {printable(f'{report.run_name}: {text}')}", err=True)
    errors = [*_rejections(reports), *failed.values()]
    for text in errors:
        click.echo(f"Error: {printable(text)}", err=True)
    if errors or any(report.status == "failed" for report in reports):
        ctx.exit(1)


def _read_stdin(stack: ExitStack, failed: dict[Path, str]) -> Artifact | None:
    """The capture on standard input, kept until `stack` ends; None where it is noted in `failed`."""
    from tracewh.ingest.piped import piped_capture

    stream = None if sys.stdin is None else sys.stdin.buffer
    try:
        return stack.enter_context(piped_capture(stream))
    except (NothingToIngest, UnreadableFile) as error:
        failed[_STANDARD_INPUT] = str(error)
        return None


def _runs(paths: Sequence[Path], run_name: str | None, failed: dict[Path, str]) -> Iterator[Path]:
    """The runs at the paths but those in `failed`, where a path without any is noted."""
    from tracewh.ingest.run_directories import run_directories

    for path in paths:
        if path in failed:
            continue
        # A name given by the user makes one run of all that is below the path.
        if path == _STANDARD_INPUT or run_name is not None:
            yield path
            continue
        try:
            yield from run_directories(path)
        except NothingToIngest as error:
            failed[path] = str(error)


def _print_reports(reports: Sequence[RunReport]) -> None:
    headers = [Header("run"), Header("status"), *(Header(name, True) for name in (*_COUNTS, "seconds"))]
    print_table(
        headers,
        [
            (r.run_name, _status_text(r), *(getattr(r, name) for name in _COUNTS), f"{r.seconds:.1f}")
            for r in reports
        ],
    )


def _status_text(report: RunReport) -> str:
    rejected = sum(artifact.status == "rejected" for artifact in report.artifacts)
    if not rejected:
        return report.status
    return f"loaded, {rejected} rejected" if report.captures else f"{rejected} rejected"


def _print_next(ctx: click.Context, reports: Sequence[RunReport]) -> None:
    commands = [spelled_command(ctx, "ls"), spelled_command(ctx, "sql", _next_query(reports))]
    timed = [report.run_name for report in reports if report.events > report.serialized_events]
    if timed:
        commands.insert(1, spelled_command(ctx, "report", timed[0]))
    if any(report.problems for report in reports):
        commands.append(spelled_command(ctx, "sql", "SELECT * FROM ingest_problems"))
    click.echo("\nNext:", err=True)
    for command in commands:
        click.echo(f"  {command}", err=True)


def _next_query(reports: Sequence[RunReport]) -> str:
    """What to ask first of runs such as these."""
    if any(report.steps and report.events > report.serialized_events for report in reports):
        return _PHASE_QUERY
    if any(report.serialized_events for report in reports):
        return _COUNTER_QUERY
    return _KERNEL_QUERY if any(report.events for report in reports) else _CAPTURE_QUERY


def _rejections(reports: Sequence[RunReport]) -> Iterator[str]:
    for report in reports:
        for artifact in report.artifacts:
            if artifact.status == "rejected":
                detail = artifact.detail or "rejected"
                yield detail if artifact.path in detail else f"{report.path / artifact.path}: {detail}"


def _held_elsewhere(reports: Sequence[RunReport]) -> Iterator[str]:
    """Why nothing was loaded of files that another run has already."""
    for report in reports:
        for artifact in report.artifacts:
            if artifact.status == "already there" and artifact.detail and not report.captures:
                yield f"{artifact.path}: {artifact.detail}."


def _json_report(reports: Sequence[RunReport], failed: dict[Path, str]) -> str:
    records = [dataclasses.asdict(report) for report in reports]
    records += [{"path": path, "status": "failed", "error": text} for path, text in failed.items()]
    return json.dumps(records, indent=2, default=str)
