"""JUnit XML: a suite a trace, a test case a budget.

There are two schemas in use, that of Ant and that of Jenkins; a file fits both. So the root has no attributes, and the
text of a passed case is in the output of its suite. A suite has a host and a time, although readers ignore them.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from nsysdiag.ci.facts import FAIL, WARN, UnjudgedBudget
from nsysdiag.document.names import clip
from nsysdiag.formats.batch.entries import FAILED, batch_of_one, by_weight, shown_name
from nsysdiag.formats.batch.sarif import SENTENCE, SHOWN
from nsysdiag.messages import JOINER
from nsysdiag.process import source_date_epoch

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchEntry, BatchSummary, BudgetResult
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import Report

NAME = "nsysdiag"
MARK = f"<!-- {NAME} -->"
CASE = "analysed"
"""The case of a trace without budgets, and of one that could not be analyzed."""
LONGEST = 300
HEAD_BYTES = 200
_ATTACHMENT = re.compile(r"\[\[(?=attachment\|)", re.IGNORECASE)
LATEST = 253_402_300_799
"""The end of the year 9999."""


def render(summary: BatchSummary) -> bytes:
    """As UTF-8 XML. What XML 1.0 forbids in a text does not print either, and is written out."""
    root = ET.Element("testsuites")
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(min(source_date_epoch() or 0, LATEST)))
    for number, entry in enumerate(summary.entries):
        root.append(_suite(entry, summary.tool.version, {"id": str(number), "timestamp": moment}))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=False)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{MARK}\n'.encode() + document + b"\n"


def render_report(report: Report, options: RenderOptions) -> bytes:
    """The report as a batch of one trace."""
    return render(batch_of_one(report, options))


def _suite(entry: BatchEntry, version: str, facts: dict[str, str]) -> ET.Element:
    fixed = {"package": NAME, "hostname": "localhost", "time": "0"}
    suite = ET.Element("testsuite", {"name": _shown(entry.input), **facts, **fixed})
    properties = ET.SubElement(suite, "properties")  # not without one
    ET.SubElement(properties, "property", {"name": "version", "value": _shown(version)})
    output: list[str] = []
    if entry.status == FAILED:
        _problem(_case(suite, entry, CASE), "error", NAME, entry.error or "not analyzed", entry.hint)
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


def is_ours(data: bytes) -> bool:
    """Does the document begin with our mark?"""
    return MARK.encode() in data[:HEAD_BYTES]
