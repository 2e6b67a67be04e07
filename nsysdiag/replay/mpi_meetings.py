"""Calls of MPI in which ranks of one trace wait for each other, as all of them in collectives.

```
rank 0   [MPI_Allreduce =====|=)      waits for rank 1, then exchanges
rank 1           [computes ] [=)
                             ^ meeting
```
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.replay.meetings import last_to_come


class MpiCalls(Rows, frozen=True):
    """Calls [begin, end) in ns of `thread` (globalTid) that come to a `meeting`, a number; `came` is when the last one
    came to it. Those that have to wait for the meeting leave it (`leaves`). Whether others have to wait for one that
    is not `sure` is not known."""

    thread: IntArray
    begin: IntArray
    end: IntArray
    meeting: IntArray
    came: IntArray
    leaves: BoolArray
    sure: BoolArray

    @classmethod
    def nothing(cls) -> MpiCalls:
        """No calls."""
        none = np.empty(0, dtype=np.int64)
        return mpi_calls(none, none, none, none)


def mpi_calls(
    thread: IntArray,
    begin: IntArray,
    end: IntArray,
    meeting: IntArray,
    leaves: BoolArray | None = None,
    sure: BoolArray | None = None,
) -> MpiCalls:
    """With the time of each meeting; without `leaves` and `sure` all leave it, and are sure. One that a rank left
    before another came was none, and is left out."""
    every = np.ones(len(thread), dtype=np.bool_)
    leaves, sure = every if leaves is None else leaves, every if sure is None else sure
    numbers, of = distinct(meeting)
    came, together = last_to_come(of, len(numbers), begin, np.where(leaves, end, np.iinfo(np.int64).max))
    kept = together[of]
    return MpiCalls(thread[kept], begin[kept], end[kept], of[kept], came[of][kept], leaves[kept], sure[kept])


def both(first: MpiCalls, second: MpiCalls) -> MpiCalls:
    """The meetings of both."""
    moved = replace(second, meeting=second.meeting + 1 + first.meeting.max(initial=-1))
    return MpiCalls.concatenate([first, moved])


def within(calls: MpiCalls, lo: int, hi: int) -> MpiCalls:
    """The meetings whose calls all begin in [lo, hi), numbered from 0."""
    inside = (calls.begin >= lo) & (calls.begin < hi)
    outside = np.unique(calls.meeting[~inside])
    kept = calls.take(~np.isin(calls.meeting, outside))
    return replace(kept, meeting=distinct(kept.meeting)[1])
