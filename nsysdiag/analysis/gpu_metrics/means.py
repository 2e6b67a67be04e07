"""Means of a sampled metric over many short times, each by itself: a few searches for all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsysdiag.activity.gpu_metric_samples import Grid, Series
from nsysdiag.timeline.intervals import FloatArray, IntArray, Intervals, nearest_before


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
        grid, known = series.grid, ~np.isnan(series.value)
        value = np.where(known, series.value, 0.0)
        length = np.where(known, grid.end - grid.start, 0)
        return cls(grid, value, _running(value * length), _running(length), _running(known.astype(np.int64)))

    def means(self, queries: Intervals) -> FloatArray:
        """The mean over the time of each query, NaN where nothing was sampled."""
        area = self._area_before(queries.end) - self._area_before(queries.start)
        return _ratio(area, self._ns_before(queries.end) - self._ns_before(queries.start))

    def samples(self, queries: Intervals) -> IntArray:
        """How many valid samples lie at least partly in each query."""
        first = np.searchsorted(self.grid.end, queries.start, side="right")
        behind = np.searchsorted(self.grid.start, queries.end, side="left")
        return self.valid[np.maximum(behind, first)] - self.valid[first]

    def whole(self, queries: Intervals) -> FloatArray:
        """The mean over the valid samples that lie wholly inside each query, NaN without one."""
        first = np.searchsorted(self.grid.start, queries.start, side="left")
        behind = np.maximum(np.searchsorted(self.grid.end, queries.end, side="right"), first)
        return _ratio(self.area[behind] - self.area[first], self.ns[behind] - self.ns[first])

    def _area_before(self, times: IntArray) -> FloatArray:
        last, inside = self._inside(times)
        return self.area[last] + self.value[last] * inside

    def _ns_before(self, times: IntArray) -> IntArray:
        last, inside = self._inside(times)
        return self.ns[last] + inside * (self.valid[last + 1] - self.valid[last])

    def _inside(self, times: IntArray) -> tuple[IntArray, IntArray]:
        """The last sample that begins at or before each time, and how far the time is in it; before all of them the
        first one, and 0."""
        last = nearest_before(self.grid.start, times)
        at = np.maximum(last, 0)
        return at, np.where(last >= 0, np.minimum(times, self.grid.end[at]) - self.grid.start[at], 0)


def _running(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate((np.zeros(1, values.dtype), np.cumsum(values)))


def _ratio(area: FloatArray, ns: IntArray) -> FloatArray:
    return np.where(ns > 0, area / np.maximum(ns, 1), np.nan)
