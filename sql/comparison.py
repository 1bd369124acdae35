"""Comparing two sides of runs: what changed, how sure that is, and where it comes from.

The numbers are rows of the views of comparisons (views/comparison); here they are asked for two sides, and
judged. The unit is the run: its steps and kernels are no replicates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.errors import TracewhError
from tracewh.sql.change_statistics import Judgement, Replicate, judge, side_noise
from tracewh.sql.group_scope import GroupScope, group_scope
from tracewh.sql.rank_sums import adjusted, rank_sum_p
from tracewh.sql.run_selection import RunSelection, shared_runs
from tracewh.sql.warehouse import Warehouse

BASE, HEAD = "base", "head"
DEFAULT_LEVEL = 0.05
DEFAULT_MIN_EFFECT = 0.02
# The first of these that both sides have is what the verdict is of: a step without a profiler comes first.
_HEADLINES = (("step_time", "unprofiled"), ("step_time", "unknown"), ("device_step_time", "profiled"))
_PAIR = "base_group = 'base' AND head_group = 'head'"

_VALUES = """
    SELECT g.group_name AS side, m.metric AS metric, m.scope AS scope,
           coalesce(m.timing, '') AS timing, m.evidence AS evidence, min(m.unit) AS unit,
           min(m.polarity) AS polarity,
           list(m.run_id ORDER BY m.run_id) AS run_ids, list(m.value ORDER BY m.run_id) AS run_values
    FROM v1.run_groups AS g JOIN main.run_metrics AS m ON m.run_id = g.run_id
    WHERE isfinite(m.value)
    GROUP BY side, m.metric, m.scope, m.timing, m.evidence
    ORDER BY m.metric, m.scope, timing, m.evidence, side
"""
_SAMPLES = """
    SELECT s.run_id AS run_id, s.metric AS metric, s.timing AS timing,
           list(s.value ORDER BY s.sample_index) AS steps
    FROM v1.run_groups AS g JOIN main.metric_samples AS s ON s.run_id = g.run_id
    GROUP BY s.run_id, s.metric, s.timing
"""
_LEVELS = f"""
    SELECT c.level AS level, c.phase AS phase, c.component AS component, c.op AS op, c.kernel AS kernel,
           c.base_ps AS base_ps, c.head_ps AS head_ps, c.change_ps AS change_ps,
           c.share_ratio AS share_ratio, c.base_events AS base_events, c.head_events AS head_events
    FROM v1.step_change_levels AS c WHERE {_PAIR}
    ORDER BY abs(c.change_ps) DESC, c.level, c.phase, c.component, c.op, c.kernel
"""
_KERNELS = f"""
    SELECT c.change AS change, c.phase AS phase, c.component AS component, c.op AS op,
           c.base_kernel AS base_kernel, c.head_kernel AS head_kernel, c.base_sum_ps AS base_sum_ps,
           c.head_sum_ps AS head_sum_ps, c.change_ps AS change_ps,
           c.base_events AS base_events, c.head_events AS head_events,
           c.base_runs AS base_runs, c.head_runs AS head_runs
    FROM v1.kernel_changes AS c WHERE {_PAIR}
    ORDER BY greatest(c.base_sum_ps, c.head_sum_ps) DESC, c.change, c.phase, c.component, c.op,
             c.base_kernel, c.head_kernel
"""

_SETTINGS = f"""
    SELECT c.setting_kind AS setting_kind, c.setting AS setting, c.base_value AS base_value,
           c.head_value AS head_value, c.base_runs AS base_runs, c.head_runs AS head_runs,
           c.base_known_runs AS base_known_runs, c.head_known_runs AS head_known_runs,
           c.effect AS effect, c.reason AS reason
    FROM v1.setting_changes AS c WHERE {_PAIR}
    ORDER BY CASE c.effect WHEN 'not_comparable' THEN 1 WHEN 'candidate_cause' THEN 2 ELSE 3 END,
             c.setting_kind, c.setting, c.base_value, c.head_value
