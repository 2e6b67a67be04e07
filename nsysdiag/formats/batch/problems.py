"""What is reported to CI systems: traces that were not analysed, broken budgets, and the findings that weigh most."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.facts import FAIL
from nsysdiag.document.names import clip
from nsysdiag.formats.batch.entries import FAILED, by_weight, shown_unjudged
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsysdiag.ci.facts import BatchEntry, BatchFinding, BatchSummary, BudgetResult, UnjudgedBudget

NOT_ANALYSED, BUDGET = "not-analysed", "budget"
ERROR, WARNING, NOTE = "error", "warning", "note"
LEVELS = (ERROR, WARNING, NOTE)
SHOWN = {"high": WARNING, "medium": NOTE}
"""The severities of findings that are reported, and as what: only a budget makes an error of a finding."""
SENTENCE, TITLE = 600, 120
_FAILED_WEIGHT, _BUDGET_WEIGHT, _UNJUDGED_WEIGHT = 1e6, 1e3, 1e2


class Problem(Struct, frozen=True):
    """One thing to report; `weight` orders those of a level, most first. `rule` is `not-analysed`, `budget`, or the
    cause that a finding is about; `severity` that of a finding, empty otherwise. `title` and `sentence` are printable.
    `identity` is unique, and stays the same for the same trace, rule and place, whatever the numbers."""

    rule: str
    level: str
    severity: str
    entry: BatchEntry
    device: str
    title: str
    sentence: str
    identity: str
    weight: float = 0.0


def problems(summary: BatchSummary) -> list[Problem]:
    """All of them, errors first; within a level what was not analysed, then budgets, the broken ones first, then
    findings by their share."""
    found = [problem for entry in summary.entries for problem in _problems_of(entry)]
    seen: dict[str, int] = {}
    single = []
    for problem in found:
        number = seen[problem.identity] = seen.get(problem.identity, 0) + 1
        text = f"{problem.identity}\0{number}".encode("utf-8", "backslashreplace")
        single.append(replace(problem, identity=hashlib.sha256(text).hexdigest()[:32]))
    return sorted(single, key=lambda problem: (LEVELS.index(problem.level), -problem.weight))


def _problems_of(entry: BatchEntry) -> Iterator[Problem]:
    if entry.status == FAILED:
        title = f"Not analysed: {clip(entry.input, TITLE)}"
        key = _key(NOT_ANALYSED, entry.input)
        yield Problem(NOT_ANALYSED, ERROR, "", entry, "", title, why_failed(entry), key, _FAILED_WEIGHT)
        return
    for budget in entry.budgets:
        if budget.broken:
            yield _of_budget(entry, budget)
    for unjudged in shown_unjudged(entry):
        yield _of_unjudged(entry, unjudged)
    for finding in by_weight(entry.findings):
        if finding.severity in SHOWN:
            yield _of_finding(entry, finding)


def why_failed(entry: BatchEntry) -> str:
    """Why a trace was not analysed and what to do about it, on one line."""
    return clip("; ".join(part for part in (entry.error, entry.hint) if part) or "No reason is known.", SENTENCE)


def _of_budget(entry: BatchEntry, budget: BudgetResult) -> Problem:
    title = clip(f"Budget broken: {budget.budget}", TITLE)
    where = clip(f"{entry.input}{_on(budget.device)}", TITLE)
    return Problem(
        rule=BUDGET,
        level=ERROR if budget.level == FAIL else WARNING,
        severity="",
        entry=entry,
        device=budget.device,
        title=title,
        sentence=f"{where}: {clip(budget.sentence, SENTENCE)} ({clip(budget.source, TITLE)})",
        identity=_key(BUDGET, entry.input, budget.id, budget.budget, budget.nvtx),
        weight=_BUDGET_WEIGHT,
    )


def _of_unjudged(entry: BatchEntry, budget: UnjudgedBudget) -> Problem:
    """An error where it fails the run, whatever its level is: it is not known whether it is kept."""
    why = f"{clip(budget.why, SENTENCE)} ({clip(budget.source, TITLE)})"
    return Problem(
        rule=BUDGET,
        level=ERROR if budget.outcome == FAIL else WARNING,
        severity="",
        entry=entry,
        device=budget.device,
        title=clip(f"Budget not judged: {budget.budget}", TITLE),
        sentence=f"{clip(entry.input, TITLE)}: it cannot be judged: {why}",
        identity=_key(BUDGET, entry.input, budget.id, budget.budget, budget.nvtx, "not judged"),
        weight=_UNJUDGED_WEIGHT,
    )


def _of_finding(entry: BatchEntry, finding: BatchFinding) -> Problem:
    lost = f" Lost: {format_ns(finding.lost_ns)}, {format_share(finding.lost_share, 1)} of the window."
    where = clip(f"{entry.input}{_on(finding.device)}", TITLE)
    return Problem(
        rule=finding.cause,
        level=SHOWN[finding.severity],
        severity=finding.severity,
        entry=entry,
        device=finding.device,
        title=clip(finding.title, TITLE),
        sentence=f"{where}: {clip(finding.title, SENTENCE)}.{lost if finding.lost_ns else ''}",
        identity=_key("finding", entry.input, finding.device, finding.id),
        weight=finding.lost_share,
    )


def _on(device: str) -> str:
    return f", {device}" if device else ""


def _key(*words: str) -> str:
    return "\0".join(words)
