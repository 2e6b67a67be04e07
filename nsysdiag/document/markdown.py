"""Blocks as Markdown. Nothing here knows a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.blocks import (
    Block,
    Chart,
    Column,
    Custom,
    Detail,
    Details,
    Facts,
    Heading,
    Lines,
    Name,
    Paragraph,
    Section,
    Table,
    as_cell,
    columns_of,
    cut,
    left_out,
    shown,
)
from nsysdiag.document.kinds import BAR, MISSING, NAME, Kind
from nsysdiag.document.markup import code, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TONES = {"plain": "{}", "strong": "**{}**", "quiet": "{}", "note": "> {}"}


def markdown_of(section: Section | None, level: int) -> list[str]:
    """A section under a heading of this level; nothing where no block of it is for Markdown."""
    if section is None or not shown(section.blocks, Detail.TICKET):
        return []
    return [f"{'#' * level} {text(section.title)}", *_blocks(section.blocks, level + 1)]


def _blocks(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in shown(blocks, Detail.TICKET):
        match block:
            case Heading(text=title):
                yield f"{'#' * level} {text(title)}"
            case Paragraph(text=sentence, tone=tone):
                yield TONES[tone].format(text(sentence))
            case Lines(lines=lines, limit=limit):
                yield "\n".join(f"- {text(line)}" for line in cut(lines, limit, Detail.TICKET))
            case Facts(facts=facts):
                rows = [[text(fact.label), text(fact.kind.text(fact.value))] for fact in facts]
                yield table(["Figure", ""], "lr", rows)
            case Table():
                yield from _table(block)
            case Chart(label=label):
                yield text(label)
            case Details(title=title, blocks=inside):
                yield f"**{text(title)}**"
                yield from _blocks(inside, level)
            case Custom(fallback=inside):
                yield from _blocks(inside, level)


def _table(block: Table) -> Iterator[str]:
    """The table under its title; what names a row stands first, and bars are left out."""
    places = [at for at in columns_of(block, Detail.TICKET) if block.columns[at].kind is not BAR]
    places.sort(key=lambda at: not block.columns[at].head)
    columns = [block.columns[at] for at in places]
    rows = [[_cell(row[at], block.columns[at]) for at in places] for row in cut(block.rows, block.limit, Detail.TICKET)]
    yield f"**{text(block.title)}**"
    aligns = "".join("r" if column.kind.right else "l" for column in columns)
    yield table([text(column.title) for column in columns], aligns, rows)
    if rest := left_out(block, Detail.TICKET):
        yield text(rest)


def _cell(held: object, column: Column) -> str:
    cell = as_cell(held)
    shown_as = _value(cell.value, column, cell.kind or column.kind) + (f" ({text(cell.tag)})" if cell.tag else "")
    return f"**{shown_as}**" if cell.strong else shown_as


def _value(value: object, column: Column, kind: Kind) -> str:
    if value is None:
        return MISSING
    match value:
        case Name(text=name):
            return code(name, in_table=True, limit=column.length)
        case LegendEntry(label=label):
            return text(label)
    if kind is NAME:
        return code(str(value), in_table=True, limit=column.length)
    return text(kind.show(value)) or MISSING
