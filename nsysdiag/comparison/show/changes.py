"""What changed: the parts of the time and the idle time by cause, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.cells import TIMES, judged, share_of_before, times_of
from nsysdiag.comparison.show.rows import entry, has_roots, split, title
from nsysdiag.document.blocks import EVERYWHERE, NOT_PAGE, PAGE, Block, Cell, Column, Details, Paragraph, Section, Table
from nsysdiag.document.kinds import FIGURE, KEY, MARK, SIDE
from nsysdiag.document.view import Causes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.comparison.facts import Comparison, DeviceComparison, PartChange

TOP_CAUSES, BRIEF_CAUSES = 10, 4
INTERVAL = "95% interval"
COUNTS = (
    "Less time is better. A change counts if its 95% interval excludes 0 and it exceeds “counts above”, the effect of "
    "chance or drift alone."
)
TOGETHER = " Devices are judged together: where only one changed, its interval must exclude 0 by more."
BOUNDS = "Bounds are predicted for the whole length only, not for parts and causes."
ROOTS = "By root cause: each wait counts to what the thread that ended it did. The same idle time, divided differently"
PARTS = (Column("Part", KEY, head=True), *TIMES, Column("Of before", FIGURE))
OVERVIEW = (
    Column("Part", KEY, head=True),
    *TIMES,
    Column("Of before", FIGURE, spare=True),
    Column(INTERVAL, FIGURE, spare=True),
    Column("Verdict", MARK),
)


def changes(device: DeviceComparison, causes: Causes, *, several: bool) -> Section | None:
    """The parts of the time, and the idle time by cause: each level adds up to the one above."""
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    if not parts and not device.ledger:
        return None
    predicted = device.unit.kind in words.PREDICTED
    blocks = [
        Table("Time for a unit of work", _titled(OVERVIEW, device), _overview(device, parts, causes), limit=NOT_PAGE),
        _parts("The parts of the time; they add up to the length", "Part", parts, device, causes),
        *_folded("The idle time by cause; the causes add up to it", device.ledger, device, causes),
        *(_folded(ROOTS, device.root_ledger, device, causes) if has_roots(device) else []),
        Paragraph(BOUNDS if predicted else COUNTS + (TOGETHER if several else ""), "quiet", PAGE),
    ]
    return Section("changes", "What changed", blocks)


def in_brief(comparison: Comparison) -> list[Block]:
    """With a prediction, the parts and the largest causes of the slowest device, whose length is above."""
    job, causes = comparison.job, Causes(comparison.causes)
    found = [
        each
        for each in comparison.devices
        if each.unit.kind in words.PREDICTED and job is not None and each.key in (job.device_before, job.device_after)
    ]
    if not found:
        return []
    device = found[-1]
    parts = [row for row in device.parts if row.change.before_ns or row.change.after_ns]
    rows = [(title(row.id, causes), row.change) for row in parts]
    rows += [(f"… {title(row.id, causes)}", row.change) for row in split(device.ledger, device)[0][:BRIEF_CAUSES]]
    cells = [(label, *times_of(change), share_of_before(change)) for label, change in rows]
    return [Table("", PARTS, cells, sortable=False, limit=EVERYWHERE)]


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


def _titled(columns: Sequence[Column], device: DeviceComparison) -> list[Column]:
    """The columns, with that of the interval called what it is."""
    title = words.interval_title(device.unit)
    return [replace(column, title=title) if column.title == INTERVAL else column for column in columns]


def _parts(
    caption: str,
    head: str,
    rows: Sequence[PartChange],
    device: DeviceComparison,
    causes: Causes,
    *,
    sortable: bool = True,
) -> Table:
    columns = (
        Column(head, KEY, head=True),
        *TIMES,
        Column(INTERVAL, FIGURE),
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
    return Table(caption, _titled(columns, device), cells, sortable=sortable, limit=PAGE)


def _folded(caption: str, rows: Sequence[PartChange], device: DeviceComparison, causes: Causes) -> list[Block]:
    shown, tiny = split(rows, device)
    if not shown or len(tiny) < 2:
        shown, tiny = list(rows), []
    note = "Causes with less than half a percent of the length on both sides, and without a change that counts"
    table = _parts(note, "Cause", tiny, device, causes, sortable=False)
    return [
        _parts(caption, "Cause", shown, device, causes),
        Details(f"{len(tiny):,} more with next to no time on either side", [table]),
    ]
