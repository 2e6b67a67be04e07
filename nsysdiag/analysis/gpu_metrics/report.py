"""The part of a device's report that is about its hardware counters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.calls import CallRows
from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.gpu_metric_devices import Chip
from nsysdiag.activity.gpu_metric_names import METRICS, Unit
from nsysdiag.activity.gpu_metric_samples import Series
from nsysdiag.activity.identity import BoolArray
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.analysis.busy import WindowSplit
from nsysdiag.analysis.gpu_metrics.clocks import clocks
from nsysdiag.analysis.gpu_metrics.joins import iteration_metrics, joined, kernel_metrics, range_rows, rounded
from nsysdiag.analysis.gpu_metrics.means import Sampled
from nsysdiag.analysis.packing import packed
from nsysdiag.model import IterationReport
from nsysdiag.model_gpu_metrics import GpuMetric, GpuMetrics
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.trace.strings import Strings

BUCKETS = 1_000
NOTHING = -1
MEMORY = ("dram_read", "dram_write")


@dataclass(frozen=True, slots=True)
class Measured:
    """The series of one device's GPU by metric, what is known of the chip, and the GPU's number."""

    gpu: int
    series: dict[str, Series]
    chip: Chip | None


@dataclass(frozen=True, slots=True)
class Subject:
    """The device under analysis: its operations, which of them are `inside` its window, the sets `parts` (the window)
    and `gaps`, the window's split, its iterations, and the names of its kernels."""

    device: DeviceTimeline
    calls: CallRows
    ranges: NvtxRanges
    strings: Strings
    inside: BoolArray
    parts: Intervals
    gaps: Intervals
    split: WindowSplit
    iterations: IterationReport | None


def gpu_metrics(measured: Measured, subject: Subject, clock_limit: float) -> GpuMetrics | None:
    """All of it; None where nothing was sampled inside the window."""
    parts = subject.parts
    series = {metric: Sampled.of(each) for metric, each in measured.series.items()}
    series = {metric: sampled for metric, sampled in series.items() if sampled.samples(parts)}
    if not series:
        return None
    kernels = union(*subject.split.parts[:2])
    edges = _edges(parts, min(sampled.grid.period_ns for sampled in series.values()))
    rows = [
        _metric(measured, metric, sampled, subject, kernels, edges)
        for metric, sampled in sorted(series.items(), key=lambda item: list(METRICS).index(item[0]))
    ]
    shown = joined(series)
    chip_hz = measured.chip.clock_hz if measured.chip else None
    return GpuMetrics(
        gpu=measured.gpu,
        period_ns=max(sampled.grid.period_ns for sampled in series.values()),
        metrics=rows,
        clocks=clocks(series["gpc_clock"], kernels, chip_hz, clock_limit) if "gpc_clock" in series else None,
        ranges=range_rows(subject.device, subject.calls, subject.ranges, parts, shown) if shown else [],
        kernels=kernel_metrics(subject.device, subject.inside, parts, subject.strings, shown) if shown else [],
        iterations=iteration_metrics(subject.iterations, shown),
        start_ns=int(edges.start[0]),
        end_ns=int(edges.end[-1]),
        buckets=len(edges),
    )


def _metric(
    measured: Measured, metric: str, sampled: Sampled, subject: Subject, kernels: Intervals, edges: Intervals
) -> GpuMetric:
    known, found = METRICS[metric], measured.series[metric]
    gaps, gap_samples = sampled.whole_mean(subject.gaps)
    values = sampled.value[_touched(sampled, subject.parts)]
    memory = measured.chip.memory_bytes_per_second if measured.chip and metric in MEMORY else None
    return GpuMetric(
        id=metric,
        title=known.title,
        unit=known.unit.value,
        names=list(found.names),
        samples=len(values),
        left_out=found.left_out,
        capped=found.capped,
        window=rounded(sampled.mean(subject.parts)),
        kernels=rounded(sampled.mean(kernels)),
        compute=rounded(sampled.mean(subject.split.parts[0])),
        gaps=rounded(gaps),
        gap_samples=gap_samples,
        lowest=rounded(values.min()),
        highest=rounded(values.max()),
        peak_bytes_per_second=memory,
        series=_series(sampled, edges, known.unit),
    )


def _touched(sampled: Sampled, parts: Intervals) -> BoolArray:
    """True for each valid sample that lies at least partly in the set."""
    grid = sampled.grid
    begun = np.searchsorted(parts.start, grid.end, side="left")
    ended = np.searchsorted(parts.end, grid.start, side="right")
    touched: BoolArray = (begun > ended) & (np.diff(sampled.valid) > 0)
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
