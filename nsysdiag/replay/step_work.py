"""Which operations are work of the steps, and which run at a pace of their own meanwhile.

```
thread     [step 1    ][step 2    ][step 3    ]      its operations begin the steps: they are work of the steps,
stream 7   [==)  [=)   [==)  [=)   [==)  [=)         and so is all in their streams
stream 9   [====)[====)[====)[====)[====)[==         of another thread or process: not of the steps, unless they wait
```
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.identity import process_of
from nsysdiag.replay.stretch import Stretch
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Class, Work

REGULAR = 0.9
"""Share of the steps that hold the same number of operations of another thread: it may belong to them."""


class StepWork(IntEnum):
    """What an operation is to the steps."""

    BESIDE = 0
    MAYBE = 1
    OWN = 2


def step_work(work: Work, thread: IntArray, stretch: Stretch, kernel: IntArray) -> IntArray:
    """The `StepWork` of each operation; `thread` launched it (-1: unknown), `kernel` is the code of its name.

    The steps are those of the threads that launched the operations with which they begin. What others launch is work of
    the steps where it is in a stream of these; or on another device, by the same process, by one that does the same
    work, or by one that communicates. Where another thread of the process does as much in each step, it may be."""
    first = _begin_steps(work, thread, stretch)
    part = np.full(len(work), StepWork.OWN)
    if not stretch.stepwise or not first.any():
        return part
    mine = np.isin(thread, thread[first]) | (thread < 0)
    mine |= np.isin(work.stream, work.stream[mine & (thread >= 0)])
    process = process_of(thread)
    kin = np.isin(process, process[np.isin(kernel, kernel[first]) | (work.kind == Class.COMMUNICATION)])
    elsewhere = ~np.isin(work.device, work.device[mine])
    part[~mine & ~(elsewhere & (kin | np.isin(process, process[first])))] = StepWork.BESIDE
    for each in np.unique(thread[(part == StepWork.BESIDE) & np.isin(process, process[first])]).tolist():
        its = (thread == each) & (part == StepWork.BESIDE)
        if _regular(work.start[its], stretch, none=False):
            part[its] = StepWork.MAYBE
    return part


def at_own_pace(work: Work, thread: IntArray, stretch: Stretch, woken: Wakes) -> IntArray:
    """The `StepWork` of operations that threads of the process launch at a pace of their own, and OWN for all others.
    It is none of the steps where it is another number in each, and MAYBE where such a thread meets others at locks
    only. `thread` launched each, -1 where that is not known. A thread that ends a wait of another in most steps, or
    waits for one, is tied to it, whatever it launches; and so is one that communicates."""
    first = _begin_steps(work, thread, stretch)
    found = np.full(len(work), StepWork.OWN)
    if not stretch.stepwise or not first.any():
        return found
    process, steps = process_of(thread), len(stretch.borders) - 1
    locks = woken.lock > 0
    tied, meets = _in_most(woken.take(~locks), steps), np.union1d(woken.waker[locks], woken.thread[locks])
    tied = np.union1d(tied, thread[work.kind == Class.COMMUNICATION])
    mine = (thread >= 0) & np.isin(process, process[first])
    for each in np.setdiff1d(thread[mine], np.union1d(thread[first], tied)).tolist():
        its = thread == each
        if not _regular(work.start[its], stretch):
            found[its] = StepWork.BESIDE
        elif each in meets:
            found[its] = StepWork.MAYBE
    return found


def _begin_steps(work: Work, thread: IntArray, stretch: Stretch) -> BoolArray:
    """The operations with which steps begin. Another thread may launch one that starts at the same time by chance.
    Where some threads begin a part of the steps each, and most together, the others do not count."""
    found: BoolArray = np.isin(work.start, stretch.borders[:-1]) & (thread >= 0)
    threads, count = np.unique(thread[found], return_counts=True)
    steps = len(stretch.borders) - 1
    often = count >= (1 - REGULAR) * steps
    return found & np.isin(thread, threads[often]) if 2 * count[often].sum() >= steps else found


def _in_most(woken: Wakes, steps: int) -> IntArray:
    """The threads that end a wait, or wait for another thread, in most of so many steps."""
    counted = (np.unique(each, return_counts=True) for each in (woken.waker, woken.thread))
    return np.concatenate([threads[times >= REGULAR * steps] for threads, times in counted])


def _regular(times: IntArray, stretch: Stretch, *, none: bool = True) -> bool:
    """Whether in most steps there are as many of these times; if that is none, the answer is
    `none`."""
    step = np.searchsorted(stretch.borders, times, side="right") - 1
    steps = len(stretch.borders) - 1
    count = np.bincount(step[(step >= 0) & (step < steps)], minlength=steps)
    usual = int(np.bincount(count).argmax())
    return bool(np.mean(count == usual) >= REGULAR) and (none or usual > 0)
