"""Bars side by side and histograms as figures: stacked bars, exact in what the pointer shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from nsysdiag.document.bars import LegendEntry, legend_entry
from nsysdiag.document.figures import ink_on
from nsysdiag.document.names import plain
from nsysdiag.formats.figures.look import (
    ENDING,
    FADED,
    INK,
    LINE,
    LINE_LENGTH,
    MUTED,
    REST,
    ROWS,
    SLOW,
    blank,
    exact,
    fill,
    level,
    scale_of,
    time_axis,
    value_axis,
)
from nsysdiag.units import format_exact_ns, format_ns, format_share, format_signed_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.document.bars import Bar, BarChart, Waterfall, WaterfallBar
    from nsysdiag.document.figures import Segment, StackedBar, Stacks
    from nsysdiag.document.histogram import Histogram
    from nsysdiag.document.view import Share


HEIGHT, PANEL, BETWEEN = 300, 190, 0.16
"""The heights of the plot and of each of several panels in pixels, and the share of the plot between two panels."""
MOST_TICKS, ROOM, THIN = 12, 1.1, 200
"""How many bars have their names below them; how much of the scale is left above the longest; and beyond how many bars
there is no room between them."""
MARKS = {"slow": ("Slow", "triangle-up", SLOW), "left-out": ("Left out", "x-thin-open", MUTED)}


def columns(drawing: BarChart, title: str, said: str) -> go.Figure:
    """The bars in order with their levels, and marks above those that are slow or do not count.

    `customdata` holds the exact value of a part, the same as text, the name of its bar and the exact sum of that. Bars
    that are longer than the scale go on above it.
    """
    bars, scale = drawing.bars, scale_of(drawing.kind, drawing.top)[0]
    figure = blank(title, HEIGHT, said)
    named = range(0, len(bars), -(-len(bars) // MOST_TICKS) or 1)
    figure.update_layout(
        barmode="stack",
        bargap=0.2 if len(bars) <= THIN else 0,
        xaxis={
            "title": {"text": plain(drawing.what)},
            "tickvals": list(named),
            "ticktext": [plain(bars[at].name) for at in named],
            "range": [-0.6, len(bars) - 0.4],
            "automargin": True,
        },
        yaxis={**value_axis(drawing.kind, drawing.top, "Time"), "range": [0, drawing.top / scale * ROOM]},
    )
    figure.add_traces(list(_parts(drawing, scale, 0)))
    for line in drawing.lines:
        level(figure, line.value / scale, line.label)
    figure.add_traces(list(_marks(bars, drawing.top / scale * (1 + ROOM) / 2)))
    return figure


def _parts(drawing: BarChart, scale: float, first: float, **more: Any) -> Iterator[go.Bar]:
    """A trace for each thing that bars consist of, in the order of the legend, and one for those that do not count; the
    first bar stands at `first`."""
    held: dict[tuple[str, bool], list[tuple[int, Bar, Share]]] = {}
    for at, bar in enumerate(drawing.bars):
        for part in bar.parts:
            held.setdefault((part.id, bar.faded), []).append((at, bar, part))
    order = {id: drawing.legend.index(legend_entry(rows[0][2])) for (id, _faded), rows in held.items()}
    for (id, faded), rows in sorted(held.items(), key=lambda each: (order[each[0][0]], each[0])):
        entry = drawing.legend[order[id]]
        yield go.Bar(
            name=plain(entry.label),
            legendgroup=plain(id),
            showlegend=not faded or (id, False) not in held,
            x=[first + at for at, _bar, _part in rows],
            y=[part.ns / scale for _at, _bar, part in rows],
            marker={"color": fill(entry), "opacity": FADED if faded else 1, "line": {"width": 0}},
            customdata=[
                [part.ns, exact(drawing.kind, part.ns), plain(bar.name), exact(drawing.kind, bar.total)]
                for _at, bar, part in rows
            ],
            hovertemplate="%{customdata[2]}<br>%{fullData.name}<br>%{customdata[1]} of %{customdata[3]}" + ENDING,
        ).update(more)


def _marks(bars: Sequence[Bar], height: float) -> Iterator[go.Scatter]:
    """Signs above bars, which say more about them."""
    for kind, (label, symbol, color) in MARKS.items():
        held = [(at, bar) for at, bar in enumerate(bars) if (bar.slow if kind == "slow" else bar.faded)]
        if held:
            yield go.Scatter(
                mode="markers",
                name=label,
                x=[at for at, _bar in held],
                y=[height] * len(held),
                marker={"symbol": symbol, "color": color, "size": 9, "line": {"width": 1.5, "color": color}},
                customdata=[plain(bar.tooltip, LINE_LENGTH) for _at, bar in held],
                hovertemplate="%{customdata}" + ENDING,
            )


def histogram(drawing: Histogram, title: str, said: str) -> go.Figure:
    """The panels above each other over the same bins.

    `customdata` holds the exact value of a part, the same as text, the bin's range and its exact sum.
    """
    count = len(drawing.panels)
    figure = blank(title, PANEL * count, said)
    figure.update_layout(barmode="stack", bargap=0.2)
    figure.update_xaxes(
        title={"text": plain(drawing.what)},
        tickvals=[tick.at for tick in drawing.edges],
        ticktext=[plain(tick.label) for tick in drawing.edges],
        anchor="y" if count == 1 else f"y{count}",
        automargin=True,
    )
    height = (1 - BETWEEN * (count - 1) / count) / count
    for at, (name, chart) in enumerate(drawing.panels.items()):
        axis = "y" if at == 0 else f"y{at + 1}"
        scale, upper = scale_of(chart.kind, chart.top)[0], 1 - at * (1 - height) / max(count - 1, 1)
        shape = {**value_axis(chart.kind, chart.top, plain(name)), "domain": [max(upper - height, 0), upper]}
        figure.update_layout({f"yaxis{axis[1:]}": shape})
        traces = list(_parts(chart, scale, 0.5, yaxis=axis, width=0.8))
        figure.add_traces([trace.update(showlegend=at == 0) for trace in traces])
    return figure


# Stacked bars and waterfalls as figures: horizontal bars, each segment where it begins.

LARGE_BAR, SMALL_BAR, MOST_LARGE, WIDTH = 56, 26, 8, 0.7
"""The heights of a bar's place in pixels; how many bars are large and say on their segments what they are; and how much
of its place a bar takes."""
Placed = tuple[int, "StackedBar", int, "Segment"]
"""A segment: the place of its bar, the bar, where it begins in ns, and itself."""


def stacked(drawing: Stacks, title: str, said: str) -> go.Figure:
    """Stacked bars below each other on one scale, each next to its name.

    `customdata` holds the exact nanoseconds of a segment, the same as text, its share of the bar, and the bar's name.
    """
    rows = drawing.rows
    over_time = any(bar.over_time for _name, bar in rows)
    large = len(rows) <= MOST_LARGE
    placed = [each for at, (_name, bar) in enumerate(rows) for each in _placed(at, bar)]
    scale, axis = time_axis(
        max((before + part.ns for _at, _bar, before, part in placed), default=0),
        "Time in the trace" if over_time else "Time",
    )
    figure = blank(title, len(rows) * (LARGE_BAR if large else SMALL_BAR), said)
    figure.update_layout(barmode="overlay", uniformtext={"minsize": 11, "mode": "hide"})
    figure.update_layout(xaxis=axis if over_time else {**axis, "rangemode": "tozero"})
    names = [plain(name) for name, _bar in rows]
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, range=[len(rows) - 0.5, -0.5], **ROWS)
    by_look: dict[tuple[str, str, bool], list[Placed]] = {}
    for each in placed:
        part = each[-1]
        color = fill(LegendEntry(part.label, part.kind, part.color or ""))
        by_look.setdefault((part.label, color, part.faded), []).append(each)
    for (label, color, faded), held in by_look.items():
        figure.add_trace(_segments(label, color, held, names, scale, faded=faded, large=large))
    return figure


def _placed(at: int, bar: StackedBar) -> list[Placed]:
    placed, before = [], bar.start_ns
    for part in bar.segments:
        placed.append((at, bar, before, part))
        before += part.ns
    return placed


def _segments(
    label: str, color: str, held: list[Placed], names: list[str], scale: int, *, faded: bool, large: bool
) -> go.Bar:
    """All segments of one label and colour."""
    return go.Bar(
        orientation="h",
        name=plain(label),
        base=[before / scale for _at, _bar, before, _part in held],
        x=[part.ns / scale for _at, _bar, _before, part in held],
        y=[at for at, _bar, _before, _part in held],
        width=WIDTH,
        marker={"color": color, "opacity": FADED if faded else 1, "line": {"width": 0}},
        text=[_written(bar, part) if large else "" for _at, bar, _before, part in held],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        insidetextfont={"color": INK if faded else ink_on(color)},
        customdata=[
            [part.ns, format_exact_ns(part.ns), plain(format_share(part.ns, bar.whole)), names[at]]
            for at, bar, _before, part in held
        ],
        hovertemplate="%{customdata[3]}<br>%{fullData.name}<br>%{customdata[1]}<br>%{customdata[2]}" + ENDING,
    )


def _written(bar: StackedBar, part: Segment) -> str:
    """What stands on a segment: what fits."""
    if bar.over_time:
        return plain(part.label) if part.has_label else ""
    return plain(format_share(part.ns, bar.whole)) if part.has_share else ""


def waterfall(drawing: Waterfall, title: str, said: str) -> go.Figure:
    """The way from the length before to the length after, a bar a step.

    `customdata` holds the exact nanoseconds of each bar, below 0 if it takes time away; the same as text; its share of
    the length before; and its name.
    """
    bars, axis = drawing.bars, drawing.axis
    scale, shape = time_axis(axis.high, "Time")
    figure = blank(title, len(bars) * SMALL_BAR, f"{said} {drawing.cut}")
    room = 0.12 * (axis.high - axis.low) / scale
    figure.update_layout(xaxis={**shape, "range": [axis.low / scale, axis.high / scale + room]}, showlegend=False)
    figure.update_yaxes(
        tickvals=list(range(len(bars))),
        ticktext=[plain(bar.label) for bar in bars],
        range=[len(bars) - 0.5, -0.5],
        **ROWS,
    )
    ends = [(max(min(bar.from_ns, bar.to_ns), axis.low), max(bar.from_ns, bar.to_ns)) for bar in bars]
    figure.add_bar(
        orientation="h",
        base=[low / scale for low, _high in ends],
        x=[(high - low) / scale for low, high in ends],
        y=list(range(len(bars))),
        width=WIDTH,
        marker={"color": [_color(bar) for bar in bars], "line": {"width": 1, "color": LINE}},
        text=[_change(bar) for bar in bars],
        textposition="outside",
        cliponaxis=False,
        customdata=[
            [bar.ns, format_exact_ns(bar.ns), plain(bar.share and f"{bar.share} of before"), plain(bar.label)]
            for bar in bars
        ],
        hovertemplate="%{customdata[3]}<br>%{customdata[1]}<br>%{customdata[2]}" + ENDING,
    )
    for at, bar in enumerate(bars[:-1]):
        where = bar.to_ns / scale
        figure.add_shape(type="line", x0=where, x1=where, y0=at + 0.35, y1=at + 0.65, line={"color": MUTED, "width": 1})
    return figure


def _color(bar: WaterfallBar) -> str:
    if bar.entry is None:
        return MUTED if bar.is_length else REST
    return fill(bar.entry)


def _change(bar: WaterfallBar) -> str:
    return format_ns(bar.ns) if bar.is_length else format_signed_ns(bar.ns)
