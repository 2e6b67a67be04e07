"""How figures look: the colours of the page's light theme, whatever the default template is, and text that is text."""

from __future__ import annotations

import math
from html import unescape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import safe_color
from nsysdiag.document.histogram import unit_of
from nsysdiag.document.kinds import BYTES, SHARE, TIME, CellKind
from nsysdiag.document.names import plain, visible
from nsysdiag.units import format_exact_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsysdiag.document.curve import Curve, CurveLayer, CurveStrip, CurveStrips


PART_COLORS = {
    "compute": "#2b6cb8",
    "communication": "#47207a",
    "copies": "#9c640c",
    "idle": "#c8cdd5",
    "gone": "#1c7444",
    "renamed": "#b3261e",
}
"""What the page fills a part of the time with, by class."""
ACCENT, ACCENT_AREA, STRIP_AREA = "#1f5fbf", "rgba(31,95,191,0.28)", "rgba(31,95,191,0.6)"
INK, MUTED, LINE, REST, SLOW = "#1b2028", "#586271", "#e2e5ea", "#c9ced6", "#b3261e"
FADED = 0.35
DOTTED: dict[str, Any] = {"color": INK, "width": 1, "dash": "dot"}
GRID: dict[str, Any] = {"showgrid": True, "gridcolor": LINE, "zeroline": False, "automargin": True}
ROWS: dict[str, Any] = {
    "automargin": True,
    "fixedrange": True,
    "showgrid": False,
    "zeroline": False,
    "ticklabelstandoff": 6,
}
"""An axis of names."""
BELOW_ALL: dict[str, Any] = {"orientation": "h", "traceorder": "normal", "font": {"size": 11}} | {
    "x": 0.02,
    "xref": "container",
    "y": 0,
    "yref": "container",
    "yanchor": "bottom",
}
"""The place of a legend."""
HEAD, LINE_HEIGHT, MOST_LINES, LINE_LENGTH = 64, 18, 5, 100
"""The heights of a title and of each line below it, in pixels; how many there are at most, and their characters."""
SIDE, BELOW, ENTRY, LEGEND_LINE, WIDTH = 24, 56, 44, 18, 550
"""The margins at the side of and below a plot, in pixels. For the legend: the width of an entry without its text; the
height of a line; and the width in a narrow notebook."""
CHARACTER, LABELS = 6, 110
"""How wide a character of the legend is, and what stands right of a plot."""
ENDING = "<extra></extra>"
BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def blank(title: str, height: int, said: str = "") -> go.Figure:
    """A figure without data, whose plot is `height` pixels high under its title and what is `said` below it."""
    lines = [plain(line, LINE_LENGTH) for line in wrap(visible(said), LINE_LENGTH)[:MOST_LINES]]
    above = HEAD + LINE_HEIGHT * len(lines)
    return go.Figure(
        layout={
            "template": go.layout.Template(),
            "title": {
                "text": plain(title, LINE_LENGTH),
                "subtitle": {"text": "<br>".join(lines), "font": {"size": 12, "color": MUTED}},
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 16, "l": SIDE},
            },
            "margin": {"t": above, "r": SIDE, "b": BELOW, "l": SIDE},
            "height": above + height + BELOW,
            "paper_bgcolor": "#ffffff",
            "plot_bgcolor": "#ffffff",
            "font": {"color": INK},
            "legend": BELOW_ALL,
            "hoverlabel": {"align": "left"},
        }
    )


