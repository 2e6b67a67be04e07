"""A GitLab code quality report: a list of issues, each at a path and with a fingerprint of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nsysdiag.document.names import clip
from nsysdiag.formats.batch.problems import BUDGET, ERROR, NOT_ANALYSED, problems
from nsysdiag.formats.batch.rows import shown_name
from nsysdiag.record import UNREADABLE

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchSummary
    from nsysdiag.formats.batch.problems import Problem

PREFIX = "nsysdiag:"
_OF_FINDINGS = {"high": "major", "medium": "minor"}


def render(summary: BatchSummary) -> bytes:
    """As UTF-8 JSON. A trace is not a source file: its issues are at line 1."""
    issues = [_issue(problem) for problem in problems(summary)]
    return msgspec.json.format(msgspec.json.encode(issues, order="sorted"), indent=2) + b"\n"


def _issue(problem: Problem) -> dict[str, object]:
    """`severity` is blocker, critical, major, minor or info."""
    if problem.rule == NOT_ANALYSED:
        severity = "blocker"
    elif problem.rule == BUDGET and not problem.severity:
        severity = "critical" if problem.level == ERROR else "minor"
    else:
        severity = _OF_FINDINGS.get(problem.severity, "info")
    return {
        "description": problem.sentence,
        "check_name": PREFIX + clip(problem.rule, 100),
        "fingerprint": problem.identity,
        "severity": severity,
        "location": {"path": shown_name(problem.entry.input).removeprefix("./"), "lines": {"begin": 1}},
    }


class _Issue(msgspec.Struct):
    check_name: str


def is_ours(data: bytes) -> bool:
    """Is every issue one of ours? An empty list has none to lose."""
    try:
        return all(issue.check_name.startswith(PREFIX) for issue in msgspec.json.decode(data, type=list[_Issue]))
    except UNREADABLE:
        return False
