"""What becomes of one input, as a record: from its report, or from what went wrong."""

from __future__ import annotations

from nsysdiag.batch.inputs import Input
from nsysdiag.ci.budgets import Judgement
from nsysdiag.ci.facts import BatchEntry
from nsysdiag.errors import NsysdiagError
from nsysdiag.formats.batch.single import batch_devices, batch_findings
from nsysdiag.printable import printable
from nsysdiag.report import Report

ANALYSED, RESUMED, FAILED = "analysed", "resumed", "failed"


def entry_of(each: Input, report: Report, judged: Judgement, status: str) -> BatchEntry:
    """The entry of an input that has a report."""
    return BatchEntry(
        input=each.shown,
        name=each.name,
        status=status,
        fingerprint=report.trace.fingerprint,
        size_bytes=report.trace.size_bytes,
        report=f"{each.name}.html",
        devices=batch_devices(report),
        findings=batch_findings(report),
        budgets=judged.results,
        unjudged=judged.unjudged,
        warnings=report.trace.warnings,
    )


def failed_entry(each: Input, error: NsysdiagError) -> BatchEntry:
    """The entry of an input that has none. Its sentences call the input what the batch calls it, wherever it lies."""
    return BatchEntry(
        input=each.shown,
        name=each.name,
        status=FAILED,
        fingerprint="",
        size_bytes=each.size_bytes,
        report="",
        devices=[],
        findings=[],
        budgets=[],
        warnings=[],
        error=_as_shown(error.message, each),
        hint=_as_shown(error.hint or "", each),
        exit_code=error.exit_code,
    )


def _as_shown(sentence: str, each: Input) -> str:
    return printable(sentence.replace(printable(each.path), each.shown).replace(str(each.path), each.shown))
