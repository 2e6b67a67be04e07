"""Blocks as Markdown. Independent of any subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.blocks import (
    Block,
    Callout,
    Chain,
    Chart,
    Column,
    Command,
    Custom,
    Detail,
    Details,
    Entry,
    Facts,
    Heading,
    Items,
    Lines,
    Name,
    Paragraph,
    Part,
    Section,
    Table,
    Words,
    as_cell,
    columns_of,
    cut,
    left_out,
    named,
    shown,
)
from nsysdiag.document.figures import Stack
from nsysdiag.document.kinds import BAR, CODE, MARK, MISSING, NAME, TEXT, Kind, Mark
from nsysdiag.document.markup import MARKER, code, fenced, table, text
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TONES = {"strong": "**{}**", "verdict": "**{}**", "note": "> {}"}
MOST_NAME = 300
"""How long a name in a sentence may be; those in tables are as long as their column says."""


def markdown_of(section: Section | None, level: int) -> list[str]:
    """A section under a heading of this level; nothing where no block of it is for Markdown."""
    if section is None or not shown(section.blocks, Detail.TICKET):
        return []
    title = [f"{'#' * level} {text(section.title)}"] if section.title else []
    return [*title, *markdown_blocks(section.blocks, level + 1)]


def markdown_blocks(blocks: Sequence[Block], level: int) -> Iterator[str]:  # noqa: PLR0912 - a case for each block
    """Blocks below a heading, with headings of this level."""
    for block in shown(blocks, Detail.TICKET):
        match block:
            case Heading(text=title):
                yield f"{'#' * level} {text(title)}"
            case Paragraph(text=sentence, tone=tone):
                yield TONES.get(tone, "{}").format(_sentence(sentence))
            case Lines(lines=lines, limit=limit):
                yield "\n".join(f"- {_sentence(line)}" for line in cut(lines, limit, Detail.TICKET))
            case Chain(steps=steps):
                yield text(" → ".join(steps))
            case Command(text=command):
                yield fenced(command, "sh")
            case Facts(facts=facts):
                rows = [[text(fact.label), text(fact.kind.text(fact.value))] for fact in facts]
                yield table(["Figure", ""], "lr", rows)
            case Table():
                yield from _table(block)
            case Chart():
                yield text(in_words(block))
            case Callout():
                brings = f"Saves {block.figure} {block.of}. " if block.figure else ""
                yield f"**{text(f'{block.label}: {block.title}')}.** {text(brings + block.text)}".strip()
            case Items(items=items):
                yield "\n".join(line for number, item in enumerate(items, 1) for line in _item(number, item))
            case Details(title=title, blocks=inside):
                yield f"**{text(title)}**"
                yield from markdown_blocks(inside, level)
            case Entry(title=title, mark=mark, note=note, blocks=inside):
                whole = f"{mark}: {title}" if mark else title
                yield f"{'#' * level} {text(whole)}" + (f" ({text(note)})" if note else "")
                yield from markdown_blocks(inside, level + 1)
            case Custom(fallback=inside):
                yield from markdown_blocks(inside, level)


def markdown_document(title: str, sections: Sequence[Section], origin: Sequence[Part], command: str | None) -> bytes:
    """Sections as a document of their own."""
    return markdown_page(title, [line for section in sections for line in markdown_of(section, 2)], origin, command)


def markdown_page(
    title: str, blocks: Sequence[str], origin: Sequence[Part], command: str | None, headline: str = ""
) -> bytes:
    """A document with the marker by which a later run recognizes its file, and the version at the end. The headline is
    above the title, as the first line."""
    made = markdown_blocks([Paragraph([*origin, *named(" · ", command)])], 2)
    first = [f"**{text(headline)}**"] if headline else []
    return ("\n\n".join([MARKER, *first, f"# nsysdiag: {text(title)}", *blocks, "---", *made]) + "\n").encode()


def in_words(block: Chart) -> str:
    """What it shows in words; of a stacked bar its parts."""
    drawing = block.drawing
    if not isinstance(drawing, Stack) or not drawing.segments:
        return block.label
    parts = (f"{each.label} {format_share(each.ns, drawing.whole)}" for each in drawing.segments)
    return f"{drawing.label}: {', '.join(parts)}."


def _item(number: int, item: tuple[Words, Sequence[Words]]) -> Iterator[str]:
    title, lines = item
    yield f"{number}. {_sentence(title)}"
    yield from (f"   - {_sentence(line)}" for line in lines)


def _sentence(words: Words) -> str:
    return text(words) if isinstance(words, str) else "".join(map(_part, words)).strip()


def _part(part: Part) -> str:
    match part:
        case Name(text=name):
            return code(name, limit=MOST_NAME)
        case LegendEntry(label=label):
            return text(label)
        case Mark():
            return text(MARK.show(part))
    return part[: len(part) - len(part.lstrip())] + text(part) + part[len(part.rstrip()) :]  # blanks at its ends count


def _table(block: Table) -> Iterator[str]:
    """The table under its title; the column that names a row is first, and bars are left out."""
    places = [at for at in columns_of(block, Detail.TICKET) if block.columns[at].kind is not BAR]
    places.sort(key=lambda at: not block.columns[at].head)
    columns = [block.columns[at] for at in places]
    rows = [[_cell(row[at], block.columns[at]) for at in places] for row in cut(block.rows, block.limit, Detail.TICKET)]
    if block.title:
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
    if kind in (NAME, CODE):
        return code(str(value), in_table=True, limit=column.length)
    return (_sentence(value) if kind is TEXT and isinstance(value, tuple) else text(kind.show(value))) or MISSING
