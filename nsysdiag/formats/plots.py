"""Drawings as plotly figures in the colours of the page's light theme, whatever the default template is.

Text is text. What the pointer shows is exact, and `customdata` of each trace holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go
from msgspec import Struct

from nsysdiag.arrays.intervals import equal_edges
from nsysdiag.document import drawings as d
from nsysdiag.document.axis import unit_of
from nsysdiag.document.columns import BYTES, SHARE, TIME, CellKind
from nsysdiag.document.drawings import FULL, legend_entry, placed, safe_color, shown_levels
from nsysdiag.document.names import plain, visible
from nsysdiag.document.svg import ink_on
from nsysdiag.units import format_exact_ns, format_ns, format_share, format_signed_ns

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
FADED, PALE = 0.35, "47"
"""The opacity of what does not count, and of areas as the end of a colour."""
MARKS = {"slow": ("Slow", "triangle-up", SLOW), "left-out": ("Left out", "x-thin-open", MUTED)}
PLOT, PANEL, STRIP, BETWEEN, ROW, LARGE_ROW, MOST_LARGE = 300, 190, 60, 30, 30, 56, 8
"""Heights in pixels: of a plot alone, of one of several, of a strip, and of the room between panels. And of a row, and
of a bar with a text on it: so many bars have texts."""
MOST_TICKS, ROOM, THIN = 12, 1.1, 200
"""How many bars have their names below them; how much of the scale is left above the longest; and beyond how many bars
there is no room between them."""
HEAD, LINE_HEIGHT, MOST_LINES, LINE_LENGTH, BELOW = 64, 18, 5, 100, 56
"""The heights of a title and of each line below it, in pixels; how many there are at most, and their characters; and
the height below a plot."""
ENTRY, CHARACTER, WIDTH = 44, 6, 550
"""For the legend, in pixels: the width of an entry without its text and of a character, and of a narrow notebook."""
ENDING = "<extra></extra>"
BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def blank(title: str, height: int, said: str = "", **layout: Any) -> go.Figure:
    """A figure without data, whose plot is `height` pixels high under its title and what is `said` below it."""
    lines = [plain(line, LINE_LENGTH) for line in wrap(visible(said), LINE_LENGTH)[:MOST_LINES]]
    above = HEAD + LINE_HEIGHT * len(lines)
    made = go.Figure(
        layout={
            "template": "plotly_white",
            "title": {
                "text": plain(title, LINE_LENGTH),
                "subtitle": {"text": "<br>".join(lines), "font": {"size": 12, "color": MUTED}},
                "pad": {"t": 16},
                "x": 0.02,
                "y": 1,
                "yref": "container",
                "yanchor": "top",
            },
            "margin": {"t": above, "b": BELOW, "l": 24, "r": 24},
            "height": above + height + BELOW,
            "font": {"color": INK},
            "legend": {"orientation": "h", "traceorder": "normal", "yref": "container", "y": 0, "yanchor": "bottom"},
            "hoverlabel": {"align": "left"},
        }
    )
    return made.update_xaxes(automargin=True, zeroline=False).update_layout(**layout)


def empty(title: str, why: str) -> go.Figure:
    """A figure that says why there is nothing to draw."""
    made = blank(title, PLOT).update_xaxes(visible=False).update_yaxes(visible=False)
    return made.add_annotation(text=why, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)


def with_legend(made: go.Figure) -> go.Figure:
    """The figure with each name once in its legend, and with room below it for the lines of that."""
    names = list(dict.fromkeys(trace.name for trace in made.data if trace.name and trace.showlegend is not False))
    left = set(names)
    for trace in made.data:
        trace.update(showlegend=trace.name in left and trace.showlegend is not False, legendgroup=trace.name)
        left -= {trace.name} if trace.showlegend else set()
    widest = max((ENTRY + CHARACTER * len(unescape(name)) for name in names), default=WIDTH)
    room = LINE_HEIGHT * (1 - -len(names) // max(WIDTH // widest, 1)) if len(names) > 1 else 0
    return made.update_layout(
        showlegend=len(names) > 1, height=made.layout.height + room, margin={"b": made.layout.margin.b + room}
    )


def fill(part: str, color: str) -> str:
    """The colour of a part of the time, or its own."""
    return PART_COLORS.get(part, REST) if part else safe_color(color)


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


def _time_axis(end_ns: int, what: str = "Time in the trace") -> tuple[int, dict[str, Any]]:
    """What ns are divided by on an axis of moments up to `end_ns`, and the axis."""
    scale, unit = unit_of(abs(end_ns))
    return scale, {"title": {"text": f"{what} ({unit})"}}


def _exact(kind: CellKind, value: float) -> str:
    """A value with all its digits if its kind has a way to write them."""
    return f"{value:,} B" if kind is BYTES else (kind.exact or kind.show)(value)


# Bars: upright ones side by side, and lying ones below each other.


class BarPiece(Struct, frozen=True):
    """A piece of the bar at a `place`, which begins at `base` of the axis; `told` is what the pointer shows and keeps,
    and `text` stands on it."""

    name: str
    color: str
    place: float
    base: float
    length: float
    told: list[Any]
    text: str = ""
    faded: bool = False


def _bars(pieces: Iterable[BarPiece], hover: str, *, lying: bool, **look: Any) -> Iterator[go.Bar]:
    """A trace for each name and colour, and one for those that do not count."""
    held: dict[tuple[str, str, bool], list[BarPiece]] = {}
    for each in pieces:
        held.setdefault((each.name, each.color, each.faded), []).append(each)
    for (name, color, faded), rows in held.items():
        places, lengths = [each.place for each in rows], [each.length for each in rows]
        yield go.Bar(
            **({"orientation": "h", "x": lengths, "y": places} if lying else {"x": places, "y": lengths}),
            base=[each.base for each in rows],
            name=plain(name),
            marker={"color": color, "opacity": FADED if faded else 1, "line": {"width": 0}},
            text=[plain(each.text) for each in rows] if any(each.text for each in rows) else None,
            insidetextfont={"color": INK if faded else ink_on(color)},
            customdata=[each.told for each in rows],
            hovertemplate=hover + ENDING,
            **look,
        )


def _columns(drawing: d.BarChart, first: float) -> Iterator[go.Bar]:
    """Bars in the order of the legend; the first stands at `first`."""
    scale, kind, legend = _scale(drawing.kind, drawing.top)[0], drawing.kind, drawing.legend
    pieces = []
    for at, bar in enumerate(drawing.bars):
        for part, base in placed(bar.parts):
            entry = legend_entry(part)
            color, x, y, length = fill(entry.part, entry.color), first + at, base / scale, part.ns / scale
            told = [part.ns, _exact(kind, part.ns), plain(bar.name), _exact(kind, bar.total)]
            piece = BarPiece(entry.label, color, x, y, length, told, faded=bar.faded)
            pieces.append((legend.index(entry), bar.faded, piece))
    hover = "%{customdata[2]}<br>%{fullData.name}<br>%{customdata[1]} of %{customdata[3]}"
    ordered = sorted(pieces, key=lambda each: each[:2])
    return _bars((piece for _at, _faded, piece in ordered), hover, lying=False)


def columns(drawing: d.BarChart, title: str, said: str) -> go.Figure:
    """Bars in order with their levels, and marks above those that are slow or do not count."""
    bars, scale = drawing.bars, _scale(drawing.kind, drawing.top)[0]
    named, top = range(0, len(bars), -(-len(bars) // MOST_TICKS) or 1), drawing.top / scale
    axis = {**_value_axis(drawing.kind, drawing.top, "Time"), "range": [0, top * ROOM]}
    traces = [*_columns(drawing, 0), *_marks(bars, top * (1 + ROOM) / 2)]
    levels = {label: value / scale for label, value in shown_levels(drawing).items()}
    names = {"tickvals": list(named), "ticktext": [plain(bars[at].name) for at in named]}
    xaxis = {"title": {"text": plain(drawing.what)}, "range": [-0.6, len(bars) - 0.4], **names}
    gap = 0.2 if len(bars) <= THIN else 0
    return _panels(title, said, [Panel(traces, axis, PLOT, levels=levels)], xaxis, barmode="overlay", bargap=gap)


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


def histogram(drawing: d.Histogram, title: str, said: str) -> go.Figure:
    """The panels above each other over the same bins."""
    panels = []
    for name, chart in drawing.panels.items():
        traces = [trace.update(width=0.8) for trace in _columns(chart, 0.5)]
        panels.append(Panel(traces, _value_axis(chart.kind, chart.top, plain(name)), PANEL))
    ticks = {"tickvals": list(drawing.edges), "ticktext": [*map(plain, drawing.edges.values())]}
    return _panels(title, said, panels, {"title": {"text": plain(drawing.what)}, **ticks}, barmode="overlay")


def _rows(title: str, said: str, names: Sequence[str], height: int, xaxis: dict[str, Any]) -> go.Figure:
    """A row for each name, without data."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": [*map(plain, names)], "range": [len(names) - 0.5, -0.5]}
    yaxis = {"automargin": True, "fixedrange": True, "showgrid": False, "ticklabelstandoff": 6, **ticks}
    return blank(title, height * len(names), said, barmode="overlay", bargap=0.3, xaxis=xaxis, yaxis=yaxis)


