"""The iterations side by side: how long each is, what it is made of, and what the slow ones have more of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysdiag.document import words
from nsysdiag.document.bars import Bar, BarChart, LegendEntry, draw_bars, legend_entry
from nsysdiag.document.context import Context
from nsysdiag.document.interactive.figure import Figure
from nsysdiag.document.interactive.iterations import Stack, iterations_figure
from nsysdiag.document.view import Causes, iteration_shares, more_shares
from nsysdiag.formats.html.sections.section import View, device_section
from nsysdiag.units import format_ns

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Iteration, IterationReport, SlowIteration

MAX_BARS = 200
TOLD_PARTS = 4


@dataclass(frozen=True, slots=True)
class Slow:
    """A slow iteration as drawn; `start_ns` is None where the report does not list it."""

    index: int
    start_ns: int | None
    length: int
    extra_ns: int
    more: list[tuple[LegendEntry, int]]


def view(context: Context, device: DeviceReport) -> View | None:
    """The iterations as bars, as many as the page has room for, and the slow ones as rows."""
    found = device.iterations
    if found is None:
        return None
    rows = _fitting(found, context.rows(MAX_BARS))
    starts = {row.index: row.start_ns for row in found.rows}
    chart = _chart(found, rows, context.causes)
    return {
        "found": found,
        "title": words.iterations_found(found),
        "left_out": words.left_out_sentence(found),
        "chart": chart,
        "figure": _figure(found, rows, chart, context.causes) if chart else None,
        "drawn": len(rows),
        "slow": [_slow(slow, found, starts, context.causes) for slow in found.slow],
    }


def _fitting(found: IterationReport, most: int) -> list[Iteration]:
    """All iterations of the report, or the longest of them, in order."""
    longest = sorted(found.rows, key=lambda row: (row.start_ns - row.end_ns, row.index))[:most]
    return sorted(longest, key=lambda row: row.index)


def _chart(found: IterationReport, rows: list[Iteration], causes: Causes) -> BarChart | None:
    slow = {slow.index for slow in found.slow}
    bars = [
        Bar(
            total=row.end_ns - row.start_ns,
            parts=iteration_shares(row, causes),
            told=_told(row, found, slow, causes),
            slow=row.index in slow,
            faded=not row.steady,
        )
        for row in rows
    ]
    levels = {f"{name} {format_ns(ns)}": ns for name, ns in (("p50", found.p50_ns), ("p95", found.p95_ns))}
    return draw_bars(bars, _top(found, rows), levels)


def _top(found: IterationReport, rows: list[Iteration]) -> int:
    """A warm-up of many times the length would press all others flat: it is cut off instead."""
    return found.worst_ns or max((row.end_ns - row.start_ns for row in rows), default=0)


def _figure(found: IterationReport, rows: list[Iteration], chart: BarChart, causes: Causes) -> Figure:
    slow = {each.index for each in found.slow}
    stacks = [
        Stack(row.index, iteration_shares(row, causes), row.index in slow, not row.steady, _flag(row, found, slow))
        for row in rows
    ]
    return iterations_figure(stacks, chart, _top(found, rows))


def _told(row: Iteration, found: IterationReport, slow: set[int], causes: Causes) -> str:
    shares = sorted(iteration_shares(row, causes), key=lambda share: -share.ns)[:TOLD_PARTS]
    parts = ", ".join(f"{share.label} {format_ns(share.ns)}" for share in shares)
    return f"#{row.index}: {format_ns(row.end_ns - row.start_ns)}{_flag(row, found, slow)}: {parts}"


def _flag(row: Iteration, found: IterationReport, slow: set[int]) -> str:
    if not row.steady:
        return f", left out ({words.left_out_reason(found, row.index)})"
    return ", slow" if row.index in slow else ""


def _slow(slow: SlowIteration, found: IterationReport, starts: dict[int, int], causes: Causes) -> Slow:
    return Slow(
        index=slow.index,
        start_ns=starts.get(slow.index),
        length=found.p50_ns + slow.extra_ns,
        extra_ns=slow.extra_ns,
        more=[(legend_entry(share), share.ns) for share in more_shares(slow, causes)],
    )


section = device_section("iterations", "Iterations", view)
