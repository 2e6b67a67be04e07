"""What is reported to CI systems: traces that were not analyzed, broken budgets, and the findings that weigh most. As
SARIF 2.1.0 for viewers of code scanning."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.facts import FAIL, WARN, BatchEntry, BatchFinding, BatchSummary, BudgetResult, UnjudgedBudget
from nsysdiag.document.names import clip, visible
from nsysdiag.document.view import Causes
from nsysdiag.formats.batch.entries import FAILED, batch_of_one, by_weight, headline, shown_name, shown_unjudged
from nsysdiag.messages import JOINER
from nsysdiag.process import source_date_epoch
from nsysdiag.record import UNREADABLE
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.formats.format import RenderOptions
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
    device: str
    title: str
    sentence: str
    identity: str
    weight: float = 0.0


def problems(summary: BatchSummary) -> list[Problem]:
    """All of them, errors first; within a level what was not analyzed, then budgets, the broken ones first, then
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
        title = f"Not analyzed: {clip(entry.input, TITLE)}"
        key = _key(NOT_ANALYZED, entry.input)
        yield Problem(NOT_ANALYZED, ERROR, "", entry, "", title, why_failed(entry), key, _FAILED_WEIGHT)
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
    """Why a trace was not analyzed and what to do about it, on one line."""
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


def sarif_report(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return render_sarif(batch_of_one(report, options), report.causes)


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


def is_sarif(data: bytes) -> bool:
    """Do all runs of the log name us as their tool?"""
    try:
        runs = msgspec.json.decode(data, type=_Log).runs
    except UNREADABLE:
        return False
    return bool(runs) and all(run.tool.driver.name == GENERATOR for run in runs)


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
    return render_junit(batch_of_one(report, options))


def _suite(entry: BatchEntry, version: str, facts: dict[str, str]) -> ET.Element:
    fixed = {"package": SUITES, "hostname": "localhost", "time": "0"}
    suite = ET.Element("testsuite", {"name": _shown(entry.input), **facts, **fixed})
    properties = ET.SubElement(suite, "properties")  # not without one
    ET.SubElement(properties, "property", {"name": "version", "value": _shown(version)})
    output: list[str] = []
    if entry.status == FAILED:
        _problem(_case(suite, entry, CASE), "error", SUITES, entry.error or "not analyzed", entry.hint)
    failing = [each for each in entry.unjudged if each.outcome == FAIL]
    if entry.status != FAILED and not entry.budgets and not failing:
        _case(suite, entry, CASE)
        output += _verdicts(entry)
    budgets: list[BudgetResult | UnjudgedBudget] = [*entry.budgets, *failing]
    names: dict[str, int] = {}
    for budget in [] if entry.status == FAILED else budgets:
        name = _shown(f"{budget.budget}{f' in {budget.nvtx}' if budget.nvtx else ''}")
        number = names[name] = names.get(name, 0) + 1
        case = _case(suite, entry, name if number == 1 else f"{name} ({number})")
        if isinstance(budget, UnjudgedBudget):
            _problem(case, "error", "budget", _not_judged(budget), f"{budget.source}: {budget.budget}")
        else:
            output += _judged(case, budget)
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


def _judged(case: ET.Element, budget: BudgetResult) -> list[str]:
    """A broken budget that fails is a failure; all others pass, and what they found is said."""
    if budget.broken and budget.level == FAIL:
        _problem(case, "failure", "budget", budget.sentence, f"{budget.source}: {budget.budget}")
        return []
    found = f"{clip(budget.sentence, SENTENCE)} ({clip(budget.source, LONGEST)})"
    return [f"Warning: {found}" if budget.broken else found]


def _not_judged(budget: UnjudgedBudget) -> str:
    return f"It cannot be judged: {budget.why}"


def _passed_over(budget: UnjudgedBudget) -> str:
    """A budget that neither passes nor fails is no test case: one schema knows none that is skipped."""
    found = clip(f"{budget.budget}: {_not_judged(budget)}", SENTENCE)
    return f"{'Warning: ' if budget.outcome == WARN else ''}{found} ({clip(budget.source, LONGEST)})"


def _problem(case: ET.Element, kind: str, type_: str, message: str, more: str) -> None:
    found = ET.SubElement(case, kind, {"type": type_, "message": clip(message, SENTENCE)})
    found.text = "\n".join(clip(line, SENTENCE) for line in (message, more) if line)


def _verdicts(entry: BatchEntry) -> list[str]:
    """The verdict of each device and the findings that weigh most."""
    verdicts = [clip(f"{device.key}: {device.sentence}", SENTENCE) for device in entry.devices]
    top = [each for each in by_weight(entry.findings) if each.severity in SHOWN]
    return [
        *(verdicts or ["No GPU work in this trace."]),
        *(clip(f"{each.device}: {each.severity}: {each.title}", SENTENCE) for each in top),
    ]


def _without_attachments(text: str) -> str:
    """Jenkins and GitLab publish any file that an output names as `[[ATTACHMENT|/path]]`; no name may do so."""
    return _ATTACHMENT.sub(lambda found: f"[{JOINER}{found[0][1:]}", text)


def _shown(text: str) -> str:
    return clip(shown_name(text), LONGEST)


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
    """A title line, then one line per annotation, of findings only where they are asked for. If there are more than
    GitHub shows, the last of each kind gives the number."""
    found = [problem for problem in problems(summary) if findings or not problem.severity]
    lines = [f"nsysdiag {visible(summary.tool.version)}: {headline(summary)}"]
    for level, command in _COMMANDS.items():
        of_level = [problem for problem in found if problem.level == level]
        shown = of_level if len(of_level) <= MOST_ANNOTATIONS else of_level[: MOST_ANNOTATIONS - 1]
        lines += [annotation(command, problem.title, problem.sentence) for problem in shown]
        if more := len(of_level) - len(shown):
            lines.append(annotation(command, "nsysdiag", f"{more:,} more: see the summary of this batch"))
    return ("\n".join(lines) + "\n").encode()


def annotation(command: str, title: str, message: str) -> str:
    """One workflow command; neither its title nor its message can end it or begin another."""
    return f"::{command} title={_escaped(title, _PROPERTY)}::{_escaped(message, _DATA)}"


def _escaped(text: str, signs: dict[int, str]) -> str:
    return visible(text).translate(signs)
