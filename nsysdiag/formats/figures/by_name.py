"""The figures of a result by name: one for each chart that its page draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from msgspec import Struct

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show import sections as of_comparison
from nsysdiag.document.bars import BarChart, LegendEntry, Waterfall
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
from nsysdiag.document.context import Context, as_read
from nsysdiag.document.curve import Curve, CurveStrips
from nsysdiag.document.figures import StackedBar, Stacks
from nsysdiag.document.histogram import Histogram
from nsysdiag.document.kinds import STACK
from nsysdiag.document.lanes import FULL, DrawnLanes
from nsysdiag.document.names import plain, visible
from nsysdiag.document.view import Causes
from nsysdiag.formats import sections as of_report
from nsysdiag.formats.figures.bars import columns, histogram, stacked, waterfall
from nsysdiag.formats.figures.look import ENDING, ROWS, blank, curve, fill, span_text, strips, time_axis, with_legend
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show import blocks as of_ranks
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.show import blocks as of_prediction
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.document.blocks import Block, Section
    from nsysdiag.document.lanes import Area, DrawnLane, LaneGroup
    from nsysdiag.report import Report


# Timelines as figures: lanes below each other, each as high as the share that something took of a moment.

LANE, FILLED = 30, 0.86
"""The height of a lane in pixels, and how much of it a full one takes."""


def timeline(drawing: DrawnLanes, title: str, said: str) -> go.Figure:
    """The lanes of all groups over one axis of time; from 0 on where the groups have a common start.

    `customdata` of each point holds the share of the bucket that begins there, from 0 to FULL; the same as text; and
    its start and end, in ns of the trace.
    """
    lanes = [(group, lane) for group in drawing.groups for lane in group.lanes]
    ends = [group.end_ns - (group.start_ns if drawing.aligned else 0) for group in drawing.groups]
    starts = ["Time from the first operation"] if drawing.aligned else []
    scale, axis = time_axis(max(ends, default=0), *starts)
    figure = blank(title, LANE * len(lanes), said)
    figure.update_layout(
        xaxis=axis,
        hovermode="closest",
        yaxis={
            "range": [len(lanes), 0],
            "tickvals": [at + 1 - FILLED / 2 for at in range(len(lanes))],
            "ticktext": [plain(f"{group.label} {lane.label}") for group, lane in lanes],
            **ROWS,
        },
    )
    named: set[tuple[str, str]] = set()
    for at, (group, lane) in enumerate(lanes):
        for area in lane.paths:
            color = fill(LegendEntry(area.label, area.part, area.color))
            shown = (area.label, color) not in named
            named.add((area.label, color))
            begin = group.start_ns if drawing.aligned else 0
            figure.add_scatter(
                **_outline(group, lane, area, at + 1, begin, scale),
                name=plain(area.label),
                legendgroup=plain(f"{area.label} {color}"),
                showlegend=shown,
                fillcolor=color,
            )
    return figure


def _outline(group: LaneGroup, lane: DrawnLane, area: Area, floor: int, begin: int, scale: int) -> dict[str, Any]:
    """The border of an area that stands on `floor`, upwards being less: a run of equal heights is one step."""
    count, span = lane.width, group.end_ns - group.start_ns
    heights = area.heights
    starts = np.flatnonzero(np.diff(heights, prepend=-1))
    ends = np.append(starts[1:], count)
    x: list[float | None] = []
    y: list[float | None] = []
    told: list[list[Any] | None] = []
    for first, behind, height in zip(starts.tolist(), ends.tolist(), heights[starts].tolist(), strict=True):
        if not height:
            continue
        low, high = (group.start_ns + span * at // count for at in (first, behind))
        left, right = (low - begin) / scale, (high - begin) / scale
        upper = floor - FILLED * height / FULL
        row = [height, plain(format_share(height, FULL)), span_text(low, high)]
        x += [left, left, right, right, left, None]
        y += [floor, upper, upper, floor, floor, None]
        told += [row] * 5 + [None]
    return {
        "x": x,
        "y": y,
        "customdata": told,
        "mode": "lines",
        "line": {"width": 0.5, "color": fill(LegendEntry(area.label, area.part, area.color))},
        "fill": "toself",
        "hoveron": "points",
        "hovertemplate": "%{fullData.name}: %{customdata[1]}<br>%{customdata[2]}" + ENDING,
    }


FIGURES: dict[type, Callable[[Any, str, str], go.Figure]] = {
    BarChart: columns,
    Histogram: histogram,
    Curve: curve,
    CurveStrips: strips,
    StackedBar: lambda bar, title, said: stacked(Stacks([("", bar)]), title, said),
    Stacks: stacked,
    DrawnLanes: timeline,
    Waterfall: waterfall,
}
"""What makes a figure of each drawing, under a title and a sentence."""


class NamedFigure(Struct, frozen=True):
    """A chart of the page, the title of its figure, and what is said below that."""

    title: str
    said: str
    chart: Chart


class Figures(Mapping[str, go.Figure]):
    """Figures by name, in the order of the page. Each is made on each access."""

    def __init__(self, charts: dict[str, NamedFigure]) -> None:
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
    """A plotly figure for each chart on the page of a result, by name: the id of its section on the page, below the key
    of its device (`gpu0/iterations`). Charts of a section with several have their own names (`diagnosis/phases`).

    A figure has the values of the drawing on the page, with all digits in the tooltip. It looks the same with any
    default template. Raises InputError where a saved result is damaged.
    """
    return Figures(charts(result))


def charts(result: Report | RanksReport | Comparison | WhatIf) -> dict[str, NamedFigure]:
    """The charts of the page by the names of their figures. Raises InputError where a saved result is damaged."""
    found: dict[str, NamedFigure] = {}
    for device, section in _sections(result):
        for heading, chart in _charts(section.blocks):
            name = "/".join(part for part in (device, section.id, chart.id) if part)
            title = ": ".join(part for part in (device, section.title) if part)
            said = ". ".join(part.removesuffix(".") for part in (heading, chart.label, *chart.captions) if part)
            found[_free(name, found)] = NamedFigure(title, f"{said}.", chart)
    return found


def _free(name: str, taken: dict[str, NamedFigure]) -> str:
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
    """A chart for each column of stacked bars, with the name of the row next to each bar."""
    rows = cut(table.rows, table.limit, Detail.PAGE)
    for at in columns_of(table, Detail.PAGE):
        if table.columns[at].kind is STACK:
            bars = [(_row_name(table, row), as_cell(row[at]).value) for row in rows]
            held = [(name, bar) for name, bar in bars if isinstance(bar, StackedBar)]
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


def drawn(named: NamedFigure) -> go.Figure:
    """A chart of the page as a figure."""
    drawing = named.chart.drawing
    return with_legend(FIGURES[type(drawing)](drawing, named.title, named.said))
