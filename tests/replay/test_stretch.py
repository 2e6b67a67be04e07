"""Which part of the judged time is replayed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.replay.work import (
    FEWEST_STEPS,
    MANY_OPERATIONS,
    MOST_AT_ALL,
    MOST_OPERATIONS,
    MOST_STEPS,
    Stretch,
    stretch_of,
)

PARTS = Intervals.of([(0, 10_000)])


def evenly(steps: int, each: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Borders of steps, 50 ns apart, and the starts of `each` operations in every one."""
    borders = 50 * np.arange(steps + 1)
    return borders, np.sort(np.concatenate([borders[:-1] + at for at in range(each)]))


@given(st.integers(0, 600), st.integers(1, 50), st.integers(1, 8_000))
def test_whole_steps_from_the_middle(steps: int, each: int, most: int) -> None:
    borders, starts = evenly(steps, each)
    found = stretch_of(Intervals.of([(0, 50 * 600)]), borders, starts, most)
    if isinstance(found, str):
        assert len(starts) == 0 or len(starts) > most
        return
    count = len(found.borders) - 1
    inside = np.count_nonzero((starts >= found.begin) & (starts < found.end))
    assert 0 < inside <= most
    if not found.stepwise:
        assert steps < FEWEST_STEPS
        return
    most_steps = max(MOST_STEPS, MANY_OPERATIONS // each)
    assert count == min(steps, most_steps, max(most // each, FEWEST_STEPS))
    before, behind = np.count_nonzero(borders < found.begin), np.count_nonzero(borders > found.end)
    assert behind - before in (0, 1)
    assert set(found.borders) <= set(borders)


def test_three_steps_that_are_too_large() -> None:
    borders, starts = evenly(10)
    assert stretch_of(PARTS, borders, starts, 29) == "3 steps hold more than 29 operations, too many to replay"


def test_a_window_that_is_too_large() -> None:
    found = stretch_of(PARTS, None, np.arange(50), 49)
    assert found == "the judged time holds 50 operations and no steps, too many to replay"


def test_steps_outside_the_judged_time_do_not_count() -> None:
    borders, starts = evenly(20)
    found = stretch_of(Intervals.of([(100, 300)]), borders, starts)
    assert isinstance(found, Stretch)
    assert (found.begin, found.end) == (100, 300)


@pytest.mark.parametrize(
    ("parts", "steps"),
    [(Intervals.empty(), None), (PARTS, None), (PARTS, np.arange(5)), (PARTS, np.arange(2))],
    ids=["no time", "no operations", "empty steps", "few steps"],
)
def test_nothing_to_replay(parts: Intervals, steps: np.ndarray | None) -> None:
    found = stretch_of(parts, steps, np.array([20_000]))
    assert isinstance(found, str)
    assert found.startswith("no GPU work was recorded")


def test_steps_of_which_the_middle_ones_are_empty() -> None:
    """Operations in the first and the last steps only."""
    steps = 3 * MANY_OPERATIONS
    borders = np.arange(steps + 1)
    starts = np.concatenate((np.arange(50), steps - 50 + np.arange(50)))
    assert isinstance(stretch_of(Intervals.of([(0, steps)]), borders, starts), str)


MS = 1_000_000


def chosen(operations: int, steps: int, most: int) -> Stretch | str:
    """Of a time of so many operations in so many steps of 1 ms, or of one without steps."""
    end = max(steps, 1) * MS
    starts = np.arange(operations, dtype=np.int64) * end // operations
    borders = np.arange(steps + 1, dtype=np.int64) * MS if steps else None
    return stretch_of(Intervals.of([(0, end)]), borders, starts, min(most, MOST_OPERATIONS), most)


@pytest.mark.parametrize(
    ("operations", "steps", "most", "replayed"),
    [
        (4_000, 40, MOST_OPERATIONS, 40),
        (40_000, 400, MOST_OPERATIONS, 100),  # no more than 100 steps
        (400_000, 40, MOST_OPERATIONS, 10),  # as many as fit
        (400_000, 40, MOST_AT_ALL, 10),  # more would say nothing new
        (400_000, 8, MOST_AT_ALL, 3),  # the fewest that say anything
    ],
)
def test_steps_from_the_middle(operations: int, steps: int, most: int, replayed: int) -> None:
    found = chosen(operations, steps, most)
    assert isinstance(found, Stretch)
    assert found.stepwise
    assert len(found.borders) - 1 == replayed
    assert found.begin // MS == (steps - replayed) // 2


def test_three_steps_may_be_too_many() -> None:
    assert chosen(400_000, 8, MOST_OPERATIONS) == "3 steps hold more than 100,000 operations, too many to replay"
    assert isinstance(chosen(4_000_000, 8, MOST_AT_ALL), str)


@pytest.mark.parametrize("steps", [0, 3])
def test_what_has_to_be_replayed_may_be_more_than_is_wanted(steps: int) -> None:
    """A window, or three steps; of shorter steps as many are replayed as are wanted."""
    starts, borders = np.arange(3_000, dtype=np.int64), np.arange(0, 3_001, 1_000)
    asked = [(2_900, 0), (2_900, 2_999), (2_900, 3_000), (3_000, 0)]
    parts = Intervals.of([(0, 3_000)])
    found = [stretch_of(parts, borders if steps else None, starts, *each) for each in asked]
    assert [isinstance(each, Stretch) for each in found] == [False, False, True, True]
    shorter = stretch_of(parts, np.arange(0, 3_001, 100), starts, 500, 3_000)
    assert isinstance(shorter, Stretch)
    assert shorter.count == 5


def test_a_window_without_steps_is_replayed_whole_or_not_at_all() -> None:
    found = chosen(400_000, 0, MOST_AT_ALL)
    assert isinstance(found, Stretch)
    assert (found.stepwise, found.begin, found.end) == (False, 0, MS)
    assert "too many to replay" in str(chosen(400_000, 0, MOST_OPERATIONS))
