"""All sets of time that metrics are averaged over, laid over the samples once."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.activity.gpu_metric_samples import Grid
from nsysdiag.analysis.gpu_metrics.parted import Work
from nsysdiag.analysis.gpu_metrics.targets import Target
from nsysdiag.analysis.gpu_metrics.within import Within
from nsysdiag.timeline.intervals import Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Sets of time on a device: its window, that of any kernel and of compute inside it, its gaps, and all its
    operations, `busy`, those outside the window too; and the ranges and kernels of the report."""

    window: Intervals
    kernels: Intervals
    compute: Intervals
    gaps: Intervals
    busy: Intervals
    targets: list[Target]


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """The same sets over the samples of one grid."""

    grid: Grid
    work: Work
    window: Within
    kernels: Within
    compute: Within
    gaps: Within
    targets: list[Within]

    @classmethod
    def of(cls, grid: Grid, spans: Spans) -> Lens:
        """Lay the sets over a grid."""
        return cls(
            grid=grid,
            work=Work(grid, spans.busy),
            window=Within.of(grid, spans.window),
            kernels=Within.of(grid, spans.kernels),
            compute=Within.of(grid, spans.compute),
            gaps=Within.of(grid, spans.gaps),
            targets=[Within.of(grid, target.spans, spans.busy) for target in spans.targets],
        )
