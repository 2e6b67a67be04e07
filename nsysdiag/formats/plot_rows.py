"""Stacked bars, timelines and waterfalls as plotly figures: rows below each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from nsysdiag.document import drawings as d
from nsysdiag.document.drawings import FULL, LegendEntry, Stacks
from nsysdiag.document.names import plain
from nsysdiag.document.svg import ink_on
from nsysdiag.formats.plots import (
    ENDING,
    FADED,
    INK,
    LINE,
    MUTED,
    PART_COLORS,
    REST,
    blank,
    fill,
    span_text,
    time_axis,
    with_legend,
)
from nsysdiag.units import format_exact_ns, format_ns, format_share, format_signed_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


ROW, LARGE_ROW, MOST_LARGE, FILLED = 30, 56, 8, 0.7
"""The heights of a row, and of a bar with texts on it, in pixels; how many bars have them; how much of its row a bar
takes."""


def _rows(title: str, said: str, names: Sequence[str], height: int, xaxis: dict[str, Any]) -> go.Figure:
    """A row for each name, without data."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": [*map(plain, names)], "range": [len(names) - 0.5, -0.5]}
    look = {"automargin": True, "fixedrange": True, "showgrid": False, "zeroline": False, "ticklabelstandoff": 6}
    made = blank(title, height * len(names), said)
    return made.update_layout(barmode="overlay", hovermode="closest", xaxis=xaxis, yaxis={**ticks, **look})


def stacked_bar(drawing: d.StackedBar, title: str, said: str) -> go.Figure:
    """One bar."""
    return stacks(Stacks([("", drawing)]), title, said)


def stacks(drawing: Stacks, title: str, said: str) -> go.Figure:
    """Stacked bars on one scale; segments of one label and colour are a trace."""
    bars = [bar for _name, bar in drawing.rows]
    over_time, large = any(bar.over_time for bar in bars), len(bars) <= MOST_LARGE
    placed = [each for at, bar in enumerate(bars) for each in _placed(at, bar)]
    end = max((before + part.ns for _at, before, part in placed), default=0)
    scale, axis = time_axis(end, "Time in the trace" if over_time else "Time")
    names = [name for name, _bar in drawing.rows]
    axis = axis if over_time else {**axis, "rangemode": "tozero"}
    made = _rows(title, said, names, LARGE_ROW if large else ROW, axis)
    made.update_layout(uniformtext={"minsize": 11, "mode": "hide"})
    by_look: dict[tuple[str, str, bool], list[tuple[int, int, d.Segment]]] = {}
    for each in placed:
        part = each[-1]
        by_look.setdefault((part.label, fill(LegendEntry("", part.part, part.color)), part.faded), []).append(each)
    for (label, color, faded), held in by_look.items():
        shares = [format_share(part.ns, bars[at].whole) for at, _before, part in held]
        texts = [label if over_time else share for share in shares]
        rows = zip(held, shares, strict=True)
        made.add_bar(
            **_lying([(at, before / scale, part.ns / scale) for at, before, part in held]),
            name=plain(label),
            marker={"color": color, "opacity": FADED if faded else 1, "line": {"width": 0}},
            text=[*map(plain, texts)] if large else None,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            insidetextfont={"color": INK if faded else ink_on(color)},
            customdata=[
                [part.ns, format_exact_ns(part.ns), plain(share), plain(names[at])] for (at, _, part), share in rows
            ],
            hovertemplate="%{customdata[3]}<br>%{fullData.name}<br>%{customdata[1]}<br>%{customdata[2]}" + ENDING,
        )
    return with_legend(made)


def _placed(at: int, bar: d.StackedBar) -> Iterator[tuple[int, int, d.Segment]]:
    """The place of the bar, where each segment begins in ns, and itself."""
    before = bar.start_ns
    for part in bar.segments:
        yield at, before, part
        before += part.ns


def _lying(bars: Sequence[tuple[int, float, float]]) -> dict[str, Any]:
    """Horizontal bars: the row, the begin and the length of each."""
    y, base, x = (list(column) for column in zip(*bars, strict=True))
    return {"orientation": "h", "base": base, "x": x, "y": y, "width": FILLED}


def icicle(drawing: d.Icicle, title: str, said: str) -> go.Figure:
    """The cells below each other; a cell's parts are in its tooltip."""
    height = LARGE_ROW * (1 + max((cell.depth for cell in drawing.cells), default=0))
    ids = [f"{cell.depth} {cell.start} {at}" for at, cell in enumerate(drawing.cells)]
    above: dict[int, str] = {}
    parents = []
    for id, cell in zip(ids, drawing.cells, strict=True):
        parents.append(above.get(cell.depth - 1, ""))
        above[cell.depth] = id
    made = blank(title, height, said)
    return made.add_icicle(
        ids=ids,
        parents=parents,
        labels=[plain(cell.label) for cell in drawing.cells],
        values=[cell.ns for cell in drawing.cells],
        branchvalues="total",
        sort=False,
        tiling={"orientation": "v"},
        marker={"colors": [_color(cell) for cell in drawing.cells]},
        customdata=[
            [cell.ns, format_exact_ns(cell.ns), plain(format_share(cell.ns, drawing.whole)), plain(_parts_of(cell))]
            for cell in drawing.cells
        ],
        hovertemplate="%{label}<br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}" + ENDING,
    )


