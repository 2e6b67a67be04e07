"""Metrics joined to what the program calls its work: NVTX ranges, kernels by name, iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, union
from nsysdiag.counters.facts import IterationMetrics, KernelMetrics, RangeMetrics
from nsysdiag.counters.masks import BusySamples, Parted, Sampled, SamplesWithin
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metrics import Grid
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.projection import project
from nsysdiag.events.rows import distinct
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.report import IterationReport

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# What metrics are averaged over: NVTX ranges and kernels by name, each as the set of its time on the device.

MOST_ROWS = 20
CANDIDATES = 100


class MetricTarget(Struct, frozen=True, eq=False):
    """The time of one name, a set, and how many instances it is of. `whole`: only samples wholly inside it count, where
    there are any; `long_count` instances last at least one sampling period. `short_name` is empty for ranges."""

    name: str
    short_name: str
    spans: Intervals
    count: int
    long_count: int
    whole: bool


def range_targets(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, parts: Intervals) -> list[MetricTarget]:
    """The names of ranges with most time on the device inside the set `parts`, the longest first."""
    index, spans = project(device, calls, ranges.rows)
    words: dict[str, int] = {}
    used, code = distinct(ranges.rows.name[index])
    word_of = [words.setdefault(normal_range(ranges.names[name]), len(words)) for name in used.tolist()]
    word = np.array(word_of, dtype=np.int64)[code]
    names, found = list(words), []
    for chosen in _longest(word, spans, len(names)):
        mine = spans[word == chosen]
        inside = intersect(parts, union(mine))
        found.append(MetricTarget(names[chosen], "", inside, int(_touching(mine, parts).sum()), 0, whole=False))
    return _most_time(found)


def kernel_targets(device: DeviceTimeline, parts: Intervals, strings: Strings, period_ns: int) -> list[MetricTarget]:
    """The kernel names with most time inside the set `parts`.

    ```
    period 100 µs     [-----)[-----)[-----)[-----)
    long kernel          [==============)             one whole sample: nothing else is in it
    short kernels     [=) [=) [=)  [=)                in samples with others: all of them together, by their time
    ```
    """
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.KERNEL) & device.running)
    names, name = distinct(operations.name[rows])
    spans = Intervals(operations.start[rows], operations.end[rows])
    touching = _touching(spans, parts)
    rows, name, spans = rows[touching], name[touching], spans[touching]
    found = []
    for chosen in _longest(name, spans, len(names)):
        mine = np.flatnonzero(name == chosen)
        length = (spans.end - spans.start)[mine]
        long = length >= period_ns
        short = strings.text(int(operations.short_name[rows[mine[0]]]))
        its = intersect(parts, union(spans[mine]))
        whole = 2 * int(length[long].sum()) >= int(length.sum())
        full = strings.text(int(names[chosen]))
        found.append(MetricTarget(full, short, its, len(mine), int(long.sum()), whole))
    return _most_time(found)


def _most_time(found: list[MetricTarget]) -> list[MetricTarget]:
    there = [target for target in found if target.spans.total()]
    return sorted(there, key=lambda target: (-target.spans.total(), target.name))[:MOST_ROWS]


def _touching(spans: Intervals, parts: Intervals) -> BoolArray:
    """True for each of the intervals that has any time in the set."""
    before_end = np.searchsorted(parts.start, spans.end, side="left")
    touching: BoolArray = before_end > np.searchsorted(parts.end, spans.start, side="right")
    return touching


def _longest(code: IntArray, spans: Intervals, count: int) -> list[int]:
    """The codes with most time by the sum of their intervals: more than are shown, since these may overlap."""
    total = np.bincount(code, weights=spans.end - spans.start, minlength=count)
    order = np.argsort(-total, kind="stable")[:CANDIDATES]
    longest: list[int] = order[total[order] > 0].tolist()
    return longest


class Lens(Struct, frozen=True, eq=False):
    """Sets of time on a device over the samples of one grid: its window, that of any kernel and of compute inside it,
    its gaps, and the ranges and kernels of the report."""

    grid: Grid
    work: BusySamples
    window: SamplesWithin
    kernels: SamplesWithin
    compute: SamplesWithin
    gaps: SamplesWithin
    targets: list[SamplesWithin]

    @classmethod
    def of(
        cls,
        grid: Grid,
        window: Intervals,
        split: WindowSplit,
        gaps: Intervals,
        busy: Intervals,
        targets: list[MetricTarget],
    ) -> Lens:
        """The sets on a grid; `busy` is that of all operations of the device, those outside the window too."""
        return cls(
            grid=grid,
            work=BusySamples(grid, busy),
            window=SamplesWithin.of(grid, window),
            kernels=SamplesWithin.of(grid, split.kernels),
            compute=SamplesWithin.of(grid, split.parts[0]),
            gaps=SamplesWithin.of(grid, gaps),
            targets=[SamplesWithin.of(grid, target.spans, busy) for target in targets],
        )


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

    def __init__(
        self, ranges: list[MetricTarget], kernels: list[MetricTarget], iterations: IterationReport | None
    ) -> None:
        self.targets: list[MetricTarget] = [*ranges, *kernels]
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
