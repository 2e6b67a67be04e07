"""The slow truth about intervals: paint every nanosecond, then read the picture off."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import BoolArray, Intervals

LO, HI = -32, 32
Pairs = list[tuple[int, int]]


def pairs(intervals: Intervals) -> Pairs:
    """Intervals as plain (start, end) pairs, to compare and to read."""
    return list(zip(intervals.start.tolist(), intervals.end.tolist(), strict=True))


def paint(intervals: Iterable[tuple[int, int]]) -> BoolArray:
    """One cell for each nanosecond of [LO, HI): True where any interval covers it."""
    cells = np.zeros(HI - LO, np.bool_)
    for start, end in intervals:
        for time in range(max(start, LO), min(end, HI)):
            cells[time - LO] = True
    return cells


def runs(cells: BoolArray) -> Pairs:
    """The maximal runs of painted cells as (start, end) pairs."""
    found: Pairs = []
    begun: int | None = None
    for time, painted in enumerate([*cells.tolist(), False], start=LO):
        if painted and begun is None:
            begun = time
        elif not painted and begun is not None:
            found.append((begun, time))
            begun = None
    return found


def stack_depths(intervals: Pairs) -> list[int]:
    """The depth of each interval by keeping a stack, as a profiler would."""
    depths = [0] * len(intervals)
    stack: list[int] = []
    order = sorted(range(len(intervals)), key=lambda i: (intervals[i][0], -intervals[i][1], i))
    for index in order:
        while stack and intervals[stack[-1]][1] <= intervals[index][0]:
            stack.pop()
        depths[index] = len(stack)
        stack.append(index)
    return depths


# Strategies: any pairs (reversed and empty ones too), pairs that run forward, and sets.
times = st.integers(LO, HI)
any_pairs = st.lists(st.tuples(times, times), max_size=12)
forward_pairs = st.lists(st.tuples(times, times).map(lambda pair: (min(pair), max(pair))), max_size=12)
any_intervals = any_pairs.map(Intervals.of)
sets = any_pairs.map(paint).map(runs).map(Intervals.of)
