"""What other parts of the analysis ask of the hardware counters."""

from __future__ import annotations

import msgspec

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.counters.facts import GpuMetric, GpuMetrics
from nsysdiag.counters.joins import rounded
from nsysdiag.counters.masks import Sampled
from nsysdiag.counters.report import Measured
from nsysdiag.report import Gap
from nsysdiag.utilization.sm_activity import MeasuredSm


def measured_sm_active(found: GpuMetrics | None) -> MeasuredSm | None:
    """What the counters say about the activity of the SMs; None where it was not captured."""
    row = _row(found, "sm_active")
    return None if row is None or row.window is None else MeasuredSm(row.window)


def measured_filling(found: GpuMetrics | None) -> float | None:
    """The mean share of SMs with work while kernels computed; None where that was not sampled."""
    row = _row(found, "sm_active")
    return None if row is None else row.compute


def measured_tensor(found: GpuMetrics | None) -> float | None:
    """The mean activity of the tensor cores while kernels computed; None where that was not sampled."""
    row = _row(found, "tensor_active")
    return None if row is None else row.compute


def _row(found: GpuMetrics | None, metric: str) -> GpuMetric | None:
    return next((row for row in found.metrics if row.id == metric), None) if found is not None else None


def with_sm_active(gaps: list[Gap], measured: Measured | None) -> list[Gap]:
    """The gaps with the SM activity by the samples that are wholly inside each."""
    if measured is None or "sm_active" not in measured.series or not gaps:
        return gaps
    spans = Intervals.of([(gap.start_ns, gap.end_ns) for gap in gaps])
    means = Sampled.of(measured.series["sm_active"]).whole(spans)
    return [
        msgspec.structs.replace(gap, sm_active=rounded(mean)) for gap, mean in zip(gaps, means.tolist(), strict=True)
    ]
