"""The gaps of one device: maximal idle intervals, each with the operation before it and the one that ends it."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, pieces
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.rows import Rows


class Gaps(Rows, frozen=True):
    """Idle intervals [start, end) inside the window, sorted.

    For a gap cut by a border of the window, `opened` and `closed` are the bounds of the whole gap. `previous` and
    `next` are rows of the device's operations. `target` is the next operation that is not a migration: its launch shows
    what the device waited for; -1 if no launched operation follows.
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
    rows = np.flatnonzero(device.running).astype(np.int32)
    spans = Intervals(device.operations.start, device.operations.end)[device.running]
    reach = np.maximum.accumulate(spans.end)
    behind = np.flatnonzero(spans.start[1:] > reach[:-1]) + 1
    whole = Intervals(reach[behind - 1], spans.start[behind])
    gap, inside, whole = _inside(whole, parts)
    before, behind = behind[gap] - 1, behind[gap]
    return Gaps(
        start=inside.start,
        end=inside.end,
        opened=whole.start,
        closed=whole.end,
        previous=rows[_first_to_reach(reach)[before]],
        next=rows[behind],
        target=_launched(device, rows, behind),
    )


def _inside(gaps: Intervals, parts: Intervals) -> tuple[IntArray | slice, Intervals, Intervals]:
    """The parts of the set `gaps` inside the set `parts`, the gap of each, and those gaps: the same where nothing is
    cut."""
    if len(parts) == 1 and len(gaps) and parts.start[0] <= gaps.start[0] and gaps.end[-1] <= parts.end[0]:
        return slice(None), gaps, gaps
    gap, inside = pieces(parts, gaps)
    return gap, inside, gaps[gap]


def _first_to_reach(reach: IntArray) -> IntArray:
    """For each operation, in order of start, the first one that ended as late as any so far."""
    raises = np.append(True, reach[1:] > reach[:-1])[: len(reach)]
    place = np.arange(len(reach), dtype=np.int32)
    return place if raises.all() else np.maximum.accumulate(np.where(raises, place, np.int32(0)))


def _launched(device: DeviceTimeline, rows: IntArray, behind: IntArray) -> IntArray:
    """The first of the `rows` from each index `behind` on that is not a migration; -1 for none."""
    migrates = device.operations.migration[rows]
    if not migrates.any():
        return rows[behind]
    launched = np.flatnonzero(~migrates)
    found: IntArray = np.append(rows[launched], np.int32(-1))[np.searchsorted(launched, behind, side="left")]
    return found
