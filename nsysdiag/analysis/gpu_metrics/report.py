"""The part of a device's report that is about its hardware counters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.calls import CallRows
from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.gpu_metric_devices import Chip
from nsysdiag.activity.gpu_metric_names import METRICS, Unit
from nsysdiag.activity.gpu_metric_samples import Grid, Series
from nsysdiag.activity.identity import BoolArray
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.analysis.busy import WindowSplit
from nsysdiag.analysis.gpu_metrics.clocks import clocks
from nsysdiag.analysis.gpu_metrics.joins import Joins, rounded
from nsysdiag.analysis.gpu_metrics.means import Sampled
from nsysdiag.analysis.gpu_metrics.parted import Parted, Work
from nsysdiag.analysis.gpu_metrics.targets import kernel_targets, range_targets
from nsysdiag.analysis.packing import packed
from nsysdiag.model import IterationReport
from nsysdiag.model_gpu_metrics import GpuMetric, GpuMetrics
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.trace.strings import Strings

BUCKETS = 1_000
NOTHING = -1
CLOCK = "gpc_clock"
MEMORY = ("dram_read", "dram_write")


@dataclass(frozen=True, slots=True)
class Measured:
    """The series of one device's GPU by metric, what is known of the chip, and the GPU's number."""

    gpu: int
    series: dict[str, Series]
    chip: Chip | None


@dataclass(frozen=True, slots=True)
class Subject:
    """The device under analysis: its operations, the sets `parts` (the window) and `gaps`, the window's split, its
    iterations, and the names of its kernels."""

    device: DeviceTimeline
    calls: CallRows
    ranges: NvtxRanges
    strings: Strings
    parts: Intervals
    gaps: Intervals
    split: WindowSplit
    iterations: IterationReport | None


def gpu_metrics(measured: Measured, subject: Subject, clock_limit: float) -> GpuMetrics | None:
    """All of it; None where nothing was sampled inside the window."""
    parts, kernels = subject.parts, union(*subject.split.parts[:2])
    series = {metric: measured.series[metric] for metric in METRICS if metric in measured.series}
    series = {metric: each for metric, each in series.items() if np.any(_touched(each.grid, parts))}
    if not series:
        return None
    periods = [each.grid.period_ns for each in series.values()]
    edges, joins = _edges(parts, min(periods)), _joins(subject, max(periods))
    work = Work.of(subject.device)
    rows, clock = [], None
    for metric, each in series.items():
        parted = work.part(each)
        rows.append(_metric(measured, parted, each, subject, kernels, edges))
        if METRICS[metric].joined:
            joins.add(metric, parted)
        if metric == CLOCK:
            clock = clocks(parted.plain, kernels, measured.chip.clock_hz if measured.chip else None, clock_limit)
    return GpuMetrics(
        gpu=measured.gpu,
        period_ns=max(periods),
        metrics=rows,
        clocks=clock,
        ranges=joins.ranges(),
        kernels=joins.kernels(),
        iterations=joins.iterations(),
        start_ns=int(edges.start[0]),
        end_ns=int(edges.end[-1]),
        buckets=len(edges),
    )


def _joins(subject: Subject, period_ns: int) -> Joins:
    ranges = range_targets(subject.device, subject.calls, subject.ranges, subject.parts)
    kernels = kernel_targets(subject.device, subject.parts, subject.strings, period_ns)
    return Joins(ranges, kernels, subject.iterations)


def _metric(
    measured: Measured, parted: Parted, found: Series, subject: Subject, kernels: Intervals, edges: Intervals
) -> GpuMetric:
    known, sampled = METRICS[found.metric], parted.plain
    gaps, gap_samples = sampled.whole_mean(subject.gaps)
    values = found.value[_touched(found.grid, subject.parts)]
    values = values[~np.isnan(values)]
    memory = measured.chip.memory_bytes_per_second if measured.chip and known.id in MEMORY else None
    return GpuMetric(
        id=known.id,
        title=known.title,
        unit=known.unit.value,
        names=list(found.names),
        samples=len(values),
        left_out=found.left_out,
        capped=found.capped,
        window=rounded(sampled.mean(subject.parts)),
        kernels=rounded(parted.mean(kernels)),
        compute=rounded(parted.mean(subject.split.parts[0])),
        gaps=rounded(gaps),
        gap_samples=gap_samples,
        idle=rounded(parted.idle),
        lowest=rounded(values.min() if len(values) else None),
        highest=rounded(values.max() if len(values) else None),
        peak_bytes_per_second=memory,
        series=_series(sampled, edges, known.unit),
    )


def _touched(grid: Grid, parts: Intervals) -> BoolArray:
    """True for each sample that lies at least partly in the set."""
    begun = np.searchsorted(parts.start, grid.end, side="left")
    ended = np.searchsorted(parts.end, grid.start, side="right")
    touched: BoolArray = begun > ended
    return touched


def _edges(parts: Intervals, period_ns: int) -> Intervals:
    """The window in equal buckets that are no shorter than a sample."""
    low, high = int(parts.start[0]), int(parts.end[-1])
    count = max(1, min(BUCKETS, (high - low) // period_ns))
    edges = np.array([low + (high - low) * at // count for at in range(count + 1)], dtype=np.int64)
    return Intervals(edges[:-1], edges[1:])


def _series(sampled: Sampled, edges: Intervals, unit: Unit) -> str:
    scale = 1000 if unit is Unit.SHARE else 1e-6
    means = np.round(sampled.means(edges) * scale)
    return packed(np.nan_to_num(means, nan=NOTHING).astype("<i2"))
