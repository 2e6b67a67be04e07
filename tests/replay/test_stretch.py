"""How much of the judged time is replayed."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.replay.stretch import MOST_AT_ALL, MOST_OPERATIONS, Stretch, stretch_of

MS = 1_000_000


def chosen(operations: int, steps: int, most: int) -> Stretch | str:
    """Of a time of so many operations in so many steps of 1 ms, or of one without steps."""
    end = max(steps, 1) * MS
    starts = np.arange(operations, dtype=np.int64) * end // operations
    borders = np.arange(steps + 1, dtype=np.int64) * MS if steps else None
    return stretch_of(Intervals.of([(0, end)]), borders, starts, most)


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


def test_a_window_without_steps_is_replayed_whole_or_not_at_all() -> None:
    found = chosen(400_000, 0, MOST_AT_ALL)
    assert isinstance(found, Stretch)
    assert (found.stepwise, found.begin, found.end) == (False, 0, MS)
    assert "too many to replay" in str(chosen(400_000, 0, MOST_OPERATIONS))
