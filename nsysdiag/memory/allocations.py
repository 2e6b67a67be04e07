"""Allocations and frees matched by process and address: how a device's memory rises and falls."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.arrays.step_functions import StepFunction
from nsysdiag.events.memory import Usage
from nsysdiag.events.rows import Rows
from nsysdiag.trace.enums import MemoryKind, MemoryOperation

RESIDENT = (MemoryKind.DEVICE, MemoryKind.ARRAY, MemoryKind.DEVICE_STATIC)
MANAGED = (MemoryKind.MANAGED, MemoryKind.MANAGED_STATIC)
PINNED = (MemoryKind.PINNED,)
_TOO_LARGE = 1 << 50
"""No device has a pebibyte: such a row is malformed, and would make sums wrap around."""


class AllocationChanges(Rows, frozen=True):
    """Changes of memory in bytes, with times. `given` marks allocations, `implied` the end of memory that was never
    freed but whose address was allocated again; all other rows are frees. `unknown` marks frees without a recorded
    allocation: they change no level. `device` and `kind` are those of the allocation, if
    known."""

    time: IntArray
    size: IntArray
    process: IntArray
    device: IntArray
    kind: IntArray
    given: BoolArray
    unknown: BoolArray
    implied: BoolArray


def match(usage: Usage) -> AllocationChanges:
    """Every change, in any order.

    ```
    address 0x10   alloc 4   free        alloc 8    alloc 2   free   free
    change             +4      -4            +8     -8 +2      -2    unknown
    ```

    Rows of one address are sorted by time, then by correlation id; of equal ones the free is first.
    """
    known = (usage.address > 0) & np.isin(usage.operation, list(MemoryOperation)) & (usage.size < _TOO_LARGE)
    rows = usage.take(known)
    given = rows.operation == MemoryOperation.ALLOCATION
    order = np.lexsort((rows.size, given, rows.correlation, rows.time, rows.address, rows.process))
    rows, given = rows.take(order), given[order]
    follows = np.append(False, (np.diff(rows.address) == 0) & (np.diff(rows.process) == 0))[: len(rows)]
    open_before = np.append(False, given[:-1])[: len(rows)] & follows
    ended, begun, lost = (np.flatnonzero(each) for each in (open_before, given, ~given & ~open_before))
    source = np.concatenate((ended - 1, begun, lost))
    part = np.repeat(np.arange(3), (len(ended), len(begun), len(lost)))
    at_row = np.concatenate((ended, begun, lost))
    size = np.maximum(rows.size[source], 0)
    return AllocationChanges(
        time=rows.time[at_row],
        size=np.where(part == 1, size, -size),
        process=rows.process[source],
        device=rows.device[source],
        kind=rows.kind[source],
        given=part == 1,
        unknown=part == 2,
        implied=(part == 0) & given[at_row],
    )


def of_kind(changes: AllocationChanges, kinds: tuple[MemoryKind, ...]) -> AllocationChanges:
    """The changes of memory of these kinds."""
    return changes.take(np.isin(changes.kind, kinds))


def level(changes: AllocationChanges, low: int, high: int) -> StepFunction:
    """The bytes given out over [low, high), by the known changes: never below zero. Raises ValueError without time."""
    return levels(changes.time[~changes.unknown], changes.size[~changes.unknown], low, high)


def levels(time: IntArray, change: IntArray, low: int, high: int) -> StepFunction:
    """The running sum over [low, high) of changes in any order; those of one moment count together.

    ```
    changes        +4    +2-3     -1
    level      0   4     3        2
    ```
    """
    if high <= low:
        raise ValueError(f"no time between {low} and {high}")
    order = np.argsort(time, kind="stable")
    time, total = time[order], np.cumsum(change[order])
    last = np.append(time[1:] != time[:-1], True)[: len(time)]
    time, total = time[last], total[last]
    first = int(np.searchsorted(time, low, side="right"))
    behind = int(np.searchsorted(time, high, side="left"))
    base = int(total[first - 1]) if first else 0
    return StepFunction(
        np.append(np.int64(low), time[first:behind]), np.append(np.int64(base), total[first:behind]), high
    )


def at(steps: StepFunction, times: IntArray) -> IntArray:
    """The level at each time; before the first step it is that of the first."""
    index = np.searchsorted(steps.time, times, side="right") - 1
    return steps.level[np.maximum(index, 0)]
