"""The values of one metric that make a history: of one scope and one timing, numbers, and up to date."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tracewh.ingest.errors import TracewhError
from tracewh.sql.listing import Record, did_you_mean, records
from tracewh.sql.run_selection import RunSelection, counted
from tracewh.sql.warehouse import Warehouse

_TIMINGS = ("unprofiled", "unknown", "profiled")
_MOST_LISTED = 12
_METRICS = "SELECT DISTINCT metric FROM v1.metrics ORDER BY metric"
_SCOPES = """
    SELECT scope, count(DISTINCT run_id) AS runs, max(abs(value)) AS largest FROM v1.metrics
    WHERE metric = $1 AND list_contains($2, run_id) GROUP BY scope ORDER BY runs DESC, largest DESC, scope
"""
_VALUES = """
    SELECT run_id, run_name, commit_sha, captured_unix_ns, device_kind, devices, work, evidence,
           timing, unit, polarity, value, is_current
    FROM v1.metric_history
    WHERE metric = $1 AND scope = $2 AND list_contains($3, run_id)
    ORDER BY run_id, evidence, timing NULLS FIRST
"""
_EVERY_METRIC = '`tracewh sql "SELECT DISTINCT metric FROM v1.metrics"` lists them'


class HistoryError(TracewhError):
    """A metric, or a scope or timing of it, is not there."""


@dataclass(frozen=True)
class Question:
    """What is asked: a metric, whose scope and timing may be left open."""

    metric: str
    scope: str | None = None
    timing: str | None = None


@dataclass(frozen=True)
class MetricValues:
    """Rows of v1.metric_history that are of one scope and timing, with what is said of those left out."""

    scope: str
    timing: str | None
    rows: tuple[Record, ...]
    notes: tuple[str, ...]


def metric_values(warehouse: Warehouse, question: Question, runs: RunSelection) -> MetricValues:
    """The values that answer `question` in these runs.

    Raises HistoryError where there is none, or the scope is unclear, with what there is instead.
    """
    scope = _scope(warehouse, question, runs)
    rows = records(warehouse, _VALUES, question.metric, scope, list(runs.run_ids))
    usable, notes = _usable(rows, question.metric)
    timing, more_notes = _timing(usable, question)
    of_timing = tuple(row for row in usable if row["timing"] == timing)
    return MetricValues(scope, timing, of_timing, (*notes, *more_notes))


def _scope(warehouse: Warehouse, question: Question, runs: RunSelection) -> str:
    """The scope that is meant. Raises HistoryError where that is none, or unclear."""
    scopes = [record["scope"] for record in records(warehouse, _SCOPES, question.metric, list(runs.run_ids))]
    if not scopes:
        known = [record["metric"] for record in records(warehouse, _METRICS)]
        if question.metric in known:
            raise HistoryError(f"{warehouse.path}: {question.metric} has no value in {runs.description}.")
        if not known:
            raise HistoryError(f"{warehouse.path} has no metrics. `tracewh ingest` computes those of a run.")
        everything = f"it has {', '.join(known)}" if len(known) <= _MOST_LISTED else _EVERY_METRIC
        instead = did_you_mean(question.metric, known, everything)
        raise HistoryError(f"{warehouse.path} has no metric {question.metric}; {instead}")
    asked = question.scope if question.scope is not None else "" if "" in scopes else None
    if asked in scopes:
        return str(asked)
    if asked is None and len(scopes) == 1:
        return str(scopes[0])
    listed = ", ".join(scope or "''" for scope in scopes[:_MOST_LISTED])
    more = f" and {len(scopes) - _MOST_LISTED:,} more" if len(scopes) > _MOST_LISTED else ""
    if asked is None:
        raise HistoryError(f"{question.metric} is of several scopes. Give one with --scope: {listed}{more}.")
    instead = did_you_mean(asked, scopes, f"its scopes: {listed}{more}")
    raise HistoryError(f"{question.metric} has no scope {asked}; {instead}")


def _usable(rows: Sequence[Record], metric: str) -> tuple[list[Record], list[str]]:
    """The rows with a finite value of the present definition, and what is said of the others."""
    current = [row for row in rows if row["is_current"]]
    finite = [row for row in current if math.isfinite(row["value"])]
    if not finite:
        raise HistoryError(
            f"{metric} has no value that counts: {_outdated(len(rows))}"
            if not current
            else f"{metric} has no value that is a number in {counted(len(current), 'run')}."
        )
    notes = []
    if len(current) < len(rows):
        notes.append(f"Left out: {_outdated(len(rows) - len(current))}")
    if len(finite) < len(current):
        left_out = counted(len(current) - len(finite), "run")
        notes.append(f"Left out: {left_out} whose value is no number.")
    return finite, notes


def _outdated(number: int) -> str:
    return (
        f"{counted(number, 'run')} whose values are of before a change of rules, steps or views. "
        "`tracewh diff` computes them anew."
    )


def _timing(rows: Sequence[Record], question: Question) -> tuple[str | None, list[str]]:
    """The timing that is asked for, or else that which most runs have, and what is said of the others."""
    runs: dict[str | None, int] = {}
    for row in rows:
        runs[row["timing"]] = runs.get(row["timing"], 0) + 1
    if question.timing is not None:
        if question.timing in runs:
            return question.timing, []
        listed = ", ".join(timing for timing in runs if timing is not None)
        instead = f"it is {listed}" if listed else "it is no time, so leave --timing out"
        raise HistoryError(f"{question.metric} has no {question.timing} value; {instead}.")
    ranks = {timing: rank for rank, timing in enumerate(_TIMINGS)}
    chosen = min(runs, key=lambda timing: (-runs[timing], ranks.get(timing or "", -1)))
    others = [f"{counted(runs[timing], 'run')} {timing or 'untimed'}" for timing in runs if timing != chosen]
    if not others:
        return chosen, []
    return chosen, [f"Only {chosen or 'untimed'} values; --timing shows the others: {', '.join(others)}."]
