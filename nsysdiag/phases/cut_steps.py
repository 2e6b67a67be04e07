"""Steps that an end of the trace cuts: the first of a loop may lack work, the last work or the idle time after it.

```
trace           |---------------------------------------------|
steps      |==A==B..|==A==B..|==A==B..|==A==B..|==A==B..|==A==|
with all work       |        |        |        |        |          four
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage
from nsysdiag.phases.signal import DeviceSignal, Loop

SAME_WORK = 0.75
"""Of the operations that the other steps have, and of their time: a step with less of both is cut. A last one that only
lacks what comes right before the next step, such as its upload, is not."""
MISSING = 0.05
"""Of the time of all steps: a last step that ends with its work may be so much shorter than the others and count."""


def with_all_work(borders: IntArray, loop: Loop, signals: list[DeviceSignal]) -> IntArray:
    """The borders of the steps that have all of their work; `borders` are those of steps of `loop`."""
    first, last = _outermost(borders, loop)
    lacks = np.ones(len(borders) - 1, np.bool_)
    for work in (_operations(borders, signals), _busy_ns(borders, signals)):
        lacks &= work < SAME_WORK * _of_the_others(work, first=first, last=last)
    return borders[int(first and lacks[0]) : len(borders) - int(last and lacks[-1])]


def with_their_end(borders: IntArray, loop: Loop) -> IntArray:
    """The borders of the steps without the last one where the window of the devices ends long before that step does."""
    first, last = _outermost(borders, loop)
    length = np.diff(borders)
    missing = _of_the_others(length, first=first, last=last) - int(length[-1])
    return borders[: len(borders) - int(last and missing > MISSING * int(length.sum()))]


def _outermost(borders: IntArray, loop: Loop) -> tuple[bool, bool]:
    """Whether the first and the last step are those of the loop. Inside it each ends where the next one begins, and a
    single step has no others to be compared with."""
    several = len(borders) > 2
    return several and bool(borders[0] == loop.starts[0]), several and bool(borders[-1] == loop.starts[-1])


def _of_the_others(values: IntArray, *, first: bool, last: bool) -> float:
    """The median of the steps that cannot be cut; of all where there are no such."""
    inside = values[int(first) : len(values) - int(last)]
    return float(np.median(inside if len(inside) else values))


def _busy_ns(borders: IntArray, signals: list[DeviceSignal]) -> IntArray:
    """How long the devices work in each step, a sum over them."""
    steps = Intervals(borders[:-1], borders[1:])
    busy: IntArray = np.sum([coverage(signal.split.busy, steps) for signal in signals], axis=0)
    return busy


def _operations(borders: IntArray, signals: list[DeviceSignal]) -> IntArray:
    """How many operations of all devices begin in each step."""
    count = np.zeros(len(borders) - 1, np.int64)
    for signal in signals:
        launched = signal.device.running & ~signal.device.operations.migration
        count += np.diff(np.searchsorted(signal.device.operations.start[launched], borders))
    return count
