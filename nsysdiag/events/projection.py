"""NVTX ranges on the GPU: each from the first to the last operation that its thread launched inside it.

```
thread   [forward  launch  launch ]  [sync]
device            |==A==|  ..  |==B==|
forward           [------------------)
```
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import RangeRows
from nsysdiag.events.rows import RowsOf, taken


def project(
    device: DeviceTimeline, calls: CallRows, ranges: RangeRows, counted: BoolArray
) -> tuple[IntArray, Intervals]:
    """The rows of `ranges` that launched any of the operations that are `counted`, and the time of each on the
    device."""
    launched = np.flatnonzero(counted & (device.launch >= 0)).astype(np.int32)
    thread_of = taken(calls.thread, device.launch[launched]) if len(launched) else launched
    index, parts = [np.empty(0, dtype=np.int64)], []
    issued_by = RowsOf(thread_of)
    of_thread = RowsOf(ranges.thread, issued_by.values())
    for thread in issued_by.values():
        mine = of_thread[thread]
        if len(mine) == 0:
            continue
        holds, spans = _extents(device, calls, launched[issued_by[thread]], ranges.take(mine))
        index.append(mine[holds])
        parts.append(spans)
    return np.concatenate(index), Intervals.concatenate(parts)


def of_processes(calls: CallRows, ranges: RangeRows) -> tuple[CallRows, RangeRows]:
    """The same rows, each with its process in place of its thread: ranges of a thread that launches nothing then hold
    what other threads of its process launch meanwhile."""
    thread, around = (process_of(rows.thread) for rows in (calls, ranges))
    return replace(calls, thread=thread), replace(ranges, thread=around)


def _extents(device: DeviceTimeline, calls: CallRows, rows: IntArray, ranges: RangeRows) -> tuple[BoolArray, Intervals]:
    """Which ranges hold any of the operations `rows`, and the extents of these."""
    issued = calls.start[device.launch[rows]]
    if np.any(issued[1:] < issued[:-1]):
        order = np.argsort(issued, kind="stable")
        rows, issued = rows[order], issued[order]
    first = np.searchsorted(issued, ranges.start, side="left")
    behind = np.searchsorted(issued, ranges.end, side="left")
    holds: BoolArray = behind > first
    bounds = np.stack((first[holds], behind[holds]), axis=1).ravel()
    if len(bounds) == 0:
        return holds, Intervals.empty()
    # reduceat takes a bound equal to the length badly: one neutral value behind the last.
    begun = np.minimum.reduceat(np.append(device.operations.start[rows], np.iinfo(np.int64).max), bounds)[::2]
    over = np.maximum.reduceat(np.append(device.operations.end[rows], np.iinfo(np.int64).min), bounds)[::2]
    return holds, Intervals(begun.copy(), over.copy())
