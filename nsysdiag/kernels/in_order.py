"""What limits a fix: kernels of one stream run one after the other, and one thread calls CUDA. A fix of copies saves no
more time than copies and their calls take.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import IntArray, Intervals, coverage, intersect, pieces, union
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, distinct_values, narrowed

REAL_WORK = 0.1
"""Of a device's kernel time: a thread that launches less takes no steps of its own."""


class InOrder(Struct, frozen=True):
    """Of the judged time: the kernel time `ns` that can only run one after the other, None for all of it. `one_thread`
    of the trace alone calls CUDA. `copying_ns` and `paging_ns` are the time that a fix of copies, or of migrations, can
    take away; None without any. For `sending_ns` the device is idle while a message is sent."""

    ns: int | None = None
    one_thread: bool = False
    copying_ns: int | None = None
    paging_ns: int | None = None
    sending_ns: int = 0

    @classmethod
    def of(cls, device: DeviceTimeline, calls: CallRows, parts: Intervals, sending_ns: int = 0) -> InOrder:
        """That of a device."""
        one_thread = len(calls) > 0 and bool((calls.thread == calls.thread[0]).all())
        copying, paging = (
            intersect(each, parts).total() if len(each) else None for each in (_copying(device, calls), _paging(device))
        )
        return cls(in_order_ns(device, calls, parts), one_thread, copying, paging, sending_ns)


def _copying(device: DeviceTimeline, calls: CallRows) -> Intervals:
    """The set of time in which copies and sets run, or the calls that launched them hold a thread. Once none of that
    takes any time, nothing else is sooner by more than the part of this set before it.

    ```
    thread  [launch][cudaMemcpy ...........][host code ...]
    gpu             [==kernel====)[= copy =)
    set             [=======================)
    ```
    """
    operations = device.operations
    mine = np.isin(operations.category, (Category.MEMCPY, Category.MEMSET)) & ~operations.migration & device.running
    launched = device.launch[mine & (device.launch >= 0)]
    ran = Intervals(operations.start[mine], operations.end[mine])
    return union(ran, Intervals(calls.start[launched], calls.end[launched]))


def _paging(device: DeviceTimeline) -> Intervals:
    """The set of time in which pages move, and in each kernel all from its first page to its last one: it may wait for
    pages all the time between."""
    operations = device.operations
    moves = union(Intervals(operations.start, operations.end)[operations.migration])
    kernels = np.flatnonzero(device.running & (operations.category == Category.KERNEL))
    kernel, moved = pieces(moves, Intervals(operations.start[kernels], operations.end[kernels]))
    if not len(kernel):
        return moves
    first, last = np.full(len(kernels), np.iinfo(np.int64).max), np.zeros(len(kernels), dtype=np.int64)
    np.minimum.at(first, kernel, moved.start)
    np.maximum.at(last, kernel, moved.end)
    return union(moves, Intervals(first, last)[last > 0])


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
    ns = _ns_of_lanes(Intervals(operations.start[rows], operations.end[rows]), lane, len(lanes), parts)
    longest, whole = np.zeros(len(threads), np.int64), np.bincount(lanes // streams, ns, len(threads))
    np.maximum.at(longest, lanes // streams, ns)
    return int(longest[whole >= min(REAL_WORK * whole.sum(), whole.max())].min())


def _ns_of_lanes(spans: Intervals, lane: IntArray, count: int, parts: Intervals) -> IntArray:
    """How much of `parts` the spans of each lane cover together. Those of most lanes do not overlap, and need no
    union."""
    order = np.argsort(narrowed(lane), kind="stable")
    lane, spans = lane[order], spans[order]
    ns = sum_of_each(lane, coverage(parts, spans), count)
    meet = (lane[1:] == lane[:-1]) & (spans.start[1:] < spans.end[:-1])
    for each in distinct_values(lane[1:][meet]).tolist():
        first, behind = np.searchsorted(lane, (each, each + 1))
        ns[each] = intersect(union(spans[first:behind]), parts).total()
    return ns
