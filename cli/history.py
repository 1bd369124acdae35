"""`tracewh history`: a metric over commits, and where it changed."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracewh.cli.commit_names import SHORT_SHA, short_commits
from tracewh.cli.json_text import json_text
from tracewh.cli.metric_values import change_text, metric_text
from tracewh.cli.options import example, git_option, json_option, warehouse_option
from tracewh.cli.sparkline import can_show_blocks, sparkline
from tracewh.cli.table import Header, print_table, printable, style_for

if TYPE_CHECKING:
    from tracewh.sql.metric_history import Change, History, Point, Series

_WIDTH_OF_NO_TERMINAL = 80
_INDENT = "  "
# Of normal noise, one value in 370 is as far.
_FAR_Z = 3
_BETTER = {"lower": "lower is better", "higher": "higher is better"}


@click.command(
    "history",
    short_help="Show a metric over commits, and where it changed.",
    epilog=example(
        "tracewh history step_time",
        "tracewh history component_group_time --scope 'Expert MLP' --git ~/src/model main~50..main",
        "tracewh history busy 'nightly_*' --json",
    ),
)
@click.argument("metric", metavar="METRIC")
@click.argument("selectors", metavar="[SELECTOR...]", nargs=-1)
@click.option("--scope", metavar="NAME", help="The phase, component, kernel, ... that the metric is of.")
@click.option(
    "--timing", metavar="KIND", help="unprofiled, profiled or unknown; what most runs have unless given."
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="List the newest N points of a series; all count.",
)
@warehouse_option
@git_option
@json_option
def history_command(
    metric: str,
    selectors: tuple[str, ...],
    scope: str | None,
    timing: str | None,
    limit: int,
    warehouse: Path,
    repository: Path | None,
    as_json: bool,
) -> None:
    """Show METRIC of v1.metrics over commits, with the commits between which its level changed.

    Commits are in the order of the git checkout, if one knows them, else runs in that of their capture. Runs
    of one commit are one point, their median. Runs on other devices or with other work to do are series of
    their own. A SELECTOR is a run, a pattern of names, a commit, LABEL=VALUE, a baseline, or a revision or
    range of git; run:, commit:, label:, baseline: or git: in front says which.
    """
    from tracewh.cli.metric_opening import open_for_metrics
    from tracewh.sql.history_values import Question
    from tracewh.sql.metric_history import metric_history

    question = Question(metric, scope, timing)
    with open_for_metrics(warehouse) as opened:
        history = metric_history(opened, question, selectors, repository=repository)
    if as_json:
        click.echo(json_text(_record(history)))
        return
    for number, series in enumerate(history.series):
        if number:
            click.echo()
        _show_series(history, series, limit)
    for note in history.notes:
        click.echo(printable(note), err=True)


def _show_series(history: History, series: Series, limit: int) -> None:
    style = style_for(sys.stdout)
    width = style.width or _WIDTH_OF_NO_TERMINAL
    click.echo(click.style(printable(_title(history, series)), bold=style.color))
    for fact in _facts(history, series):
        click.echo(printable(fact))
    values = [point.value for point in series.points]
    line = sparkline(values, width - len(_INDENT), is_ascii=not can_show_blocks(sys.stdout))
    click.echo(f"\n{_INDENT}{line}")
    low, high = metric_text(min(values), series.unit), metric_text(max(values), series.unit)
    click.echo(f"{_INDENT}{low if low == high else f'{low} to {high}'}\n")
    _show_points(series, limit)
    click.echo()
    _show_levels(series)
    for change in series.changes:
        click.echo(printable(_place(series, change)))
    if not series.changes:
        click.echo("No change of the level is seen.")
    # A change at the point before it tells of the newest, too.
    if series.newest_z is not None and abs(series.newest_z) >= _FAR_Z and not _is_recent(series):
        side = "above" if series.newest_z > 0 else "below"
        click.echo(
            f"The newest value is {abs(series.newest_z):.1f} standard deviations {side} the level before it: "
            "another run would tell whether it stays."
        )
    from tracewh.sql.metric_history import LOCATING_POINTS

    # What the compiler says has no noise to be told from.
    if len(values) < LOCATING_POINTS and series.setting["evidence"] not in ("compiler", "analytical"):
        click.echo(
            f"With {LOCATING_POINTS} points or more, smaller changes show; here are {len(values)}.", err=True
        )


def _is_recent(series: Series) -> bool:
    return bool(series.changes) and series.segments[-1].first >= len(series.points) - 2


def _title(history: History, series: Series) -> str:
    scope = f" of {history.scope}" if history.scope else ""
    kinds = [kind for kind in (history.timing, series.setting["evidence"]) if kind]
    better = _BETTER.get(series.polarity)
    return f"{history.metric}{scope}, {', '.join(kinds)}" + (f": {better}" if better else "")


def _facts(history: History, series: Series) -> list[str]:
    """What a series is of: always its devices, and what else tells it from the others."""
    devices, kind = series.setting["devices"], series.setting["device_kind"]
    parts = [f"{devices or '?'} x {kind or 'unknown devices'}"]
    if len({other.setting["work"] for other in history.series}) > 1:
        parts.append(str(series.setting["work"]))
    order = f"git at {history.git_folder}" if history.order == "git" else "capture"
    runs = sum(len(point.runs) for point in series.points)
    return [
        ", ".join(parts),
        f"{len(series.points):,} point{'s' if len(series.points) != 1 else ''} of {runs:,} "
        f"run{'s' if runs != 1 else ''}, in the order of {order}",
    ]


def _show_points(series: Series, limit: int) -> None:
    changes = {change.at: change for change in series.changes}
    first = max(0, len(series.points) - limit)
    has_several = any(len(point.runs) > 1 for point in series.points[first:])
    commits = short_commits(point.commit for point in series.points if point.commit)
    headers = [Header("commit"), Header("run"), Header("value", True)]
    headers += [Header("min", True), Header("max", True)] if has_several else []
    headers.append(Header("change"))
    rows = []
    for index, point in enumerate(series.points[first:], start=first):
        extremes = (point.low, point.high) if len(point.runs) > 1 else (None, None)
        figures = [point.value, *extremes] if has_several else [point.value]
        change = changes.get(index)
        rows.append(
            (
                commits.get(point.commit or "", ""),
                point.runs[0] if len(point.runs) == 1 else f"{len(point.runs):,} runs",
                *(metric_text(figure, series.unit) for figure in figures),
                "" if change is None else _said(change),
            )
        )
    if rows:
        print_table(headers, rows)
    if first:
        click.echo(f"{first:,} older ones are not listed: --limit or --json shows them.", err=True)


def _show_levels(series: Series) -> None:
    headers = [
        Header("from"),
        Header("to"),
        Header("points", True),
        Header("level", True),
        Header("noise", True),
    ]
    names = _names(series)
    rows = [
        (
            names[segment.first],
            names[segment.last],
            segment.last - segment.first + 1,
            metric_text(segment.median, series.unit),
            _noise(segment.spread, segment.median),
        )
        for segment in series.segments
    ]
    print_table(headers, rows)


def _place(series: Series, change: Change) -> str:
    before, after = _names(series)[change.at - 1 : change.at + 1]
    if change.untested_commits is None:
        return f"{_said(change)} after {before} and by {after}"
    if not change.is_descendant:
        return f"{_said(change)} from {before} to {after}, which is on another line of history"
    untested = len(change.untested_commits)
    commits = (
        "no untested commit" if not untested else f"{untested:,} untested commit{'s' if untested > 1 else ''}"
    )
    return f"{_said(change)} in {before}..{after}, with {commits} between"


def _said(change: Change) -> str:
    return (
        f"{change.direction} from 0"
        if change.ratio is None
        else f"{change.direction} {change_text(change.ratio)}"
    )


def _names(series: Series) -> list[str]:
    """What points are called: by their commits, unless that takes too many digits to tell them apart."""
    commits = short_commits(point.commit for point in series.points if point.commit)
    if any(len(commit) > SHORT_SHA for commit in commits.values()):
        return [point.runs[0] for point in series.points]
    return [commits[point.commit] if point.commit else point.runs[0] for point in series.points]


def _noise(spread: float | None, level: float) -> str:
    return "?" if spread is None or not level else f"{spread / abs(level):.1%}"


def _record(history: History) -> dict[str, Any]:
    """All of a history as JSON has it."""
    return {
        **{name: getattr(history, name) for name in ("metric", "scope", "timing", "runs", "order")},
        "git": None if history.git_folder is None else str(history.git_folder),
        "notes": history.notes,
        "series": [_series_record(series) for series in history.series],
    }


def _series_record(series: Series) -> dict[str, Any]:
    def name(point: Point) -> dict[str, Any]:
        return {"commit": point.commit, "runs": point.runs}

    return {
        **series.setting,
        "unit": series.unit,
        "polarity": series.polarity,
        "points": [asdict(point) for point in series.points],
        "levels": [asdict(segment) for segment in series.segments],
        "changes": [
            {
                "last_before": name(series.points[change.at - 1]),
                "first_after": name(series.points[change.at]),
                **asdict(change),
            }
            for change in series.changes
        ],
        "newest_z": series.newest_z,
    }
