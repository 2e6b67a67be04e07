"""Findings on compute: the kernels that take most of the judged time, and those that leave most of the chip empty."""

from __future__ import annotations

from nsysdiag import typed
from nsysdiag.account.bottlenecks import Bottlenecks
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.findings.judged import JudgedTime
from nsysdiag.findings.rules import KERNELS, PARALLELISM, FindingRule, severity
from nsysdiag.report import DeviceReport, Finding
from nsysdiag.units import format_count, format_ns, format_share

MOST_KERNELS = 3


def kernel_findings(
    device: DeviceReport, judged: JudgedTime, found: Bottlenecks, thresholds: FindingThresholds
) -> list[Finding]:
    """What compute takes of the judged time, where that is the smallest share or more."""
    account = {name: int(ns.sum()) for name, ns in found.each_of(judged.parts).items()}
    least = max(thresholds.smallest * judged.ns, 1)
    return [
        _finding(device, judged, rule, account.get(rule.bottleneck, 0), thresholds)
        for rule in (KERNELS, PARALLELISM)
        if account.get(rule.bottleneck, 0) >= least
    ]


def _finding(
    device: DeviceReport, judged: JudgedTime, rule: FindingRule, ns: int, thresholds: FindingThresholds
) -> Finding:
    rows = [row for row in device.kernels if not row.communication][:MOST_KERNELS]
    total = sum(row.total_ns for row in device.kernels if not row.communication)
    most = typed.kernel(rows[0].short_name) if rows else None
    return Finding(
        id=f"f-{rule.id}",
        cause=rule.id,
        device=device.key,
        severity=severity(judged.share(ns), thresholds),
        title=f"{rule.title}: {most}" if most else rule.title,
        lost_ns=0,
        lost_share=0.0,
        ceiling_ns=0,
        confidence=1.0,
        nvtx=[],
        evidence=[
            f"{typed.kernel(row.short_name)}: {format_share(row.total_ns, total)} of the kernel time, "
            f"{format_count(row.count)} times {format_ns(row.mean_ns)}"
            for row in rows
        ],
        advice=list(rule.advice.plain),
        call=most,
        chain=[f"{most or 'kernels'} and others run for {format_ns(ns)}", rule.fix],
        devices=[device.key],
        bottleneck=rule.bottleneck,
        share=round(judged.share(ns), 6),
    )