def stacks(drawing: d.Stacks, title: str, said: str) -> go.Figure:
    """Stacked bars on one scale."""
    bars = [bar for _name, bar in drawing.rows]
    over_time, large = any(bar.over_time for bar in bars), len(bars) <= MOST_LARGE
    end = max((bar.start_ns + sum(part.ns for part in bar.segments) for bar in bars), default=0)
    scale, axis = _time_axis(end, "Time in the trace" if over_time else "Time")
    pieces = []
    for at, (name, bar) in enumerate(drawing.rows):
        for part, begin in placed(bar.segments, bar.start_ns):
            share, color = format_share(part.ns, bar.whole), fill(part.part, part.color)
            told = [part.ns, format_exact_ns(part.ns), plain(share), plain(name)]
            text, x = "" if not large else part.label if over_time else share, begin / scale
            pieces.append(BarPiece(part.label, color, at, x, part.ns / scale, told, text, part.faded))
    made = _rows(title, said, [name for name, _bar in drawing.rows], LARGE_ROW if large else ROW, axis)
    hover = "%{customdata[3]}<br>%{fullData.name}<br>%{customdata[1]}<br>%{customdata[2]}"
    made.add_traces(list(_bars(pieces, hover, lying=True, textposition="inside", insidetextanchor="middle")))
    return with_legend(made.update_layout(uniformtext={"minsize": 11, "mode": "hide"}))


