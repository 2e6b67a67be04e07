"""Blocks as text for the terminal, with headings and tables without lines. Independent of any subject."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nsysdiag.document import blocks as b
from nsysdiag.document.blocks import Detail, columns_of, cut, left_out, shown, shown_rows, written_out
from nsysdiag.document.columns import BAR, CODE, FIGURE, KEY, MARK, MISSING, NAME, TEXT
from nsysdiag.document.drawings import LegendEntry, StackedBar, Waterfall, WaterfallBar
from nsysdiag.document.names import clip, visible
from nsysdiag.document.words import counted
from nsysdiag.units import format_ns, format_share, format_signed_ns

# Blocks of text for the terminal: headings, tables without lines, and how they are printed.

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


STYLES: dict[b.Tone, str] = {
    "plain": "",
    "strong": "bold",
    "quiet": "dim",
    "note": "yellow",
    "verdict": "bold cyan",
    "good": "green",
    "bad": "bold red",
}
MIN_WIDTH, MAX_WIDTH = 60, 160
LEAST_NAME = 12
CUT = (NAME, KEY, CODE)
"""Kinds of cells that are cut to the room that numbers leave; others are wrapped."""
LEAST_BAR, MOST_BAR = 10, 40
FULL_BAR = 1_000_000
SIGNS, OTHER_SIGN, MOST_SPLIT, LEAST_SIGN = "█▓▒░", "·", 80, 0.01
"""The characters of the parts of a stacked bar, the largest first; the maximal length of the bar; and the share from
which on a part has its own character."""
STEPS = (
    b.Column("Step", KEY, head=True),
    b.Column("Time", FIGURE),
    b.Column("Of before", FIGURE),
    b.Column("Bar", BAR),
)
"""The columns of a waterfall."""
BETWEEN = 2
"""Blanks between columns, and before what belongs to a title."""


def wide_enough(width: int) -> int:
    """A number of columns in which tables have room and lines can be read."""
    return max(MIN_WIDTH, min(width, MAX_WIDTH))


def text_document(head: str, sections: Sequence[b.Section], width: int, command: str | None, *, color: bool) -> bytes:
    """Sections as a separate document, with colours only if requested."""
    width = wide_enough(width)
    blocks = [line for section in sections for line in text_of(section, Detail.SUMMARY, width)]
    return text_page(head, blocks, width, command, color=color)


def text_page(head: str, blocks: Sequence[RenderableType], width: int, command: str | None, *, color: bool) -> bytes:
    """A document with its first line and the command that made it."""
    origin = [Text(f"\n{visible(command)}", "dim")] if command else []
    return printed(Group(Text(visible(head)), *blocks), origin, width, color=color)


def text_of(section: b.Section | None, detail: Detail, width: int) -> list[RenderableType]:
    """A section in `width` columns under its title; nothing if no block of it is for the terminal."""
    if section is None or not shown(section.blocks, detail):
        return []
    return [heading(section.title) if section.title else Text(), *text_blocks(section.blocks, detail, width, BETWEEN)]


def text_blocks(blocks: Sequence[b.Block], detail: Detail, width: int, indent: int) -> Iterator[RenderableType]:
    """Blocks in `width` columns, of which the first `indent` stay empty."""
    before: b.Block | None = None
    for block in shown(blocks, detail):
        if before and (_stands_apart(before) or _stands_apart(block)) and not isinstance(block, b.Command):
            yield Text()
        before = block
        match block:
            case b.Command(text=command):  # never cut nor wrapped, so that it can be copied whole
                yield Text(" " * indent + visible(command), no_wrap=True, overflow="ignore")
            case b.Entry(blocks=inside):
                yield indented(_title(block, width - indent), indent)
                yield from text_blocks(inside, detail, width, indent + BETWEEN * (2 if block.mark else 1))
            case b.Details(title=title, blocks=inside):
                yield indented(Text(visible(title), "bold"), indent)
                yield from text_blocks(inside, detail, width, indent)
            case b.Custom(fallback=inside):
                yield from text_blocks(inside, detail, width, indent)
            case _:
                yield from (indented(each, indent) for each in _simple(block, detail, width - indent))


def _stands_apart(block: b.Block) -> bool:
    """Tables, and what has a title above it, have empty lines around them; commands have one behind them."""
    return isinstance(block, b.Table | b.Command) or (isinstance(block, b.Entry) and not block.mark)


def _simple(block: b.Block, detail: Detail, width: int) -> Iterator[RenderableType]:
    """Blocks that hold no blocks."""
    match block:
        case b.Heading(text=title):
            yield Text(visible(title), "bold")
        case b.Paragraph(text=sentence, tone=tone, line=line):
            yield _sentence(sentence, STYLES[tone], width if line else None)
        case b.Lines():
            yield from _lines(block, detail)
        case b.Chain(steps=steps):
            links = [f"→ {visible(step)}" if at else visible(step) for at, step in enumerate(steps)]
            yield from (Text(line, "dim") for line in _filled(links, width, 1))
        case b.FigureRow(facts=facts):
            yield from (Text(visible(f"{fact.label}: {fact.kind.text(fact.value)}")) for fact in facts)
        case b.Table():
            yield from _table(block, detail, width)
        case b.Chart(drawing=StackedBar() as drawing) if drawing.segments:
            yield from _split(drawing, width)
        case b.Chart(drawing=Waterfall() as drawing):
            rows = [_step(each, drawing.high) for each in drawing.bars]
            yield from _table(b.Table("", STEPS, rows, limit=b.EVERYWHERE), detail, width)
        case b.Chart(label=label):
            yield Text(visible(label))
        case b.Callout():
            brings = f"Saves {block.figure} {block.of}. " if block.figure else ""
            yield Text(visible(f"{block.label}: {block.title}"), "bold green")
            yield Text(visible(brings + block.text), "green")
        case b.Items(items=items):
            for words, lines in items:
                yield _sentence(words, "", None)
                yield from (indented(_sentence(line, "", None)) for line in lines)


def _step(step: WaterfallBar, high: int) -> list[object]:
    """A row of a waterfall, on a scale from 0 to `high`."""
    low, top = sorted((step.from_ns, step.to_ns))
    tone: b.Tone = "strong" if step.is_length else "good" if step.ns < 0 else "bad"
    time = format_ns(step.ns) if step.is_length else format_signed_ns(step.ns)
    return [step.label, time, step.share or None, b.Cell((low / high, top / high), tone=tone)]


def _split(drawing: StackedBar, width: int) -> Iterator[Text]:
    """A stacked bar on one line, and below it what its signs mean. Parts too small for a sign share the last one."""
    if drawing.label:
        yield Text(visible(drawing.label), "bold")
    segments = sorted(drawing.segments, key=lambda segment: -segment.ns)
    wide = [each for each in segments if each.ns >= LEAST_SIGN * drawing.whole] or segments[:1]
    shown = wide[: len(SIGNS)]
    rest = segments[len(shown) :]
    room = min(width, MOST_SPLIT)
    ends = [round(room * sum(each.ns for each in shown[: at + 1]) / drawing.whole) for at in range(len(shown))]
    signs = "".join(
        sign * (end - before) for sign, before, end in zip(SIGNS, [0, *ends[:-1]], ends, strict=False)
    ).ljust(room, OTHER_SIGN)
    yield Text(signs, "cyan")
    legend = [
        f"{sign} {visible(segment.label)} {format_share(segment.ns, drawing.whole)}"
        for sign, segment in zip(SIGNS, shown, strict=False)
    ]
    if rest:
        legend.append(f"{OTHER_SIGN} other {format_share(sum(each.ns for each in rest), drawing.whole)}")
    yield from (Text(line) for line in _filled(legend, width, BETWEEN))


def _filled(parts: Sequence[str], width: int, blanks: int) -> list[str]:
    """Parts side by side with `blanks` between them, as many as fit on each line."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + blanks + len(part) <= width:
            lines[-1] += " " * blanks + part
        else:
            lines.append(part)
    return lines


