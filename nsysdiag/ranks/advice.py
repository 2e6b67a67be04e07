"""What a comparison of devices adds to the findings: communication that is a wait for a late rank."""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag.causes import CAUSES
from nsysdiag.findings.rules import EXPOSED_COMM
from nsysdiag.ranks.facts import RankComparison, RankWait
from nsysdiag.report import Finding
from nsysdiag.units import format_ns, format_share

MOST_WAITS = 3
MOSTLY = 0.5
WORK_TITLES = {
    "compute": "compute",
    "exposed_comm": "communication that nothing hides",
    "exposed_copy": "copies that nothing hides",
}


def with_waits(findings: list[Finding], ranks: RankComparison | None) -> list[Finding]:
    """The findings, those about exposed communication with whom the device waited for inside of it."""
    waits = [wait for wait in ranks.waits if wait.late_rank is not None] if ranks is not None else []
    return [_with_waits(each, waits) if each.cause == EXPOSED_COMM.id else each for each in findings]


def _with_waits(finding: Finding, waits: list[RankWait]) -> Finding:
    its = [wait for wait in waits if wait.rank == finding.device]
    if not its:
        return finding
    evidence = [f"waited {format_ns(wait.wait_ns)} for {wait.late_rank}{_because(wait)}" for wait in its[:MOST_WAITS]]
    advice = list(finding.advice)
    if sum(wait.wait_ns for wait in its) >= MOSTLY * finding.lost_ns:
        advice.insert(0, f"Most of it is waiting, not transfer: find out why {its[0].late_rank} comes late.")
    return replace(finding, evidence=[*finding.evidence, *evidence], advice=advice)


def _because(wait: RankWait) -> str:
    if not wait.causes:
        return ""
    name, ns = max(wait.causes.items(), key=lambda item: item[1])
    return f", late because of: {title_of(name)} {format_share(ns, wait.wait_ns)}"


def title_of(name: str) -> str:
    """Work or a cause of idle time in the middle of a sentence."""
    return WORK_TITLES.get(name) or (CAUSES[name].title.lower() if name in CAUSES else name)