def waterfall(drawing: d.Waterfall, title: str, said: str) -> go.Figure:
    """The way from the length before to the length after, a bar a step. `customdata` holds the ns, below 0 if a step
    takes time away; the same as text; its share of the length before; and its name."""
    bars, low = drawing.bars, drawing.low
    scale, axis = _time_axis(drawing.high, "Time")
    pieces = []
    for at, bar in enumerate(bars):
        left, right = max(min(bar.from_ns, bar.to_ns), low), max(bar.from_ns, bar.to_ns)
        color = fill(bar.entry.part, bar.entry.color) if bar.entry else MUTED if bar.is_length else REST
        told = [bar.ns, format_exact_ns(bar.ns), plain(bar.share and f"{bar.share} of before"), plain(bar.label)]
        text = format_ns(bar.ns) if bar.is_length else format_signed_ns(bar.ns)
        pieces.append(BarPiece("", color, at, left / scale, (right - left) / scale, told, text=text))
    room = 0.12 * (drawing.high - low)
    axis = {**axis, "range": [low / scale, (drawing.high + room) / scale]}
    made = _rows(title, f"{said} {drawing.cut}", [bar.label for bar in bars], ROW, axis)
    hover = "%{customdata[3]}<br>%{customdata[1]}<br>%{customdata[2]}"
    made.add_traces(list(_bars(pieces, hover, lying=True, textposition="outside", cliponaxis=False)))
    for at, bar in enumerate(bars[:-1]):
        where = bar.to_ns / scale
        made.add_shape(type="line", x0=where, x1=where, y0=at + 0.35, y1=at + 0.65, line={"color": MUTED, "width": 1})
    return with_legend(made)


# Panels above each other over one axis: bars, histograms, curves, strips and lanes.


