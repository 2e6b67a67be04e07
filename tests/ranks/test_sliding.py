"""Rows of collectives moved along each other: only where one place fits far better than all others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.ranks.matching import MOST_MOVES, move_of

MS = 1_000_000
# Uneven steps, as real ones are.
ENDS = np.cumsum(np.array([7, 11, 9, 30, 8, 12, 10, 9, 25, 11, 8, 14, 10, 9, 18], dtype=np.int64)) * MS


@pytest.mark.parametrize("move", [0, 1, 3, 5])
def test_a_row_that_began_earlier(move: int) -> None:
    """
    first        [1)  [2)    [3) ...
    other   [0)  [1)  [2)    [3) ...      on a clock that is 400 ms ahead
    """
    assert move_of(ENDS[move:], ENDS + 400 * MS) == move
    assert move_of(ENDS + 400 * MS, ENDS[move:]) == -move


def test_as_many_on_both_but_not_the_same_ones() -> None:
    """
    first        [1)  [2)    [3) [4)
    other   [0)  [1)  [2)    [3)
    """
    assert move_of(ENDS[1:], ENDS[:-1]) == 1


def test_noise_moves_nothing() -> None:
    noise = np.array([0, 300, -200, 500, -700, 100, 0, 200, -300, 400, 0, -100, 600, 0, 100]) * 1_000
    assert move_of(ENDS, ENDS + noise) == 0


def test_even_steps_fit_everywhere() -> None:
    even = np.arange(20, dtype=np.int64) * 10 * MS
    assert move_of(even[1:], even) is None
    assert move_of(even, even + 3 * MS) == 0


def test_too_few_tell_nothing() -> None:
    assert move_of(ENDS[1:8], ENDS[:8]) is None
    assert move_of(ENDS[1:9], ENDS[:9]) == 1


def test_too_far_away_is_not_found() -> None:
    generator = np.random.default_rng(1)
    ends = np.cumsum(generator.integers(5 * MS, 20 * MS, 3 * MOST_MOVES))
    assert move_of(ends[MOST_MOVES:], ends) == MOST_MOVES
    assert move_of(ends[MOST_MOVES + 1 :], ends) is None


@given(
    st.lists(st.integers(1, 10**12), min_size=1, max_size=30), st.lists(st.integers(1, 10**12), min_size=1, max_size=30)
)
def test_unlike_rows_are_never_moved_out_of_sight(first: list[int], other: list[int]) -> None:
    rows = [np.array(sorted(row), dtype=np.int64) for row in (first, other)]
    move = move_of(*rows)
    if move is not None:
        low, high = max(0, -move), min(len(first), len(other) - move)
        assert high - low >= min(len(first), len(other)) // 2
