"""The gaps of one device: maximal idle intervals, each with the operation before it and the one that ends it."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, pieces
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.rows import Rows


class Gaps(Rows, frozen=True):
    """Idle intervals [start, end) inside the window, sorted. A gap that a border of the window cuts keeps the bounds of
    the whole gap in `opened` and `closed`.

    `previous` and `next` are rows of the device's operations; `target` is the next operation with migrations looked
    through: the one whose launch tells what the device waited for; -1 where no launched operation follows.
    """

    start: IntArray
    end: IntArray
    opened: IntArray
    closed: IntArray
    previous: IntArray
    next: IntArray
    target: IntArray


def find_gaps(device: DeviceTimeline, parts: Intervals) -> Gaps:
    """All idle time of `device` inside the set `parts`.

    ```
    stream 7   [==A==)          [==C==)
    stream 9      [=====B=====)            [==D==)
    gaps                        ^none   [--)         previous C, next D
    ```
    """
    rows = np.flatnonzero(device.running)
    start, end = device.operations.start[rows], device.operations.end[rows]
    reach = np.maximum.accumulate(end)
    ends_gap = np.flatnonzero(start[1:] > reach[:-1]) + 1
    # The previous operation is the first one, in order of start, that reached the largest end so far.
    raises = np.append(True, end[1:] > reach[:-1]) if len(rows) else np.zeros(0, dtype=np.bool_)
    holder = np.maximum.accumulate(np.where(raises, np.arange(len(rows)), 0))
    whole = Intervals(reach[ends_gap - 1], start[ends_gap])
    launched = np.flatnonzero(~device.operations.migration[rows])
    after = np.searchsorted(launched, ends_gap, side="left")
    target = np.append(rows[launched], -1)[after]
    gap, inside = pieces(parts, whole)
    previous, following = rows[holder[ends_gap - 1]].astype(np.int32), rows[ends_gap].astype(np.int32)
    if len(inside) == len(whole) and inside.total() == whole.total():
        return Gaps(whole.start, whole.end, whole.start, whole.end, previous, following, target.astype(np.int32))
    return Gaps(
        start=inside.start,
        end=inside.end,
        opened=whole.start[gap],
        closed=whole.end[gap],
        previous=previous[gap],
        next=following[gap],
        target=target[gap].astype(np.int32),
    )
