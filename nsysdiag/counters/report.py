"""The part of a device's report that is about its hardware counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import Intervals, equal_edges, union
from nsysdiag.counters.clocks import clocks
from nsysdiag.counters.facts import GpuMetric, GpuMetrics
from nsysdiag.counters.joins import Joins, rounded
from nsysdiag.counters.masks import Parted, Sampled, Within
from nsysdiag.counters.targets import Lens, kernel_targets, range_targets
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpu_metric_names import METRICS, Unit
from nsysdiag.events.gpu_metrics import Chip, Series
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.ledger import packed
from nsysdiag.report import IterationReport

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

BUCKETS = 1_000
NOTHING = -1
MEMORY = ("dram_read", "dram_write")


class Measured(Struct, frozen=True):
    """The series of one device's GPU by metric, what is known of the chip, and the GPU's number."""

    gpu: int
    series: dict[str, Series]
    chip: Chip | None


def gpu_metrics(
    measured: Measured,
    device: DeviceTimeline,
    calls: CallRows,
    ranges: NvtxRanges,
    strings: Strings,
    parts: Intervals,
    gaps: Intervals,
    split: WindowSplit,
    iterations: IterationReport | None,
    clock_limit: float,
) -> GpuMetrics | None:
    """All that was sampled of `device` inside its window, the set `parts`, which is idle in `gaps`; None where that is
    nothing. A clock below `clock_limit`, a share of the highest one, is low."""
    series = [measured.series[metric] for metric in METRICS if metric in measured.series]
    series = [each for each in series if len(Within.of(each.grid, parts).index)]
    if not series:
        return None
    periods = [each.grid.period_ns for each in series]
    edges = _edges(parts, min(periods))
    joins = Joins(
        range_targets(device, calls, ranges, parts), kernel_targets(device, parts, strings, max(periods)), iterations
    )
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
        ranges=joins.ranges(),
        kernels=joins.kernels(),
        iterations=joins.iterations(),
        start_ns=int(edges.start[0]),
        end_ns=int(edges.end[-1]),
        buckets=len(edges),
    )


def _metric(found: Series, parted: Parted, lens: Lens, chip: Chip | None, series: str) -> GpuMetric:
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


def _series(sampled: Sampled, edges: Intervals, unit: Unit) -> str:
    scale = 1000 if unit is Unit.SHARE else 1e-6
    means = np.round(sampled.means(edges) * scale)
    return packed(np.nan_to_num(means, nan=NOTHING).astype("<i2"))
