"""Budgets on one NVTX range: the gaps inside it, by the gap groups of a report.

A gap is inside a range if the range was open on the thread that launched the next operation. Gap groups have the
largest cause of a gap, so a cause counts whole gaps here. Shares are of the whole window.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from nsysdiag.ci.measuring import UnmeasurableError, require_evidence, units_of
from nsysdiag.ci.names import COUNT, NS, Measure
from nsysdiag.gap_groups.keys import normal_range
from nsysdiag.report import DeviceReport, Report, SignatureRow

NAMES = "idle_ns, idle_share, gap_count, ledger.CAUSE and ledger.CAUSE_share"


def fits_ranges(measure: Measure) -> bool:
    """Do the gaps inside a range show it?"""
    return measure.path in (("idle_ns",), ("gap_count",)) or measure.path[0] == "ledger"


def require_range(report: Report, name: str) -> None:
    """Raise UnmeasurableError where no device has a gap inside such a range: the name may be a wrong one."""
    paths = [each for device in report.devices for row in device.signatures for each in row.nvtx]
    if any(_is(each, name) for each in paths):
        return
    missing = any(each.id == "nvtx" and not each.available for each in report.trace.capabilities)
    if missing:
        raise UnmeasurableError("the trace has no NVTX ranges: --trace=nvtx brings those of the program")
    near = get_close_matches(name, paths, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    raise UnmeasurableError(f"none of its gap groups is in an NVTX range '{name}'{meant}")


def value_between(
    report: Report, device: DeviceReport, measure: Measure, name: str, *, per_iteration: bool
) -> tuple[float, float]:
    """The lowest and the highest possible value: a report holds the gap groups with most idle time, and the rest may be
    inside the range too. Raises UnmeasurableError."""
    require_evidence(report, measure)
    inside = [row for row in device.signatures if any(_is(each, name) for each in row.nvtx)]
    mine = [row for row in inside if measure.cause in (None, row.cause)]
    if measure.unit == COUNT:
        found = float(_gaps(mine))
        rest = float(device.gap_count - _gaps(device.signatures))
    else:
        found = float(_idle(mine))
        rest = float(device.idle_ns - _idle(device.signatures))
    if per_iteration:
        whole = units_of(report, device)
        known = [row.per_iteration_ns for row in mine if row.per_iteration_ns is not None]
        least = float(sum(known)) if measure.unit == NS and len(known) == len(mine) else found / whole
        return least, least + max(rest, 0.0) / whole
    whole = device.window_ns if measure.of_window else 1
    return found / whole, (found + max(rest, 0.0)) / whole


def _gaps(rows: Iterable[SignatureRow]) -> int:
    return sum(row.count for row in rows)


def _idle(rows: Iterable[SignatureRow]) -> int:
    return sum(row.total_ns for row in rows)


def _is(name: str, wanted: str) -> bool:
    """Names of gap groups have # for counters; * and ? match any text and one character."""
    return name in (wanted, normal_range(wanted)) or fnmatchcase(name, wanted)
