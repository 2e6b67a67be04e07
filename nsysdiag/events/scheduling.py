"""Which thread held each CPU and when, and when each thread was scheduled in and out (SCHED_EVENTS)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, coverage, sorted_times, union
from nsysdiag.events.identity import pid_of, tid_of
from nsysdiag.events.rows import Rows, ThreadAxis, narrowed, picked
from nsysdiag.trace.enums import ThreadState

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

SWITCHES = "SCHED_EVENTS"
SWITCH_COLUMNS = ("start", "cpu", "isSchedIn", "globalTid", "threadState")


class SwitchRows(Rows, frozen=True):
    """Context switches: time in ns, CPU, True where the thread comes in, thread, state of a thread that goes out."""

    time: IntArray
    cpu: IntArray
    comes_in: BoolArray
    thread: IntArray
    state: IntArray


class Scheduling(Struct, frozen=True):
    """Lanes of the launching threads:

    `on_cpu` and `out` on the thread axis, `out` with the CPU that was left. `runnable` marks the intervals of `out`
    whose thread was ready to run; `held` those during which other threads held its CPU for at least 80% of the time.
    Time before a thread's first event has the opposite state of that event; a thread that goes out for good is unknown
    from then on, and one without events always.
    """

    on_cpu: Intervals
    out: Intervals
    runnable: BoolArray
    held: BoolArray


def read_switches(trace: Trace) -> SwitchRows:
    """All scheduling events of the trace, in the order of the export."""
    columns = trace.read(SWITCHES, *SWITCH_COLUMNS)
    return SwitchRows(
        columns["start"],
        columns["cpu"],
        columns["isSchedIn"] != 0,
        columns["globalTid"],
        columns["threadState"],
    )


def switches_by_thread(axis: ThreadAxis, switches: SwitchRows) -> tuple[SwitchRows, IntArray]:
    """The events of the axis's threads by lane, then time, and the lane of each."""
    rank = axis.lane(switches.thread).astype(np.int32)
    mine = rank >= 0
    if not mine.all():
        switches, rank = switches.take(mine), rank[mine]
    order = picked(sorted_order(rank, switches.time, switches.comes_in))
    return switches.take(order), rank[order]


def scheduling_of(axis: ThreadAxis, switches: SwitchRows, cpus: Cpus) -> Scheduling:
    """What `switches` say about the threads of `axis`."""
    mine, rank = switches_by_thread(axis, switches)
    if len(mine) == 0:
        nothing = np.zeros(0, dtype=np.bool_)
        return Scheduling(Intervals.empty(), Intervals.empty(), nothing, nothing)
    last = np.append(rank[1:] != rank[:-1], True)
    until = np.where(last, axis.origin + axis.span, np.append(mine.time[1:], 0))
    first = np.append(True, rank[1:] != rank[:-1])
    runs = axis.place(rank, Intervals(mine.time, until))
    before = axis.place(rank[first], Intervals(np.full(int(first.sum()), axis.origin), mine.time[first]))
    first_in = mine.comes_in[first]
    gone = ~mine.comes_in & ~last
    away = Intervals(mine.time[gone], until[gone])
    out = Intervals(
        np.concatenate((before.start[first_in], runs.start[gone])),
        np.concatenate((before.end[first_in], runs.end[gone])),
    )
    unknown = np.zeros(int(first_in.sum()), dtype=np.bool_)
    return Scheduling(
        on_cpu=union(runs[mine.comes_in], before[~first_in]),
        out=out,
        runnable=np.concatenate((unknown, mine.state[gone] == ThreadState.RUNNING)),
        held=np.concatenate((unknown, cpus.held(mine.cpu[gone], away) & maybe_ready(away))),
    )


PREEMPTED_SHARE = 0.8
"""Of a stretch off the CPU: a thread was preempted if others held its CPU for so much, or if the scheduler says so.
Without such a rule, 72% to 88% of three traces looked preempted, while the CPUs that threads had left were idle."""
LONGEST_READY_NS = 1_000_000_000
"""A thread that is away for longer was asleep, unless the scheduler itself says that it could run. Linux lets every
ready thread run within some 10 ms for each that competes for the CPU, and CPU quotas are renewed every 100 ms."""
BREAK_NS = 10_000
"""A CPU that stands idle for no longer goes from one thread to the next."""


def maybe_ready(away: Intervals) -> BoolArray:
    """True for stretches off the CPU in which a thread may have been ready all the time."""
    return away.end - away.start <= LONGEST_READY_NS


