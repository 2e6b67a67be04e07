"""Bars, histograms and curves as plotly figures, and how all figures look: the colours of the page's light theme.

Text is text. What the pointer shows is exact, and `customdata` of each trace holds it.
"""

from __future__ import annotations

from html import unescape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from msgspec import Struct

from nsysdiag.document import drawings as d
from nsysdiag.document.axis import unit_of
from nsysdiag.document.columns import BYTES, SHARE, TIME, CellKind
from nsysdiag.document.drawings import LegendEntry, legend_entry, safe_color, shown_levels
from nsysdiag.document.names import plain, visible
from nsysdiag.units import format_exact_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsysdiag.document.view import Share

PART_COLORS = {
    "compute": "#2b6cb8",
    "communication": "#47207a",
    "copies": "#9c640c",
    "idle": "#c8cdd5",
    "gone": "#1c7444",
    "renamed": "#b3261e",
}
"""What the page fills a part of the time with, by class."""
ACCENT, INK, MUTED, LINE, REST, SLOW = "#1f5fbf", "#1b2028", "#586271", "#e2e5ea", "#c9ced6", "#b3261e"
FADED, PALE = 0.35, 0.28
"""The opacity of what does not count, and of areas."""
DOTTED: dict[str, Any] = {"color": INK, "width": 1, "dash": "dot"}
GRID: dict[str, Any] = {"showgrid": True, "gridcolor": LINE, "zeroline": False, "automargin": True}
MARKS = {"slow": ("Slow", "triangle-up", SLOW), "left-out": ("Left out", "x-thin-open", MUTED)}
PLOT, PANEL, STRIP, BETWEEN = 300, 190, 60, 30
"""Heights in pixels: of a plot alone, of one of several, of a strip, and of the room between panels."""
MOST_TICKS, ROOM, THIN = 12, 1.1, 200
"""How many bars have their names below them; how much of the scale is left above the longest; and beyond how many bars
there is no room between them."""
HEAD, LINE_HEIGHT, MOST_LINES, LINE_LENGTH = 64, 18, 5, 100
"""The heights of a title and of each line below it, in pixels; how many there are at most, and their characters."""
SIDE, BELOW, LABELS = 24, 56, 110
"""The margins at the side of and below a plot, and of labels right of it, in pixels."""
ENTRY, CHARACTER, LEGEND_LINE, WIDTH = 44, 6, 18, 550
"""For the legend, in pixels: the width of an entry without its text and of a character; the height of a line; and the
width in a narrow notebook."""
ENDING = "<extra></extra>"
BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def blank(title: str, height: int, said: str = "") -> go.Figure:
    """A figure without data, whose plot is `height` pixels high under its title and what is `said` below it."""
    lines = [plain(line, LINE_LENGTH) for line in wrap(visible(said), LINE_LENGTH)[:MOST_LINES]]
    above = HEAD + LINE_HEIGHT * len(lines)
    place = {"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"}
    legend = {"orientation": "h", "traceorder": "normal", "font": {"size": 11}, "x": 0.02, "xref": "container"}
    return go.Figure(
        layout={
            "template": go.layout.Template(),
            "title": {
                "text": plain(title, LINE_LENGTH),
                "subtitle": {"text": "<br>".join(lines), "font": {"size": 12, "color": MUTED}},
                "pad": {"t": 16, "l": SIDE},
                **place,
            },
            "margin": {"t": above, "r": SIDE, "b": BELOW, "l": SIDE},
            "height": above + height + BELOW,
            "paper_bgcolor": "#ffffff",
            "plot_bgcolor": "#ffffff",
            "font": {"color": INK},
            "legend": {**legend, "y": 0, "yref": "container", "yanchor": "bottom"},
            "hoverlabel": {"align": "left"},
        }
    )


def empty(title: str, why: str) -> go.Figure:
    """A figure that says why there is nothing to draw."""
    made = blank(title, PLOT).update_xaxes(visible=False).update_yaxes(visible=False)
    return made.add_annotation(text=why, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)


