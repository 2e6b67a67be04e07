"""What changed: the parts of the time and the idle time by cause, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.cells import TIMES, judged, share_of_before, times_of
from nsysdiag.comparison.show.rows import entry, has_roots, split, title
from nsysdiag.document.blocks import NOT_PAGE, PAGE, Block, Cell, Column, Details, Paragraph, Section, Table
from nsysdiag.document.kinds import FIGURE, KEY, MARK, SIDE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import DeviceComparison, PartChange
    from nsysdiag.document.view import Causes

TOP_CAUSES = 10
COUNTS = (
    "Less time is better. A change counts where its 95% interval leaves 0 out and it is larger than “counts above”: "
    "what chance or drift alone may bring."
)
TOGETHER = " Devices are judged together: where one alone changed, its interval must leave 0 out by more."
ROOTS = "At the root: each wait counted as what the thread did that ended it. The same idle time, cut again"
OVERVIEW = (
    Column("Part", KEY, head=True),
    *TIMES,
    Column("Of before", FIGURE, spare=True),
    Column("95% interval", FIGURE, spare=True),
    Column("Verdict", MARK),
)


def changes(device: DeviceComparison, causes: Causes, *, several: bool) -> Section | None:
    """The parts of the time, and the idle time by cause: each level adds up to the one above."""
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    if not parts and not device.ledger:
        return None
    blocks = [
        Table("Time for a unit of work", OVERVIEW, _overview(device, parts, causes), limit=NOT_PAGE),
        _parts("The parts of the time; they add up to the length", "Part", parts, causes),
        *_folded("The idle time by cause; the causes add up to it", device.ledger, device, causes),
        *(_folded(ROOTS, device.root_ledger, device, causes) if has_roots(device) else []),
        Paragraph(COUNTS + (TOGETHER if several else ""), "quiet", PAGE),
    ]
    return Section("changes", "What changed", blocks)


def _overview(device: DeviceComparison, parts: Sequence[PartChange], causes: Causes) -> list[tuple[object, ...]]:
    """Length, parts, and under the idle time its causes, of which small ones share a row."""
    shown, tiny = split(device.ledger, device)
    rows = [("Length", device.length), *((title(row.id, causes), row.change) for row in parts)]
    rows += [(f"… {title(row.id, causes)}", row.change) for row in shown[:TOP_CAUSES]]
    found: list[tuple[object, ...]] = [
        (label, *times_of(change), share_of_before(change), words.interval_ns(change), judged(change))
        for label, change in rows
    ]
    if rest := [row.change for row in (*shown[TOP_CAUSES:], *tiny)]:
        before, after, change = (sum(times) for times in zip(*map(times_of, rest), strict=True))
        found.append((f"… {len(rest):,} more", before, after, change, None, None, None))
    return found


def _parts(caption: str, head: str, rows: Sequence[PartChange], causes: Causes, *, sortable: bool = True) -> Table:
    columns = (
        Column(head, KEY, head=True),
        *TIMES,
        Column("95% interval", FIGURE),
        Column("Counts above", SIDE),
        Column("Verdict", MARK),
    )
    cells = [
        (
            entry(row.id, causes),
            *times_of(row.change),
            Cell(words.interval_ns(row.change), order=row.change.low_ns or 0),
            row.change.least_ns,
            judged(row.change),
        )
        for row in rows
    ]
    return Table(caption, columns, cells, sortable=sortable, limit=PAGE)


def _folded(caption: str, rows: Sequence[PartChange], device: DeviceComparison, causes: Causes) -> list[Block]:
    shown, tiny = split(rows, device)
    if not shown or len(tiny) < 2:
        shown, tiny = list(rows), []
    note = "Causes with less than half a percent of the length on both sides, and without a change that counts"
    table = _parts(note, "Cause", tiny, causes, sortable=False)
    return [
        _parts(caption, "Cause", shown, causes),
        Details(f"{len(tiny):,} more with next to no time on either side", [table]),
    ]
