"""When the threads were on a CPU and when off it, and when they could have run and had none."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_before, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes.sync import CALLS as SYNC_CALLS
from nsysdiag.causes.thread_states import NON_WAITS
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity, place_api_calls, place_os_calls
from nsysdiag.events.identity import process_of, tid_of
from nsysdiag.events.rows import NamedRows, Rows, ThreadAxis, distinct_values
from nsysdiag.events.scheduling import SwitchRows, maybe_ready, switches_by_thread
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
        """The call that each thread is in at a time, -1 where it is in none."""
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
    processes = np.unique(np.concatenate([distinct_values(device.operations.process) for device in devices]))
    launched = [_launched(device, len(calls), low, high) for device in devices]
    axis = ThreadAxis.over(
        _threads(host_trace, processes, launched), host.axis.origin, host.axis.origin + host.axis.span
    )
    rest = axis.threads[host.axis.lane(axis.threads) < 0]
    others = ThreadAxis.over(rest, axis.origin, axis.origin + axis.span)
    launching = np.zeros(len(axis.threads), dtype=np.bool_)
    for rows in launched:
        launching[axis.lane(distinct_values(calls.thread[rows]))] = True
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
    columns = (tables.switches.thread, tables.os_calls.thread, tables.samples.thread, calls.thread)
    found = np.unique(np.concatenate([distinct_values(column) for column in columns]))
    found = found[np.isin(process_of(found), processes) & (tid_of(found) != 0)]
    launchers = [distinct_values(calls.thread[rows]) for rows in launched]
    kept = ~np.isin(found, host_trace.nsys_threads)
    return np.unique(np.concatenate([found[kept], *launchers]))


def _launched(device: DeviceTimeline, calls: int, low: int, high: int) -> IntArray:
    """The calls that launched what ran on a device in [low, high), each once."""
    operations = device.operations
    ran = (operations.start < high) & (operations.end > low)
    seen = np.zeros(calls + 1, dtype=np.bool_)
    # -1, an operation without a launch row, marks the place behind the last.
    seen[device.launch if ran.all() else device.launch[ran]] = True
    return np.flatnonzero(seen[:-1])


def _sync_calls(host_trace: HostTrace, axis: ThreadAxis, low: int, high: int) -> SyncCalls:
    calls, names = host_trace.activity.api_calls.rows, host_trace.activity.api_calls.names
    wanted = np.append(named_like(names, SYNC_CALLS), False)
    row = np.flatnonzero(wanted[calls.name])
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
    mine, lane = switches_by_thread(scene.axis, scene.host_trace.tables.switches)
    count, low, high = len(scene.axis.threads), scene.low, scene.high
    last = np.append(lane[1:] != lane[:-1], True)[: len(lane)]
    until = np.where(last, high, np.append(mine.time[1:], 0)[: len(lane)])
    begin, end = np.clip(mine.time, low, high), np.clip(until, low, high)
    gone = np.flatnonzero(~mine.comes_in & ~last & (end > begin))
    whole = Intervals(mine.time[gone], until[gone])
    del until, last  # before as many rows are made again: a trace of millions of switches has to fit
    away = CpuStretches(lane[gone], begin[gone], end[gone], mine.cpu[gone])
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
        running=_running(mine, lane, begin, end, low),
        away=away,
        preempted=preempted,
        crowded=held,
        held=held & preempted,
        left=mine.time[left],
        left_lane=lane[left],
        state=mine.state[left],
        moved=_moved(mine, lane, low, high, count),
    )


def _running(mine: SwitchRows, lane: IntArray, begin: IntArray, end: IntArray, low: int) -> CpuStretches:
    """From each coming in to the next event; and from the start of the range to a first event that goes out."""
    first = np.append(True, lane[1:] != lane[:-1])[: len(lane)]
    before = np.flatnonzero(first & ~mine.comes_in & (begin > low))
    during = np.flatnonzero(mine.comes_in & (end > begin))
    rows = np.concatenate((before, during))
    start = np.concatenate((np.full(len(before), low, dtype=np.int64), begin[during]))
    over = np.concatenate((begin[before], end[during]))
    if len(before):
        order = np.lexsort((start, lane[rows]))
        rows, start, over = rows[order], start[order], over[order]
    return CpuStretches(lane[rows], start, over, mine.cpu[rows])


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
    may_wait: BoolArray = waits[name[row]] | (in_api & ~scene.os_traced[away.lane])
    return may_wait


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
