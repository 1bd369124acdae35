"""Baselines: named sets of runs that others are compared with, and how much their runs differ by chance.

A baseline holds runs and not their names: a run that is ingested again stays in it, and one that is removed
is gone from it, also when another of its name comes.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.listing import Record, did_you_mean, records
from tracewh.sql.rows import first_row
from tracewh.sql.run_selection import RunSelection
from tracewh.sql.warehouse import Warehouse, transaction

# Metrics by which runs of one program are best told apart, or not.
NOISE_METRICS = ("step_time", "device_step_time", "busy")
_NAME = re.compile(r"\w[\w.+/@-]{0,99}")
_MOST_LISTED = 8
_BASELINES = """
    SELECT b.baseline, r.run_name AS run, r.commit_sha AS "commit"
    FROM main.baselines AS b JOIN main.runs AS r USING (run_id)
    ORDER BY b.baseline, b.run_id
"""
_MEMBERS = "SELECT run_id FROM main.baselines WHERE baseline = $1 ORDER BY run_id"
_OF_RUN = """
    SELECT b.baseline FROM main.baselines AS b JOIN main.runs AS r USING (run_id)
    WHERE r.run_name = $1 ORDER BY b.baseline
"""
_VALUES = """
    SELECT h.metric, h.timing, h.device_kind, h.devices, h.work, h.unit, h.value
    FROM v1.metric_history AS h JOIN main.baselines AS b USING (run_id)
    WHERE b.baseline = $1 AND h.scope = '' AND list_contains($2, h.metric) AND isfinite(h.value)
          AND h.is_current
    ORDER BY list_position($2, h.metric), h.timing NULLS FIRST, h.device_kind, h.devices, h.work, h.run_id
"""


@dataclass(frozen=True)
class BaselineChange:
    """What became of a baseline: how many runs it gained, lost, and has now."""

    name: str
    added: int
    removed: int
    runs: int
    is_new: bool


def set_baseline(warehouse: Warehouse, name: str, selection: RunSelection) -> BaselineChange:
    """Make a baseline, or another one of it. Raises WarehouseError where `name` is none for a baseline."""
    before = _members(warehouse, _checked(warehouse, name))
    return _replace(warehouse, name, before, selection.run_ids)


def add_to_baseline(warehouse: Warehouse, name: str, selection: RunSelection) -> BaselineChange:
    """Add runs to a baseline, which need not be there. Raises WarehouseError as `set_baseline`."""
    before = _members(warehouse, _checked(warehouse, name))
    return _replace(warehouse, name, before, [*before, *selection.run_ids])


def remove_from_baseline(warehouse: Warehouse, name: str, selection: RunSelection | None) -> BaselineChange:
    """Remove runs from a baseline, or all of it without a selection.

    Raises WarehouseError where there is no such baseline.
    """
    check_baseline(warehouse, name)
    before = _members(warehouse, name)
    removed = before if selection is None else set(selection.run_ids)
    return _replace(warehouse, name, before, [run for run in before if run not in removed])


def baselines(warehouse: Warehouse) -> list[Record]:
    """The baselines by name, each with its runs, and their commits, in the order of ingest."""
    found: dict[str, Record] = {}
    for member in records(warehouse, _BASELINES):
        name = member.pop("baseline")
        found.setdefault(name, {"baseline": name, "runs": []})["runs"].append(member)
    return list(found.values())


def baselines_of_run(warehouse: Warehouse, run: str) -> list[str]:
    """The baselines that a run is in."""
    return [record["baseline"] for record in records(warehouse, _OF_RUN, run)]


def check_baseline(warehouse: Warehouse, name: str) -> None:
    """Raises WarehouseError, with what baselines there are, where there is no such one."""
    known = [baseline["baseline"] for baseline in baselines(warehouse)]
    if name in known:
        return
    start = f"{warehouse.path} has no baseline {name}; "
    if not known:
        raise WarehouseError(f"{start}make it with `tracewh baseline set {name} RUN...`.")
    if len(known) <= _MOST_LISTED:
        raise WarehouseError(f"{start}its baselines: {', '.join(known)}.")
    raise WarehouseError(start + did_you_mean(name, known, "`tracewh baseline ls` lists the baselines"))


def noise(warehouse: Warehouse, name: str) -> list[Record]:
    """How far the runs of a baseline are apart in the main metrics: a record per metric, timing and setting.

    `noise_ratio` is None where there are too few runs to tell. Runs on other devices, or with other work to
    do, have records of their own.
    """
    from tracewh.sql.change_statistics import noise_ratio

    values: dict[tuple[object, ...], list[float]] = {}
    for record in records(warehouse, _VALUES, name, list(NOISE_METRICS)):
        *key, value = record.values()
        values.setdefault(tuple(key), []).append(value)
    fields = ("metric", "timing", "device_kind", "devices", "work", "unit")
    return [
        {
            **dict(zip(fields, key, strict=True)),
            "runs": len(found),
            "median": statistics.median(found),
            "min": min(found),
            "max": max(found),
            "noise_ratio": noise_ratio(found),
        }
        for key, found in values.items()
    ]


def _members(warehouse: Warehouse, name: str) -> list[int]:
    return [int(record["run_id"]) for record in records(warehouse, _MEMBERS, name)]


def _replace(
    warehouse: Warehouse, name: str, before: Collection[int], after: Sequence[int]
) -> BaselineChange:
    after = list(dict.fromkeys(after))
    with transaction(warehouse.connection):
        warehouse.connection.execute("DELETE FROM main.baselines WHERE baseline = $1", [name])
        warehouse.connection.execute(
            "INSERT INTO main.baselines (baseline, run_id) SELECT $1, unnest($2::BIGINT[])", [name, after]
        )
    gained, lost = set(after) - set(before), set(before) - set(after)
    return BaselineChange(name, len(gained), len(lost), len(after), not before)


def _checked(warehouse: Warehouse, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise WarehouseError(
            f"{name!r} is no name for a baseline. Letters, digits and . _ + - / @ are, up to 100 of them."
        )
    if first_row(warehouse.connection, "SELECT 1 FROM main.runs WHERE run_name = $1", [name]) is not None:
        raise WarehouseError(
            f"{name} is a run: a baseline of that name would make it ambiguous. The name of the baseline "
            "comes first, then its runs."
        )
    return name