"""
_REASONS = f"""
    SELECT c.setting AS setting, c.base_value AS base_value, c.head_value AS head_value, c.reason AS reason
    FROM v1.comparability_reasons AS c WHERE {_PAIR}
    ORDER BY c.reason_kind, c.setting, c.base_value, c.head_value
"""
# Of the step programs of each side those of one name, as the latest run has them.
_MODULES = """
    WITH latest AS (
        SELECT g.group_name, m.module_name, m.module_id,
               row_number() OVER (PARTITION BY g.group_name, m.module_name ORDER BY m.run_id DESC) AS place
        FROM v1.run_groups AS g JOIN main.run_modules AS m ON m.run_id = g.run_id
    )
    SELECT b.module_name AS module_name, b.module_id AS base_module_id, h.module_id AS head_module_id
    FROM latest AS b JOIN latest AS h ON h.module_name = b.module_name
    WHERE b.group_name = 'base' AND h.group_name = 'head' AND b.place = 1 AND h.place = 1
    ORDER BY 1
"""
_HLO = """
    SELECT c.* FROM v1.hlo_changes AS c
    WHERE c.base_module_id = $1 AND c.head_module_id = $2
    ORDER BY abs(coalesce(c.flops_change, 0)) DESC, abs(coalesce(c.bytes_change, 0)) DESC,
             c.change, c.opcode, c.op_name, c.base_instruction, c.head_instruction