def _parts_of(cell: d.IcicleCell) -> str:
    return ", ".join(f"{part.label} {format_exact_ns(part.ns)}" for part in cell.parts)


def _color(cell: d.IcicleCell) -> str:
    """That of the cause with most time, or of what most of it is."""
    most = max(cell.parts, key=lambda part: part.ns, default=None)
    if most is not None and most.color:
        return fill(LegendEntry(most.label, most.part, most.color))
    return PART_COLORS["idle" if _mostly_idle(cell) else "compute"]


def _mostly_idle(cell: d.IcicleCell) -> bool:
    return 2 * sum(part.ns for part in cell.parts if part.part == "idle") > cell.ns


def lanes(drawing: d.DrawnLanes, title: str, said: str) -> go.Figure:
    """The lanes of all groups over one axis of time; from 0 on where the groups have a common start."""
    lanes = [(group, lane) for group in drawing.groups for lane in group.lanes]
    end = max((group.end_ns - (group.start_ns if drawing.aligned else 0) for group in drawing.groups), default=0)
    scale, axis = time_axis(end, *(["Time from the first operation"] if drawing.aligned else []))
    made = _rows(title, said, [f"{group.label} {lane.label}" for group, lane in lanes], ROW, axis)
    named: set[tuple[str, str]] = set()
    for at, (group, lane) in enumerate(lanes):
        for area in lane.areas:
            color = fill(LegendEntry(area.label, area.part, area.color))
            made.add_scatter(
                **_outline(group, lane, area, at, group.start_ns if drawing.aligned else 0, scale),
                name=plain(area.label),
                legendgroup=plain(f"{area.label} {color}"),
                showlegend=(area.label, color) not in named,
                fillcolor=color,
                line={"width": 0.5, "color": color},
            )
            named.add((area.label, color))
    return with_legend(made)


def _outline(group: d.LaneGroup, lane: d.DrawnLane, area: d.Area, row: int, begin: int, scale: int) -> dict[str, Any]:
    """The border of an area that stands on the floor of its row: a run of equal heights is one step. `customdata` holds
    the height, the same as text, and the time."""
    count, span, floor = lane.buckets, group.end_ns - group.start_ns, row + 0.45
    starts = np.flatnonzero(np.diff(area.heights, prepend=-1))
    ends = np.append(starts[1:], count)
    x: list[float | None] = []
    y: list[float | None] = []
    told: list[list[Any] | None] = []
    for first, behind, height in zip(starts.tolist(), ends.tolist(), area.heights[starts].tolist(), strict=True):
        if height:
            low, high = (group.start_ns + span * at // count for at in (first, behind))
            left, right, upper = (low - begin) / scale, (high - begin) / scale, floor - 0.9 * height / FULL
            x += [left, left, right, right, left, None]
            y += [floor, upper, upper, floor, floor, None]
            told += [[height, plain(format_share(height, FULL)), span_text(low, high)]] * 5 + [None]
    hover = "%{fullData.name}: %{customdata[1]}<br>%{customdata[2]}" + ENDING
    look = {"mode": "lines", "fill": "toself", "hoveron": "points", "hovertemplate": hover}
    return {"x": x, "y": y, "customdata": told, **look}


def waterfall(drawing: d.Waterfall, title: str, said: str) -> go.Figure:
    """The way from the length before to the length after, a bar a step. `customdata` holds the ns, below 0 if a step
    takes time away; the same as text; its share of the length before; and its name."""
    bars, low = drawing.bars, drawing.low
    scale, axis = time_axis(drawing.high, "Time")
    room = 0.12 * (drawing.high - low)
    axis = {**axis, "range": [low / scale, (drawing.high + room) / scale]}
    made = _rows(title, f"{said} {drawing.cut}", [bar.label for bar in bars], ROW, axis)
    ends = [(max(min(bar.from_ns, bar.to_ns), low), max(bar.from_ns, bar.to_ns)) for bar in bars]
    colors = [fill(bar.entry) if bar.entry else MUTED if bar.is_length else REST for bar in bars]
    made.add_bar(
        **_lying([(at, left / scale, (right - left) / scale) for at, (left, right) in enumerate(ends)]),
        marker={"color": colors, "line": {"width": 1, "color": LINE}},
        text=[format_ns(bar.ns) if bar.is_length else format_signed_ns(bar.ns) for bar in bars],
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
        made.add_shape(type="line", x0=where, x1=where, y0=at + 0.35, y1=at + 0.65, line={"color": MUTED, "width": 1})
    return with_legend(made)
