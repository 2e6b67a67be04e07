"""When the threads were on a CPU and when off it, when they could have run and had none, and the table of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_before, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.arrays.spill import laid
from nsysdiag.causes.sync import CALLS as SYNC_CALLS
from nsysdiag.causes.thread_states import NON_WAITS
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity, place_api_calls, place_os_calls
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.rows import NamedRows, Rows, ThreadAxis
from nsysdiag.events.scheduling import SwitchRows, maybe_ready, switches_by_thread
from nsysdiag.host.facts import HostThread, Stall
from nsysdiag.trace.enums import ThreadState
from nsysdiag.wakeups.loaders import HostTrace

# All threads of the processes that use GPUs, with what they called: what the tables of the host are made from.


class Calls(Struct, frozen=True):
    """The outermost calls of some threads on their lanes."""

    axis: ThreadAxis
    spans: Intervals
    name: IntArray
    names: list[str]

    @classmethod
    def of(cls, axis: ThreadAxis, lane: NamedRows) -> Calls:
        """The outermost calls on a lane."""
        outer = lane if lane.outermost.all() else lane.take(lane.outermost)
        return cls(axis, outer.spans, outer.name, outer.names)

    def lanes(self, low: int, high: int) -> Intervals:
        """The time [low, high) of each thread."""
        rank = np.arange(len(self.axis.threads), dtype=np.int64)
        return self.axis.place(rank, Intervals(np.full(len(rank), low), np.full(len(rank), high)))

    def ns(self, low: int, high: int) -> IntArray:
        """How long each thread was inside one of them during [low, high)."""
        return coverage(union(self.spans), self.lanes(low, high))

    def count(self, low: int, high: int) -> IntArray:
        """How many of them each thread began in [low, high)."""
        lanes = self.lanes(low, high)
        return np.searchsorted(self.spans.start, lanes.end) - np.searchsorted(self.spans.start, lanes.start)

    def at(self, thread: IntArray, time: IntArray) -> IntArray:
        """The call that each thread is in at a time, -1 if it is in none."""
        rank = self.axis.lane(thread)
        if len(self.spans) == 0 or len(rank) == 0:
            return np.full(len(rank), -1, dtype=np.int64)
        position = self.axis.position(np.maximum(rank, 0), time)
        row = nearest_before(self.spans.start, position)
        return np.where((rank >= 0) & (row >= 0) & (self.spans.end[row] > position), row, -1)


class SyncCalls(Struct, frozen=True):
    """Synchronizations that begin in the range, not nested: `lane` on the axis of all threads, times in ns, `row` in
    the table of API calls."""

    lane: IntArray
    spans: Intervals
    row: IntArray


class HostScene(Struct, frozen=True):
    """`axis` has a lane for every thread with any evidence, of the processes that worked on `devices`; without nsys's
    own. The range [low, high) is what is reported. `launched` holds for each device the calls that launched its
    operations in the range, even calls before it (rows of the table of API calls). `launching` marks the lanes of the
    threads that made them; `os_traced` those of processes whose OS calls were captured."""

    host_trace: HostTrace
    devices: list[DeviceTimeline]
    low: int
    high: int
    axis: ThreadAxis
    api: tuple[Calls, Calls]
    os_calls: Calls
    sync: SyncCalls
    launched: list[IntArray]
    launching: BoolArray
    os_traced: BoolArray

    @property
    def span(self) -> int:
        return self.high - self.low


def host_scene(
    host_trace: HostTrace, host: HostActivity, devices: list[DeviceTimeline], low: int, high: int
) -> HostScene:
    """The threads over [low, high); `host` is what is placed already of those that launch work."""
    activity, tables, latest = host_trace.activity, host_trace.tables, host_trace.activity.latest_ns
    calls = activity.api_calls.rows
    processes = distinct_values(np.concatenate([distinct_values(device.operations.process) for device in devices]))
    launched = [_launched(device, len(calls), low, high) for device in devices]
    axis = ThreadAxis.over(
        _threads(host_trace, processes, launched), host.axis.origin, host.axis.origin + host.axis.span
    )
    rest = axis.threads[host.axis.lane(axis.threads) < 0]
    others = ThreadAxis.over(rest, axis.origin, axis.origin + axis.span)
    launching = np.zeros(len(axis.threads), dtype=np.bool_)
    for rows in launched:
        launching[axis.lane(calls.threads_at(rows))] = True
    return HostScene(
        host_trace=host_trace,
        devices=devices,
        low=low,
        high=high,
        axis=axis,
        api=(Calls.of(host.axis, host.api), Calls.of(others, place_api_calls(others, activity.api_calls, latest))),
        os_calls=Calls.of(axis, place_os_calls(axis, tables, latest)[0]),
        sync=_sync_calls(host_trace, axis, low, high),
        launched=launched,
        launching=launching,
        os_traced=np.isin(process_of(axis.threads), distinct_values(process_of(tables.os_calls.thread))),
    )


def _threads(host_trace: HostTrace, processes: IntArray, launched: list[IntArray]) -> IntArray:
    """Every thread of `processes` that any table has an event of. A thread of nsys itself is one only if it launched
    work: then it is none."""
    tables, calls = host_trace.tables, host_trace.activity.api_calls.rows
    columns = (tables.switches.thread, tables.os_calls.thread, tables.samples.thread)
    found = distinct_values(np.concatenate([calls.threads, *map(distinct_values, columns)]))
    found = found[np.isin(process_of(found), processes) & (tid_of(found) != 0)]
    launchers = [*map(calls.threads_at, launched)]
    kept = ~np.isin(found, host_trace.nsys_threads)
    return distinct_values(np.concatenate([found[kept], *launchers]))


def _launched(device: DeviceTimeline, calls: int, low: int, high: int) -> IntArray:
    """The calls that launched what ran on a device in [low, high), each once."""
    operations = device.operations
    ran = (operations.start < high) & (operations.end > low)
    seen = np.zeros(calls + 1, dtype=np.bool_)
    # -1, an operation without a launch row, marks the place behind the last.
    launch = device.launch if ran.all() else device.launch[ran]
    seen[launch.astype(np.intp)] = True  # by 64 bits in a third of the time
    return np.flatnonzero(seen[:-1])


def _sync_calls(host_trace: HostTrace, axis: ThreadAxis, low: int, high: int) -> SyncCalls:
    calls, row = host_trace.activity.api_calls.rows, host_trace.activity.api_calls.called(SYNC_CALLS)
    row = row[(calls.start[row] >= low) & (calls.start[row] < high)]
    lane = axis.lane(calls.thread[row])
    row, lane = row[lane >= 0], lane[lane >= 0]
    spans = Intervals(calls.start[row], calls.end[row])
    outer = outermost(spans, lane)
    return SyncCalls(lane[outer], spans[outer], row[outer])


NOTED = (ThreadState.RUNNING, ThreadState.INTERRUPTIBLE, ThreadState.UNINTERRUPTIBLE)


class CpuStretches(Rows, frozen=True):
    """Times on or off a CPU inside the range, by lane, then time; `cpu` is the one that is used or was left. A stretch
    of no length is outside of the range but for its beginning."""

    lane: IntArray
    start: IntArray
    end: IntArray
    cpu: IntArray

    @property
    def spans(self) -> Intervals:
        return Intervals(self.start, self.end)


class ThreadStates(Struct, frozen=True):
    """The scheduling of every lane in the range. `running` and `away` are parts of the lane's time; the rest is
    unknown. Unknown is the time before the thread's first event if that puts it on a CPU: it may not have begun yet. So
    is the time after its last event if that takes it off.

    ```
    events       in      out        in   out
    unknown  ....                           ........
    running      [-------)          [----)
    away                 [----------)
    ```

    `preempted` marks stretches of `away` in which the thread was ready to run; `crowded` those in which others had the
    CPU that it left; `held` those with both. `left` are the times at which threads went off a CPU, with their lanes;
    `state` is the scheduler state then. `moved` counts how often each lane continued on another CPU.
    """

    known: BoolArray
    running: CpuStretches
    away: CpuStretches
    preempted: BoolArray
    crowded: BoolArray
    held: BoolArray
    left: IntArray
    left_lane: IntArray
    state: IntArray
    moved: IntArray

    @property
    def scheduled(self) -> bool:
        """Does the trace have scheduling events of any of the lanes?"""
        return bool(self.known.any())


def thread_states(scene: HostScene) -> ThreadStates:
    """What the scheduling events say of every lane of the scene, in one pass."""
    mine, lane = laid(switches_by_thread(scene.axis, scene.host_trace.tables.switches))
    count, low, high = len(scene.axis.threads), scene.low, scene.high
    last = np.append(lane[1:] != lane[:-1], True)[: len(lane)]
    until = np.where(last, high, np.append(mine.time[1:], 0)[: len(lane)])
    inside = (until > np.maximum(mine.time, low)) & (mine.time < high) & (low < high)
    gone = np.flatnonzero(~mine.comes_in & ~last & inside).astype(np.int32)
    whole = Intervals(mine.time[gone], until[gone])
    running = laid(_running(mine, lane, until, inside, low, high))
    del until, last, inside  # before as many rows are made again: a trace of millions of switches has to fit
    begin, end = np.clip(whole.start, low, high), np.clip(whole.end, low, high)
    away = laid(CpuStretches(lane[gone], begin, end, mine.cpu[gone]))
    held = scene.host_trace.tables.cpus.held(away.cpu, whole)
    runnable = mine.state[gone] == ThreadState.RUNNING
    doubtful = np.flatnonzero(held & ~runnable & maybe_ready(whole))
    preempted = runnable.copy()
    preempted[doubtful] = ~_may_wait(scene, away.take(doubtful))
    left = np.flatnonzero(~mine.comes_in & (mine.time >= low) & (mine.time < high))
    known = np.zeros(count, dtype=np.bool_)
    known[lane] = True
    return ThreadStates(
        known=known,
        running=running,
        away=away,
        preempted=preempted,
        crowded=held,
        held=held & preempted,
        left=mine.time[left],
        left_lane=lane[left],
        state=mine.state[left],
        moved=_moved(mine, lane, low, high, count),
    )


def _running(mine: SwitchRows, lane: IntArray, until: IntArray, inside: BoolArray, low: int, high: int) -> CpuStretches:
    """From each coming in `until` the next event, for those `inside` the range; and from the start of the range to a
    first event that goes out."""
    first = np.append(True, lane[1:] != lane[:-1])[: len(lane)]
    before = first & ~mine.comes_in & (mine.time > low) & (low < high)
    rows = np.flatnonzero(before | (mine.comes_in & inside)).astype(np.int32)
    before = before[rows]
    begin, end = np.clip(mine.time[rows], low, high), np.clip(until[rows], low, high)
    return CpuStretches(lane[rows], np.where(before, low, begin), np.where(before, begin, end), mine.cpu[rows])


def _may_wait(scene: HostScene, away: CpuStretches) -> BoolArray:
    """True if a thread off the CPU may be waiting: it is in an OS call that can wait; or its OS calls were not
    captured, and it is in a CUDA call, which may sleep until the device is done.

    A thread off the CPU neither makes calls nor returns from them, so the middle of the time represents all of it.
    """
    threads, middle = scene.axis.threads[away.lane], (away.start + away.end) // 2
    os_calls = scene.os_calls
    row = os_calls.at(threads, middle)
    waits = np.array([NON_WAITS.fullmatch(name) is None for name in os_calls.names] + [False], dtype=np.bool_)
    name = np.append(os_calls.name, len(os_calls.names))
    in_api = (scene.api[0].at(threads, middle) >= 0) | (scene.api[1].at(threads, middle) >= 0)
    return waits[name[row]] | (in_api & ~scene.os_traced[away.lane])


def _moved(mine: SwitchRows, lane: IntArray, low: int, high: int, count: int) -> IntArray:
    """How often each lane came in on another CPU than the one that it had left."""
    moved = (lane[1:] == lane[:-1]) & mine.comes_in[1:] & ~mine.comes_in[:-1] & (mine.cpu[1:] != mine.cpu[:-1])
    moved &= (mine.time[1:] >= low) & (mine.time[1:] < high)
    return np.bincount(lane[1:][moved], minlength=count)


def summed(lane: IntArray, values: IntArray, count: int) -> IntArray:
    """The sum of the values of each lane; `lane` is sorted."""
    borders = np.searchsorted(lane, np.arange(count + 1))
    total = np.append(np.int64(0), np.cumsum(values))
    return total[borders[1:]] - total[borders[:-1]]


# The table of threads: those that launch work first, then those that ran most.

MOST_THREADS = 50
"""Threads in the table, those that launch work first: it bounds the size of a report."""
NOTHING = -1
"""The row or the time of a lane without one: both are at least 0."""
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
    every = np.full(count, True)
    traced = np.full(count, len(scene.host_trace.activity.api_calls.rows) > 0)
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
    pairs = distinct_values(running.lane * max(len(numbers), 1) + cpu)
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
    tables, result = scene.host_trace.tables, np.full(len(known), NOTHING, dtype=np.int64)
    rows, steps = tables.samples, tables.sample_steps
    if known.all() or len(rows) == 0:
        return result
    threads, thread = distinct(rows.thread)
    period = np.zeros(len(threads), dtype=np.int64)
    period[thread[steps.row]] = steps.period
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
