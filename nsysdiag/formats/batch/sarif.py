"""SARIF 2.1.0: broken budgets and the findings that weigh most, for viewers of code scanning."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from nsysdiag.document.names import clip, visible
from nsysdiag.document.view import Causes
from nsysdiag.formats.batch.entries import FAILED, batch_of_one
from nsysdiag.formats.batch.problems import BUDGET, ERROR, NOT_ANALYSED, NOTE, WARNING, problems, why_failed
from nsysdiag.record import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import BatchEntry, BatchSummary
    from nsysdiag.formats.batch.problems import Problem
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import CauseInfo, Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
GENERATOR = "nsysdiag"
_LEVELS = {"high": ERROR, "medium": WARNING}
NAME = 100
MEANING = 500
WHERE = "The report of the trace names the moments, the evidence and what to do."


def render(summary: BatchSummary, causes: Sequence[CauseInfo] = ()) -> bytes:
    """As UTF-8 JSON, one run. A trace that could not be analysed is a notification of the run, not a result."""
    found = [problem for problem in problems(summary) if problem.rule != NOT_ANALYSED or problem.severity]
    rules = sorted({_rule_id(problem) for problem in found})
    failed = [entry for entry in summary.entries if entry.status == FAILED]
    notes = [
        {"level": ERROR, "message": _message(why_failed(entry)), "locations": [_location(entry)]} for entry in failed
    ]
    run = {
        "tool": {
            "driver": {
                "name": GENERATOR,
                "version": visible(summary.tool.version),
                "rules": [_rule(rule, Causes(causes)) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failed, "toolExecutionNotifications": notes}],
        "results": [_result(problem, rules) for problem in found],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log, order="sorted"), indent=2) + b"\n"


def render_report(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return render(batch_of_one(report, options), report.causes)


def _rule_id(problem: Problem) -> str:
    """Findings have ids distinct from those of budgets, whatever the names of their causes."""
    return f"finding/{clip(problem.rule, NAME)}" if problem.severity else BUDGET


def _rule(rule: str, causes: Causes) -> dict[str, object]:
    """With the descriptions and the help that code scanning on GitHub wants of every rule."""
    if rule == BUDGET:
        title = "A budget is broken, or cannot be judged"
        meaning = "A number of the trace is not what its budget allows, or not known."
    else:
        cause = causes[rule.removeprefix("finding/")]
        title = f"Lost GPU time: {clip(cause.title, NAME)}"
        meaning = clip(cause.meaning, MEANING) or f"{title}."
    return {
        "id": rule,
        "shortDescription": _message(title),
        "fullDescription": _message(meaning),
        "help": _message(f"{meaning} {WHERE}"),
    }


def _result(problem: Problem, rules: list[str]) -> dict[str, object]:
    rule = _rule_id(problem)
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": _LEVELS.get(problem.severity, NOTE) if problem.severity else problem.level,
        "message": _message(problem.sentence),
        "locations": [_location(problem.entry)],
        # The first is ours; the second is the one that code scanning on GitHub uses.
        "partialFingerprints": {"nsysdiag/v1": problem.identity, "primaryLocationLineHash": f"{problem.identity}:1"},
    }


def _message(text: str) -> dict[str, str]:
    """Braces stand for arguments and `](` for links in such a text: both are taken as what they are."""
    return {"text": visible(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _location(entry: BatchEntry) -> dict[str, object]:
    """The trace, at a region that viewers of code ask for."""
    artifact = {"uri": quote(entry.input.encode("utf-8", "backslashreplace"), safe="/-._~").lstrip("/") or "trace"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": 1}}}


class _Driver(msgspec.Struct):
    name: str


class _SarifTool(msgspec.Struct):
    driver: _Driver


class _SarifRun(msgspec.Struct):
    tool: _SarifTool


class _Log(msgspec.Struct):
    runs: list[_SarifRun]


def is_ours(data: bytes) -> bool:
    """Do all runs of the log name us as their tool?"""
    try:
        runs = msgspec.json.decode(data, type=_Log).runs
    except UNREADABLE:
        return False
    return bool(runs) and all(run.tool.driver.name == GENERATOR for run in runs)
