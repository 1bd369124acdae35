"""`tracewh baseline`: named sets of runs that others are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracewh.cli.commit_names import SHORT_SHA, short_commits
from tracewh.cli.json_text import json_text
from tracewh.cli.metric_values import metric_text
from tracewh.cli.options import (
    example,
    git_option,
    hand_warehouse_down,
    json_option,
    spelled_command,
    warehouse_option,
)
from tracewh.cli.table import Header, print_table, printable

if TYPE_CHECKING:
    from tracewh.sql.baselines import BaselineChange
    from tracewh.sql.run_selection import RunSelection
    from tracewh.sql.warehouse import Warehouse

_Record = dict[str, Any]
_MOST_SHOWN = 4
_selectors_argument = click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True)


@click.group(
    "baseline",
    invoke_without_command=True,
    short_help="Named sets of runs to compare with.",
    epilog=example(
        "tracewh baseline set main 'main_*'",
        "tracewh baseline add main run_17",
        "tracewh baseline ls main",
        "tracewh baseline rm main run_03",
    ),
)
@warehouse_option
@click.pass_context
def baseline_command(ctx: click.Context, warehouse: Path) -> None:
    """List the baselines of the warehouse, or change one.

    A baseline is a name for runs that others are compared with: `tracewh diff baseline:main new`. Runs that
    are replicates, of one commit and one configuration, tell how large a difference is chance.
    """
    if ctx.invoked_subcommand is not None:
        hand_warehouse_down(ctx, warehouse)
        return
    _list_all(ctx, warehouse, as_json=False)


@baseline_command.command(
    "set",
    short_help="Make a baseline of runs.",
    epilog=example(
        "tracewh baseline set main run_01 run_02 run_03",
        "tracewh baseline set main 'hist_0[1-6]'",
        "tracewh baseline set release git:v1.2 --git ~/src/model",
    ),
)
@click.argument("name", metavar="NAME")
@_selectors_argument
@warehouse_option
@git_option
def set_command(name: str, selectors: tuple[str, ...], warehouse: Path, repository: Path | None) -> None:
    """Make NAME the baseline of these runs and no others.

    A SELECTOR is a run, a pattern of names, a commit, LABEL=VALUE, another baseline, or a revision or range
    of git; run:, commit:, label:, baseline: or git: in front says which.
    """
    from tracewh.sql.baselines import set_baseline
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=False) as opened:
        change = set_baseline(opened, name, _selected(opened, selectors, repository))
    click.echo(printable(_said(change)))


@baseline_command.command(
    "add", short_help="Add runs to a baseline.", epilog=example("tracewh baseline add main run_17")
)
@click.argument("name", metavar="NAME")
@_selectors_argument
@warehouse_option
@git_option
def add_command(name: str, selectors: tuple[str, ...], warehouse: Path, repository: Path | None) -> None:
    """Add runs to the baseline NAME, which is made if it is not there."""
    from tracewh.sql.baselines import add_to_baseline
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=False) as opened:
        change = add_to_baseline(opened, name, _selected(opened, selectors, repository))
    click.echo(printable(_said(change)))


@baseline_command.command(
    "rm",
    short_help="Remove runs from a baseline, or all of it.",
    epilog=example("tracewh baseline rm main run_03", "tracewh baseline rm main"),
)
@click.argument("name", metavar="NAME")
@click.argument("selectors", metavar="[SELECTOR...]", nargs=-1)
@warehouse_option
@git_option
def rm_command(name: str, selectors: tuple[str, ...], warehouse: Path, repository: Path | None) -> None:
    """Remove runs from the baseline NAME, or without any SELECTOR all of it; the runs themselves stay."""
    from tracewh.sql.baselines import remove_from_baseline
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=False) as opened:
        selection = _selected(opened, selectors, repository) if selectors else None
        change = remove_from_baseline(opened, name, selection)
    click.echo(printable(_said(change)))


@baseline_command.command(
    "ls",
    short_help="List baselines, or the runs and the noise of one.",
    epilog=example("tracewh baseline ls", "tracewh baseline ls main --json"),
)
@click.argument("name", metavar="[NAME]", required=False)
@warehouse_option
@json_option
@click.pass_context
def ls_command(ctx: click.Context, name: str | None, warehouse: Path, as_json: bool) -> None:
    """List the baselines, or the runs of one with how far they differ by chance (A/A).

    The noise of a metric is how much two runs of the baseline differ, as a part of the value: what is smaller
    is no change.
    """
    if name is None:
        _list_all(ctx, warehouse, as_json)
        return
    from tracewh.cli.metric_opening import open_for_metrics
    from tracewh.sql.baselines import baselines, check_baseline, noise

    with open_for_metrics(warehouse) as opened:
        check_baseline(opened, name)
        (baseline,) = (found for found in baselines(opened) if found["baseline"] == name)
        measured = noise(opened, name)
    if as_json:
        click.echo(json_text({**baseline, "noise": measured}))
        return
    names = short_commits(run["commit"] for run in baseline["runs"] if run["commit"])
    rows = [(run["run"], names.get(run["commit"], "")) for run in baseline["runs"]]
    print_table([Header("run"), Header("commit")], rows)
    click.echo()
    _show_noise(measured)
    if len(names) > 1:
        click.echo(f"The runs are of {len(names)} commits: their noise has what changed between.", err=True)


def _selected(opened: Warehouse, selectors: Sequence[str], repository: Path | None) -> RunSelection:
    from tracewh.sql.run_selection import Selectors

    return Selectors(opened, repository).select(selectors)


def _said(change: BaselineChange) -> str:
    runs = f"{change.runs:,} run{'' if change.runs == 1 else 's'}"
    if not change.runs:
        lost = f"{change.removed:,} run{'' if change.removed == 1 else 's'}"
        return f"Removed baseline {change.name}, which had {lost}."
    if change.is_new:
        return f"New baseline {change.name}: {runs}."
    parts = [
        f"{number:,} {what}"
        for number, what in ((change.added, "added"), (change.removed, "removed"))
        if number
    ]
    return f"Baseline {change.name}: {', '.join(parts) or 'nothing changed'}; it has {runs}."


def _list_all(ctx: click.Context, warehouse: Path, as_json: bool) -> None:
    from tracewh.sql.baselines import baselines
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened:
        found = baselines(opened)
    if as_json:
        click.echo(json_text(found))
        return
    if not found:
        again = spelled_command(ctx, "baseline", "set", "NAME", "RUN...")
        click.echo(f"No baselines yet. Make one: {again}", err=True)
        return
    headers = [Header("baseline"), Header("runs", True), Header("commits"), Header("names")]
    print_table(headers, [_listed(baseline) for baseline in found])


def _listed(baseline: _Record) -> tuple[str, int, str, str]:
    commits = list({run["commit"] for run in baseline["runs"] if run["commit"]})
    return (
        baseline["baseline"],
        len(baseline["runs"]),
        commits[0][:SHORT_SHA] if len(commits) == 1 else str(len(commits)),
        _shortened([run["run"] for run in baseline["runs"]]),
    )


def _shortened(names: Sequence[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_MOST_SHOWN])} and {more:,} more"


def _show_noise(measured: Sequence[_Record]) -> None:
    if not measured:
        click.echo("None of the runs has step times or device times.", err=True)
        return
    settings = {(record["device_kind"], record["devices"], record["work"]) for record in measured}
    headers = [Header("metric"), Header("timing"), Header("runs", True), Header("median", True)]
    headers += [Header("min", True), Header("max", True), Header("noise", True)]
    if len(settings) > 1:
        headers.append(Header("devices and work"))
    rows = []
    for record in measured:
        figures = [metric_text(record[name], record["unit"]) for name in ("median", "min", "max")]
        ratio = record["noise_ratio"]
        row = [
            record["metric"],
            record["timing"],
            record["runs"],
            *figures,
            "?" if ratio is None else f"{ratio:.1%}",
        ]
        if len(settings) > 1:
            row.append(f"{record['devices'] or '?'} x {record['device_kind'] or '?'}, {record['work']}")
        rows.append(row)
    print_table(headers, rows)
    if any(record["noise_ratio"] is None for record in measured):
        click.echo("?: too few runs to tell.", err=True)
