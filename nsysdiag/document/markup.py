"""Blocks as Markdown. Independent of any subject."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.document import blocks as b
from nsysdiag.document.blocks import Detail, columns_of, cut, left_out, named, shown, shown_rows
from nsysdiag.document.columns import BAR, CODE, KEY, MARK, MISSING, NAME, TEXT, CellKind, StatusMark
from nsysdiag.document.drawings import LegendEntry, StackedBar
from nsysdiag.document.names import MARKER, clip, code, fenced, table, text, visible
from nsysdiag.document.svg import percent
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment


TONES = {"strong": "**{}**", "verdict": "**{}**", "note": "> {}"}
MOST_NAME = 300
"""How long a name in a sentence may be; those in tables are as long as their column says."""


def markdown_of(section: b.Section | None, level: int) -> list[str]:
    """A section under a heading of this level; nothing if no block of it is for Markdown."""
    if section is None or not shown(section.blocks, Detail.TICKET):
        return []
    title = [f"{'#' * level} {text(section.title)}"] if section.title else []
    return [*title, *markdown_blocks(section.blocks, level + 1)]


def markdown_blocks(blocks: Sequence[b.Block], level: int) -> Iterator[str]:  # noqa: PLR0912 - a case for each block
    """Blocks below a heading, with headings of this level."""
    for block in shown(blocks, Detail.TICKET):
        match block:
            case b.Heading(text=title):
                yield f"{'#' * level} {text(title)}"
            case b.Paragraph(text=sentence, tone=tone):
                yield TONES.get(tone, "{}").format(_sentence(sentence))
            case b.Lines(lines=lines, limit=limit):
                yield "\n".join(f"- {_sentence(line)}" for line in cut(lines, limit, Detail.TICKET))
            case b.Chain(steps=steps):
                yield text(" → ".join(steps))
            case b.Command(text=command):
                yield fenced(command, "sh")
            case b.FigureRow(facts=facts):
                rows = [[text(fact.label), text(fact.kind.text(fact.value))] for fact in facts]
                yield table(["Figure", ""], "lr", rows)
            case b.Table():
                yield from _table(block)
            case b.Chart():
                yield text(in_words(block))
            case b.Callout():
                brings = f"Saves {block.figure} {block.of}. " if block.figure else ""
                yield f"**{text(f'{block.label}: {block.title}')}.** {text(brings + block.text)}".strip()
            case b.Items(items=items):
                yield "\n".join(line for number, item in enumerate(items, 1) for line in _item(number, item))
            case b.Details(title=title, blocks=inside):
                yield f"**{text(title)}**"
                yield from markdown_blocks(inside, level)
            case b.Entry(title=title, mark=mark, note=note, blocks=inside):
                whole = f"{mark}: {title}" if mark else title
                yield f"{'#' * level} {text(whole)}" + (f" ({text(note)})" if note else "")
                yield from markdown_blocks(inside, level + 1)
            case b.Custom(fallback=inside):
                yield from markdown_blocks(inside, level)


def markdown_document(
    title: str, sections: Sequence[b.Section], origin: Sequence[b.Part], command: str | None
) -> bytes:
    """Sections as a document of their own."""
    return markdown_page(title, [line for section in sections for line in markdown_of(section, 2)], origin, command)


def markdown_page(
    title: str, blocks: Sequence[str], origin: Sequence[b.Part], command: str | None, headline: str = ""
) -> bytes:
    """A document with the marker by which a later run recognizes its file, and the version at the end. The headline is
    above the title, as the first line."""
    made = markdown_blocks([b.Paragraph([*origin, *named(" · ", command)])], 2)
    first = [f"**{text(headline)}**"] if headline else []
    return ("\n\n".join([MARKER, *first, f"# nsysdiag: {text(title)}", *blocks, "---", *made]) + "\n").encode()


def in_words(block: b.Chart) -> str:
    """What it shows in words; of a stacked bar its parts."""
    drawing = block.drawing
    if not isinstance(drawing, StackedBar) or not drawing.segments:
        return block.label
    parts = (f"{each.label} {format_share(each.ns, drawing.whole)}" for each in drawing.segments)
    return f"{drawing.label}: {', '.join(parts)}."


def _item(number: int, item: tuple[b.Words, Sequence[b.Words]]) -> Iterator[str]:
    title, lines = item
    yield f"{number}. {_sentence(title)}"
    yield from (f"   - {_sentence(line)}" for line in lines)


def _sentence(words: b.Words) -> str:
    return text(words) if isinstance(words, str) else "".join(map(_part, words)).strip()


def _part(part: b.Part) -> str:
    match part:
        case b.Name(text=name):
            return code(name, limit=MOST_NAME)
        case LegendEntry(label=label):
            return text(label)
        case StatusMark():
            return text(MARK.show(part))
    return part[: len(part) - len(part.lstrip())] + text(part) + part[len(part.rstrip()) :]  # blanks at its ends count


def _table(block: b.Table) -> Iterator[str]:
    """The table under its title; the column that names a row is first, and bars are left out."""
    places = [at for at in columns_of(block, Detail.TICKET) if block.columns[at].kind is not BAR]
    places.sort(key=lambda at: not block.columns[at].head)
    columns, shown_as = shown_rows(block, Detail.TICKET, places)
    rows = [[*map(_cell, row, columns)] for row in shown_as]
    if block.title:
        yield f"**{text(block.title)}**"
    aligns = "".join("r" if column.kind.right else "l" for column in columns)
    yield table([text(column.title) for column in columns], aligns, rows)
    if rest := left_out(block, Detail.TICKET):
        yield text(rest)


def _cell(cell: b.Cell, column: b.Column) -> str:
    shown_as = _value(cell.value, column, cell.kind or column.kind) + (f" ({text(cell.tag)})" if cell.tag else "")
    return f"**{shown_as}**" if cell.strong else shown_as


def _value(value: object, column: b.Column, kind: CellKind) -> str:
    if value is None:
        return MISSING
    match value:
        case b.Name(text=name):
            return code(name, in_table=True, limit=column.length)
        case LegendEntry(label=label):
            return text(label)
    if kind in (NAME, CODE):
        return code(str(value), in_table=True, limit=column.length)
    return (_sentence(value) if kind is TEXT and isinstance(value, tuple) else text(kind.show(value))) or MISSING


# Sections as a comment on a pull request: found again by its key, and never longer than a comment may be.
#
# ```
# <!-- nsysdiag report -->
# <!-- nsysdiag comment: train -->        what a script looks for, to replace its own comment by this one
# ...
# ```
#
# Where the whole is too long, the least important pieces are cut to fewer rows, and then left out, which a line says.

MOST_BYTES = 65_535
"""GitHub takes comments of up to 65,536 characters. Bytes are at least as many, whatever is counted as a character."""
ROWS = (50, 10, 3)
"""To how many rows a piece is cut before it is left out."""
COMMENT_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/]|-(?!-)){0,99}(?<!-)")
"""A key ends no comment of HTML, in which there is no `--`."""


class Piece(Struct, frozen=True):
    """A section of a comment. The larger its `weight`, the sooner it is cut; those of weight 0 are never left out.
    `folded` ones are shown on a click, under `title`."""

    section: b.Section
    weight: int
    folded: bool = False
    title: str = ""


def comment_marker(key: str) -> str:
    """The line by which a comment is found again."""
    return f"<!-- nsysdiag comment: {key} -->"


def comment(
    key: str, title: str, pieces: Sequence[Piece], origin: Sequence[b.Part], report_url: str | None = None
) -> bytes:
    """The comment as UTF-8, below 65,536 bytes, with a link to the whole report if that is known."""
    head = [MARKER + "\n" + comment_marker(key), f"### nsysdiag: {text(title)}"]
    link = [f"[The whole report](<{report_url}>)"] if report_url else []
    foot = ["---", *link, *markdown_blocks([b.Paragraph(origin)], 4)]
    rows: list[int | None] = [None] * len(pieces)
    made = _joined(head, pieces, rows, foot)
    for at, most in _steps(pieces):
        if len(made) <= MOST_BYTES:
            return made
        rows[at] = most
        made = _joined(head, pieces, rows, foot)
    return made if len(made) <= MOST_BYTES else made[: made.rfind(b"\n", 0, MOST_BYTES) + 1]


def _steps(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Which piece is cut to how many rows, step by step; 0 leaves it out."""
    order = sorted(range(len(pieces)), key=lambda at: (-pieces[at].weight, -at))
    return [(at, most) for at in order for most in (*ROWS, 0) if most or pieces[at].weight]


