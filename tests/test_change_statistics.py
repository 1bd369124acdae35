"""Verdicts and intervals: numbers worked by hand, and bootstraps with every resample listed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracewh.sql.change_statistics import Judgement, Replicate, judge, noise_ratio, ratio_interval

NAN = float("nan")
SIX = [100.0, 100.4, 99.7, 100.1, 99.9, 100.3]
TEN_MORE = [1.1 * value for value in SIX]


def runs(values: Sequence[float]) -> list[Replicate]:
    return [Replicate(value) for value in values]


def judged(
    base: Sequence[float],
    head: Sequence[float],
    polarity: str = "lower",
    *,
    level: float = 0.05,
    min_effect: float = 0.02,
    noise: float | None = None,
    p: float | None = None,
    scopes: int = 1,
    is_exact: bool = False,
) -> Judgement:
    return judge(
        runs(base), runs(head), polarity,
        level=level, min_effect=min_effect, noise=noise, p=p, scopes=scopes, is_exact=is_exact,
    )  # fmt: skip


def nested_bootstrap(
    sides: Sequence[Sequence[Replicate]], count: int, generator: np.random.Generator
) -> list[float]:
    """Ratios of medians, with runs drawn first and then the steps of each that was drawn."""
    ratios = []
    for _ in range(count):
        medians = []
        for side in sides:
            values = []
            for place in generator.integers(0, len(side), len(side)):
                run = side[place]
                steps = [run.steps[other] for other in generator.integers(0, len(run.steps), len(run.steps))]
                values.append(statistics.median(steps) if steps else run.value)
            medians.append(statistics.median(values))
        ratios.append(medians[1] / medians[0])
    return ratios


def resampled(values: Sequence[float]) -> list[float]:
    """The medians of all ways to draw as many values with replacement."""
    return [statistics.median(draw) for draw in product(values, repeat=len(values))]


def assert_quantile(value: float, share: float, of_all: Sequence[float], error: float) -> None:
    """So many are below the value at most, and so many up to it at least."""
    all_values = np.array(of_all)
    assert np.mean(all_values < value - 1e-9) <= share + error
    assert np.mean(all_values <= value + 1e-9) >= share - error


@pytest.mark.parametrize(
    ("polarity", "factor", "verdict"),
    [
        ("lower", 1.1, "regressed"),
        ("lower", 0.9, "improved"),
        ("higher", 1.1, "improved"),
        ("higher", 0.9, "regressed"),
        ("none", 1.1, "changed"),
        ("none", 0.9, "changed"),
        ("lower", 1.0, "unchanged"),
    ],
)
def test_which_values_are_better(polarity: str, factor: float, verdict: str) -> None:
    found = judged(SIX, [factor * value for value in SIX], polarity)
    assert found.verdict == verdict
    assert found.base_median == pytest.approx(100.05)
    assert found.head_median == pytest.approx(factor * 100.05)
    assert found.ratio == pytest.approx(factor)
    # Apart, the sides are dealt in 2 of C(12, 6) ways; the same, in all.
    assert found.p == pytest.approx(1 if factor == 1 else 2 / 924)


def test_too_few_runs_say_what_would_be_enough() -> None:
    found = judged([100.0], [90.0])
    assert (found.verdict, found.ratio, found.p) == ("too_few_runs", 0.9, 1.0)
    assert (
        found.reason
        == "1 run against 1 cannot show a change at the 5 % level: it takes 4 on both sides, or 39 against 1."
    )
    assert judged(SIX[:3], TEN_MORE[:3]).reason.endswith(": it takes 4 on both sides, or 5 against 3.")
    assert judged(SIX, TEN_MORE[:2]).reason.startswith("6 runs against 2 cannot")
    assert judged(SIX, TEN_MORE[:2]).reason.endswith(": it takes 4 on both sides, or 8 against 2.")
    assert judged(SIX, TEN_MORE, level=0.001).verdict == "too_few_runs"
    # As many as it says are enough.
    assert judged(SIX[:4], TEN_MORE[:4]).verdict == "regressed"
    assert judged(SIX[:3], [*TEN_MORE[:4], 111.0]).verdict == "regressed"
    assert judged([100.0], [110.0 + place for place in range(39)]).verdict == "regressed"
    assert judged([100.0], [110.0 + place for place in range(38)]).verdict == "too_few_runs"


def test_a_change_has_to_be_of_some_size() -> None:
    assert judged(SIX, TEN_MORE, min_effect=0.11).verdict == "unchanged"
    assert "11 %" in judged(SIX, TEN_MORE, min_effect=0.11).reason
    assert judged(SIX, TEN_MORE, noise=0.12).verdict == "unchanged"
    assert "12 %" in judged(SIX, TEN_MORE, noise=0.12).reason
    assert judged(SIX, TEN_MORE, noise=0.09, min_effect=0.09).verdict == "regressed"
    assert judged(SIX, [0.9 * value for value in SIX], noise=0.12).verdict == "unchanged"


@pytest.mark.parametrize("percent", [1, 2, 3, 7, 29])
@pytest.mark.parametrize("base", [50.0, 100.0, 200.0, 1000.0])
def test_a_change_of_just_the_least_effect_does_not_count(percent: int, base: float) -> None:
    """Of 100 fusions, 102 are 2 % more, though 1.02 - 1 is more than 0.02 in floating point."""
    for sign in (1, -1):
        head = base + sign * base * percent / 100
        at_limit = judged([base], [head], is_exact=True, min_effect=percent / 100)
        assert at_limit.verdict == "unchanged"
        assert f"no more than {percent} %" in at_limit.reason
        beyond = judged([base], [head + sign / 1000], is_exact=True, min_effect=percent / 100)
        assert beyond.verdict == ("regressed" if sign > 0 else "improved")


def test_negative_values() -> None:
    """From -1.15 to -2.15 it falls by 87 % of 1.15, though the ratio grows."""
    base = [-1.0, -1.1, -1.2, -1.3]
    fell = judged(base, [value - 1 for value in base])
    assert (fell.verdict, fell.low, fell.high) == ("improved", None, None)
    assert fell.ratio == pytest.approx(2.15 / 1.15)
    assert judged(base, [value - 1 for value in base], min_effect=1 / 1.15 - 0.001).verdict == "improved"
    assert judged(base, [value - 1 for value in base], min_effect=1 / 1.15 + 0.001).verdict == "unchanged"
    rose = judged(base, [-value for value in base])
    assert (rose.verdict, rose.ratio) == ("regressed", pytest.approx(-1))


@given(
    st.lists(st.integers(1, 99), min_size=4, max_size=7),
    st.lists(st.integers(1, 99), min_size=4, max_size=7),
    st.sampled_from(["lower", "higher", "none"]),
)
def test_the_other_way_round_and_upside_down(base: list[int], head: list[int], polarity: str) -> None:
    found = judged(base, head, polarity, min_effect=0)
    other_way = {"regressed": "improved", "improved": "regressed"}
    back = judged(head, base, polarity, min_effect=0)
    assert back.verdict == other_way.get(found.verdict, found.verdict)
    assert back.p == pytest.approx(found.p)
    opposite = {"lower": "higher", "higher": "lower", "none": "none"}[polarity]
    upside_down = judged(base, head, opposite, min_effect=0)
    assert upside_down.verdict == other_way.get(found.verdict, found.verdict)
    in_other_units = judged(
        [8 * value for value in base], [8 * value for value in head], polarity, min_effect=0
    )
    assert (in_other_units.verdict, in_other_units.reason) == (found.verdict, found.reason)
    assert (in_other_units.low, in_other_units.high) == (found.low, found.high)


def test_chance_is_named() -> None:
    """A rank sum of 23, where 21 is the least: 2 * (1 + 1 + 2) of C(12, 6) = 924 ways."""
    found = judged([1, 2, 3, 4, 6, 7], [5, 8, 9, 10, 11, 12])
    assert found.p == pytest.approx(8 / 924)
    assert found.verdict == "regressed"
    assert judged([1, 2, 3, 4, 6, 7], [5, 8, 9, 10, 11, 12], level=0.008).verdict == "unchanged"
    mixed = judged([1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12])
    assert mixed.verdict == "unchanged"
    assert "chance" in mixed.reason.lower()


def test_p_of_a_family_decides() -> None:
    found = judged(SIX, TEN_MORE, p=0.2)
    assert (found.verdict, found.p) == ("unchanged", 0.2)
    assert "0.0022" in found.reason
    assert "0.2" in found.reason
    assert judged(SIX, TEN_MORE, p=0.05).verdict == "regressed"
    # 2 / 70 of four against four: of one metric that is enough, and of two it is not.
    assert judged(SIX[:4], TEN_MORE[:4], p=0.2, scopes=1).verdict == "unchanged"
    assert judged(SIX[:4], TEN_MORE[:4], p=0.2, scopes=2).verdict == "too_few_runs"
    # What differs so by chance is no matter of how many scopes there are.
    assert judged(SIX[:4], SIX[:4], p=1.0, scopes=20).verdict == "unchanged"
    # It does not make more runs of few.
    assert judged(SIX[:3], TEN_MORE[:3], p=0.01).verdict == "too_few_runs"


def test_exact_numbers_need_no_replicates() -> None:
    found = judged([100.0], [103.0], is_exact=True)
    assert (found.verdict, found.p, found.low) == ("regressed", None, None)
    assert judged([100.0], [103.0], "higher", is_exact=True).verdict == "improved"
    assert judged([100.0], [101.0], is_exact=True).verdict == "unchanged"
    assert judged([100.0], [101.0], is_exact=True, min_effect=0).verdict == "regressed"
    assert judged([100.0], [100.0], is_exact=True, min_effect=0).verdict == "unchanged"
    assert judged([0.0], [8.0], is_exact=True).verdict == "regressed"


def test_zeros() -> None:
    same = judged([0.0] * 4, [0.0] * 4)
    assert (same.verdict, same.ratio, same.low) == ("unchanged", 1, None)
    # Nothing against nothing is no matter of how many runs.
    assert judged([0.0], [0.0]).verdict == "unchanged"
    more = judged([0.0] * 4, [1.0, 2.0, 3.0, 4.0])
    assert (more.verdict, more.ratio, more.low) == ("regressed", None, None)
    gone = judged([1.0, 2.0, 3.0, 4.0], [0.0] * 4)
    assert (gone.verdict, gone.ratio) == ("improved", 0)
    assert judged([0.0], [5.0]).verdict == "too_few_runs"


def test_a_side_without_values() -> None:
    assert judged([], []).verdict == "no_values"
    assert judged([1.0], []).verdict == "only_base"
    found = judged([NAN, NAN], [1.0])
    assert (found.verdict, found.base_median, found.head_median) == ("only_head", None, 1)
    assert found.ratio is None


def test_what_is_not_finite_does_not_count() -> None:
    assert judged([*SIX, NAN, math.inf], TEN_MORE) == judged(SIX, TEN_MORE)
    assert judged([*SIX[:3], NAN], TEN_MORE).verdict == "regressed"
    assert judged([*SIX[:3], NAN], TEN_MORE[:4]).verdict == "too_few_runs"
    with_steps = [Replicate(2.0, (1.0, 2.0, 3.0, NAN))], [Replicate(2.0, (1.0, 2.0, 3.0))]
    found = judge(*with_steps, "lower", level=0.05, min_effect=0)
    assert found.low is not None
    assert math.isfinite(found.low)


def test_one_run_a_side_tells_of_steps_only() -> None:
    one = [Replicate(2.0, (1.0, 2.0, 3.0))]
    found = judge(one, runs([3.0]), "lower", level=0.05, min_effect=0.02)
    assert found.verdict == "too_few_runs"
    assert (found.low, found.high) == (1.0, 3.0)
    assert found.is_within_run
    assert "steps of one run" in found.reason
    # Without steps nothing varies, and with two runs a side they do.
    for base, head in ((runs([2.0]), runs([3.0])), (runs([2.0, 2.1]), runs([3.0, 3.1]))):
        other = judge(base, head, "lower", level=0.05, min_effect=0.02)
        assert not other.is_within_run
        assert "steps" not in other.reason


def test_one_run_against_many_tells_of_steps_on_its_side_only() -> None:
    many = [110.0 + place for place in range(39)]
    for base, head in ((runs([100.0]), runs(many)), (runs(many), runs([100.0]))):
        found = judge(base, head, "none", level=0.05, min_effect=0.02)
        assert (found.verdict, found.is_within_run) == ("changed", True)
        assert found.reason.endswith(
            " Of one side the interval tells how steps of one run vary, not how runs do."
        )


@pytest.mark.parametrize("confidence", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("sizes", [(1, 3), (3, 4), (4, 2), (5, 3)])
def test_the_interval_of_all_resamples(sizes: tuple[int, int], confidence: float) -> None:
    generator = np.random.default_rng(sum(sizes))
    base, head = (generator.uniform(50, 100, size).round(2).tolist() for size in sizes)
    found = ratio_interval(runs(base), runs(head), confidence, resamples=40_000)
    assert found is not None
    ratios = [after / before for before in resampled(base) for after in resampled(head)]
    for value, share in zip(found, ((1 - confidence) / 2, (1 + confidence) / 2), strict=True):
        # The error of a share of 40,000 draws is 0.0025 at most.
        assert_quantile(value, share, ratios, 0.012)


@pytest.mark.parametrize("confidence", [0.3, 0.6, 0.9])
def test_steps_are_drawn_within_the_runs_that_are(confidence: float) -> None:
    """Two runs, of three and of four steps; the second counts as more than the median of its steps."""
    first, second = (80.0, 84.0, 91.0), (90.0, 99.0, 101.0, 107.0)
    head = [Replicate(84.0, first), Replicate(110.0, second)]
    found = ratio_interval(runs([100.0]), head, confidence, resamples=40_000)
    assert found is not None
    of_first = resampled(first)
    of_second = [10 + value for value in resampled(second)]
    # Each run is drawn half the time, whatever the number of its resamples.
    one_draw = [*np.repeat(of_first, len(of_second)), *np.repeat(of_second, len(of_first))]
    quantiles = np.quantile(one_draw, np.linspace(0.001, 0.999, 500))
    ratios = (quantiles[:, None] + quantiles[None, :]).ravel() / 200
    for value, share in zip(found, ((1 - confidence) / 2, (1 + confidence) / 2), strict=True):
        assert_quantile(value, share, ratios.tolist(), 0.04)


@pytest.mark.parametrize("sizes", [(3, 5), (4, 6), (3, 4), (1, 5)])
@pytest.mark.parametrize("steps_of", [(7, 7), (4, 0), (0, 9)])
def test_the_interval_of_a_nested_bootstrap(sizes: tuple[int, int], steps_of: tuple[int, int]) -> None:
    """Runs differ by as much as steps do, so that leaving out either would be seen."""
    generator = np.random.default_rng(sum(sizes))
    sides = []
    for size, count in zip(sizes, steps_of, strict=True):
        side = []
        for level in generator.normal(100, 4, size):
            steps = tuple((level + generator.normal(0, 6, count)).tolist())
            side.append(Replicate(statistics.median(steps) if steps else float(level), steps))
        sides.append(side)
    expected = nested_bootstrap(sides, 2000, generator)
    for confidence in (0.5, 0.8, 0.95):
        found = ratio_interval(*sides, confidence, resamples=20_000)
        assert found is not None
        for value, share in zip(found, ((1 - confidence) / 2, (1 + confidence) / 2), strict=True):
            # Four standard deviations of a share of 2,000 draws, and as many of the 570 draws a run at least.
            assert_quantile(value, share, expected, 4 * (share * (1 - share) * (1 / 2000 + 1 / 570)) ** 0.5)


def test_the_interval_follows_its_seed() -> None:
    generator = np.random.default_rng(1)
    base, head = ([Replicate(value) for value in generator.normal(100, 5, 9)] for _ in range(2))
    assert ratio_interval(base, head) == ratio_interval(base, head)
    assert ratio_interval(base, head, seed=1) == ratio_interval(base, head, seed=1)
    assert ratio_interval(base, head, seed=1) != ratio_interval(base, head, seed=2)


@given(
    st.lists(st.integers(10, 99), min_size=2, max_size=8),
    st.lists(st.integers(10, 99), min_size=2, max_size=8),
)
def test_the_interval_is_of_values_there_are(base: list[int], head: list[int]) -> None:
    found = ratio_interval(runs(base), runs(head))
    if found is None:
        assert len({*base}) == len({*head}) == 1
        return
    low, high = found
    assert min(head) / max(base) - 1e-9 <= low <= high <= max(head) / min(base) + 1e-9
    # Another unit changes nothing.
    assert ratio_interval(runs([4 * value for value in base]), runs([4 * value for value in head])) == found


def test_no_interval() -> None:
    assert ratio_interval([], runs(SIX)) is None
    assert ratio_interval(runs(SIX), []) is None
    assert ratio_interval(runs([5.0] * 4), runs([6.0] * 4)) is None
    assert ratio_interval(runs([0.0, 1.0, 2.0]), runs(SIX)) is None
    assert ratio_interval(runs([2.0]), [Replicate(3.0, (3.0,))]) is None


def test_noise_by_hand() -> None:
    """The pairs: 1.02, 1.05, 1.2, 105 / 102 = 1.029, 120 / 102 = 1.176, 120 / 105 = 1.143."""
    expected = (1.05 + 120 / 105) / 2 - 1
    assert noise_ratio([100.0, 105.0, 120.0, 102.0]) == pytest.approx(expected)
    assert noise_ratio([7.0, 7.0, 7.0]) == 0


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [0.0, 1.0, 2.0], [-1.0, 1.0, 2.0]])
def test_no_noise_is_known(values: list[float]) -> None:
    assert noise_ratio(values) is None


def test_one_outlier_is_no_noise() -> None:
    steady = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0]
    usual, with_outlier = noise_ratio(steady), noise_ratio([*steady, 900.0])
    assert usual is not None
    assert with_outlier is not None
    assert with_outlier < 1.7 * usual


def test_noise_of_many_runs_is_that_of_a_part_of_them() -> None:
    """Of normal values with deviation s, two are apart by 0.6745 * sqrt(2) * s at the median."""
    values = np.random.default_rng(0).normal(100, 1, 2000)
    assert noise_ratio(values.tolist()) == pytest.approx(0.01 * 0.6745 * 2**0.5, rel=0.1)
    # In whatever order they come.
    assert noise_ratio(sorted(values.tolist())) == noise_ratio(values.tolist())