def with_legend(made: go.Figure) -> go.Figure:
    """The figure with room below it for the lines that its legend needs."""
    names = [trace.name for trace in made.data if trace.showlegend is not False and trace.name]
    if len(names) < 2:
        return made.update_layout(showlegend=False)
    widest = max(ENTRY + CHARACTER * len(unescape(name)) for name in names)
    lines = -(-len(names) // max(WIDTH // widest, 1))
    room = LEGEND_LINE * lines + LEGEND_LINE // 2
    return made.update_layout(height=made.layout.height + room, margin={"b": BELOW + room})


def fill(entry: LegendEntry) -> str:
    """The colour of an entry of a legend: that of a part of the time, or its own."""
    return PART_COLORS.get(entry.part, REST) if entry.part else safe_color(entry.color)


def _scale(kind: CellKind, top: float) -> tuple[float, str]:
    """What values of one kind are divided by on an axis up to `top`, and the unit that they have then."""
    if kind is TIME:
        return unit_of(round(top))
    if kind is BYTES:
        return next(((scale, unit) for scale, unit in BYTE_UNITS if top >= scale), (1, "B"))
    return 1, ""


def _value_axis(kind: CellKind, top: float, what: str) -> dict[str, Any]:
    unit = _scale(kind, top)[1]
    title = f"{what} ({unit})" if what and unit else what or unit
    return {"title": {"text": title}, **({"tickformat": ".0%"} if kind is SHARE else {})}


def time_axis(end_ns: int, what: str = "Time in the trace") -> tuple[int, dict[str, Any]]:
    """What ns are divided by on an axis of moments up to `end_ns`, and the axis."""
    scale, unit = unit_of(abs(end_ns))
    return scale, {**GRID, "title": {"text": f"{what} ({unit})"}}


def _exact(kind: CellKind, value: float) -> str:
    """A value with all its digits where its kind has a way to write them."""
    return f"{value:,} B" if kind is BYTES else (kind.exact or kind.show)(value)


def span_text(start_ns: int, end_ns: int) -> str:
    return f"{format_exact_ns(start_ns)} to {format_exact_ns(end_ns)}"


# Panels above each other over one axis: bars, histograms, curves and strips.


class Panel(Struct, frozen=True):
    """Traces on an axis of values of their own, `height` pixels high under a `note`; `levels` are lines across them."""

    traces: list[Any]
    axis: dict[str, Any]
    height: int
    note: str = ""
    levels: dict[str, float] = {}


def _panels(title: str, said: str, panels: Sequence[Panel], xaxis: dict[str, Any], **layout: Any) -> go.Figure:
    between = BETWEEN if len(panels) > 1 else 0
    whole = sum(panel.height + between for panel in panels)
    made, above = blank(title, whole, said), 0
    for at, panel in enumerate(panels, start=1):
        name = str(at) if at > 1 else ""
        above += panel.height + between
        low, high = (max(1 - edge / whole, 0) for edge in (above, above - panel.height))
        made.update_layout({f"yaxis{name}": {**GRID, **panel.axis, "domain": [low, high]}})
        made.add_traces([trace.update(yaxis=f"y{name}") for trace in panel.traces])
        if panel.note:
            place = {"x": 0, "xref": "paper", "xanchor": "left", "y": high, "yref": "paper", "yanchor": "bottom"}
            made.add_annotation(text=panel.note, showarrow=False, **place)
        for label, value in panel.levels.items():
            look = {"x": 1, "xanchor": "left", "xshift": 6, "yanchor": "middle", "font": {"size": 11}}
            made.add_hline(y=value, line=DOTTED, annotation={"text": plain(label), **look})
            made.update_layout(margin={"r": LABELS})
    anchor = f"y{len(panels)}" if len(panels) > 1 else "y"
    return with_legend(made.update_layout(xaxis={"automargin": True, "anchor": anchor, **xaxis}, **layout))


def columns(drawing: d.BarChart, title: str, said: str) -> go.Figure:
    """Bars in order with their levels, and marks above those that are slow or do not count."""
    bars, scale = drawing.bars, _scale(drawing.kind, drawing.top)[0]
    named = range(0, len(bars), -(-len(bars) // MOST_TICKS) or 1)
    axis = {**_value_axis(drawing.kind, drawing.top, "Time"), "range": [0, drawing.top / scale * ROOM]}
    traces = [*_bars(drawing, 0), *_marks(bars, drawing.top / scale * (1 + ROOM) / 2)]
    levels = {label: value / scale for label, value in shown_levels(drawing).items()}
    names = {"tickvals": list(named), "ticktext": [plain(bars[at].name) for at in named]}
    xaxis = {"title": {"text": plain(drawing.what)}, "range": [-0.6, len(bars) - 0.4], **names}
    gap = 0.2 if len(bars) <= THIN else 0
    return _panels(title, said, [Panel(traces, axis, PLOT, levels=levels)], xaxis, barmode="stack", bargap=gap)


def histogram(drawing: d.Histogram, title: str, said: str) -> go.Figure:
    """The panels above each other over the same bins."""
    panels = [
        Panel(
            [trace.update(width=0.8, showlegend=at == 0) for trace in _bars(chart, 0.5)],
            _value_axis(chart.kind, chart.top, plain(name)),
            PANEL,
        )
        for at, (name, chart) in enumerate(drawing.panels.items())
    ]
    ticks = {"tickvals": list(drawing.edges), "ticktext": [*map(plain, drawing.edges.values())]}
    xaxis = {"title": {"text": plain(drawing.what)}, **ticks}
    return _panels(title, said, panels, xaxis, barmode="stack", bargap=0.2)


def _bars(drawing: d.BarChart, first: float) -> Iterator[go.Bar]:
    """A trace for each thing that bars consist of, in the order of the legend, and one for those that do not count; the
    first bar stands at `first`."""
    held: dict[tuple[str, bool], list[tuple[int, d.Bar, Share]]] = {}
    for at, bar in enumerate(drawing.bars):
        for part in bar.parts:
            held.setdefault((part.id, bar.faded), []).append((at, bar, part))
    scale, kind, legend = _scale(drawing.kind, drawing.top)[0], drawing.kind, drawing.legend
    order = {id: legend.index(legend_entry(rows[0][2])) for (id, _faded), rows in held.items()}
    for (id, faded), rows in sorted(held.items(), key=lambda each: (order[each[0][0]], each[0])):
        entry = legend[order[id]]
        yield go.Bar(
            name=plain(entry.label),
            legendgroup=plain(id),
            showlegend=not faded or (id, False) not in held,
            x=[first + at for at, _bar, _part in rows],
            y=[part.ns / scale for _at, _bar, part in rows],
            marker={"color": fill(entry), "opacity": FADED if faded else 1, "line": {"width": 0}},
            customdata=[
                [part.ns, _exact(kind, part.ns), plain(bar.name), _exact(kind, bar.total)] for _at, bar, part in rows
            ],
            hovertemplate="%{customdata[2]}<br>%{fullData.name}<br>%{customdata[1]} of %{customdata[3]}" + ENDING,
        )


def _marks(bars: Sequence[d.Bar], height: float) -> Iterator[go.Scatter]:
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


def curve(drawing: d.Curve, title: str, said: str) -> go.Figure:
    """The layers over each other, with the limit as a line."""
    scale, xaxis = time_axis(_end(drawing))
    panel = Panel(
        list(_layers(drawing, scale)),
        {
            **_value_axis(drawing.kind, drawing.top, plain(drawing.what)),
            "range": [0, 1.05 * _place(drawing, drawing.top)],
        },
        PLOT,
        levels={label: _place(drawing, value) for label, value in drawing.limit.items()},
    )
    if drawing.log:
        levels = {drawing.bottom: 0.0, **shown_levels(drawing)}
        at = [_place(drawing, value) for value in levels.values()]
        panel.axis.update(tickvals=at, ticktext=[*map(plain, levels)])
    return _panels(title, said, [panel], xaxis, hovermode="x")


def strips(drawing: d.CurveStrips, title: str, said: str) -> go.Figure:
    """The strips below each other over the same time; lines across all where something begins."""
    scale, xaxis = time_axis(max(_end(strip.curve) for strip in drawing.strips))
    panels = []
    for strip in drawing.strips:
        top = strip.curve.top
        ticks = {"tickvals": [0, top], "ticktext": [plain(strip.curve.kind.show(value)) for value in (0, top)]}
        traces = [trace.update(name=plain(strip.title)) for trace in _layers(strip.curve, scale)]
        note = f'{plain(strip.title)} <span style="color:{MUTED}">{plain(strip.note)}</span>'
        panels.append(Panel(traces, {"range": [0, top], "fixedrange": True, **ticks}, STRIP, note))
    made = _panels(title, said, panels, xaxis, hovermode="x").update_layout(showlegend=False)
    for moment in drawing.moments:
        where = moment / scale
        made.add_shape(type="line", x0=where, x1=where, yref="paper", y0=0, y1=1, line=DOTTED)
    return made


def _end(curve: d.Curve) -> int:
    return max(layer.series.edges[-1] for layer in curve.layers)


def _place(curve: d.Curve, value: float) -> float:
    """Where a value is on the axis: heights of logarithmic curves are shares."""
    return curve.place(value) if curve.log else value / _scale(curve.kind, curve.top)[0]


def _layers(curve: d.Curve, scale: int) -> Iterator[go.Scatter]:
    """A line; an area below it, or between it and its lower border, which is a trace of its own."""
    for layer in curve.layers:
        name, color, area = plain(layer.label), layer.color or ACCENT, {}
        if layer.look == "area" and layer.series.lowest:
            lower = _points(layer, layer.series.lowest, curve, scale)
            yield go.Scatter(
                **lower, **_line(0, color), name=name, legendgroup=name, showlegend=False, hoverinfo="skip"
            )
        if layer.look == "area":
            area = {"fill": "tonexty" if layer.series.lowest else "tozeroy", "fillcolor": _paler(color)}
        yield go.Scatter(
            **_points(layer, layer.series.values, curve, scale),
            **_line(0 if area else 1.5, color),
            **area,
            name=name,
            legendgroup=name,
            hovertemplate="%{fullData.name}: %{customdata[1]}<br>%{customdata[2]}" + ENDING,
        )


def _paler(color: str) -> str:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{PALE})"


def _line(width: float, color: str) -> dict[str, Any]:
    return {"mode": "lines", "line": {"shape": "hv", "width": width, "color": color}, "connectgaps": False}


def _points(layer: d.CurveLayer, values: Sequence[float | None], curve: d.Curve, scale: int) -> dict[str, Any]:
    """A point where each step begins, one where it ends if no other follows, and nothing where no value is known."""
    edges, lowest = layer.series.edges, layer.series.lowest
    points: list[tuple[float | None, float | None, list[Any] | None]] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        low = f"{_exact(curve.kind, lowest[at])} to " if lowest and lowest[at] != value else ""
        told = [value, plain(low + _exact(curve.kind, value)), span_text(edges[at], edges[at + 1])]
        points.append((edges[at] / scale, _place(curve, value), told))
        if at + 1 == len(values) or values[at + 1] is None:
            points += [(edges[at + 1] / scale, _place(curve, value), told), (None, None, None)]
    x, y, customdata = (list(column) for column in zip(*points[:-1], strict=True)) if points else ([], [], [])
    return {"x": x, "y": y, "customdata": customdata}