def _joined(head: list[str], pieces: Sequence[Piece], rows: Sequence[int | None], foot: list[str]) -> bytes:
    blocks = [line for piece, most in zip(pieces, rows, strict=True) if most != 0 for line in _lines(piece, most)]
    gone = [piece.title or piece.section.title for piece, most in zip(pieces, rows, strict=True) if most == 0]
    said = [text(f"Left out, as it would be too long for a comment: {', '.join(dict.fromkeys(gone))}.")] if gone else []
    return ("\n\n".join([*head, *blocks, *said, *foot]) + "\n").encode("utf-8", "backslashreplace")


def _lines(piece: Piece, most: int | None) -> list[str]:
    section = piece.section
    if most is not None:
        section = replace(section, blocks=[at_most(block, most) for block in section.blocks])
    if not piece.folded:
        return markdown_of(section, 4)
    inside = list(markdown_blocks(section.blocks, 5))
    title = html.escape(visible(piece.title or section.title))
    return [f"<details>\n<summary>{title}</summary>", *inside, "</details>"] if inside else []


def at_most(block: b.Block, most: int) -> b.Block:
    """The block with so many rows or lines at most, also in what is inside of it."""
    match block:
        case b.Table() | b.Lines():
            held = block.limit.ticket
            return replace(block, limit=replace(block.limit, ticket=most if held is None else min(held, most)))
        case b.Items(items=items):
            return replace(block, items=items[:most])
        case b.Details(blocks=inside) | b.Entry(blocks=inside):
            return replace(block, blocks=[at_most(each, most) for each in inside])
        case b.Custom(fallback=inside):
            return replace(block, fallback=[at_most(each, most) for each in inside])
    return block


