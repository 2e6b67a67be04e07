"""How figures look: the colours of the page's light theme, whatever the default template is, and text that is text."""

from __future__ import annotations

from html import unescape
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from nsysdiag.document.axis import unit_of
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import safe_color
from nsysdiag.document.kinds import BYTES, SHARE, TIME, Kind
from nsysdiag.document.names import plain, visible
from nsysdiag.units import format_exact_ns

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


def scale_of(kind: Kind, top: float) -> tuple[float, str]:
    """What values of one kind are divided by on an axis up to `top`, and the unit that they have then."""
    if kind is TIME:
        return unit_of(round(top))
    if kind is BYTES:
        return next(((scale, unit) for scale, unit in BYTE_UNITS if top >= scale), (1, "B"))
    return 1, ""


def value_axis(kind: Kind, top: float, what: str) -> dict[str, Any]:
    """An axis of values of one kind."""
    unit = scale_of(kind, top)[1]
    title = f"{what} ({unit})" if what and unit else what or unit
    return {**GRID, "title": {"text": title}, **({"tickformat": ".0%"} if kind is SHARE else {})}


def exact(kind: Kind, value: float) -> str:
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
