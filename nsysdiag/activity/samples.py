"""CPU samples as proof that a thread was on a CPU (COMPOSITE_EVENTS)."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.streams import distinct
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.trace.trace import Trace

SHORTEST_PERIOD_NS = 100_000
LONGEST_PERIOD_NS = 10_000_000
LONE_PERIOD_NS = 1_000_000
STEADY_STEPS = 20


def sampled_time(axis: ThreadAxis, trace: Trace) -> Intervals:
    """The time that samples vouch for, a set on the axis.

    Each sample stands for half its thread's sampling period to either side.
    """
    columns = trace.read("COMPOSITE_EVENTS", "start", "globalTid")
    threads, thread = distinct(columns["globalTid"])
    order = np.lexsort((columns["start"], thread))
    time, thread = columns["start"][order], thread[order]
    half = sampling_periods(time, thread, len(threads)) // 2
    lane = axis.rank(threads)[thread] if len(thread) else thread
    time, lane, half = time[lane >= 0], lane[lane >= 0], half[thread[lane >= 0]]
    return union(axis.place(lane, Intervals(time - half, time + half)))


def sampling_periods(time: IntArray, thread: IntArray, threads: int) -> IntArray:
    """The sampling period of each thread in ns; rows sorted by thread, then time.

    It is the median step between its samples within 0.1-10 ms, and 1 ms for a thread with a single one. One profiler
    samples all threads alike, so no thread's period is longer than that of the steadiest: the steps of a thread that
    mostly waits are as long as its waits, and would turn them into computing.

    ```
    busy thread     . . . . . . . . . . . .      period 1 ms
    waiting thread  ..          ..          .    steps of 10 ms, period 1 ms all the same
    ```
    """
    periods = np.full(threads, LONE_PERIOD_NS, dtype=np.int64)
    within = thread[1:] == thread[:-1]
    step, owner = np.diff(time)[within], thread[1:][within]
    if len(step) == 0:
        return periods
    order = np.lexsort((step, owner))
    step, owner = step[order], owner[order]
    present, first, count = np.unique(owner, return_index=True, return_counts=True)
    median = (step[first + (count - 1) // 2] + step[first + count // 2]) // 2
    median = np.clip(median, SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS)
    steady = median[count >= STEADY_STEPS]
    periods[present] = np.minimum(median, steady.min()) if len(steady) else median
    return periods
