"""The Mann-Whitney test against all ways to deal values out, scipy, and numbers worked by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracewh.sql.rank_sums import adjusted, attainable_p, enough_against, enough_on_both, rank_sum_p

scipy_stats = pytest.importorskip("scipy.stats")

FEW = st.lists(st.integers(0, 6), min_size=1, max_size=5)


def p_of_all_splits(base: list[int], head: list[int]) -> Fraction:
    """By pairs: how often head wins as much more or less than half of them, over all splits of the values."""
    values = [*base, *head]

    def distance(of_head: tuple[int, ...]) -> Fraction:
        rest = [value for place, value in enumerate(values) if place not in of_head]
        chosen = [values[place] for place in of_head]
        wins = sum(Fraction((a < b) * 2 + (a == b), 2) for a in rest for b in chosen)
        return abs(wins - Fraction(len(rest) * len(chosen), 2))

    found = distance(tuple(range(len(base), len(values))))
    splits = list(combinations(range(len(values)), len(head)))
    return Fraction(sum(distance(split) >= found for split in splits), len(splits))


@given(FEW, FEW)
def test_ties_are_exact(base: list[int], head: list[int]) -> None:
    assert rank_sum_p(base, head) == pytest.approx(float(p_of_all_splits(base, head)), rel=1e-12)


@given(FEW, FEW)
def test_sides_and_scales_do_not_matter(base: list[int], head: list[int]) -> None:
    p = rank_sum_p(base, head)
    assert rank_sum_p(head, base) == pytest.approx(p, rel=1e-12)
    curved = [[math.exp(value) for value in side] for side in (base, head)]
    assert rank_sum_p(*curved) == p


@pytest.mark.parametrize(("base_runs", "head_runs"), [(1, 3), (4, 4), (6, 6), (7, 9), (20, 12), (30, 30)])
def test_without_ties_as_scipy(base_runs: int, head_runs: int) -> None:
    generator = np.random.default_rng(base_runs)
    for shift in (0, 0.5, 2, 9):
        base = generator.normal(0, 1, base_runs).tolist()
        head = generator.normal(shift, 1, head_runs).tolist()
        expected = scipy_stats.mannwhitneyu(base, head, method="exact").pvalue
        assert rank_sum_p(base, head) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("base_runs", [40, 200])
def test_of_many_the_normal_distribution_with_ties(base_runs: int) -> None:
    generator = np.random.default_rng(base_runs)
    for shift in (0, 1):
        base = generator.integers(0, 9, base_runs).tolist()
        head = (generator.integers(0, 9, 150) + shift).tolist()
        expected = scipy_stats.mannwhitneyu(base, head, method="asymptotic").pvalue
        assert rank_sum_p(base, head) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize(("few", "many"), [(1, 61), (1, 199), (2, 80), (5, 150), (8, 217)])
def test_a_small_side_against_many_is_exact(few: int, many: int) -> None:
    """The normal distribution knows no p below 0.083 of one value against any number."""
    generator = np.random.default_rng(many)
    for shift in (0, 1, 9):
        base = generator.normal(0, 1, many).tolist()
        head = generator.normal(shift, 1, few).tolist()
        expected = pytest.approx(float(scipy_stats.mannwhitneyu(base, head, method="exact").pvalue), rel=1e-9)
        assert rank_sum_p(base, head) == expected
        assert rank_sum_p(head, base) == expected


@pytest.mark.parametrize("value", [-1, 0, 3, 7, 9, 10])
def test_one_value_against_many_with_ties(value: int) -> None:
    many = [place % 10 for place in range(75)]
    assert rank_sum_p(many, [value]) == pytest.approx(float(p_of_all_splits(many, [value])), rel=1e-12)


def test_both_ways_agree_where_they_meet() -> None:
    """Of 30 values against 31, the normal distribution; of 30 against 30, all splits."""
    generator = np.random.default_rng(0)
    base, head = generator.normal(0, 1, 30).tolist(), generator.normal(0.1, 1, 31).tolist()
    exact = float(scipy_stats.mannwhitneyu(base, head, method="exact").pvalue)
    found = rank_sum_p(base, head)
    assert found != exact
    assert 0.01 < exact < 0.2
    assert found == pytest.approx(exact, rel=0.05)
    fewer = float(scipy_stats.mannwhitneyu(base, head[:-1], method="exact").pvalue)
    assert rank_sum_p(base, head[:-1]) == pytest.approx(fewer, rel=1e-9)


def test_equal_values_and_no_values() -> None:
    assert rank_sum_p([5.0] * 4, [5.0] * 4) == 1
    assert rank_sum_p([5.0] * 50, [5.0] * 50) == 1
    assert rank_sum_p([], [5.0]) == 1
    assert rank_sum_p([5.0], []) == 1


def test_the_least_p() -> None:
    assert attainable_p(4, 4) == pytest.approx(2 / 70)
    assert attainable_p(3, 3) == pytest.approx(2 / 20)
    assert attainable_p(1, 39) == pytest.approx(2 / 40)
    assert attainable_p(1, 1) == 1
    assert attainable_p(0, 7) == 1
    assert rank_sum_p([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)


@pytest.mark.parametrize(
    "sizes", [(1, 1), (1, 39), (2, 8), (3, 5), (4, 4), (7, 3), (90, 1), (2, 100), (9, 12)]
)
def test_the_least_p_is_that_of_sides_apart(sizes: tuple[int, int]) -> None:
    base, head = list(range(sizes[0])), list(range(1000, 1000 + sizes[1]))
    assert rank_sum_p(base, head) == pytest.approx(attainable_p(*sizes), rel=1e-12)
    assert rank_sum_p(head, base) == pytest.approx(attainable_p(*sizes), rel=1e-12)


@pytest.mark.parametrize("level", [0.2, 0.1, 0.05, 0.01, 0.001])
def test_fewer_than_enough_are_not_enough(level: float) -> None:
    both = enough_on_both(level)
    assert attainable_p(both, both) <= level < attainable_p(both - 1, both - 1)
    for runs in (1, 2, 3, 6):
        against = enough_against(runs, level)
        assert against is not None
        assert attainable_p(runs, against) <= level < attainable_p(runs, against - 1)
        # What is said to be enough gives such a p.
        assert rank_sum_p(list(range(against)), list(range(10_000, 10_000 + runs))) <= level


def test_how_many_runs_are_enough() -> None:
    """C(6, 3) = 20 and C(8, 4) = 70; C(7, 3) = 35 and C(8, 3) = 56; C(9, 2) = 36 and C(10, 2) = 45."""
    assert enough_on_both(0.05) == 4
    assert enough_on_both(0.1) == 3
    assert enough_on_both(0.01) == 5
    assert [enough_against(runs, 0.05) for runs in (1, 2, 3, 4)] == [39, 8, 5, 4]
    assert enough_against(0, 0.05) is None
    assert enough_against(1, 1e-6) is None


@given(st.lists(st.floats(0, 1), max_size=20))
def test_families_as_scipy(p_values: list[float]) -> None:
    expected = scipy_stats.false_discovery_control(p_values) if p_values else []
    assert adjusted(p_values) == pytest.approx(list(expected))


@pytest.mark.parametrize("count", [1, 3, 6, 7, 49, 300])
def test_equal_ps_of_a_family_stay_what_they_are(count: int) -> None:
    """A p of just the level, as of 1 run against 39, counts in a family of such: to the last digit."""
    assert adjusted([0.05] * count) == [0.05] * count


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_family_keeps_the_order_and_lowers_no_p(p_values: list[float]) -> None:
    found = adjusted(p_values)
    assert all(own <= shared <= 1 for own, shared in zip(p_values, found, strict=True))
    assert max(found) == max(p_values)
    by_own = [shared for _, shared in sorted(zip(p_values, found, strict=True))]
    assert by_own == sorted(by_own)


def test_a_family_by_hand() -> None:
    """0.01 * 4 / 1, 0.02 * 4 / 2 and 0.03 * 4 / 3 are 0.04 each; 0.5 * 4 / 4."""
    assert adjusted([0.03, 0.5, 0.01, 0.02]) == pytest.approx([0.04, 0.5, 0.04, 0.04])
