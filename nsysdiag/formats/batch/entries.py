"""Reports as entries of a batch; one report as a batch of one, so that the formats of CI systems can show it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from nsysdiag.ci.facts import BATCH_SCHEMA_VERSION, FAIL, KIND, BatchDevice, BatchEntry, BatchFinding, BatchSummary
from nsysdiag.ci.states import states, unused_gpus
from nsysdiag.document.context import as_read
from nsysdiag.document.view import by_time
from nsysdiag.fields import SettingValue
from nsysdiag.formats.batch.rows import FAILED
from nsysdiag.report import Tool
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.report import Report

ANALYSED, RESUMED = "analysed", "resumed"
THIS = Tool(name="nsysdiag", version=__version__)


def batch_of_one(report: Report, options: RenderOptions) -> BatchSummary:
    """The report as the only entry, with the budgets of `options` as judged there."""
    file = report.trace.file
    entry = entry_of(report, file, PurePath(file).stem, ANALYSED, "", options.budgets, options.unjudged)
    return summary_of([entry], tool=report.tool)


def summary_of(
    entries: list[BatchEntry], settings: dict[str, SettingValue] | None = None, tool: Tool = THIS
) -> BatchSummary:
    """The summary of a batch; `settings` are those that its traces were analysed with, where they differ from the
    defaults."""
    broken = [budget.level for entry in entries for budget in entry.budgets if budget.broken]
    unjudged = [budget.outcome for entry in entries for budget in entry.unjudged]
    return BatchSummary(
        schema_version=BATCH_SCHEMA_VERSION,
        kind=KIND,
        tool=tool,
        entries=entries,
        failed=sum(entry.status == FAILED for entry in entries),
        broken=broken.count(FAIL),
        warned=len(broken) - broken.count(FAIL),
        unjudged=len(unjudged),
        settings=settings or {},
        unjudged_failing=unjudged.count(FAIL),
    )


def entry_of(
    report: Report,
    input: str,
    name: str,
    status: str,
    page: str,
    budgets: Sequence[BudgetResult],
    unjudged: Sequence[UnjudgedBudget],
) -> BatchEntry:
    """The entry of an input that has a report; `page` is the path of the report within the folder of the batch."""
    report = as_read(report)
    return BatchEntry(
        input=input,
        name=name,
        status=status,
        fingerprint=report.trace.fingerprint,
        size_bytes=report.trace.size_bytes,
        report=page,
        devices=_devices(report),
        findings=_findings(report),
        budgets=list(budgets),
        unjudged=list(unjudged),
        warnings=report.trace.warnings,
        unused_gpus=unused_gpus(report),
    )


def _devices(report: Report) -> list[BatchDevice]:
    state = states(report)
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
            state=state[device.key],
        )
        for device in report.devices
    ]


def _findings(report: Report) -> list[BatchFinding]:
    return [
        BatchFinding(
            id=finding.id,
            device=finding.device,
            cause=finding.cause,
            severity=finding.severity,
            title=finding.title,
            lost_ns=finding.lost_ns,
            lost_share=finding.lost_share,
            devices=finding.devices,
        )
        for finding in report.findings
    ]
