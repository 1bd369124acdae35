"""What two sides of runs say of one metric: the ratio of their medians, its interval, and a verdict.

The unit is the run. Steps and kernels of one run share its machine, its clocks and its luck: a thousand of
them are no thousand replicates.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracewh.sql.rank_sums import attainable_p, enough_against, enough_on_both, rank_sum_p

CONFIDENCE = 0.95
RESAMPLES = 2000
# Medians of resampled steps that are drawn, of all runs of a side together and of each at least.
_STEP_DRAWS = 4000
_FEWEST_STEP_DRAWS = 10
_FEWEST_STEPS = 2
_SEED = 20_240_501
_FEWEST_FOR_NOISE = 3
_MOST_FOR_NOISE = 100


@dataclass(frozen=True)
class Replicate:
    """One run: its value of a metric, and the steps that it is the median of, where those are known."""

    value: float
    steps: tuple[float, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What is said of one metric.

    `ratio` is that of the medians, head to base, None where base is 0 or a side is empty; `low` and `high`
    are its interval, None where nothing varies. `p` is None for numbers without chance in them. `noise_ratio`
    is how far apart runs of one side mostly are. `verdict` is regressed, improved, changed (where neither
    direction is better), unchanged, too_few_runs, only_base or only_head; `reason` says more in a sentence.
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


def judge(
    base: Sequence[Replicate],
    head: Sequence[Replicate],
    polarity: str,
    *,
    level: float,
    min_effect: float,
    noise: float | None = None,
    p: float | None = None,
    is_exact: bool = False,
) -> Judgement:
    """Judge a metric whose `lower` or `higher` values are better, or `none`.

    A change counts where its p is at most `level` and its size more than `min_effect`, and more than `noise`,
    all ratios. `p` is that of the family the metric belongs to, where it does; the own one decides whether
    there are too few runs. What the compiler or arithmetic gives is exact: of that, size alone counts.
    """
    base_median, head_median = _median(base), _median(head)
    found = Judgement(base_median, head_median, None, None, None, None, noise, "", "")
    if base_median is None or head_median is None:
        return replace(found, verdict="only_head" if base_median is None else "only_base")
    found = replace(found, ratio=_ratio(base_median, head_median))
    better = _direction(base_median, head_median, polarity)
    if is_exact:
        is_large = base_median != head_median and (found.ratio is None or abs(found.ratio - 1) > min_effect)
        return replace(found, verdict=better if is_large else "unchanged")
    low, high = ratio_interval(base, head) or (None, None)
    if p is None:
        p = rank_sum_p([run.value for run in base], [run.value for run in head])
    found = replace(found, low=low, high=high, p=p)
    verdict, reason = _verdict(found, better, (len(base), len(head)), level, min_effect)
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
    """
    if not base or not head:
        return None
    generator = np.random.default_rng(seed)
    drawn = [_resampled_medians(side, generator, resamples) for side in (base, head)]
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

    None for fewer than three runs, or where a value is not above 0.
    """
    some = np.array(values[:_MOST_FOR_NOISE])
    if len(some) < _FEWEST_FOR_NOISE or some.min() <= 0:
        return None
    one, other = np.triu_indices(len(some), 1)
    return float(np.median(np.maximum(some[one], some[other]) / np.minimum(some[one], some[other])) - 1)


def _verdict(
    found: Judgement, better: str, runs: tuple[int, int], level: float, min_effect: float
) -> tuple[str, str]:
    if attainable_p(*runs) > level:
        return "too_few_runs", _too_few(runs, level)
    size = abs(found.ratio - 1) if found.ratio is not None else float("inf")
    if found.base_median == found.head_median or found.p is None or found.p > level:
        return "unchanged", f"Such a difference comes by chance: p is {found.p:.2g}."
    if size <= min_effect:
        return "unchanged", f"The change is less than {min_effect:.2%}, which is the least that counts."
    if found.noise_ratio is not None and size <= found.noise_ratio:
        return "unchanged", f"Runs of one side are as far apart: {found.noise_ratio:.2%}."
    return better, f"p is {found.p:.2g}."


def _too_few(runs: tuple[int, int], level: float) -> str:
    fewer = min(runs)
    equal, against = enough_on_both(level), enough_against(fewer, level)
    others = f", or {fewer} against {against}" if against is not None and against > equal else ""
    return (
        f"{runs[0]} against {runs[1]} runs cannot tell a change from chance at the level of {level:.0%}: "
        f"{equal} against {equal} can{others}."
    )


def _direction(base: float, head: float, polarity: str) -> str:
    if polarity not in ("lower", "higher"):
        return "changed"
    return "improved" if (head < base) == (polarity == "lower") else "regressed"


def _median(runs: Sequence[Replicate]) -> float | None:
    return statistics.median(run.value for run in runs) if runs else None


def _ratio(base: float, head: float) -> float | None:
    if base == head:
        return 1.0
    return head / base if base else None


def _resampled_medians(
    runs: Sequence[Replicate], generator: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    """Medians of runs that are drawn with replacement, each with steps that are.

    A draw takes any of all values with the same chance, so that the median of as many draws as there are runs
    is the value at a rank whose distribution is known: the middle one of so many uniform numbers.
    """
    values = np.sort(_resampled_values(runs, generator))
    count = len(runs)
    lower = (count + 1) // 2
    ranks = generator.beta(lower, count - lower + 1, resamples)
    if count % 2:
        return _at(values, ranks)
    # The next of the uniform numbers above it.
    upper = ranks + (1 - ranks) * generator.beta(1, count - lower, resamples)
    return (_at(values, ranks) + _at(values, upper)) / 2


def _at(values: NDArray[np.float64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    places = np.minimum((ranks * len(values)).astype(np.int64), len(values) - 1)
    found: NDArray[np.float64] = values[places]
    return found


def _resampled_values(runs: Sequence[Replicate], generator: np.random.Generator) -> NDArray[np.float64]:
    """Values of each run as its steps might have given them, equally many of each."""
    if all(len(run.steps) < _FEWEST_STEPS for run in runs):
        return np.array([run.value for run in runs])
    draws = max(_FEWEST_STEP_DRAWS, _STEP_DRAWS // len(runs))
    found = []
    for run in runs:
        steps = np.array(run.steps if len(run.steps) >= _FEWEST_STEPS else [run.value])
        medians = np.median(steps[generator.integers(0, len(steps), (draws, len(steps)))], axis=1)
        # The value of a run may be another than the median of its steps.
        found.append(medians + (run.value - np.median(steps)))
    return np.concatenate(found)
