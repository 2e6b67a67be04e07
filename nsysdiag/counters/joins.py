"""Metrics joined to what the program calls its work: NVTX ranges, kernels by name, iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from nsysdiag.arrays import intervals
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, coverage, intersect, pieces, union
from nsysdiag.counters.facts import IterationMetrics, KernelMetrics, RangeMetrics
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metrics import METRICS, Grid, MetricSeries, MetricUnit
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.iterations.facts import IterationReport
from nsysdiag.ledger.ledger import WindowSplit

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# How much of each counter sample is in a set of time, and means of a metric over such sets.


class SamplesWithin(Struct, frozen=True, eq=False):
    """The samples at least partly in a set, by their `index`: `ns` of each are in it, `worked` of these while the
    device was busy; `whole`: all of the sample."""

    index: IntArray
    ns: IntArray
    worked: IntArray
    whole: BoolArray

    @classmethod
    def of(cls, grid: Grid, spans: Intervals, work: BusySamples | None = None) -> SamplesWithin:
        """Those in the set `spans`; without `work` all of it counts as such."""
        index, ns = _touched(grid, spans)
        samples = grid.spans[index]
        worked, whole = ns, ns == samples.end - samples.start
        if work is not None:
            worked, cut = work.worked[index], np.flatnonzero(~whole)
            part, inside = pieces(spans, samples[cut])
            worked[cut] = sum_of_each(part, coverage(work.busy, inside), len(cut))
        return cls(index, ns, worked, whole)

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


def _touched(grid: Grid, spans: Intervals) -> tuple[IntArray, IntArray]:
    """The samples that are at least partly in the set, in order, and how many ns of each are; each once, however many
    intervals it reaches into."""
    if len(grid.start) < len(spans):
        ns = coverage(spans, grid.spans)
        index = np.flatnonzero(ns)
        return index, ns[index]
    first = np.searchsorted(grid.end, spans.start, side="right").astype(np.int64)
    behind = np.searchsorted(grid.start, spans.end, side="left").astype(np.int64)
    first[1:] = np.maximum(first[1:], behind[:-1])
    index = intervals.rows_from(first, np.maximum(behind - first, 0))
    return index, coverage(spans, grid.spans[index])


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
        """The mean over the time of each query, NaN if nothing was sampled."""
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
        last = intervals.nearest_before(self.grid.start, times)
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
    None if they are not known."""

    value: FloatArray
    working: FloatArray | None
    idle: float | None

    def mean(self, within: SamplesWithin) -> float | None:
        """The mean over a set; None if nothing was sampled."""
        if self.working is None or self.idle is None:
            return within.mean(self.value)
        values = self.working[within.index]
        known = ~np.isnan(values)
        ns, worked = within.ns[known], within.worked[known]
        total = int(ns.sum())
        area = float((values[known] * worked).sum()) + self.idle * int((ns - worked).sum())
        return area / total if total else None


class BusySamples:
    """How much of each sample of a grid the device `worked`, in its window or not, in ns; `busy` is the set of all its
    operations."""

    def __init__(self, grid: Grid, busy: Intervals) -> None:
        self.busy = busy
        self.worked: IntArray = coverage(busy, grid.spans)
        self._length: IntArray = grid.end - grid.start
        self._idle = SamplesWithin.of(grid, intervals.complement(busy, int(grid.start[0]), int(grid.end[-1])))

    def part(self, series: MetricSeries) -> Parted:
        """A series on the grid with its idle parts taken out, where their level is known; never of clocks."""
        value = series.value
        idle, samples = self._idle.whole_mean(value)
        known = METRICS[series.metric].unit is MetricUnit.SHARE and samples >= FEWEST_IDLE
        if not known or idle is None or idle > HIGHEST_IDLE:
            return Parted(value, None, None)
        # A sample that is not partly idle keeps its value.
        over = (value * self._length - idle * (self._length - self.worked)) / np.maximum(self.worked, 1)
        partly = (self.worked > 0) & (self.worked < self._length)
        return Parted(value, np.where(partly, np.clip(over, 0.0, 1.0), value), idle)


# What metrics are averaged over: NVTX ranges and kernels by name, each as the set of its time on the device.

MOST_ROWS = 20
"""Names of ranges, and of kernels, with means of metrics in a report, those with most time. Kernels that findings look
at are as many (MOST_LOOKED_AT in findings)."""
CANDIDATES = 100
"""Names with the largest sums of intervals, of which those with most time are chosen. More than MOST_ROWS, as intervals
of one name may overlap and count twice in its sum."""


