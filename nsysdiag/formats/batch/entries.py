"""Reports as entries of a batch; one report as a batch of one, so that the formats of CI systems can show it."""

from __future__ import annotations

from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from nsysdiag.ci import facts
from nsysdiag.document.blocks import Cell, Column, Limit, Name, Paragraph, Section, Table, Tone
from nsysdiag.document.columns import CODE, FIGURE, MARK, NAME, SHARE, StatusMark, part
from nsysdiag.document.names import visible
from nsysdiag.document.text import text_document
from nsysdiag.document.view import as_read, by_time, severity_rank
from nsysdiag.document.words import counted
from nsysdiag.fields import SettingValue
from nsysdiag.report import Report, Tool
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsysdiag.formats import RenderOptions


# The rows of a batch, one a trace and GPU with the state of this GPU, the worst first.

FAILED = "failed"
_FAILED, _BROKEN, _UNJUDGED, _WARNED, _UNEXPLAINED, _IDLE, _BARELY_USED, _KEPT, _PLAIN, _UNUSED = (
    StatusMark("✕", "Not analyzed", "worse"),
    StatusMark("▲", "Budget broken", "worse"),
    StatusMark("✕", "Budget not judged", "worse"),
    StatusMark("◆", "Warning", "mixed"),
    StatusMark("◇", "Not explained", "mixed"),
    StatusMark("◇", "No GPU work", "mixed"),
    StatusMark("◇", "Hardly used", "mixed"),
    StatusMark("✓", "Budgets kept", "better"),
    StatusMark("○", "No budgets", "same"),
    StatusMark("–", "Not used", "same"),
)
MARKS = (_FAILED, _BROKEN, _UNJUDGED, _WARNED, _UNEXPLAINED, _IDLE, _BARELY_USED, _KEPT, _PLAIN, _UNUSED)
"""The states of a GPU in a batch, the worst first. One on which nothing is to be judged keeps no budget; those of the
machine that a trace has no work of come last, for another trace may have it."""
_OF_STATE = {facts.UNEXPLAINED: _UNEXPLAINED, facts.IDLE: _IDLE, facts.BARELY_USED: _BARELY_USED}


class BatchRow(Struct, frozen=True):
    """A device of a trace; `device` is None if the trace could not be analyzed or has no GPU work, and for the
    `unused` GPUs of its machine together. `broken` are the budgets that this device breaks, or the whole trace;
    `unjudged` are those that cannot be judged on it and are not ignored; `top` is its first finding."""

    entry: facts.BatchEntry
    device: facts.BatchDevice | None
    mark: StatusMark
    broken: list[facts.BudgetResult]
    unjudged: list[facts.UnjudgedBudget]
    top: facts.BatchFinding | None
    unused: int = 0


def rows(summary: facts.BatchSummary) -> list[BatchRow]:
    """In the order of `MARKS`, and within each state by the idle share."""
    found: list[BatchRow] = []
    for entry in summary.entries:
        if entry.status == FAILED:
            found.append(BatchRow(entry, None, _FAILED, [], [], None))
            continue
        found += [_row(entry, device) for device in entry.devices] or [_row(entry, None)]
        if entry.devices and entry.unused_gpus:
            found.append(BatchRow(entry, None, _UNUSED, [], [], None, entry.unused_gpus))

    def badness(row: BatchRow) -> tuple[int, float, str, str]:
        place = MARKS.index(row.mark if row.mark != _PLAIN else _KEPT)  # a GPU is not better for having no budgets
        return place, -idle_share(row.device), row.entry.input, row.device.key if row.device else ""

    return sorted(found, key=badness)


def _row(entry: facts.BatchEntry, device: facts.BatchDevice | None) -> BatchRow:
    key = device.key if device else ""
    broken = failing_first(each for each in entry.budgets if each.broken_on(key))
    unjudged = [each for each in shown_unjudged(entry.unjudged) if each.concerns(key)]
    findings = [each for each in entry.findings if device is None or key in (each.device, *each.devices)]
    top = next(iter(by_weight(findings)), None)
    return BatchRow(entry, device, _mark(entry, device, [*broken, *unjudged]), broken, unjudged, top)


Budget = facts.BudgetResult | facts.UnjudgedBudget


def shown_unjudged(budgets: Iterable[facts.UnjudgedBudget]) -> list[facts.UnjudgedBudget]:
    """The budgets that a trace cannot tell, without those that are ignored."""
    return [each for each in budgets if each.outcome != facts.IGNORE]


def failing_first(broken: Iterable[facts.BudgetResult]) -> list[facts.BudgetResult]:
    """Broken budgets, those that fail before those that only warn."""
    return sorted(broken, key=lambda each: not fails(each))


