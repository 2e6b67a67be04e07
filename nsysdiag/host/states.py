"""When the threads were on a CPU and when off it, and when they could have run and had none."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.causes.off_cpu import NON_WAITS
from nsysdiag.events.rows import Rows
from nsysdiag.events.scheduling import SwitchRows, maybe_ready, switches_by_thread
from nsysdiag.host.threads import HostScene
from nsysdiag.trace.enums import ThreadState

NOTED = (ThreadState.RUNNING, ThreadState.INTERRUPTIBLE, ThreadState.UNINTERRUPTIBLE)


class Stretches(Rows, frozen=True):
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
    running: Stretches
    away: Stretches
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
    away = Stretches(lane[gone], begin[gone], end[gone], mine.cpu[gone])
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


def _running(mine: SwitchRows, lane: IntArray, begin: IntArray, end: IntArray, low: int) -> Stretches:
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
    return Stretches(lane[rows], start, over, mine.cpu[rows])


def _may_wait(scene: HostScene, away: Stretches) -> BoolArray:
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
