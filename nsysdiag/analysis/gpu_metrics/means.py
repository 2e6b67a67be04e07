"""Means of a sampled metric over any times: a few searches each, however many samples lie inside.

```
samples   [--0.2--)[--0.8--)[--0.6--)
query         [-------)                 half of 0.2 and half of 0.8: 0.5, of 2 samples, none of them whole
query            [-------------)        0.2, 0.8 and 0.6 by their time: one whole sample, 0.8
```

A sample that lies only partly in a query mixes what happened inside with what happened outside: where the difference
matters, only whole samples tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsysdiag.activity.gpu_metric_samples import Grid, Series, known
from nsysdiag.activity.identity import IntArray
from nsysdiag.timeline.intervals import Intervals, nearest_before
from nsysdiag.timeline.steps import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A series with running sums over its valid samples: `area` is value times ns, `ns` their time, `valid` their
    number, each up to the beginning of sample i; one element more than there are samples."""

    grid: Grid
    value: FloatArray
    area: FloatArray
    ns: IntArray
    valid: IntArray

    @classmethod
    def of(cls, series: Series) -> Sampled:
        """The running sums of a series."""
        grid, there = series.grid, known(series.value)
        value = np.where(there, series.value, 0.0)
        length = np.where(there, grid.end - grid.start, 0)
        return cls(grid, value, _running(value * length), _running(length), _running(there.astype(np.int64)))

    def means(self, queries: Intervals) -> FloatArray:
        """The mean over the time of each query, NaN where nothing was sampled."""
        area = self._area_before(queries.end) - self._area_before(queries.start)
        return _ratio(area, self.sampled_ns(queries))

    def mean(self, queries: Intervals) -> float | None:
        """The mean over all queries together, each by its sampled time; None where nothing was sampled."""
        area = self._area_before(queries.end) - self._area_before(queries.start)
        ns = int(self.sampled_ns(queries).sum())
        return float(area.sum()) / ns if ns else None

    def sampled_ns(self, queries: Intervals) -> IntArray:
        """How many ns of each query have a valid sample."""
        return self._ns_before(queries.end) - self._ns_before(queries.start)

    def samples(self, spans: Intervals) -> int:
        """How many valid samples lie at least partly in the set `spans`."""
        first = np.searchsorted(self.grid.end, spans.start, side="right")
        behind = np.searchsorted(self.grid.start, spans.end, side="left")
        # One sample may reach into several intervals.
        first = np.maximum(first, np.append(0, np.maximum.accumulate(behind)[:-1])[: len(first)])
        return int((self.valid[np.maximum(behind, first)] - self.valid[first]).sum())

    def whole(self, queries: Intervals) -> tuple[FloatArray, IntArray]:
        """The mean over the valid samples that lie wholly inside each query, NaN without one, and their number."""
        first, behind = self._whole(queries)
        means = _ratio(self.area[behind] - self.area[first], self.ns[behind] - self.ns[first])
        return means, self.valid[behind] - self.valid[first]

    def whole_mean(self, queries: Intervals) -> tuple[float | None, int]:
        """The mean over the valid samples that lie wholly inside any of the queries, and their number."""
        first, behind = self._whole(queries)
        ns = int((self.ns[behind] - self.ns[first]).sum())
        mean = float((self.area[behind] - self.area[first]).sum()) / ns if ns else None
        return mean, int((self.valid[behind] - self.valid[first]).sum())

    def whole_samples(self, queries: Intervals) -> IntArray:
        """The indices of the valid samples that lie wholly inside the queries, which share no time."""
        first, behind = self._whole(queries)
        count = behind - first
        index = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
        found: IntArray = index[np.diff(self.valid)[index] > 0]
        return found

    def _whole(self, queries: Intervals) -> tuple[IntArray, IntArray]:
        first = np.searchsorted(self.grid.start, queries.start, side="left")
        behind = np.searchsorted(self.grid.end, queries.end, side="right")
        return first.astype(np.int64), np.maximum(behind, first).astype(np.int64)

    def _area_before(self, times: IntArray) -> FloatArray:
        last, inside = self._inside(times)
        return self.area[np.maximum(last, 0)] + self.value[np.maximum(last, 0)] * inside

    def _ns_before(self, times: IntArray) -> IntArray:
        last, inside = self._inside(times)
        valid = np.diff(self.valid)[np.maximum(last, 0)]
        return self.ns[np.maximum(last, 0)] + inside * valid

    def _inside(self, times: IntArray) -> tuple[IntArray, IntArray]:
        """The last sample that begins at or before each time, -1 if there is none, and how far the time is in it."""
        last = nearest_before(self.grid.start, times)
        at = np.maximum(last, 0)
        return last, np.where(last >= 0, np.minimum(times, self.grid.end[at]) - self.grid.start[at], 0)


def _running(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate((np.zeros(1, values.dtype), np.cumsum(values)))


def _ratio(area: FloatArray, ns: IntArray) -> FloatArray:
    return np.where(ns > 0, area / np.maximum(ns, 1), np.nan)
