"""What becomes of one input, as a record: from its report, or from what went wrong."""

from __future__ import annotations

from nsysdiag.batch.inputs import Input
from nsysdiag.errors import NsysdiagError
from nsysdiag.model import DeviceReport, Report
from nsysdiag.model_ci import BatchDevice, BatchEntry, BatchFinding, BudgetResult
from nsysdiag.printable import printable

ANALYSED, RESUMED, FAILED = "analysed", "resumed", "failed"


def entry_of(each: Input, report: Report, budgets: list[BudgetResult], status: str) -> BatchEntry:
    """The entry of an input that has a report."""
    return BatchEntry(
        input=each.shown,
        name=each.name,
        status=status,
        fingerprint=report.trace.fingerprint,
        size_bytes=report.trace.size_bytes,
        report=f"{each.name}.html",
        devices=[_device(device) for device in report.devices],
        findings=[
            BatchFinding(
                id=finding.id,
                device=finding.device,
                cause=finding.cause,
                severity=finding.severity,
                title=finding.title,
                lost_ns=finding.lost_ns,
                lost_share=finding.lost_share,
            )
            for finding in report.findings
        ],
        budgets=budgets,
        warnings=report.trace.warnings,
    )


def _device(device: DeviceReport) -> BatchDevice:
    causes = [(cause, ns) for cause, ns in device.ledger.items() if ns]
    return BatchDevice(
        key=device.key,
        name=device.name,
        verdict=device.verdict.id,
        sentence=device.verdict.sentence,
        window_ns=device.window_ns,
        busy_ns=device.busy_ns,
        idle_ns=device.idle_ns,
        compute_ns=device.compute_ns,
        exposed_comm_ns=device.exposed_comm_ns,
        exposed_copy_ns=device.exposed_copy_ns,
        coverage=device.coverage,
        iteration_ns=device.iterations.p50_ns if device.iterations else None,
        causes=sorted(causes, key=lambda each: (-each[1], each[0])),
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
