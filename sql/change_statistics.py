"""What two sides of runs say of one metric: the ratio of their medians, its interval, and a verdict.

The unit is the run. Steps and kernels of one run share its machine, its clocks and its luck: a thousand of
them are no thousand replicates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tracewh.sql.rank_sums import attainable_p, enough_against, enough_on_both, rank_sum_p

CONFIDENCE = 0.95
RESAMPLES = 2000
# Values that resampled steps give, of all runs of a side together and of each at least.
_STEP_DRAWS = 4000
_FEWEST_STEP_DRAWS = 10
_FEWEST_STEPS = 2
_SEED = 20_240_501
_FEWEST_FOR_NOISE = 3
_MOST_FOR_NOISE = 100

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Replicate:
    """One run: its value of a metric, and the steps that it is the median of, where those are known."""

    value: float
    steps: tuple[float, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What is said of one metric.

    `ratio` is that of the medians, head to base, None where base is 0 or a side is empty. `low` and `high`
    are its interval, None where nothing varies; `is_within_run` says that a side has one run, so that the
    interval knows nothing of how its runs differ. `p` is None for numbers without chance in them.
    `noise_ratio` is how far apart runs of one side mostly are. `verdict` is regressed, improved, changed
    (where neither direction is better), unchanged, too_few_runs, only_base, only_head or no_values; `reason`
    says more in a sentence or two.
    """

    base_median: float | None
    head_median: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    noise_ratio: float | None
    verdict: str
    reason: str
    is_within_run: bool = False


def judge(
    base: Sequence[Replicate],
    head: Sequence[Replicate],
    polarity: str,
    *,
    level: float,
    min_effect: float,
    noise: float | None = None,
    p: float | None = None,
    scopes: int = 1,
    is_exact: bool = False,
) -> Judgement:
    """Judge a metric whose `lower` or `higher` values are better, or `none`.

    A change counts where its p is at most `level` and its size more than `min_effect`, and more than
    `noise`, all ratios. `p` is that of the family the metric belongs to, where it does, and `scopes` the
    size of that; the numbers of runs decide whether there are too few. What the compiler or arithmetic
    gives is exact: of that, size alone counts. Runs without a finite value do not count.
    """
    base, head = _finite(base), _finite(head)
    base_median, head_median = _median(base), _median(head)
    found = Judgement(base_median, head_median, None, None, None, None, noise, "", "")
    if base_median is None or head_median is None:
        verdict = "only_base" if base else "only_head" if head else "no_values"
        return replace(found, verdict=verdict)
    found = replace(found, ratio=_ratio(base_median, head_median))
    better = _direction(base_median, head_median, polarity)
    if is_exact:
        verdict, reason = _by_size(found, better, min_effect)
        return replace(found, verdict=verdict, reason=reason)
    own = rank_sum_p([run.value for run in base], [run.value for run in head])
    low, high = ratio_interval(base, head) or (None, None)
    found = replace(found, low=low, high=high, p=own if p is None else p)
    if len({run.value for run in (*base, *head)}) == 1:
        verdict, reason = "unchanged", "All values are equal."
    elif attainable_p(len(base), len(head)) > level:
        verdict, reason = "too_few_runs", _too_few(len(base), len(head), level)
    elif found.p is not None and found.p > level:
        # Not even sides that do not meet could show one of so many metrics.
        is_hopeless = own <= level < attainable_p(len(base), len(head)) * scopes
        verdict, reason = "too_few_runs" if is_hopeless else "unchanged", _by_chance(own, found.p, level)
    else:
        verdict, reason = _by_size(found, better, min_effect)
    if low is not None and 1 in (len(base), len(head)):
        whose = "The interval" if len(base) == len(head) else "Of one side the interval"
        reason += f" {whose} tells how steps of one run vary, not how runs do."
        found = replace(found, is_within_run=True)
    return replace(found, verdict=verdict, reason=reason)


def ratio_interval(
    base: Sequence[Replicate],
    head: Sequence[Replicate],
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = _SEED,
) -> tuple[float, float] | None:
    """The interval of the ratio of medians, head to base, by a bootstrap that a seed determines.

    Runs are drawn with replacement, and steps within each. With one run a side it tells how its steps vary,
    and nothing of other runs. None where nothing varies, a side is empty, or base may be 0.

    Quantiles of the drawn ratios are its ends (percentile interval): with few runs those have the true ratio
    between them more often than their mirror images (basic interval), as bench/comparison_power.py measures.
    """
    if not base or not head:
        return None
    drawn = [_resampled_medians(side, resamples, seed + place) for place, side in enumerate((base, head))]
    if (drawn[0] <= 0).any():
        return None
    ratios = drawn[1] / drawn[0]
    if ratios.min() == ratios.max():
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


