"""The threads that a replay does not hold, as no wait leads to them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.rows import distinct_values
from nsysdiag.replay.stretch import Stretch
from nsysdiag.wakeups.loaders import HostTrace
from nsysdiag.wakeups.waits import WRITES


class Beside(Struct, frozen=True):
    """`threads` (globalTids, ascending) with calls or ranges, but for the profiler's own; `messages` is how many calls
    that send something they begin in the replayed time."""

    threads: IntArray = np.empty(0, dtype=np.int64)
    messages: int = 0

    @classmethod
    def of(cls, host_trace: HostTrace, held: IntArray, stretch: Stretch) -> Beside:
        """All but those that a replay holds."""
        calls = host_trace.tables.os_calls
        every = np.union1d(distinct_values(calls.thread), distinct_values(host_trace.ranges.rows.thread))
        threads = np.setdiff1d(every, np.union1d(held, host_trace.profilers))
        sends = np.array([*(WRITES.fullmatch(each) is not None for each in calls.names), False], dtype=np.bool_)
        inside = (calls.start >= stretch.begin) & (calls.start < stretch.end) & np.isin(calls.thread, threads)
        return cls(threads, int((sends[calls.name] & inside).sum()))
