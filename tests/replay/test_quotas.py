"""Stops that end at multiples of one time: the share of the CPUs of a container is used up in each period."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.replay.quotas import in_periods

MS = 1_000_000


def test_stops_end_with_periods_in_which_the_share_is_used_up() -> None:
    """In some periods it is not, and threads take a little to go on."""
    chance = np.random.default_rng(3)
    number = np.flatnonzero(chance.random(60) < 0.5)
    assert in_periods(100 * MS * number + chance.integers(0, 40_000, len(number)))


def test_no_two_periods_in_a_row_may_have_a_stop() -> None:
    """Work that waits for a device between is stopped in each second or third period."""
    apart = np.array([2, 3, 3, 2, 3, 2, 3, 3, 3, 3, 3, 2, 3, 3, 3], np.int64)
    assert in_periods(400_000 * np.append(0, np.cumsum(apart)))


@pytest.mark.parametrize("spread", [0.03, 0.1, 0.4])
def test_steps_drift(spread: float) -> None:
    chance = np.random.default_rng(3)
    every = (np.cumsum(chance.normal(1, spread, 40).clip(0.1)) * 100 * MS for _ in range(40))
    assert sum(in_periods(end.astype(np.int64)) for end in every) <= 1


def test_few_times_are_at_multiples_by_chance() -> None:
    assert not in_periods(np.arange(8, dtype=np.int64) * 100 * MS)
    assert not in_periods(np.zeros(20, dtype=np.int64))
