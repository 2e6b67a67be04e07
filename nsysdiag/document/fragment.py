"""Blocks as a piece of HTML for the cell of a notebook: what a ticket has, its Markdown made HTML.

It brings neither scripts nor colours: text, lines and backgrounds are those of the page around it, light or dark. Names
are made visible and escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from nsysdiag.document.blocks import Block, Paragraph
from nsysdiag.document.markdown import at_most, markdown_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_BYTES = 50_000
"""Notebooks keep every output in their file."""
MOST_ROWS = 30
AROUND = "color:inherit;background:none;overflow-x:auto;max-width:70em"
REST = Paragraph("The rest is left out: save() writes the whole page.", "quiet")


def fragment(title: str, blocks: Sequence[Block]) -> str:
    """The blocks under a title, the first ones of them where all would be too many for a cell."""
    shown = [Paragraph(title, "strong"), *(at_most(block, MOST_ROWS) for block in blocks)]
    return f'<div style="{AROUND}">{"".join(_within(MOST_BYTES, shown))}</div>'


def _within(most: int, blocks: Sequence[Block]) -> Iterator[str]:
    """The pieces of blocks as long as they fit into so many bytes."""
    for piece in map(_html, markdown_blocks(blocks, 4)):
        most -= len(piece.encode())
        if most < 0:
            yield from map(_html, markdown_blocks([REST], 4))
            return
        yield piece


def _html(piece: str) -> str:
    """Without HTML of its own: what is not Markdown is text."""
    made = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(piece))
    return made.replace('<code class="language-sh">', "<code>").replace("\n", " ")