class Panel(Struct, frozen=True):
    """Traces on an axis of values of their own, `height` pixels high under a `note`; `levels` are lines across them."""

    traces: list[Any]
    axis: dict[str, Any]
    height: int
    note: str = ""
    levels: dict[str, float] = {}


def _panels(
    title: str, said: str, panels: Sequence[Panel], xaxis: dict[str, Any], between: int = BETWEEN, **layout: Any
) -> go.Figure:
    between = between if len(panels) > 1 else 0
    whole, above = sum(panel.height + between for panel in panels), 0
    anchor = f"y{len(panels)}" if len(panels) > 1 else "y"
    made = blank(title, whole, said, xaxis={"anchor": anchor, **xaxis}, **layout)
    for at, panel in enumerate(panels, start=1):
        axis = f"y{at}" if at > 1 else "y"
        above += panel.height + between
        low, high = (max(1 - edge / whole, 0) for edge in (above, above - panel.height))
        yaxis = {"zeroline": False, "automargin": True, "domain": [low, high], **panel.axis}
        made.update_layout({f"yaxis{axis[1:]}": yaxis})
        made.add_traces([trace.update(yaxis=axis) for trace in panel.traces])
        if panel.note:
            place = {"x": 0, "xref": "paper", "xanchor": "left", "y": high, "yref": "paper", "yanchor": "bottom"}
            made.add_annotation(text=panel.note, showarrow=False, **place)
        for label, value in panel.levels.items():
            made.add_hline(y=value, line={"color": INK, "width": 1, "dash": "dot"}, annotation={"text": plain(label)})
    return with_legend(made)


def curve(drawing: d.Curve, title: str, said: str) -> go.Figure:
    """The layers over each other, with the limit as a line."""
    scale, xaxis = _time_axis(_end(drawing))
    axis = _value_axis(drawing.kind, drawing.top, plain(drawing.what))
    axis["range"] = [0, 1.05 * _place(drawing, drawing.top)]
    if drawing.log:
        levels = {drawing.bottom: 0.0, **shown_levels(drawing)}
        axis["tickvals"] = [_place(drawing, value) for value in levels.values()]
        axis["ticktext"] = [*map(plain, levels)]
    limits = {label: _place(drawing, value) for label, value in drawing.limit.items()}
    panel = Panel(list(_layers(drawing, scale)), axis, PLOT, levels=limits)
    return _panels(title, said, [panel], xaxis, hovermode="x")


def strips(drawing: d.CurveStrips, title: str, said: str) -> go.Figure:
    """The strips below each other over the same time; lines across all where something begins."""
    scale, xaxis = _time_axis(max(_end(strip.curve) for strip in drawing.strips))
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
        made.add_shape(type="line", x0=where, x1=where, yref="paper", y0=0, y1=1, line={"color": INK, "dash": "dot"})
    return made


def lanes(drawing: d.DrawnLanes, title: str, said: str) -> go.Figure:
    """The lanes of all groups over one axis of time; from 0 on if the groups have a common start."""
    ends = [group.end_ns - (group.start_ns if drawing.aligned else 0) for group in drawing.groups]
    scale, xaxis = _time_axis(max(ends, default=0), *(["Time from the first operation"] if drawing.aligned else []))
    panels = []
    for group in drawing.groups:
        begin, span = 0 if drawing.aligned else group.start_ns, group.end_ns - group.start_ns
        for lane in group.lanes:
            edges = equal_edges(begin, begin + span, lane.buckets).tolist()
            series = [d.TimeSeries(edges, (area.heights / FULL).tolist()) for area in lane.areas]
            layers = [
                d.CurveLayer(area.label, "area", each, fill(area.part, area.color))
                for area, each in zip(lane.areas, series, strict=True)
            ]
            ticks = {"tickvals": [0.5], "ticktext": [plain(f"{group.label} {lane.label}")], "showgrid": False}
            traces = [
                each.update(fillcolor=each.line.color) for each in _layers(d.Curve(layers, "", SHARE, 1, {}), scale)
            ]
            panels.append(Panel(traces, {"range": [0, 1], "fixedrange": True, **ticks}, ROW))
    return _panels(title, said, panels, xaxis, between=0, hovermode="closest")


def _end(curve: d.Curve) -> int:
    return max(layer.series.edges[-1] for layer in curve.layers)


