"""When a thread was on a CPU, when it was scheduled out, and who held the CPU that it left (SCHED_EVENTS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.identity import BoolArray, IntArray, pid_of, tid_of
from nsysdiag.activity.rows import Rows
from nsysdiag.timeline.intervals import Intervals, coverage, union
from nsysdiag.trace.enums import ThreadState
from nsysdiag.trace.trace import Trace

PREEMPTED_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class SwitchRows(Rows):
    """Context switches: time in ns, CPU, True where the thread comes in, thread, state of a thread that goes out."""

    time: IntArray
    cpu: IntArray
    comes_in: BoolArray
    thread: IntArray
    state: IntArray


@dataclass(frozen=True, slots=True)
class Scheduling:
    """Lanes of the launching threads: `on_cpu` and `out` on the thread axis, `out` with the CPU that was left.

    `runnable` marks the intervals of `out` whose thread could have gone on; `held` those during which other threads
    held its CPU for at least 80 % of the time. Time before a thread's first event has the opposite state of that
    event; a thread that goes out for good is unknown from then on, and one without events always.
    """

    on_cpu: Intervals
    out: Intervals
    runnable: BoolArray
    held: BoolArray


def read_switches(trace: Trace) -> SwitchRows:
    """All scheduling events of the trace, in the order of the export."""
    columns = trace.read("SCHED_EVENTS", "start", "cpu", "isSchedIn", "globalTid", "threadState")
    return SwitchRows(
        columns["start"],
        columns["cpu"],
        columns["isSchedIn"] != 0,
        columns["globalTid"],
        columns["threadState"],
    )


def scheduling_of(axis: ThreadAxis, switches: SwitchRows) -> Scheduling:
    """What `switches` say about the threads of `axis`."""
    rank = axis.rank(switches.thread)
    mine = switches.take(rank >= 0)
    rank = rank[rank >= 0]
    order = np.lexsort((mine.comes_in, mine.time, rank))
    mine, rank = mine.take(order), rank[order]
    if len(mine) == 0:
        nothing = np.zeros(0, dtype=np.bool_)
        return Scheduling(Intervals.empty(), Intervals.empty(), nothing, nothing)
    last = np.append(rank[1:] != rank[:-1], True)
    until = np.where(last, axis.origin + axis.span, np.append(mine.time[1:], 0))
    return _states(axis, switches, mine, rank, until, last)


def _states(
    axis: ThreadAxis, switches: SwitchRows, mine: SwitchRows, rank: IntArray, until: IntArray, last: BoolArray
) -> Scheduling:
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
        held=np.concatenate((unknown, _held_by_others(switches, mine.cpu[gone], away))),
    )


def _held_by_others(switches: SwitchRows, cpu: IntArray, away: Intervals) -> BoolArray:
    """True for each interval of `away` if threads held its `cpu` for at least 80 % of it.

    A thread holds a CPU from the moment it comes in to the next event there. The idle loop (pid 0 or tid 0) holds
    nothing. The thread that is away cannot be among the holders: it is out.
    """
    result = np.zeros(len(away), dtype=np.bool_)
    by_cpu = switches.take(_by_cpu(switches))
    borders = np.searchsorted(by_cpu.cpu, np.append(np.unique(cpu), np.iinfo(np.int64).max))
    for number, begin in zip(np.unique(cpu).tolist(), borders.tolist(), strict=False):
        end = int(np.searchsorted(by_cpu.cpu, number, side="right"))
        there = by_cpu.take(np.arange(begin, end))
        mine = np.flatnonzero(cpu == number)
        share = coverage(_holding(there), away[mine]) >= PREEMPTED_SHARE * (away.end[mine] - away.start[mine])
        result[mine] = share & (away.end[mine] > away.start[mine])
    return result


def _by_cpu(switches: SwitchRows) -> IntArray:
    """The order by CPU, then time; of events at the same time the one that goes out first."""
    step = np.diff(switches.time)
    out_first = switches.comes_in[1:] >= switches.comes_in[:-1]
    few = len(switches) and switches.cpu.min() >= 0 and switches.cpu.max() <= np.iinfo(np.int16).max
    if few and np.all((step > 0) | ((step == 0) & out_first)):
        return np.argsort(switches.cpu.astype(np.int16), kind="stable")  # a radix sort, without comparisons
    return np.lexsort((switches.comes_in, switches.time, switches.cpu))


def _holding(there: SwitchRows) -> Intervals:
    """The time during which some thread but the idle loop held one CPU; `there` is sorted by time."""
    if len(there) < 2:
        return Intervals.empty()
    busy = there.comes_in & (pid_of(there.thread) != 0) & (tid_of(there.thread) != 0)
    return union(Intervals(there.time[:-1], there.time[1:])[busy[:-1]])
