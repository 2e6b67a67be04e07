"""The table of threads: those that launch work first, then those that ran most."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, coverage, union
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.rows import distinct
from nsysdiag.events.samples import sampling_periods
from nsysdiag.host.facts import HostThread, Stall
from nsysdiag.host.states import NOTED, CpuStretches, HostScene, ThreadStates, summed
from nsysdiag.trace.enums import ThreadState

MOST_THREADS = 50
NOTHING = -1
_Columns = dict[str, tuple[IntArray, BoolArray]]
"""Fields of a row by name: the value of each lane, and whether it is known."""


def thread_rows(scene: HostScene, states: ThreadStates) -> list[HostThread]:
    """The threads that matter most: first those that launch, then by time on a CPU, then by the longest stall."""
    columns, away = _columns(scene, states), states.away
    length = away.end - away.start
    stall = _longest(away.lane, length, len(states.known))
    ran = np.maximum(columns["on_cpu_ns"][0], columns["on_cpu_estimate_ns"][0])
    order = np.lexsort((-np.append(length, 0)[stall], -ran, ~scene.launching))
    caller = scene.host_trace.activity.api_calls.rows.thread
    launches = {
        device.key: np.bincount(scene.axis.lane(caller[rows]), minlength=len(states.known))
        for device, rows in zip(scene.devices, scene.launched, strict=True)
    }
    return [_row(scene, states, columns, launches, int(stall[lane]), lane) for lane in order[:MOST_THREADS].tolist()]


def _columns(scene: HostScene, states: ThreadStates) -> _Columns:
    """What the states and the calls of each lane come to, in ns or counts."""
    known, running, away = states.known, states.running, states.away
    count, lost = len(known), away.take(states.preempted)
    on_cpu, off_cpu = (summed(each.lane, each.end - each.start, count) for each in (running, away))
    voluntary, involuntary, noted = _by_state(states, count)
    estimate = _estimates(scene, known)
    api_ns, api_calls = _api(scene)
    sync = union(scene.axis.place(scene.sync.lane, scene.sync.spans))
    every, traced = np.full((2, count), [[True], [len(scene.host_trace.activity.api_calls.rows) > 0]])
    return {
        "api_calls": (api_calls, every),
        "sync_calls": (np.bincount(scene.sync.lane, minlength=count), every),
        "on_cpu_ns": (on_cpu, known),
        "off_cpu_ns": (off_cpu, known),
        "unknown_ns": (scene.span - on_cpu - off_cpu, known),
        "preempted_ns": (summed(lost.lane, lost.end - lost.start, count), known),
        "preemptions": (np.bincount(lost.lane, minlength=count), known),
        "on_cpu_estimate_ns": (estimate, ~known & (estimate != NOTHING)),
        "switches": (np.bincount(states.left_lane, minlength=count), known),
        "voluntary": (voluntary, known & noted),
        "involuntary": (involuntary, known & noted),
        "cpus": (_cpus(running, count), known),
        "migrations": (states.moved, known),
        "api_ns": (api_ns, traced),
        "sync_ns": (coverage(sync, scene.os_calls.lanes(scene.low, scene.high)), traced),
        "os_ns": (scene.os_calls.ns(scene.low, scene.high), scene.os_traced),
    }


def _api(scene: HostScene) -> tuple[IntArray, IntArray]:
    """The time of each lane in CUDA calls, and the number of these."""
    found = np.zeros((2, len(scene.axis.threads)), dtype=np.int64)
    for calls in scene.api:
        lane = scene.axis.lane(calls.axis.threads)
        mine = lane >= 0
        found[0, lane[mine]] = calls.ns(scene.low, scene.high)[mine]
        found[1, lane[mine]] = calls.count(scene.low, scene.high)[mine]
    return found[0], found[1]


def _by_state(states: ThreadStates, count: int) -> tuple[IntArray, IntArray, BoolArray]:
    """How often each lane left a CPU of its own will, and how often not; and whether the scheduler noted why nearly
    each time."""
    left, state = states.left_lane, states.state
    pushed = np.bincount(left[state == ThreadState.RUNNING], minlength=count)
    noted = np.bincount(left[np.isin(state, NOTED)], minlength=count)
    return noted - pushed, pushed, (noted > 0) & (10 * noted >= 9 * np.bincount(left, minlength=count))


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


def _row(
    scene: HostScene, states: ThreadStates, columns: _Columns, launches: dict[str, IntArray], stall: int, lane: int
) -> HostThread:
    """One lane; what is not known of it is None. `launches` is how many calls of each launched work on a device."""
    thread = int(scene.axis.threads[lane])
    told: dict[str, Any] = {
        name: int(values[lane]) if known[lane] else None for name, (values, known) in columns.items()
    }
    return HostThread(
        pid=pid_of(thread),
        tid=tid_of(thread),
        name=scene.host_trace.thread_names.get(thread),
        process=scene.host_trace.program(process_of(thread)),
        launches={key: int(times[lane]) for key, times in launches.items() if times[lane]},
        worst_stall=_stall(scene, states, stall),
        **told,
    )


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