def _place(curve: d.Curve, value: float) -> float:
    """Where a value is on the axis: heights of logarithmic curves are shares."""
    return curve.place(value) if curve.log else value / _scale(curve.kind, curve.top)[0]


def _layers(curve: d.Curve, scale: int) -> Iterator[go.Scatter]:
    """A line; an area below it, or between it and its lower border, which is a trace of its own."""
    for layer in curve.layers:
        series, color, is_area = layer.series, layer.color or ACCENT, layer.look == "area"
        line = {"mode": "lines", "line": {"shape": "hv", "width": 0 if is_area else 1.5, "color": color}}
        if series.lowest:
            lower = _points(series, series.lowest, curve, scale)
            yield go.Scatter(**lower, **line, name=plain(layer.label), showlegend=False, hoverinfo="skip")
        yield go.Scatter(
            **_points(series, series.values, curve, scale),
            **line,
            fill=("tonexty" if series.lowest else "tozeroy") if is_area else None,
            fillcolor=color + PALE if is_area else None,
            name=plain(layer.label),
            hovertemplate="%{fullData.name}: %{customdata[1]}<br>%{customdata[2]}" + ENDING,
        )


def _points(series: d.TimeSeries, values: Sequence[float | None], curve: d.Curve, scale: int) -> dict[str, Any]:
    """A point where each step begins, one where it ends if no other follows, and nothing where no value is known."""
    edges, lowest = series.edges, series.lowest
    points: list[tuple[float | None, float | None, list[Any] | None]] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        low = f"{_exact(curve.kind, lowest[at])} to " if lowest and lowest[at] != value else ""
        when = f"{format_exact_ns(edges[at])} to {format_exact_ns(edges[at + 1])}"
        told = [value, plain(low + _exact(curve.kind, value)), when]
        points.append((edges[at] / scale, _place(curve, value), told))
        if at + 1 == len(values) or values[at + 1] is None:
            points += [(edges[at + 1] / scale, _place(curve, value), told), (None, None, None)]
    x, y, customdata = (list(column) for column in zip(*points[:-1], strict=True)) if points else ([], [], [])
    return {"x": x, "y": y, "customdata": customdata}


# Icicles.


def icicle(drawing: d.Icicle, title: str, said: str) -> go.Figure:
    """The cells below each other; a cell's parts are in its tooltip."""
    cells = drawing.cells
    above: dict[int, str] = {}
    parents, told = [], []
    for at, cell in enumerate(cells):
        parents.append(above.get(cell.depth - 1, ""))
        above[cell.depth] = str(at)
        parts = ", ".join(f"{part.label} {format_exact_ns(part.ns)}" for part in cell.parts)
        told.append([cell.ns, format_exact_ns(cell.ns), plain(format_share(cell.ns, drawing.whole)), plain(parts)])
    return blank(title, LARGE_ROW * (1 + max((cell.depth for cell in cells), default=0)), said).add_icicle(
        ids=[str(at) for at in range(len(cells))],
        parents=parents,
        labels=[plain(cell.label) for cell in cells],
        values=[cell.ns for cell in cells],
        branchvalues="total",
        sort=False,
        tiling={"orientation": "v"},
        marker={"colors": [*map(_color, cells)]},
        customdata=told,
        hovertemplate="%{label}<br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}" + ENDING,
    )


def _color(cell: d.IcicleCell) -> str:
    """That of the cause with most time, or of what most of it is."""
    most = max(cell.parts, key=lambda part: part.ns, default=None)
    if most is not None and most.color:
        return fill(most.part, most.color)
    idle = sum(part.ns for part in cell.parts if part.part == "idle")
    return PART_COLORS["idle" if 2 * idle > cell.ns else "compute"]


FIGURES: dict[type, Callable[[Any, str, str], go.Figure]] = {
    d.BarChart: columns,
    d.Histogram: histogram,
    d.Curve: curve,
    d.CurveStrips: strips,
    d.StackedBar: lambda bar, title, said: stacks(d.Stacks([("", bar)]), title, said),
    d.Stacks: stacks,
    d.Icicle: icicle,
    d.DrawnLanes: lanes,
    d.Waterfall: waterfall,
}
"""What makes a figure of each drawing, under a title and a sentence."""
