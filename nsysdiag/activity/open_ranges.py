"""Start/end ranges of other threads: the phase that the program was in, whoever began it."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import process_of
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.timeline.intervals import IntArray, Intervals
from nsysdiag.timeline.nesting import enclosing

MOST_NAMES = 8


def ranges_elsewhere(ranges: NvtxRanges, thread: IntArray, time: IntArray) -> list[list[str]]:
    """For each thread (a globalTid, -1 for none) and time the start/end ranges that other threads of its process had
    begun and nobody had ended: the eight that were begun last, the earliest of them first. Of more than 64 that are
    open at once those that were begun first count.

    ```
    thread 1            [==== epoch ============)         push/pop: a range of this thread alone
    thread 1          [----- prefetch -------]            start/end, may end on any thread
    thread 2   [========= step =========)
                              ^ time, thread 2            -> prefetch
    ```
    """
    rows = ranges.rows.take(np.flatnonzero(ranges.rows.start_end))
    moments = np.sort(time)
    rows = rows.take(np.flatnonzero(np.searchsorted(moments, rows.start) < np.searchsorted(moments, rows.end)))
    found: list[list[str]] = [[] for _ in time]
    if len(rows) == 0:
        return found
    rows = rows.take(np.lexsort((rows.name, -rows.end, rows.start)))
    # A lane a process here, so that no process sees the ranges of another.
    axis = ThreadAxis.over(process_of(rows.thread), int(moments[0]), int(moments[-1]) + 1)
    lane = axis.rank(process_of(thread))
    spans = axis.place(axis.rank(process_of(rows.thread)), Intervals(rows.start, rows.end))
    position = np.where(lane >= 0, axis.position(np.maximum(lane, 0), time), -1)
    for level in enclosing(spans, position):
        inside = np.flatnonzero(level >= 0)
        inside = inside[rows.thread[level[inside]] != thread[inside]]
        for at, name in zip(inside.tolist(), rows.name[level[inside]].tolist(), strict=True):
            found[at].append(ranges.names[name])
    return [names[-MOST_NAMES:] for names in found]
