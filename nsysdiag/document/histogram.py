"""Histograms over lengths, in bins of 1, 2 and 5 times a power of ten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.document.axis import EDGES, time_label
from nsysdiag.document.bars import Bar, BarChart, draw_bars
from nsysdiag.document.figures import percent
from nsysdiag.document.packed import unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from nsysdiag.document.kinds import Kind
    from nsysdiag.document.view import Share
    from nsysdiag.report import DeviceReport

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


def draw_columns(columns: list[Bin], levels: Callable[[int], dict[str, int]], kind: Kind) -> BarChart | None:
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