def _sentence(words: b.Words, style: str, width: int | None) -> Text:
    """A sentence; given a `width`, its names are cut so that it fits into a line of it."""
    if isinstance(words, str):
        return Text(visible(words), style)
    names = [part.text for part in words if isinstance(part, b.Name)]
    taken = len(written_out([part for part in words if not isinstance(part, b.Name)]))
    room = max(LEAST_NAME, (width - taken) // max(1, len(names))) if width else max(map(len, names), default=0)
    text = Text(style=style)
    for part in words:
        match part:
            case b.Name(text=name):
                text.append(clip(name, room))
            case LegendEntry(label=label):
                text.append(visible(label), "cyan")
            case _:
                text.append(visible(written_out([part])))
    return text


def _title(block: b.Entry, width: int) -> Text:
    title = Text(visible(block.title), "bold")
    if block.mark:
        title = Text.assemble((visible(block.mark), STYLES[block.tone] or "bold"), " " * BETWEEN, title)
    if block.note:
        title.append(" " * BETWEEN)
        title.append(clip(block.note, max(LEAST_NAME, width - len(title))), "not bold dim")
    return title


def _lines(block: b.Lines, detail: Detail) -> Iterator[Text]:
    lines = cut(block.lines, block.limit, detail)
    warning = ["warning: "] if block.tone == "note" else []
    for line in lines:
        yield _sentence([*warning, *([line] if isinstance(line, str) else line)], STYLES[block.tone], None)
    if rest := len(block.lines) - len(lines):
        yield Text(f"{counted(rest, 'more line')} in the other formats", "dim")


def _table(block: b.Table, detail: Detail, width: int) -> Iterator[RenderableType]:
    """The table under its title; the column that names a row is first."""
    places = sorted(columns_of(block, detail), key=lambda at: not block.columns[at].head)
    columns, rows = shown_rows(block, detail, places)
    while True:
        whole = _wanted(columns, rows)
        spare = [at for at, column in enumerate(columns) if column.spare]
        if not spare or sum(whole) + BETWEEN * len(whole) <= width:
            break
        del columns[spare[0]]
        for row in rows:
            del row[spare[0]]
    rooms = _rooms(columns, whole, width)
    made = grid(*("r" if column.kind.right else "l" if column.kind in (*CUT, MARK) else "w" for column in columns))
    if any(column.title for column in columns):
        made.add_row(*(Text("" if column.kind is BAR else column.title, "dim") for column in columns))
    for row in rows:
        made.add_row(*map(_cell, row, columns, rooms))
    if block.title:
        yield Text(visible(block.title), "bold")
    yield made
    if rest := left_out(block, detail):
        yield Text(visible(rest), "dim")


def _wanted(columns: Sequence[b.Column], rows: Sequence[Sequence[b.Cell]]) -> list[int]:
    """How wide each column is if nothing of it is cut; bars can do with little."""
    return [
        LEAST_BAR
        if column.kind is BAR
        else max([len(column.title), *(len(_written(row[at], column, column.length)) for row in rows)])
        for at, column in enumerate(columns)
    ]


def _rooms(columns: Sequence[b.Column], wanted: Sequence[int], width: int) -> list[int]:
    """How wide the cells of each column may be: numbers stay whole, names and bars share what is left."""
    rooms = list(wanted)
    left = width - sum(rooms) - BETWEEN * len(rooms)
    flexible = [at for at, column in enumerate(columns) if not column.kind.right and column.kind is not MARK]
    for at in sorted(flexible, key=lambda at: -rooms[at]):
        most = MOST_BAR if columns[at].kind is BAR else rooms[at]
        least = LEAST_BAR if columns[at].kind is BAR else min(rooms[at], LEAST_NAME)
        room = max(least, min(most, rooms[at] + left))
        left -= room - rooms[at]
        rooms[at] = room
    return rooms


def _cell(cell: b.Cell, column: b.Column, room: int) -> Text:
    style = "bold" if cell.strong else "cyan" if column.kind is BAR else STYLES[cell.tone]
    if column.kind is BAR and isinstance(cell.value, float):
        return Text(bar(round(FULL_BAR * cell.value), FULL_BAR, room), style)
    if column.kind is BAR and isinstance(cell.value, tuple):
        return Text(span(cell.value[0], cell.value[1], room), STYLES[cell.tone])
    return Text(_written(cell, column, room if column.kind in CUT else column.length), style)


def _written(cell: b.Cell, column: b.Column, room: int) -> str:
    """The value and its tag; texts and names are cut to `room` characters."""
    kind, value = cell.kind or column.kind, cell.value
    tag = f" ({visible(cell.tag)})" if cell.tag else ""
    if value is None:
        return MISSING
    name = value.text if isinstance(value, b.Name) else value.label if isinstance(value, LegendEntry) else value
    name = written_out(name) if kind is TEXT and isinstance(name, tuple) else name
    shown_as = name if isinstance(name, str) else kind.show(name)
    return (shown_as if column.kind.right else clip(shown_as, room - len(tag) if room > len(tag) else room)) + tag
