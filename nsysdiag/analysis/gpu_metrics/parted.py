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

from dataclasses import dataclass, replace

import numpy as np

from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.gpu_metric_names import METRICS, Unit
from nsysdiag.activity.gpu_metric_samples import Grid, Series
from nsysdiag.activity.identity import IntArray
from nsysdiag.analysis.gpu_metrics.means import Sampled
from nsysdiag.timeline.intervals import Intervals, complement, coverage, intersect, union
from nsysdiag.timeline.steps import FloatArray

FEWEST_IDLE, HIGHEST_IDLE = 10, 0.05
"""Idle time is known by at least so many samples, and idle up to this share."""


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A series: `plain` as sampled; `working` with the value of each sample's busy part, None where it is not known.
    `busy` is the set of all operations, `idle` the level outside it."""

    plain: Sampled
    working: Sampled | None
    busy: Intervals
    idle: float | None

    def mean(self, spans: Intervals) -> float | None:
        """The mean over the time of the set `spans`; None where nothing was sampled."""
        if self.working is None or self.idle is None:
            return self.plain.mean(spans)
        at_work = intersect(spans, self.busy)
        ns, busy_ns = (int(self.plain.sampled_ns(each).sum()) for each in (spans, at_work))
        if not ns:
            return None
        return ((self.working.mean(at_work) or 0.0) * busy_ns + self.idle * (ns - busy_ns)) / ns


class Work:
    """All the time in which a device did anything, outside its window too, and how much of it lies in each sample."""

    def __init__(self, busy: Intervals) -> None:
        self.busy = busy
        self._last: tuple[Grid, IntArray] | None = None

    @classmethod
    def of(cls, device: DeviceTimeline) -> Work:
        """The union of all operations of a device."""
        return cls(union(Intervals(device.operations.start, device.operations.end)))

    def part(self, series: Series) -> Parted:
        """A series with its idle parts taken out, where their level is known; never of clocks."""
        plain = Sampled.of(series)
        idle = self._idle_level(plain) if METRICS[series.metric].unit is Unit.SHARE else None
        working = None if idle is None else Sampled.of(replace(series, value=self._working(series, idle)))
        return Parted(plain, working, self.busy, idle)

    def _idle_level(self, plain: Sampled) -> float | None:
        grid = plain.grid
        mean, samples = plain.whole_mean(complement(self.busy, int(grid.start[0]), int(grid.end[-1])))
        return mean if mean is not None and samples >= FEWEST_IDLE and mean <= HIGHEST_IDLE else None

    def _working(self, series: Series, idle: float) -> FloatArray:
        """The value of each sample's busy part; of a sample that is not partly idle its own."""
        grid = series.grid
        length, worked = grid.end - grid.start, self._worked(grid)
        over = (series.value * length - idle * (length - worked)) / np.maximum(worked, 1)
        return np.where((worked > 0) & (worked < length), np.clip(over, 0.0, 1.0), series.value)

    def _worked(self, grid: Grid) -> IntArray:
        """The busy ns of each sample; metrics that are sampled together share a grid."""
        if self._last is None or self._last[0] is not grid:
            self._last = grid, coverage(self.busy, grid.spans)
        return self._last[1]
