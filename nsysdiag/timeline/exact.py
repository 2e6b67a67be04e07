"""Where every slice of the timeline is kept, and how many fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from nsysdiag.arrays.intervals import IntArray, Intervals, clip, union
from nsysdiag.timeline.facts import TimelineLane
from nsysdiag.timeline.packing import NameTable, Packing, exact_size
from nsysdiag.timeline.source import Source

LEAST_PAD_NS, MOST_PAD_NS = 50_000, 5_000_000
WINDOWS = 12
"""No window takes more than this part of the room, so that one of many rows leaves some to the others."""


def exact_parts(sources: list[Source], gaps: Intervals, low: int, high: int, room: int) -> Intervals:
    """The time, as a set, in which all rows of `sources` are kept: `room` rows in all, or a few more.

    All of [low, high) where they fit. Else a window around each of `gaps`, the first ones first, as long as there is
    room. A window is cut where it would take too much: it always reaches the end of its gap, where the next operation
    was launched.

    ```
    rows    ||||||||   |    |||||||||||||||
    gap             [------)
    window       [------------)
    ```
    """
    if sum(len(source.start) for source in sources) <= room:
        return Intervals.of([(low, high)])
    windows = clip(_windows(sources, gaps, max(room // (2 * WINDOWS), 1)), low, high)
    # More windows hold more rows; whatever number is found, its rows were counted and have room.
    few, many = 0, len(windows)
    while few < many:
        middle = (few + many + 1) // 2
        if _rows(sources, union(windows[:middle])) <= room:
            few = middle
        else:
            many = middle - 1
    return union(windows[:few])


def _windows(sources: list[Source], gaps: Intervals, most: int) -> Intervals:
    """A window for each gap, with at most so many rows of a source before the end of the gap, and as many after it. No
    source is without rows."""
    pad = np.clip((gaps.end - gaps.start) // 4, LEAST_PAD_NS, MOST_PAD_NS)
    first, last = gaps.start - pad, gaps.end + pad
    for source in sources:
        count = len(source.start)
        at = np.searchsorted(source.start, gaps.end, side="left")
        before, after = np.maximum(at - most, 0), np.minimum(at + most, count - 1)
        first = np.where(at > most, np.maximum(first, source.start[before]), first)
        last = np.where(at + most < count, np.minimum(last, source.start[after]), last)
    return Intervals(np.minimum(first, gaps.end), np.maximum(last, gaps.end))


def _rows(sources: list[Source], parts: Intervals) -> int:
    """How many rows touch the parts; one that touches several counts for each."""
    total = 0
    for source in sources:
        first = np.searchsorted(source.reach, parts.start, side="right")
        total += int(np.maximum(np.searchsorted(source.start, parts.end, side="left") - first, 0).sum())
    return total


CAUTION, FEWEST_ROWS = 0.9, 300
"""How far under the room the next try aims, and the number of rows below which there is none."""

Chosen = Callable[[Source, Intervals, int], IntArray]
"""The rows of a source to keep, by the exact parts and the number of rows that there is room for."""


class Room(Struct, frozen=True):
    """So many rows, which take so many bytes in a report together with their names."""

    rows: int
    size: int


class Fitted(Struct, frozen=True):
    """Lanes, the time [start, end) in ns in which they hold every row, and all names so far."""

    lanes: list[TimelineLane]
    exact: list[tuple[int, int]]
    names: NameTable


def fitted(packing: Packing, sources: list[Source], wanted: Intervals, room: Room, chosen: Chosen) -> Fitted:
    """The lanes of `sources`, exact around as many of the gaps `wanted`, the first ones first, as there is room for.

    What packed rows weigh is known once they are packed; where it is too much, the next try has fewer of them.
    """
    rows = room.rows
    while True:
        parts = exact_parts(sources, wanted, packing.low, packing.high, rows)
        trial = packing.fork()
        lanes = [trial.slices(source, chosen(source, parts, rows)) for source in sources]
        size = exact_size(lanes) + trial.names.size() - packing.names.size()
        if size <= room.size or rows <= FEWEST_ROWS:
            break
        held = min(sum(lane.count for lane in lanes), rows)
        rows = max(int(held * max(room.size, 0) / size * CAUTION), FEWEST_ROWS)
    lanes = [structs.replace(lane, levels=packing.shares(source)) for lane, source in zip(lanes, sources, strict=True)]
    return Fitted(lanes, list(zip(parts.start.tolist(), parts.end.tolist(), strict=True)), trial.names)
