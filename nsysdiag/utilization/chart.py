"""Utilization over time as numbers for a drawing: an area by time, and a line by polling, on one scale up to 100%."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nsysdiag.arrays.intervals import equal_edges
from nsysdiag.document.bars import HEIGHT, HoverArea, Line
from nsysdiag.document.curve import Curve, CurveLayer, TimeSeries
from nsysdiag.document.figures import percent
from nsysdiag.document.kinds import SHARE
from nsysdiag.document.words import instant
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.utilization.facts import Utilization, UtilizationSeries

WIDTH, MOST_STEPS = 4000, 500
LEVELS = (100, 50)

Step = tuple[int, int, float]
"""From and to in ns, and the share."""


def draw_utilization(found: Utilization, end_ns: int, most_spots: int) -> Curve | None:
    """The chart up to `end_ns`; None where there is one step alone, or nothing at all."""
    by_time, by_period = found.by_time, found.by_period
    if by_time is None or by_period is None or len(by_time.values) < 2 or end_ns <= by_time.start_ns:
        return None
    start = by_time.start_ns
    sampled, polled = _steps(by_time, end_ns), _steps(by_period, end_ns)
    count = max(1, min(most_spots, len(by_period.values)))
    edges = equal_edges(start, end_ns, count).tolist()
    return Curve(
        width=WIDTH,
        height=HEIGHT,
        layers=[
            CurveLayer(
                _path(sampled, start, end_ns, closed=True),
                f"by time, samples of {format_ns(by_time.period_ns)}",
                "area",
                _series(sampled),
            ),
            CurveLayer(
                _path(polled, start, end_ns, closed=False),
                f"by polling every {format_ns(by_period.period_ns)}",
                "line",
                _series(polled),
            ),
        ],
        lines=[Line(percent(100 - level, 100), f"{level}%", level / 100) for level in LEVELS],
        spots=_spots(edges, sampled, polled),
        spot_width=-(-WIDTH // count),
        what="Utilization",
        kind=SHARE,
        top=1,
    )


def _steps(series: UtilizationSeries, end_ns: int) -> list[Step]:
    """The steps inside the window, some of them together as their mean where they are more than can be seen."""
    together = -(-len(series.values) // MOST_STEPS)
    steps: list[Step] = []
    for at in range(0, len(series.values), together):
        held = [value for value in series.values[at : at + together] if value is not None]
        if held:
            start = series.start_ns + at * series.step_ns
            steps.append((start, min(start + together * series.step_ns, end_ns), sum(held) / len(held)))
    return steps


def _series(steps: list[Step]) -> TimeSeries:
    """The steps with what is between them, which is not known."""
    edges, values = [step[0] for step in steps[:1]], list[float | None]()
    for begin, until, share in steps:
        if begin != edges[-1]:
            edges.append(begin)
            values.append(None)
        edges.append(until)
        values.append(share)
    return TimeSeries(edges, values)


def _path(steps: list[Step], start: int, end: int, *, closed: bool) -> str:
    """A step path, interrupted with the window; `closed` ones end at the floor."""
    pieces: list[str] = []
    reached, last = None, -1
    for begin, until, share in steps:
        level = round(HEIGHT * (1 - share))
        if begin != reached:
            pieces += [f"V{HEIGHT}z"] if closed and pieces else []
            pieces.append(f"M{_x(begin, start, end)} " + (f"{HEIGHT}V{level}" if closed else f"{level}"))
        elif level == last:
            pieces.pop()  # the step before goes on
        else:
            pieces.append(f"V{level}")
        pieces.append(f"H{_x(until, start, end)}")
        reached, last = until, level
    return "".join(pieces) + (f"V{HEIGHT}z" if closed and pieces else "")


def _x(time: int, start: int, end: int) -> int:
    return WIDTH * (time - start) // (end - start)


def _spots(edges: list[int], sampled: list[Step], polled: list[Step]) -> list[HoverArea]:
    """What the pointer shows: the mean of both between two edges, nothing where the window has a hole."""
    spots = []
    for begin, until in pairwise(edges):
        by_time, by_period = _mean(sampled, begin, until), _mean(polled, begin, until)
        if by_time is not None and by_period is not None:
            text = f"at {instant(begin)}: {format_share(by_time, 1)} by time, {format_share(by_period, 1)} by polling"
            spots.append(HoverArea(_x(begin, edges[0], edges[-1]), text))
    return spots


def _mean(steps: list[Step], low: int, high: int) -> float | None:
    """The mean over [low, high), None where no step is in it."""
    held = [(min(until, high) - max(begin, low), share) for begin, until, share in steps]
    total = sum(ns for ns, _share in held if ns > 0)
    return sum(ns * share for ns, share in held if ns > 0) / total if total else None
