"""Budgets in a comment on a pull request: what is broken, what is not known, and the command that accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.ci.facts import FAIL, IGNORE
from nsysdiag.document.blocks import EVERYWHERE, Block, Column, Command, Paragraph, Section, Table
from nsysdiag.document.kinds import CODE, MARK, TEXT, Mark

if TYPE_CHECKING:
    from nsysdiag.formats.format import RenderOptions

MOST_COMMANDS = 10
FAILS, WARNS = Mark("▲", "fails", "worse"), Mark("◆", "warns", "mixed")
COLUMNS = (
    Column("Budget", CODE, head=True, length=120),
    Column("State", MARK),
    Column("What", TEXT, length=400),
)


def section(options: RenderOptions) -> Section:
    """Broken budgets, those that fail first, then those that cannot be judged; without blocks where there is none."""
    broken = sorted((each for each in options.budgets if each.broken), key=lambda each: each.level != FAIL)
    rows = [(each.budget, FAILS if each.level == FAIL else WARNS, each.sentence) for each in broken]
    rows += [
        (each.budget, FAILS if each.outcome == FAIL else WARNS, f"It cannot be judged: {each.why}")
        for each in options.unjudged
        if each.outcome != IGNORE
    ]
    commands = [command for each in broken if each.level == FAIL and (command := options.accept.get(each.id))]
    blocks: list[Block] = [Table("", COLUMNS, rows, sortable=False, noun="budgets", limit=EVERYWHERE)]
    if commands:
        blocks += [Paragraph("To accept it:"), *map(Command, commands[:MOST_COMMANDS])]
    return Section("budgets", "Budgets" if rows else "", blocks)