def with_legend(figure: go.Figure) -> go.Figure:
    """The figure with room below it for the lines that its legend needs."""
    names = [trace.name for trace in figure.data if trace.showlegend is not False and trace.name]
    if len(names) < 2:
        return figure.update_layout(showlegend=False)
    widest = max(ENTRY + CHARACTER * len(unescape(name)) for name in names)
    lines = -(-len(names) // max(WIDTH // widest, 1))
    room = LEGEND_LINE * lines + LEGEND_LINE // 2
    return figure.update_layout(height=figure.layout.height + room, margin={"b": BELOW + room})


def fill(entry: LegendEntry) -> str:
    """The colour of an entry of a legend: that of a part of the time, or its own."""
    return PART_COLORS.get(entry.part, REST) if entry.part else safe_color(entry.color)


def scale_of(kind: CellKind, top: float) -> tuple[float, str]:
    """What values of one kind are divided by on an axis up to `top`, and the unit that they have then."""
    if kind is TIME:
        return unit_of(round(top))
    if kind is BYTES:
        return next(((scale, unit) for scale, unit in BYTE_UNITS if top >= scale), (1, "B"))
    return 1, ""


def value_axis(kind: CellKind, top: float, what: str) -> dict[str, Any]:
    """An axis of values of one kind."""
    unit = scale_of(kind, top)[1]
    title = f"{what} ({unit})" if what and unit else what or unit
    return {**GRID, "title": {"text": title}, **({"tickformat": ".0%"} if kind is SHARE else {})}


def exact(kind: CellKind, value: float) -> str:
    """A value with all its digits where its kind has a way to write them."""
    if kind is BYTES:
        return f"{value:,} B"
    return (kind.exact or kind.show)(value)


def time_axis(end_ns: int, what: str = "Time in the trace") -> tuple[int, dict[str, Any]]:
    """An axis of moments up to `end_ns`: what ns are divided by, and the axis."""
    scale, unit = unit_of(abs(end_ns))
    return scale, {**GRID, "title": {"text": f"{what} ({unit})"}}


def span_text(start_ns: int, end_ns: int) -> str:
    """From when to when, exactly."""
    return f"{format_exact_ns(start_ns)} to {format_exact_ns(end_ns)}"


def level(figure: go.Figure, y: float, label: str) -> None:
    """A line across the plot at `y`, and what it is, right of it."""
    place = {"x": 1, "xanchor": "left", "xshift": 6, "yanchor": "middle", "font": {"size": 11}}
    figure.add_hline(y=y, line=DOTTED, annotation={"text": plain(label), **place}).update_layout(margin={"r": LABELS})


# Values over time as figures: curves on one scale, and strips, each on a scale of its own.

CURVE, STRIP, STRIP_HEAD = 280, 60, 30
"""The heights of a curve, of a strip and of the title above it, in pixels."""


def curve(drawing: Curve, title: str, said: str) -> go.Figure:
    """The layers over each other, with the limit as a line.

    `customdata` of each point holds the exact value of the step that begins there, the same as text, and from when to
    when it lasts.
    """
    scale, axis = time_axis(max((edge for layer in drawing.layers for edge in layer.series.edges[-1:]), default=0))
    unit = scale_of(drawing.kind, drawing.top)[0]

    def place(value: float) -> float:
        return math.log1p(max(value, 0)) if drawing.log else value / unit

    figure = blank(title, CURVE, said)
    values = value_axis(drawing.kind, drawing.top, plain(drawing.what))
    figure.update_layout(xaxis=axis, hovermode="x", yaxis={**values, "range": [0, 1.05 * place(drawing.top)]})
    if drawing.log:
        levels = {drawing.bottom: 0.0} | {line.label: line.value for line in drawing.lines}
        figure.update_yaxes(tickvals=[*map(place, levels.values())], ticktext=[*map(plain, levels)])
    for layer in drawing.layers:
        figure.add_traces(list(_layer(layer, drawing.kind, scale, place)))
    if drawing.limit:
        level(figure, place(drawing.limit.value), drawing.limit.label)
    return figure


def _layer(layer: CurveLayer, kind: CellKind, scale: int, place: Callable[[float], float]) -> Iterator[go.Scatter]:
    """A line; an area below it, or between it and its lower border, which is a trace of its own."""
    series, name = layer.series, plain(layer.label)
    if layer.look == "area" and series.lowest:
        lower = _points(series.edges, series.lowest, kind, scale, place)
        yield go.Scatter(**lower, **_line(0), name=name, legendgroup=name, showlegend=False, hoverinfo="skip")
    points = _points(series.edges, series.values, kind, scale, place, series.lowest)
    shown = "%{fullData.name}: %{customdata[1]}<br>%{customdata[2]}" + ENDING
    if layer.look == "dots":
        yield go.Scatter(**points, mode="markers", marker={"color": ACCENT, "size": 5}, name=name, hovertemplate=shown)
        return
    area = {"fill": "tonexty" if series.lowest else "tozeroy", "fillcolor": ACCENT_AREA} if layer.look == "area" else {}
    yield go.Scatter(**points, **_line(0 if area else 1.5), **area, name=name, legendgroup=name, hovertemplate=shown)


def _line(width: float) -> dict[str, Any]:
    return {"mode": "lines", "line": {"shape": "hv", "width": width, "color": ACCENT}, "connectgaps": False}


def _points(
    edges: Sequence[int],
    values: Sequence[float | None],
    kind: CellKind,
    scale: int,
    place: Callable[[float], float],
    lowest: Sequence[float] = (),
) -> dict[str, Any]:
    """A point where each step begins, one where it ends if no other follows, and nothing where no value is known."""
    x: list[float | None] = []
    y: list[float | None] = []
    told: list[list[Any] | None] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        low = f"{exact(kind, lowest[at])} to " if lowest and lowest[at] != value else ""
        row = [value, plain(low + exact(kind, value)), span_text(edges[at], edges[at + 1])]
        x.append(edges[at] / scale)
        y.append(place(value))
        told.append(row)
        if at + 1 == len(values) or values[at + 1] is None:
            x += [edges[at + 1] / scale, None]
            y += [place(value), None]
            told += [row, None]
    return {"x": x[:-1], "y": y[:-1], "customdata": told[:-1]}


def strips(drawing: CurveStrips, title: str, said: str) -> go.Figure:
    """The strips below each other over the same time, under their titles; lines across all where something begins.

    `customdata` of each point holds the exact value of the step that begins there, the same as text, and from when to
    when it lasts.
    """
    whole = len(drawing.strips) * (STRIP + STRIP_HEAD)
    figure = blank(title, whole, said)
    scale, axis = time_axis(max((edge for strip in drawing.strips for edge in strip.series.edges[-1:]), default=0))
    last = f"y{len(drawing.strips)}" if len(drawing.strips) > 1 else "y"
    figure.update_layout(xaxis={**axis, "anchor": last}, hovermode="x", showlegend=False)
    for at, strip in enumerate(drawing.strips):
        upper = 1 - (at * (STRIP + STRIP_HEAD) + STRIP_HEAD) / whole
        _strip(figure, strip, f"y{at + 1}" if at else "y", (max(upper - STRIP / whole, 0), upper), scale)
    for moment in drawing.moments:
        where = moment / scale
        figure.add_shape(type="line", x0=where, x1=where, yref="paper", y0=0, y1=1, line=DOTTED)
    return figure


def _strip(figure: go.Figure, strip: CurveStrip, axis: str, domain: tuple[float, float], scale: int) -> None:
    """A strip on an axis of its own, with its title above it."""
    named = {
        "domain": list(domain),
        "range": [0, strip.top],
        "tickvals": [0, strip.top],
        "ticktext": [plain(strip.kind.show(value)) for value in (0, strip.top)],
        "fixedrange": True,
    }
    figure.update_layout({f"yaxis{axis[1:]}": {**GRID, **named}})
    points = _points(strip.series.edges, strip.series.values, strip.kind, scale, float)
    figure.add_scatter(
        **points,
        **_line(1),
        fill="tozeroy",
        fillcolor=STRIP_AREA,
        yaxis=axis,
        name=plain(strip.title),
        hovertemplate="%{fullData.name}: %{customdata[1]}<br>%{customdata[2]}" + ENDING,
    )
    note = f'{plain(strip.title)} <span style="color:{MUTED}">{plain(strip.note)}</span>'
    figure.add_annotation(
        text=note, x=0, xref="paper", xanchor="left", y=domain[1], yref="paper", yanchor="bottom", showarrow=False
    )
