"""Waits for CPython's global interpreter lock, as distinct from other waits."""

from __future__ import annotations

import re

import numpy as np

from nsysdiag.arrays.intervals import BoolArray
from nsysdiag.causes.evidence import named
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import distinct

TIMED_WAIT = re.compile(r"_*pthread_cond_(timed|clock)wait")
SWITCH_INTERVAL_NS = (4_950_000, 5_300_000)
LATE_NS = 20_000_000
AGAIN_NS = 100_000
LEAST = 3
RATHER = 4


def gil_waits(host: HostActivity) -> BoolArray:
    """True for each row of `host.os_calls` that waits for the interpreter lock.

    A thread that needs the GIL waits for the switch interval of 5 ms, requests its release, and waits again. So the
    waits time out after 5.0 to 5.2 ms, except the last, which the holder ends by a signal.

    ```
    thread   [timedwait 5.1 ms ][timedwait 5.1 ms ][0.3]     all three
    holder   compute .............................. signal
    ```

    A process has such waits if at least three are that long, and no more are longer. If none is longer, the shorter
    ones count too. A longer one counts if the thread waits again at once, and at most one in five of its long waits is
    longer: its timer was late. Where no long wait is followed by another at once, they are timers of the program's own.
    """
    lane = host.os_calls
    rows = np.flatnonzero(named(lane, TIMED_WAIT))
    result = np.zeros(len(lane), dtype=np.bool_)
    if len(rows) == 0:
        return result
    spans = lane.spans[rows]
    waiting = spans.start // host.axis.stride
    length = spans.end - spans.start
    full = (length >= SWITCH_INTERVAL_NS[0]) & (length <= SWITCH_INTERVAL_NS[1])
    _, process = distinct(process_of(host.axis.threads))
    process = process[waiting]
    longer = np.bincount(process, length > SWITCH_INTERVAL_NS[1])
    often = np.bincount(process, full) >= np.maximum(longer, LEAST)
    # All but the last: does the same thread's next wait follow at once?
    again = (spans.start[1:] - spans.end[:-1] <= AGAIN_NS) & (waiting[1:] == waiting[:-1])
    late = (length > SWITCH_INTERVAL_NS[1]) & (length <= LATE_NS) & np.append(again, False)
    _, thread = distinct(waiting)
    seldom = np.bincount(thread, full) >= RATHER * np.bincount(thread, length > SWITCH_INTERVAL_NS[1])
    late &= seldom[thread]
    follows = np.append(False, again & (full | late)[:-1])
    # Who does not get the lock in time waits again at once; a timer of the program's own does not.
    often &= np.bincount(process, full & np.append(again, False)) > 0
    result[rows] = often[process] & (full | late | follows | (longer == 0)[process])
    return result
