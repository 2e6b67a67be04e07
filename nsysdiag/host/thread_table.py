"""The table of threads: those that launch work first, then those that ran most."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, coverage, union
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.rows import distinct
from nsysdiag.events.samples import sampling_periods
from nsysdiag.host.facts import HostThread, Stall
from nsysdiag.host.states import NOTED, CpuStretches, HostScene, ThreadStates, summed
from nsysdiag.trace.enums import ThreadState

MOST_THREADS = 50
NOTHING = -1


class ThreadTotals(Struct, frozen=True):
    """Sums for each lane, in ns or counts; `estimate` and `voluntary` are -1 where nothing tells. `stall` is the row of
    the longest stretch off the CPU, -1 without one."""

    on_cpu: IntArray
    off_cpu: IntArray
    preempted: IntArray
    preemptions: IntArray
    switches: IntArray
    voluntary: IntArray
    involuntary: IntArray
    cpus: IntArray
    stall: IntArray
    estimate: IntArray


def _thread_totals(scene: HostScene, states: ThreadStates) -> ThreadTotals:
    """What the states of each lane come to."""
    count, running, away = len(scene.axis.threads), states.running, states.away
    lost = away.take(states.preempted)
    voluntary, involuntary = _by_state(states, count)
    return ThreadTotals(
        on_cpu=summed(running.lane, running.end - running.start, count),
        off_cpu=summed(away.lane, away.end - away.start, count),
        preempted=summed(lost.lane, lost.end - lost.start, count),
        preemptions=np.bincount(lost.lane, minlength=count),
        switches=np.bincount(states.left_lane, minlength=count),
        voluntary=voluntary,
        involuntary=involuntary,
        cpus=_cpus(running, count),
        stall=_longest(away.lane, away.end - away.start, count),
        estimate=_estimates(scene, states.known),
    )


def _by_state(states: ThreadStates, count: int) -> tuple[IntArray, IntArray]:
    """How often each lane left a CPU of its own will, and how often not; -1 unless the scheduler noted why nearly each
    time."""
    noted = np.isin(states.state, NOTED)
    pushed = np.bincount(states.left_lane[states.state == ThreadState.RUNNING], minlength=count)
    noted_left = np.bincount(states.left_lane[noted], minlength=count)
    enough = (noted_left > 0) & (10 * noted_left >= 9 * np.bincount(states.left_lane, minlength=count))
    return np.where(enough, noted_left - pushed, NOTHING), np.where(enough, pushed, NOTHING)


def _cpus(running: CpuStretches, count: int) -> IntArray:
    """On how many CPUs each lane ran."""
    numbers, cpu = distinct(running.cpu)
    pairs = np.unique(running.lane * max(len(numbers), 1) + cpu)
    return np.bincount(pairs // max(len(numbers), 1), minlength=count)


def _longest(lane: IntArray, length: IntArray, count: int) -> IntArray:
    """The row with the greatest length of each lane, of equal ones the first; `lane` is sorted."""
    result = np.full(count, NOTHING, dtype=np.int64)
    if len(lane) == 0:
        return result
    first = np.flatnonzero(np.append(True, lane[1:] != lane[:-1]))
    most = np.maximum.reduceat(length, first)
    longest = np.flatnonzero(length == np.repeat(most, np.diff(np.append(first, len(lane)))))
    result[lane[longest[::-1]]] = longest[::-1]
    return result


def _estimates(scene: HostScene, known: BoolArray) -> IntArray:
    """The time on a CPU that samples stand for, of lanes without scheduling events: a sampling period each."""
    rows, result = scene.host_trace.tables.samples, np.full(len(known), NOTHING, dtype=np.int64)
    if known.all() or len(rows) == 0:
        return result
    threads, thread = distinct(rows.thread)
    order = np.lexsort((rows.time, thread))
    period = sampling_periods(rows.time[order], thread[order], len(threads))
    inside = (rows.time >= scene.low) & (rows.time < scene.high)
    stood = np.minimum(np.bincount(thread[inside], minlength=len(threads)) * period, scene.span)
    lane = scene.axis.lane(threads)
    chosen = (lane >= 0) & ~known[lane]
    result[lane[chosen]] = stood[chosen]
    return result


class CallTotals(Struct, frozen=True):
    """The calls of each lane in the range: their number, and the time inside them; `launches` is how many of them
    launched work on each device, by key."""

    api_ns: IntArray
    api_calls: IntArray
    sync_ns: IntArray
    sync_calls: IntArray
    os_ns: IntArray
    launches: dict[str, IntArray]


def thread_rows(scene: HostScene, states: ThreadStates) -> list[HostThread]:
    """The threads that matter most: first those that launch, then by time on a CPU, then by the longest stall."""
    totals, calls = _thread_totals(scene, states), _call_totals(scene)
    length = np.append(states.away.end - states.away.start, 0)
    ran = np.maximum(totals.on_cpu, totals.estimate)
    order = np.lexsort((-length[totals.stall], -ran, ~scene.launching))
    return [_row(scene, states, totals, calls, lane) for lane in order[:MOST_THREADS].tolist()]


def _call_totals(scene: HostScene) -> CallTotals:
    count = len(scene.axis.threads)
    api_ns, api_calls = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for calls in scene.api:
        lane = scene.axis.lane(calls.axis.threads)
        mine = lane >= 0
        api_ns[lane[mine]] = calls.ns(scene.low, scene.high)[mine]
        api_calls[lane[mine]] = calls.count(scene.low, scene.high)[mine]
    sync = union(scene.axis.place(scene.sync.lane, scene.sync.spans))
    thread = scene.host_trace.activity.api_calls.rows.thread
    return CallTotals(
        api_ns=api_ns,
        api_calls=api_calls,
        sync_ns=coverage(sync, scene.os_calls.lanes(scene.low, scene.high)),
        sync_calls=np.bincount(scene.sync.lane, minlength=count),
        os_ns=scene.os_calls.ns(scene.low, scene.high),
        launches={
            device.key: np.bincount(scene.axis.lane(thread[rows]), minlength=count)
            for device, rows in zip(scene.devices, scene.launched, strict=True)
        },
    )


def _row(scene: HostScene, states: ThreadStates, totals: ThreadTotals, calls: CallTotals, lane: int) -> HostThread:
    """One lane; what is not known of it is None."""
    thread, known = int(scene.axis.threads[lane]), bool(states.known[lane])
    traced = len(scene.host_trace.activity.api_calls.rows) > 0
    return HostThread(
        pid=pid_of(thread),
        tid=tid_of(thread),
        name=scene.host_trace.thread_names.get(thread),
        process=scene.host_trace.program(process_of(thread)),
        launches={key: int(times[lane]) for key, times in calls.launches.items() if times[lane]},
        api_calls=int(calls.api_calls[lane]),
        sync_calls=int(calls.sync_calls[lane]),
        on_cpu_ns=_told(totals.on_cpu, lane, known),
        off_cpu_ns=_told(totals.off_cpu, lane, known),
        unknown_ns=scene.span - int(totals.on_cpu[lane] + totals.off_cpu[lane]) if known else None,
        preempted_ns=_told(totals.preempted, lane, known),
        preemptions=_told(totals.preemptions, lane, known),
        on_cpu_estimate_ns=_told(totals.estimate, lane, not known),
        switches=_told(totals.switches, lane, known),
        voluntary=_told(totals.voluntary, lane, known),
        involuntary=_told(totals.involuntary, lane, known),
        cpus=_told(totals.cpus, lane, known),
        migrations=_told(states.moved, lane, known),
        worst_stall=_stall(scene, states, int(totals.stall[lane])),
        api_ns=_told(calls.api_ns, lane, traced),
        sync_ns=_told(calls.sync_ns, lane, traced),
        os_ns=_told(calls.os_ns, lane, bool(scene.os_traced[lane])),
    )


def _told(values: IntArray, lane: int, known: bool) -> int | None:
    return int(values[lane]) if known and values[lane] != NOTHING else None


def _stall(scene: HostScene, states: ThreadStates, row: int) -> Stall | None:
    """A stretch off the CPU, with the call that its middle is in: a thread that is away begins and ends none."""
    if row < 0:
        return None
    stretch = states.away.take(np.array([row]))
    middle = (stretch.start + stretch.end) // 2
    what = None
    for calls in (scene.os_calls, *scene.api):
        at = int(calls.at(scene.axis.threads[stretch.lane], middle)[0])
        if at >= 0 and what is None:
            what = calls.names[int(calls.name[at])]
    return Stall(
        start_ns=int(stretch.start[0]),
        ns=int(stretch.end[0] - stretch.start[0]),
        what=what,
        preempted=bool(states.preempted[row]),
    )
