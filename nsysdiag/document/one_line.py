"""A record as one line for the prompt of Python: what it is, and what stands out."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from nsysdiag.comparison.facts import Comparison, SideTrace
from nsysdiag.document.names import brief, clip, visible
from nsysdiag.document.view import slices_by_time
from nsysdiag.document.words import counted
from nsysdiag.ranks.report import RanksReport
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Finding, Gap, Report
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.diagnosis.facts import Diagnosis
    from nsysdiag.record import Shown

LONGEST = 120
NAME, TITLE = 30, 50
"""How long a name among other facts may be, and a title."""


def one_line(record: Shown) -> str:
    """At most LONGEST characters, all of which print, whatever the names of the trace hold."""
    line = f"<{type(record).__name__} {visible(_facts(record))}>"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 2]}…>"


@singledispatch
def _facts(_record: object) -> str:
    return ""


@_facts.register(Report)
def _(report: Report) -> str:
    facts = f"{counted(len(report.devices), 'GPU')}, {counted(len(report.findings), 'finding')}"
    return f"'{_name(report.trace.file)}': {facts}{_headline(report.diagnosis)}"


@_facts.register(DeviceReport)
def _(device: DeviceReport) -> str:
    times = f"{format_ns(device.window_ns)}, {format_share(device.idle_ns, device.window_ns)} idle"
    return f"{_name(device.key)} '{_name(device.name)}': {times}, {counted(device.gap_count, 'gap')}"


@_facts.register(Gap)
def _(gap: Gap) -> str:
    cause = next((f", {_name(each.cause)}" for each in slices_by_time(gap)), "")
    place = f" in {_name(gap.nvtx[-1])}" if gap.nvtx else ""
    before = f" before {_name(brief(gap.next_op.name))}" if gap.next_op else ""
    return f"{format_ns(gap.end_ns - gap.start_ns)} at {gap.start_ns:,} ns{cause}{place}{before}"


@_facts.register(Finding)
def _(finding: Finding) -> str:
    devices = finding.devices or [finding.device]
    more = f" and {len(devices) - 1:,} more" if len(devices) > 1 else ""
    facts = f"{_name(finding.severity)} on {_name(devices[0])}{more}: {clip(finding.title, TITLE)}"
    if finding.lost_ns:
        return f"{facts}, {format_ns(finding.lost_ns)} lost"
    return f"{facts}, saves {finding.saves.figure}" if finding.saves else facts


@_facts.register(Comparison)
def _(comparison: Comparison) -> str:
    said = comparison.headline or comparison.sentence
    return f"'{_files(comparison.before)}' → '{_files(comparison.after)}': {said}"


@_facts.register(RanksReport)
def _(report: RanksReport) -> str:
    ranks, traces = counted(len(report.comparison.ranks), "rank"), counted(len(report.traces), "trace")
    return f"{ranks} in {traces}{_headline(report.diagnosis)}"


@_facts.register(WhatIf)
def _(found: WhatIf) -> str:
    times = "refused" if found.refused else f"{format_ns(found.now_ns)} → {format_ns(found.predicted_ns)}"
    return f"'{_name(found.trace.file)}': {_name(found.per)} {times}"


def _headline(diagnosis: Diagnosis | None) -> str:
    return f"; {diagnosis.headline}" if diagnosis else ""


def _files(traces: Sequence[SideTrace]) -> str:
    more = f" and {len(traces) - 1:,} more" if len(traces) > 1 else ""
    return f"{_name(traces[0].file)}{more}" if traces else ""


def _name(name: str) -> str:
    return clip(name, NAME)
