"""What a document is made of: blocks that every format renders. A subject writes its blocks once, in `show.py`.

A block says in which formats it appears: four levels of detail, from the terminal's summary of one GPU among several to
the page. Names, times and shares in it stay what they are; only renderers make text of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Self, TypeVar

from msgspec import Struct

from nsysdiag.document.columns import MARK, TEXT, CellKind, StatusMark
from nsysdiag.document.drawings import Drawing, LegendEntry
from nsysdiag.fields import value_at

T = TypeVar("T")


class Detail(Enum):
    """How much a format shows."""

    BRIEF = "brief"
    """text about one GPU of several"""
    SUMMARY = "summary"
    """text about the only GPU, or about the whole report"""
    TICKET = "ticket"
    """Markdown"""
    PAGE = "page"
    """HTML"""


class Limit(Struct, frozen=True):
    """How many rows or lines of a block each format shows: None for all, 0 to leave the block out."""

    page: int | None = None
    ticket: int | None = None
    summary: int | None = None
    brief: int | None = None

    def of(self, detail: Detail) -> int | None:
        """The number for one level of detail."""
        return getattr(self, detail.value)


EVERYWHERE = Limit()
NOT_BRIEF = Limit(brief=0)
TICKET = Limit(summary=0, brief=0)
"""Markdown and the page."""
MARKDOWN = Limit(page=0, summary=0, brief=0)
PAGE = Limit(ticket=0, summary=0, brief=0)
"""The page alone."""
NOT_PAGE = Limit(page=0)
TERMINAL = Limit(page=0, ticket=0)
NOT_TERMINAL = Limit(summary=0, brief=0)
"""Text alone."""


class Name(Struct, frozen=True):
    """A name from the trace, shown short. `whole` is shown with it if there is room, and on hover. The page makes
    it a link to `href`."""

    text: str
    whole: str = ""
    href: str = ""


Part = str | Name | LegendEntry | StatusMark
Words = str | Sequence[Part]
"""A sentence, or its parts if some are names from the trace, causes with their colours, or judgements."""
Tone = Literal["plain", "strong", "quiet", "note", "verdict", "good", "bad"]
"""How a text stands out: a `note` warns, a `verdict` says all in one sentence."""


class Remark(Struct, frozen=True):
    """A smaller line below the value of a cell; the pointer shows `hint`."""

    text: str
    tone: Tone = "plain"
    hint: str = ""


class Cell(Struct, frozen=True):
    """A value with details: its own kind; smaller lines below it (`note`), only on the page; a tag after it; `strong`
    for sums; a tooltip (`hint`), and a sort key (`order`)."""

    value: object
    kind: CellKind | None = None
    note: str | Sequence[Remark] = ""
    tag: str = ""
    strong: bool = False
    tone: Tone = "plain"
    hint: str = ""
    order: float | None = None


class Column(Struct, frozen=True):
    """A column of a table. `head` marks the column that names the row, at most one per table; `pick` offers its values
    as a filter; a `spare` one is left out on a narrow terminal; names and texts are cut to `length` characters.

    `source` is where a cell comes from in the record of a row, see `Table.of`: the path of a field, or a function."""

    title: str
    kind: CellKind
    source: str | Callable[[Any], object] | None = None
    strong: bool = False
    head: bool = False
    pick: bool = False
    spare: bool = False
    length: int = 90
    limit: Limit = EVERYWHERE

    def of(self, record: object) -> object:
        """The cell of a record."""
        source = self.source
        held = value_at(record, source) if isinstance(source, str) else source(record) if source else None
        return None if held == "" else held


class Heading(Struct, frozen=True):
    """A title inside a section."""

    text: str
    limit: Limit = EVERYWHERE


class Paragraph(Struct, frozen=True):
    """A sentence or more. In the terminal a `line` is never wrapped: its names are cut until it fits."""

    text: Words
    tone: Tone = "plain"
    limit: Limit = EVERYWHERE
    line: bool = False


class Lines(Struct, frozen=True):
    """Sentences, the most important ones first."""

    lines: Sequence[Words]
    limit: Limit = EVERYWHERE
    tone: Tone = "plain"


class Chain(Struct, frozen=True):
    """Steps that lead from one to the next."""

    steps: Sequence[str]
    limit: Limit = EVERYWHERE


class Command(Struct, frozen=True):
    """A command line to copy. `place` tells it from the same command elsewhere on a page."""

    text: str
    limit: Limit = EVERYWHERE
    place: str = ""


class Fact(Struct, frozen=True):
    """A figure with its label, a smaller `note`, and the part of the window whose colour it has."""

    label: str
    value: object
    kind: CellKind = TEXT
    note: str = ""
    part: str = ""


class FigureRow(Struct, frozen=True):
    """Figures side by side; `cards` are large."""

    facts: Sequence[Fact]
    limit: Limit = TICKET
    cards: bool = False


class Table(Struct, frozen=True):
    """Rows with a cell for each column, most important first: a value of the column's kind, None, or a Cell. The page
    needs a title; Markdown and text leave out an empty one.

    `total` is the number of rows if the report does not list all, `order` says which ones it lists ("with most time").
    `first` is how many rows the page shows at once, `legend` what the colours of its bars mean.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    note: str = ""
    noun: str = "rows"
    order: str = ""
    total: int | None = None
    first: int | None = None
    sortable: bool = True
    legend: Sequence[LegendEntry] = ()
    limit: Limit = TICKET

    @classmethod
    def of(cls, title: str, columns: Sequence[Column], records: Iterable[object], **more: Any) -> Self:
        """A row for each record, with a cell from the source of each column; None for an empty text."""
        return cls(title, columns, [[column.of(record) for column in columns] for record in records], **more)


