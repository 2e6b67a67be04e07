"""Findings on the start of a program: what went by before the first work of a device."""

from __future__ import annotations

from nsysdiag.config.settings import FindingThresholds
from nsysdiag.findings.judged import JudgedTime
from nsysdiag.findings.rules import BEFORE_WORK, NOT_SAVED, severity
from nsysdiag.report import Finding
from nsysdiag.units import format_ns

LABELS = {
    "communication": "MPI",
    "host": "host code",
    "input": "reading input",
    "memory": "allocation",
    "startup": "CUDA is initialized, code is loaded",
    "unknown": "nothing in the trace explains it",
}


def before_findings(
    device: str, judged: JudgedTime, before: dict[str, int], thresholds: FindingThresholds
) -> list[Finding]:
    """What a device's program did before its first work, by bottleneck, where that is the smallest share or more of all
    its time. `share` is of the judged time inside the window: it may be more than all of that."""
    least = thresholds.smallest * (judged.ns + sum(before.values()))
    return [
        Finding(
            id=f"f-{BEFORE_WORK.id}-{family}",
            cause=BEFORE_WORK.id,
            device=device,
            severity=severity(1.0, thresholds),
            title=f"{BEFORE_WORK.title}: {LABELS.get(family, family)}",
            lost_ns=0,
            lost_share=0.0,
            ceiling_ns=0 if family in NOT_SAVED else ns,
            confidence=1.0,
            nvtx=[],
            evidence=[f"{format_ns(ns)} from the first CUDA call to the first work of the device"],
            advice=list(BEFORE_WORK.advice.plain),
            chain=[f"{LABELS.get(family, family)} for {format_ns(ns)}", BEFORE_WORK.fix],
            devices=[device],
            bottleneck=family,
            share=round(judged.share(ns), 6),
            summary=f"{LABELS.get(family, family)} before the first work of the GPU {format_ns(ns)}",
        )
        for family, ns in before.items()
        if ns >= least
    ]
