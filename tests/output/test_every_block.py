"""Every kind of block in text and Markdown, folded and inside of others."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from nsysdiag.document.blocks import (
    EVERYWHERE,
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
    Fact,
    FigureRow,
    Heading,
    Items,
    Lines,
    Paragraph,
    Table,
)
from nsysdiag.document.columns import COUNT, TEXT
from nsysdiag.document.drawings import BarChart
from nsysdiag.document.markup import markdown_blocks
from nsysdiag.document.text import text_blocks

INSIDE: list[Block] = [Heading("Inner title"), Paragraph("An inner sentence.")]
BLOCKS: list[Block] = [
    Heading("A title"),
    Paragraph("A sentence."),
    Lines(["one line", "another line"]),
    Chain(["root", "effect"]),
    Command("nsys profile python train.py"),
    FigureRow([Fact("Window", "743 ms")], limit=EVERYWHERE),
    Chart(BarChart([], 1, {}), "what the chart shows", limit=EVERYWHERE),
    Items([("first of all", ["how to mend it"]), ("second to it", [])]),
    Callout("Mend first", "the loader", "a third", "each step", "Use workers."),
    Table("", (Column("", TEXT, head=True), Column("", COUNT)), [("left cell", 4321)], limit=EVERYWHERE),
    Details("Folded on the page", INSIDE, limit=EVERYWHERE),
    Entry("An entry", INSIDE, mark="▲ high"),
    Custom("none.html", dict, [Paragraph("Instead of the drawing.")]),
]
SAID = (
    "A title",
    "A sentence.",
    "one line",
    "another line",
    "root",
    "effect",
    "nsys profile python train.py",
    "743 ms",
    "what the chart shows",
    "first of all",
    "how to mend it",
    "second to it",
    "Mend first: the loader",
    "Saves a third each step. Use workers.",
    "left cell",
    "4,321",
    "Folded on the page",
    "Inner title",
    "An inner sentence.",
    "An entry",
    "Instead of the drawing.",
)


def in_order(text: str) -> list[str]:
    """What of the above is in a text, in its order."""
    return sorted((each for each in SAID if each in text), key=text.index)


def test_in_text() -> None:
    written = StringIO()
    console = Console(width=80, file=written)
    for line in text_blocks(BLOCKS, Detail.SUMMARY, 80, 2):
        console.print(line)
    assert in_order(written.getvalue()) == list(SAID)


def test_in_markdown() -> None:
    assert in_order("\n".join(markdown_blocks(BLOCKS, 2))) == list(SAID)
