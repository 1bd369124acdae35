"""The Mann-Whitney test of two sides of runs, exact and with ties, and how many runs it takes.

Runs are few, and their values have no known distribution: the ranks alone are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Values of both sides times those of the smaller one, such as 30 against 30. Of more the normal distribution
# is as good, but never of a single value: its p is 0.08 at least, whatever the number of the others.
_MOST_EXACT = 1800
_LARGEST_SIDE = 10_000


def rank_sum_p(base: Sequence[float], head: Sequence[float]) -> float:
    """How often ranks fall at least as far apart by chance: the two-sided p; 1 where a side is empty.

    Equal values share the mean of their ranks. Exact over all ways to deal the values out to the sides, or by
    the normal distribution where they are many.
    """
    if not base or not head:
        return 1.0
    ranks = _doubled_ranks([*base, *head])
    total, size = len(ranks), min(len(base), len(head))
    smaller = ranks[:size] if size == len(base) else ranks[len(base) :]
    # Twice the rank sum of the smaller side, and twice its mean; the other is as far from its own.
    found, mean = int(smaller.sum()), size * (total + 1)
    if size > 1 and size * total > _MOST_EXACT:
        return _normal_p(ranks, size, abs(found - mean))
    counts = _sum_counts(tuple(sorted(ranks.tolist())), size)
    is_as_far = np.abs(np.arange(len(counts)) - mean) >= abs(found - mean)
    return float(counts[is_as_far].sum() / counts.sum())


def attainable_p(base_runs: int, head_runs: int) -> float:
    """The least p that sides of this size can have, when every value of one is above all of the other."""
    if not base_runs or not head_runs:
        return 1.0
    return min(1.0, 2 / math.comb(base_runs + head_runs, head_runs))


def enough_on_both(level: float) -> int:
    """The least size of two equal sides whose difference can be told from chance at `level`."""
    return next(size for size in range(1, _LARGEST_SIDE) if attainable_p(size, size) <= level)


def enough_against(runs: int, level: float) -> int | None:
    """The least size of a side that can be told from one of `runs`; None where no size is enough."""
    sizes = range(1, _LARGEST_SIDE)
    return next((size for size in sizes if attainable_p(runs, size) <= level), None)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """P values of one family by Benjamini and Hochberg: of those at most q, a share of q is by chance."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place], reverse=True)
    found = [1.0] * len(p_values)
    least = 1.0
    for rank, place in zip(range(len(p_values), 0, -1), order, strict=True):
        # The factor first: where it is 1, a p of just the level must stay that.
        least = min(least, p_values[place] * (len(p_values) / rank))
        found[place] = least
    return found


def _doubled_ranks(values: Sequence[float]) -> NDArray[np.int64]:
    """Twice the ranks from 1, since means of tied ranks are halves."""
    array = np.asarray(values, dtype=float)
    ordered = np.sort(array)
    first = np.searchsorted(ordered, array, side="left")
    last = np.searchsorted(ordered, array, side="right")
    return (first + last + 1).astype(np.int64)


@lru_cache(maxsize=256)
def _sum_counts(ranks: tuple[int, ...], size: int) -> NDArray[np.float64]:
    """In how many ways `size` of the ranks, which ascend, have each sum.

    Metrics without ties have the same ranks, and a comparison has hundreds of metrics.
    """
    counts = np.zeros((size + 1, sum(ranks[-size:]) + 1))
    counts[0, 0] = 1
    for rank in ranks:
        # From the largest size down, so that each rank is taken once.
        for taken in range(size, 0, -1):
            counts[taken, rank:] += counts[taken - 1, : counts.shape[1] - rank]
    # A copy, since a cached row would keep the table.
    found: NDArray[np.float64] = counts[size].copy()
    return found


def _normal_p(ranks: NDArray[np.int64], size: int, distance: int) -> float:
    total = len(ranks)
    _, ties = np.unique(ranks, return_counts=True)
    tied = float((ties.astype(float) ** 3 - ties).sum())
    variance = size * (total - size) / 12 * (total + 1 - tied / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    # Sums go by whole ranks: half of one belongs to the value itself.
    z = max(distance / 2 - 0.5, 0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))
