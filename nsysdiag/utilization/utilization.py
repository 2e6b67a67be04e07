"""Utilization of one device: what a dashboard shows, and what the SMs did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field, structs

from nsysdiag.arrays.buckets import Periods, in_periods, taken
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, intersect, union
from nsysdiag.config.settings import Settings, Thresholds, UtilizationThresholds
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, LaunchShapes
from nsysdiag.fields import Sentence
from nsysdiag.kernels.limits import Residency, kernel_shapes, residency
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.messages import UsageError
from nsysdiag.units import NS_PER, format_ns, format_share
from nsysdiag.utilization.facts import SmEstimate, Utilization, UtilizationSeries

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# What a utilization counter would have shown for a device, by time and by polling.
#
# NVML documents `utilization.gpu` as the percentage of time in the past sample period in which one or more kernels
# executed. The period is 1/6 s to 1 s, by product. By time, that is kernel time / window. A poll for any work since the
# last poll shows much more for short kernels:
#
#     kernels    |#        |#        |#        |      1 ms every 33 ms: 3% of the time
#     polls      |    1    |    1    |    1    |      100% of the periods

MOST_PERIODS, MOST_VALUES = 1 << 20, 2000
SHORTEST_NS, LONGEST_NS = NS_PER["ms"], NS_PER["s"]


class Dashboard(Struct, frozen=True):
    """Both series; the share of periods in which a kernel ran, each period weighed by its time inside the window."""

    by_time: UtilizationSeries
    by_period: UtilizationSeries
    period_share: float
    notes: list[Sentence]


def check_periods(settings: UtilizationThresholds) -> None:
    """Raises UsageError for periods that no counter has: from 1 ms to 1 s it may be."""
    for name in ("sample_ns", "poll_ns"):
        ns = getattr(settings, name)
        if not SHORTEST_NS <= ns <= LONGEST_NS:
            hint = (
                f"give a period from {format_ns(SHORTEST_NS)} to {format_ns(LONGEST_NS)}; NVML samples 1 to 6 a second"
            )
            raise UsageError(f"a utilization period of {format_ns(ns)} ({name}) cannot be", hint=hint)


def dashboard(kernels: Intervals, parts: Intervals, settings: UtilizationThresholds) -> Dashboard | None:
    """`kernels` is the set of time inside `parts` in which a kernel or graph ran; None if `parts` is empty."""
    if not len(parts):
        return None
    samples = in_periods(kernels, parts, settings.sample_ns, MOST_PERIODS)
    polls = in_periods(kernels, parts, settings.poll_ns, MOST_PERIODS)
    polled = Periods(polls.start, polls.length, polls.inside, np.where(polls.covered > 0, polls.inside, 0))
    return Dashboard(
        by_time=_series(samples),
        by_period=_series(polled),
        period_share=round(int(polled.covered.sum()) / int(polled.inside.sum()), 6),
        notes=_notes(samples, settings.sample_ns),
    )


def _series(periods: Periods) -> UtilizationSeries:
    inside = periods.inside > 0
    whole = periods.inside == periods.length
    share = _shares(periods.covered, periods.inside)[whole if whole.any() else inside]
    together = 1
    while -(-len(inside) // together) > MOST_VALUES:
        together *= 2
    steps = periods.together(together)
    values = np.round(_shares(steps.covered, steps.inside), 4).tolist()
    return UtilizationSeries(
        period_ns=periods.length,
        periods=int(inside.sum()),
        lowest=round(float(share.min()), 6),
        highest=round(float(share.max()), 6),
        start_ns=steps.start,
        step_ns=steps.length,
        values=[value if held else None for value, held in zip(values, (steps.inside > 0).tolist(), strict=True)],
    )


def _shares(covered: IntArray, inside: IntArray) -> FloatArray:
    return covered / np.maximum(inside, 1)


def _notes(samples: Periods, asked_ns: int) -> list[Sentence]:
    notes: list[Sentence] = []
    total = int(samples.inside.sum())
    if total < samples.length:
        notes.append(
            f"the window holds {format_ns(total)}, less than one sample of a counter ({format_ns(samples.length)}): "
            "a real one shows time outside of the window as well"
        )
    if samples.length > asked_ns:
        notes.append(f"the window is long: utilization is sampled every {format_ns(samples.length)}")
    return notes


# The one sentence about utilization: small rules in order, the first that holds.

ESTIMATE, MEASURED = "estimate", "gpu-metrics"


class UtilizationInput(Struct, frozen=True):
    """The input of the rules. `active` is SM activity over the window, `at_most` its upper bound if the estimate leaves
    out kernels; both None if unknown. `source` is their source."""

    split: WindowSplit
    dashboard: Dashboard | None
    active: float | None = None
    at_most: float | None = None
    source: str | None = None
    settings: UtilizationThresholds = field(default_factory=UtilizationThresholds)
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def utilization(self) -> float:
        """The share of the window in which a kernel ran, as the report has it; only where there is a window."""
        return round(self.split.kernel_ns / self.split.window_ns, 6)

    @property
    def shown(self) -> str:
        """The same as text."""
        return format_share(self.split.kernel_ns, self.split.window_ns)

    def share(self, ns: int) -> str:
        """Some of the window as text."""
        return format_share(ns, self.split.window_ns)


def _sms(given: UtilizationInput, active: float, least: str = "") -> str:
    estimated = "an estimated " if given.source == ESTIMATE else ""
    return f"{estimated}{least}{format_share(active, 1)} of the SMs"


def headline(given: UtilizationInput) -> str:
    """What a dashboard shows, and the truth that matters most: the first that holds of the rules, in this order."""
    for rule in (_nothing, _copies, _communication, _few_sms, _polled, _idle, _known):
        found = rule(given)
        if found is not None:
            return found
    return f"In this window a dashboard would show {given.shown}; this trace cannot tell how many SMs had work."


def _nothing(given: UtilizationInput) -> str | None:
    return None if given.split.window_ns else "No GPU work in this window."


def _copies(given: UtilizationInput) -> str | None:
    split = given.split
    if split.exposed_copy_ns < split.idle_ns or split.exposed_copy_ns < given.thresholds.copies * split.window_ns:
        return None
    copies = given.share(split.exposed_copy_ns)
    return f"nvidia-smi would show {given.shown}; copies alone keep the GPU busy {copies} of the time."


def _communication(given: UtilizationInput) -> str | None:
    split = given.split
    if split.exposed_comm_ns < given.thresholds.communication * split.window_ns:
        return None
    waits, computes = given.share(split.exposed_comm_ns), given.share(split.compute_ns)
    return (
        f"{given.shown} on a dashboard, but the GPU computes {computes} of the time: {waits} is exposed communication."
    )


def _few_sms(given: UtilizationInput) -> str | None:
    """The most that may have been counts: where part of the kernels is not known, that may have filled the chip."""
    limits = given.settings
    if given.at_most is None or given.utilization < limits.hollow_utilization:
        return None
    if given.at_most >= limits.hollow_activity:
        return None
    return f"{given.shown} on a dashboard, but {_sms(given, given.at_most)} have work."


def _polled(given: UtilizationInput) -> str | None:
    if given.dashboard is None:
        return None
    polled = given.dashboard.period_share
    limits = given.settings
    if polled - given.utilization < limits.poll_difference or polled < limits.poll_factor * given.utilization:
        return None
    every = format_ns(given.dashboard.by_period.period_ns)
    return f"{format_share(polled, 1)} by polling every {every}, {given.shown} of the time."


def _idle(given: UtilizationInput) -> str | None:
    idle = given.split.idle_ns
    if idle < given.thresholds.busy * given.split.window_ns:
        return None
    return f"In this window a dashboard would show {given.shown}; the GPU is idle {given.share(idle)} of the time."


def _known(given: UtilizationInput) -> str | None:
    if given.active is None or given.at_most is None:
        return None
    least = f"{format_share(given.active, 1)} to " if given.at_most != given.active else ""
    sms = _sms(given, given.at_most, least)
    return f"In this window a dashboard would show {given.shown}, with work on {sms} on average."


# How many of the SMs had work, over time: an estimate from the launch shapes of the kernels.
#
#     stream 7   [---- 54 of 108 SMs ----)                      0.5
#     stream 9          [---- 54 of 108 SMs ----)               0.5
#     SMs        0.5    1.0              0.5                     concurrent kernels add up, to all SMs at most
#
# The estimate tends to be too high: it assumes that concurrent kernels use different SMs, and that every SM of a full
# wave works until the wave ends. It is too low if the blocks of the last wave are shorter than the others. A grid with
# a full wave counts as at least half of the SMs; a lower value means grids with fewer blocks than SMs.

WHOLE = 1_000_000_000  # all SMs, in parts: whole numbers add up to the same in any order
NO_CHIP = (
    "TARGET_INFO_GPU lacks the number of SMs of this GPU and their limits; a capture with --gpu-metrics-devices=all "
    "measures SM activity"
)
NO_SHAPE = (
    "some kernel time has no launch shape that fits the GPU, as in graphs traced as a whole (--cuda-graph-trace=node "
    "records each kernel)"
)


LEAST_COVERED = 0.5
"""The share of the kernels' time that must have a known shape: little of it says nothing about the GPU."""