class Chart(Struct, frozen=True):
    """A drawing. `label` says in words what it shows, and stands for it in formats without drawings. `id` tells it from
    other charts of its section."""

    drawing: Drawing
    label: str
    captions: Sequence[str] = ()
    legend: Sequence[LegendEntry] = ()
    limit: Limit = PAGE
    id: str = ""


class Callout(Struct, frozen=True):
    """An action for the reader: a `label` ("Fix first"), its subject (`title`, a link to `href` on the page); the
    `figure` that it saves and of what (`of`); and how (`text`)."""

    label: str
    title: str
    figure: str = ""
    of: str = ""
    text: str = ""
    href: str = ""
    limit: Limit = EVERYWHERE


class Items(Struct, frozen=True):
    """Things in order of weight, each with a few lines about it. `ids` are places on the page that links name."""

    items: Sequence[tuple[Words, Sequence[Words]]]
    ids: Sequence[str] = ()
    limit: Limit = EVERYWHERE


class Details(Struct, frozen=True):
    """Blocks that the page folds; those that are `open` are unfolded at first."""

    title: str
    blocks: Sequence[Block]
    limit: Limit = PAGE
    open: bool = False


class Entry(Struct, frozen=True):
    """One thing of several, with the blocks about it: a `mark` before its title, in colour by `tone`, and a `note`."""

    title: str
    blocks: Sequence[Block]
    mark: str = ""
    note: str = ""
    tone: Tone = "plain"
    limit: Limit = EVERYWHERE


class Custom(Struct, frozen=True):
    """What the page draws with a template of its own, of the values that `view` makes; the other formats show
    `fallback` and never ask for them. The page asks more than once: `view` keeps what takes long. The charts that the
    template draws are its value `charts`."""

    template: str
    view: Callable[[], Mapping[str, Any]]
    fallback: Sequence[Block] = ()
    limit: Limit = EVERYWHERE


SimpleBlock = Heading | Paragraph | Lines | Chain | Command | FigureRow | Table | Chart | Callout | Items
"""A block that holds no blocks."""
Block = SimpleBlock | Details | Entry | Custom


class SectionScope(Struct, frozen=True):
    """The time that the sums of a section are of: its `name` in a word, and its length and place in `span`, which the
    page shows on hover."""

    name: str
    span: str


class Section(Struct, frozen=True):
    """All about one subject, of one device or of the whole report. The page folds one with a `gist`: the line, a number
    first, that stands for it until it is opened. One without sums has no `scope`. `sql` is the query that gives its
    numbers, which the page offers to copy."""

    id: str
    title: str
    blocks: Sequence[Block]
    gist: str = ""
    scope: SectionScope | None = None
    sql: str = ""


class Document(Struct, frozen=True):
    """Sections under a title. The page shows `facts` next to the title, and a list of `contents` if requested. The
    browser tab has the name `tab`, or else the title."""

    title: str
    sections: Sequence[Section]
    facts: Words = ""
    tab: str = ""
    contents: bool = True


def shown(blocks: Sequence[Block], detail: Detail) -> list[Block]:
    """The blocks that a format shows, without empty ones."""
    return [block for block in blocks if block.limit.of(detail) != 0 and not _is_empty(block, detail)]


def _is_empty(block: Block, detail: Detail) -> bool:
    match block:
        case Lines(lines=held) | Chain(steps=held) | FigureRow(facts=held) | Table(rows=held) | Items(items=held):
            return not held
        case Details(blocks=held):
            return not shown(held, detail)
        case Custom(fallback=held):
            return detail is not Detail.PAGE and not shown(held, detail)
    return False


def cut(held: Sequence[T], limit: Limit, detail: Detail) -> Sequence[T]:
    """The rows or lines that a format shows."""
    return held[: limit.of(detail)]


def columns_of(table: Table, detail: Detail) -> list[int]:
    """The columns that a format shows, by their places."""
    return [at for at, column in enumerate(table.columns) if column.limit.of(detail) != 0]


def shown_rows(table: Table, detail: Detail, places: Sequence[int]) -> tuple[list[Column], list[list[Cell]]]:
    """The columns at these places, and the rows that a format shows, as cells."""
    rows = cut(table.rows, table.limit, detail)
    return [table.columns[at] for at in places], [[as_cell(row[at]) for at in places] for row in rows]


def left_out(table: Table, detail: Detail) -> str:
    """Which rows of how many a format shows; empty if it shows all."""
    count, total = len(cut(table.rows, table.limit, detail)), max(table.total or 0, len(table.rows))
    order = f", those {table.order}" if table.order else ""
    return f"{count:,} of {total:,} {table.noun}{order}." if count < total else ""


def named(label: str, name: str | None) -> list[Part]:
    """A label and the name behind it as parts of a sentence; nothing without a name."""
    return [label, Name(name)] if name else []


def written_out(words: Words) -> str:
    """A sentence as plain text."""
    return words if isinstance(words, str) else "".join(map(_part, words))


def _part(part: Part) -> str:
    match part:
        case Name(text=text) | LegendEntry(label=text):
            return text
        case StatusMark():
            return MARK.show(part)
    return part


def as_cell(value: object) -> Cell:
    """A value with nothing more to it, or what is a cell already."""
    return value if isinstance(value, Cell) else Cell(value)