def fails(budget: Budget) -> bool:
    """Whether a broken budget, or one that cannot be judged, fails the run."""
    return (budget.outcome if isinstance(budget, facts.UnjudgedBudget) else budget.level) == facts.FAIL


def told(budget: Budget) -> str:
    """What is broken, or why it cannot be judged."""
    return budget.why if isinstance(budget, facts.UnjudgedBudget) else budget.sentence


def not_judged(budget: facts.UnjudgedBudget) -> str:
    """The sentence about a budget that cannot be judged."""
    return f"It cannot be judged: {budget.why}"


def budget_mark(budget: Budget) -> StatusMark:
    """What a budget does to the run."""
    return StatusMark("▲", "fails", "worse") if fails(budget) else StatusMark("◆", "warns", "mixed")


def _mark(entry: facts.BatchEntry, device: facts.BatchDevice | None, budgets: Sequence[Budget]) -> StatusMark:
    """The state of a device by its `budgets` that are broken, or that cannot be judged; broken ones count more."""
    failing = next(filter(fails, budgets), None)
    if budgets:
        return _WARNED if failing is None else _UNJUDGED if isinstance(failing, facts.UnjudgedBudget) else _BROKEN
    if device is None:
        return _IDLE
    kept = any(each.judges(device.key) for each in entry.budgets)
    return _OF_STATE.get(device.state, _KEPT if kept else _PLAIN)


def by_weight(findings: list[facts.BatchFinding]) -> list[facts.BatchFinding]:
    """Findings by severity, then by lost time."""
    return sorted(findings, key=lambda each: (severity_rank(each.severity), -each.lost_ns, each.id))


def shown_name(name: str) -> str:
    """The name of a trace or run as a link can show it: never nothing."""
    return visible(name).strip() or "(no name)"


def idle_share(device: facts.BatchDevice | None) -> float:
    """Idle time as a part of the window, 0..1; 0 without a device."""
    return device.idle_ns / device.window_ns if device and device.window_ns else 0.0


def result(summary: facts.BatchSummary) -> StatusMark:
    """The worst that became of any trace."""
    if summary.failed:
        return StatusMark(
            _FAILED.icon, "Some not analyzed" if summary.failed < len(summary.entries) else "None analyzed", "worse"
        )
    if summary.broken:
        return StatusMark(_BROKEN.icon, "Budgets broken", "worse")
    if summary.unjudged_failing:
        return StatusMark(_UNJUDGED.icon, "Budgets not judged", "worse")
    if summary.warned or any(shown_unjudged(entry.unjudged) for entry in summary.entries):
        return StatusMark(_WARNED.icon, "Warnings", "mixed")
    marks = {row.mark for row in rows(summary)} - {_UNUSED}
    if marks and marks <= {_IDLE}:
        return _IDLE
    return _KEPT if any(entry.budgets for entry in summary.entries) else _PLAIN


def headline(summary: facts.BatchSummary) -> str:
    """What became of all, counted."""
    entries = summary.entries
    devices = sum(len(entry.devices) for entry in entries)
    resumed = sum(entry.status == "resumed" for entry in entries)
    size = counted(len(entries), "trace") + (f" with {counted(devices, 'GPU')}" if devices else "")
    said = [f"{summary.failed:,} not analyzed"]
    unjudged = sum(len(shown_unjudged(entry.unjudged)) for entry in entries)
    if unjudged:
        said += [counted(unjudged, "budget") + " not judged"]
    if any(entry.budgets for entry in entries):
        said += [counted(summary.broken, "budget") + " broken", counted(summary.warned, "warning")]
    elif not unjudged:
        said += ["no budgets"]
    idle = [device for entry in entries for device in entry.devices if device.state == facts.IDLE]
    said += [f"{len(idle):,} without GPU work"] if idle else []
    unchanged = f"; {resumed:,} unchanged since the last run" if resumed else ""
    return f"{size}: {', '.join(said)}{unchanged}."


ANALYZED, RESUMED = "analysed", "resumed"
KEPT = (
    "key",
    "name",
    "window_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "exposed_comm_ns",
    "exposed_copy_ns",
    "coverage",
)
"""The fields of a device that its batch has too."""
THIS = Tool(name="nsysdiag", version=__version__)


def batch_of_one(report: Report, options: RenderOptions) -> facts.BatchSummary:
    """The report as the only entry, with the budgets of `options` as judged there."""
    file = report.trace.file
    entry = entry_of(report, file, PurePath(file).stem, ANALYZED, "", options.budgets, options.unjudged)
    return summary_of([entry], tool=report.tool)


