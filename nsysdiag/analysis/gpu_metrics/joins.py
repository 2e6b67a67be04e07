"""Metrics joined to what the program calls its work: NVTX ranges, kernels by name, iterations."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.activity.calls import CallRows
from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.gpu_metric_names import METRICS
from nsysdiag.activity.identity import BoolArray, IntArray
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.activity.operations import Category
from nsysdiag.activity.streams import distinct
from nsysdiag.analysis.gpu_metrics.means import Sampled
from nsysdiag.analysis.projection import project
from nsysdiag.model import IterationReport
from nsysdiag.model_gpu_metrics import IterationMetrics, KernelMetrics, RangeMetrics
from nsysdiag.timeline.intervals import Intervals, intersect, union
from nsysdiag.trace.strings import Strings

MOST_ROWS = 20
CANDIDATES = 100
DIGITS = 6  # of a share: what is smaller than a millionth was not measured
_COUNTER = re.compile(r"\d+")


def joined(series: dict[str, Sampled]) -> dict[str, Sampled]:
    """The metrics that are averaged over ranges, kernels and iterations."""
    return {metric: sampled for metric, sampled in series.items() if METRICS[metric].joined}


def rounded(mean: float | None) -> float | None:
    """As it stands in the report: a clock in whole Hz."""
    if mean is None or np.isnan(mean):
        return None
    return round(float(mean), DIGITS if abs(mean) <= 1 else 0)


def range_rows(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, parts: Intervals, series: dict[str, Sampled]
) -> list[RangeMetrics]:
    """The names of ranges with most time on the device inside the set `parts`, the longest first."""
    index, spans = project(device, calls, ranges.rows)
    words: dict[str, int] = {}
    used, code = distinct(ranges.rows.name[index])
    word_of = [words.setdefault(_COUNTER.sub("#", ranges.names[name]), len(words)) for name in used.tolist()]
    word = np.array(word_of, dtype=np.int64)[code]
    names = list(words)
    rows = []
    for chosen in _longest(word, spans, len(names)):
        mine = spans[word == chosen]
        inside = intersect(parts, union(mine))
        if inside.total():
            rows.append(_range(names[chosen], _touching(mine, parts), inside, series))
    return sorted(rows, key=lambda row: (-row.gpu_ns, row.name))[:MOST_ROWS]


def _range(name: str, count: int, inside: Intervals, series: dict[str, Sampled]) -> RangeMetrics:
    means = {metric: rounded(sampled.mean(inside)) for metric, sampled in series.items()}
    return RangeMetrics(name=name, count=count, gpu_ns=inside.total(), samples=_samples(series, inside), means=means)


def _touching(spans: Intervals, parts: Intervals) -> int:
    """How many of the intervals have any time in the set."""
    before_end = np.searchsorted(parts.start, spans.end, side="left")
    return int((before_end > np.searchsorted(parts.end, spans.start, side="right")).sum())


def _longest(code: IntArray, spans: Intervals, count: int) -> list[int]:
    """The codes with most time by the sum of their intervals: more than are shown, since these may overlap."""
    total = np.bincount(code, weights=spans.end - spans.start, minlength=count)
    order = np.argsort(-total, kind="stable")[:CANDIDATES]
    longest: list[int] = order[total[order] > 0].tolist()
    return longest


def kernel_metrics(
    device: DeviceTimeline, inside: BoolArray, parts: Intervals, strings: Strings, series: dict[str, Sampled]
) -> list[KernelMetrics]:
    """The kernel names with most time among the operations `inside`, within the set `parts`."""
    operations = device.operations
    rows = np.flatnonzero((operations.category == Category.KERNEL) & inside & device.running)
    names, name = distinct(operations.name[rows])
    spans = Intervals(operations.start[rows], operations.end[rows])
    found = []
    for chosen in _longest(name, spans, len(names)):
        mine = np.flatnonzero(name == chosen)
        its = intersect(parts, union(spans[mine]))
        short = int(operations.short_name[rows[mine[0]]])
        found.append((its.total(), strings.text(int(names[chosen])), strings.text(short), its, spans[mine]))
    found.sort(key=lambda each: (-each[0], each[1]))
    return [_kernel(full, short, its, each, series) for _, full, short, its, each in found[:MOST_ROWS]]


def _kernel(name: str, short: str, its: Intervals, instances: Intervals, series: dict[str, Sampled]) -> KernelMetrics:
    """
    ```
    period 100 us     [-----)[-----)[-----)[-----)
    long kernel          [==============)             one whole sample: nothing else is in it
    short kernels     [=) [=) [=)  [=)                in samples with others: all of them together, by their time
    ```
    """
    period = max(sampled.grid.period_ns for sampled in series.values())
    length = instances.end - instances.start
    long = length >= period
    whole = 2 * int(length[long].sum()) >= int(length.sum()) and _whole_samples(series, its) > 0
    if whole:
        means = {metric: rounded(sampled.whole_mean(its)[0]) for metric, sampled in series.items()}
    else:
        means = {metric: rounded(sampled.mean(its)) for metric, sampled in series.items()}
    return KernelMetrics(
        name=name,
        short_name=short,
        count=len(instances),
        long_count=int(long.sum()),
        gpu_ns=its.total(),
        samples=_whole_samples(series, its) if whole else _samples(series, its),
        whole=whole,
        means=means,
    )


def iteration_metrics(report: IterationReport | None, series: dict[str, Sampled]) -> list[IterationMetrics]:
    """The iterations that the report lists, in its order."""
    if report is None or not series:
        return []
    spans = Intervals.of([(row.start_ns, row.end_ns) for row in report.rows])
    means = {metric: sampled.means(spans).tolist() for metric, sampled in series.items()}
    return [
        IterationMetrics(
            index=row.index,
            samples=_samples(series, spans[at : at + 1]),
            means={metric: rounded(values[at]) for metric, values in means.items()},
        )
        for at, row in enumerate(report.rows)
    ]


def _samples(series: dict[str, Sampled], spans: Intervals) -> int:
    """The samples in a set: of the metric that has most of them."""
    return max((sampled.samples(spans) for sampled in series.values()), default=0)


def _whole_samples(series: dict[str, Sampled], spans: Intervals) -> int:
    return max((sampled.whole_mean(spans)[1] for sampled in series.values()), default=0)
