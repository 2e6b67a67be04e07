"""The iterations as a figure: stacked bars in order, slow ones marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag.document.axis import unit_of
from nsysdiag.document.bars import legend_entry
from nsysdiag.document.interactive.figure import AXIS, SCALE_WIDTH, Figure, decimals, figure, note, trace
from nsysdiag.units import format_exact_ns

if TYPE_CHECKING:
    from nsysdiag.document.bars import BarChart, LegendEntry, Line
    from nsysdiag.document.view import Share

BARS, MARKS = 180, 16
"""The heights in pixels of the bars and of the row above them that holds the marks."""
FADED = 0.35


class Stack(Struct, frozen=True):
    """An iteration: its number, what its length consists of, and whether it is slow or does not count."""

    index: int
    parts: list[Share]
    slow: bool
    faded: bool
    said: str


def iterations_figure(stacks: list[Stack], chart: BarChart, top: int) -> Figure:
    """The bars as the drawing has them; `top` is the length that fills the height."""
    scale, unit = unit_of(top)
    time = f"%{{y:,.{decimals(scale)}f}} {unit}"
    bars = [_bars(stacks, entry, group, scale, time) for group, entry in enumerate(chart.legend)]
    names = [_name(stack) for stack in stacks]
    return figure(
        [*bars, _marks(stacks, top / scale * (BARS + MARKS / 2) / BARS)],
        margin=(0, SCALE_WIDTH, 0, 0),
        bargap=0.2 if len(stacks) <= 200 else 0,
        hovermode="x unified",
        xaxis=AXIS
        | {
            "fixedrange": False,
            "type": "category",
            "categoryarray": names,
            "range": [-0.5, chart.width / chart.slot - 0.5],
            "showticklabels": False,
            "showspikes": False,
        },
        yaxis=AXIS | {"range": [0, top / scale * (BARS + MARKS) / BARS], "showticklabels": False},
        shapes=[_line(_height(line)) for line in chart.lines],
        annotations=[
            note(line.label, x=1, xanchor="left", xshift=6, y=_height(line), yanchor="middle") for line in chart.lines
        ],
    )


def _name(stack: Stack) -> str:
    return f"#{stack.index}"


def _bars(stacks: list[Stack], entry: LegendEntry, group: int, scale: int, time: str) -> Figure:
    mine = [(stack, part) for stack in stacks for part in stack.parts if part.ns and legend_entry(part) == entry]
    made = trace(
        entry,
        group,
        x=[_name(stack) for stack, _part in mine],
        y=[part.ns / scale for _stack, part in mine],
        hovertemplate=time,
    )
    if any(stack.faded for stack, _part in mine):
        made["marker"]["opacity"] = [FADED if stack.faded else 1 for stack, _part in mine]
    return made


def _marks(stacks: list[Stack], height: float) -> Figure:
    """A mark above each bar that is slow or does not count, and for all the whole length."""
    lengths = [sum(part.ns for part in stack.parts) for stack in stacks]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "In all",
        "x": [_name(stack) for stack in stacks],
        "y": [height] * len(stacks),
        "cliponaxis": False,
        "marker": {
            "size": 8,
            "symbol": ["x-thin" if stack.faded else "triangle-up" for stack in stacks],
            "color": ["var(--muted)" if stack.faded else "var(--high)" for stack in stacks],
            "opacity": [1 if stack.slow or stack.faded else 0 for stack in stacks],
            "line": {"width": [1.5 if stack.faded else 0 for stack in stacks], "color": "var(--muted)"},
        },
        "customdata": [f"{format_exact_ns(ns)}{stack.said}" for ns, stack in zip(lengths, stacks, strict=True)],
        "hovertemplate": "%{customdata}",
    }


def _height(line: Line) -> float:
    """Where a line of the drawing is, as a part of the figure's height from below."""
    return (1 - float(line.y[:-1]) / 100) * BARS / (BARS + MARKS)


def _line(at: float) -> Figure:
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": "paper", "y0": at, "y1": at}
    return {"type": "line", "line": {"color": "var(--ink)", "width": 1, "dash": "3px,4px"}, "opacity": 0.55, **place}
