"""Histograms over lengths, in bins of 1, 2 and 5 times a power of ten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.document.bars import Bar, BarChart, draw_bars
from nsysdiag.document.figures import percent
from nsysdiag.document.packed import unpack
from nsysdiag.units import NS_PER, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from nsysdiag.document.kinds import CellKind
    from nsysdiag.document.view import Share
    from nsysdiag.report import DeviceReport


# Axes: round steps, and labels that differ wherever values do.
#
# Templates and figures get finished labels from here. The timeline, which zooms, follows the same rules in
# `templates/assets/timeline/scale.js`.

EDGES: list[int] = [step * 10**power for power in range(19) for step in (1, 2, 5)]
"""1, 2 and 5 of every decade that an int64 holds."""
UNITS = ("s", "ms", "µs")
MOST_TICKS, MOST_LEVELS = 5, 4
"""How many labels fit below a drawing, and next to it."""
LEAST_APART = 0.09
"""Of a bar's width: labels that are closer touch on a narrow page."""


def unit_of(longest: int) -> tuple[int, str]:
    """The unit that suits the longest time of an axis: its length in ns, and its name."""
    unit = next((unit for unit in UNITS if longest >= NS_PER[unit]), "ns")
    return NS_PER[unit], unit


def time_label(ns: int, longest: int | None = None) -> str:
    """A time of at least 0 ns with all nonzero digits, in its own unit or that of the `longest` of its axis.

    It is not rounded, so labels of different times differ.
    """
    scale, unit = unit_of(ns if longest is None else longest)
    whole, rest = divmod(ns, scale)
    digits = f"{rest:0{len(str(scale)) - 1}d}".rstrip("0")
    return f"{whole:,}{'.' if digits else ''}{digits} {unit}"


def round_steps(top: int, most: int = MOST_TICKS) -> list[int]:
    """Multiples of 1, 2 or 5 times a power of ten up to `top`, at most so many, without 0."""
    step = round_step(top, most)
    return list(range(step, top + 1, step))


def round_step(span: int, most: int = MOST_TICKS) -> int:
    """The smallest 1, 2 or 5 times a power of ten of which at most `most` fit into `span`."""
    return next((edge for edge in EDGES if span // edge <= most), EDGES[-1])


def count_levels(top: int, most: int = MOST_LEVELS) -> dict[str, int]:
    """Round numbers up to `top` by their labels."""
    return {format_count(value): value for value in round_steps(top, most)}


def time_levels(top: int, most: int = MOST_LEVELS) -> dict[str, int]:
    """Round times up to `top` ns by their labels, all in one unit."""
    return {time_label(ns, top): ns for ns in round_steps(top, most)}


def time_ticks(top: int) -> list[tuple[str, str]]:
    """Round times on an axis from 0 to `top` ns: where each is in per cent of it, and its label."""
    return [(percent(ns, top), label) for label, ns in time_levels(top, MOST_TICKS).items()]


def moment_labels(moments: list[int]) -> list[str]:
    """Ascending moments in ns as labels in one unit, with enough digits to distinguish them, and precise to at least a
    hundredth of the span."""
    if not moments:
        return []
    scale, unit = unit_of(max(map(abs, moments)))
    fine = max(1, (moments[-1] - moments[0]) // 100)
    for digits in range(10):
        labels = [f"{moment / scale:,.{digits}f} {unit}" for moment in moments]
        if scale // 10**digits <= fine and len(set(labels)) == len(set(moments)):
            break
    return labels


def edge_ticks(moments: list[int]) -> tuple[tuple[str, str], ...]:
    """Ascending moments below a bar from the first to the last: where each is in per cent, and its label. Of those that
    would touch the one before them only the last is labelled."""
    labels, span = moment_labels(moments), moments[-1] - moments[0]
    kept: list[int] = []
    for at, moment in enumerate(moments):
        last = at == len(moments) - 1
        room = span * LEAST_APART
        if kept and moment - moments[kept[-1]] < room:
            if not last:
                continue
            kept = kept[:-1] if len(kept) > 1 else kept
        kept.append(at)
    return tuple((percent(moments[at] - moments[0], span), labels[at]) for at in kept)


# More edges than this would write over each other on a narrow page: then only those of decades are named.
MOST_LABELS = 9


class Tick(Struct, frozen=True):
    """An edge: its position, in bins from the left and in per cent of the width, and its label."""

    at: int
    x: str
    label: str


class Bin(Struct, frozen=True):
    """What is in one bin: its `name`, `parts` from the bottom up, and what the pointer shows."""

    name: str
    parts: list[Share]
    tooltip: str


class Histogram(Struct, frozen=True):
    """Drawings above each other by title, over the same bins, whose edges stand below the last; the bins are ranges of
    `what`."""

    panels: dict[str, BarChart]
    edges: list[Tick]
    what: str


def draw_columns(columns: list[Bin], levels: Callable[[int], dict[str, int]], kind: CellKind) -> BarChart | None:
    """The columns side by side with lines at the `levels` of the fullest one; None where all are empty."""
    bars = [
        Bar(each.name, sum(part.ns for part in each.parts), each.parts, each.tooltip, slow=False, faded=False)
        for each in columns
    ]
    top = max((bar.total for bar in bars), default=0)
    return draw_bars(bars, top, levels(top), kind=kind, fewest=1)


def ticks(edges: list[int]) -> list[Tick]:
    """The edges of the bins from the first to that behind the last, in ns."""
    named = list(enumerate(edges))
    if len(edges) > MOST_LABELS:
        named = [(at, edge) for at, edge in named if str(edge).strip("0") in ("", "1")]
    return [Tick(at, percent(at, len(edges) - 1), time_label(edge)) for at, edge in named]


class Tally(Struct, frozen=True):
    """The number of gaps of one dominant cause in each bin, and their ns."""

    count: npt.NDArray[np.int64]
    ns: npt.NDArray[np.int64]


def tally_gaps(devices: Iterable[DeviceReport]) -> dict[str, Tally]:
    """The gaps of the devices by dominant cause, the cause with the most time first.

    Raises InputError where a saved report is damaged.
    """
    tallies: dict[str, Tally] = {}
    for device in devices:
        _starts, lengths, causes = unpack(device.gaps_packed)
        place = np.maximum(np.searchsorted(np.array(EDGES), lengths, side="right") - 1, 0)
        for cause in np.unique(causes).tolist():
            nothing = np.zeros(len(EDGES), dtype=np.int64)
            tally = tallies.setdefault(device.gaps_packed.cause_ids[cause], Tally(nothing, nothing.copy()))
            mine = causes == cause
            np.add.at(tally.count, place[mine], 1)
            np.add.at(tally.ns, place[mine], lengths[mine])
    return dict(sorted(tallies.items(), key=lambda item: (-int(item[1].ns.sum()), item[0])))


def bound(at: int) -> str:
    """Where a bin begins, in the unit that suits it: `200 µs`."""
    return "more" if at == len(EDGES) else time_label(EDGES[at])
