"""Graph launches of which the trace holds nothing but the call: when the device was probably busy with them."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, nearest_after, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes import blocking_copy, sync
from nsysdiag.causes.evidence import CallFacts
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import RowsOf, distinct, distinct_values

_LAUNCH = re.compile(r"(cuda|cu)GraphLaunch")
_ASYNC = re.compile(r".*Async.*")
_FOREVER = np.iinfo(np.int64).max // 2


def untraced_graphs(activity: DeviceActivity, facts: CallFacts) -> dict[int, Intervals]:
    """For each thread (globalTid) the spans of its untraced graph launches, a set.

    ```
    thread  [cudaGraphLaunch]            [launch B]   [sync            ]
    device                                     [==B==)
    span    |---------------------------------|  to the start of the next launched operation, or the end of the first
                                                 blocking call begun after it, whichever is earlier
    ```
    """
    calls = activity.api_calls.rows
    launches = untraced_launches(activity)
    if len(launches) == 0:
        return {}
    blocking = np.flatnonzero(_blocks(activity, facts))
    work = np.flatnonzero(activity.launch >= 0)
    of_thread = RowsOf(calls.thread[launches])
    blocking_of, work_of = RowsOf(process_of(calls.thread[blocking])), RowsOf(activity.operations.process[work])
    of_process: dict[int, list[int]] = {}
    for thread in of_thread.values():
        of_process.setdefault(process_of(thread), []).append(thread)
    result: dict[int, Intervals] = {}
    for owner, threads in of_process.items():
        horizon = _Horizon.of(activity, work[work_of[owner]], blocking[blocking_of[owner]])
        result |= {thread: horizon.spans(calls.start[launches[of_thread[thread]]]) for thread in threads}
    return result


def untraced_launches(activity: DeviceActivity) -> IntArray:
    """The rows of successful graph launches, outermost calls only, of which the trace holds no operation."""
    calls, names = activity.api_calls.rows, activity.api_calls.names
    launches: IntArray = (
        np.flatnonzero(_by_name(names, _LAUNCH)[calls.name]) if len(calls) else np.empty(0, dtype=np.int64)
    )
    launches = launches[calls.returned[launches] == 0]
    if len(launches):
        launches = launches[is_outermost(activity, launches)]
        launches = launches[~has_operations(activity, launches)]
    return launches


def untraced_on(device: DeviceTimeline, activity: DeviceActivity, spans: dict[int, Intervals]) -> Intervals:
    """The untraced time of `device`, a set: graphs of its processes, launched by threads that launched other work on
    it, or no other work at all."""
    return union(*(spans[thread] for thread in _feeding(device, activity, list(spans))))


def untraced_count(
    device: DeviceTimeline, activity: DeviceActivity, spans: dict[int, Intervals], time: Intervals
) -> int:
    """How many untraced graph launches that concern `device` begin in the set `time`."""
    threads = _feeding(device, activity, list(spans)) if spans else []
    if not threads:
        return 0
    launches = activity.api_calls.rows.take(untraced_launches(activity))
    return int(np.count_nonzero(np.isin(launches.thread, threads) & contains(time, launches.start)))


def _feeding(device: DeviceTimeline, activity: DeviceActivity, threads: list[int]) -> list[int]:
    calls = activity.api_calls.rows
    processes = set(distinct_values(device.operations.process).tolist())
    here, anywhere = (
        set(distinct_values(calls.thread[rows[rows >= 0]]).tolist()) for rows in (device.launch, activity.launch)
    )
    return [
        thread for thread in threads if process_of(thread) in processes and (thread in here or thread not in anywhere)
    ]


def _by_name(names: list[str], pattern: re.Pattern[str]) -> BoolArray:
    return np.array([pattern.fullmatch(name) is not None for name in names], dtype=np.bool_)


def has_operations(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """True for launches whose correlation id has kernels or a graph row."""
    launched = np.zeros(len(activity.api_calls.rows), dtype=np.bool_)
    launched[activity.launch[activity.launch >= 0]] = True
    found = launched[launches]
    # Of two calls of one id only one is known to have launched something.
    rest = np.flatnonzero(~found)
    found[rest] = _shares_an_id(activity, launches[rest])
    return found


def _shares_an_id(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """True for launches with the correlation id of any operation of their process."""
    if len(launches) == 0:
        return np.zeros(0, dtype=np.bool_)
    calls, operations = activity.api_calls.rows, activity.operations
    _, process = distinct(np.concatenate((operations.process, process_of(calls.thread[launches]))))
    ids, number = distinct(np.concatenate((operations.correlation, calls.correlation[launches])))
    key = joint(process, number, len(ids))
    return np.isin(key[len(operations) :], key[: len(operations)])


def is_outermost(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """Runtime and driver rows of one launch count once."""
    calls = activity.api_calls.rows.take(launches)
    # By id: of calls at the very same time the first counts, whatever the order of the rows.
    order = np.argsort(calls.correlation, kind="stable")
    calls = calls.take(order)
    result = np.zeros(len(launches), dtype=np.bool_)
    result[order] = outermost(Intervals(calls.start, calls.end), calls.thread)
    return result


def _blocks(activity: DeviceActivity, facts: CallFacts) -> BoolArray:
    """Calls after which everything issued before is done: synchronization and blocking copies."""
    calls, names = activity.api_calls.rows, activity.api_calls.names
    copies, asynchronous = _by_name(names, blocking_copy.COPIES), _by_name(names, _ASYNC)
    waits = _by_name(names, sync.CALLS) | (copies & ~asynchronous)
    return waits[calls.name] | (copies[calls.name] & facts.pageable)


class _Horizon(Struct, frozen=True):
    """The ends of untraced time of a process: issue and start times of its operations, in order of issue, and start and
    end times of its blocking calls, in order of start."""

    issued: IntArray
    started: IntArray
    block: IntArray
    unblocked: IntArray

    @classmethod
    def of(cls, activity: DeviceActivity, work: IntArray, blocking: IntArray) -> _Horizon:
        """From the operations `work` and the calls `blocking` of one process."""
        calls, operations, launch = activity.api_calls.rows, activity.operations, activity.launch
        # The nodes of one graph share a launch: the first of them to run counts. Of nested calls the outer one.
        work = work[np.lexsort((operations.start[work], calls.start[launch[work]]))]
        blocking = blocking[np.lexsort((-calls.end[blocking], calls.start[blocking]))]
        until = np.append(operations.start[work], _FOREVER), np.append(calls.end[blocking], _FOREVER)
        return cls(calls.start[launch[work]], until[0], calls.start[blocking], until[1])

    def spans(self, begin: IntArray) -> Intervals:
        """The untraced time behind launches that begin at these times."""
        until_op = self.started[nearest_after(self.issued, begin + 1)]
        until_block = self.unblocked[nearest_after(self.block, begin)]
        return union(Intervals(begin, np.minimum(until_op, until_block)))