class MeasuredSm(Struct, frozen=True):
    """The mean share of SMs with work inside the window, from GPU metrics."""

    active_share: float


def estimate(device: DeviceTimeline, split: WindowSplit, parts: Intervals, found: Residency | None) -> SmEstimate:
    """The SM activity of a device over its window, `parts`; `found` is the residency of each launch shape."""
    if split.window_ns == 0:
        return _estimate(split)
    if split.kernel_ns == 0:
        return _estimate(split, 0.0, 0.0, 0.0)
    if found is None:
        return _estimate(split, covered=0.0, missing=NO_CHIP)
    operations = device.operations
    kernel = (operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)
    rows = slice(None) if kernel.all() else np.flatnonzero(kernel)
    spans, shape = Intervals(operations.start[rows], operations.end[rows]), operations.shape[rows]
    active, resident = _weights(found.sm_share, shape), _weights(found.resident_share, shape)
    if np.all(active >= 0):
        ns, resident_ns = taken(spans, [active, np.maximum(resident, 0)], WHOLE, parts)
        return _estimate(split, ns, resident_ns if np.all(resident >= 0) else None, ns, 1.0)
    return _partly(spans, active, resident, split, parts)


def while_computing(device: DeviceTimeline, parts: Intervals, found: Residency | None) -> float | None:
    """The mean share of SMs with work while kernels ran that are no communication, as far as their shapes are known."""
    operations = device.operations
    computes = (operations.category == Category.KERNEL) & ~device.communication & (operations.shape >= 0)
    if found is None or not computes.any():
        return None
    active = _weights(found.sm_share, operations.shape[computes])
    known = active >= 0
    spans = Intervals(operations.start[computes][known], operations.end[computes][known])
    ran_ns = intersect(parts, union(spans)).total()
    (ns,) = taken(spans, [active[known]], WHOLE, parts)
    return min(round(ns / WHOLE / ran_ns, 6), 1.0) if ran_ns else None


