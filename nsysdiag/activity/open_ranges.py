"""Start/end ranges of other threads: the phase that the program was in, whoever began it."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.identity import IntArray, process_of
from nsysdiag.activity.nvtx import NvtxRanges

MOST_NAMES = 8


def ranges_elsewhere(ranges: NvtxRanges, thread: IntArray, time: IntArray) -> list[list[str]]:
    """For each thread (a globalTid, -1 for none) and time the start/end ranges that other threads of its process had
    begun and nobody had ended: the eight that were begun last, the earliest of them first.

    ```
    thread 1            [==== epoch ============)         push/pop: a range of this thread alone
    thread 1          [----- prefetch -------]            start/end, may end on any thread
    thread 2   [========= step =========)
                              ^ time, thread 2            -> prefetch
    ```
    """
    rows = ranges.rows.take(np.flatnonzero(ranges.rows.start_end))
    if len(rows) == 0 or len(time) == 0:
        return [[] for _ in time]
    moments = np.sort(time)
    some = np.searchsorted(moments, rows.start) < np.searchsorted(moments, rows.end)
    rows = rows.take(np.flatnonzero(some))
    rows = rows.take(np.lexsort((rows.name, -rows.end, rows.start)))
    process = process_of(rows.thread)
    found = []
    for each, at in zip(thread.tolist(), time.tolist(), strict=True):
        mine = (process == process_of(each)) & (rows.thread != each) & (rows.start <= at) & (rows.end > at)
        found.append([ranges.names[name] for name in rows.name[np.flatnonzero(mine)[-MOST_NAMES:]].tolist()])
    return found
