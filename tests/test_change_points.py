"""Change points against all segmentations of short series, and numbers worked by hand."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracewh.sql.change_points import Segment, _distances, change_points, lookback_z, segments

SHORT = st.lists(st.integers(0, 9), min_size=1, max_size=9)
UP_AND_DOWN = [10.0, 12.0, 10.0, 12.0, 10.0, 12.0]


def cost(values: Sequence[float], starts: Sequence[int], penalty: float) -> float:
    parts = [values[start:end] for start, end in pairwise([0, *starts, len(values)])]
    return penalty * len(starts) + sum(
        abs(value - statistics.median(part)) for part in parts for value in part
    )


def all_starts(count: int, min_segment: int) -> Iterator[tuple[int, ...]]:
    """Of all segmentations without segments that are too short; a short series has one segment."""
    for changes in range(count):
        for starts in combinations(range(1, count), changes):
            if not starts or all(end - start >= min_segment for start, end in pairwise([0, *starts, count])):
                yield starts


@given(SHORT, st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0, 3.0, 8.0]))
def test_no_segmentation_is_cheaper(values: list[int], min_segment: int, penalty: float) -> None:
    found = change_points(values, min_segment=min_segment, penalty=penalty)
    candidates = list(all_starts(len(values), min_segment))
    assert tuple(found) in candidates
    assert cost(values, found, penalty) == pytest.approx(
        min(cost(values, starts, penalty) for starts in candidates)
    )


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40))
def test_distances_from_medians(values: list[int]) -> None:
    for end in range(1, len(values) + 1):
        expected = [
            (start, sum(abs(value - statistics.median(values[start:end])) for value in values[start:end]))
            for start in reversed(range(end))
        ]
        assert list(_distances(values, end)) == expected


@given(SHORT, st.integers(1, 3), st.sampled_from([0.5, 1.0, 3.0, 8.0]), st.integers(-1000, 1000))
def test_other_zeros_and_directions(values: list[int], min_segment: int, penalty: float, shift: int) -> None:
    """Numbers of binary fractions are exact, so that of equally good segmentations the same one is found."""
    found = change_points(values, min_segment=min_segment, penalty=penalty)
    shifted = [value + shift for value in values]
    assert change_points(shifted, min_segment=min_segment, penalty=penalty) == found
    mirrored = [-value for value in values]
    assert change_points(mirrored, min_segment=min_segment, penalty=penalty) == found
    backwards = values[::-1]
    found_backwards = change_points(backwards, min_segment=min_segment, penalty=penalty)
    assert cost(backwards, found_backwards, penalty) == cost(values, found, penalty)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=12), st.integers(1, 4))
def test_segments_are_all_of_the_series(values: list[int], min_segment: int) -> None:
    found = segments(values, min_segment=min_segment, penalty=0.5)
    assert [part.start for part in found] == [0, *(part.end for part in found[:-1])]
    assert found[-1].end == len(values)
    assert len(found) == 1 or all(part.end - part.start >= min_segment for part in found)
    for part in found:
        members = values[part.start : part.end]
        assert part.median == statistics.median(members)
        assert part.spread == pytest.approx(statistics.fmean(abs(value - part.median) for value in members))


def test_what_a_change_costs_by_hand() -> None:
    """One level of 0 0 0 0 6 6 6 6 costs 4 * 6; two cost nothing but one change."""
    values = [0.0] * 4 + [6.0] * 4
    assert change_points(values, penalty=23.5) == [4]
    assert change_points(values, penalty=24.5) == []
    # Three values more on the right: 4 * 6 against the changes.
    assert change_points([*values, 6.0, 6.0, 6.0], penalty=23.5) == [4]
    assert change_points([*values, 6.0, 6.0, 6.0], penalty=24.5) == []
    # Two changes have to save 12 each or more.
    assert change_points([*([0.0] * 4), 6.0, 6.0, *([0.0] * 4)], penalty=5.5) == [4, 6]
    assert change_points([*([0.0] * 4), 6.0, 6.0, *([0.0] * 4)], penalty=6.5) == []


def test_a_step_is_found_where_it_is() -> None:
    values = [*UP_AND_DOWN, *(value + 40 for value in UP_AND_DOWN)]
    assert segments(values) == [Segment(0, 6, 11.0, 1.0), Segment(6, 12, 51.0, 1.0)]
    assert change_points(values) == [6]
    assert change_points([*values, *UP_AND_DOWN]) == [6, 12]


def test_a_step_of_two_is_one_and_an_outlier_is_none() -> None:
    assert change_points([*UP_AND_DOWN, 90.0, *UP_AND_DOWN]) == []
    assert change_points([*UP_AND_DOWN, 90.0]) == []
    assert change_points([*UP_AND_DOWN, 90.0, 91.0]) == [6]
    assert change_points([*UP_AND_DOWN, 90.0, 91.0, *UP_AND_DOWN]) == [6, 8]


def test_exact_numbers_change_however_little() -> None:
    flops = [7e15] * 5 + [7e15 * (1 + 1e-6)] * 3
    assert change_points(flops) == [5]
    assert change_points([7e15] * 8) == []
    # What floating point does to equal numbers is no change.
    assert change_points([0.1 + 0.2] * 4 + [0.3] * 4) == []


def test_short_series() -> None:
    assert segments([]) == []
    assert segments([3.0]) == [Segment(0, 1, 3.0, 0.0)]
    assert segments([3.0, 9.0]) == [Segment(0, 2, 6.0, 3.0)]
    assert change_points([3.0, 3.0, 9.0, 9.0]) == [2]
    assert change_points([0.0] * 6) == []


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.sampled_from([0.25, 1024.0]))
def test_units_do_not_matter(values: list[int], factor: float) -> None:
    assert change_points([factor * value for value in values]) == change_points(values)


@pytest.mark.parametrize("count", [5, 8, 10, 20, 40])
def test_noise_seldom_changes(count: int) -> None:
    generator = np.random.default_rng(count)
    draws = (generator.normal, generator.laplace)
    found = [bool(change_points((100 + draw(size=count)).tolist())) for draw in draws for _ in range(250)]
    # Of 500 series 25 at the rate of one in twenty, with a standard deviation of 5.
    assert sum(found) <= 35


@pytest.mark.parametrize(("before", "after"), [(6, 2), (10, 10), (30, 5)])
def test_a_step_above_the_noise_is_seldom_missed(before: int, after: int) -> None:
    generator = np.random.default_rng(before)
    found = []
    for _ in range(200):
        values = generator.normal(100, 1, before + after)
        values[before:] += 8
        found.append(change_points(values.tolist()))
    assert sum(starts == [before] for starts in found) >= 180


def test_the_newest_value_by_hand() -> None:
    """The four before it are 1 from their median 11 each: the variance is 4 / 3."""
    assert lookback_z([*UP_AND_DOWN[:4], 20.0]) == pytest.approx(9 / (4 / 3) ** 0.5)
    assert lookback_z([*UP_AND_DOWN[:4], 8.0]) == pytest.approx(-3 / (4 / 3) ** 0.5)


def test_an_earlier_change_is_no_noise() -> None:
    """Twelve values, each 1 from the median of its segment, and two medians: 12 / 10."""
    values = [*UP_AND_DOWN, *(value + 40 for value in UP_AND_DOWN)]
    assert lookback_z([*values, 53.0]) == pytest.approx(2 / 1.2**0.5)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0],
        [5.0, 5.0, 5.0, 6.0],
        # The first is greater by 5e-17: that is no deviation.
        [0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2, 0.3000001],
    ],
)
def test_too_little_to_tell_the_newest_value(values: list[float]) -> None:
    assert lookback_z(values) is None
