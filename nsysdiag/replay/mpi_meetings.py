"""Calls of MPI that no rank leaves before all have come, where several ranks are in one trace.

```
rank 0   [MPI_Allreduce =====|=)      waits for rank 1, then exchanges
rank 1           [computes ] [=)
                             ^ meeting
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.replay.meetings import last_to_come


class MpiCalls(Rows, frozen=True):
    """Calls [begin, end) in ns of `thread` (globalTid) that are parts of a `meeting`, a number; `came` is when the last
    rank came to it."""

    thread: IntArray
    begin: IntArray
    end: IntArray
    meeting: IntArray
    came: IntArray


def mpi_calls(thread: IntArray, begin: IntArray, end: IntArray, meeting: IntArray) -> MpiCalls:
    """With the time of each meeting. One that a rank left before another came was none, and is left out."""
    numbers, of = distinct(meeting)
    came, together = last_to_come(of, len(numbers), begin, end)
    kept = together[of]
    return MpiCalls(thread[kept], begin[kept], end[kept], of[kept], came[of][kept])


def within(calls: MpiCalls, lo: int, hi: int) -> MpiCalls:
    """The meetings whose calls all begin in [lo, hi), numbered from 0."""
    inside = (calls.begin >= lo) & (calls.begin < hi)
    outside = np.unique(calls.meeting[~inside])
    kept = calls.take(~np.isin(calls.meeting, outside))
    return MpiCalls(kept.thread, kept.begin, kept.end, distinct(kept.meeting)[1], kept.came)
