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

from tracewh.sql.rank_sums import attainable_p, rank_sum_p, runs_needed

CONFIDENCE = 0.95
RESAMPLES = 2000
# Values that the steps of a run might have given: so many of all runs of a side together, and of each at least.
_STEP_DRAWS = 4000
_FEWEST_STEP_DRAWS = 10
_FEWEST_STEPS = 2
_SEED = 20_240_501
_FEWEST_FOR_NOISE = 3
_MOST_FOR_NOISE = 100

_Places = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Replicate:
    """One run: its value of a metric, and the steps that it is the median of, where those are known."""

    value: float
    steps: tuple[float, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """What is said of one metric.

    `ratio` is that of the medians, head to base, None where base is 0 or a side is empty. `low` and `high` are
    its interval, None where nothing varies; `is_within_run` says that a side has one run, so that the interval
    knows nothing of how runs of that side differ. `p` is None for numbers without chance in them.
    `noise_ratio` is how far apart runs of one side typically are. `verdict` is regressed, improved, changed
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
    is_exact: bool = False,
) -> Judgement:
    """Judge a metric whose `lower` or `higher` values are better, or `none`.

    A change counts where its p is at most `level` and its size more than `min_effect`, and more than `noise`,
    all ratios. `p` is that of the family the metric belongs to, where it does; the numbers of runs alone decide
    whether they are too few. What the compiler or arithmetic gives is exact: of that, size alone counts. Runs
    without a finite value do not count.
    """
    base, head = _finite(base), _finite(head)
    base_median, head_median = _median(base), _median(head)
    found = Judgement(base_median, head_median, None, None, None, None, noise, "", "")
    if base_median is None or head_median is None:
        sides = (base_median is not None, head_median is not None)
        return replace(found, verdict={(True, False): "only_base", (False, True): "only_head"}.get(sides, "no_values"))
    found = replace(found, ratio=_ratio(base_median, head_median))
    better = _direction(base_median, head_median, polarity)
    if is_exact:
        verdict, reason = _by_size(found, better, min_effect)
        return replace(found, verdict=verdict, reason=reason)
    own = rank_sum_p([run.value for run in base], [run.value for run in head])
    low, high = ratio_interval(base, head) or (None, None)
    is_within_run = low is not None and 1 in (len(base), len(head))
    found = replace(found, low=low, high=high, p=own if p is None else p, is_within_run=is_within_run)
    if len({run.value for run in (*base, *head)}) == 1:
        verdict, reason = "unchanged", "All values are equal."
    elif attainable_p(len(base), len(head)) > level:
        verdict, reason = "too_few_runs", _too_few(len(base), len(head), level)
    elif found.p > level:
        verdict, reason = "unchanged", 
    else:
        verdict, reason = _by_size(found, better, min_effect)
    return replace(found, verdict=verdict, reason=reason)