def noise_ratio(values: Sequence[float]) -> float | None:
    """How far apart two runs of a side mostly are, as a ratio less 1: the median over their pairs.

    It does not shrink with the number of runs, as the uncertainty of their median does: machines and days
    differ by more than runs in a row, and less than two runs differ by is not worth an alarm. None for fewer
    than three runs, of which no distance is the usual one, or where a value is not above 0.
    """
    some = np.sort(np.array(values))
    if len(some) > _MOST_FOR_NOISE:
        some = some[np.linspace(0, len(some) - 1, _MOST_FOR_NOISE).round().astype(np.int64)]
    if len(some) < _FEWEST_FOR_NOISE or some[0] <= 0:
        return None
    less, more = np.triu_indices(len(some), 1)
    return float(np.median(some[more] / some[less]) - 1)


def side_noise(base: Sequence[float], head: Sequence[float]) -> float | None:
    """The noise that a change has to exceed: of base, or of head where base has too few runs.

    A change that makes runs erratic is one: the noise of head does not excuse it.
    """
    known = noise_ratio(base)
    return noise_ratio(head) if known is None else known


def _by_size(found: Judgement, better: str, min_effect: float) -> tuple[str, str]:
    if found.base_median == found.head_median:
        return "unchanged", "The medians are equal."
    size = _size(found)
    if size <= min_effect:
        return "unchanged", f"The change is no more than {_percent(min_effect)}, and only more counts."
    if found.p is None:
        return better, ""
    if found.noise_ratio is not None and size <= found.noise_ratio:
        return "unchanged", f"Two runs of one side are mostly as far apart: by {_percent(found.noise_ratio)}."
    return better, f"Chance alone sets runs so far apart with a probability of {found.p:.2g}."


def _size(found: Judgement) -> float:
    """The change as a share of base, rounded once: 102 is 2 % more than 100, but 1.02 - 1 more than 0.02."""
    if not found.base_median or found.head_median is None:
        return math.inf
    return abs(found.head_median - found.base_median) / abs(found.base_median)


def _by_chance(own: float, shared: float, level: float) -> str:
    if own <= level:
        return (
            f"Alone its p of {own:.2g} would be enough, but of as many metrics some differ so by chance: "
            f"among them p is {shared:.2g}."
        )
    return (
        f"Chance alone sets runs so far apart with a probability of {shared:.2g}: at most {level:g} counts."
    )


def _too_few(base_runs: int, head_runs: int, level: float) -> str:
    fewer = min(base_runs, head_runs)
    equal, against = enough_on_both(level), enough_against(fewer, level)
    others = f", or {against} against {fewer}" if against is not None and against > equal else ""
    runs = "1 run" if base_runs == 1 else f"{base_runs} runs"
    return (
        f"{runs} against {head_runs} cannot show a change at the {_percent(level)} level: "
        f"it takes {equal} on both sides{others}."
    )


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"


def _direction(base: float, head: float, polarity: str) -> str:
    if polarity not in ("lower", "higher"):
        return "changed"
    return "improved" if (head < base) == (polarity == "lower") else "regressed"


def _finite(runs: Sequence[Replicate]) -> list[Replicate]:
    return [
        Replicate(run.value, tuple(filter(math.isfinite, run.steps)))
        for run in runs
        if math.isfinite(run.value)
    ]


def _median(runs: Sequence[Replicate]) -> float | None:
    return statistics.median(run.value for run in runs) if runs else None


def _ratio(base: float, head: float) -> float | None:
    if base == head:
        return 1.0
    return head / base if base else None


def _resampled_medians(runs: Sequence[Replicate], resamples: int, seed: int) -> _Floats:
    """Medians of as many runs as there are, drawn with replacement, each with steps that are."""
    values = np.array([run.value for run in runs])
    if any(len(run.steps) >= _FEWEST_STEPS for run in runs):
        draws = max(_FEWEST_STEP_DRAWS, _STEP_DRAWS // len(runs))
        values = np.concatenate([_step_medians(run, draws, seed) for run in runs])
    return _medians(values, len(runs), resamples, seed)


def _step_medians(run: Replicate, draws: int, seed: int) -> _Floats:
    """Values that the run might have had, with steps drawn with replacement."""
    steps = np.array(run.steps if len(run.steps) >= _FEWEST_STEPS else [run.value])
    # The value of a run may be another than the median of its steps.
    shift = run.value - float(np.median(steps))
    return _medians(steps, len(steps), draws, seed + 2) + shift


def _medians(values: _Floats, count: int, number: int, seed: int) -> _Floats:
    """Medians of `count` of the values, drawn with replacement so many times."""
    ordered = np.sort(values)
    lower, upper = (
        ordered[np.minimum((places * len(ordered)).astype(np.int64), len(ordered) - 1)]
        for places in _median_places(count, number, seed)
    )
    middle: _Floats = (lower + upper) / 2
    return middle


@lru_cache(maxsize=256)
def _median_places(count: int, number: int, seed: int) -> tuple[_Floats, _Floats]:
    """The middle two (or twice the middle one) of `count` uniform numbers, so many times.

    A draw takes each of the ordered values with the same chance: a uniform number says which. The number of a
    rank among them has a beta distribution, and so needs none of the others.
    """
    generator = np.random.default_rng(seed)
    rank = (count + 1) // 2
    lower = generator.beta(rank, count - rank + 1, number)
    if count % 2:
        return lower, lower
    # The least of those above it.
    return lower, lower + (1 - lower) * generator.beta(1, count - rank, number)
