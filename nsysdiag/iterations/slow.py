"""Slow iterations: which they are, what all of them cost, and at which distance they come."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.iterations.loop import FEWEST

SPREADS = 3
LEAST_SPREAD = 0.05
LEAST_MULTIPLES, LEAST_EQUAL = 0.8, 0.5
FEWEST_SLOW = 3


class SlowOnes(Struct, frozen=True):
    """The slow steady iterations, longest first, with the time by which all of them exceed the median; `period` is
    their distance in iterations, None if irregular."""

    index: IntArray
    extra_ns: int
    period: int | None


def median_of(values: IntArray) -> int:
    """The lower median: where every second iteration is slow, the length of the others."""
    middle = (len(values) - 1) // 2
    return int(np.partition(values, middle)[middle])


def spread_of(values: IntArray, middle: int) -> int:
    """The lower median of the deviations from `middle`."""
    return median_of(np.abs(values - middle))


def slow_ones(length: IntArray, steady: BoolArray) -> SlowOnes:
    """Steady iterations longer than the median by three times the usual deviation and 5%; none of a few."""
    inside = np.flatnonzero(steady)
    if len(inside) < FEWEST:
        return SlowOnes(inside[:0], 0, None)
    median = median_of(length[inside])
    limit = median + max(SPREADS * spread_of(length[inside], median), LEAST_SPREAD * median)
    slow = inside[length[inside] > limit]
    extra = int((length[slow] - median).sum())
    return SlowOnes(slow[np.argsort(-length[slow], kind="stable")], extra, slow_period(slow, len(length)))


def slow_period(slow: IntArray, count: int) -> int | None:
    """The number of iterations from one slow one to the next, if most of the distances are that or a multiple of it.
    Others may be slow for another reason, and some may not be slow. `slow` are indices among `count` iterations, in
    order; consecutive slow ones count as one.

    ```
    ....S....S....S....S....      every 5th
    ....S....S.........S.S..      every 5th: one is missing, one is of another kind
    .S.S....S.......S..S....      None
    ```
    """
    first = slow[np.diff(slow, prepend=-2) > 1]
    if len(first) < FEWEST_SLOW:
        return None
    distance = np.diff(first)
    values, times = np.unique(distance, return_counts=True)
    period = int(values[np.argmax(times)])
    regular = float((distance == period).mean()) >= LEAST_EQUAL
    multiples = float((distance % period == 0).mean()) >= LEAST_MULTIPLES
    few = len(distance) < FEWEST_SLOW and (distance != period).any()
    reaches = int(first[-1] - first[0]) + 2 * period >= count // 2
    return period if regular and multiples and reaches and not few else None
