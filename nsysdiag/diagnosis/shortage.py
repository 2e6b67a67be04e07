"""Findings on launching threads without a CPU, with who had the CPUs and what to do about it."""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag.causes import PREEMPTION
from nsysdiag.findings.facts import Finding
from nsysdiag.host.facts import HostReport
from nsysdiag.host.report import advice


def with_shortage(findings: list[Finding], host: HostReport | None) -> list[Finding]:
    """The same findings; those on lost CPU time also describe the CPUs, with advice on that first."""
    if host is None or not host.shortage:
        return findings
    first = advice(host)
    return [
        replace(each, evidence=[*each.evidence, *host.shortage], advice=[*first, *each.advice])
        if each.cause == PREEMPTION
        else each
        for each in findings
    ]
