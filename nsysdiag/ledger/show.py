"""The idle ledger: what a device waited for, as it was and at the root, for formats without a template of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.blocks import MARKDOWN, NOT_PAGE, TERMINAL, Block, Cell, Column, Paragraph, Table, Tone
from nsysdiag.document.columns import BAR, TEXT, TIME, part, share_of
from nsysdiag.document.view import ledger_rows, moved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.document.view import Causes, Context, LedgerRow
    from nsysdiag.report import DeviceReport

TOP_LABELS = 3
LEAST_CAUSE = 1000
"""Causes with less than a thousandth of the idle time share a row in the terminal."""
MERGED = 44
"""How long the title of a cause with its only label may be."""


def blocks(device: DeviceReport, context: Context) -> list[Block]:
    """The causes, and where wake-ups moved time, the root causes."""
    columns = (
        Column("Cause", TEXT, head=True),
        Column("Time", TIME),
        Column("Of idle", share_of(device.idle_ns)),
        Column("Of window", share_of(device.window_ns)),
        Column("Bar", BAR, limit=TERMINAL),
    )
    causes = [row for row in ledger_rows(device, context.causes) if row.ns]
    return [
        Table("", columns, [_cause(row, device) for row in causes], limit=MARKDOWN),
        Table("", columns, _folded(causes, device), limit=TERMINAL),
        Paragraph(words.coverage_sentence(device.coverage), limit=NOT_PAGE),
        *(Paragraph(each, limit=NOT_PAGE) for each in words.behind_sentences(device, context.report)),
        _roots(device, context.causes),
    ]


def _folded(causes: Sequence[LedgerRow], device: DeviceReport) -> list[tuple[object, ...]]:
    """The causes with their labels; two or more of the smallest share a row."""
    shown = [row for row in causes if row.ns * LEAST_CAUSE >= device.idle_ns]
    rest = causes[len(shown) :]
    if len(rest) < 2:
        shown, rest = list(causes), []
    rows = [row for cause in shown for row in _labelled(cause, device)]
    return [*rows, *([_quiet(f"{len(rest)} smaller causes", sum(row.ns for row in rest))] if rest else [])]


def _labelled(row: LedgerRow, device: DeviceReport) -> Iterator[tuple[object, ...]]:
    """A cause and its labels; a single label of all its time is in its own row."""
    title, labels = row.cause.title, row.labels
    if len(labels) == 1 and labels[0][1] == row.ns and len(title) + len(labels[0][0]) + 2 <= MERGED:
        title, labels = f"{title}: {labels[0][0]}", ()
    yield _cause(row, device, title)
    yield from (_quiet(f"  {label}", ns) for label, ns in labels[:TOP_LABELS])
    if hidden := labels[TOP_LABELS:]:
        yield _quiet(f"  {len(hidden)} more", sum(ns for _label, ns in hidden))


def _cause(row: LedgerRow, device: DeviceReport, title: str = "") -> tuple[object, ...]:
    tone: Tone = "quiet" if row.cause.unresolved else "plain"
    return Cell(title or row.cause.title, tone=tone), row.ns, row.ns, row.ns, part(row.ns, device.idle_ns)


def _quiet(title: str, ns: int) -> tuple[object, ...]:
    return (*(Cell(value, tone="quiet") for value in (title, ns, ns, ns)), 0.0)


def _roots(device: DeviceReport, causes: Causes) -> Table:
    """The same idle time by root cause; empty if no time changed its cause."""
    columns = (
        Column("Cause", TEXT, "cause.title", head=True),
        Column("Time", TIME, lambda row: row.ns or None),
        Column("Of idle", share_of(device.idle_ns), lambda row: row.ns or None),
        Column("Before, and of which", TEXT, lambda row: Cell(words.root_change(row), tone="quiet"), length=300),
    )
    title = "By root cause: each wait is charged to what the thread that ended it did"
    return Table.of(title, columns, moved(device, causes), limit=NOT_PAGE)