def _weights(share: FloatArray, shape: IntArray) -> IntArray:
    """The share of each kernel in parts of WHOLE; -1 where it is not known."""
    known = np.where(np.isnan(share), -1, np.round(np.clip(np.nan_to_num(share), 0, 1) * WHOLE)).astype(np.int32)
    return np.append(known, np.int32(-1))[shape]


def _partly(spans: Intervals, active: IntArray, resident: IntArray, split: WindowSplit, parts: Intervals) -> SmEstimate:
    """What the kernels of known shape do at least, and at most if the others fill the GPU."""
    unknown = active < 0
    least, most = np.where(unknown, 0, active), np.where(unknown, WHOLE, active)
    ns, resident_ns, most_ns = taken(spans, [least, np.maximum(resident, 0), most], WHOLE, parts)
    covered_ns = intersect(parts, union(spans[~unknown])).total()
    covered = round(covered_ns / split.kernel_ns, 6)
    if covered < LEAST_COVERED:
        return _estimate(split, covered=covered, missing=NO_SHAPE)
    held = resident_ns if np.all(resident[~unknown] >= 0) else None
    return _estimate(split, ns, held, most_ns, covered, NO_SHAPE)


def _estimate(
    split: WindowSplit,
    active: float | None = None,
    resident: float | None = None,
    most: float | None = None,
    covered: float | None = None,
    missing: str = "",
) -> SmEstimate:
    """From how long the SMs were taken, in ns of WHOLE, to shares of the window and of the time with kernels."""

    def share(taken_ns: float | None, of_ns: int) -> float | None:
        if taken_ns is None or of_ns == 0:
            return None
        return min(round(taken_ns / WHOLE / of_ns, 6), 1.0)

    return SmEstimate(
        sm_active_share=share(active, split.window_ns),
        resident_share=share(resident, split.window_ns),
        sm_active_running=share(active, split.kernel_ns),
        resident_running=share(resident, split.kernel_ns),
        sm_active_at_most=share(most, split.window_ns),
        covered_share=covered,
        missing=missing,
    )


