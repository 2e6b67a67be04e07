"""Sections as a comment on a pull request: found again by its key, and never longer than a comment may be.

```
<!-- nsysdiag report -->
<!-- nsysdiag comment: train -->        what a script looks for, to replace its own comment by this one
...
```

Where the whole is too long, the least important pieces are cut to fewer rows, and then left out, which a line says.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.document.blocks import Block, Custom, Details, Entry, Items, Lines, Paragraph, Part, Section, Table
from nsysdiag.document.markdown import markdown_blocks, markdown_of
from nsysdiag.document.markup import MARKER, text
from nsysdiag.document.names import visible

MOST_BYTES = 65_535
"""GitHub takes comments of up to 65,536 characters. Bytes are at least as many, whatever is counted as a character."""
ROWS = (50, 10, 3)
"""To how many rows a piece is cut before it is left out."""
KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/]|-(?!-)){0,99}(?<!-)")
"""A key ends no comment of HTML, in which there is no `--`."""


class Piece(Struct, frozen=True):
    """A section of a comment. The larger its `weight`, the sooner it is cut; those of weight 0 are never left out.
    `folded` ones are shown on a click, under `title`."""

    section: Section
    weight: int
    folded: bool = False
    title: str = ""


def comment_marker(key: str) -> str:
    """The line by which a comment is found again."""
    return f"<!-- nsysdiag comment: {key} -->"


def comment(key: str, title: str, pieces: Sequence[Piece], origin: Sequence[Part]) -> bytes:
    """The comment as UTF-8, below 65,536 bytes."""
    head = [MARKER + "\n" + comment_marker(key), f"### nsysdiag: {text(title)}"]
    foot = ["---", *markdown_blocks([Paragraph(origin)], 4)]
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
        section = replace(section, blocks=[_cut(block, most) for block in section.blocks])
    if not piece.folded:
        return markdown_of(section, 4)
    inside = list(markdown_blocks(section.blocks, 5))
    title = html.escape(visible(piece.title or section.title))
    return [f"<details>\n<summary>{title}</summary>", *inside, "</details>"] if inside else []


def _cut(block: Block, most: int) -> Block:
    """The block with so many rows or lines at most, also in what is inside of it."""
    match block:
        case Table() | Lines():
            held = block.limit.ticket
            return replace(block, limit=replace(block.limit, ticket=most if held is None else min(held, most)))
        case Items(items=items):
            return replace(block, items=items[:most])
        case Details(blocks=inside) | Entry(blocks=inside):
            return replace(block, blocks=[_cut(each, most) for each in inside])
        case Custom(fallback=inside):
            return replace(block, fallback=[_cut(each, most) for each in inside])
    return block
