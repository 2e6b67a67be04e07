"""The threads that a replay does not hold, as no wait leads to them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.axis import CallTable
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import distinct, distinct_values
from nsysdiag.replay.pacing import WAITED_NS
from nsysdiag.replay.step_work import REGULAR
from nsysdiag.replay.stretch import Stretch
from nsysdiag.replay.wakes import LOCKS
from nsysdiag.wakeups.loaders import HostTrace
from nsysdiag.wakeups.waits import WRITES, Ends, ends_of, is_timed


class Beside(Struct, frozen=True):
    """`threads` (globalTids, ascending) with calls or ranges, but for the profiler's own; `messages` is how many calls
    that send something they begin in the replayed time. `follower_ns` is how long in a step that one works of them
    which works longest, of those that follow the steps: they wait for another thread of the program in nearly each."""

    threads: IntArray = np.empty(0, dtype=np.int64)
    messages: int = 0
    follower_ns: int = 0

    @classmethod
    def of(cls, host_trace: HostTrace, held: IntArray, stretch: Stretch) -> Beside:
        """All but those that a replay holds."""
        calls = host_trace.tables.os_calls
        every = np.union1d(distinct_values(calls.thread), distinct_values(host_trace.ranges.rows.thread))
        threads = np.setdiff1d(every, np.union1d(held, host_trace.profilers))
        sends = np.array([*(WRITES.fullmatch(each) is not None for each in calls.names), False], dtype=np.bool_)
        inside = (calls.start >= stretch.begin) & (calls.start < stretch.end) & np.isin(calls.thread, threads)
        kin = threads[np.isin(process_of(threads), process_of(held))]
        return cls(threads, int((sends[calls.name] & inside).sum()), _longest_follower(calls, kin, stretch))


def _longest_follower(calls: CallTable, threads: IntArray, stretch: Stretch) -> int:
    names = np.array([LOCKS.fullmatch(each) is None for each in calls.names], dtype=np.bool_)
    answered = np.isin(ends_of(calls.names), (Ends.SIGNAL, Ends.RELEASE)) & (is_timed(calls.names) == 0) & names
    begin, end = np.maximum(calls.start, stretch.begin), np.minimum(calls.end, stretch.end)
    rows = np.flatnonzero(np.append(answered, False)[calls.name] & (end - begin >= WAITED_NS))
    rows = rows[np.isin(calls.thread[rows], threads)]
    if not stretch.stepwise or len(rows) == 0:
        return 0
    found, thread = distinct(calls.thread[rows])
    count = np.zeros((len(found), stretch.count), dtype=np.int64)
    np.add.at(count, (thread, np.searchsorted(stretch.borders, begin[rows], side="right") - 1), 1)
    usual = np.round(count.mean(axis=1, keepdims=True))
    # A wait near the border of two steps may be charged to either.
    ahead = np.cumsum(count - usual, axis=1)
    follows = (np.abs(ahead - np.median(ahead, axis=1, keepdims=True)) <= 1).mean(axis=1) >= REGULAR
    follows &= usual[:, 0] > 0
    works = stretch.end - stretch.begin - np.bincount(thread, (end - begin)[rows])
    return int(works[follows].max(initial=0)) // stretch.count
