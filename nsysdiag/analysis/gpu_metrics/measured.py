"""What other parts of the analysis ask of the hardware counters."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from nsysdiag.analysis.gpu_metrics.joins import rounded
from nsysdiag.analysis.gpu_metrics.means import Sampled
from nsysdiag.analysis.gpu_metrics.report import Measured
from nsysdiag.model import Gap
from nsysdiag.model_gpu_metrics import GpuMetrics
from nsysdiag.timeline.intervals import Intervals


@dataclass(frozen=True, slots=True)
class SmActive:
    """The mean share of SMs that had at least one warp: over the window, and while any kernel ran; None where that was
    not sampled."""

    window: float | None
    kernels: float | None


def measured_sm_active(found: GpuMetrics | None) -> SmActive | None:
    """What the counters say about the activity of the SMs; None where it was not captured."""
    rows = [row for row in found.metrics if row.id == "sm_active"] if found is not None else []
    return SmActive(rows[0].window, rows[0].kernels) if rows else None


def with_sm_active(gaps: list[Gap], measured: Measured | None) -> list[Gap]:
    """The gaps with the SM activity by the samples that lie wholly inside each."""
    if measured is None or "sm_active" not in measured.series or not gaps:
        return gaps
    spans = Intervals.of([(gap.start_ns, gap.end_ns) for gap in gaps])
    means = Sampled.of(measured.series["sm_active"]).whole(spans)
    return [
        msgspec.structs.replace(gap, sm_active=rounded(mean)) for gap, mean in zip(gaps, means.tolist(), strict=True)
    ]