class MetricTarget(Struct, frozen=True, eq=False):
    """The time of one name, a set; the kind of record of it, and its fields besides the means. `whole`: only samples
    wholly inside it count if there are any."""

    kind: type[RangeMetrics | KernelMetrics]
    name: str
    spans: Intervals
    about: dict[str, Any]
    whole: bool = False


def range_targets(ranges: NvtxRanges, projected: tuple[IntArray, Intervals], parts: Intervals) -> list[MetricTarget]:
    """The names of ranges with most time on the device inside the set `parts`, the longest first; `projected` are the
    rows of ranges that have any, and that time."""
    index, spans = projected
    words: dict[str, int] = {}
    used, code = distinct(ranges.rows.name[index])
    word_of = [words.setdefault(normal_range(ranges.names[name]), len(words)) for name in used.tolist()]
    word = np.array(word_of, dtype=np.int64)[code]
    names, found = list(words), []
    for chosen in _longest(word, spans, len(names)):
        mine = spans[word == chosen]
        inside = intersect(parts, union(mine))
        found.append(MetricTarget(RangeMetrics, names[chosen], inside, {"count": int(_touching(mine, parts).sum())}))
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
        about = {"short_name": short, "count": len(mine), "long_count": int(long.sum())}
        found.append(MetricTarget(KernelMetrics, strings.text(int(names[chosen])), its, about, whole))
    return _most_time(found)


def _most_time(found: list[MetricTarget]) -> list[MetricTarget]:
    there = [target for target in found if target.spans.total()]
    return sorted(there, key=lambda target: (-target.spans.total(), target.name))[:MOST_ROWS]


def _touching(spans: Intervals, parts: Intervals) -> BoolArray:
    """True for each of the intervals that has any time in the set."""
    before_end = np.searchsorted(parts.start, spans.end, side="left")
    return before_end > np.searchsorted(parts.end, spans.start, side="right")


def _longest(code: IntArray, spans: Intervals, count: int) -> list[int]:
    """The codes with most time by the sum of their intervals: more than are shown, since these may overlap."""
    total = np.bincount(code, weights=spans.end - spans.start, minlength=count)
    order = np.argsort(-total, kind="stable")[:CANDIDATES]
    return order[total[order] > 0].tolist()


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
        """The sets on a grid; `busy` is that of all operations of the device, those outside the window too. Kernels are
        work all of their time."""
        return cls(
            grid=grid,
            work=(work := BusySamples(grid, busy)),
            window=SamplesWithin.of(grid, window),
            kernels=SamplesWithin.of(grid, split.kernels),
            compute=SamplesWithin.of(grid, split.parts[0]),
            gaps=SamplesWithin.of(grid, gaps),
            targets=[SamplesWithin.of(grid, it.spans, work if it.kind is RangeMetrics else None) for it in targets],
        )


DIGITS = 6
"""Decimal digits of a share: what is smaller than a millionth was not measured."""


def rounded(mean: float | None) -> float | None:
    """The value in the report: a clock in whole Hz."""
    if mean is None or np.isnan(mean):
        return None
    return round(float(mean), DIGITS if abs(mean) <= 1 else 0)


class Cells(Struct):
    """One row: the kind of its record and the fields besides the means; the means so far, by metric, and the samples of
    the metric that has most of them."""

    kind: type[RangeMetrics | KernelMetrics | IterationMetrics]
    about: dict[str, Any]
    means: dict[str, float | None] = field(default_factory=dict)
    samples: int = 0
    whole: bool = True

    def add(self, metric: str, mean: float | None, samples: int, *, whole: bool = False) -> None:
        """What one metric says about the row, by `whole` samples or not."""
        self.means[metric] = rounded(mean)
        self.samples = max(self.samples, samples)
        self.whole &= whole

    def record(self) -> Any:
        """The row of the report."""
        whole: dict[str, Any] = {"whole": self.whole} if self.kind is KernelMetrics else {}
        return self.kind(**self.about, samples=self.samples, means=self.means, **whole)


class Joins:
    """Collects means over ranges, kernels and the iterations of a report, metric by metric."""

    def __init__(self, targets: list[MetricTarget], iterations: IterationReport | None) -> None:
        self.targets = targets
        rows = iterations.rows if iterations is not None else []
        self._spans = Intervals.of([(row.start_ns, row.end_ns) for row in rows])
        self._cells = [
            Cells(each.kind, {"name": each.name, "gpu_ns": each.spans.total(), **each.about}) for each in targets
        ]
        self._iterations = [
            Cells(IterationMetrics, {"index": row.index, "length_ns": row.end_ns - row.start_ns}) for row in rows
        ]

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

    def rows(self, kind: type) -> list[Any]:
        """The records of one kind, in order; none if nothing was added."""
        return [each.record() for each in [*self._cells, *self._iterations] if each.kind is kind and each.means]
