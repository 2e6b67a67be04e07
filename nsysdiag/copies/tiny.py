"""Copies so small that each costs the host more than it moves."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains
from nsysdiag.copies.rates import is_pageable
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.memory.facts import TinyCopies


def tiny_copies(
    device: DeviceTimeline, api_calls: ApiCalls, inside: BoolArray, steady: Intervals | None, below: int
) -> TinyCopies | None:
    """The copies of 1 to `below` - 1 bytes inside the window that no graph launched and no page fault caused; None
    where there are none. `steady` are the steady iterations."""
    operations = device.operations
    tiny = (operations.category == Category.MEMCPY) & (operations.graph_node <= 0) & ~operations.migration
    rows = np.flatnonzero(tiny & inside & (operations.size > 0) & (operations.size < below))
    if len(rows) == 0:
        return None
    calls, start = api_calls.rows, operations.start[rows]
    launched = rows[device.launch[rows] >= 0]
    # The call returns only when the copy is done: a synchronous one, or with pageable memory.
    blocks = np.array(["Async" not in name for name in api_calls.names], dtype=np.bool_)
    waits = blocks[calls.name[device.launch[launched]]] | is_pageable(device)[launched]
    return TinyCopies(
        below_bytes=below,
        count=len(rows),
        bytes=int(operations.size[rows].sum()),
        total_ns=int((operations.end[rows] - start).sum()),
        called=int(np.count_nonzero(~waits)),
        call_ns=_call_ns(calls, device.launch[launched[~waits]]),
        blocking=int(np.count_nonzero(waits)),
        blocking_ns=_call_ns(calls, device.launch[launched[waits]]),
        launches=int(np.count_nonzero(inside & (device.launch >= 0))),
        per_iteration=a_turn(start, steady),
    )


def _call_ns(calls: CallRows, rows: IntArray) -> int:
    """The time of these calls, each counted once."""
    called = np.zeros(len(calls), dtype=np.bool_)
    called[rows] = True
    return int((calls.end[called] - calls.start[called]).sum())


def a_turn(times: IntArray, steady: Intervals | None) -> float | None:
    """How many of the times fall into a steady iteration on average; None without any."""
    if steady is None or len(steady) == 0:
        return None
    return round(int(np.count_nonzero(contains(steady, times))) / len(steady), 3)
