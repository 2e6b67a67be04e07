"""Samples of a GPU metric: when each one's time began and ended, and what was measured in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.timeline.intervals import FloatArray, IntArray, Intervals

HOLE = 2
"""After more than so many periods without a sample nothing is known of the time before the next one's own period."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The time of each sample: a value is the average over the sampling interval that ends at its timestamp.

    ```
    timestamps     t0    t1    t2                t3    t4
    samples    [---)[----)[----)           [-----)[----)
                0     1     2       hole      3     4
    ```

    `start` and `end` rise, and no two samples overlap. `period_ns` is the median step; the first sample, and one after
    a hole, stand for one period.
    """

    start: IntArray
    end: IntArray
    period_ns: int

    @property
    def spans(self) -> Intervals:
        """The time of each sample."""
        return Intervals(self.start, self.end)

    @classmethod
    def of(cls, times: IntArray) -> Grid | None:
        """The grid of rising timestamps; None for fewer than two, which tell no period."""
        if len(times) < 2:
            return None
        steps = np.diff(times)
        period = int(np.median(steps))
        length = np.append(np.int64(period), np.where(steps > HOLE * period, period, steps))
        return cls(times - length, times, period)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A metric of one GPU: `value` has an element for each sample of `grid`, NaN where there is no valid one.

    `names` are those of the trace. `left_out` counts values that are none: NULL, out of range, or a second row of the
    same moment; `capped` those a little over a full share, which count as full.
    """

    metric: str
    names: tuple[str, ...]
    grid: Grid
    value: FloatArray
    left_out: int
    capped: int


LATEST = 1 << 60
"""No session lasts 36 years; what is later would not survive being multiplied."""


def in_order(times: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray, int]:
    """Rows by time, one each; of several with the same timestamp the largest value, and how many that removed, with
    those whose time is none."""
    possible = (times >= 0) & (times <= LATEST)
    if not possible.all():
        times, values, repeated = in_order(times[possible], values[possible])
        return times, values, repeated + int((~possible).sum())
    if np.any(times[1:] <= times[:-1]):
        order = np.lexsort((np.where(np.isnan(values), -np.inf, values), times))
        times, values = times[order], values[order]
        last = np.append(times[1:] != times[:-1], True)
        return times[last], values[last], len(times) - int(last.sum())
    return times, values, 0


MOST_PERCENT = 110.0
"""A share over 100 % by no more than this comes from rounding, and from counters that are not read at one moment."""
LEAST_HERTZ, MOST_HERTZ = 1e6, 1e11


def shares(percent: FloatArray) -> tuple[FloatArray, int]:
    """Percentages as shares from 0 to 1, NaN for what is none, and how many were a little over 100 %."""
    none = (percent < 0) | (percent > MOST_PERCENT)
    capped = int(((percent > 100) & ~none).sum())
    return np.where(none, np.nan, np.minimum(percent, 100.0) / 100), capped


def hertz(values: FloatArray) -> FloatArray:
    """Clocks in Hz, NaN for what is none.

    Real exports hold 1.57e+09 under a name that ends in "[MHz]": Hz. Values over a million are taken as Hz, smaller
    ones as MHz. A clock of 0 is no clock.
    """
    scaled = np.where(values > LEAST_HERTZ, values, values * 1e6)
    return np.where((scaled <= 0) | (scaled > MOST_HERTZ), np.nan, scaled)


def aligned(parts: list[tuple[IntArray, FloatArray]]) -> tuple[IntArray, list[FloatArray]]:
    """The moments that all parts have, which rise in each, and the values of each part there."""
    times = parts[0][0]
    if all(np.array_equal(times, other) for other, _ in parts[1:]):
        return times, [values for _, values in parts]
    for other, _ in parts[1:]:
        times = np.intersect1d(times, other, assume_unique=True)
    return times, [values[_places(own, times)] for own, values in parts]


def _places(times: IntArray, wanted: IntArray) -> IntArray:
    return np.searchsorted(times, wanted).astype(np.int64, copy=False)
