"""Blocks as a piece of HTML for the cell of a notebook: words and tables, as much as a ticket has.

It brings neither scripts nor colours: text, lines and backgrounds are those of the page around it, light or dark. Names
are made visible and escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

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
    FigureRow,
    Heading,
    Items,
    Lines,
    Name,
    Paragraph,
    Part,
    Table,
    Words,
    as_cell,
    columns_of,
    cut,
    shown,
)
from nsysdiag.document.drawings import LegendEntry
from nsysdiag.document.kinds import BAR, CODE, MARK, MISSING, NAME, TEXT, StatusMark
from nsysdiag.document.markdown import in_words
from nsysdiag.document.names import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_BYTES = 50_000
"""Notebooks keep every output in their file."""
MOST_TEXT, MOST_NAME, MOST_ROWS = 1_200, 160, 30
AROUND = "color:inherit;background:none;overflow-x:auto;max-width:70em"
QUIET = "opacity:.75"
TONES = {
    "strong": "font-weight:bold",
    "verdict": "font-weight:bold",
    "quiet": QUIET,
    "note": "border-left:3px solid;padding-left:.6em",
}
CELL = "padding:.15em .8em .15em 0;text-align:{};border-top:1px solid"
CUT = Markup('<p style="{}">The rest is left out: save() writes the whole page.</p>').format(QUIET)


def fragment(title: str, blocks: Sequence[Block]) -> str:
    """The blocks under a title, the first ones of them where all would be too many for a cell."""
    head = Markup("<p><strong>{}</strong></p>").format(_text(title))
    made = Markup("").join(_within(MOST_BYTES, [head, *_drawn(blocks)]))
    return str(Markup('<div style="{}">{}</div>').format(AROUND, made))


def _within(most: int, pieces: Iterable[Markup]) -> Iterator[Markup]:
    """Pieces as long as they fit into so many bytes."""
    for piece in pieces:
        most -= len(piece.encode())
        if most < 0:
            yield CUT
            return
        yield piece


def _drawn(blocks: Sequence[Block]) -> Iterator[Markup]:  # noqa: PLR0912 - a case for each block
    for block in shown(blocks, Detail.TICKET):
        match block:
            case Heading(text=title):
                yield Markup("<p><strong>{}</strong></p>").format(_text(title))
            case Paragraph(text=sentence, tone=tone):
                yield _paragraph(_sentence(sentence), TONES.get(tone, ""))
            case Lines(lines=lines, limit=limit):
                yield _list("ul", (_sentence(line) for line in cut(lines, limit, Detail.TICKET)))
            case Chain(steps=steps):
                yield _paragraph(_text(" → ".join(steps)))
            case Command(text=command):
                yield Markup("<pre>{}</pre>").format(_text(command))
            case FigureRow(facts=facts):
                yield _list("ul", (_text(f"{fact.label}: {fact.kind.text(fact.value)}") for fact in facts))
            case Table():
                yield _table(block)
            case Chart():
                yield _paragraph(_text(in_words(block)))
            case Callout():
                brings = f"Saves {block.figure} {block.of}. " if block.figure else ""
                label = Markup("<strong>{}</strong> ").format(_text(f"{block.label}: {block.title}."))
                yield _paragraph(label + _text(brings + block.text))
            case Items(items=items):
                yield _list("ol", (_item(title, lines) for title, lines in items))
            case Details(title=title, blocks=inside):
                yield Markup("<details><summary>{}</summary>{}</details>").format(
                    _text(title), Markup("").join(_drawn(inside))
                )
            case Entry(title=title, mark=mark, blocks=inside):
                yield _paragraph(_text(f"{mark}: {title}" if mark else title), TONES["strong"])
                yield from _drawn(inside)
            case Custom(fallback=inside):
                yield from _drawn(inside)


def _paragraph(content: Markup, style: str = "") -> Markup:
    return Markup('<p style="margin:.4em 0;{}">{}</p>').format(style, content)


def _list(kind: str, lines: Iterable[Markup]) -> Markup:
    made = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup('<{0} style="margin:.4em 0">{1}</{0}>').format(kind, made)


def _item(title: Words, lines: Sequence[Words]) -> Markup:
    return _sentence(title) + (_list("ul", map(_sentence, lines)) if lines else Markup(""))


def _sentence(words: Words) -> Markup:
    return _text(words) if isinstance(words, str) else Markup("").join(map(_part, words))


def _part(part: Part) -> Markup:
    match part:
        case Name(text=name):
            return Markup("<code>{}</code>").format(_text(name, MOST_NAME))
        case LegendEntry(label=label):
            return _text(label)
        case StatusMark():
            return _text(MARK.show(part))
    return _text(part)


def _text(value: str, most: int = MOST_TEXT) -> Markup:
    return Markup("{}").format(clip(value, most))


def _table(block: Table) -> Markup:
    """Its first rows; the column that names a row is first, and bars are left out."""
    places = [at for at in columns_of(block, Detail.TICKET) if block.columns[at].kind is not BAR]
    places.sort(key=lambda at: not block.columns[at].head)
    columns = [block.columns[at] for at in places]
    rows = cut(block.rows, block.limit, Detail.TICKET)[:MOST_ROWS]
    lines = [_row("th", [(column, _text(column.title)) for column in columns])]
    lines += [_row("td", [(block.columns[at], _cell(row[at], block.columns[at])) for at in places]) for row in rows]
    title = _paragraph(_text(block.title), TONES["strong"]) if block.title else Markup("")
    total = max(block.total or 0, len(block.rows))
    rest = _paragraph(_text(f"{len(rows)} of {total:,} {block.noun}."), QUIET) if len(rows) < total else Markup("")
    body = Markup('<table style="color:inherit;border-collapse:collapse">{}</table>').format(Markup("").join(lines))
    return title + body + rest


def _row(tag: str, cells: Sequence[tuple[Column, Markup]]) -> Markup:
    made = [
        Markup('<{0} style="{1}">{2}</{0}>').format(tag, CELL.format("right" if column.kind.right else "left"), content)
        for column, content in cells
    ]
    return Markup("<tr>{}</tr>").format(Markup("").join(made))


def _cell(held: object, column: Column) -> Markup:
    cell = as_cell(held)
    kind, value = cell.kind or column.kind, cell.value
    match value:
        case None:
            return Markup(MISSING)
        case Name() | LegendEntry():
            made = _part(value)
        case tuple() if kind is TEXT:
            made = _sentence(value)
        case _:
            made = _part(Name(str(value))) if kind in (NAME, CODE) else _text(kind.show(value), column.length)
    return Markup("<strong>{}</strong>").format(made) if cell.strong else made
