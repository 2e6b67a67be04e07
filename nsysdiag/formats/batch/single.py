"""One report as a batch of one, so that it can be written in the formats of CI systems."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from nsysdiag.ci.facts import BATCH_SCHEMA_VERSION, KIND, BatchDevice, BatchEntry, BatchFinding, BatchSummary
from nsysdiag.document.view import by_time
from nsysdiag.formats.batch.rows import FAIL

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import Report


def batch_of_one(report: Report, options: RenderOptions) -> BatchSummary:
    """The report as the only entry, with what became of the budgets where `options` has them."""
    trace = report.trace
    broken = [budget for budget in options.budgets if budget.broken]
    entry = BatchEntry(
        input=trace.file,
        name=PurePath(trace.file).stem,
        status="analysed",
        fingerprint=trace.fingerprint,
        size_bytes=trace.size_bytes,
        report="",
        devices=batch_devices(report),
        findings=batch_findings(report),
        budgets=list(options.budgets),
        unjudged=list(options.unjudged),
        warnings=trace.warnings,
    )
    failing = sum(budget.level == FAIL for budget in broken)
    return BatchSummary(
        schema_version=BATCH_SCHEMA_VERSION,
        kind=KIND,
        tool=report.tool,
        entries=[entry],
        failed=0,
        broken=failing,
        warned=len(broken) - failing,
        unjudged=len(options.unjudged),
    )


def batch_devices(report: Report) -> list[BatchDevice]:
    """The devices of a report as a batch knows them."""
    return [
        BatchDevice(
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
            causes=[(cause, ns) for cause, ns in by_time(device.ledger) if ns],
        )
        for device in report.devices
    ]


def batch_findings(report: Report) -> list[BatchFinding]:
    """The findings of a report as a batch knows them."""
    return [
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
    ]
