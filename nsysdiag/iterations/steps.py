"""The steps of a finished report: number and time of each steady one, and how much the profiler distorts them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.groups import column_from, running_sums
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.iterations.facts import IterationReport, IterationsPacked, StepReference
from nsysdiag.messages import InputError, UsageError
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import format_ns, format_share


class Steps(Struct, frozen=True):
    """Steady steps in order of time: their numbers among all iterations, from 0, and their spans in ns."""

    number: IntArray
    spans: Intervals

    @property
    def length(self) -> IntArray:
        """The ns of each."""
        return self.spans.end - self.spans.start

    def take(self, chosen: IntArray) -> Steps:
        """Those at these places."""
        return Steps(self.number[chosen], self.spans[chosen])

    def nearest(self, ns: float) -> int:
        """The place of the one nearest a length, the first of equals; there is at least one."""
        return int(np.argmin(np.abs(self.length - ns)))


def steady_steps(found: IterationReport) -> Steps | None:
    """All steady steps; None where the report does not hold the time of each. Raises InputError where it is damaged."""
    packed = found.packed
    if packed is None or packed.first_ns is None or packed.each != 1 or not packed.count:
        return None
    steady = np.setdiff1d(np.arange(found.count), found.left_out)
    try:
        spans = _spans(packed, packed.first_ns)
    except ValueError as error:
        raise InputError("the iterations of this report cannot be read: the file is damaged") from error
    return Steps(steady, spans) if len(steady) == packed.count else None


def _spans(packed: IterationsPacked, first: int) -> Intervals:
    """Raises ValueError where the columns are damaged."""
    lengths, apart = (column_from(text, packed.count) for text in (packed.lengths, packed.apart))
    end = running_sums(lengths, first) + running_sums(apart)
    return Intervals(end - lengths, end)


# How much the profiler distorts: the steps of a report compared with a step measured without the profiler.
#
# ```
# without the profiler   |====step====|                 182 ms, which the user measured
# in the trace           |======step======|             200 ms: 1.10 times as long, by up to 18 ms a step
# ```
#
# Needs the report alone, so a saved one will do.

STEP = "step"
NEXT_TO_NOTHING = 0.02
"""Steps of two runs differ by as much."""
MUCH = 0.10
"""From here on times of the host in the trace are not those of a plain run."""


def referenced(report: Report, reference_ns: int | None) -> Report:
    """The report with what the profiler does to a step that takes so long without it; as it was with None. Raises
    UsageError where the report has no steps to compare."""
    if reference_ns is None:
        return report
    found = [(steps, device) for device in report.devices if (steps := median_step(device)) is not None]
    if not found:
        raise UsageError(
            f"--reference-step {format_ns(reference_ns)} has nothing to be compared with: no whole steps were found in "
            f"{report.trace.file}",
            hint="put NVTX ranges around the steps and capture several of them",
        )
    measured, device = max(found, key=lambda each: (each[0], each[1].key))
    reference = StepReference(
        reference_ns=reference_ns,
        measured_ns=measured,
        device=device.key,
        factor=round(measured / reference_ns, 6),
        sentence=_sentence(measured, reference_ns),
    )
    return replace(report, step_reference=reference)


def median_step(device: DeviceReport) -> int | None:
    """The median of a device's steady steps in ns; None where what repeats are layers, or parts of a loop that does not
    close."""
    found = device.iterations
    if found is None or not found.steady or not found.closed or found.kind != STEP:
        return None
    return found.p50_ns


def _sentence(measured: int, reference: int) -> str:
    times = f"A step takes {format_ns(measured)} in this trace and {format_ns(reference)} without the profiler"
    more = measured - reference
    if abs(more) <= NEXT_TO_NOTHING * reference:
        return f"{times}: the profiler hardly distorts it."
    share = format_share(abs(more), reference)
    if more < 0:
        return (
            f"{times}, which is {share} less here. A profiler makes nothing faster: the reference is of other steps, "
            "or of a machine in another state, and says nothing of this trace."
        )
    said = f"{times}, which is {share} more here: up to {format_ns(more)} of each step may be the profiler's."
    if more < MUCH * reference:
        return said
    return (
        f"{said} It lengthens host calls and launches, hardly kernels and copies. Idle time caused by the host "
        "may be less in a plain run."
    )
