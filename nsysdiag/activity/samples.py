"""CPU samples as proof that a thread was on a CPU (COMPOSITE_EVENTS)."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import IntArray
from nsysdiag.timeline.intervals import Intervals, union
from nsysdiag.trace.trace import Trace

SHORTEST_PERIOD_NS = 100_000
LONGEST_PERIOD_NS = 10_000_000
LONE_PERIOD_NS = 1_000_000


def sampled_time(axis: ThreadAxis, trace: Trace) -> Intervals:
    """The time that samples vouch for, a set on the axis.

    Each sample stands for half its thread's median sampling period to either side.
    """
    columns = trace.read("COMPOSITE_EVENTS", "start", "globalTid")
    rank = axis.rank(columns["globalTid"])
    time, rank = columns["start"][rank >= 0], rank[rank >= 0]
    order = np.lexsort((time, rank))
    time, rank = time[order], rank[order]
    half = sampling_periods(time, rank, len(axis.threads))[rank] // 2
    return union(axis.place(rank, Intervals(time - half, time + half)))


def sampling_periods(time: IntArray, rank: IntArray, lanes: int) -> IntArray:
    """The median sampling period of each lane in ns, within 0.1-10 ms; 1 ms for a lone sample. Rows sorted by lane, time."""
    periods = np.full(lanes, LONE_PERIOD_NS, dtype=np.int64)
    step = np.diff(time)
    lane = rank[1:]
    within = lane == rank[:-1]
    step, lane = step[within], lane[within]
    order = np.lexsort((step, lane))
    step, lane = step[order], lane[order]
    present, first, count = np.unique(lane, return_index=True, return_counts=True)
    periods[present] = np.clip(step[first + count // 2], SHORTEST_PERIOD_NS, LONGEST_PERIOD_NS)
    return periods
