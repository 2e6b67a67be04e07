"""Synchronizations that last longer than all that they are known to wait for: kernels without rows, another process.

```
known     [== kernel ==)
thread  [ sync ........|- return -|...... what else? ......)
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, union
from nsysdiag.causes import PLACE, SYNCHRONIZATION
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.rows import distinct
from nsysdiag.replay.device_waits import DeviceWaits
from nsysdiag.replay.host_time import HostTime
from nsysdiag.replay.pacing import OUTLIVED, Timed
from nsysdiag.replay.stretch import LEAST_ERROR, Stretch

RETURN_NS = 100_000
"""The longest return of a wait: a thread that slept for a device in captured programs was back in up to 70 µs."""


class Outlived(Struct, frozen=True):
    """How much longer each wait for a device lasts, in ns. `share` is the part of the replayed time that this, and
    waits for nothing known, take on the thread that has most of it."""

    ns: IntArray
    share: float


def outlived(
    held: DeviceWaits, lag: IntArray, pieces: HostTime, axis: ThreadAxis, stretch: Stretch
) -> tuple[Outlived, Timed]:
    """The waits of `held`, which return `lag` ns after what they are for has ended, and those among `pieces`, which are
    for nothing known. What is little is nothing."""
    ns = np.where((held.cause == PLACE[SYNCHRONIZATION]) & (lag > RETURN_NS), lag - RETURN_NS, 0)
    rows = np.flatnonzero(ns)
    length = pieces.end - pieces.start
    known = union(axis.place(axis.rank(held.thread), Intervals(held.begin, held.end)))
    alone = (pieces.cause == PLACE[SYNCHRONIZATION]) & (length > RETURN_NS)
    # A thread that wakes another at the very end of a wait has that wait before it.
    unknown = np.flatnonzero(alone & (coverage(known, pieces.spans) == 0))
    begin = axis.time(pieces.start[unknown])
    thread = np.concatenate((held.thread[rows], axis.threads[pieces.start[unknown] // axis.stride]))
    total = np.bincount(distinct(thread)[1], np.concatenate((ns[rows], length[unknown])))
    share = float(total.max(initial=0)) / max(stretch.end - stretch.begin, 1)
    # A thread that was late now and then had no CPU.
    if share < LEAST_ERROR or 2 * len(thread) < stretch.count:
        return Outlived(np.zeros(len(held), dtype=np.int64), 0.0), Timed.empty()
    start = np.concatenate((held.end[rows] - ns[rows], begin))
    end = np.concatenate((held.end[rows], begin + length[unknown]))
    no = np.zeros(len(thread), dtype=np.int64)
    return Outlived(ns, share), Timed(thread, start, end, no + OUTLIVED, no, no + 1)
