"""All gaps by length: is it a thousand small waits or one long one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.document.axis import EDGES as FINE_EDGES
from nsysdiag.document.axis import count_levels, time_levels
from nsysdiag.document.bars import BarChart, LegendEntry, legend_entry
from nsysdiag.document.context import Context
from nsysdiag.document.figures import Segment, percent, stack
from nsysdiag.document.histogram import Bin as Drawn
from nsysdiag.document.histogram import Tally, Tick, bound, draw_columns, tally_gaps, ticks
from nsysdiag.document.interactive.figure import Figure
from nsysdiag.document.interactive.histograms import Panel, histogram_figure
from nsysdiag.document.packed import unpack
from nsysdiag.document.view import share_of
from nsysdiag.document.words import counted
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.units import NS_PER, format_count, format_exact_ns, format_ns

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport

EDGES = tuple(NS_PER["us"] * 10**power for power in range(7))


@dataclass(frozen=True, slots=True)
class Bin:
    """The gaps of one range of lengths; `segments` cut their time by dominant cause, `bar` is the bar's length."""

    label: str
    count: int
    total_ns: int
    bar: str
    segments: list[Segment]


def view(context: Context, device: DeviceReport) -> View | None:
    """The gaps of each decade of lengths, from the shortest decade that has one to the longest."""
    if not device.gaps_packed.count:
        return None
    _starts, lengths, causes = unpack(device.gaps_packed)
    decade = np.searchsorted(np.array(EDGES), lengths, side="right")
    totals = [int(lengths[decade == index].sum()) for index in range(len(EDGES) + 1)]
    ids = device.gaps_packed.cause_ids
    return _charts(device, context.causes) | {
        "bins": [
            _bin(index, lengths[decade == index], causes[decade == index], max(totals), ids, context.causes)
            for index in range(int(decade.min()), int(decade.max()) + 1)
        ]
    }


def _bin(
    index: int,
    lengths: npt.NDArray[np.int64],
    causes: npt.NDArray[np.int64],
    longest: int,
    ids: list[str],
    known: Causes,
) -> Bin:
    total = int(lengths.sum())
    by_cause = sorted(
        ((ids[cause], int(lengths[causes == cause].sum())) for cause in np.unique(causes).tolist()),
        key=lambda item: (-item[1], item[0]),
    )
    return Bin(
        label=_label(index),
        count=len(lengths),
        total_ns=total,
        bar=percent(total, longest),
        segments=stack((known.title(cause), ns, known[cause].color, "") for cause, ns in by_cause),
    )


def _charts(device: DeviceReport, causes: Causes) -> View:
    """The number of gaps and their time in finer bins, still and as a figure."""
    tallies = tally_gaps([device])
    used = np.flatnonzero(sum(tally.count for tally in tallies.values()))
    shown = slice(int(used[0]), int(used[-1]) + 1)
    edges = ticks([*FINE_EDGES[shown], *(FINE_EDGES[shown.stop : shown.stop + 1] or [FINE_EDGES[-1]])])
    return {
        "counts": _drawn(tallies, shown, causes, "count"),
        "times": _drawn(tallies, shown, causes, "ns"),
        "edges": edges,
        "figure": _figure(tallies, shown, edges, causes),
    }


def _drawn(tallies: dict[str, Tally], shown: slice, causes: Causes, quantity: str) -> BarChart | None:
    """Bars of the number of gaps or of their time, by bin and cause."""
    told = format_count if quantity == "count" else format_ns
    columns = []
    for at in range(shown.start, shown.stop):
        values = {cause: int(getattr(tally, quantity)[at]) for cause, tally in tallies.items()}
        parts = [share_of(cause, value, causes) for cause, value in values.items() if value]
        said = ", ".join(f"{part.label} {told(part.ns)}" for part in parts)
        columns.append(Drawn(parts, f"{_range(at)}: {said or 'none'}"))
    return draw_columns(columns, count_levels if quantity == "count" else time_levels)


def _figure(tallies: dict[str, Tally], shown: slice, edges: list[Tick], causes: Causes) -> Figure:
    counts = [tally.count[shown].tolist() for tally in tallies.values()]
    times = [tally.ns[shown].tolist() for tally in tallies.values()]
    told = [
        [
            f"{counted(number, 'gap')}, {_range(at)}<br>{format_exact_ns(ns)}"
            for at, (number, ns) in enumerate(zip(*rows, strict=True), start=shown.start)
        ]
        for rows in zip(counts, times, strict=True)
    ]
    entries = [_entry(cause, causes) for cause in tallies]
    panels = [
        Panel("Number of gaps", counts, count_levels(max(map(sum, zip(*counts, strict=True))))),
        Panel("Idle time in them", times, time_levels(max(map(sum, zip(*times, strict=True))))),
    ]
    return histogram_figure(panels, entries, told, edges)


def _entry(cause: str, causes: Causes) -> LegendEntry:
    return legend_entry(share_of(cause, 1, causes))


def _range(at: int) -> str:
    return f"{bound(at)} to {bound(at + 1)}"


def _label(index: int) -> str:
    if index == 0:
        return f"under {_edge(0)}"
    if index == len(EDGES):
        return f"{_edge(-1)} and more"
    return f"{_edge(index - 1)} to {_edge(index)}"


def _edge(index: int) -> str:
    return format_ns(EDGES[index]).replace(".00", "").replace(".0", "")


section = device_section("gap-lengths", "Gaps by length", view)
