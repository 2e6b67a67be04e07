"""How much of each counter sample is in a set of time, and means of a metric over such sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    complement,
    coverage,
    intersect,
    nearest_before,
    rows_from,
)
from nsysdiag.events.gpu_metric_names import METRICS, MetricUnit
from nsysdiag.events.gpu_metrics import Grid, MetricSeries


class SamplesWithin(Struct, frozen=True, eq=False):
    """The samples at least partly in a set, by their `index`: `ns` of each are in it, `worked` of these while the
    device was busy; `whole`: all of the sample."""

    index: IntArray
    ns: IntArray
    worked: IntArray
    whole: BoolArray

    @classmethod
    def of(cls, grid: Grid, spans: Intervals, busy: Intervals | None = None) -> SamplesWithin:
        """`spans` and `busy` are sets; without `busy` all of `spans` counts as work."""
        index = _touched(grid, spans)
        samples = grid.spans[index]
        ns = coverage(spans, samples)
        worked = ns if busy is None else coverage(intersect(spans, busy), samples)
        return cls(index, ns, worked, ns == samples.end - samples.start)

    def mean(self, value: FloatArray) -> float | None:
        """The mean over the set of a metric with such a value in each sample, NaN for none; None without any."""
        return _mean(value[self.index], self.ns)

    def whole_mean(self, value: FloatArray) -> tuple[float | None, int]:
        """The mean over the samples that are wholly in the set and have a value, and their number."""
        values = value[self.index[self.whole]]
        return _mean(values, self.ns[self.whole]), int((~np.isnan(values)).sum())

    def samples(self, value: FloatArray) -> int:
        """How many of the samples have a value."""
        return int((~np.isnan(value[self.index])).sum())


def _mean(values: FloatArray, ns: IntArray) -> float | None:
    known = ~np.isnan(values)
    total = int(ns[known].sum())
    # A sum, not a product of vectors: that would start threads for arrays that take a few µs.
    return float((values[known] * ns[known]).sum()) / total if total else None


def _touched(grid: Grid, spans: Intervals) -> IntArray:
    """The samples that are at least partly in the set, in order; each once, however many intervals it reaches into."""
    if len(grid.start) < len(spans):
        # The first interval that ends after a sample began: does it begin before the sample is over?
        at = np.searchsorted(spans.end, grid.start, side="right")
        known = np.flatnonzero(at < len(spans))
        return known[spans.start[at[known]] < grid.end[known]]
    first = np.searchsorted(grid.end, spans.start, side="right").astype(np.int64)
    behind = np.searchsorted(grid.start, spans.end, side="left").astype(np.int64)
    first[1:] = np.maximum(first[1:], behind[:-1])
    count = np.maximum(behind - first, 0)
    touched: IntArray = rows_from(first, count)
    return touched


class Sampled(Struct, frozen=True, eq=False):
    """A series with running sums over its valid samples: `area` is value times ns, `ns` their time, `valid` their
    number, each up to the beginning of sample i; one element more than the samples."""

    grid: Grid
    value: FloatArray
    area: FloatArray
    ns: IntArray
    valid: IntArray

    @classmethod
    def of(cls, series: MetricSeries) -> Sampled:
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
        """How many valid samples are at least partly in each query."""
        first = np.searchsorted(self.grid.end, queries.start, side="right")
        behind = np.searchsorted(self.grid.start, queries.end, side="left")
        return self.valid[np.maximum(behind, first)] - self.valid[first]

    def whole(self, queries: Intervals) -> FloatArray:
        """The mean over the valid samples that are wholly inside each query, NaN without one."""
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


FEWEST_IDLE, HIGHEST_IDLE = 10, 0.05
"""Idle time is known by at least so many samples, and idle up to this share."""


class Parted(Struct, frozen=True, eq=False):
    """A metric: `value` as sampled; `working` the value of each sample's busy part, and `idle` that of all idle parts,
    None where they are not known."""

    value: FloatArray
    working: FloatArray | None
    idle: float | None

    def mean(self, within: SamplesWithin) -> float | None:
        """The mean over a set; None where nothing was sampled."""
        if self.working is None or self.idle is None:
            return within.mean(self.value)
        values = self.working[within.index]
        known = ~np.isnan(values)
        ns, worked = within.ns[known], within.worked[known]
        total = int(ns.sum())
        area = float((values[known] * worked).sum()) + self.idle * int((ns - worked).sum())
        return area / total if total else None


class BusySamples:
    """How much of each sample of a grid the device was busy, in its window or not; `busy` is the set of all its
    operations."""

    def __init__(self, grid: Grid, busy: Intervals) -> None:
        self._length: IntArray = grid.end - grid.start
        self._worked = coverage(busy, grid.spans)
        self._idle = SamplesWithin.of(grid, complement(busy, int(grid.start[0]), int(grid.end[-1])))

    def part(self, series: MetricSeries) -> Parted:
        """A series on the grid with its idle parts taken out, where their level is known; never of clocks."""
        value = series.value
        idle, samples = self._idle.whole_mean(value)
        known = METRICS[series.metric].unit is MetricUnit.SHARE and samples >= FEWEST_IDLE
        if not known or idle is None or idle > HIGHEST_IDLE:
            return Parted(value, None, None)
        # A sample that is not partly idle keeps its value.
        over = (value * self._length - idle * (self._length - self._worked)) / np.maximum(self._worked, 1)
        partly = (self._worked > 0) & (self._worked < self._length)
        return Parted(value, np.where(partly, np.clip(over, 0.0, 1.0), value), idle)
