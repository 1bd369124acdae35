"""The tables of a run's report: what the report views hold, with the titles and headings of their headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tracewh.sql import listing
from tracewh.sql.rows import first_row
from tracewh.sql.run_scope import RunScope, run_scope
from tracewh.sql.warehouse import Warehouse
from tracewh.views.catalog import View, load_views

# In the order of the reading: what the step is, where it went, and then why.
SECTIONS = (
    "v1._report_run",
    "v1._report_steps",
    "v1._report_throughput",
    "v1._report_phases",
    "v1._report_timeline",
    "v1._report_period",
    "v1._report_components",
    "v1._report_buckets",
    "v1._report_ratios",
    "v1._report_occurrences",
    "v1._report_collectives",
    "v1._report_idle",
    "v1._report_devices",
)
# They place a row, and are not shown.
_PLACE_COLUMNS = ("run_id", "section_line", "section", "line")
# What these say of steps is true of a run without a complete one, too; the others then tell of captures.
_OF_STEPS = ("v1._report_run", "v1._report_steps", "v1._report_throughput", "v1._report_period")
_STEP = re.compile(r"\b([Ss])tep(s?)\b")
# What a run without device work can have instead, and where that is.
_CONTENTS = """
    SELECT EXISTS (SELECT 1 FROM main.counter_values AS v JOIN main.captures AS c USING (capture_id)
                   WHERE c.run_id = $1)
           OR EXISTS (SELECT 1 FROM main.device_events AS e JOIN main.captures AS c USING (capture_id)
                      WHERE c.run_id = $1 AND e.role = 'serialized'),
           EXISTS (SELECT 1 FROM main.kernel_metrics AS m JOIN main.captures AS c USING (capture_id)
                   WHERE c.run_id = $1),
           EXISTS (SELECT 1 FROM main.hlo_programs AS p JOIN main.captures AS c USING (capture_id)
                   WHERE c.run_id = $1),
           EXISTS (SELECT 1 FROM main.host_events AS h JOIN main.captures AS c USING (capture_id)
                   WHERE c.run_id = $1)
"""
_INSTEAD = (
    "has counter passes, whose kernels ran one by one, and no trace of a step: v1.kernel_counters has what "
    "they count",
    "has metrics of kernels, and no trace of a step: the table kernel_metrics has them",
    "has HLO programs, and no device work: `tracewh hlo` shows them",
    "has host events, and no device work: the table host_events has them",
)
_NOTHING = "has no device work, only what describes the run: the tables artifacts and run_params have it"


@dataclass(frozen=True)
class ReportColumn:
    """A column of a report table.

    `unit` is that of its values: ms, ratio, factor, count; kernel for the name of one; None for other text.
    """

    heading: str
    unit: str | None


@dataclass(frozen=True)
class ReportTable:
    """One table of a report: a note says what its numbers are."""

    title: str
    note: str
    columns: tuple[ReportColumn, ...]
    rows: tuple[tuple[Any, ...], ...]


def report_tables(warehouse: Warehouse, run: str) -> list[ReportTable]:
    """The tables of the run's report that have rows: none without device work.

    Raises WarehouseError where there is no such run.
    """
    run_id = listing.check_run(warehouse, run)
    views = {view.name: view for view in load_views()}
    with run_scope(warehouse.connection, [run_id]) as scope:
        facts = scope.rows(views["v1.run_time"], "s.run_id")
        if not facts:
            return []
        names = [column.name for column in views["v1.run_time"].columns]
        is_whole_capture = bool(facts[0][names.index("is_whole_capture")])
        return [table for name in SECTIONS for table in _tables(scope, views[name], is_whole_capture)]


def what_instead(warehouse: Warehouse, run: str) -> str:
    """What a run without device work has, and where: `has HLO programs, and ...`.

    Raises WarehouseError where there is no such run.
    """
    run_id = listing.check_run(warehouse, run)
    found = first_row(warehouse.connection, _CONTENTS, [run_id]) or ()
    return next((text for text, is_there in zip(_INSTEAD, found, strict=False) if is_there), _NOTHING)


def _tables(scope: RunScope, view: View, is_whole_capture: bool) -> Iterator[ReportTable]:
    def worded(text: str) -> str:
        return _of_captures(text) if is_whole_capture and view.name not in _OF_STEPS else text

    names = [column.name for column in view.columns]
    shown = [number for number, name in enumerate(names) if name not in _PLACE_COLUMNS]
    columns = tuple(
        ReportColumn(worded(view.columns[number].description), view.columns[number].unit) for number in shown
    )
    order = ", ".join(f"s.{name}" for name in ("section_line", "section", "line") if name in names)
    rows = scope.rows(view, order)
    title_at = names.index("section") if "section" in names else None
    note = worded(view.algorithm or "")
    for title, members in groupby(rows, lambda row: view.summary if title_at is None else row[title_at]):
        values = tuple(tuple(row[number] for number in shown) for row in members)
        yield ReportTable(worded(title), note, columns, values)
        note = ""  # it is said once for all tables of a view


def _of_captures(text: str) -> str:
    """What a text says of steps, said of captures."""
    return _STEP.sub(lambda found: f"{'C' if found[1] == 'S' else 'c'}apture{found[2]}", text)
