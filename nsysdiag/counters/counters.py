"""The hardware counters of each device: its series, the figures for other parts of the analysis, and notes if there are
none or they contradict the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.background import Deferred
from nsysdiag.arrays.intervals import IntArray, Intervals, equal_edges, intersect, subtract, union
from nsysdiag.counters import joins as joined_to
from nsysdiag.counters.facts import Clocks, GpuMetric, GpuMetrics, IterationMetrics, KernelMetrics, RangeMetrics
from nsysdiag.counters.joins import BusySamples, Lens, Parted, Sampled, SamplesWithin, rounded
from nsysdiag.events import gpu_metrics as captured
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metrics import METRICS, Chip, GpuMetricSamples, MetricSeries, MetricUnit
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import picked
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.iterations.facts import IterationReport
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.kernels.kernels import FamilyRows
from nsysdiag.ledger.ledger import WindowSplit, packed
from nsysdiag.report import Gap
from nsysdiag.typed import joined, say
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings
    from nsysdiag.trace.trace import Trace


# Whether the clock was low while the device had work to do.

CHIP, SEEN = "chip", "seen"


def clocks(series: MetricSeries, busy: Intervals, chip_hz: int | None, limit: float) -> Clocks | None:
    """The clock over the time of the set `busy`; None if no sample is wholly inside.

    ```
    device   |=====|.|====|................|=========|
    judged   [------------)                [---------)     a pause of less than a period is part of the work
    clock    [1.4)[1.4)[1.0)[1.0)[0.2)[0.2)[0.6)[1.4)      low while idle: says nothing; 1.0 in work: does
                            ^ mixed         ^ mixed
    ```
    """
    within = SamplesWithin.of(series.grid, _without_pauses(busy, series.grid.period_ns))
    judged = within.whole & ~np.isnan(series.value[within.index])
    if not judged.any():
        return None
    value, length = series.value[within.index[judged]], within.ns[judged]
    highest = int(np.nanmax(series.value))
    source = CHIP if chip_hz is not None and chip_hz >= highest else SEEN
    most = chip_hz if chip_hz is not None and source == CHIP else highest
    low = value < limit * most
    return Clocks(
        max_hz=most,
        source=source,
        limit=limit,
        judged_ns=int(length.sum()),
        mean_hz=round(float(np.average(value, weights=length))),
        lowest_hz=int(value.min()),
        low_ns=int(length[low].sum()),
        low_mean_hz=round(float(np.average(value[low], weights=length[low]))) if low.any() else None,
    )


def _without_pauses(spans: Intervals, shortest_ns: int) -> Intervals:
    """The set with pauses of less than `shortest_ns` filled."""
    pause = np.flatnonzero(spans.start[1:] - spans.end[:-1] >= shortest_ns)
    first: IntArray = np.append(0, pause + 1)[: len(spans)]
    last: IntArray = np.append(pause, len(spans) - 1)[: len(spans)]
    return Intervals(spans.start[first], spans.end[last])


# The part of a device's report that is about its hardware counters.

BUCKETS = 1_000
"""Buckets of the series of a metric in a report. More make a report larger, fewer hide short changes. A bucket is at
least as long as a sample. A round number: nothing depends on it closely."""
NOTHING = -1
"""The value of a bucket without samples: a mark, as means are never negative."""
MEMORY = ("dram_read", "dram_write")


class Measured(Struct, frozen=True):
    """The series of one device's GPU by metric, what is known of the chip, and the GPU's number."""

    gpu: int
    series: dict[str, MetricSeries]
    chip: Chip | None


def gpu_metrics(
    measured: Measured,
    device: DeviceTimeline,
    ranges: NvtxRanges,
    projected: Deferred[tuple[IntArray, Intervals]],
    strings: Strings,
    parts: Intervals,
    gaps: Intervals,
    split: WindowSplit,
    iterations: IterationReport | None,
    clock_limit: float,
) -> GpuMetrics | None:
    """All that was sampled of `device` inside its window, the set `parts`, which is idle in `gaps`; None if that is
    nothing. A clock below `clock_limit`, a share of the highest one, is low. `projected` are rows of `ranges` with
    their time on the device."""
    series = [measured.series[metric] for metric in METRICS if metric in measured.series]
    series = [each for each in series if len(SamplesWithin.of(each.grid, parts).index)]
    if not series:
        return None
    periods = [each.grid.period_ns for each in series]
    edges = _edges(parts, min(periods))
    kernels = joined_to.kernel_targets(device, parts, strings, max(periods))
    joins = joined_to.Joins([*joined_to.range_targets(ranges, projected.result(), parts), *kernels], iterations)
    busy, lens = union(Intervals(device.operations.start, device.operations.end)), None
    rows, clock = [], None
    for each in series:
        if lens is None or lens.grid is not each.grid:
            lens = Lens.of(each.grid, parts, split, gaps, busy, joins.targets)
        parted, sampled = lens.work.part(each), Sampled.of(each)
        rows.append(_metric(each, parted, lens, measured.chip, _series(sampled, edges, METRICS[each.metric].unit)))
        if METRICS[each.metric].joined:
            joins.add(each.metric, parted, sampled, lens)
        if each.metric == "gpc_clock":
            clock = clocks(each, split.kernels, measured.chip.clock_hz if measured.chip else None, clock_limit)
    return GpuMetrics(
        gpu=measured.gpu,
        period_ns=max(periods),
        metrics=rows,
        clocks=clock,
        ranges=joins.rows(RangeMetrics),
        kernels=joins.rows(KernelMetrics),
        iterations=joins.rows(IterationMetrics),
        start_ns=int(edges.start[0]),
        end_ns=int(edges.end[-1]),
        buckets=len(edges),
    )


def _metric(found: MetricSeries, parted: Parted, lens: Lens, chip: Chip | None, series: str) -> GpuMetric:
    known, values = METRICS[found.metric], found.value[lens.window.index]
    values = values[~np.isnan(values)]
    gaps, gap_samples = lens.gaps.whole_mean(found.value)
    return GpuMetric(
        id=known.id,
        title=known.title,
        unit=known.unit.value,
        names=list(found.names),
        samples=len(values),
        left_out=found.left_out,
        capped=found.capped,
        window=rounded(lens.window.mean(found.value)),
        kernels=rounded(parted.mean(lens.kernels)),
        compute=rounded(parted.mean(lens.compute)),
        gaps=rounded(gaps),
        gap_samples=gap_samples,
        idle=rounded(parted.idle),
        lowest=rounded(values.min() if len(values) else None),
        highest=rounded(values.max() if len(values) else None),
        peak_bytes_per_second=chip.memory_bytes_per_second if chip and known.id in MEMORY else None,
        series=series,
    )


def _edges(parts: Intervals, period_ns: int) -> Intervals:
    """The window in equal buckets that are no shorter than a sample."""
    low, high = int(parts.start[0]), int(parts.end[-1])
    edges = equal_edges(low, high, max(1, min(BUCKETS, (high - low) // period_ns)))
    return Intervals(edges[:-1], edges[1:])


def _series(sampled: Sampled, edges: Intervals, unit: MetricUnit) -> str:
    scale = 1000 if unit is MetricUnit.SHARE else 1e-6
    means = np.round(sampled.means(edges) * scale)
    return packed(np.nan_to_num(means, nan=NOTHING).astype("<i2"))


FEWEST_GAP_SAMPLES = 10
"""Samples wholly inside gaps, of which the mean counts against these gaps. With fewer, a single sample could make the
note that they were not idle."""
MOST_NAMES, LONGEST_NAME = 5, 60
"""Unknown metrics that a note names; LONGEST_NAME: characters of each name. They change how long the note is, nothing
else."""


class Counters(Struct, frozen=True):
    """All that was sampled, the chips that the trace describes, and the GPU of each device by its key."""

    samples: GpuMetricSamples
    chips: list[Chip]
    number_of: dict[str, int]

    def of(self, device: DeviceTimeline) -> Measured | None:
        """The series of a device; None if there are none, or if it is not certain which are its own."""
        number = self.number_of.get(device.key)
        series = self.samples.by_gpu.get(number) if number is not None else None
        if number is None or series is None:
            return None
        return Measured(number, series, captured.chip_of(number, self.chips))

    def absence(self, device: DeviceTimeline) -> list[Sentence]:
        """Why a device has no metrics although the trace has some; empty if it has, or if none were captured."""
        if not self.samples.captured or self.of(device) is not None:
            return []
        measured = sorted(self.samples.by_gpu)
        if not measured:
            return [_nothing_known(self.samples.unknown)]
        gpus = f"GPU {', '.join(map(str, measured))}"
        number = self.number_of.get(device.key)
        if number is None:
            return [
                f"The GPU metrics of {gpus} could not be matched: the trace does not show which GPU this device is."
            ]
        return [f"GPU metrics were captured of {gpus}, not of this one, which is GPU {number}."]


def read_counters(trace: Trace, devices: Sequence[DeviceTimeline]) -> Counters:
    """What the trace holds for its devices."""
    samples = captured.read_gpu_metrics(trace)
    chips = captured.read_chips(trace) if samples.captured else []
    numbers = captured.gpu_numbers(devices, chips, set(samples.by_gpu)) if samples.captured else {}
    return Counters(samples, chips, numbers)


def _nothing_known(names: list[str]) -> Sentence:
    if not names:
        return "GPU_METRICS has rows that cannot be read: no names, or no usable values."
    shown = joined(", ", (say("'{}'", typed.name(TextKind.METRIC, name[:LONGEST_NAME])) for name in names[:MOST_NAMES]))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return say("GPU_METRICS holds no metric that is known here, but {}{}.", shown, more)


def measured_sm_active(found: GpuMetrics | None) -> float | None:
    """The mean share of SMs with work inside the window by the counters; None if it was not captured."""
    row = _sm_active(found)
    return None if row is None else row.window


def with_sm_active(gaps: list[Gap], measured: Measured | None) -> list[Gap]:
    """The gaps with the SM activity by the samples that are wholly inside each."""
    if measured is None or "sm_active" not in measured.series or not gaps:
        return gaps
    spans = Intervals.of([(gap.start_ns, gap.end_ns) for gap in gaps])
    means = Sampled.of(measured.series["sm_active"]).whole(spans)
    return [replace(gap, sm_active=rounded(mean)) for gap, mean in zip(gaps, means.tolist(), strict=True)]


def gap_notes(found: GpuMetrics | None, limit: float) -> list[str]:
    """What speaks against the gaps: SMs that were active in them."""
    row = _sm_active(found)
    if row is None or row.gaps is None or row.gaps < limit or row.gap_samples < FEWEST_GAP_SAMPLES:
        return []
    return [
        f"In the gaps {format_share(row.gaps, 1)} of the SMs were active by the GPU's own counters. Another program "
        "used the GPU, or the trace lacks kernels: this time was not idle."
    ]


def _sm_active(found: GpuMetrics | None) -> GpuMetric | None:
    return next((row for row in found.metrics if row.id == "sm_active"), None) if found is not None else None


# What limits each family of kernels.


# A sample counts for a family if all that the device did in it is of this family:
#
# ```
# gemm       [==========)      [====)          [=====)
# copy                      [====)
# samples  [  )[  )[  )[  )[  )[  )[  )[  )[  )[  )[  )
# of gemm    1   1   1           no      1    1   1      partly idle ones by their busy part, where idle is known
# ```

NEEDED = ("sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write")
FEWEST = 10
"""Samples: fewer say nothing of a family."""
HIGH = 0.6
"""Of a peak: from here on it limits the kernels, as Nsight Compute judges them; with all below, latency does."""
BANDWIDTH, TENSOR, ISSUE = "memory bandwidth", "tensor cores", "instruction issue"
FEW, LATENCY = "few active SMs", "latency: no peak is near"


def with_limits(
    found: list[FamilyTime], device: DeviceTimeline, rows: FamilyRows, parts: Intervals, measured: Measured | None
) -> list[FamilyTime]:
    """The families with means of the counters, and with what limits each; as they are without counters."""
    if measured is None or not found:
        return found
    every = Intervals(device.operations.start, device.operations.end)
    alone = {row.family: _alone(every, rows.of_family(row.family), parts) for row in found}
    means: dict[str, dict[str, tuple[float, int]]] = {title: {} for title in alone}
    within: dict[str, SamplesWithin] = {}
    busy, work, grid = union(every), None, None
    for metric in NEEDED:
        if (series := measured.series.get(metric)) is None:
            continue
        if work is None or grid is not series.grid:
            grid, work = series.grid, BusySamples(series.grid, busy)
            within = {title: SamplesWithin.of(grid, time) for title, time in alone.items()}
        parted = work.part(series)
        for title, its in within.items():
            if (mean := _mean(parted, its, work.worked[its.index])) is not None:
                means[title][metric] = mean
    return [_limited(row, means[row.family]) for row in found]


def _alone(every: Intervals, rows: IntArray, parts: Intervals) -> Intervals:
    """The set of time in `parts` in which only the operations at `rows` run."""
    mine = np.zeros(len(every), dtype=np.bool_)
    mine[rows] = True
    return subtract(intersect(union(every[picked(rows)]), parts), union(every[~mine]))


def _mean(parted: Parted, alone: SamplesWithin, worked: IntArray) -> tuple[float, int] | None:
    """The mean of a metric by time, and that time in ns, over the samples whose work, so many ns of each, is all
    `alone`; None if these are too few."""
    values = parted.value if parted.working is None else parted.working
    value, only = values[alone.index], alone.ns == worked
    chosen = ~np.isnan(value) & only & (alone.whole | (parted.working is not None)) & (alone.ns > 0)
    if np.count_nonzero(chosen) < FEWEST:
        return None
    ns = alone.ns[chosen]
    return float((value[chosen] * ns).sum() / ns.sum()), int(ns.sum())


def _limited(row: FamilyTime, means: dict[str, tuple[float, int]]) -> FamilyTime:
    share = {metric: mean for metric, (mean, _ns) in means.items()}
    moved = [share[each] for each in ("dram_read", "dram_write") if each in share]
    memory = min(sum(moved), 1.0) if moved else None
    return structs.replace(
        row,
        measured_ns=max((ns for _mean, ns in means.values()), default=None),
        sm_active=rounded(share.get("sm_active")),
        sm_issue=rounded(share.get("sm_issue")),
        tensor_active=rounded(share.get("tensor_active")),
        dram_active=rounded(memory),
        limit=_limit(share.get("sm_active"), share.get("sm_issue"), share.get("tensor_active"), memory),
    )


def _limit(active: float | None, issue: float | None, tensor: float | None, memory: float | None) -> str:
    """What is nearest its peak, if that is high; empty if what would have to be low is not known."""
    near = {BANDWIDTH: memory or 0.0, TENSOR: tensor or 0.0, ISSUE: issue or 0.0}
    first = max(near, key=lambda each: near[each])
    if near[first] >= HIGH:
        return first
    if active is None or tensor is None or memory is None:
        return ""
    return FEW if active < HIGH else LATENCY
