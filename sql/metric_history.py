"""One metric over commits: the series of its values, and where they change.

Values of one series are of the same devices, the same work, one kind of evidence and one kind of timing. Runs
of one commit are one point.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tracewh.sql.commit_order import CommitOrder, commit_order
from tracewh.sql.history_values import Question, metric_values
from tracewh.sql.run_selection import Selectors
from tracewh.sql.warehouse import Warehouse

# Of fewer points a change may be seen, but hardly placed.
LOCATING_POINTS = 10
SETTING = ("device_kind", "devices", "work", "evidence")
"""What values of one series have in common, beside their unit."""


@dataclass(frozen=True)
class Point:
    """A commit, or a run without one: the median over its runs."""

    commit: str | None
    runs: tuple[str, ...]
    captured_unix_ns: int | None
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Segment:
    """Points `first` to `last` between which nothing changed; `spread` is what they differ by."""

    first: int
    last: int
    median: float
    spread: float | None


@dataclass(frozen=True)
class Change:
    """The level changes between the point before `at` and point `at`.

    `untested_commits` are those that git knows between the two and no run is of; None without git.
    `is_descendant` says whether the one after comes from the one before. `ratio` is of new to old, and None
    from a level of 0.
    """

    at: int
    old: float
    new: float
    ratio: float | None
    direction: str
    untested_commits: tuple[str, ...] | None
    is_descendant: bool | None


@dataclass(frozen=True)
class Series:
    """The points of one setting, oldest first, and the changes among them.

    `newest_z` is how many standard deviations the last point is from the level before it; None where that
    cannot be told. One point alone makes no level.
    """

    setting: Mapping[str, Any]
    unit: str
    polarity: str
    points: tuple[Point, ...]
    segments: tuple[Segment, ...]
    changes: tuple[Change, ...]
    newest_z: float | None


@dataclass(frozen=True)
class History:
    """The series of a metric; `order` is git or time, and `notes` are sentences on what it lacks."""

    metric: str
    scope: str
    timing: str | None
    runs: str
    order: str
    git_folder: Path | None
    series: tuple[Series, ...]
    notes: tuple[str, ...] = field(default=())


def metric_history(
    warehouse: Warehouse, question: Question, selectors: Sequence[str], *, repository: Path | None
) -> History:
    """The history of a metric over the runs that `selectors` mean, or over all of them without any.

    Raises HistoryError where there is nothing of it, with what there is instead; SelectionError; GitError.
    """
    selection = Selectors(warehouse, repository)
    runs = selection.select(selectors) if selectors else selection.all_runs()
    values = metric_values(warehouse, question, runs)
    order = commit_order(values.rows, selection.history)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in values.rows:
        groups.setdefault((*(row[name] for name in SETTING), row["unit"], row["polarity"]), []).append(row)
    series = [_series(members, order) for members in groups.values()]
    # What has the newest point comes first.
    series.sort(key=lambda item: -order.position(item.points[-1].runs[0]))
    return History(
        question.metric,
        values.scope,
        values.timing,
        runs.description,
        order.kind,
        order.folder,
        tuple(series),
        (*values.notes, *order.notes),
    )


def _series(rows: Sequence[dict[str, Any]], order: CommitOrder) -> Series:
    from tracewh.sql.change_points import lookback_z, segments

    points = _points(rows, order)
    values = [point.value for point in points]
    found = tuple(Segment(item.start, item.end - 1, item.median, item.spread) for item in segments(values))
    first = rows[0]
    tested = {commit for row in rows if (commit := order.full_name(row["commit_sha"])) is not None}
    changes = [
        _change(before, after, points, first["polarity"], order, tested) for before, after in pairwise(found)
    ]
    return Series(
        {name: first[name] for name in SETTING},
        first["unit"],
        first["polarity"],
        tuple(points),
        found,
        tuple(changes),
        lookback_z(values),
    )


def _points(rows: Sequence[dict[str, Any]], order: CommitOrder) -> list[Point]:
    members: dict[object, list[dict[str, Any]]] = {}
    for row in rows:
        members.setdefault(order.full_name(row["commit_sha"]) or ("run", row["run_name"]), []).append(row)
    points = []
    for runs in members.values():
        values = [row["value"] for row in runs]
        times = [row["captured_unix_ns"] for row in runs if row["captured_unix_ns"] is not None]
        points.append(
            Point(
                runs[0]["commit_sha"] and order.full_name(runs[0]["commit_sha"]),
                tuple(row["run_name"] for row in runs),
                min(times, default=None),
                statistics.median(values),
                min(values),
                max(values),
            )
        )
    return sorted(points, key=lambda point: order.position(point.runs[0]))


def _change(
    before: Segment,
    after: Segment,
    points: Sequence[Point],
    polarity: str,
    order: CommitOrder,
    tested: set[str],
) -> Change:
    last, first = points[before.last], points[after.first]
    is_worse = (after.median > before.median) == (polarity == "lower")
    direction = "changed" if polarity not in ("lower", "higher") else "regressed" if is_worse else "improved"
    between = order.between(last.commit, first.commit)
    return Change(
        after.first,
        before.median,
        after.median,
        after.median / before.median if before.median > 0 else None,
        direction,
        None if between is None else tuple(commit for commit in between if commit not in tested),
        order.is_descendant(last.commit, first.commit),
    )
