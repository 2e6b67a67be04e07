"""Arithmetic per second of a device, by the operations of a step that the user gives, against the published peak."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec.structs import replace

from nsysdiag.iterations.report import median_step
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.messages import UsageError
from nsysdiag.peaks import PRECISIONS, dense_peak
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import NS_PER, format_ns, format_share
from nsysdiag.utilization.facts import FlopRate

# Needs the report alone, so a saved one will do. One number is given for a step of one GPU:
#
# ```
# 1.8e14 operations in a step of 600 ms       300 TFLOP/s      96% of the 312 TFLOP/s of an A100 in BF16
# 1.8e14 operations in a step of 500 ms       360 TFLOP/s      more than the peak: no rate, the number is wrong
# ```

MOST_FLOPS = 1e24
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
        raise UsageError(f"--flops-per-step {text} is no number of operations", hint=_HINT)
    if precision is not None and precision not in PRECISIONS:
        raise UsageError(f"--flops-per-step {text} has no precision that is known", hint=", ".join(PRECISIONS))
    return GivenFlops(float(match[1]), precision)


def with_flops(report: Report, given: str | None) -> Report:
    """The report with the arithmetic of each device that has steps; as it was with None. Raises UsageError where none
    has any, or where the text is no such number."""
    if given is None:
        return report
    flops = parse_flops(given)
    devices = [_with_rate(device, flops) for device in report.devices]
    if all(each.utilization.flops is None for each in devices):
        raise UsageError(
            f"--flops-per-step {given} has no step to be divided by: no whole steps were found in {report.trace.file}",
            hint="put NVTX ranges around the steps and capture several of them",
        )
    return replace(report, devices=devices)


def _with_rate(device: DeviceReport, given: GivenFlops) -> DeviceReport:
    step_ns = median_step(device)
    rate = flop_rate(device, given, step_ns) if step_ns else None
    return replace(device, utilization=replace(device.utilization, flops=rate))


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
    """The precision of nearly all time of matrix products, by the names of the kernels; None where there is none.
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
