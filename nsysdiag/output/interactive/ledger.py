"""The idle ledger as a figure: one stacked bar a cut, a bar's length the idle time."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.output.bars import LegendEntry
from nsysdiag.output.figures import ink_on, safe_color
from nsysdiag.output.interactive.figure import AXIS, Figure, decimals, figure, note, trace
from nsysdiag.output.lengths import unit_of
from nsysdiag.output.plotly_text import plain
from nsysdiag.units import format_share

BAR, LABEL, AXIS_ROOM = 34, 20, 20
"""The heights of the drawing in pixels: a bar, the label above it where there are several, the axis."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The idle time by cause, one way of counting it: (title, ns, colour), empty ones too."""

    label: str
    parts: list[tuple[str, int, str]]


def ledger_figure(cuts: list[Cut]) -> Figure | None:
    """The cuts above each other, all with the same causes in the same order; None without idle time."""
    total = max((sum(ns for _title, ns, _color in cut.parts) for cut in cuts), default=0)
    if not total:
        return None
    scale, unit = unit_of(total)
    label = LABEL if len(cuts) > 1 else 0
    middles = [at * (BAR + label) + label + BAR / 2 for at in range(len(cuts))]
    height = len(cuts) * (BAR + label)
    traces = [
        _bars(at, [cut.parts[at] for cut in cuts], middles, total, f"%{{x:,.{decimals(scale)}f}} {unit}", scale)
        for at in range(len(cuts[0].parts))
    ]
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


def _bars(
    at: int, parts: list[tuple[str, int, str]], middles: list[float], total: int, time: str, scale: int
) -> Figure:
    title, _ns, color = parts[0]
    shares = [format_share(ns, total) for _title, ns, _color in parts]
    return trace(
        LegendEntry(title, "", color),
        at,
        orientation="h",
        x=[ns / scale for _title, ns, _color in parts],
        y=middles,
        width=BAR,
        customdata=[plain(share) for share in shares],
        text=[f"{plain(share)} {plain(title)}" for share in shares],
        textposition="inside",
        insidetextanchor="start",
        textangle=0,
        insidetextfont={"color": ink_on(safe_color(color)), "size": 12.5, "weight": 600},
        hovertemplate=f"%{{fullData.name}}<br>{time}<br>%{{customdata}} of the idle time<extra></extra>",
    )
