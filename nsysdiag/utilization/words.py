"""What is to be said about the utilization of a device, in sentences; nothing without a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport
    from nsysdiag.utilization.facts import Utilization

ESTIMATE = "estimate"
METHOD = (
    "By time follows NVML's utilization.gpu: the share of a sample period in which at least one kernel was executing, "
    "whatever its size. Copies do not count. By polling is the share of short periods in which any kernel ran. Both "
    "count only the captured programs."
)
ESTIMATED = (
    "Estimated from launch shapes: the blocks that an SM holds, by warps, blocks, registers and shared memory, and the "
    "waves of a grid. The estimate assumes equal waves, evenly distributed blocks, and concurrent kernels on different "
    "SMs. The real SM activity may be lower."
)


def utilization_sentences(device: DeviceReport) -> list[str]:
    """The headline, both ways to read a dashboard, and the SMs."""
    found = device.utilization
    if found.util_time_share is None:
        return []
    lines = [found.sentence] if found.sentence else []
    by_time, by_period = found.by_time, found.by_period
    if by_time is not None and by_period is not None:
        spread = f"{percent_of(by_time.lowest)} to {percent_of(by_time.highest)}"
        samples = f" (samples of {format_ns(by_time.period_ns)}: {spread})" if by_time.lowest < by_time.highest else ""
        polled = f"by polling every {format_ns(by_period.period_ns)} {percent_of(found.util_period_share)}"
        rest = f"busy {percent_of(found.busy_share)}, computing {percent_of(found.compute_share)}"
        lines.append(f"Utilization by time {percent_of(found.util_time_share)}{samples}, {polled}; {rest}.")
    return lines + sm_sentences(found)


def percent_of(share: float | None) -> str:
    """A share as text, a dash where it is not known."""
    return "–" if share is None else format_share(share, 1)


def sm_sentences(found: Utilization) -> list[str]:
    """What is known about SM activity, or why nothing is; nothing where no kernel ran."""
    if not found.util_time_share:
        return []
    estimate = found.estimate
    if found.sm_source is None:
        return [f"SM activity is unknown: {estimate.missing}."] if estimate.missing else []
    if found.sm_source != ESTIMATE:
        beside = f"; launch shapes allow {percent_of(estimate.sm_active_share)}" if estimate.sm_active_share else ""
        return [f"SM activity {percent_of(found.sm_active_share)}, from GPU metrics{beside}."]
    least, most = estimate.sm_active_share, estimate.sm_active_at_most
    bounds = percent_of(least) if least == most else f"{percent_of(least)} to {percent_of(most)}"
    text = (
        f"SM activity {bounds}, an estimate from launch shapes: while a kernel runs, "
        f"{percent_of(estimate.sm_active_running)} of the SMs have work"
    )
    filled = f"the blocks fill {percent_of(estimate.resident_running)} of the capacity of all SMs"
    text += "." if estimate.resident_running is None else f", and {filled}."
    covered = f"It covers {percent_of(estimate.covered_share)} of the kernels' time: {estimate.missing}."
    return [text, covered] if estimate.missing else [text]


def real_note(found: Utilization) -> str:
    """The line below the figure of a dashboard: SM activity if known, else the figure of a poll."""
    if found.sm_active_share is not None and found.util_time_share:
        source = "estimated" if found.sm_source == ESTIMATE else "measured"
        return f"{percent_of(found.sm_active_share)} of SMs, {source}"
    return "" if found.util_period_share is None else f"{percent_of(found.util_period_share)} by polling"
