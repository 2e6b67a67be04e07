"""What is worked out in the second thread for one device, because it needs nothing of what comes next in the first."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, Intervals, contains
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.counters.measured import measured_sm_active
from nsysdiag.counters.report import Subject, gpu_metrics
from nsysdiag.diagnosis.missing import Missing, missing_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.findings.empty_iterations import EmptyIterations, empty_iterations
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.iterations.iterations import Iterations, find_iterations
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.kernels.kernels import kernel_rows
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.ledger import Ledger, pack_gaps
from nsysdiag.pipeline.iterations import Steps
from nsysdiag.pipeline.shared import Shared
from nsysdiag.report import GapsPacked, KernelRow
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.levels import finest_level, overview
from nsysdiag.utilization.facts import Utilization
from nsysdiag.utilization.utilization import utilization


@dataclass(frozen=True, slots=True)
class Searching:
    """The search for iterations, and for those without work; None for a narrowed window, which holds too little."""

    repeating: Future[Iterations | None] | None
    empty: Future[EmptyIterations | None] | None

    @classmethod
    def of(cls, device: DeviceTimeline, window: AnalysisWindow, shared: Shared) -> Searching:
        """Begin it."""
        if window.narrowed:
            return cls(None, None)
        begin, calls, ranges = shared.beside.begin, shared.activity.api_calls.rows, shared.ranges
        return cls(
            repeating=begin(find_iterations, device, calls, ranges, window.whole),
            empty=begin(empty_iterations, device, calls, ranges, shared.layered.host.axis.threads),
        )

    @property
    def iterations(self) -> Iterations | None:
        """Those of the whole work of the device."""
        return None if self.repeating is None else self.repeating.result()

    @property
    def without_work(self) -> EmptyIterations | None:
        """Those in which the device was given nothing to do."""
        return None if self.empty is None else self.empty.result()


@dataclass(frozen=True, slots=True)
class Begun:
    """What follows from the gaps, their causes and the iterations; `inside` marks the operations that the tables count,
    and nothing is drawn where no timeline is asked for."""

    inside: BoolArray
    missing: Future[Missing]
    packing: Future[GapsPacked]
    measuring: Future[tuple[GpuMetrics | None, Utilization]]
    kernels: Future[list[KernelRow]]
    drawing: Future[TimelineLevels | None] | None

    @classmethod
    def of(
        cls,
        device: DeviceTimeline,
        gaps: Gaps,
        ledger: Ledger,
        window: AnalysisWindow,
        split: WindowSplit,
        steps: Steps,
        shared: Shared,
    ) -> Begun:
        """Begin all of it."""
        begin, finest = shared.beside.begin, finest_level(len(shared.activity.devices))
        inside = _inside(device, window)
        return cls(
            inside=inside,
            missing=begin(missing_of, device, shared.activity, shared.unseen, reported=shared.events_dropped),
            packing=begin(pack_gaps, gaps, ledger),
            measuring=begin(_measure, device, gaps, window, inside, split, steps, shared),
            kernels=begin(kernel_rows, device, inside, shared.strings),
            drawing=begin(overview, device, window, gaps, ledger, finest) if shared.settings.timeline else None,
        )

    @property
    def overview(self) -> TimelineLevels | None:
        """The timeline in buckets."""
        return None if self.drawing is None else self.drawing.result()


def _measure(
    device: DeviceTimeline,
    gaps: Gaps,
    window: AnalysisWindow,
    inside: BoolArray,
    split: WindowSplit,
    steps: Steps,
    shared: Shared,
) -> tuple[GpuMetrics | None, Utilization]:
    """What the GPU's own counters say, and how well it was used, by them or by what was launched."""
    measured, metrics = shared.counters.of(device), None
    if measured is not None and window.length_ns:
        subject = Subject(
            device=device,
            calls=shared.activity.api_calls.rows,
            ranges=shared.ranges,
            strings=shared.strings,
            parts=window.parts,
            gaps=Intervals(gaps.start, gaps.end),
            split=split,
            iterations=steps.report,
        )
        metrics = gpu_metrics(measured, subject, shared.settings.thresholds.clock)
    return metrics, utilization(
        device,
        window.parts,
        split,
        inside,
        shared.activity.shapes,
        shared.strings,
        shared.settings,
        measured_sm_active(metrics),
    )


def _inside(device: DeviceTimeline, window: AnalysisWindow) -> BoolArray:
    """The operations that the tables count: all of the device, or those that start inside a narrowed window."""
    if not window.narrowed:
        return np.ones(len(device.operations), dtype=np.bool_)
    return contains(window.parts, device.operations.start)
