"""Histograms over lengths as figures: the gaps by number and by time, the kernels by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document.interactive.figure import AXIS, SCALE_WIDTH, Figure, figure, note, trace

if TYPE_CHECKING:
    from nsysdiag.document.bars import LegendEntry
    from nsysdiag.document.histogram import Tick

TITLE, PLOT, AXIS_ROOM = 24, 110, 20
"""The heights of the drawing in pixels: a title, the bars below it, the edges below the last bars."""


class Panel(Struct, frozen=True):
    """Bars of one quantity: `heights` by entry of the legend and bin, and round values with their texts."""

    title: str
    heights: list[list[int]]
    levels: dict[str, int]


def histogram_figure(
    panels: list[Panel], entries: list[LegendEntry], tooltips: list[list[str]], ticks: list[Tick]
) -> Figure:
    """The panels above each other over the same bins; `tooltips` are what the pointer shows, by entry and bin.

    Bars without any height are left out.
    """
    whole = len(panels) * (PLOT + TITLE) - TITLE
    layout: Figure = {}
    traces: list[Figure] = []
    for at, panel in enumerate(panels):
        name = "y" if at == 0 else f"y{at + 1}"
        upper = 1 - at * (PLOT + TITLE) / whole
        layout[f"yaxis{name[1:]}"] = AXIS | {
            "domain": [max(0, upper - PLOT / whole), upper],
            "side": "right",
            "showgrid": True,
            "gridcolor": "var(--line)",
            "tickvals": list(panel.levels.values()),
            "ticktext": list(panel.levels),
            "ticklabelstandoff": 6,
            "range": [0, max(map(sum, zip(*panel.heights, strict=True)))],
        }
        layout.setdefault("annotations", []).append(
            note(panel.title, x=0, xanchor="left", y=upper, yanchor="bottom", font={"color": "var(--muted)"})
        )
        traces += [_bars(panel, name, group, entry, tooltips[group]) for group, entry in enumerate(entries)]
    bins = len(tooltips[0])
    layout["xaxis"] = AXIS | {
        "fixedrange": False,
        "range": [0, bins],
        "tickvals": [tick.at for tick in ticks],
        "ticktext": [tick.label for tick in ticks],
        "anchor": "y" if len(panels) == 1 else f"y{len(panels)}",
    }
    return figure(traces, margin=(TITLE, SCALE_WIDTH, AXIS_ROOM, 0), bargap=0.2, hovermode="closest", **layout)


def _bars(panel: Panel, axis: str, group: int, entry: LegendEntry, tooltips: list[str]) -> Figure:
    used = [at for at, height in enumerate(panel.heights[group]) if height]
    return trace(
        entry,
        group,
        x=[at + 0.5 for at in used],
        y=[panel.heights[group][at] for at in used],
        width=0.8,
        yaxis=axis,
        customdata=[tooltips[at] for at in used],
        hovertemplate="%{fullData.name}<br>%{customdata}<extra></extra>",
    )
