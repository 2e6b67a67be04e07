"""The figures of a result by name: one for each chart that its page draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from msgspec import Struct

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show import sections as of_comparison
from nsysdiag.document.bars import BarChart, LegendEntry
from nsysdiag.document.blocks import (
    Cell,
    Chart,
    Column,
    Custom,
    Detail,
    Details,
    Entry,
    Name,
    Table,
    as_cell,
    columns_of,
    cut,
    shown,
)
from nsysdiag.document.context import Context
from nsysdiag.document.counted_names import as_read
from nsysdiag.document.curve import Curve, Strips
from nsysdiag.document.figures import Stack, Stacks
from nsysdiag.document.histogram import Histogram
from nsysdiag.document.kinds import STACK
from nsysdiag.document.lanes import Lanes
from nsysdiag.document.names import visible
from nsysdiag.document.view import Causes
from nsysdiag.document.waterfall import Waterfall
from nsysdiag.formats import sections as of_report
from nsysdiag.formats.figures.bars import columns, histogram
from nsysdiag.formats.figures.lanes import timeline
from nsysdiag.formats.figures.lines import curve, strips
from nsysdiag.formats.figures.look import with_legend
from nsysdiag.formats.figures.stacks import stacked, waterfall
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show import blocks as of_ranks
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.show import blocks as of_prediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.document.blocks import Block, Section
    from nsysdiag.report import Report


FIGURES: dict[type, Callable[[Any, str, str], go.Figure]] = {
    BarChart: columns,
    Histogram: histogram,
    Curve: curve,
    Strips: strips,
    Stack: lambda bar, title, said: stacked(Stacks([("", bar)]), title, said),
    Stacks: stacked,
    Lanes: timeline,
    Waterfall: waterfall,
}
"""What makes a figure of each drawing, under a title and a sentence."""


class Named(Struct, frozen=True):
    """A chart of the page, the title of its figure, and what is said below that."""

    title: str
    said: str
    chart: Chart


class Figures(Mapping[str, go.Figure]):
    """Figures by name, in the order of the page. Each is made when it is asked for, again each time."""

    def __init__(self, charts: dict[str, Named]) -> None:
        self._charts = charts

    def __getitem__(self, name: str) -> go.Figure:
        return drawn(self._charts[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._charts)

    def __len__(self) -> int:
        return len(self._charts)

    def __repr__(self) -> str:
        """The names, a line each."""
        return "\n".join([f"<{len(self)} figures>", *map(visible, self)])


def figures(result: Report | RanksReport | Comparison | WhatIf) -> Figures:
    """A plotly figure for each chart that the page of a result draws, by name: the id of its section on the page, below
    the key of the device that it is about (`gpu0/iterations`). Where a section has several, a name of its own follows
    (`diagnosis/phases`).

    A figure has the values of the drawing on the page, with all digits in what the pointer shows. It looks the same
    whatever the default template is. Raises InputError where a saved result is damaged.
    """
    return Figures(charts(result))


def charts(result: Report | RanksReport | Comparison | WhatIf) -> dict[str, Named]:
    """The charts of the page by the names of their figures. Raises InputError where a saved result is damaged."""
    found: dict[str, Named] = {}
    for device, section in _sections(result):
        for heading, chart in _charts(section.blocks):
            name = "/".join(part for part in (device, section.id, chart.id) if part)
            title = ": ".join(part for part in (device, section.title) if part)
            said = ". ".join(part.removesuffix(".") for part in (heading, chart.label, *chart.captions) if part)
            found[_free(name, found)] = Named(title, f"{said}.", chart)
    return found


def _free(name: str, taken: dict[str, Named]) -> str:
    """The name, or with a number behind it: a saved result may hold a device twice."""
    numbered = (f"{name}-{at}" for at in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)


def _sections(result: Report | RanksReport | Comparison | WhatIf) -> Iterator[tuple[str, Section]]:
    """The sections of the page, each with the key of the device that it is about, or nothing."""
    match result:
        case RanksReport():
            yield from (("", section) for section in of_ranks.sections(result))
        case WhatIf():
            yield from (("", section) for section in of_prediction.sections(result))
        case Comparison():
            found, several = as_read(result), len(result.devices) > 1
            causes = Causes(found.causes)
            for device in found.devices:
                for section in of_comparison.of_device(device, causes, several=several):
                    yield device.key, section
        case _:
            for group in of_report.groups(Context.of(result)):
                yield from ((group.device.key if group.device else "", section) for section in group.sections)


def _charts(blocks: Sequence[Block], heading: str = "") -> Iterator[tuple[str, Chart]]:
    """The charts among blocks of the page, each with the title that it is folded or entered under."""
    for block in shown(blocks, Detail.PAGE):
        match block:
            case Chart():
                yield heading, block
            case Table():
                yield from ((heading, chart) for chart in _in_cells(block))
            case Custom(charts=make):
                yield from ((heading, chart) for chart in make())
            case Details(title=title, blocks=inside) | Entry(title=title, blocks=inside):
                yield from _charts(inside, title)


def _in_cells(table: Table) -> Iterator[Chart]:
    """A chart for each column of stacked bars, with what names the row next to each bar."""
    rows = cut(table.rows, table.limit, Detail.PAGE)
    for at in columns_of(table, Detail.PAGE):
        if table.columns[at].kind is STACK:
            bars = [(_row_name(table, row), as_cell(row[at]).value) for row in rows]
            held = [(name, bar) for name, bar in bars if isinstance(bar, Stack)]
            if held:
                yield Chart(Stacks(held), table.title, id=_slug(table.columns[at].title))


def _row_name(table: Table, row: Sequence[object]) -> str:
    """What the head of a row says, and columns without a title, which belong to it."""
    held = zip(table.columns, map(as_cell, row), strict=True)
    return " ".join(_text(column, cell) for column, cell in held if column.head or not column.title)


def _text(column: Column, cell: Cell) -> str:
    match cell.value:
        case Name(text=text) | LegendEntry(label=text):
            return text
        case value:
            return (cell.kind or column.kind).text(value)


def _slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def drawn(named: Named) -> go.Figure:
    """A chart of the page as a figure."""
    drawing = named.chart.drawing
    return with_legend(FIGURES[type(drawing)](drawing, named.title, named.said))
