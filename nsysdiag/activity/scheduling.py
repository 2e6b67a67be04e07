"""When a thread was on a CPU, when it was scheduled out, and who held the CPU that it left (SCHED_EVENTS)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysdiag.activity.axis import ThreadAxis
from nsysdiag.activity.cpus import Cpus, sorted_order
from nsysdiag.activity.rows import Rows
from nsysdiag.timeline.intervals import BoolArray, IntArray, Intervals, union
from nsysdiag.trace.enums import ThreadState
from nsysdiag.trace.trace import Trace

SWITCHES = "SCHED_EVENTS"
SWITCH_COLUMNS = ("start", "cpu", "isSchedIn", "globalTid", "threadState")


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
    rank = axis.rank(switches.thread)
    mine = rank >= 0
    if not mine.all():
        switches, rank = switches.take(mine), rank[mine]
    order = sorted_order(rank, switches.time, switches.comes_in)
    return switches.take(order), rank[order]


def scheduling_of(axis: ThreadAxis, switches: SwitchRows, cpus: Cpus) -> Scheduling:
    """What `switches` say about the threads of `axis`."""
    mine, rank = switches_by_thread(axis, switches)
    if len(mine) == 0:
        nothing = np.zeros(0, dtype=np.bool_)
        return Scheduling(Intervals.empty(), Intervals.empty(), nothing, nothing)
    last = np.append(rank[1:] != rank[:-1], True)
    until = np.where(last, axis.origin + axis.span, np.append(mine.time[1:], 0))
    return _states(axis, cpus, mine, rank, until, last)


def _states(
    axis: ThreadAxis, cpus: Cpus, mine: SwitchRows, rank: IntArray, until: IntArray, last: BoolArray
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
        held=np.concatenate((unknown, cpus.held(mine.cpu[gone], away))),
    )
