"""Iterations of the program in which a device was given nothing to do."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.arrays.nesting import levels
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.rows import RowsOf
from nsysdiag.gap_groups.keys import normal_range
from nsysdiag.iterations.by_range import LEAST_COVER, MOST_LEVELS
from nsysdiag.iterations.loop import FEWEST
from nsysdiag.iterations.ranges import OPERATOR


class EmptyIterations(Struct, frozen=True):
    """The instances, of `count` of a range on `thread`, that launched nothing on the device, in order of time."""

    name: str
    thread: int
    count: int
    spans: Intervals


def empty_iterations(
    device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, threads: IntArray
) -> EmptyIterations | None:
    """The range with most instances without work. It is on the outermost repeating level of one of `threads`, and
    covers most of the time from its first to its last instance. At least one instance has launches.

    ```
    thread 1   [step 1    ][step 2    ][step 3    ]
    launches      |  |                    |             by any thread of the process: step 2 is empty
    ```
    """
    launched = device.launch[device.launch >= 0]
    if len(launched) == 0 or len(ranges.rows) < FEWEST:
        return None
    names = [normal_range(name) for name in ranges.names]
    known = {name: at for at, name in enumerate(dict.fromkeys(names))}
    code = np.array([known[name] for name in names], dtype=np.int64)
    operator = np.array([OPERATOR.match(name) is not None for name in names], dtype=np.bool_)
    rows = ranges.rows
    chosen = ~operator[rows.name] & ~rows.communication & ~rows.mpi
    best: EmptyIterations | None = None
    distinct_names = list(known)
    of_thread, issued_by = RowsOf(rows.thread, threads), RowsOf(process_of(calls.thread[launched]))
    issued: dict[int, IntArray] = {}
    for thread in of_thread.values():
        of_it = of_thread[thread]
        mine = rows.take(of_it[chosen[of_it]])
        if len(mine) < FEWEST:
            continue
        owner = process_of(thread)
        if owner not in issued:
            issued[owner] = np.sort(calls.start[launched[issued_by[owner]]])
        found = _on_thread(mine, code[mine.name], issued[owner], distinct_names, thread)
        if found is not None and (best is None or len(found.spans) > len(best.spans)):
            best = found
    return best


def _on_thread(
    rows: RangeRows, code: IntArray, issued: IntArray, names: list[str], thread: int
) -> EmptyIterations | None:
    spans = Intervals(rows.start, np.minimum(rows.end, np.iinfo(np.int64).max // 2))
    depth = levels(spans, MOST_LEVELS + 1)
    for level in range(MOST_LEVELS):
        at = np.flatnonzero(depth == level)
        of_name = RowsOf(code[at])
        found = [
            empty
            for name in of_name.values()
            if (empty := _of_name(spans[at[of_name[name]]], issued, names[name], thread)) is not None
        ]
        if found:
            return max(found, key=lambda each: each.count)
    return None


def _of_name(spans: Intervals, issued: IntArray, name: str, thread: int) -> EmptyIterations | None:
    """The instances of one name, where it repeats and holds launches at all."""
    if len(spans) < FEWEST:
        return None
    first, behind = np.searchsorted(issued, spans.start), np.searchsorted(issued, spans.end)
    empty = first == behind
    reach = int(spans.end.max()) - int(spans.start.min())
    if empty.all() or union(spans).total() < LEAST_COVER * reach:
        return None
    return EmptyIterations(name, thread, len(spans), spans[empty])
