"""Blocks of text for the terminal: headings, tables without lines, and how they are printed."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nsysdiag.document.names import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

EIGHTHS = " ▏▎▍▌▋▊▉█"


def printed(blocks: RenderableType, lines: Iterable[Text], width: int, *, color: bool) -> bytes:
    """The blocks in `width` columns, then `lines`, which are never wrapped, so that a command can be copied whole."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=color,
        color_system="256" if color else None,
        no_color=not color,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    console.print(blocks, crop=False)
    for line in lines:
        console.print(line, soft_wrap=True)
    text = buffer.getvalue()
    if not color:
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    return text.encode()


def heading(title: str, note: str = "") -> Text:
    """A bold title after an empty line, with a faint note."""
    return Text.assemble("\n", (visible(title), "bold"), (f"  {visible(note)}" if note else "", "dim"))


def indented(block: RenderableType, columns: int = 2) -> Padding:
    """A block moved to the right."""
    return Padding(block, (0, 0, 0, columns))


def grid(*justify: str) -> Table:
    """A table without lines, a letter a column: l left, r right, w left and wrapped."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for side in justify:
        table.add_column(justify="right" if side == "r" else "left", no_wrap=side != "w", overflow="fold")
    return table


def span(low: float, high: float, columns: int) -> str:
    """A bar from one share of the columns to another; one that is not empty always shows."""
    start = max(0, min(columns - 1, int(columns * low)))  # steps of a damaged comparison lead below 0
    end = max(start + 1, round(columns * high))
    return " " * start + "█" * (end - start) if high > low else ""


def bar(part: int, whole: int, columns: int) -> str:
    """A horizontal bar to an eighth of a column; a part that is not zero always shows."""
    if whole <= 0 or part <= 0:
        return ""
    eighths = max(1, round(8 * columns * part / whole))
    full, rest = divmod(min(eighths, 8 * columns), 8)
    return EIGHTHS[8] * full + (EIGHTHS[rest] if rest else "")
