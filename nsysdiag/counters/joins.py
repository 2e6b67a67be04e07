"""Metrics joined to what the program calls its work: NVTX ranges, kernels by name, iterations."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.counters.facts import IterationMetrics, KernelMetrics, RangeMetrics
from nsysdiag.counters.masks import Parted, Sampled
from nsysdiag.counters.targets import Lens, Target
from nsysdiag.report import IterationReport

DIGITS = 6  # of a share: what is smaller than a millionth was not measured


def rounded(mean: float | None) -> float | None:
    """The value in the report: a clock in whole Hz."""
    if mean is None or np.isnan(mean):
        return None
    return round(float(mean), DIGITS if abs(mean) <= 1 else 0)


class Cells(Struct):
    """The means of one row so far, by metric, and the samples of the metric that has most of them."""

    means: dict[str, float | None] = field(default_factory=dict)
    samples: int = 0
    whole: bool = True

    def add(self, metric: str, mean: float | None, samples: int, *, whole: bool = False) -> None:
        """What one metric says about the row, by `whole` samples or not."""
        self.means[metric] = rounded(mean)
        self.samples = max(self.samples, samples)
        self.whole &= whole


class Joins:
    """Collects means over ranges, kernels and the iterations of a report, metric by metric."""

    def __init__(self, ranges: list[Target], kernels: list[Target], iterations: IterationReport | None) -> None:
        self.targets: list[Target] = [*ranges, *kernels]
        self._ranges = len(ranges)
        self._cells = [Cells() for _ in self.targets]
        self._rows = iterations.rows if iterations is not None else []
        self._spans = Intervals.of([(row.start_ns, row.end_ns) for row in self._rows])
        self._iterations = [Cells() for _ in self._rows]

    def add(self, metric: str, parted: Parted, sampled: Sampled, lens: Lens) -> None:
        """Average one metric over everything; `lens` has the targets in their order."""
        for target, within, cells in zip(self.targets, lens.targets, self._cells, strict=True):
            mean, samples = within.whole_mean(parted.value) if target.whole else (None, 0)
            if samples:
                cells.add(metric, mean, samples, whole=True)
            else:
                cells.add(metric, parted.mean(within), within.samples(parted.value))
        rows = zip(sampled.means(self._spans).tolist(), sampled.samples(self._spans).tolist(), strict=True)
        for cells, (mean, samples) in zip(self._iterations, rows, strict=True):
            cells.add(metric, mean, samples)

    def ranges(self) -> list[RangeMetrics]:
        """The rows of the ranges; none where nothing was added."""
        rows = zip(self.targets[: self._ranges], self._cells, strict=False)
        return [
            RangeMetrics(
                name=target.name,
                count=target.count,
                gpu_ns=target.spans.total(),
                samples=cells.samples,
                means=cells.means,
            )
            for target, cells in rows
            if cells.means
        ]

    def kernels(self) -> list[KernelMetrics]:
        """The rows of the kernels; none where nothing was added."""
        rows = zip(self.targets[self._ranges :], self._cells[self._ranges :], strict=True)
        return [
            KernelMetrics(
                name=target.name,
                short_name=target.short_name,
                count=target.count,
                long_count=target.long_count,
                gpu_ns=target.spans.total(),
                samples=cells.samples,
                whole=cells.whole,
                means=cells.means,
            )
            for target, cells in rows
            if cells.means
        ]

    def iterations(self) -> list[IterationMetrics]:
        """The rows of the iterations, in the order of the report; none where nothing was added."""
        rows = zip(self._rows, self._iterations, strict=True)
        return [
            IterationMetrics(
                index=row.index,
                length_ns=row.end_ns - row.start_ns,
                samples=cells.samples,
                means=cells.means,
            )
            for row, cells in rows
            if cells.means
        ]
