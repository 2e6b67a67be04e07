"""The threads that a replay does not hold, as no wait leads to them; and those that may be waited for some day."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, union
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import RangeRows
from nsysdiag.events.rows import CallTable, distinct, distinct_values
from nsysdiag.replay.pacing import MESSAGES, WAITED_NS
from nsysdiag.replay.step_work import REGULAR
from nsysdiag.replay.stretch import Stretch
from nsysdiag.replay.wakes import LOCKS
from nsysdiag.wakeups.loaders import HostTrace
from nsysdiag.wakeups.waits import WRITES, Ends, ends_of, is_timed

FEWEST_ANSWERED = 5
"""A thread that waited so often for others of the program in a window without steps is one that they ask."""
OUTSIDE = re.compile(rf".*sleep\w*|{MESSAGES.pattern}|_*(readv?(_chk)?|accept4?|ioctl)")
"""Calls that wait for a time, a device, a file, or other computers."""


MOST_WAITING = 0.05
"""Of the replayed time: who waits for less is busy all the time."""
LEAST_SPAN = 1 / 3
"""Of the steps: who waits in the first of them only is no thread that follows them."""
ANSWER_NS = 100_000
"""The longest that it usually takes to wake a thread that is asked, and then the one that waits for its answer: 50 µs
each. Neither is part of its work."""


class Beside(Struct, frozen=True):
    """`threads` (globalTids, ascending) with calls or ranges, but for those of nsys; `messages` is how many calls
    that send something they begin in the replayed time. One of them that is of the program sleeps `naps` times then, or
    waits for something outside of it.

    `followers` are threads of the program that wait for another one in nearly each step, or time and again in a window,
    and launch nothing; a replay may hold them. `follower_ns` is how long in a step, or in the window, each works and is
    on its way to it. Others have a range in each step, and no thread is known to wait for them. They may hand over what
    they made in memory, while who needs it asks again and again. Of these it is the time in their ranges."""

    threads: IntArray = np.empty(0, dtype=np.int64)
    messages: int = 0
    naps: int = 0
    followers: IntArray = np.empty(0, dtype=np.int64)
    follower_ns: IntArray = np.empty(0, dtype=np.int64)
    each_ns: tuple[IntArray, ...] = ()

    @classmethod
    def of(
        cls, host_trace: HostTrace, held: IntArray, launching: IntArray, wakers: IntArray, stretch: Stretch
    ) -> Beside:
        """All threads but those that a replay holds; the followers do not include those that are `launching`, nor those
        with ranges the `wakers`, of which it is known who waits for them."""
        calls = host_trace.tables.os_calls
        every = np.union1d(distinct_values(calls.thread), distinct_values(host_trace.ranges.rows.thread))
        threads = np.setdiff1d(every, np.union1d(held, host_trace.nsys_threads))
        sends = np.array([*(WRITES.fullmatch(each) is not None for each in calls.names), False], dtype=np.bool_)
        inside = (calls.start >= stretch.begin) & (calls.start < stretch.end) & np.isin(calls.thread, threads)
        others = np.setdiff1d(every, np.union1d(launching, host_trace.nsys_threads))
        kin = others[np.isin(process_of(others), process_of(held))]
        naps = _naps(calls, np.flatnonzero(inside & np.isin(calls.thread, kin)))
        followers, works, each = _followers(calls, kin, stretch)
        busy = _always_busy(calls, np.setdiff1d(kin, np.union1d(followers, wakers)), launching, stretch)
        followers = np.append(followers, busy)
        works = np.append(works, np.full(len(busy), (stretch.end - stretch.begin) // stretch.count))
        makers, makes = _makers(host_trace.ranges.rows, np.setdiff1d(kin, np.union1d(followers, wakers)), stretch)
        found = np.concatenate((followers, makers)), np.concatenate((works, makes))
        unknown = (np.empty(0, dtype=np.int64),) * (len(found[0]) - len(each))
        return cls(threads, int((sends[calls.name] & inside).sum()), naps, *found, (*each, *unknown))


def _naps(calls: CallTable, rows: IntArray) -> int:
    """How often the thread that does it most waits in one of these calls for a time, or for something outside of the
    program."""
    names = np.array([*(OUTSIDE.fullmatch(each) is not None for each in calls.names), False], dtype=np.bool_)
    long = names[calls.name[rows]] & (calls.end[rows] - calls.start[rows] >= WAITED_NS)
    return int(np.bincount(distinct(calls.thread[rows[long]])[1]).max(initial=0))


def _followers(
    calls: CallTable, threads: IntArray, stretch: Stretch
) -> tuple[IntArray, IntArray, tuple[IntArray, ...]]:
    """Those of the threads that follow the steps, and how long in one each works, in ns; and between its waits."""
    begin, end = (np.clip(each, stretch.begin, stretch.end) for each in (calls.start, calls.end))
    inside = (calls.start < stretch.end) & (calls.end > stretch.begin)
    every = np.flatnonzero(_answered(calls) & inside & np.isin(calls.thread, threads))
    long = end[every] - begin[every] >= WAITED_NS
    rows = every[long]
    if len(rows) == 0:
        return rows, rows, ()
    found, thread = distinct(calls.thread[rows])
    if stretch.stepwise:
        follows = _in_each_step(thread, begin[rows], len(found), stretch)
        # Who works for any time comes to some of its waits too late to wait.
        asks = every[np.isin(calls.thread[every], found)]
        of_asks = np.searchsorted(found, calls.thread[asks])
        mostly = 2 * np.bincount(thread) >= np.bincount(of_asks, minlength=len(found))
        follows |= _in_each_step(of_asks, begin[asks], len(found), stretch) & mostly
    else:
        follows = np.bincount(thread) >= FEWEST_ANSWERED
    rows_of = [rows[thread == each] for each in np.flatnonzero(follows).tolist()]
    asks_of = [every[calls.thread[every] == each] for each in found[follows].tolist()]
    works = [_works_ns(begin[mine], end[mine], stretch) for mine in rows_of]
    return found[follows], np.array(works, dtype=np.int64), tuple(_between(begin[each], end[each]) for each in asks_of)


def _between(begin: IntArray, end: IntArray) -> IntArray:
    """How long a thread works between waits that begin and end then."""
    order = np.argsort(begin, kind="stable")
    works: IntArray = np.maximum(begin[order][1:] - end[order][:-1], 0)
    return works


def _answered(calls: CallTable) -> BoolArray:
    """Which calls wait for another thread of the program, and for no lock."""
    names = np.array([*(LOCKS.fullmatch(each) is None for each in calls.names), False], dtype=np.bool_)
    ends = np.append(np.isin(ends_of(calls.names), (Ends.SIGNAL, Ends.RELEASE)) & (is_timed(calls.names) == 0), False)
    found: BoolArray = (ends & names)[calls.name]
    return found


def _always_busy(calls: CallTable, threads: IntArray, launching: IntArray, stretch: Stretch) -> IntArray:
    """Those of the threads that take what others hand over, and hardly ever wait for more: with shorter steps these may
    have to wait for them, as soon as no more fits between them.

    ```
    solver   [step 0](hands over)[step 1][step 2](hands over)[step 3][step 4](hands over)
    writer   (takes)[writes ...............](takes)[writes .................](takes)[writes ...
    ```
    """
    begin, end = (np.clip(each, stretch.begin, stretch.end) for each in (calls.start, calls.end))
    rows = np.flatnonzero(_answered(calls) & (calls.start >= stretch.begin) & (calls.start < stretch.end))
    of_steps = np.count_nonzero(np.isin(calls.thread[rows], launching))
    rows = rows[np.isin(calls.thread[rows], threads)]
    if not stretch.stepwise or of_steps < FEWEST_ANSWERED or not len(rows):
        return rows[:0]
    found, thread = distinct(calls.thread[rows])
    waited = np.bincount(thread, (end - begin)[rows])
    often = np.bincount(thread) >= FEWEST_ANSWERED
    busy: IntArray = found[often & (waited < MOST_WAITING * (stretch.end - stretch.begin))]
    return busy


def _works_ns(begin: IntArray, end: IntArray, stretch: Stretch) -> int:
    """How long in a step, or in the window, a thread with these waits works, in ns: who is done before the last step
    works for those before that."""
    order = np.argsort(begin, kind="stable")
    steps = np.searchsorted(stretch.borders, begin[order[[0, -1]]], side="right")
    whole = not stretch.stepwise or steps[1] >= stretch.count or steps[1] == steps[0]
    first, last = (stretch.begin, stretch.end) if whole else (int(begin[order[0]]), int(begin[order[-1]]))
    waits = int((np.clip(end, first, last) - np.clip(begin, first, last)).sum())
    answers = ANSWER_NS * np.count_nonzero((begin >= first) & (begin < last))
    return int(last - first - waits + answers) // (stretch.count if whole else int(steps[1] - steps[0]))


def _makers(ranges: RangeRows, threads: IntArray, stretch: Stretch) -> tuple[IntArray, IntArray]:
    """Those of the threads that have as many ranges in each step, and how long in one these take, in ns."""
    inside = (ranges.start >= stretch.begin) & (ranges.start < stretch.end) & (ranges.end > ranges.start)
    rows = np.flatnonzero(np.isin(ranges.thread, threads) & inside)
    if len(rows) == 0 or not stretch.stepwise:
        return rows[:0], rows[:0]
    found, thread = distinct(ranges.thread[rows])
    makes = _in_each_step(thread, ranges.start[rows], len(found), stretch)
    works = [_in_ranges(ranges.take(rows[thread == each]), stretch) for each in range(len(found))]
    return found[makes], np.array(works)[makes]


def _in_ranges(ranges: RangeRows, stretch: Stretch) -> int:
    """How long in a step a thread is in these ranges, in ns."""
    spans = union(Intervals(ranges.start, ranges.end))
    each = max(round(len(spans) / stretch.count), 1)
    return int(each * spans.total()) // len(spans)


def _in_each_step(thread: IntArray, begin: IntArray, count: int, stretch: Stretch) -> BoolArray:
    """Which of so many threads have as many waits, which `begin` in order, in nearly each step."""
    waits = np.zeros((count, stretch.count), dtype=np.int64)
    np.add.at(waits, (thread, np.searchsorted(stretch.borders, begin, side="right") - 1), 1)
    return np.array([_regular(each) for each in waits], dtype=np.bool_)


def _regular(waits: IntArray) -> bool:
    """Whether there are as many of these numbers of waits in each step. Who works ahead is done before the last steps,
    and waits in none of them."""
    last = int(np.flatnonzero(waits)[-1]) + 1
    if last < max(LEAST_SPAN * len(waits), 2):
        return False
    usual = round(waits[:last].mean())
    # A wait near the border of two steps may be charged to either.
    ahead = np.cumsum(waits[:last] - usual)
    return bool(np.mean(np.abs(ahead - np.median(ahead)) <= 1) >= REGULAR) and usual > 0
