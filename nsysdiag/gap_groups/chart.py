"""All gaps by length: is it a thousand small waits or one long one?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.document import words
from nsysdiag.document.bars import BarChart, legend_entry
from nsysdiag.document.blocks import PAGE, Chart, Column, Section, Table
from nsysdiag.document.figures import StackedBar, percent, stack
from nsysdiag.document.histogram import EDGES as FINE_EDGES
from nsysdiag.document.histogram import (
    Bin,
    Histogram,
    Tally,
    Tick,
    bound,
    count_levels,
    draw_columns,
    tally_gaps,
    ticks,
    time_levels,
)
from nsysdiag.document.interactive.figures import Figure, Panel, histogram_figure
from nsysdiag.document.kinds import COUNT, STACK, TEXT, TIME, share_of
from nsysdiag.document.packed import unpack
from nsysdiag.document.view import by_time
from nsysdiag.document.view import share_of as some
from nsysdiag.units import NS_PER, format_exact_ns, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.document.context import Context
    from nsysdiag.document.view import Causes
    from nsysdiag.report import DeviceReport

EDGES = tuple(NS_PER["us"] * 10**power for power in range(7))


def lengths(device: DeviceReport, context: Context) -> Section | None:
    """The gaps of each decade of lengths, from the shortest decade that has one to the longest; None where all gaps are
    of one decade."""
    rows = _decades(device, context.causes) if device.gaps_packed.count else []
    if len(rows) < 2:
        return None
    columns = (
        Column("Length", TEXT, head=True),
        Column("Gaps", COUNT),
        Column("Time", TIME),
        Column("Of idle", share_of(device.idle_ns)),
        Column("Causes", STACK),
    )
    title = f"All {words.counted(device.gap_count, 'gap')}"
    note = "The bars divide the time by each gap’s largest cause."
    table = Table(title, columns, rows, note=note, sortable=False, limit=PAGE)
    label, count, total, *_more = max(rows, key=lambda row: row[2])
    gist = f"{format_share(total, device.idle_ns)} of the idle time in {words.counted(count, 'gap')} of {label}"
    return Section("gap-lengths", "Gaps by length", [*_chart(device, context.causes), table], gist)


def _decades(device: DeviceReport, causes: Causes) -> list[tuple[str, int, int, int, StackedBar | None]]:
    _starts, lengths, codes = unpack(device.gaps_packed)
    decade = np.searchsorted(np.array(EDGES), lengths, side="right")
    longest = max(int(lengths[decade == index].sum()) for index in range(len(EDGES) + 1))
    ids = device.gaps_packed.cause_ids
    rows: list[tuple[str, int, int, int, StackedBar | None]] = []
    for index in range(int(decade.min()), int(decade.max()) + 1):
        mine, code = lengths[decade == index], codes[decade == index]
        total = int(mine.sum())
        by_cause = by_time({ids[each]: int(mine[code == each].sum()) for each in np.unique(code).tolist()})
        segments = stack((causes.title(cause), ns, causes[cause].color, "") for cause, ns in by_cause)
        bar = (
            StackedBar("Causes of the gaps of this length", segments, total, percent(total, longest)) if total else None
        )
        rows.append((_label(index), len(mine), total, total, bar))
    return rows


def _chart(device: DeviceReport, causes: Causes) -> list[Chart]:
    """The number of gaps and their time in finer bins, still and as a figure."""
    tallies = tally_gaps([device])
    used = np.flatnonzero(sum(tally.count for tally in tallies.values()))
    shown = slice(int(used[0]), int(used[-1]) + 1)
    edges = ticks([*FINE_EDGES[shown], *(FINE_EDGES[shown.stop : shown.stop + 1] or [FINE_EDGES[-1]])])
    counts, times = (_drawn(tallies, shown, causes, quantity) for quantity in ("count", "ns"))
    if counts is None or times is None:
        return []
    return [
        Chart(
            Histogram({"Number of gaps": counts, "Idle time in them": times}, edges, "Length of the gap"),
            "Number of gaps, and idle time in them, by length",
            captions=["Each bar holds the gaps of one range of lengths, divided by each gap’s largest cause."],
            legend=times.legend,
            figure=_figure(tallies, shown, edges, causes),
        )
    ]


def _drawn(tallies: dict[str, Tally], shown: slice, causes: Causes, quantity: str) -> BarChart | None:
    """Bars of the number of gaps or of their time, by bin and cause."""
    kind, round_values = (COUNT, count_levels) if quantity == "count" else (TIME, time_levels)
    columns = []
    for at in range(shown.start, shown.stop):
        values = {cause: int(getattr(tally, quantity)[at]) for cause, tally in tallies.items()}
        parts = [some(cause, value, causes) for cause, value in values.items() if value]
        said = ", ".join(f"{part.label} {kind.show(part.ns)}" for part in parts)
        columns.append(Bin(_range(at), parts, f"{_range(at)}: {said or 'none'}"))
    return draw_columns(columns, round_values, kind)


def _figure(tallies: dict[str, Tally], shown: slice, edges: list[Tick], causes: Causes) -> Figure:
    counts = [tally.count[shown].tolist() for tally in tallies.values()]
    times = [tally.ns[shown].tolist() for tally in tallies.values()]
    tooltips = [
        [
            f"{words.counted(number, 'gap')}, {_range(at)}<br>{format_exact_ns(ns)}"
            for at, (number, ns) in enumerate(zip(*rows, strict=True), start=shown.start)
        ]
        for rows in zip(counts, times, strict=True)
    ]
    entries = [legend_entry(some(cause, 1, causes)) for cause in tallies]
    panels = [
        Panel("Number of gaps", counts, count_levels(max(map(sum, zip(*counts, strict=True))))),
        Panel("Idle time in them", times, time_levels(max(map(sum, zip(*times, strict=True))))),
    ]
    return histogram_figure(panels, entries, tooltips, edges)


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
