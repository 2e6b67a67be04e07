"""The baseline that a comparison is with: how many runs it has, and the regressions that it accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.blocks import EVERYWHERE, Block, Cell, Column, Lines, Paragraph, Section, Table
from nsysdiag.document.kinds import CODE, MARK, TEXT, Mark

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import Comparison

MARKS = {
    "exceeded": Mark("▲", "more than accepted", "worse"),
    "expired": Mark("▲", "expired", "worse"),
    "used": Mark("◆", "accepted", "mixed"),
    "unused": Mark("○", "not needed", "same"),
}
"""What became of each, the worst first."""
ACCEPTED = (
    Column("Accepted up to", CODE, head=True, length=100),
    Column("State", MARK),
    Column("Until", TEXT),
    Column("Reason", TEXT, length=500),
)


def section(comparison: Comparison) -> Section | None:
    """None for a comparison with no baseline."""
    use = comparison.baseline
    if use is None:
        return None
    order = list(MARKS)
    rows = sorted(use.accepted, key=lambda each: order.index(each.status) if each.status in order else len(order))
    cells = [(each.what, Cell(MARKS.get(each.status, MARKS["unused"])), each.until, each.reason) for each in rows]
    said = [each.sentence for each in rows if each.status != "unused"]
    blocks: list[Block] = [
        Paragraph(use.sentence, "note" if use.spread is None else "plain"),
        Table("Accepted regressions", ACCEPTED, cells, sortable=False, limit=EVERYWHERE),
        Lines(said),
    ]
    return Section("baseline", f"Baseline {use.name}", blocks)