"""

MetricKey = tuple[str, str, str, str]
"""Metric, scope, timing and evidence: only numbers of one key are compared."""


@dataclass(frozen=True)
class MetricChange:
    """How one metric differs, with what can be said of it; ratios are of head to base."""

    metric: str
    scope: str
    timing: str
    evidence: str
    unit: str
    polarity: str
    base_runs: int
    head_runs: int
    judgement: Judgement


@dataclass(frozen=True)
class PartChange:
    """What one part of the device step adds to its change.

    Level 0 is the step, 1 a phase, 2 a component in it, 3 an op, 4 a kernel; what is below the level is None.
    """

    level: int
    phase: str | None
    component: str | None
    op: str | None
    kernel: str | None
    base_ps: float
    head_ps: float
    change_ps: float
    share_ratio: float | None
    base_events: float
    head_events: float

    @property
    def path(self) -> tuple[str | None, ...]:
        """Phase, component, op and kernel, as far as the level goes."""
        return (self.phase, self.component, self.op, self.kernel)[: self.level]


@dataclass(frozen=True)
class Comparison:
    """What two sides of runs differ in.

    `verdict` is that of `headline`, or not_comparable, with the reasons. `parts` are of all levels, those
    that change most first; those of one level sum to the change of the step. `kernels`, `hlo` and `settings`
    are rows of v1.kernel_changes, v1.hlo_changes and v1.setting_changes.
    """

    base: RunSelection
    head: RunSelection
    verdict: str
    reasons: tuple[str, ...]
    headline: MetricChange | None
    metrics: tuple[MetricChange, ...]
    parts: tuple[PartChange, ...]
    kernels: tuple[Mapping[str, Any], ...]
    hlo: tuple[Mapping[str, Any], ...]
    settings: tuple[Mapping[str, Any], ...]


class ComparisonError(TracewhError):
    """Two sides that cannot be set side by side."""


def compare(
    warehouse: Warehouse,
    base: RunSelection,
    head: RunSelection,
    *,
    level: float = DEFAULT_LEVEL,
    min_effect: float = DEFAULT_MIN_EFFECT,
    alone: Collection[tuple[str, str]] = (),
) -> Comparison:
    """What `head` differs in from `base`.

    `level` is the rate of false alarms of a verdict, `min_effect` the least change that counts, as a ratio.
    Of a metric with many scopes some differ by chance, which its verdicts allow for, except those of `alone`:
    metrics and scopes that were asked for by name.
    Raises ComparisonError where a run is on both sides.
    """
    both = shared_runs(base, head)
    if both:
        raise ComparisonError(
            f"{both[0]} is on both sides of the comparison: choose runs that are on one side only."
        )
    with group_scope(warehouse.connection, {BASE: base.run_ids, HEAD: head.run_ids}) as scope:
        metrics = _metric_changes(scope, level, min_effect, alone)
        headline = _headline(metrics)
        reasons = tuple(map(_reason, scope.rows(_REASONS)))
        verdict = "no_metric" if headline is None else headline.judgement.verdict
        return Comparison(
            base,
            head,
            "not_comparable" if reasons else verdict,
            reasons,
            headline,
            tuple(metrics),
            tuple(PartChange(**row) for row in scope.rows(_LEVELS)),
            tuple(scope.rows(_KERNELS)),
            tuple(_hlo_changes(scope)),
            tuple(scope.rows(_SETTINGS)),
        )


def _reason(row: Mapping[str, Any]) -> str:
    base, head = ("not known" if row[side] is None else row[side] for side in ("base_value", "head_value"))
    if base == head:
        return f"{row['setting']} is not {base} in all runs of both sides ({row['reason']})"
    return f"{row['setting']} is {base} against {head} ({row['reason']})"


def _headline(metrics: Sequence[MetricChange]) -> MetricChange | None:
    found = {(change.metric, change.timing): change for change in metrics if not change.scope}
    both = (found[key] for key in _HEADLINES if key in found)
    return next((change for change in both if change.base_runs and change.head_runs), None)


def _metric_changes(
    scope: GroupScope, level: float, min_effect: float, alone: Collection[tuple[str, str]]
) -> list[MetricChange]:
    sides: dict[MetricKey, dict[str, dict[int, float]]] = defaultdict(lambda: {BASE: {}, HEAD: {}})
    about: dict[MetricKey, tuple[str, str]] = {}
    for row in scope.rows(_VALUES):
        key = (row["metric"], row["scope"], row["timing"], row["evidence"])
        sides[key][row["side"]] = dict(zip(row["run_ids"], row["run_values"], strict=True))
        about[key] = (row["unit"], row["polarity"])
    samples = {
        (row["run_id"], row["metric"], row["timing"]): tuple(row["steps"]) for row in scope.rows(_SAMPLES)
    }

    def replicates(key: MetricKey, side: str) -> list[Replicate]:
        return [
            Replicate(value, samples.get((run_id, key[0], key[2]), ()) if not key[1] else ())
            for run_id, value in sides[key][side].items()
        ]

    shared = _family_ps({key: values for key, values in sides.items() if key[:2] not in alone})
    return [
        MetricChange(
            *key,
            *about[key],
            len(values[BASE]),
            len(values[HEAD]),
            judge(
                replicates(key, BASE),
                replicates(key, HEAD),
                about[key][1],
                level=level,
                min_effect=min_effect,
                noise=side_noise(list(values[BASE].values()), list(values[HEAD].values())),
                p=shared[key][0] if key in shared else None,
                scopes=shared[key][1] if key in shared else 1,
                is_exact=key[3] in ("compiler", "analytical") and not key[2],
            ),
        )
        for key, values in sides.items()
    ]


def _family_ps(
    sides: Mapping[MetricKey, Mapping[str, Mapping[int, float]]],
) -> dict[MetricKey, tuple[float, int]]:
    """Adjusted p values of metrics with many scopes, some of which differ by chance, and their number."""
    families: dict[tuple[str, str, str], list[MetricKey]] = defaultdict(list)
    for key, values in sides.items():
        if key[1] and values[BASE] and values[HEAD]:
            families[key[0], key[2], key[3]].append(key)
    found: dict[MetricKey, tuple[float, int]] = {}
    for keys in families.values():
        own = [rank_sum_p(list(sides[key][BASE].values()), list(sides[key][HEAD].values())) for key in keys]
        found |= {key: (p, len(keys)) for key, p in zip(keys, adjusted(own), strict=True)}
    return found


def _hlo_changes(scope: GroupScope) -> Iterable[dict[str, Any]]:
    for pair in scope.rows(_MODULES):
        if pair["base_module_id"] != pair["head_module_id"]:
            for row in scope.rows(_HLO, pair["base_module_id"], pair["head_module_id"]):
                yield {"module_name": pair["module_name"], **row}
