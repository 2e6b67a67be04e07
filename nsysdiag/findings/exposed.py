"""Findings on busy time that is not compute: copies and communication that nothing hides."""

from __future__ import annotations

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, Intervals, contains, union
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events.operations import Category
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.rules import EXPOSED_COMM, EXPOSED_COPY, FindingRule, severity
from nsysdiag.report import DeviceReport, EvidenceRow, Finding
from nsysdiag.units import format_count, format_ns

MOST_EVIDENCE = 4


def exposed_findings(device: DeviceReport, sightings: Sightings, thresholds: FindingThresholds) -> list[Finding]:
    """Exposed copies and exposed communication, where they reach the smallest share of the window."""
    operations = sightings.context.device.operations
    copies = (operations.category == Category.MEMCPY) | (operations.category == Category.MEMSET)
    found = [
        _finding(device, sightings, EXPOSED_COPY, device.exposed_copy_ns, copies, thresholds),
        _finding(
            device, sightings, EXPOSED_COMM, device.exposed_comm_ns, sightings.context.device.communication, thresholds
        ),
    ]
    return [each for each in found if each.ceiling_ns >= max(thresholds.smallest * device.window_ns, 1)]


def _finding(
    device: DeviceReport,
    sightings: Sightings,
    rule: FindingRule,
    ns: int,
    mine: BoolArray,
    thresholds: FindingThresholds,
) -> Finding:
    share = ns / device.window_ns
    rows = _longest(device, sightings, mine, thresholds.rows)
    advice, fix = _advice(device, rule)
    what = typed.kernel(rows[0].name) if rows else None
    return Finding(
        id=f"f-{device.key}-{rule.id}",
        cause=rule.id,
        device=device.key,
        severity=severity(share, thresholds),
        title=rule.title,
        lost_ns=ns,
        lost_share=round(share, 6),
        ceiling_ns=ns,
        confidence=1.0,
        nvtx=[],
        evidence=_evidence(device, rule),
        advice=advice,
        call=what,
        chain=[
            f"{what or rule.title} and similar ones run alone on {device.key}",
            f"no kernel runs for {format_ns(ns)}",
            fix,
        ],
        rows=rows,
    )


def _longest(device: DeviceReport, sightings: Sightings, mine: BoolArray, most: int) -> list[EvidenceRow]:
    """The longest operations of the kind inside the window; how much of each is exposed is not known."""
    operations = sightings.context.device.operations
    inside = contains(union(Intervals.of(device.window.parts)), operations.start)
    chosen = np.flatnonzero(mine & sightings.context.device.running & inside)
    length = operations.end[chosen] - operations.start[chosen]
    order = np.lexsort((operations.start[chosen], -length))[:most]
    return [sightings.operation(int(chosen[at]), int(length[at])) for at in order.tolist()]


def _evidence(device: DeviceReport, rule: FindingRule) -> list[str]:
    if rule is EXPOSED_COMM:
        return [
            f"{typed.kernel(row.short_name)}: {format_count(row.count)} kernels, {format_ns(row.total_ns)} in all"
            for row in device.communication.kernels[:MOST_EVIDENCE]
        ]
    lines = []
    for row in device.copies.rows[:MOST_EVIDENCE]:
        memory = (f" from {row.src}" if row.src else "") + (f" to {row.dst}" if row.dst else "")
        lines.append(f"{row.operation}{memory}: {format_count(row.count)}, {format_ns(row.total_ns)} in all")
    return lines


def _advice(device: DeviceReport, rule: FindingRule) -> tuple[list[str], str]:
    """What to do, by the copies that take most time, and its short form."""
    if rule is EXPOSED_COMM:
        return list(rule.advice), rule.fix
    largest = device.copies.rows[0] if device.copies.rows else None
    if largest is not None and largest.operation.startswith("memset"):
        special = "Memory sets of gradients: optimizer.zero_grad(set_to_none=True) saves them."
        return [special, *rule.advice], "set less memory: zero_grad(set_to_none=True)"
    if largest is not None and "pageable" in (largest.src, largest.dst):
        special = "Most of it is pageable memory: pin it (pin_memory=True), copy with non_blocking=True."
        return [special, *rule.advice], "pin the host memory and copy on a stream of its own"
    return list(rule.advice), rule.fix
