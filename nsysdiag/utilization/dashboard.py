"""What a utilization counter would have shown for a device, by time and by polling.

NVML documents `utilization.gpu` as the percentage of time in the past sample period in which one or more kernels
executed. The period is 1/6 s to 1 s, by product. By time, that is kernel time / window. A poll for any work since the
last poll shows much more for short kernels:

    kernels    |#        |#        |#        |      1 ms every 33 ms: 3% of the time
    polls      |    1    |    1    |    1    |      100% of the periods
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.buckets import Periods, in_periods
from nsysdiag.arrays.intervals import FloatArray, IntArray, Intervals
from nsysdiag.config.settings import UtilizationThresholds
from nsysdiag.errors import UsageError
from nsysdiag.units import NS_PER, format_ns
from nsysdiag.utilization.facts import UtilizationSeries

MOST_PERIODS, MOST_VALUES = 1 << 20, 2000
SHORTEST_NS, LONGEST_NS = NS_PER["ms"], NS_PER["s"]


class Dashboard(Struct, frozen=True):
    """Both series; the share of periods in which a kernel ran, each period weighed by its time inside the window."""

    by_time: UtilizationSeries
    by_period: UtilizationSeries
    period_share: float
    notes: list[str]


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


def _notes(samples: Periods, asked_ns: int) -> list[str]:
    notes = []
    total = int(samples.inside.sum())
    if total < samples.length:
        notes.append(
            f"the window holds {format_ns(total)}, less than one sample of a counter ({format_ns(samples.length)}): "
            "a real one shows time outside of the window as well"
        )
    if samples.length > asked_ns:
        notes.append(f"the window is long: utilization is sampled every {format_ns(samples.length)}")
    return notes
