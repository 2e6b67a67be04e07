"""What keeps a beat, whatever is done before it, and what ends at the next of equal distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nsysdiag.arrays.intervals import FloatArray, IntArray
from nsysdiag.replay.pacing import FEWEST_BEATS, keeps_beat, on_grid

MS, US, STEPS = 1_000_000, 1_000, 60
Loop = tuple[FloatArray, FloatArray]
"""In ns, of each step: the work before, and the stretch of host code behind it."""


def some(chance: np.random.Generator, mean: int, deviation: int, count: int = STEPS) -> FloatArray:
    """Random lengths in ns."""
    found: FloatArray = np.abs(chance.normal(mean, deviation, count))
    return found


def of_loop(loop: Loop) -> tuple[IntArray, IntArray]:
    """When the stretches begin and end."""
    work, length = loop
    end = np.cumsum(work + length).astype(np.int64)
    return end - length.astype(np.int64), end


def spins(chance: np.random.Generator) -> Loop:
    """Each stretch spins until a time, and prepares behind it."""
    work, prepares = some(chance, 700 * US, 100 * US), some(chance, 500 * US, 80 * US)
    return work, 3 * MS + prepares - np.roll(prepares, 1) - work


def steady(chance: np.random.Generator) -> Loop:
    """Work of about one length, as that before it."""
    return some(chance, 700 * US, 100 * US), some(chance, 2 * MS, 100 * US)


def in_turns(chance: np.random.Generator) -> Loop:
    """A long stretch follows short work, and a short one long work."""
    odd = np.arange(STEPS) % 2
    return some(chance, 500 * US, 40 * US) * (2 - odd), some(chance, 500 * US, 40 * US) * (1 + 2 * odd)


def now_and_then(chance: np.random.Generator) -> Loop:
    """Every eighth stretch is long."""
    eighth = np.arange(STEPS) % 8 == 0
    return some(chance, 500 * US, 40 * US), some(chance, 500 * US, 40 * US) * (1 + 5 * eighth)


def device_keeps_it(chance: np.random.Generator) -> Loop:
    """The device takes as long each time, and the thread waits for it: its own work is in nobody's way."""
    length = some(chance, 500 * US, 80 * US)
    return 2 * MS - np.roll(length, 1), length


@pytest.mark.parametrize(
    ("loop", "expected"),
    [(spins, 1), (steady, 0), (in_turns, 0), (now_and_then, 0), (device_keeps_it, 0)],
)
def test_spins_that_are_joined_with_work_are_told_from_work(
    loop: Callable[[np.random.Generator], Loop], expected: int
) -> None:
    found = [keeps_beat(*of_loop(loop(np.random.default_rng(seed)))) for seed in range(200)]
    assert np.mean(found) == pytest.approx(expected, abs=0.02)


def test_a_few_steps_keep_no_beat() -> None:
    begin, end = of_loop(spins(np.random.default_rng(0)))
    assert keeps_beat(begin[:FEWEST_BEATS], end[:FEWEST_BEATS])
    assert not keeps_beat(begin[: FEWEST_BEATS - 1], end[: FEWEST_BEATS - 1])


def test_steps_that_span_different_numbers_of_pictures_are_on_a_grid() -> None:
    cells = np.random.default_rng(0).choice((2, 2, 2, 3), STEPS)
    late = np.random.default_rng(1).integers(0, 50 * US, STEPS)
    assert on_grid(np.cumsum(cells * 1_000 * US) + late)
    assert not on_grid(np.cumsum(np.full(STEPS, 2 * MS)) + late), "as many in each step"
    chance = np.random.default_rng(2).integers(1_000 * US, 3_000 * US, (100, STEPS))
    assert not any(on_grid(np.cumsum(each)) for each in chance)
