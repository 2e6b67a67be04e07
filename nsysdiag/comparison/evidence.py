"""Which causes all captures had the evidence for, and were analysed for."""

from __future__ import annotations

from collections.abc import Sequence

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import disabled_causes
from nsysdiag.report import Report

NOT_COMPARED = "not_compared"
CAPTURED = {
    "cuda-api": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "os-runtime": "OSRT_API",
    "scheduling": "SCHED_EVENTS",
    "cpu-samples": "COMPOSITE_EVENTS",
    "gpu-context-switch": "GPU_CONTEXT_SWITCH_EVENTS",
}
"""Evidence that is there or not by how a trace was captured, and its table. Other tables are empty where nothing of
their kind happened."""
WHOLE_GAPS, ROOT = "gap", "root"
"""The sides of causes that take gaps before those of any other side see them, and of those that waits lead to."""


def uncompared(before: Sequence[Report], after: Sequence[Report]) -> tuple[list[str], list[str]]:
    """The causes that some captures alone can tell, and all behind them on the same side of a gap, to which such time
    falls without; and what is to be said about it."""
    sides = {"before": [_evidence(each) for each in before], "after": [_evidence(each) for each in after]}
    tables = {CAPTURED[kind] for kind in _told_apart(sides)}
    disabled = _told_apart({"": [disabled_causes(report.settings) for report in (*before, *after)]})
    first = {cause.id for cause in CAUSES.values() if tables & set(cause.tables)} | set(disabled)
    if disabled:  # a wait that has another name is not followed to its root
        first |= {cause.id for cause in CAUSES.values() if cause.side == ROOT}
    found = _behind(first)
    notes = [
        f"Only {_holders(sides, kind)} {kind} evidence: causes that need it are compared as one."
        for kind in _told_apart(sides)
    ]
    if disabled:
        notes.append(
            f"Not all reports were made with the same causes disabled: {', '.join(disabled)}, and those that get such "
            "time without, are compared as one."
        )
    return [cause for cause in CAUSES if cause in found], notes


def _told_apart(sides: dict[str, list[set[str]]]) -> list[str]:
    """What some have and others have not."""
    each = [held for side in sides.values() for held in side]
    return sorted(set().union(*each) - each[0].intersection(*each))


def _behind(first: set[str]) -> set[str]:
    """These causes, and all that see a gap after one of them."""
    found: set[str] = set()
    whole = False
    for side in dict.fromkeys(cause.side for cause in CAUSES.values()):
        reached = whole
        for cause in (cause for cause in CAUSES.values() if cause.side == side):
            reached = reached or cause.id in first
            found |= {cause.id} if reached else set()
        whole = whole or (reached and side == WHOLE_GAPS)
    return found


def _holders(sides: dict[str, list[set[str]]], kind: str) -> str:
    """`the captures before have`, or `some captures have` where those of a side differ."""
    before, after = ([kind in held for held in side] for side in sides.values())
    if all(before) and not any(after):
        return "the captures before have"
    return "the captures after have" if all(after) and not any(before) else "some captures have"


def _evidence(report: Report) -> set[str]:
    return {each.id for each in report.trace.capabilities if each.available} & CAPTURED.keys()
