"""Slow iterations: which they are, and the distance at which they come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.groups import median_of
from nsysdiag.iterations.loop import slow_ones, slow_period
from nsysdiag.units import every_nth


@pytest.mark.parametrize(
    ("slow", "count", "period"),
    [
        ([4, 9, 14, 19], 25, 5),
        ([4, 9, 19, 24, 34, 39], 45, 5),  # some are missing
        ([4, 9, 14, 16, 19, 24, 29, 34, 39, 44, 49], 55, 5),  # an odd one breaks two of ten distances
        ([24, 49, 74], 100, 25),
        ([4, 5, 14, 15, 24, 25, 34, 35], 40, 10),  # a slow one and what it does to the next
        ([1, 3, 10, 18, 21, 30], 40, None),
        ([3, 4, 5, 6, 7], 40, None),  # in a row: once
        ([10, 20], 40, None),
        ([10, 20, 33], 40, None),
        ([10, 12, 14], 400, None),  # close together, and then never again
        ([], 40, None),
    ],
)
def test_the_distance(slow: list[int], count: int, period: int | None) -> None:
    assert slow_period(np.array(slow, dtype=np.int64), count) == period


@given(st.integers(2, 30), st.integers(4, 12), st.integers(0, 29))
def test_every_period_is_found(period: int, times: int, first: int) -> None:
    slow = first % period + period * np.arange(times)
    assert slow_period(slow, period * times) == period


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40))
def test_the_lower_median_is_one_of_the_values(values: list[int]) -> None:
    middle = median_of(np.array(values, dtype=np.int64))
    assert middle == sorted(values)[(len(values) - 1) // 2]


@given(st.lists(st.integers(1, 10**9), min_size=5, max_size=60), st.data())
def test_all_slow_ones_are_longer_and_their_sum_is_that_of_all(values: list[int], data: st.DataObject) -> None:
    length = np.array(values, dtype=np.int64)
    steady = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    steady[0] = True
    found = slow_ones(length, steady)
    median = median_of(length[steady])
    assert steady[found.index].all()
    assert found.extra.tolist() == [values[at] - median for at in found.index.tolist()]
    assert (np.diff(length[found.index]) <= 0).all()
    assert (length[found.index] > 1.05 * median).all()
    assert 2 * len(found.index) <= np.count_nonzero(steady)


@pytest.mark.parametrize(
    ("period", "words"),
    [
        (2, "every 2nd"),
        (3, "every 3rd"),
        (10, "every 10th"),
        (11, "every 11th"),
        (21, "every 21st"),
        (113, "every 113th"),
    ],
)
def test_words(period: int, words: str) -> None:
    assert every_nth(period) == words
