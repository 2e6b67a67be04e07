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
    """Whether the devices work for about as much of `part` as of `steady`, mostly in operations of the same names.
    About as much of it is in kernels, of several names where there are several: neither a copy of the result nor a
    last collective shows that work goes on."""
    share, usual = (_busy_share(each, signals) for each in (part, steady))
    if not usual or share < SAME_WORK * usual:
        return False
    kernels, same, total, names, known = _in_both(part, steady, signals)
    usually, _, usual_total, _, _ = _in_both(steady, steady, signals)
    several = names >= min(len(signals) * FEWEST_NAMES, known)
    as_much = kernels * usual_total >= SAME_WORK * usually * total
    return bool(total) and several and as_much and same >= REPEATED_SHARE * total


def _busy_share(span: Span, signals: list[DeviceSignal]) -> float:
    """Of the time of all devices in it."""
    length = (span[1] - span[0]) * len(signals)
    return sum(int(coverage(each.split.busy, Intervals.of([span])).sum()) for each in signals) / max(length, 1)


def _in_both(part: Span, steady: Span, signals: list[DeviceSignal]) -> list[int]:
    """The time in `part`, in ns: of kernels whose names are in `steady` as well, of all such operations, and of all.
    Then how many names these kernels have, and those in `steady`."""
    found: list[int] = np.sum([_of_names(part, steady, signal) for signal in signals], axis=0).tolist()
    return found


def _of_names(part: Span, steady: Span, signal: DeviceSignal) -> IntArray:
    device = signal.device
    operations, keys, inside = device.operations, operation_keys(device), launched_in(device, *part)
    kernel, usual = np.isin(operations.category, (Category.KERNEL, Category.GRAPH)), launched_in(device, *steady)
    known = np.unique(keys[kernel & usual])
    time = np.minimum(operations.end[inside], part[1]) - np.maximum(operations.start[inside], part[0])
    named, same = np.isin(keys[inside], known), np.isin(keys[inside], np.unique(keys[usual]))
    names = len(np.unique(keys[inside][named])), len(known)
    return np.array([time[named].sum(), time[same].sum(), time.sum(), *names], np.int64)


# Where the user names the steps, only these are judged.
#
# ```
# ranges   |iter 1|iter 2|iter 3|iter 4|.......|iter 5|iter 6|      the steps are `iter 3` and `iter 5`
# phases   |   outside   |steady|      outside |steady|outside
# ```

NEARLY_ALL = 0.95
"""Of a phase: where steps take so much of it, what is left is a part of it."""


def is_like(part: Span, steps: list[Span], signals: list[DeviceSignal]) -> bool:
    """Whether the operations in `part` are mostly of names in the steps, and some are kernels. How long the devices are
    idle in it does not count."""
    found = (_in_both(part, each, signals) for each in steps)
    return any(kernels and same >= REPEATED_SHARE * total for kernels, same, total, _, _ in found)


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
