"""The rows of a batch, one a trace and device, in the order in which a person wants to see them: the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.ci.facts import FAIL, IGNORE
from nsysdiag.document.kinds import Mark
from nsysdiag.document.names import visible
from nsysdiag.document.view import severity_rank
from nsysdiag.document.words import counted

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BatchDevice, BatchEntry, BatchFinding, BatchSummary, BudgetResult, UnjudgedBudget

FAILED = "failed"
_FAILED, _BROKEN, _UNJUDGED, _WARNED, _ELSEWHERE, _KEPT, _PLAIN = (
    Mark("✕", "Not analysed", "worse"),
    Mark("▲", "Budget broken", "worse"),
    Mark("✕", "Budget not judged", "worse"),
    Mark("◆", "Warning", "mixed"),
    Mark("◇", "More on another GPU", "mixed"),
    Mark("✓", "Budgets kept", "better"),
    Mark("○", "No budgets", "same"),
)
MARKS = (_FAILED, _BROKEN, _UNJUDGED, _WARNED, _ELSEWHERE, _KEPT, _PLAIN)
"""What can become of a trace, the worst first."""


class Row(Struct, frozen=True):
    """A device of a trace; `device` is None where the trace could not be analysed or has no GPU work. `broken` are the
    broken budgets of this device and of the whole trace, `unjudged` those that the trace cannot tell and that are not
    ignored, `top` its first finding."""

    entry: BatchEntry
    device: BatchDevice | None
    mark: Mark
    broken: list[BudgetResult]
    unjudged: list[UnjudgedBudget]
    top: BatchFinding | None


def rows(summary: BatchSummary) -> list[Row]:
    """Not analysed, then with budgets that are broken and fail, that cannot be judged, that warn; within each by the
    idle share."""
    found: list[Row] = []
    for entry in summary.entries:
        if entry.status == FAILED:
            found.append(Row(entry, None, _FAILED, [], [], None))
        else:
            found += [_row(entry, device) for device in entry.devices] or [_row(entry, None)]

    def badness(row: Row) -> tuple[int, float, str, str]:
        rank = min(MARKS.index(row.mark), MARKS.index(_KEPT))  # a trace is not better for having no budgets
        return rank, -idle_share(row.device), row.entry.input, row.device.key if row.device else ""

    return sorted(found, key=badness)


def _row(entry: BatchEntry, device: BatchDevice | None) -> Row:
    key = device.key if device else ""
    broken = [each for each in entry.budgets if each.broken and (device is None or each.device in ("", key))]
    broken.sort(key=lambda each: each.level != FAIL)
    findings = [each for each in entry.findings if device is None or each.device == key]
    top = next(iter(by_weight(findings)), None)
    return Row(entry, device, _mark(broken, entry), broken, shown_unjudged(entry), top)


def shown_unjudged(entry: BatchEntry) -> list[UnjudgedBudget]:
    """The budgets that the trace cannot tell, without those that are ignored."""
    return [each for each in entry.unjudged if each.outcome != IGNORE]


def _mark(broken: list[BudgetResult], entry: BatchEntry) -> Mark:
    """A budget that is kept is kept on all devices; of a broken one only the device that breaks it most is known."""
    if broken and broken[0].level == FAIL:
        return _BROKEN
    unjudged = shown_unjudged(entry)
    if any(each.outcome == FAIL for each in unjudged):
        return _UNJUDGED
    if broken or unjudged:
        return _WARNED
    if any(each.broken for each in entry.budgets):
        return _ELSEWHERE
    return _KEPT if entry.budgets else _PLAIN


def by_weight(findings: list[BatchFinding]) -> list[BatchFinding]:
    """Findings by severity, then by lost time."""
    return sorted(findings, key=lambda each: (severity_rank(each.severity), -each.lost_ns, each.id))


def shown_name(name: str) -> str:
    """The name of a trace or run as a link can show it: never nothing."""
    return visible(name).strip() or "(no name)"


def idle_share(device: BatchDevice | None) -> float:
    """Idle time as a part of the window, 0..1; 0 without a device."""
    return device.idle_ns / device.window_ns if device and device.window_ns else 0.0


def result(summary: BatchSummary) -> Mark:
    """The worst that became of any trace."""
    if summary.failed:
        return Mark(
            _FAILED.icon, "Some not analysed" if summary.failed < len(summary.entries) else "None analysed", "worse"
        )
    if summary.broken:
        return Mark(_BROKEN.icon, "Budgets broken", "worse")
    if summary.unjudged_failing:
        return Mark(_UNJUDGED.icon, "Budgets not judged", "worse")
    if summary.warned or any(shown_unjudged(entry) for entry in summary.entries):
        return Mark(_WARNED.icon, "Warnings", "mixed")
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
    unchanged = f"; {resumed:,} unchanged since the last run" if resumed else ""
    return f"{size}: {', '.join(facts)}{unchanged}."
