"""Limits on how much worse metrics may get, as for continuous integration."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracewh.ingest.errors import TracewhError
from tracewh.sql.comparison import Comparison, MetricChange
from tracewh.sql.listing import did_you_mean
from tracewh.sql.rank_sums import attainable_p

PASSED, FAILED, CANNOT_TELL = "passed", "failed", "cannot_tell"
_LIMIT = re.compile(r"(?P<metric>\w+)(:(?P<scope>.+))?=(?P<size>[0-9]+([.][0-9]+)?)(?P<unit>%|[A-Za-zµ]*)")
# Units of a limit, as those of v1.metrics.
_UNITS = {
    "": ("", 1.0),
    "us": ("ms", 1e-3),
    "µs": ("ms", 1e-3),
    "ms": ("ms", 1.0),
    "s": ("ms", 1e3),
    "B": ("bytes", 1.0),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
}
_MOST_LISTED = 8
_OF_ONE_SIDE = ("only_base", "only_head", "no_values")
# Of metrics whose limit would be misread without a unit.
_EXAMPLES = {"ms": "ms", "bytes": "MiB", "ratio": "%"}


class LimitError(TracewhError):
    """A limit that is none, or of a metric that there is not."""


@dataclass(frozen=True)
class Limit:
    """How much worse a metric may get: a ratio of base, or a size in `unit`; `scope` is None for all."""

    text: str
    metric: str
    scope: str | None
    size: float
    unit: str | None


@dataclass(frozen=True)
class GateResult:
    """What became of one limit for one metric and scope, with one timing and evidence."""

    limit: Limit
    change: MetricChange
    status: str


def parse_limit(text: str) -> Limit:
    """The limit that METRIC=2%, METRIC:SCOPE=5% or METRIC=1.5ms states; raises LimitError."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise LimitError(f"{text} is no limit: write METRIC=2%, METRIC:SCOPE=5% or METRIC=1.5ms.")
    size = float(found["size"])
    if found["unit"] == "%":
        return Limit(text, found["metric"], found["scope"], size / 100, None)
    if found["unit"] not in _UNITS:
        units = ", ".join(["%", *filter(None, _UNITS)])
        raise LimitError(f"{text}: {found['unit']} is no unit of a limit; those are {units}.")
    unit, factor = _UNITS[found["unit"]]
    return Limit(text, found["metric"], found["scope"], size * factor, unit)


def check_limits(comparison: Comparison, limits: Iterable[Limit], level: float) -> list[GateResult]:
    """What became of each limit, for every timing, evidence and scope that it holds for.

    A limit is broken where the change is one beyond chance and worse than it allows; where too few runs have
    measured what the compiler says too, that decides. Raises LimitError where
    no run has the metric, its values have another unit, or none of them is better.
    """
    return [result for limit in limits for result in _results(comparison.metrics, limit, level)]


def _results(metrics: Sequence[MetricChange], limit: Limit, level: float) -> list[GateResult]:
    named = [change for change in metrics if change.metric == limit.metric]
    if not named:
        known = sorted({change.metric for change in metrics})
        raise LimitError(
            f"{limit.text}: no run has the metric {limit.metric}; "
            + did_you_mean(limit.metric, known, "`SELECT DISTINCT metric FROM v1.metrics` lists them")
        )
    scoped = [change for change in named if limit.scope in (None, change.scope)]
    if not scoped:
        known = sorted({change.scope for change in named})
        raise LimitError(
            f"{limit.text}: {limit.metric} has no scope {limit.scope}; "
            + did_you_mean(limit.scope or "", known, _scopes_of(known))
        )
    judged = [change for change in scoped if change.polarity != "none"]
    if not judged:
        raise LimitError(
            f"{limit.text}: of {limit.metric} neither more nor less is better, so it has no limit."
        )
    unit = judged[0].unit
    if limit.unit == "" and unit in _EXAMPLES:
        raise LimitError(f"{limit.text}: say the unit, as {limit.text}{_EXAMPLES[unit]}.")
    if limit.unit not in (None, "", unit):
        raise LimitError(f"{limit.text}: {limit.metric} is in {unit}.")
    # What the compiler says of memory needs no replicates, where too few runs measured it.
    exact = {
        change.scope
        for change in judged
        if change.judgement.p is None and change.judgement.verdict not in _OF_ONE_SIDE
    }
    decisive = [
        change for change in judged if change.scope not in exact or change.judgement.verdict != "too_few_runs"
    ]
    return [GateResult(limit, change, _status(change, limit, level)) for change in decisive]


def _scopes_of(scopes: Sequence[str]) -> str:
    named = [scope for scope in scopes if scope]
    return f"it has {', '.join(named[:_MOST_LISTED])}" if named else "it has no scopes"


def _status(change: MetricChange, limit: Limit, level: float) -> str:
    verdict = change.judgement.verdict
    if verdict in _OF_ONE_SIDE:
        # A kernel or phase that is gone takes no time; a new one is more of nothing, which has no per cent.
        is_less = (verdict == "only_base") == (change.polarity == "lower")
        return PASSED if change.scope and is_less else CANNOT_TELL
    is_beyond = _worsening(change, limit) > limit.size
    if verdict == "too_few_runs":
        # Enough runs for one metric, and too few for one of many: only what would break the limit is open.
        is_enough = attainable_p(change.base_runs, change.head_runs) <= level
        return PASSED if is_enough and not is_beyond else CANNOT_TELL
    return FAILED if verdict == "regressed" and is_beyond else PASSED


def _worsening(change: MetricChange, limit: Limit) -> float:
    """How much worse head is, in the unit of the limit; negative where it is better."""
    base, head = change.judgement.base_median, change.judgement.head_median
    assert base is not None
    assert head is not None
    worse = head - base if change.polarity == "lower" else base - head
    if limit.unit is not None:
        return worse
    return worse / abs(base) if base else math.copysign(math.inf, worse) if worse else 0.0
