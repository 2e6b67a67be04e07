"""Where every slice is kept: everywhere where there is room, else around the gaps that matter most."""

from __future__ import annotations

import numpy as np

from nsysdiag.analysis.lanes.source import Source
from nsysdiag.timeline.intervals import Intervals, union

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
    parts = Intervals.empty()
    for start, end in zip(gaps.start.tolist(), gaps.end.tolist(), strict=True):
        window = _window(sources, start, end, max(room // (2 * WINDOWS), 1))
        window = Intervals(np.maximum(window.start, low), np.minimum(window.end, high))
        larger = union(parts, window)
        if _rows(sources, larger) > room:
            break
        parts = larger
    return parts


def _window(sources: list[Source], start: int, end: int, most: int) -> Intervals:
    pad = min(max((end - start) // 4, LEAST_PAD_NS), MOST_PAD_NS)
    first, last = start - pad, end + pad
    for source in sources:
        at = int(np.searchsorted(source.start, end, side="left"))
        if at > most:
            first = max(first, int(source.start[at - most]))
        if at + most < len(source.start):
            last = min(last, int(source.start[at + most]))
    return Intervals.of([(min(first, end), max(last, end))])


def _rows(sources: list[Source], parts: Intervals) -> int:
    """How many rows touch the parts; one that touches several counts for each."""
    return sum(
        int(
            np.maximum(
                np.searchsorted(source.start, parts.end, side="left")
                - np.searchsorted(source.reach, parts.start, side="right"),
                0,
            ).sum()
        )
        for source in sources
    )
