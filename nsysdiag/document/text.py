"""Blocks as text for the terminal. Nothing here knows a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

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
from nsysdiag.document.kinds import BAR, MISSING, Kind
from nsysdiag.document.names import clip, visible
from nsysdiag.document.terminal import bar, grid, heading, indented
from nsysdiag.document.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STYLES = {"plain": "", "strong": "bold cyan", "quiet": "dim", "note": "yellow"}
NAME_ROOM, BAR_ROOM = 44, 10


def text_of(section: Section | None, detail: Detail, width: int) -> list[RenderableType]:
    """A section in `width` columns under its title; nothing where no block of it is for the terminal."""
    if section is None or not shown(section.blocks, detail):
        return []
    return [heading(section.title), *(indented(each) for each in _blocks(section.blocks, detail, width - 2))]


def _blocks(blocks: Sequence[Block], detail: Detail, width: int) -> Iterator[RenderableType]:
    for block in shown(blocks, detail):
        match block:
            case Heading(text=title):
                yield Text(visible(title), "bold")
            case Paragraph(text=sentence, tone=tone):
                yield Text(visible(sentence), STYLES[tone])
            case Lines():
                yield from _lines(block, detail)
            case Facts(facts=facts):
                yield from (Text(visible(f"{fact.label}: {fact.kind.text(fact.value)}")) for fact in facts)
            case Table():
                yield from _table(block, detail, width)
            case Chart(label=label):
                yield Text(visible(label))
            case Details(title=title, blocks=inside):
                yield Text(visible(title), "bold")
                yield from _blocks(inside, detail, width)
            case Custom(fallback=inside):
                yield from _blocks(inside, detail, width)


def _lines(block: Lines, detail: Detail) -> Iterator[Text]:
    lines = cut(block.lines, block.limit, detail)
    yield from (Text(visible(line)) for line in lines)
    if rest := len(block.lines) - len(lines):
        yield Text(f"{counted(rest, 'more line')} in the other formats", "dim")


def _table(block: Table, detail: Detail, width: int) -> Iterator[RenderableType]:
    """The table under its title; what names a row stands first."""
    places = sorted(columns_of(block, detail), key=lambda at: not block.columns[at].head)
    columns = [block.columns[at] for at in places]
    made = grid(*("r" if column.kind.right else "l" for column in columns))
    made.add_row(*(Text("" if column.kind is BAR else column.title, "dim") for column in columns))
    for row in cut(block.rows, block.limit, detail):
        made.add_row(*(_cell(row[at], block.columns[at], width) for at in places))
    yield Text(visible(block.title), "bold")
    yield made
    if rest := left_out(block, detail):
        yield Text(visible(rest), "dim")


def _cell(held: object, column: Column, width: int) -> Text:
    cell = as_cell(held)
    shown_as = _value(cell.value, column, cell.kind or column.kind, width) + (
        f" ({visible(cell.tag)})" if cell.tag else ""
    )
    return Text(shown_as, "bold" if cell.strong else "cyan" if column.kind is BAR else "")


def _value(value: object, column: Column, kind: Kind, width: int) -> str:
    if value is None:
        return MISSING
    if kind is BAR and isinstance(value, float):
        return bar(round(1000 * value), 1000, BAR_ROOM)
    name = value.text if isinstance(value, Name) else value.label if isinstance(value, LegendEntry) else value
    shown_as = name if isinstance(name, str) else kind.show(name)
    return shown_as if column.kind.right else clip(shown_as, max(12, min(column.length, NAME_ROOM, width - 36)))
