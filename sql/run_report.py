"""The tables of a run's report: what the report views hold, with the titles and headings of their headers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tracewh.sql import listing
from tracewh.sql.run_scope import RunScope, run_scope
from tracewh.sql.warehouse import Warehouse
from tracewh.views.catalog import View, load_views

# In the order of the reading: what the step is, where it went, and then why.
SECTIONS = (
    "v1._report_run",
    "v1._report_phases",
    "v1._report_timeline",
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


@dataclass(frozen=True)
class ReportColumn:
    """A column of a report table; `unit` is that of its values: ms, ratio, factor, count; None for text."""

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
    with run_scope(warehouse.connection, run_id) as scope:
        return [table for name in SECTIONS for table in _tables(scope, views[name])]


def _tables(scope: RunScope, view: View) -> Iterator[ReportTable]:
    names = [column.name for column in view.columns]
    shown = [number for number, name in enumerate(names) if name not in _PLACE_COLUMNS]
    columns = tuple(
        ReportColumn(view.columns[number].description, view.columns[number].unit) for number in shown
    )
    order = ", ".join(f"s.{name}" for name in ("section_line", "section", "line") if name in names)
    rows = scope.rows(view, order)
    title_at = names.index("section") if "section" in names else None
    note = view.algorithm or ""
    for title, members in groupby(rows, lambda row: view.summary if title_at is None else row[title_at]):
        values = tuple(tuple(row[number] for number in shown) for row in members)
        yield ReportTable(title, note, columns, values)
        note = ""  # it is said once for all tables of a view
