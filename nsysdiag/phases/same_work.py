"""Short parts at the end of a phase, or between two, that do its work: a step that is cut, or an evaluation.

```
steps    |==A==B..|==A==B..|==A==B..|==A==B|          the last one is cut: no teardown
phases   |         steady           | steady |
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage
from nsysdiag.events.operations import Category
from nsysdiag.phases.names import launched_in, operation_keys
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.phases.steady import REPEATED_SHARE

SAME_WORK = 0.5
"""Of the busy share of a steady phase: with so much of the same work a part is a phase that repeats."""
FEWEST_NAMES = 2
"""One kernel name alone may be the end of the last step."""

Span = tuple[int, int]
"""From and to, in ns."""


def does_the_work_of(part: Span, steady: Span, signals: list[DeviceSignal]) -> bool:
    """Whether the devices work for about as much of `part` as of `steady`, mostly in kernels of the same names, several
    where there are several: neither a copy of the result nor a last collective shows that work goes on."""
    share, usual = (_busy_share(each, signals) for each in (part, steady))
    if not usual or share < SAME_WORK * usual:
        return False
    same, total, names, known = np.sum([_of_names(part, steady, signal) for signal in signals], axis=0).tolist()
    several = names >= min(len(signals) * FEWEST_NAMES, known)
    return bool(total) and several and same >= REPEATED_SHARE * total


def _busy_share(span: Span, signals: list[DeviceSignal]) -> float:
    """Of the time of all devices in it."""
    length = (span[1] - span[0]) * len(signals)
    return sum(int(coverage(each.split.busy, Intervals.of([span])).sum()) for each in signals) / max(length, 1)


def _of_names(part: Span, steady: Span, signal: DeviceSignal) -> IntArray:
    """The time of the kernels in `part` whose names are in `steady` as well, and of all operations in it, in ns; how
    many names these are, and how many `steady` has."""
    device = signal.device
    operations, keys, inside = device.operations, operation_keys(device), launched_in(device, *part)
    kernel = np.isin(operations.category, (Category.KERNEL, Category.GRAPH))
    known = np.unique(keys[kernel & launched_in(device, *steady)])
    time = np.minimum(operations.end[inside], part[1]) - np.maximum(operations.start[inside], part[0])
    same = np.isin(keys[inside], known)
    return np.array([time[same].sum(), time.sum(), len(np.unique(keys[inside][same])), len(known)], np.int64)
