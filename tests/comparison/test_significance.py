"""Intervals against what is known of them: how often they leave out a difference that is not there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from nsysdiag.comparison.significance import (
    BootstrapMeans,
    block_length,
    drawn_means,
    drawn_medians,
    drift,
    interval,
    student,
)
from nsysdiag.comparison.waterfall import adding_up
from tests.levels import some

Values = npt.NDArray[np.float64]
PAIRS = 200


def independent(random: np.random.Generator) -> Values:
    return random.normal(100, 10, 30)


def skewed(random: np.random.Generator) -> Values:
    return 100 * random.lognormal(0, 0.5, 40)


def few(random: np.random.Generator) -> Values:
    return random.normal(100, 10, 6)


def every_eighth(random: np.random.Generator) -> Values:
    values = random.normal(100, 3, 40)
    values[random.integers(8) :: 8] += 60
    return values


def alike(random: np.random.Generator) -> Values:
    """Each is much like the one before."""
    values, steps = np.zeros(200), random.normal(0, 5, 200)
    for at in range(1, len(values)):
        values[at] = 0.6 * values[at - 1] + steps[at]
    return 100 + values


def side(values: Values, stream: int) -> BootstrapMeans:
    return drawn_means([values[:, None]], stream)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "most"),
    some([(independent, 0.08), (skewed, 0.08), (few, 0.08), (every_eighth, 0.05), (alike, 0.13)], 3, 1),
)
def test_how_often_nothing_looks_like_something(kind: Callable[[np.random.Generator], Values], most: float) -> None:
    """One in twenty by design; time series that are much alike exceed it somewhat."""
    wrong = 0
    for seed in range(PAIRS):
        random = np.random.default_rng(seed)
        found = interval(side(kind(random), 0), side(kind(random), 1))
        assert found is not None
        wrong += not found[0][0] <= 0 <= found[1][0]
    assert wrong <= most * PAIRS


def test_a_difference_is_inside_and_nothing_is_not() -> None:
    random = np.random.default_rng(1)
    found = interval(side(random.normal(100, 5, 50), 0), side(random.normal(120, 5, 50), 1))
    assert found is not None
    assert 15 < found[0][0] < 20 < found[1][0] < 25


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = interval(side(np.full(10, 7.0), 0), side(np.full(10, 9.0), 1))
    assert found is not None
    assert (found[0][0], found[1][0]) == (2.0, 2.0)


def test_the_same_draws_each_time() -> None:
    values = np.random.default_rng(0).normal(100, 10, 30)
    assert np.array_equal(side(values, 0).draws, side(values, 0).draws)
    assert not np.array_equal(side(values, 0).draws, side(values, 1).draws)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_too_few_tell_nothing(count: int) -> None:
    values = np.arange(count, dtype=np.float64)
    assert interval(side(values, 0), side(np.arange(20.0), 1)) is None


def test_very_many_are_added_up_and_tell_the_same() -> None:
    values = np.random.default_rng(2).normal(100, 10, 10_000)
    assert side(values, 0).deviation[0] == pytest.approx(10 / 10_000**0.5, rel=0.2)


def test_captures_that_differ_widen_the_interval() -> None:
    """Runs that differ by 10% from each other: what is constant inside each says nothing."""
    captures = [np.full((20, 1), level) for level in (90.0, 100.0, 110.0)]
    same = interval(drawn_means(captures, 0), drawn_means(captures, 1))
    assert same is not None
    assert same[0][0] < -10
    assert same[1][0] > 10


def test_longer_blocks_for_what_is_alike() -> None:
    random = np.random.default_rng(3)
    assert block_length(independent(random)) == 4  # the cube root of 30
    assert block_length(alike(random)) > block_length(random.normal(100, 1, 200)) == 6


def test_drift_is_what_exceeds_chance() -> None:
    random = np.random.default_rng(4)
    steady = random.normal(100, 5, 40)[:, None]
    rising = steady + np.linspace(0, 40, 40)[:, None]
    assert drift([steady], drawn_means([steady], 0)) == 0.0
    assert 0.02 < drift([rising], drawn_means([rising], 0)) < 0.2


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (8, 2.306), (30, 2.042), (1000, 1.962)]
)
def test_student(freedom: int, expected: float) -> None:
    assert student(freedom) == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(
    ("freedom", "level", "expected"),
    [(1, 0.01, 63.657), (2, 0.01, 9.925), (5, 0.01, 4.032), (5, 0.001, 6.869), (30, 0.001, 3.646), (1.5, 0.05, 6.017)],
)
def test_student_further_out(freedom: float, level: float, expected: float) -> None:
    assert student(freedom, level) == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize(
    ("values", "total", "expected"),
    [([1.4, 2.4, 3.2], 7, [2, 2, 3]), ([0.5, 0.5], 1, [1, 0]), ([], 0, []), ([2.0, 3.0], 5, [2, 3]), ([1.0], 9, [9])],
)
def test_whole_numbers_add_up(values: list[float], total: int, expected: list[int]) -> None:
    assert adding_up(np.array(values), total) == expected


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize(("kind", "most"), [(independent, 0.08), (skewed, 0.08), (every_eighth, 0.08)])
def test_medians_are_wrong_as_rarely(kind: Callable[[np.random.Generator], Values], most: float) -> None:
    wrong = 0
    for seed in range(PAIRS):
        random = np.random.default_rng(seed)
        found = interval(*(drawn_medians([kind(random)[:, None]], stream) for stream in (0, 1)))
        assert found is not None
        wrong += not found[0][0] <= 0 <= found[1][0]
    assert wrong <= most * PAIRS


def test_a_median_hardly_moves_with_slow_entries() -> None:
    plain = np.random.default_rng(0).normal(100, 2, 50)
    slow = plain.copy()
    slow[::10] += 5_000
    one, two = (drawn_medians([each[:, None]], 0) for each in (plain, slow))
    assert abs(two.mean[0] - one.mean[0]) < 1
    assert two.deviation[0] < 3
    several = drawn_medians([plain[:25, None], slow[25:, None]], 0)
    assert several.blocks == 2
    assert several.mean[0] == np.median(np.concatenate([plain[:25], slow[25:]]))


@pytest.mark.thorough
def test_the_median_of_very_many_entries_has_fewer_draws() -> None:
    many = drawn_medians([np.arange(9_000.0)[:, None]], 0)
    assert many.draws.shape[0] < 2000
    assert many.mean[0] == 4499.5
