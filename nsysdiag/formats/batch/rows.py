"""The rows of a batch, one a trace and GPU with the state of this GPU, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.ci.facts import FAIL, IGNORE
from nsysdiag.ci.states import BARELY_USED, IDLE, UNEXPLAINED
from nsysdiag.document.kinds import StatusMark
from nsysdiag.document.names import visible
from nsysdiag.document.view import severity_rank
from nsysdiag.document.words import counted

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchDevice, BatchEntry, BatchFinding, BatchSummary, BudgetResult, UnjudgedBudget


FAILED = "failed"
_FAILED, _BROKEN, _UNJUDGED, _WARNED, _UNEXPLAINED, _IDLE, _BARELY_USED, _KEPT, _PLAIN, _UNUSED = (
    StatusMark("✕", "Not analysed", "worse"),
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
_OF_STATE = {UNEXPLAINED: _UNEXPLAINED, IDLE: _IDLE, BARELY_USED: _BARELY_USED}


class BatchRow(Struct, frozen=True):
    """A device of a trace; `device` is None where the trace could not be analysed or has no GPU work, and for the
    `unused` GPUs of its machine together. `broken` are the budgets that this device breaks, or the whole trace;
    `unjudged` are those that cannot be judged on it and are not ignored; `top` is its first finding."""

    entry: BatchEntry
    device: BatchDevice | None
    mark: StatusMark
    broken: list[BudgetResult]
    unjudged: list[UnjudgedBudget]
    top: BatchFinding | None
    unused: int = 0


def rows(summary: BatchSummary) -> list[BatchRow]:
    """In the order of `MARKS`, and within each state by the idle share."""
    found: list[BatchRow] = []
    for entry in summary.entries:
        if entry.status == FAILED:
            found.append(BatchRow(entry, None, _FAILED, [], [], None))
        else:
            found += [_row(entry, device) for device in entry.devices] or [_row(entry, None)]
            if entry.devices and entry.unused_gpus:
                found.append(BatchRow(entry, None, _UNUSED, [], [], None, entry.unused_gpus))

    def badness(row: BatchRow) -> tuple[int, float, str, str]:
        place = MARKS.index(row.mark if row.mark != _PLAIN else _KEPT)  # a GPU is not better for having no budgets
        return place, -idle_share(row.device), row.entry.input, row.device.key if row.device else ""

    return sorted(found, key=badness)


def _row(entry: BatchEntry, device: BatchDevice | None) -> BatchRow:
    key = device.key if device else ""
    broken = [each for each in entry.budgets if each.broken_on(key)]
    broken.sort(key=lambda each: each.level != FAIL)
    unjudged = [each for each in shown_unjudged(entry) if each.concerns(key)]
    findings = [each for each in entry.findings if device is None or key in (each.device, *each.devices)]
    top = next(iter(by_weight(findings)), None)
    return BatchRow(entry, device, _mark(entry, device, broken, unjudged), broken, unjudged, top)


def shown_unjudged(entry: BatchEntry) -> list[UnjudgedBudget]:
    """The budgets that the trace cannot tell, without those that are ignored."""
    return [each for each in entry.unjudged if each.outcome != IGNORE]


def _mark(
    entry: BatchEntry, device: BatchDevice | None, broken: list[BudgetResult], unjudged: list[UnjudgedBudget]
) -> StatusMark:
    if broken and broken[0].level == FAIL:
        return _BROKEN
    if any(each.outcome == FAIL for each in unjudged):
        return _UNJUDGED
    if broken or unjudged:
        return _WARNED
    if device is None:
        return _IDLE
    kept = any(each.judges(device.key) for each in entry.budgets)
    return _OF_STATE.get(device.state, _KEPT if kept else _PLAIN)


def by_weight(findings: list[BatchFinding]) -> list[BatchFinding]:
    """Findings by severity, then by lost time."""
    return sorted(findings, key=lambda each: (severity_rank(each.severity), -each.lost_ns, each.id))


def shown_name(name: str) -> str:
    """The name of a trace or run as a link can show it: never nothing."""
    return visible(name).strip() or "(no name)"


def idle_share(device: BatchDevice | None) -> float:
    """Idle time as a part of the window, 0..1; 0 without a device."""
    return device.idle_ns / device.window_ns if device and device.window_ns else 0.0


def result(summary: BatchSummary) -> StatusMark:
    """The worst that became of any trace."""
    if summary.failed:
        return StatusMark(
            _FAILED.icon, "Some not analysed" if summary.failed < len(summary.entries) else "None analysed", "worse"
        )
    if summary.broken:
        return StatusMark(_BROKEN.icon, "Budgets broken", "worse")
    if summary.unjudged_failing:
        return StatusMark(_UNJUDGED.icon, "Budgets not judged", "worse")
    if summary.warned or any(shown_unjudged(entry) for entry in summary.entries):
        return StatusMark(_WARNED.icon, "Warnings", "mixed")
    marks = {row.mark for row in rows(summary)} - {_UNUSED}
    if marks and marks <= {_IDLE}:
        return _IDLE
    return _KEPT if any(entry.budgets for entry in summary.entries) else _PLAIN


def headline(summary: BatchSummary) -> str:
    """What became of all, counted."""
    entries = summary.entries
    devices = sum(len(entry.devices) for entry in entries)
    resumed = sum(entry.status == "resumed" for entry in entries)
    size = counted(len(entries), "trace") + (f" with {counted(devices, 'GPU')}" if devices else "")
    facts = [f"{summary.failed:,} not analysed"]
    unjudged = sum(len(shown_unjudged(entry)) for entry in entries)
    if unjudged:
        facts += [counted(unjudged, "budget") + " not judged"]
    if any(entry.budgets for entry in entries):
        facts += [counted(summary.broken, "budget") + " broken", counted(summary.warned, "warning")]
    elif not unjudged:
        facts += ["no budgets"]
    idle = [device for entry in entries for device in entry.devices if device.state == IDLE]
    facts += [f"{len(idle):,} without GPU work"] if idle else []
    unchanged = f"; {resumed:,} unchanged since the last run" if resumed else ""
    return f"{size}: {', '.join(facts)}{unchanged}."
