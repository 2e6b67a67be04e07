"""What is reported to CI systems: traces that were not analyzed, broken budgets, and the findings that weigh most. As
SARIF 2.1.0 for viewers of code scanning."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.facts import FAIL, WARN, BatchEntry, BatchFinding, BatchSummary, UnjudgedBudget
from nsysdiag.document.names import clip, visible
from nsysdiag.document.view import Causes
from nsysdiag.formats.batch import entries
from nsysdiag.formats.batch.entries import FAILED, Budget, fails, shown_unjudged, told
from nsysdiag.messages import JOINER
from nsysdiag.process import source_date_epoch
from nsysdiag.record import value_in
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.formats import RenderOptions
    from nsysdiag.report import CauseInfo, Report


NOT_ANALYZED, BUDGET = "not-analysed", "budget"
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
    title: str
    sentence: str
    identity: str
    weight: float


def problems(summary: BatchSummary) -> list[Problem]:
    """All of them, errors first; within a level what was not analyzed, then budgets, the broken ones first, then
    findings by their share."""
    seen: Counter[str] = Counter()
    single = []
    for problem in (problem for entry in summary.entries for problem in _problems_of(entry)):
        seen[problem.identity] += 1
        text = f"{problem.identity}\0{seen[problem.identity]}".encode("utf-8", "backslashreplace")
        single.append(replace(problem, identity=hashlib.sha256(text).hexdigest()[:32]))
    return sorted(single, key=lambda problem: (LEVELS.index(problem.level), -problem.weight))


def _problems_of(entry: BatchEntry) -> Iterator[Problem]:
    if entry.status == FAILED:
        title, key = f"Not analyzed: {clip(entry.input, TITLE)}", _key(NOT_ANALYZED, entry.input)
        yield Problem(NOT_ANALYZED, ERROR, "", entry, title, why_failed(entry), key, _FAILED_WEIGHT)
        return
    budgets: list[Budget] = [each for each in entry.budgets if each.broken]
    yield from (_of_budget(entry, each) for each in [*budgets, *shown_unjudged(entry.unjudged)])
    yield from (_of_finding(entry, each) for each in _reported(entry))


def _reported(entry: BatchEntry) -> list[BatchFinding]:
    return [each for each in entries.by_weight(entry.findings) if each.severity in SHOWN]


def why_failed(entry: BatchEntry) -> str:
    """Why a trace was not analyzed and what to do about it, on one line."""
    return clip("; ".join(part for part in (entry.error, entry.hint) if part) or "No reason is known.", SENTENCE)


def _of_budget(entry: BatchEntry, budget: Budget) -> Problem:
    """An error if it fails the run, whatever the level of one that cannot be judged: it may not be kept."""
    unjudged = isinstance(budget, UnjudgedBudget)
    what, more = ("not judged", ["not judged"]) if unjudged else ("broken", [])
    where = entry.input if unjudged else f"{entry.input}{_on(budget.device)}"
    said = f"{'it cannot be judged: ' if unjudged else ''}{clip(told(budget), SENTENCE)}"
    return Problem(
        BUDGET,
        ERROR if fails(budget) else WARNING,
        "",
        entry,
        clip(f"Budget {what}: {budget.budget}", TITLE),
        f"{clip(where, TITLE)}: {said} ({clip(budget.source, TITLE)})",
        _key(BUDGET, entry.input, budget.id, budget.budget, budget.nvtx, *more),
        _UNJUDGED_WEIGHT if unjudged else _BUDGET_WEIGHT,
    )


def _of_finding(entry: BatchEntry, finding: BatchFinding) -> Problem:
    lost = f" Lost: {format_ns(finding.lost_ns)}, {format_share(finding.lost_share, 1)} of the window."
    where = clip(f"{entry.input}{_on(finding.device)}", TITLE)
    return Problem(
        finding.cause,
        SHOWN[finding.severity],
        finding.severity,
        entry,
        clip(finding.title, TITLE),
        f"{where}: {clip(finding.title, SENTENCE)}.{lost if finding.lost_ns else ''}",
        _key("finding", entry.input, finding.device, finding.id),
        finding.lost_share,
    )


def _on(device: str) -> str:
    return f", {device}" if device else ""


def _key(*words: str) -> str:
    return "\0".join(words)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
GENERATOR = "nsysdiag"
_LEVELS = {"high": ERROR, "medium": WARNING}
NAME = 100
MEANING = 500
WHERE = "The report of the trace names the moments, the evidence and what to do."


def render_sarif(summary: BatchSummary, causes: Sequence[CauseInfo] = ()) -> bytes:
    """As UTF-8 JSON, one run. A trace that could not be analyzed is a notification of the run, not a result."""
    found = [problem for problem in problems(summary) if problem.rule != NOT_ANALYZED or problem.severity]
    rules = sorted({_rule_id(problem) for problem in found})
    notes = [
        {"level": ERROR, "message": _message(why_failed(entry)), "locations": [_location(entry)]}
        for entry in summary.entries
        if entry.status == FAILED
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
        "invocations": [{"executionSuccessful": not notes, "toolExecutionNotifications": notes}],
        "results": [_result(problem, rules) for problem in found],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log, order="sorted"), indent=2) + b"\n"


def sarif_report(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return render_sarif(entries.batch_of_one(report, options), report.causes)


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


def is_sarif(data: bytes) -> bool:
    """Do all runs of the log name us as their tool?"""
    runs: list[msgspec.Raw] = value_in(data, "runs", kind=list[msgspec.Raw]) or []
    return bool(runs) and all(value_in(bytes(run), "tool", "driver", "name") == GENERATOR for run in runs)


# JUnit XML: a suite a trace, a test case a budget.


SUITES = "nsysdiag"
MARK = f"<!-- {SUITES} -->"
CASE = "analysed"
"""The case of a trace without budgets, and of one that could not be analyzed."""
LONGEST = 300
HEAD_BYTES = 200
_ATTACHMENT = re.compile(r"\[\[(?=attachment\|)", re.IGNORECASE)
LATEST = 253_402_300_799
"""The end of the year 9999."""


def render_junit(summary: BatchSummary) -> bytes:
    """As UTF-8 XML. What XML 1.0 forbids in a text does not print either, and is written out."""
    root = ET.Element("testsuites")
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(min(source_date_epoch() or 0, LATEST)))
    for number, entry in enumerate(summary.entries):
        root.append(_suite(entry, summary.tool.version, {"id": str(number), "timestamp": moment}))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=False)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{MARK}\n'.encode() + document + b"\n"


def junit_report(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return render_junit(entries.batch_of_one(report, options))


def _suite(entry: BatchEntry, version: str, facts: dict[str, str]) -> ET.Element:
    fixed = {"package": SUITES, "hostname": "localhost", "time": "0"}
    suite = ET.Element("testsuite", {"name": _shown(entry.input), **facts, **fixed})
    properties = ET.SubElement(suite, "properties")  # not without one
    ET.SubElement(properties, "property", {"name": "version", "value": _shown(version)})
    output: list[str] = []
    failing = [each for each in entry.unjudged if each.outcome == FAIL]
    budgets: list[Budget] = [] if entry.status == FAILED else [*entry.budgets, *failing]
    if entry.status == FAILED:
        _problem(_case(suite, entry, CASE), "error", SUITES, entry.error or "not analyzed", entry.hint)
    elif not budgets:
        _case(suite, entry, CASE)
        output += _verdicts(entry)
    names: Counter[str] = Counter()
    for budget in budgets:
        name = _shown(f"{budget.budget}{f' in {budget.nvtx}' if budget.nvtx else ''}")
        names[name] += 1
        output += _judged(_case(suite, entry, name if names[name] == 1 else f"{name} ({names[name]})"), budget)
    output += [_passed_over(each) for each in entry.unjudged if each.outcome != FAIL]
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for count, kind in (("failures", "failure"), ("errors", "error")):
        suite.set(count, str(sum(case.find(kind) is not None for case in cases)))
    ET.SubElement(suite, "system-out").text = _without_attachments("\n".join(output))
    ET.SubElement(suite, "system-err")
    return suite


def _case(suite: ET.Element, entry: BatchEntry, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", {"name": name, "classname": _shown(entry.name), "time": "0"})


def _judged(case: ET.Element, budget: Budget) -> list[str]:
    """A broken budget that fails is a failure, one that cannot be judged an error; all others pass, and what they found
    is said."""
    if isinstance(budget, UnjudgedBudget):
        _problem(case, "error", "budget", entries.not_judged(budget), f"{budget.source}: {budget.budget}")
    elif budget.broken and budget.level == FAIL:
        _problem(case, "failure", "budget", budget.sentence, f"{budget.source}: {budget.budget}")
    else:
        found = f"{clip(budget.sentence, SENTENCE)} ({clip(budget.source, LONGEST)})"
        return [f"Warning: {found}" if budget.broken else found]
    return []


def _passed_over(budget: UnjudgedBudget) -> str:
    """A budget that neither passes nor fails is not a test case: one schema knows none that is skipped."""
    found = clip(f"{budget.budget}: {entries.not_judged(budget)}", SENTENCE)
    return f"{'Warning: ' if budget.outcome == WARN else ''}{found} ({clip(budget.source, LONGEST)})"


def _problem(case: ET.Element, kind: str, type_: str, message: str, more: str) -> None:
    found = ET.SubElement(case, kind, {"type": type_, "message": clip(message, SENTENCE)})
    found.text = "\n".join(clip(line, SENTENCE) for line in (message, more) if line)


def _verdicts(entry: BatchEntry) -> list[str]:
    """The verdict of each device and the findings that weigh most."""
    verdicts = [f"{device.key}: {device.sentence}" for device in entry.devices] or ["No GPU work in this trace."]
    findings = [f"{each.device}: {each.severity}: {each.title}" for each in _reported(entry)]
    return [clip(each, SENTENCE) for each in (*verdicts, *findings)]


def _without_attachments(text: str) -> str:
    """Jenkins and GitLab publish any file that an output names as `[[ATTACHMENT|/path]]`; no name may do so."""
    return _ATTACHMENT.sub(lambda found: f"[{JOINER}{found[0][1:]}", text)


def _shown(text: str) -> str:
    return clip(entries.shown_name(text), LONGEST)


def is_junit(data: bytes) -> bool:
    """Does the document begin with our mark?"""
    return MARK.encode() in data[:HEAD_BYTES]


# GitHub workflow commands: lines which a job prints and GitHub shows as annotations.

MOST_ANNOTATIONS = 10
"""GitHub shows so many annotations of each kind and step."""
_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = {**_DATA, **str.maketrans({":": "%3A", ",": "%2C"})}


def render_github(summary: BatchSummary, *, findings: bool = False) -> bytes:
    """A title line, then one line per annotation, of findings only if they are asked for. If there are more than
    GitHub shows, the last of each kind gives the number."""
    found = [problem for problem in problems(summary) if findings or not problem.severity]
    lines = [f"nsysdiag {visible(summary.tool.version)}: {entries.headline(summary)}"]
    for level, command in _COMMANDS.items():
        of_level = [problem for problem in found if problem.level == level]
        shown = of_level if len(of_level) <= MOST_ANNOTATIONS else of_level[: MOST_ANNOTATIONS - 1]
        lines += [annotation(command, problem.title, problem.sentence) for problem in shown]
        if more := len(of_level) - len(shown):
            lines.append(annotation(command, "nsysdiag", f"{more:,} more: see the summary of this batch"))
    return ("\n".join(lines) + "\n").encode()


def annotation(command: str, title: str, message: str) -> str:
    """One workflow command; neither its title nor its message can end it or begin another."""
    return f"::{command} title={visible(title).translate(_PROPERTY)}::{visible(message).translate(_DATA)}"