def utilization(
    device: DeviceTimeline,
    parts: Intervals,
    split: WindowSplit,
    inside: BoolArray,
    shapes: LaunchShapes,
    strings: Strings,
    settings: Settings,
    measured: MeasuredSm | None = None,
) -> Utilization:
    """`parts` is the window, `inside` marks the operations that tables count. Measured values take precedence over the
    estimate, which is reported too."""
    shown = dashboard(split.kernels, parts, settings.utilization)
    found = residency(shapes, device.gpu)
    estimated = estimate(device, split, parts, found)
    computing = estimated.sm_active_running
    enough = estimated.covered_share is not None and estimated.covered_share >= LEAST_COVERED
    if enough and (device.communication.any() or estimated.covered_share != 1.0):
        computing = while_computing(device, parts, found)
    estimated = structs.replace(estimated, sm_active_computing=computing)
    given = _input(split, shown, estimated, measured, settings)
    return Utilization(
        util_time_share=_share(split.kernel_ns, split),
        busy_share=_share(split.busy_ns, split),
        compute_share=_share(split.compute_ns, split),
        exposed_comm_share=_share(split.exposed_comm_ns, split),
        exposed_copy_share=_share(split.exposed_copy_ns, split),
        idle_share=_share(split.idle_ns, split),
        util_period_share=None if shown is None else shown.period_share,
        by_time=None if shown is None else shown.by_time,
        by_period=None if shown is None else shown.by_period,
        sm_active_share=given.active,
        sm_source=given.source,
        estimate=estimated,
        efficiency=estimated.sm_active_running if measured is None else _efficiency(measured, split),
        sentence=headline(given),
        kernels=kernel_shapes(device, inside, shapes, found, strings),
        notes=[] if shown is None else shown.notes,
    )


def _input(
    split: WindowSplit, shown: Dashboard | None, estimated: SmEstimate, measured: MeasuredSm | None, settings: Settings
) -> UtilizationInput:
    active, most = estimated.sm_active_share, estimated.sm_active_at_most
    source = None if active is None else ESTIMATE
    if measured is not None:
        active = most = round(measured.active_share, 6)
        source = MEASURED
    return UtilizationInput(split, shown, active, most, source, settings.utilization, settings.thresholds)


def _efficiency(measured: MeasuredSm, split: WindowSplit) -> float | None:
    """Measured SM activity of each unit of utilization; above 1 where the counter saw what the trace did not."""
    return round(measured.active_share * split.window_ns / split.kernel_ns, 6) if split.kernel_ns else None


def _share(ns: int, split: WindowSplit) -> float | None:
    return round(ns / split.window_ns, 6) if split.window_ns else None
