"""The idle ledger as a figure: one stacked bar a cut, a bar's length the idle time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nsysdiag.document.bars import LegendEntry, legend_entry
from nsysdiag.document.figures import Segment, ink_on, safe_color, stack
from nsysdiag.document.histogram import unit_of
from nsysdiag.document.names import plain
from nsysdiag.units import format_exact_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.bars import BarChart, Line
    from nsysdiag.document.histogram import Tick
    from nsysdiag.document.view import Share


# What figures have in common: they cover exactly the drawing that they replace. How all of them look stands once in
# the script that draws them.

Figure = dict[str, Any]
SCALE_WIDTH = 94
"""The room right of the bars, in pixels, in which the drawings write their scale."""
AXIS = {"showgrid": False, "zeroline": False, "fixedrange": True, "showline": False, "automargin": False}


def figure(traces: list[Figure], *, margin: tuple[int, int, int, int], **layout: Any) -> Figure:
    """A figure of bars; `margin` in pixels: above, right, below, left."""
    above, right, below, left = margin
    room = {"t": above, "r": right, "b": below, "l": left, "pad": 0}
    return {"data": traces, "layout": {"margin": room, **layout}}


def key_color(entry: LegendEntry) -> str:
    """The colour of a part of the window by the theme, that of a cause by itself."""
    return f"var(--{entry.part})" if entry.part else safe_color(entry.color)


def trace(entry: LegendEntry, group: int, **more: Any) -> Figure:
    """Bars of one entry of the legend; those of one `group` are hidden together."""
    look = {"color": key_color(entry), "line": {"width": 0}}
    return {"type": "bar", "name": plain(entry.label), "legendgroup": str(group), "marker": look} | more


def decimals(scale: int) -> int:
    """How many decimals a time in a unit of so many ns needs to be exact."""
    return len(str(scale)) - 1


def note(text: str, **place: Any) -> Figure:
    """A text of our own on the figure."""
    return {"text": text, "showarrow": False, "xref": "paper", "yref": "paper", **place}


# Histograms over lengths as figures: the gaps by number and by time, the kernels by number.

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
        traces += [_histogram_bars(panel, name, group, entry, tooltips[group]) for group, entry in enumerate(entries)]
    bins = len(tooltips[0])
    layout["xaxis"] = AXIS | {
        "fixedrange": False,
        "range": [0, bins],
        "tickvals": [tick.at for tick in ticks],
        "ticktext": [tick.label for tick in ticks],
        "anchor": "y" if len(panels) == 1 else f"y{len(panels)}",
    }
    return figure(traces, margin=(TITLE, SCALE_WIDTH, AXIS_ROOM, 0), bargap=0.2, hovermode="closest", **layout)


def _histogram_bars(panel: Panel, axis: str, group: int, entry: LegendEntry, tooltips: list[str]) -> Figure:
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


# The iterations as a figure: stacked bars in order, slow ones marked.

BARS, MARKS = 180, 16
"""The heights in pixels of the bars and of the row above them that holds the marks."""
FADED = 0.35


class IterationStack(Struct, frozen=True):
    """An iteration: its number, what its length consists of, and whether it is slow or does not count."""

    index: int
    parts: list[Share]
    slow: bool
    faded: bool
    said: str


def iterations_figure(stacks: list[IterationStack], chart: BarChart, top: int) -> Figure:
    """The bars as the drawing has them; `top` is the length that fills the height."""
    scale, unit = unit_of(top)
    time = f"%{{y:,.{decimals(scale)}f}} {unit}"
    bars = [_iteration_bars(stacks, entry, group, scale, time) for group, entry in enumerate(chart.legend)]
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


def _name(stack: IterationStack) -> str:
    return f"#{stack.index}"


def _iteration_bars(stacks: list[IterationStack], entry: LegendEntry, group: int, scale: int, time: str) -> Figure:
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


def _marks(stacks: list[IterationStack], height: float) -> Figure:
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


BAR, LABEL, LEDGER_AXIS_ROOM = 34, 20, 20
"""The heights of the drawing in pixels: a bar, the label above it where there are several, the axis."""


class LedgerCut(Struct, frozen=True):
    """The idle time by cause, one way of counting it: (title, ns, colour), empty ones too."""

    label: str
    parts: list[tuple[str, int, str]]

    @property
    def segments(self) -> list[Segment]:
        """The parts as they are drawn, without the empty ones."""
        return stack((title, ns, color, "") for title, ns, color in self.parts)


def ledger_figure(cuts: list[LedgerCut]) -> Figure | None:
    """The cuts above each other, all with the same causes in the same order; None without idle time."""
    total = max((sum(ns for _title, ns, _color in cut.parts) for cut in cuts), default=0)
    if not total:
        return None
    scale, unit = unit_of(total)
    label = LABEL if len(cuts) > 1 else 0
    middles = [at * (BAR + label) + label + BAR / 2 for at in range(len(cuts))]
    height = len(cuts) * (BAR + label)
    traces = [_cut_bars(at, cuts, middles, (scale, unit), total) for at in range(len(cuts[0].parts))]
    return figure(
        traces,
        margin=(0, 0, LEDGER_AXIS_ROOM, 0),
        xaxis=AXIS | {"fixedrange": False, "range": [0, total / scale], "nticks": 6, "ticksuffix": f" {unit}"},
        yaxis=AXIS | {"range": [height, 0], "visible": False},
        hovermode="closest",
        uniformtext={"minsize": 12, "mode": "hide"},
        annotations=[
            note(cut.label, x=0, xanchor="left", y=1 - (at * (BAR + label) + label) / height, yanchor="bottom")
            for at, cut in enumerate(cuts)
            if label
        ],
    )


def _cut_bars(at: int, cuts: list[LedgerCut], middles: list[float], unit: tuple[int, str], total: int) -> Figure:
    scale, name = unit
    time = f"%{{x:,.{decimals(scale)}f}} {name}"
    title, _ns, color = cuts[0].parts[at]
    times = [cut.parts[at][1] for cut in cuts]
    return trace(
        LegendEntry(title, "", color),
        at,
        orientation="h",
        x=[ns / scale for ns in times],
        y=middles,
        width=BAR,
        customdata=[plain(format_share(ns, total)) for ns in times],
        text=[_written(cut, title, total) for cut in cuts],
        textposition="inside",
        insidetextanchor="start",
        textangle=0,
        insidetextfont={"color": ink_on(safe_color(color)), "size": 12.5, "weight": 600},
        hovertemplate=f"%{{fullData.name}}<br>{time}<br>%{{customdata}} of the idle time<extra></extra>",
    )


def _written(cut: LedgerCut, title: str, total: int) -> str:
    """What the drawing writes on the segment: only what fits. Blanks keep it off the edge."""
    found = next((each for each in cut.segments if each.label == title), None)
    if found is None or not found.has_share:
        return ""
    share = plain(format_share(found.ns, total))
    return f"&nbsp; {share} {plain(title)}" if found.has_label else f"&nbsp; {share}"
