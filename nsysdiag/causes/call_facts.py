"""What is known of single API calls beyond their names: what they copied, whether they made a context, loaded code."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes.evidence import CallFacts
from nsysdiag.causes.threshold import READ_BACK_BYTES
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import process_of
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct
from nsysdiag.trace.enums import CopyKind, MemoryKind

LONG_NS = 1_000_000
FEW_LAUNCHES, SLOW_FACTOR = 10, 10
FIRST_NS = 100_000
"""A launch call takes 2 to 35 µs, a first one that loads code over 100 µs to many ms (ten real traces)."""


def call_facts(activity: DeviceActivity) -> CallFacts:
    """Flags for each row of the table of calls."""
    calls, operations, launch = activity.api_calls.rows, activity.operations, activity.launch
    copies = np.flatnonzero((operations.category == Category.MEMCPY) & (launch >= 0))
    pageable = copies[
        (operations.src_kind[copies] == MemoryKind.PAGEABLE) | (operations.dst_kind[copies] == MemoryKind.PAGEABLE)
    ]
    small = copies[
        (operations.copy_kind[copies] == CopyKind.DEVICE_TO_HOST) & (operations.size[copies] <= READ_BACK_BYTES)
    ]
    small = small[operations.size[small] > 0]
    loads = _flags(len(calls), _slow_first_launches(activity, LONG_NS))
    return CallFacts(
        pageable=_flags(len(calls), launch[pageable]),
        read_back=_flags(len(calls), launch[small]),
        creates_context=_creates_context(activity),
        first_launch=loads,
        first_use=_flags(len(calls), _slow_first_launches(activity, FIRST_NS)) & ~loads,
        synchronized=activity.synchronized,
    )


def _flags(count: int, rows: IntArray) -> BoolArray:
    flags = np.zeros(count, dtype=np.bool_)
    flags[rows] = True
    return flags


def _creates_context(activity: DeviceActivity) -> BoolArray:
    """The first API call of each process, if over 1 ms, whatever its name; unless the process's work shows that the
    context was there before: an operation that had begun, or that was launched before the capture."""
    calls, operations = activity.api_calls.rows, activity.operations
    flags = np.zeros(len(calls), dtype=np.bool_)
    if len(calls) == 0:
        return flags
    processes, owner = distinct(process_of(calls.thread))
    first = _first_of_each(owner, calls.start, calls.end)
    lowest = np.array([activity.first_correlation.get(each, 0) for each in processes.tolist()], dtype=np.int64)
    at = np.minimum(np.searchsorted(processes, operations.process), len(processes) - 1)
    earlier = operations.start < calls.start[first[at]]
    earlier |= (operations.correlation > 0) & (operations.correlation < lowest[at])
    earlier &= operations.process == processes[at]
    fresh = (calls.end[first] - calls.start[first] > LONG_NS) & (lowest > 0)
    fresh[at[earlier]] = False
    flags[first[fresh]] = True
    return flags


def _first_of_each(group: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """The row of each group, 0 and up, that starts first; of several the one that ends last."""
    order = np.lexsort((~end, start, group))
    begins = np.append(True, group[order[1:]] != group[order[:-1]])
    rows: IntArray = order[begins]
    return rows


def _slow_first_launches(activity: DeviceActivity, long: int) -> IntArray:
    """The calls that launched a kernel name for the first time in their process and took over ten times the median of
    their API's launches there; over `long` ns where the API has fewer than ten. Nodes of graphs are no launches.

    Where most launches of an API are first ones their median is the very thing to be found: `long` is enough there.
    """
    calls, operations, launch = activity.api_calls.rows, activity.operations, activity.launch
    kernel = (operations.category == Category.KERNEL) & (operations.graph_node <= 0) & (launch >= 0)
    rows = np.flatnonzero(kernel)
    if len(rows) == 0:
        return rows
    rows = rows[np.argsort(calls.start[launch[rows]], kind="stable")]
    process = distinct(operations.process[rows])[1]
    names, name = distinct(operations.name[rows])
    first = np.unique(process * len(names) + name, return_index=True)[1]
    row = launch[rows]
    duration = calls.end[row] - calls.start[row]
    repeated = np.ones(len(rows), dtype=np.bool_)
    repeated[first] = False
    limit = _usual_limits(process * (int(calls.name.max()) + 1) + calls.name[row], duration, repeated, long)
    slow: IntArray = row[first[duration[first] > limit[first]]]
    return slow


def _usual_limits(api: IntArray, duration: IntArray, repeated: BoolArray, long: int) -> IntArray:
    """For each launch, how long it may take to be usual for its API; `repeated` marks launches of a known kernel."""
    order = np.lexsort((duration, api))
    present, begin, count = np.unique(api[order], return_index=True, return_counts=True)
    ordered = duration[order]
    both_medians = ordered[begin + (count - 1) // 2] + ordered[begin + count // 2]
    limit: IntArray = np.where(count < FEW_LAUNCHES, long, SLOW_FACTOR * both_medians // 2)
    mostly_first = 2 * np.add.reduceat(repeated[order].astype(np.int64), begin) < count
    limit = np.where(mostly_first, np.minimum(limit, long), limit)
    each: IntArray = limit[np.searchsorted(present, api)]
    return each
