"""What is worth doing something about: one finding a cause and device, ranked by the time that it alone costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.analysis.assignment import Slices
from nsysdiag.analysis.causes import CAUSES
from nsysdiag.analysis.causes.cause import Cause
from nsysdiag.analysis.grouping import group_durations
from nsysdiag.model import CopyRow, DeviceReport, Finding
from nsysdiag.units import format_count, format_moment, format_ns

MOST = 12
SMALLEST_SHARE = 0.01
SEVERITIES = ((0.20, "high"), (0.05, "medium"), (0.01, "low"))
MOST_EVIDENCE = 4


# For each cause the start and length in ns of the longest gap that it leads.
LongestGaps = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class BusyLoss:
    """Time in which the device worked, but not on compute: its name in the report, and what to do about it."""

    id: str
    title: str
    meaning: str
    color: str
    advice: tuple[str, ...]


EXPOSED_COPY = BusyLoss(
    "exposed_copy",
    "Copies that no kernel hides",
    "The device copied or set memory while no kernel ran beside it.",
    "#a16207",
    (
        "Overlap copies with compute: a stream of their own, pinned memory, the next batch while this one computes.",
        "Copy less: keep data on the device, send smaller types, decode or augment on the GPU.",
    ),
)
EXPOSED_COMM = BusyLoss(
    "exposed_comm",
    "Communication that no compute hides",
    "Communication kernels ran while no other kernel did.",
    "#7e57c2",
    (
        "Overlap communication with the backward pass: gradient buckets of another size, a stream of its own.",
        "Look for a straggler: ranks that arrive late make all others wait inside the collective.",
    ),
)
BUSY_LOSSES = (EXPOSED_COPY, EXPOSED_COMM)


def findings_of(device: DeviceReport, slices: Slices, longest: LongestGaps) -> list[Finding]:
    """The findings of one device: every cause and exposed work that takes, or may bring, at least 1 % of the window."""
    if device.window_ns == 0:
        return []
    causes = {"sync": 0, **device.ledger} if device.sync_drained.get("ns", 0) else device.ledger
    found = [_idle_finding(device, slices, longest, cause, ns) for cause, ns in causes.items()]
    found += [_busy_finding(device, EXPOSED_COPY, device.exposed_copy_ns)]
    found += [_busy_finding(device, EXPOSED_COMM, device.exposed_comm_ns)]
    return [finding for finding in found if finding.ceiling_ns >= SMALLEST_SHARE * device.window_ns]


def ranked(findings: list[Finding]) -> list[Finding]:
    """The dozen that cost most, of equal ones by id."""
    return sorted(findings, key=lambda finding: (-finding.lost_ns, -finding.ceiling_ns, finding.id))[:MOST]


def severity(share: float, *, unresolved: bool) -> str:
    """In words, by the share of the window; what the trace cannot tell is information."""
    if unresolved:
        return "info"
    return next((word for least, word in SEVERITIES if share >= least), "info")


def _idle_finding(device: DeviceReport, slices: Slices, longest: LongestGaps, cause: str, ns: int) -> Finding:
    rule = CAUSES[cause]
    ceiling = max(ns, _drained_ceiling(device)) if cause == "sync" else ns
    return Finding(
        id=f"f-{device.key}-{cause}",
        cause=cause,
        device=device.key,
        severity=severity(ceiling / device.window_ns, unresolved=rule.unresolved),
        title=rule.title,
        lost_ns=ns,
        lost_share=round(ns / device.window_ns, 6),
        ceiling_ns=ceiling,
        confidence=_confidence(device, rule),
        nvtx=next((row.nvtx for row in device.signatures if row.cause == cause and row.nvtx), []),
        evidence=_evidence(device, slices, longest, cause),
        advice=list(rule.advice),
    )


def _drained_ceiling(device: DeviceReport) -> int:
    """What a host that never drained the queue could hide at most: no more time than there is work to hide it under."""
    return min(device.sync_drained.get("ns", 0), device.busy_ns)


def _confidence(device: DeviceReport, rule: Cause) -> float:
    """Coverage is about the host: what the device did is known, what nobody knows is not."""
    if rule.unresolved:
        return 0.0
    return 1.0 if rule.accepted or device.coverage is None else round(device.coverage, 4)


def _evidence(device: DeviceReport, slices: Slices, longest: LongestGaps, cause: str) -> list[str]:
    """Kinds of the cause, the calls with most of its time, its longest gap, and the gaps that it drained."""
    lines = [f"{label}: {format_ns(ns)}" for label, ns in _largest(device.labels.get(cause, {}))]
    mine = np.flatnonzero((slices.rows.cause == list(CAUSES).index(cause)) & (slices.rows.text >= 0))
    calls = group_durations(slices.rows.text[mine], slices.ns[mine])
    for at in range(min(len(calls.code), MOST_EVIDENCE)):
        text = slices.texts[int(calls.code[at])]
        if text not in device.labels.get(cause, {}):
            lines.append(f"{text}: {format_ns(int(calls.total[at]))} in {format_count(int(calls.count[at]))} pieces")
    if cause in longest:
        start, length = longest[cause]
        lines.append(f"longest such gap: {format_ns(length)} at {format_moment(start)}")
    if cause == "sync" and device.sync_drained.get("gaps", 0):
        gaps, ns = device.sync_drained["gaps"], device.sync_drained["ns"]
        lines.append(f"{format_count(gaps)} gaps ({format_ns(ns)}) began when such a call had emptied the queue")
    return lines


def _largest(labels: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(labels.items(), key=lambda item: (-item[1], item[0]))[:MOST_EVIDENCE]


def _busy_finding(device: DeviceReport, loss: BusyLoss, ns: int) -> Finding:
    share = ns / device.window_ns
    return Finding(
        id=f"f-{device.key}-{loss.id}",
        cause=loss.id,
        device=device.key,
        severity=severity(share, unresolved=False),
        title=loss.title,
        lost_ns=ns,
        lost_share=round(share, 6),
        ceiling_ns=ns,
        confidence=1.0,
        nvtx=[],
        evidence=_busy_evidence(device, loss),
        advice=list(loss.advice),
    )


def _busy_evidence(device: DeviceReport, loss: BusyLoss) -> list[str]:
    if loss is EXPOSED_COMM:
        return [
            f"{row.short_name}: {format_count(row.count)} kernels, {format_ns(row.total_ns)} in all"
            for row in device.communication.kernels[:MOST_EVIDENCE]
        ]
    return [
        f"{row.operation}{_between(row)}: {format_count(row.count)}, {format_ns(row.total_ns)} in all"
        for row in device.copies.rows[:MOST_EVIDENCE]
    ]


def _between(row: CopyRow) -> str:
    """The memory on both sides, as far as the trace says."""
    source = f" from {row.src}" if row.src else ""
    return source + (f" to {row.dst}" if row.dst else "")
