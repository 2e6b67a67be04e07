"""How much of each sample lies in a set of time: found once for a set, and then good for every metric.

```
samples   [--0.2--)[--0.8--)[--0.6--)
set           [-------------)             4/8, 8/8, 2/8 of them: a mean of 0.61; one whole sample, 0.8
```

A sample that lies only partly in a set mixes what happened inside with what happened outside: where the difference
matters, only whole samples tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.gpu_metric_samples import Grid
from nsysdiag.timeline.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, intersect


@dataclass(frozen=True, slots=True, eq=False)
class Within:
    """The samples that lie at least partly in a set, by their `index`: `ns` of each do, `worked` of these while the
    device was busy, and all of it where `whole` is true."""

    index: IntArray
    ns: IntArray
    worked: IntArray
    whole: BoolArray

    @classmethod
    def of(cls, grid: Grid, spans: Intervals, busy: Intervals | None = None) -> Within:
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
        """The mean over the samples that lie wholly in the set and have a value, and their number."""
        values = value[self.index[self.whole]]
        return _mean(values, self.ns[self.whole]), int((~np.isnan(values)).sum())

    def samples(self, value: FloatArray) -> int:
        """How many of the samples have a value."""
        return int((~np.isnan(value[self.index])).sum())


def _mean(values: FloatArray, ns: IntArray) -> float | None:
    known = ~np.isnan(values)
    total = int(ns[known].sum())
    # A sum, not a product of vectors: that would start threads for arrays that take microseconds.
    return float((values[known] * ns[known]).sum()) / total if total else None


def _touched(grid: Grid, spans: Intervals) -> IntArray:
    """The samples that lie at least partly in the set, in order; each once, however many intervals it reaches into."""
    if len(grid.start) < len(spans):
        # The first interval that ends after a sample began: does it begin before the sample is over?
        at = np.searchsorted(spans.end, grid.start, side="right")
        known = np.flatnonzero(at < len(spans))
        return known[spans.start[at[known]] < grid.end[known]]
    first = np.searchsorted(grid.end, spans.start, side="right").astype(np.int64)
    behind = np.searchsorted(grid.start, spans.end, side="left").astype(np.int64)
    first[1:] = np.maximum(first[1:], behind[:-1])
    count = np.maximum(behind - first, 0)
    touched: IntArray = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
    return touched
