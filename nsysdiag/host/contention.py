"""Who had the CPUs while threads of the GPU's processes waited for one, and whether a limit shows."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.arrays.step_functions import Steps, count_open, time_by_level
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.rows import distinct
from nsysdiag.host.facts import Contention, CpuHolder, CpuLimit
from nsysdiag.host.states import Stretches, ThreadStates
from nsysdiag.host.threads import HostScene

MOST_HOLDERS = 10
STARVED_SHARE = 0.05
"""Of the range: for so long a thread of a process must have waited for a CPU before a limit is looked for."""
AT_LIMIT_SHARE = 0.9
"""Of that time: for so long its own threads must have taken all CPUs up to the limit."""
SLIVER = 1_000
"""A number of threads that run at once for less than a thousandth of the time is an overlap of events."""


def contention(scene: HostScene, states: ThreadStates) -> Contention:
    """The time that all threads waited for a CPU, and the threads and processes that had it."""
    cpus, away = scene.host_trace.tables.cpus, states.away
    lost, held = away.take(states.preempted), away.take(states.held)
    wanted = cpus.wanted_ns(held.cpu, held.spans) if len(held) else np.zeros(len(cpus.thread), dtype=np.int64)
    rows = np.flatnonzero(wanted > 0)
    holders = _holders(scene, cpus.thread[rows], wanted[rows])
    return Contention(
        preempted_ns=lost.spans.total(),
        held_ns=int(wanted[rows].sum()),
        holders=holders[:MOST_HOLDERS],
        holder_count=len(holders),
        cpus_used=len(np.unique(states.running.cpu)),
        cpus_seen=len(cpus.numbers),
        limits=_limits(scene, states),
    )


def _holders(scene: HostScene, thread: IntArray, ns: IntArray) -> list[CpuHolder]:
    """Threads of the scene's processes one by one, those of others by process; most time first. Of programs that were
    not traced only the number is reported: they belong to others."""
    host_trace = scene.host_trace
    traced = set(host_trace.traced_processes.tolist())
    own = np.isin(process_of(thread), np.unique(process_of(scene.axis.threads)))
    present, code = distinct(np.where(own, thread, process_of(thread)))
    total = np.zeros(len(present), dtype=np.int64)
    np.add.at(total, code, ns)
    found = []
    for holder, its in zip(present.tolist(), total.tolist(), strict=True):
        tid = tid_of(holder) or None
        found.append(
            CpuHolder(
                pid=pid_of(holder),
                process=host_trace.program(process_of(holder)) if process_of(holder) in traced else None,
                tid=tid,
                thread=host_trace.thread_names.get(holder) if tid else None,
                ns=its,
            )
        )
    return sorted(found, key=lambda row: (-row.ns, row.pid, row.tid or 0))


def _limits(scene: HostScene, states: ThreadStates) -> list[CpuLimit]:
    """The limits that the processes show, one at most for each."""
    process = process_of(scene.axis.threads)
    lost = states.away.take(states.preempted)
    found = []
    for number in np.unique(process[lost.lane]).tolist():
        mine = np.flatnonzero(process == number)
        waiting = lost.take(np.isin(lost.lane, mine))
        if union(waiting.spans).total() >= STARVED_SHARE * scene.span:
            limit = _limit(scene, states.running.take(np.isin(states.running.lane, mine)), waiting, number)
            if limit is not None:
                found.append(limit)
    return found


def _limit(scene: HostScene, running: Stretches, waiting: Stretches, process: int) -> CpuLimit | None:
    """The CPU limit of a process: the largest number of CPUs that it used at once. A limit exists if its own threads
    nearly always had all of these when one of them had to wait. The process must never have run on any other CPU.
    Threads that take turns on their own, for a lock, for example, use other CPUs too.

    ```
    A   [runs ......)[waits)[runs ....
    B   [runs)[waits)[runs ......)[waits)        never three at once, though all three could have run: a limit of 2
    C   [waits)[runs ......)[waits)[runs
    ```
    """
    at_once = _open(running.spans, scene)
    cpus = _most(time_by_level(at_once, Intervals.of([(scene.low, scene.high)])), scene.span)
    if len(np.unique(running.cpu)) > cpus:
        return None
    starved = union(waiting.spans)
    levels = time_by_level(at_once, starved)
    at_limit = int(levels[cpus:].sum())
    if cpus == 0 or at_limit < AT_LIMIT_SHARE * starved.total():
        return None
    both = Intervals(np.append(running.start, waiting.start), np.append(running.end, waiting.end))
    wanted = _most(time_by_level(_open(both, scene), starved), starved.total())
    return CpuLimit(
        pid=pid_of(process),
        process=scene.host_trace.program(process),
        cpus=cpus,
        wanted=wanted,
        ns=at_limit,
        cpus_seen=len(scene.host_trace.tables.cpus.numbers),
    )


def _open(spans: Intervals, scene: HostScene) -> Steps:
    return count_open(np.sort(spans.start), np.sort(spans.end), scene.low, scene.high)


def _most(levels: IntArray, whole: int) -> int:
    """The highest level that holds, or is exceeded, for more than a sliver of the time."""
    above = np.cumsum(levels[::-1])[::-1]
    reached = np.flatnonzero(SLIVER * above > whole)
    return int(reached[-1]) if len(reached) else 0
