"""Where every slice is kept: everywhere where there is room, else around the gaps that matter most."""

from __future__ import annotations

import numpy as np

from nsysdiag.analysis.lanes.source import Source
from nsysdiag.timeline.intervals import Intervals, clip, union

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
    return sum(_touched(source, parts) for source in sources)


def _touched(source: Source, parts: Intervals) -> int:
    first = np.searchsorted(source.reach, parts.start, side="right")
    return int(np.maximum(np.searchsorted(source.start, parts.end, side="left") - first, 0).sum())
