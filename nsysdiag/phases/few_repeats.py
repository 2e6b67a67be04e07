"""Three or four repeats of the same operations: too few for a loop, but enough to find the start of each, and a warm-up
step.

```
operations   u u a b c d . . . a b c d a b c d
repeats          |--warm-up----|-------|-------|
judged                         |---------------|
```
"""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.phases.names import launched_in, operation_keys
from nsysdiag.phases.steady import FEWEST_REPEATS, REPEATED, WARM_UP_SLOWER


def same_sequences(device: DeviceTimeline, lo: int, hi: int) -> IntArray | None:
    """The borders in ns of three or four repeats with the same operations in the same order, among those of `device` in
    [lo, hi): the start of each, and the end of the last operation of the last one. None without such repeats."""
    rows = np.flatnonzero(launched_in(device, lo, hi))
    rows = rows[np.argsort(device.operations.start[rows], kind="stable")]
    start, end = device.operations.start[rows], device.operations.end[rows]
    keys = operation_keys(device)[rows]
    at = _once_a_repeat(keys, end - start)
    if not len(at):
        return None
    period = int(at[1] - at[0])
    first, behind = _run_around(int(at[0]), keys[:-period] == keys[period:])
    repeats = (behind - first + period) // period
    if not REPEATED <= repeats < FEWEST_REPEATS:
        return None
    first += _after_most_idle(start, end, first, period, repeats, (behind - first) % period)
    last = first + repeats * period
    return np.append(start[first:last:period], end[first:last].max())


def without_warm_up(borders: IntArray) -> IntArray:
    """The borders of repeats without the first one where it takes 1.5 times as long as the others, which are alike."""
    first, *others = np.diff(borders).tolist()
    warm = max(others) <= WARM_UP_SLOWER * min(others) and first >= WARM_UP_SLOWER * float(np.median(others))
    return borders[1:] if warm else borders


def _once_a_repeat(keys: IntArray, length: IntArray) -> IntArray:
    """Where the name is that takes most time of those that come three or four times, always as many operations apart;
    empty without such."""
    _, code = np.unique(keys, return_inverse=True)
    count, time = np.bincount(code), np.bincount(code, length)
    for name in np.argsort(-time, kind="stable").tolist():
        if REPEATED <= count[name] < FEWEST_REPEATS:
            at = np.flatnonzero(code == name)
            distance = np.diff(at)
            if distance.min() == distance.max():
                return at
    return np.empty(0, np.int64)


def _run_around(at: int, same: BoolArray) -> tuple[int, int]:
    """The run of True values around one of them: [first, behind)."""
    others = np.flatnonzero(~same)
    place = int(np.searchsorted(others, at))
    return int(others[place - 1]) + 1 if place else 0, int(others[place]) if place < len(others) else len(same)


def _after_most_idle(start: IntArray, end: IntArray, first: int, period: int, repeats: int, spare: int) -> int:
    """The number of `spare` operations by which the first repeat begins later, so that most idle time is between
    repeats."""
    until = np.maximum.accumulate(end)
    idle = np.append(0, np.maximum(start[1:] - until[:-1], 0))
    shifts = first + np.arange(spare + 1)
    between = idle[shifts[:, None] + period * np.arange(1, repeats)].sum(axis=1)
    return int(np.argmax(between))
