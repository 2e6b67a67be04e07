"""NVTX ranges of a trace without GPU activity: what repeats on the host, and what takes its time."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.arrays.nesting import outermost
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.rows import RowsOf, distinct
from nsysdiag.iterations.loop import FEWEST
from nsysdiag.iterations.ranges import Kinds

MOST_RANGES = 3
LEAST_SHARE = 0.1
"""Of the time: a range that takes less is not named."""
LEAST_COVERED = 0.6
"""Of the time between the first start and the last end: where outermost ranges take less, little repeats."""


class HostRange(Struct, frozen=True):
    """Ranges of one name, its counters as #: how many, and their share of the time."""

    name: str
    count: int
    share: float


class HostLoop(Struct, frozen=True):
    """Outermost ranges that repeat on one thread, longest first; `period_ns` is the median time from the start of one
    of the first kind to the start of the next."""

    period_ns: int
    ranges: list[HostRange]


def host_loop(ranges: NvtxRanges) -> HostLoop | None:
    """What repeats on the thread whose outermost ranges take most time; None where nothing repeats."""
    kinds = Kinds.of(ranges)
    rows = ranges.rows
    own = ~kinds.operator[rows.name] & ~rows.communication & ~rows.mpi
    rows = rows.take(own & (rows.start >= 0) & (rows.end > rows.start))
    of_thread = RowsOf(rows.thread)
    found: list[tuple[int, HostLoop]] = []
    for thread in of_thread.values():
        mine = rows.take(of_thread[thread])
        outer = mine.take(outermost(Intervals(mine.start, mine.end)))
        loop = _repeating(outer, kinds, ranges.names)
        if loop is not None:
            found.append((int((outer.end - outer.start).sum()), loop))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _repeating(rows: RangeRows, kinds: Kinds, names: list[str]) -> HostLoop | None:
    """What repeats among ranges of one thread; None where that covers too little of the time."""
    span = int(rows.end.max() - rows.start.min())
    _, of_kind = distinct(kinds.code[rows.name])
    count = np.bincount(of_kind)
    time = np.bincount(of_kind, weights=(rows.end - rows.start).astype(np.float64))
    repeats = np.flatnonzero(count >= FEWEST)
    if time[repeats].sum() < LEAST_COVERED * span:
        return None
    order = repeats[np.argsort(-time[repeats], kind="stable")][:MOST_RANGES]
    longest = order[0]
    shown = [at for at in order if at == longest or time[at] >= LEAST_SHARE * span]
    found = [
        HostRange(_name(rows.name[of_kind == at], names, kinds), int(count[at]), float(time[at] / span)) for at in shown
    ]
    return HostLoop(int(np.median(np.diff(np.sort(rows.start[of_kind == longest])))), found)


def _name(rows: IntArray, names: list[str], kinds: Kinds) -> str:
    """The name that ranges share: with its digits where these don't count."""
    first = int(rows[0])
    return names[first] if np.all(rows == first) else kinds.words[int(kinds.code[first])]
