"""Stretches of regular starts, among starts at random times, of several names at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.iterations.by_anchor import stretches


def starts(*distances: list[int]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Starts of one name each, at these distances, sorted by name."""
    every = [np.append(0, np.cumsum(mine)) for mine in distances]
    names = np.repeat(np.arange(len(every)), [len(mine) for mine in every])
    return np.concatenate(every).astype(np.int64), names


@given(st.integers(6, 60), st.integers(10, 10**6), st.integers(2, 30), st.integers(3, 50), st.integers(0, 2**31))
def test_one_among_irregular_ones(count: int, length: int, period: int, longer: int, seed: int) -> None:
    """Slow distances hide no stretch, whatever stands before it and whatever other names do. A slow one at the end is
    no part of it: of six starts five are left."""
    chance = np.random.default_rng(seed)
    other = (chance.exponential(length, 30)).astype(int) + 1
    mine = [length * longer if (number + 1) % period == 0 else length for number in range(count - 1)]
    start, name = starts(other.tolist(), [length * 20, *mine], other[::-1].tolist())
    found = stretches(start, name, 5, 0.0)
    at = np.flatnonzero((found.name == 1) & (found.median == length))
    usual = mine.count(length)
    if period > 3 or (period == 3 and count > 10):
        assert len(at) == 1
        assert found.explained[at[0]] == usual * length
        assert found.count[at[0]] <= count
        assert start[found.first[at[0]]] == 20 * length


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=0, max_size=40), min_size=1, max_size=6), st.integers(2, 6))
def test_they_are_of_one_name_and_never_share_a_distance(distances: list[list[int]], fewest: int) -> None:
    start, name = starts(*distances)
    found = stretches(start, name, fewest, 0.0)
    used = np.zeros(len(start), dtype=np.int64)
    for at in range(len(found)):
        rows = np.arange(found.first[at], found.first[at] + found.count[at])
        assert found.count[at] >= fewest
        assert (name[rows] == found.name[at]).all()
        length = np.diff(start[rows])
        usual = (2 * length >= found.median[at]) & (length <= 2 * found.median[at])
        assert 2 * np.count_nonzero(usual) >= len(length) - 1
        assert found.deviation[at] >= 0
        assert found.explained[at] <= start[rows[-1]] - start[rows[0]]
        used[rows[:-1]] += 1
    assert used.max(initial=0) <= len(distances) * 4


def test_two_levels_of_one_name() -> None:
    start, name = starts([3_500] * 50 + [90_000] + [1_050] * 50)
    found = stretches(start, name, 5, 0.0)
    rows = sorted(zip(found.first.tolist(), found.count.tolist(), found.median.tolist(), strict=True))
    assert rows == [(0, 51, 3_500), (51, 51, 1_050)]


@pytest.mark.parametrize("seed", range(5))
def test_long_arrivals_at_random_times_have_none_of_note(seed: int) -> None:
    """Exponential distances: chance makes short runs of like ones, none of a tenth of the time."""
    chance = np.random.default_rng(seed)
    start, name = starts((chance.exponential(1e6, 2_000)).astype(int).tolist())
    found = stretches(start, name, 5, 0.1 * float(start[-1]))
    assert len(found) == 0
