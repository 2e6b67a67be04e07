"""Pauses of the thread that launches, at one distance: its steps may be longer than what repeats on the device.

The queue is full here: the host launches as fast as it empties, and its own work of each step leaves no idle time.

```
thread      |a b a b a b|prepare|a b a b a b|prepare|a b a b a b|prepare|
device      |a b |a b |a b |a b |a b |a b |a b |a b |a b |a b |a b |a b |
found       |    |    |    |    |    |    |    |    |    |    |    |       layers, or steps
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, nearest_before
from nsysdiag.iterations.begins import REGULAR
from nsysdiag.iterations.counts import RepeatCounts
from nsysdiag.iterations.doubts import FEWEST_OUTER, PAUSES, closes, exchanges
from nsysdiag.iterations.happened import Happened
from nsysdiag.iterations.loop import NVTX, STEP, Loop, through

USUAL_PART = 0.25
"""Of the repeats: so many have no longer pause than is usual. At every second repeat half of them have a longer one."""
LEAST_NS = 5_000
"""A call returns and the next one begins within a few µs in C++ and Python alike, whatever else the host does."""


def perhaps_between_pauses(loop: Loop, happened: Happened) -> Loop:
    """The loop, in doubt if the thread that launches pauses at each n-th repeat, and nothing else shows that a step
    ends with each."""
    if loop.source == NVTX or loop.called.label or loop.kind != STEP or not loop.certain:
        return loop
    found = RepeatCounts.of(happened, loop.starts, int(loop.ends[-1]), host=True)
    if exchanges(found):  # known at once of most loops
        return loop
    if (starts := _behind_pauses(loop, happened)) is None or closes(loop, happened, found):
        return loop
    return loop.in_doubt(through(loop.called, starts, happened.last))


def _behind_pauses(loop: Loop, happened: Happened) -> IntArray | None:
    """The starts in ns of the repeats with a longer pause than usual, if they come at one distance all over the
    loop."""
    longest = _longest_pauses(loop, happened)
    usual = float(np.quantile(longest, USUAL_PART))
    at = np.flatnonzero(longest > max(PAUSES * usual, LEAST_NS))
    distance = np.diff(at)
    if len(at) < FEWEST_OUTER or (each := int(np.median(distance))) < 2:
        return None
    covers = max(int(at[0]), len(longest) - 1 - int(at[-1])) <= each
    regular = float((distance == each).mean()) >= REGULAR
    return loop.starts[at] if covers and regular else None


def _longest_pauses(loop: Loop, happened: Happened) -> IntArray:
    """How long the launching thread is in no launch at most, before an operation of each repeat, in ns. A queue that is
    full makes calls longer, not what is between them."""
    device, calls = happened.device, happened.api.rows
    launch = device.launch[happened.operations]
    place = nearest_before(loop.starts, happened.start)
    known = np.flatnonzero((launch >= 0) & (place >= 0))
    known = known[np.lexsort((calls.start[launch[known]], calls.thread[launch[known]]))]
    call = launch[known]
    pause = np.maximum(calls.start[call[1:]] - calls.end[call[:-1]], 0)
    pause[calls.thread[call[1:]] != calls.thread[call[:-1]]] = 0
    longest = np.zeros(len(loop), np.int64)
    np.maximum.at(longest, place[known][1:], pause)
    return longest
