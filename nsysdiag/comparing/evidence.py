"""Which causes both sides had the evidence for."""

from __future__ import annotations

from collections.abc import Sequence

from nsysdiag.analysis.causes import CAUSES
from nsysdiag.model import Report

NOT_COMPARED = "not_compared"
CAPTURED = {"os-runtime": "OSRT_API", "scheduling": "SCHED_EVENTS", "cpu-samples": "COMPOSITE_EVENTS"}
"""Evidence that is there or not by how a trace was captured, and its table. Other tables are empty where nothing of
their kind happened."""


def uncompared(before: Sequence[Report], after: Sequence[Report]) -> tuple[list[str], list[str]]:
    """The causes that one side alone can tell, and all behind them on the same side of a gap, to which such time falls
    without; and what is to be said about it."""
    left, right = _evidence(before), _evidence(after)
    tables = {CAPTURED[kind] for kind in left ^ right}
    if not tables:
        return [], []
    found: list[str] = []
    for side in {cause.side for cause in CAUSES.values()}:
        causes = [cause for cause in CAUSES.values() if cause.side == side]
        first = next((at for at, cause in enumerate(causes) if tables & set(cause.tables)), None)
        found += [cause.id for cause in causes[first:]] if first is not None else []
    notes = [
        f"Only the captures {'before' if kind in left else 'after'} have {kind} evidence: causes that need it are "
        "compared as one."
        for kind in sorted(left ^ right)
    ]
    return [cause for cause in CAUSES if cause in found], notes


def _evidence(reports: Sequence[Report]) -> set[str]:
    """The kinds of evidence that all reports of a side have."""
    held = [{each.id for each in report.trace.capabilities if each.available} for report in reports]
    return {kind for kind in CAPTURED if all(kind in each for each in held)}
