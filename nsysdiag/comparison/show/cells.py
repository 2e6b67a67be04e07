"""Cells and limits that the tables of a comparison share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.comparison.show import words
from nsysdiag.document.blocks import Cell, Column, Limit
from nsysdiag.document.kinds import SIDE, SIGNED, Mark
from nsysdiag.units import format_signed_share

if TYPE_CHECKING:
    from nsysdiag.comparison.facts import Change

MOST_ROWS, TERMINAL_ROWS, MARKDOWN_ROWS = 300, 4, 6
ALL = Limit(page=MOST_ROWS, ticket=0, summary=0, brief=0)
"""The page alone, which has what others list a few of."""
TIMES = (Column("Before", SIDE), Column("After", SIDE), Column("Change", SIGNED))


def short(*, several: bool) -> Limit:
    """What formats other than the page show of a table: nothing where there are several devices."""
    return Limit(page=0, ticket=0 if several else MARKDOWN_ROWS, summary=TERMINAL_ROWS, brief=0)


def times_of(change: Change) -> tuple[int, int, int]:
    """The cells of TIMES, in ns."""
    return change.before_ns, change.after_ns, change.change_ns


def marked(mark: Mark) -> Cell:
    """A verdict with its sign, in its tone."""
    return Cell(mark, tone=words.tone(mark))


def judged(change: Change) -> Cell:
    """The verdict on a change with its sign."""
    return marked(words.change_mark(change.verdict))


def share_of_before(change: Change) -> str | None:
    """The change as a share of the time before, None of nothing."""
    return format_signed_share(change.change_ns, change.before_ns) if change.before_ns else None


def timed(change: Change) -> tuple[object, ...]:
    """The cells of TIMES; the difference shows its interval to the pointer."""
    return change.before_ns, change.after_ns, Cell(change.change_ns, hint=f"95% interval {words.interval_ns(change)}")
