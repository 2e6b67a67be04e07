"""What no fix of something else changes: kernels of one stream run one after the other, and one thread calls CUDA."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import Intervals, intersect, union
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct

REAL_WORK = 0.1
"""Of a device's kernel time: a thread that launches less takes no steps of its own."""


class InOrder(Struct, frozen=True):
    """Of the judged time: the kernel time `ns` that can only run one after the other, None for all of it. `one_thread`
    of the trace alone calls CUDA."""

    ns: int | None = None
    one_thread: bool = False

    @classmethod
    def of(cls, device: DeviceTimeline, calls: CallRows, parts: Intervals) -> InOrder:
        """That of a device."""
        return cls(in_order_ns(device, calls, parts), len(calls) > 0 and bool((calls.thread == calls.thread[0]).all()))


def in_order_ns(device: DeviceTimeline, calls: CallRows, parts: Intervals) -> int | None:
    """The kernel time in `parts` of the stream with most of it. Several threads may have a pace of their own, and any
    of them may take the steps: then that of the thread of which it is least. None where all kernels are in one stream.

    ```
    stream 1   [==A==)  [==A==)         kernels run for 17, and those of one stream for 14: if all start as soon as
    stream 2      [=B=)    [=B=)        they can, this time takes 14
    ```
    """
    operations = device.operations
    kernels = device.running & ~device.communication & ~operations.migration
    rows = np.flatnonzero(kernels & np.isin(operations.category, (Category.KERNEL, Category.GRAPH)))
    launch, streams = device.launch[rows], len(device.stream_code) and int(device.stream_code.max()) + 1
    thread = np.where(launch >= 0, np.append(calls.thread, -1)[launch], -1)
    threads, code = distinct(thread)
    lanes, lane = distinct(joint(code, device.stream_code[rows], streams))
    if len(lanes) < 2:
        return None
    spans = Intervals(operations.start[rows], operations.end[rows])
    ns = np.array([intersect(union(spans[lane == each]), parts).total() for each in range(len(lanes))])
    longest, whole = np.zeros(len(threads), np.int64), np.bincount(lanes // streams, ns, len(threads))
    np.maximum.at(longest, lanes // streams, ns)
    return int(longest[whole >= min(REAL_WORK * whole.sum(), whole.max())].min())