def summary_of(
    entries: list[facts.BatchEntry], settings: dict[str, SettingValue] | None = None, tool: Tool = THIS
) -> facts.BatchSummary:
    """The summary of a batch; `settings` are those that its traces were analyzed with, if they differ from the
    defaults."""
    broken = [budget.level for entry in entries for budget in entry.budgets if budget.broken]
    unjudged = [budget.outcome for entry in entries for budget in entry.unjudged]
    return facts.BatchSummary(
        schema_version=facts.BATCH_SCHEMA_VERSION,
        kind=facts.KIND,
        tool=tool,
        entries=entries,
        failed=sum(entry.status == FAILED for entry in entries),
        broken=broken.count(facts.FAIL),
        warned=len(broken) - broken.count(facts.FAIL),
        unjudged=len(unjudged),
        settings=settings or {},
        unjudged_failing=unjudged.count(facts.FAIL),
    )


def entry_of(
    report: Report,
    input: str,
    name: str,
    status: str,
    page: str,
    budgets: Sequence[facts.BudgetResult],
    unjudged: Sequence[facts.UnjudgedBudget],
) -> facts.BatchEntry:
    """The entry of an input that has a report; `page` is the path of the report within the folder of the batch."""
    report = as_read(report)
    return facts.BatchEntry(
        input=input,
        name=name,
        status=status,
        fingerprint=report.trace.fingerprint,
        size_bytes=report.trace.size_bytes,
        report=page,
        devices=_devices(report),
        findings=msgspec.convert(report.findings, list[facts.BatchFinding], from_attributes=True),
        budgets=list(budgets),
        unjudged=list(unjudged),
        warnings=report.trace.warnings,
        unused_gpus=facts.unused_gpus(report),
    )


def _devices(report: Report) -> list[facts.BatchDevice]:
    state = facts.states(report)
    return [
        facts.BatchDevice(
            **{name: getattr(device, name) for name in KEPT},
            verdict=device.verdict.id,
            sentence=device.verdict.sentence,
            iteration_ns=device.iterations.p50_ns if device.iterations else None,
            causes=[(cause, ns) for cause, ns in by_time(device.ledger) if ns],
            state=state[device.key],
        )
        for device in report.devices
    ]


# The table of a batch for the terminal: a row a trace and GPU, the worst first.

MOST_ROWS = 200
FOR_BUSY, FOR_BOTTLENECK = 100, 76
"""From which width on the table has these columns: a narrower one has room for names instead."""
TONES: dict[str, Tone] = {"worse": "bad", "mixed": "note", "better": "good"}
"""How the state of a row stands out, by the tone of its mark."""


def render(summary: facts.BatchSummary, options: RenderOptions) -> bytes:
    """The table in `options.width` columns, and what became of all in one line. The first MOST_ROWS rows are shown;
    the files of the batch hold all."""
    folder = _shared_folder(summary)
    busy = Column("Busy", SHARE, lambda row: _of_window(row, "busy_ns"))
    columns = (
        Column("Trace", NAME, lambda row: Name(shown_name(row.entry.name.removeprefix(folder))), head=True),
        Column("GPU", CODE, _gpu, length=16),
        Column("State", MARK, lambda row: Cell(row.mark, tone=TONES.get(row.mark.tone, "plain"))),
        *([Column("Bound by", CODE, _bottleneck, length=24)] if options.width >= FOR_BOTTLENECK else []),
        *([busy] if options.width >= FOR_BUSY else []),
        Column("Idle", SHARE, lambda row: _of_window(row, "idle_ns")),
        Column("Kept", FIGURE, _kept),
    )
    limit = Limit(summary=MOST_ROWS)
    table = Table.of("", columns, rows(summary), limit=limit, order="that come first here")
    section = Section("traces", "", [table, Paragraph(headline(summary), "strong")])
    head = f"nsysdiag {summary.tool.version}" + (f" · {folder}" if folder else "")
    return text_document(head, [section], options.width, None, color=options.color)


def _shared_folder(summary: facts.BatchSummary) -> str:
    """The folders that all names begin with, which stand in the first line instead; with `/` behind them."""
    folders = [entry.name.split("/")[:-1] for entry in summary.entries]
    shared = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False)) if len(folders) > 1 else ()
    return "".join(f"{names[0]}/" for names in shared)


def _gpu(row: BatchRow) -> str | None:
    return row.device.key if row.device else f"{row.unused:,} more" if row.unused else None


def _bottleneck(row: BatchRow) -> str | None:
    return row.device.verdict.removesuffix("-bound") if row.device else None


def _of_window(row: BatchRow, field: str) -> float | None:
    return part(getattr(row.device, field), row.device.window_ns) if row.device else None


def _kept(row: BatchRow) -> str | None:
    """`1/2`: the budgets that this GPU keeps, of all that are about it; None if none is."""
    key = row.device.key if row.device else ""
    judged = [each for each in row.entry.budgets if row.device and each.judges(key)]
    total = len(judged) + len(row.unjudged)
    return f"{sum(not each.broken_on(key) for each in judged)}/{total}" if total else None
