"""Stops of threads that end at multiples of one time: what a container may use of the CPUs in each period is used up.

```
period   |              |              |              |              |
thread   [works ](stops)[works ](stops)[waits for the device )[works ](stops)
faster   [works ](stops)[works ]..[works ](stops)...                          less work: no stop, or a later one
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, union
from nsysdiag.causes import BLOCKED, PLACE, PREEMPTION
from nsysdiag.causes.thread_states import RUNNABLE, untraced_code
from nsysdiag.events.rows import RowsOf, ThreadAxis
from nsysdiag.replay.beside import REGULAR
from nsysdiag.replay.pacing import FEWEST, MAY_WORK, MOST_ON_GRID, NOISE_NS, QUOTA, RETURNS_APART_NS, WAITED_NS, Timed
from nsysdiag.replay.work import LEAST_ERROR, HostNames, HostTime, Stretch

OFF_PERIOD = 0.02
"""Of a period: how far from its end a stop may end, and no farther than RETURNS_APART_NS. Linux ends all periods of
100 ms by one timer. Of FEWEST times hardly ever are so many as near by chance; steps that differ by a few hundredths
drift by more."""
_ONE_PERIOD = 1.3
"""Times the shortest distance: so far apart are stops at the ends of two periods in a row at most."""

MOST_PERIODS = 4
"""From one stop to the next in the shortest case, as of `pacing.MOST_CELLS`: work that waits for a device is seldom
stopped in two periods in a row. With more periods a few times are near some multiples by chance."""


def quota_stops(pieces: HostTime, names: HostNames, axis: ThreadAxis, stretch: Stretch) -> Timed:
    """The stops of threads that may have used up their share of the CPUs. How many are left with less work, or when
    they end, depends on all threads of the container."""
    found = [Timed.empty()]
    labels = names.labels
    runnable = labels.index(RUNNABLE) if RUNNABLE in labels else -2
    stopped = (pieces.cause == PLACE[PREEMPTION]) & np.isin(pieces.label, (runnable, untraced_code(labels)))
    stopped |= pieces.cause == PLACE[BLOCKED]
    spans = union(pieces.spans[stopped])
    ready = coverage(union(pieces.spans[pieces.label == runnable]), spans) > 0
    long = ready | (spans.end - spans.start >= WAITED_NS)
    spans, ready = spans[long], ready[long]
    rows = RowsOf(spans.start // axis.stride)
    for each in rows.values():
        mine = np.sort(rows[each])
        begin, length = axis.time(spans.start[mine]), spans.end[mine] - spans.start[mine]
        if length.sum() < LEAST_ERROR * (stretch.end - stretch.begin) or not in_periods(begin + length):
            continue
        # A thread that is not known to be ready may wait for what comes once in each step.
        if ready[mine].all() or not _one_a_step(begin, stretch):
            no = np.zeros(len(mine), dtype=np.int64)
            found.append(Timed(no + axis.threads[each], begin, begin + length, no, no, no + 1, no + QUOTA))
    return Timed.concatenate(found)


def in_periods(end: IntArray) -> bool:
    """Whether these times in ns, in order, are at multiples of one time, and none is late for those before it."""
    apart = np.diff(end)
    if len(apart) < FEWEST or apart.min() <= NOISE_NS:
        return False
    shortest = float(np.median(apart[apart <= _ONE_PERIOD * apart.min()]))
    return any(_fits(end, shortest / periods) for periods in range(1, MOST_PERIODS + 1))


def _fits(end: IntArray, period: float) -> bool:
    """Whether these times are at multiples of about this one."""
    number = np.append(0, np.cumsum(np.round(np.diff(end) / period)))
    period, first = np.polyfit(number, (end - end[0]).astype(np.float64), 1)
    off = np.abs(end - end[0] - first - number * period)
    return bool(np.mean(off <= min(OFF_PERIOD * period, RETURNS_APART_NS)) >= MOST_ON_GRID)


def _one_a_step(begin: IntArray, stretch: Stretch) -> bool:
    """Whether nearly all steps have one; whether it is so in a window is not known."""
    step = stretch.step(begin)
    return not stretch.stepwise or float(np.mean(np.bincount(step[step >= 0], minlength=stretch.count) == 1)) >= REGULAR


def outside(pieces: HostTime, axis: ThreadAxis, stops: Timed) -> HostTime:
    """The pieces that are no part of these stops, and no work of their threads, which the stops keep in step."""
    if not len(stops):
        return pieces
    lanes = axis.lane(stops.thread)
    parts = coverage(union(axis.place(lanes, Intervals(stops.begin, stops.end))), pieces.spans) > 0
    return pieces.take(~parts & ~(np.isin(pieces.start // axis.stride, lanes) & np.isin(pieces.cause, MAY_WORK)))
