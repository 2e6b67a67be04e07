"""How much the profiler distorts: the steps of a report compared with a step measured without the profiler.

```
without the profiler   |====step====|                 182 ms, which the user measured
in the trace           |======step======|             200 ms: 1.10 times as long, by up to 18 ms a step
```

Needs the report alone, so a saved one will do.
"""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag.iterations.facts import StepReference
from nsysdiag.messages import UsageError
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import format_ns, format_share

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
    found = [(steps, device) for device in report.devices if (steps := _median_step(device)) is not None]
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


def _median_step(device: DeviceReport) -> int | None:
    """None where what repeats are layers, or parts of a loop that does not close."""
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
