"""The idle ledger as a figure: one stacked bar a cut, a bar's length the idle time."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.document.axis import unit_of
from nsysdiag.document.bars import LegendEntry
from nsysdiag.document.figures import Segment, ink_on, safe_color, stack
from nsysdiag.document.interactive.figure import AXIS, Figure, decimals, figure, note, trace
from nsysdiag.document.names import plain
from nsysdiag.units import format_share

BAR, LABEL, AXIS_ROOM = 34, 20, 20
"""The heights of the drawing in pixels: a bar, the label above it where there are several, the axis."""


class Cut(Struct, frozen=True):
    """The idle time by cause, one way of counting it: (title, ns, colour), empty ones too."""

    label: str
    parts: list[tuple[str, int, str]]

    @property
    def segments(self) -> list[Segment]:
        """The parts as they are drawn, without the empty ones."""
        return stack((title, ns, color, "") for title, ns, color in self.parts)


def ledger_figure(cuts: list[Cut]) -> Figure | None:
    """The cuts above each other, all with the same causes in the same order; None without idle time."""
    total = max((sum(ns for _title, ns, _color in cut.parts) for cut in cuts), default=0)
    if not total:
        return None
    scale, unit = unit_of(total)
    label = LABEL if len(cuts) > 1 else 0
    middles = [at * (BAR + label) + label + BAR / 2 for at in range(len(cuts))]
    height = len(cuts) * (BAR + label)
    traces = [_bars(at, cuts, middles, (scale, unit), total) for at in range(len(cuts[0].parts))]
    return figure(
        traces,
        margin=(0, 0, AXIS_ROOM, 0),
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


def _bars(at: int, cuts: list[Cut], middles: list[float], unit: tuple[int, str], total: int) -> Figure:
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


def _written(cut: Cut, title: str, total: int) -> str:
    """What the drawing writes on the segment: only what fits. Blanks keep it off the edge."""
    found = next((each for each in cut.segments if each.label == title), None)
    if found is None or not found.has_share:
        return ""
    share = plain(format_share(found.ns, total))
    return f"&nbsp; {share} {plain(title)}" if found.has_label else f"&nbsp; {share}"
