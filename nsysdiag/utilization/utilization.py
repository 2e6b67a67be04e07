"""Utilization of one device: what a dashboard shows, and what the SMs did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct, field, structs

from nsysdiag.arrays.buckets import Periods, in_periods, taken
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, common_ns, union
from nsysdiag.config.settings import Settings, Thresholds, UtilizationThresholds
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, LaunchShapes
from nsysdiag.fields import Sentence
from nsysdiag.iterations.report import median_step
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.kernels.limits import Residency, kernel_shapes, residency
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.messages import UsageError
from nsysdiag.peaks import PRECISIONS, dense_peak
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import NS_PER, format_ns, format_share
from nsysdiag.utilization.facts import FlopRate, SmEstimate, Utilization, UtilizationSeries

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
"""Periods of a counter that are computed; MOST_VALUES: values of its series in a report. A window of more than two
days, at six periods a second, has longer periods. More values make the report larger, fewer hide short changes."""
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
            possible = f"give a period from {format_ns(SHORTEST_NS)} to {format_ns(LONGEST_NS)}"
            hint = f"{possible}; NVML samples 1 to 6 a second"
            raise UsageError(f"a utilization period of {format_ns(ns)} ({name}) cannot be", hint=hint)


def dashboard(kernels: Intervals, parts: Intervals, settings: UtilizationThresholds) -> Dashboard | None:
    """`kernels` is the set of time inside `parts` in which a kernel or graph ran; None if `parts` is empty."""
    if not len(parts):
        return None
    samples = in_periods(kernels, parts, settings.sample_ns, MOST_PERIODS)
    by_time, notes = _series(samples), _notes(samples, settings.sample_ns)
    del samples
    polls = in_periods(kernels, parts, settings.poll_ns, MOST_PERIODS)
    polled = Periods(polls.start, polls.length, polls.inside, np.where(polls.covered > 0, polls.inside, 0))
    return Dashboard(
        by_time=by_time,
        by_period=_series(polled),
        period_share=round(int(polled.covered.sum()) / int(polled.inside.sum()), 6),
        notes=notes,
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


# The one sentence about utilization.

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


def headline(given: UtilizationInput) -> str:
    """What a dashboard shows, and the truth that matters most."""
    return next(_truths(given)) if given.split.window_ns else "No GPU work in this window."


def _truths(given: UtilizationInput) -> Iterator[str]:
    """What holds of a window in which work ran, what matters most first."""
    split, limits, polled = given.split, given.settings, given.dashboard.period_share if given.dashboard else 0.0
    shown, compute, comm, copies, idle = (
        format_share(ns, split.window_ns)
        for ns in (split.kernel_ns, split.compute_ns, split.exposed_comm_ns, split.exposed_copy_ns, split.idle_ns)
    )
    window, would = split.window_ns, f"In this window a dashboard would show {shown}"
    utilization = round(split.kernel_ns / window, 6)
    if split.exposed_copy_ns >= max(split.idle_ns, given.thresholds.copies * window):
        yield f"nvidia-smi would show {shown}; copies alone keep the GPU busy {copies} of the time."
    if split.exposed_comm_ns >= given.thresholds.communication * window:
        yield f"{shown} on a dashboard, but the GPU computes {compute} of the time: {comm} is exposed communication."
    # The most that may have been counts: the part of the kernels that is not known may have filled the chip.
    if (
        given.at_most is not None
        and utilization >= limits.hollow_utilization
        and given.at_most < limits.hollow_activity
    ):
        yield f"{shown} on a dashboard, but {_sms(given, given.at_most)} have work."
    above = polled - utilization >= limits.poll_difference and polled >= limits.poll_factor * utilization
    if given.dashboard is not None and above:
        every = format_ns(given.dashboard.by_period.period_ns)
        yield f"{format_share(polled, 1)} by polling every {every}, {shown} of the time."
    if split.idle_ns >= given.thresholds.busy * window:
        yield f"{would}; the GPU is idle {idle} of the time."
    if given.active is not None and given.at_most is not None:
        least = f"{format_share(given.active, 1)} to " if given.at_most != given.active else ""
        yield f"{would}, with work on {_sms(given, given.at_most, least)} on average."
    yield f"{would}; this trace cannot tell how many SMs had work."


def _sms(given: UtilizationInput, active: float, least: str = "") -> str:
    estimated = "an estimated " if given.source == ESTIMATE else ""
    return f"{estimated}{least}{format_share(active, 1)} of the SMs"


# How many of the SMs had work, over time: an estimate from the launch shapes of the kernels.
#
#     stream 7   [---- 54 of 108 SMs ----)                      0.5
#     stream 9          [---- 54 of 108 SMs ----)               0.5
#     SMs        0.5    1.0              0.5                     concurrent kernels add up, to all SMs at most
#
# The estimate tends to be too high: it assumes that concurrent kernels use different SMs, and that every SM of a full
# wave works until the wave ends. It is too low if the blocks of the last wave are shorter than the others. A grid with
# a full wave counts as at least half of the SMs; a lower value means grids with fewer blocks than SMs.

WHOLE = 1_000_000_000
"""All SMs of a GPU, in parts: whole numbers add up to the same in any order. The number fits 32 bits, and a part of it
is smaller than any share that is shown."""
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
    """The mean share of SMs with work while kernels other than communication ran, as far as their shapes are known."""
    operations = device.operations
    computes = (operations.category == Category.KERNEL) & ~device.communication & (operations.shape >= 0)
    if found is None or not computes.any():
        return None
    active = _weights(found.sm_share, operations.shape[computes])
    known = active >= 0
    spans = Intervals(operations.start[computes][known], operations.end[computes][known])
    ran_ns = common_ns(parts, union(spans))
    (ns,) = taken(spans, [active[known]], WHOLE, parts)
    return min(round(ns / WHOLE / ran_ns, 6), 1.0) if ran_ns else None


def _weights(share: FloatArray, shape: IntArray) -> IntArray:
    """The share of each kernel in parts of WHOLE; -1 if it is not known."""
    known = np.where(np.isnan(share), -1, np.round(np.clip(np.nan_to_num(share), 0, 1) * WHOLE)).astype(np.int32)
    return np.append(known, np.int32(-1))[shape]


def _partly(spans: Intervals, active: IntArray, resident: IntArray, split: WindowSplit, parts: Intervals) -> SmEstimate:
    """What the kernels of known shape do at least, and at most if the others fill the GPU."""
    unknown = active < 0
    least, most = np.where(unknown, 0, active), np.where(unknown, WHOLE, active)
    ns, resident_ns, most_ns = taken(spans, [least, np.maximum(resident, 0), most], WHOLE, parts)
    covered_ns = common_ns(parts, union(spans[~unknown]))
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
    measured: float | None = None,
) -> Utilization:
    """`parts` is the window, `inside` marks the operations that tables count. `measured` is
    the mean share of SMs with work by GPU metrics: it takes precedence over the estimate, which is reported too."""
    shown = dashboard(split.kernels, parts, settings.utilization)
    found = residency(shapes, device.gpu)
    estimated = estimate(device, split, parts, found)
    computing = estimated.sm_active_running
    enough = estimated.covered_share is not None and estimated.covered_share >= LEAST_COVERED
    if enough and (device.communication.any() or estimated.covered_share != 1.0):
        computing = while_computing(device, parts, found)
    estimated = structs.replace(estimated, sm_active_computing=computing)
    given = _input(split, shown, estimated, measured, settings)
    times = {"util_time": split.kernel_ns, "busy": split.busy_ns, "idle": split.idle_ns, "compute": split.compute_ns}
    times |= {"exposed_comm": split.exposed_comm_ns, "exposed_copy": split.exposed_copy_ns}
    shares: dict[str, Any] = {f"{name}_share": round(ns / max(split.window_ns, 1), 6) for name, ns in times.items()}
    made = Utilization(
        **(shares if split.window_ns else {}),
        sm_active_share=given.active,
        sm_source=given.source,
        estimate=estimated,
        efficiency=estimated.sm_active_running if measured is None else _efficiency(measured, split),
        sentence=headline(given),
        kernels=kernel_shapes(device, inside, shapes, found, strings),
    )
    if shown is None:
        return made
    series = {"by_time": shown.by_time, "by_period": shown.by_period}
    return structs.replace(made, **series, util_period_share=shown.period_share, notes=shown.notes)


def _input(
    split: WindowSplit, shown: Dashboard | None, estimated: SmEstimate, measured: float | None, settings: Settings
) -> UtilizationInput:
    active, most = estimated.sm_active_share, estimated.sm_active_at_most
    source = None if active is None else ESTIMATE
    if measured is not None:
        active = most = round(measured, 6)
        source = MEASURED
    return UtilizationInput(split, shown, active, most, source, settings.utilization, settings.thresholds)


def _efficiency(measured: float, split: WindowSplit) -> float | None:
    """Measured SM activity of each unit of utilization; above 1 if the counter saw what the trace did not."""
    return round(measured * split.window_ns / split.kernel_ns, 6) if split.kernel_ns else None


# Arithmetic per second of a device, by the operations of a step that the user gives, against the published peak.

# Needs the report alone, so a saved one will do. One number is given for a step of one GPU:
#
# ```
# 1.8e14 operations in a step of 600 ms       300 TFLOP/s      96% of the 312 TFLOP/s of an A100 in BF16
# 1.8e14 operations in a step of 500 ms       360 TFLOP/s      more than the peak: no rate, the number is wrong
# ```

MOST_FLOPS = 1e24
"""Operations of a step: an argument of so many or more is refused. At 10,000 TFLOP/s, the highest peak in
`nsysdiag/peaks.py`, they would take three years."""
LEADS = 0.9
"""From this share of the time of matrix products on, those of one peak are taken for all arithmetic."""
_GIVEN = re.compile(r"\s*(\d+(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(?::\s*(\w+)\s*)?", re.IGNORECASE)
_PRODUCTS = re.compile(r"(\w+) matrix products\b")
_HINT = "write it as 1.2e15, or with the precision as 1.2e15:bf16: operations of one GPU in one step"


class GivenFlops(NamedTuple):
    """Operations of one GPU in a step, and their precision, None to find it."""

    operations: float
    precision: str | None


def parse_flops(text: str) -> GivenFlops:
    """From `1.2e15` or `1.2e15:bf16`. Raises UsageError."""
    match = _GIVEN.fullmatch(text)
    precision = match[2].lower() if match and match[2] else None
    if match is None or not 0 < float(match[1]) < MOST_FLOPS:
        raise UsageError(f"--flops-per-step {text} is not a number of operations", hint=_HINT)
    if precision is not None and precision not in PRECISIONS:
        raise UsageError(f"--flops-per-step {text} has no precision that is known", hint=", ".join(PRECISIONS))
    return GivenFlops(float(match[1]), precision)


def with_flops(report: Report, given: str | None) -> Report:
    """The report with the arithmetic of each device that has steps; as it was with None. Raises UsageError if none
    has any, or if the text is not such a number."""
    if given is None:
        return report
    flops = parse_flops(given)
    rates = [flop_rate(each, flops, step_ns) if (step_ns := median_step(each)) else None for each in report.devices]
    devices = [
        structs.replace(device, utilization=structs.replace(device.utilization, flops=rate))
        for device, rate in zip(report.devices, rates, strict=True)
    ]
    if all(each.utilization.flops is None for each in devices):
        raise UsageError(
            f"--flops-per-step {given} has no step to be divided by: no whole steps were found in {report.trace.file}",
            hint="put NVTX ranges around the steps and capture several of them",
        )
    return structs.replace(report, devices=devices)


def flop_rate(device: DeviceReport, given: GivenFlops, step_ns: int) -> FlopRate:
    """The rate in a step, and its share of the peak in the precision given, or else found."""
    precision = given.precision or precision_of(device.kernel_families, device.name)
    peak = None if precision is None else dense_peak(device.name, precision)
    rate = given.operations / step_ns * NS_PER["s"]
    impossible = peak is not None and rate > peak
    return FlopRate(
        flops_per_step=given.operations,
        step_ns=step_ns,
        precision=precision or "",
        peak_flops_per_second=peak,
        flops_per_second=None if impossible else rate,
        share=None if impossible or peak is None else round(rate / peak, 6),
        refused=impossible,
        sentence=_sentence(device.name, rate, step_ns, precision, peak),
    )


def precision_of(families: list[FamilyTime], gpu: str) -> str | None:
    """The precision of nearly all time of matrix products, by the names of the kernels; None if there is none.
    Precisions of one peak count together."""
    ns: dict[float | None, int] = {}
    longest: dict[float | None, tuple[int, str]] = {}
    for row in families:
        if "matrix products" not in row.family:
            continue
        match = _PRODUCTS.match(row.family)
        precision = match[1].lower() if match else ""
        peak = dense_peak(gpu, precision)
        ns[peak] = ns.get(peak, 0) + row.total_ns
        longest[peak] = max(longest.get(peak, (0, "")), (row.total_ns, precision))
    leading = max(ns, key=lambda peak: ns[peak], default=None)
    if leading is None or ns[leading] < LEADS * sum(ns.values()):
        return None
    return longest[leading][1] or None


def tera(rate: float) -> str:
    """`412 TFLOP/s`."""
    return f"{rate / 1e12:,.3g} TFLOP/s" if rate < 1e15 else f"{rate / 1e12:,.0f} TFLOP/s"


def _sentence(gpu: str, rate: float, step_ns: int, precision: str | None, peak: float | None) -> str:
    done = f"The given operations in a step of {format_ns(step_ns)} are {tera(rate)}"
    if precision is None:
        return f"{done}. Their precision is not known: give it, as --flops-per-step 1.2e15:bf16."
    if peak is None:
        return f"{done}. The dense peak of this GPU in {precision.upper()} is not known."
    of_peak = f"{tera(peak)}, the published dense peak in {precision.upper()}"
    if rate <= peak:
        return f"{done}: {format_share(rate / peak, 1)} of {of_peak}."
    return (
        f"{done}, more than {of_peak}. The number, the precision or the step is wrong: no share is given. It counts "
        "the operations of one GPU in one step, a multiplication and an addition as two."
    )
