"""Bars side by side and histograms as figures: stacked bars, exact in what the pointer shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from nsysdiag.document.bars import legend_entry
from nsysdiag.document.names import plain
from nsysdiag.formats.figures.look import (
    ENDING,
    FADED,
    LINE_LENGTH,
    MUTED,
    SLOW,
    blank,
    exact,
    fill,
    level,
    scale_of,
    value_axis,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.document.bars import Bar, BarChart
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