# Blocks as HTML: each by the macro of `templates/blocks.html` with the name of its class, whatever the subject.

MOST_HINT = 400
_LONG_WORD = re.compile(r"\S{17,}")
_PIECE = re.compile(r"\w{0,24}\W{0,8}", re.ASCII)
EXACT = ("moment", "share", "side", "change")
"""Kinds whose short form says least."""


def html_of(blocks: Sequence[b.Block], environment: Environment, level: int, values: Mapping[str, object]) -> Markup:
    """The blocks of a section whose title is a heading of this level; templates of their own see `values` too."""
    macros: Any = environment.get_template("blocks.html").module
    drawn = (_drawn(block, environment, macros, level, values) for block in shown(blocks, Detail.PAGE))
    return Markup("").join(Markup("{}\n").format(each) for each in drawn)


def breakable(name: str) -> Markup:
    """A name that may break after the signs in its long words, or else after 24 letters: so a column can be less wide
    than the name, and no word breaks elsewhere."""

    def pieces(word: re.Match[str]) -> str:
        held = (_PIECE.findall(part) for part in re.split(r"(?<=_)(?!_)", word[0]))
        return "\0".join(piece for part in held for piece in part if piece)

    return Markup("<wbr>").join(_LONG_WORD.sub(pieces, visible(name)).split("\0"))


def _drawn(block: b.Block, environment: Environment, macros: Any, level: int, values: Mapping[str, object]) -> Markup:
    if isinstance(block, b.Custom):
        draw = environment.get_template("macros.html").module
        return Markup(environment.get_template(block.template).render(values, view=block.view(), draw=draw))  # escaped
    more: tuple[object, ...] = ()
    match block:
        case b.Table():
            columns, rows = shown_rows(block, Detail.PAGE, columns_of(block, Detail.PAGE))
            cells = [[(*pair, _attributes(*pair)) for pair in zip(columns, row, strict=True)] for row in rows]
            caption = (f"{block.title}.", block.note, left_out(block, Detail.PAGE))
            more = (columns, cells, " ".join(part for part in caption if part))
        case b.Details(blocks=inside):
            more = (html_of(inside, environment, level, values),)
        case b.Entry(blocks=inside):
            more = (html_of(inside, environment, level + 1, values), level + 1)
        case b.Chart():
            more = (type(block.drawing).__name__,)
        case b.Heading():
            more = (level + 1,)
        case b.Command(text=command, place=place):
            more = (f"command-{crc32((place + command).encode(errors='surrogatepass')):08x}",)
    return Markup(getattr(macros, type(block).__name__)(block, *more))


def _attributes(column: b.Column, cell: b.Cell) -> dict[str, str]:
    """What scripts sort and filter by, and what the pointer shows on the numbers that matter most."""
    kind, value, exact = cell.kind or column.kind, cell.value, ""
    found: dict[str, str] = {}
    if isinstance(value, int | float) and kind.right:
        exact = kind.exact(value) if kind.exact and (column.strong or kind.id in EXACT) else ""
        found = {"data-v": f"{value:.6g}" if isinstance(value, float) else str(value)}
    elif cell.order is not None:
        found = {"data-v": str(cell.order)}
    elif kind is KEY:  # every cell of a column that can be filtered needs a value
        found = {"data-f": clip(value.label, 60) if isinstance(value, LegendEntry) else MISSING}
    elif column.pick:
        picked = value.word if isinstance(value, StatusMark) else str(value or MISSING)
        found = {"data-f": clip(picked, column.length)}
    title = ", ".join(part for part in (exact, clip(cell.hint, MOST_HINT)) if part)
    return found | ({"title": title} if title else {})


def width_of(share: float) -> str:
    """The length of a bar."""
    return percent(round(100_000 * share), 100_000)
