"""Parts next to steps that do their work: a step that is cut, an evaluation, or what the user did not name."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals, coverage
from nsysdiag.events.operations import Category
from nsysdiag.phases.signal import DeviceSignal, StepLoop, launched_in, operation_keys
from nsysdiag.phases.steady import REPEATED_SHARE

# Short parts at the end of a phase, or between two, that do its work: a step that is cut, or an evaluation.
#
# ```
# steps    |==A==B..|==A==B..|==A==B..|==A==B|          the last one is cut: no teardown
# phases   |         steady           | steady |
# ```

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


# Where the user names the steps, only these are judged.
#
# ```
# ranges   |iter 1|iter 2|iter 3|iter 4|.......|iter 5|iter 6|      the steps are `iter 3` and `iter 5`
# phases   |   outside   |steady|      outside |steady|outside
# ```

NEARLY_ALL = 0.95
"""Of a phase: where steps take so much of it, what is left is a part of it."""


def is_like(part: Span, steps: list[Span], signals: list[DeviceSignal]) -> bool:
    """Whether the operations in `part` are mostly kernels with the names of those in the steps. How long the devices
    are idle in it does not count."""
    of_steps = [np.sum([_of_names(part, each, signal) for signal in signals], axis=0) for each in steps]
    return any(total and same >= REPEATED_SHARE * total for same, total, _, _ in of_steps)


def named_spans(steady: list[Span], loops: list[StepLoop]) -> list[Span]:
    """The time of the steps that the user named in each steady phase, or of all of them where none holds any: the
    phase itself where they are nearly all of it."""
    found: list[Span] = []
    for start, end in steady:
        inside = [loop.starts[(loop.starts >= start) & (loop.starts <= end)] for loop in loops]
        spans = [(int(borders[0]), int(borders[-1])) for borders in inside if len(borders) > 1]
        nearly = sum(behind - begin for begin, behind in spans) >= NEARLY_ALL * (end - start)
        found += [(start, end)] if nearly else spans
    return found or [(int(loop.starts[0]), int(loop.starts[-1])) for loop in loops if len(loop)]
