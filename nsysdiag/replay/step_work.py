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

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.identity import process_of
from nsysdiag.replay.stretch import Stretch
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
    first = np.isin(work.start, stretch.borders[:-1]) & (thread >= 0)
    part = np.full(len(work), StepWork.OWN)
    if not stretch.stepwise or not first.any():
        return part
    mine = np.isin(thread, thread[first]) | (thread < 0)
    mine |= np.isin(work.stream, work.stream[mine & (thread >= 0)])
    process = process_of(thread)
    kin = np.isin(process, process[np.isin(kernel, kernel[first]) | (work.kind == Class.COMMUNICATION)])
    elsewhere = ~np.isin(work.device, work.device[mine])
    part[~mine & ~(elsewhere & (kin | np.isin(process, process[first])))] = StepWork.BESIDE
    step = np.searchsorted(stretch.borders, work.start, side="right") - 1
    inside = (step >= 0) & (step < len(stretch.borders) - 1)
    for each in np.unique(thread[(part == StepWork.BESIDE) & np.isin(process, process[first])]).tolist():
        its = (thread == each) & (part == StepWork.BESIDE)
        count = np.bincount(step[its & inside], minlength=len(stretch.borders) - 1)
        usual = np.bincount(count).argmax()
        if usual and np.mean(count == usual) >= REGULAR:
            part[its] = StepWork.MAYBE
    return part
