"""JUnit XML: a suite a trace, a test case a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from nsysdiag.output.batch.problems import SENTENCE
from nsysdiag.output.batch.rows import FAIL, FAILED, shown_name
from nsysdiag.output.names import clip
from nsysdiag.output.view import severity_rank

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsysdiag.model_ci import BatchEntry, BatchSummary, BudgetResult

NAME = "nsysdiag"
CASE = "analysed"
"""The case of a trace without budgets, and of one that could not be analysed."""
LONGEST = 300
HEAD_BYTES = 200


def render(summary: BatchSummary) -> bytes:
    """As UTF-8 XML. What XML 1.0 forbids in a text does not print either, and is written out."""
    root = ET.Element("testsuites", {"name": NAME})
    for entry in summary.entries:
        root.append(_suite(entry))
    _count(root, list(root.iter("testcase")))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=False)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + document + b"\n"


def _count(element: ET.Element, cases: list[ET.Element]) -> None:
    element.set("tests", str(len(cases)))
    for count, kind in (("failures", "failure"), ("errors", "error")):
        element.set(count, str(sum(case.find(kind) is not None for case in cases)))


def _suite(entry: BatchEntry) -> ET.Element:
    suite = ET.Element("testsuite", {"name": _shown(entry.input)})
    if entry.status == FAILED:
        _problem(_case(suite, entry, CASE), "error", NAME, entry.error or "not analysed", entry.hint)
    elif not entry.budgets:
        _out(_case(suite, entry, CASE), _told(entry))
    names: dict[str, int] = {}
    for budget in [] if entry.status == FAILED else entry.budgets:
        name = _name(budget)
        number = names[name] = names.get(name, 0) + 1
        _judged(_case(suite, entry, name if number == 1 else f"{name} ({number})"), budget)
    _count(suite, suite.findall("testcase"))
    suite.set("skipped", "0")
    suite.set("time", "0")
    return suite


def _case(suite: ET.Element, entry: BatchEntry, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", {"name": name, "classname": _shown(entry.name), "time": "0"})


def _name(budget: BudgetResult) -> str:
    where = f" in {budget.nvtx}" if budget.nvtx else ""
    return _shown(f"{budget.budget}{where}")


def _judged(case: ET.Element, budget: BudgetResult) -> None:
    """A broken budget that fails is a failure; all others pass, with what they found as their output."""
    if budget.broken and budget.level == FAIL:
        _problem(case, "failure", "budget", budget.sentence, f"{budget.source}: {budget.budget}")
    else:
        _out(case, [f"{'Warning: ' if budget.broken else ''}{clip(budget.sentence, SENTENCE)}"])


def _problem(case: ET.Element, kind: str, type_: str, message: str, more: str) -> None:
    found = ET.SubElement(case, kind, {"type": type_, "message": clip(message, SENTENCE)})
    found.text = "\n".join(clip(line, SENTENCE) for line in (message, more) if line)


def _told(entry: BatchEntry) -> list[str]:
    """The verdict of each device and the findings that weigh most."""
    verdicts = [clip(f"{device.key}: {device.sentence}", SENTENCE) for device in entry.devices]
    ranked = sorted(entry.findings, key=lambda each: (severity_rank(each.severity), -each.lost_ns, each.id))
    top = [each for each in ranked if each.severity in ("high", "medium")]
    return [
        *(verdicts or ["No GPU work in this trace."]),
        *(clip(f"{each.device}: {each.severity}: {each.title}", SENTENCE) for each in top),
    ]


def _out(case: ET.Element, lines: Iterable[str]) -> None:
    ET.SubElement(case, "system-out").text = "\n".join(lines)


def _shown(text: str) -> str:
    return clip(shown_name(text), LONGEST)


def is_ours(data: bytes) -> bool:
    """Does the root of the document name us?"""
    return f'<testsuites name="{NAME}"'.encode() in data[:HEAD_BYTES]
