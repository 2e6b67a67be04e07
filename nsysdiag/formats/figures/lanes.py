"""Timelines as figures: lanes below each other, each as high as the share that something took of a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.lanes import FULL
from nsysdiag.document.names import plain
from nsysdiag.formats.figures.look import ENDING, ROWS, blank, fill, span_text, time_axis
from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.document.lanes import Area, Lane, LaneGroup, Lanes

LANE, FILLED = 30, 0.86
"""The height of a lane in pixels, and how much of it a full one takes."""


def timeline(drawing: Lanes, title: str, said: str) -> go.Figure:
    """The lanes of all groups over one axis of time; from 0 on where the groups have a common start.

    `customdata` of each point holds the share of the bucket that begins there, from 0 to FULL, and the same as text;
    then from when to when it lasts, in ns of the trace.
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


def _outline(group: LaneGroup, lane: Lane, area: Area, floor: int, begin: int, scale: int) -> dict[str, Any]:
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
