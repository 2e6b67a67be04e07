"""Values over time as figures: curves on one scale, and strips, each on a scale of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from nsysdiag.document.names import plain
from nsysdiag.formats.figures.look import (
    ACCENT,
    ACCENT_AREA,
    DOTTED,
    ENDING,
    GRID,
    MUTED,
    STRIP_AREA,
    blank,
    exact,
    level,
    scale_of,
    span_text,
    time_axis,
    value_axis,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsysdiag.document.curve import Curve, Layer, Strip, Strips
    from nsysdiag.document.kinds import Kind

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


def _layer(layer: Layer, kind: Kind, scale: int, place: Callable[[float], float]) -> Iterator[go.Scatter]:
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
    kind: Kind,
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


def strips(drawing: Strips, title: str, said: str) -> go.Figure:
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


def _strip(figure: go.Figure, strip: Strip, axis: str, domain: tuple[float, float], scale: int) -> None:
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
