"""Samples that are partly idle, parted: the average of such a sample says too little of the work in it.

```
device    |=A=|..........|=B=|.......          two kernels of 30 us with 70 us of nothing after each
sample    [ 24 %         )[ 24 %     )         what was sampled, over 100 us
parted     80 %  0         80 %  0             what the kernels did, once the idle part is taken out
```

That takes the level of the GPU's idle time, from samples that lie wholly inside it. Where it is unknown, or so high
that somebody else must be at work, nothing is parted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.gpu_metric_names import METRICS, Unit
from nsysdiag.activity.gpu_metric_samples import Grid, Series
from nsysdiag.analysis.gpu_metrics.within import Within
from nsysdiag.timeline.intervals import FloatArray, IntArray, Intervals, complement, coverage

FEWEST_IDLE, HIGHEST_IDLE = 10, 0.05
"""Idle time is known by at least so many samples, and idle up to this share."""


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A metric: `value` as sampled; `working` the value of each sample's busy part, and `idle` that of all idle parts,
    None where they are not known."""

    value: FloatArray
    working: FloatArray | None
    idle: float | None

    def mean(self, within: Within) -> float | None:
        """The mean over a set; None where nothing was sampled."""
        if self.working is None or self.idle is None:
            return within.mean(self.value)
        values = self.working[within.index]
        known = ~np.isnan(values)
        ns, worked = within.ns[known], within.worked[known]
        total = int(ns.sum())
        area = float((values[known] * worked).sum()) + self.idle * int((ns - worked).sum())
        return area / total if total else None


class Work:
    """How much of each sample of a grid the device was busy, in its window or not; `busy` is the set of all its
    operations."""

    def __init__(self, grid: Grid, busy: Intervals) -> None:
        self._length: IntArray = grid.end - grid.start
        self._worked = coverage(busy, grid.spans)
        self._idle = Within.of(grid, complement(busy, int(grid.start[0]), int(grid.end[-1])))

    def part(self, series: Series) -> Parted:
        """A series on the grid with its idle parts taken out, where their level is known; never of clocks."""
        idle = self._idle_level(series.value) if METRICS[series.metric].unit is Unit.SHARE else None
        return Parted(series.value, None if idle is None else self._working(series.value, idle), idle)

    def _idle_level(self, value: FloatArray) -> float | None:
        mean, samples = self._idle.whole_mean(value)
        return mean if mean is not None and samples >= FEWEST_IDLE and mean <= HIGHEST_IDLE else None

    def _working(self, value: FloatArray, idle: float) -> FloatArray:
        """The value of each sample's busy part; of a sample that is not partly idle its own."""
        over = (value * self._length - idle * (self._length - self._worked)) / np.maximum(self._worked, 1)
        partly = (self._worked > 0) & (self._worked < self._length)
        return np.where(partly, np.clip(over, 0.0, 1.0), value)