class Cpus(Struct, frozen=True):
    """The stretches in which a thread held a CPU: from the moment it comes in to the next event there. The idle loop
    (pid 0 or tid 0) holds nothing.

    `numbers` are the CPUs of all events, sorted; the stretches of `numbers[i]` are those from `first[i]` to
    `first[i + 1]`, in order of time, none over another.

    ```
    events    in A   out A  in B  in idle   in A
    holds     [--A--)       [--B--)
    ```
    """

    numbers: IntArray
    first: IntArray
    holds: Intervals
    thread: IntArray

    @classmethod
    def of(cls, switches: SwitchRows) -> Cpus:
        """From all scheduling events, in any order."""
        order = sorted_order(switches.cpu, switches.time, switches.comes_in)
        cpu, time, thread = switches.cpu[order], switches.time[order], switches.thread[order]
        until = np.append(time[1:], 0)[: len(time)]
        holds = switches.comes_in[order] & (np.append(cpu[1:], -1)[: len(cpu)] == cpu) & (until > time)
        if len(cpu):
            holds[-1] = False
        holds &= (pid_of(thread) != 0) & (tid_of(thread) != 0)
        numbers = cpu[np.append(True, cpu[1:] != cpu[:-1])[: len(cpu)]]
        first = np.searchsorted(cpu[holds], np.append(numbers, np.iinfo(np.int64).max))
        return cls(numbers, first, Intervals(time[holds], until[holds]), thread[holds])

    def held_ns(self, cpu: IntArray, spans: Intervals) -> IntArray:
        """How long threads held the CPU of each of `spans` meanwhile."""
        result = np.zeros(len(spans), dtype=np.int64)
        for part, rows in self._by_cpu(cpu):
            result[rows] = coverage(self.holds[part], spans[rows])
        return result

    def held(self, cpu: IntArray, away: Intervals) -> BoolArray:
        """True for each interval of `away` during at least 80% of which threads held the CPU that was left. The thread
        that is away cannot be among them: it is out."""
        length = away.end - away.start
        return (length > 0) & (self.held_ns(cpu, away) >= PREEMPTED_SHARE * length)

    def held_since(self, cpu: IntArray, moment: IntArray, close: int) -> IntArray:
        """Since when threads held each CPU without a break until the moment, or until `close` ns before it. It is the
        moment itself if none did, or if the CPU is unknown (-1).

        ```
        holds     [--A--)      [--B--)[--C--)  ^ moment
        since                  ^
        ```
        """
        since = moment.copy()
        for part, rows in self._by_cpu(cpu):
            holds = self.holds[part]
            if len(holds) == 0:
                continue
            begins = np.append(True, holds.start[1:] - holds.end[:-1] > BREAK_NS)
            begun = np.maximum.accumulate(np.where(begins, holds.start, np.iinfo(np.int64).min))
            last = np.searchsorted(holds.start, moment[rows]) - 1
            held = (last >= 0) & (holds.end[last] >= moment[rows] - close)
            since[rows] = np.where(held, begun[last], moment[rows])
        return since

    def last_holder(self, cpu: IntArray, moment: IntArray) -> IntArray:
        """The thread that last held each CPU before the moment; 0 if none did, and where the CPU is not known."""
        holder = np.zeros(len(cpu), dtype=np.int64)
        for part, rows in self._by_cpu(cpu):
            threads = self.thread[part]
            last = np.searchsorted(self.holds.start[part], moment[rows]) - 1
            holder[rows] = np.where(last >= 0, threads[np.maximum(last, 0)], 0) if len(threads) else 0
        return holder

    def wanted_ns(self, cpu: IntArray, spans: Intervals) -> IntArray:
        """For each stretch that a CPU was held, how long those of `spans` went on meanwhile that are on the same CPU,
        added up.

        ```
        holds     [------A------)[--B--)
        spans         [----------------)
                             [------)
        wanted    A: 9 + 3       B: 6 + 4
        ```
        """
        result = np.zeros(len(self.holds), dtype=np.int64)
        for part, rows in self._by_cpu(cpu):
            holds = self.holds[part]
            start, end = sorted_times(spans.start[rows]), sorted_times(spans.end[rows])
            result[part] = _open_until(holds.end, start, end) - _open_until(holds.start, start, end)
        return result

    def _by_cpu(self, cpu: IntArray) -> Iterator[tuple[slice, IntArray]]:
        """For each CPU that occurs in `cpu` its stretches, and the rows of it."""
        order = np.argsort(narrowed(cpu), kind="stable").astype(np.int32)
        ordered = cpu[order]
        for at, number in enumerate(self.numbers.tolist()):
            rows = order[np.searchsorted(ordered, number) : np.searchsorted(ordered, number, side="right")]
            if len(rows):
                yield slice(int(self.first[at]), int(self.first[at + 1])), rows


def _open_until(times: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """How much of all intervals with these sorted starts and sorted ends is before each time, up to a constant."""
    # Sums may wrap around; what the differences of two times come to is right all the same.
    begun, over = np.searchsorted(start, times, side="right"), np.searchsorted(end, times, side="right")
    starts, ends = np.append(np.int64(0), np.cumsum(start)), np.append(np.int64(0), np.cumsum(end))
    return (begun - over) * times - starts[begun] + ends[over]


def sorted_order(group: IntArray, time: IntArray, comes_in: BoolArray) -> IntArray:
    """The order of events by group, then time; of events at the same time the one that goes out first."""
    if ascending(time):
        order = np.argsort(narrowed(group), kind="stable")
        ordered, moment, enters = group[order], time[order], comes_in[order]
        tied = (ordered[1:] == ordered[:-1]) & (moment[1:] == moment[:-1])
        if not np.any(tied & (enters[1:] < enters[:-1])):
            return order
    return np.lexsort((comes_in, time, group))
