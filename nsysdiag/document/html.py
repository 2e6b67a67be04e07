"""Blocks as HTML: each by the macro of `templates/blocks.html` with the name of its class, whatever the subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from zlib import crc32

from markupsafe import Markup

from nsysdiag.document import blocks as b
from nsysdiag.document.blocks import Detail, as_cell, columns_of, cut, left_out, shown
from nsysdiag.document.columns import KEY, MISSING, StatusMark
from nsysdiag.document.drawings import LegendEntry
from nsysdiag.document.names import clip, visible
from nsysdiag.document.svg import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment

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
            caption = (f"{block.title}.", block.note, left_out(block, Detail.PAGE))
            more = (*_rows(block), " ".join(part for part in caption if part))
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


def _rows(table: b.Table) -> tuple[list[b.Column], list[list[tuple[b.Column, b.Cell, dict[str, str]]]]]:
    """The columns that are shown, and of each row the column, cell and attributes of each."""
    columns = [table.columns[at] for at in columns_of(table, Detail.PAGE)]
    rows = [
        [(table.columns[at], as_cell(row[at])) for at in columns_of(table, Detail.PAGE)]
        for row in cut(table.rows, table.limit, Detail.PAGE)
    ]
    return columns, [[(column, cell, _attributes(column, cell)) for column, cell in row] for row in rows]


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
