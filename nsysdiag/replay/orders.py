"""What operations and waits of the host wait for on a device, such as streams and events, and its usual pace."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_before
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.event_waits import STREAM_WAITS, UNKNOWN_PRODUCER, StreamWaits
from nsysdiag.events.gpus import slices_of_others
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, first_since, last_before, previous_on_stream
from nsysdiag.gaps.gaps import LATENCY_HIGHEST_NS
from nsysdiag.replay.work import Class, Stretch, Work, keyed

LATENCY_NS, GAP_NS = 5_000, 1_500
"""The launch latency and the shortest gap in a stream if the trace has too few cases to learn them from. Medians of
the gap are 1.2 to 2 µs on traces of V100, A100, H100 and GH200."""
SHORTEST_GAP_NS, LONGEST_GAP_NS = 800, 2_500
"""The gap is between these if it is not known: medians of kernels on traces are 1.0 to 2.4 µs."""
FEWEST_CASES = 20
"""Latencies or gaps of one class of operations on a device: from so many on their median is taken, of fewer that of the
device. If that has fewer as well, LATENCY_NS or GAP_NS is taken. A larger number uses less of what the trace shows, a
smaller one trusts a few odd times."""


class Before(Rows, frozen=True):
    """That the operation `after` waits for the operation `before` to end, both places among the operations."""

    before: IntArray
    after: IntArray


def stream_order(work: Work) -> Before:
    """Each operation and the one before it in its stream."""
    return _pairs(previous_on_stream(work.stream))


def overlapped_order(work: Work) -> Before:
    """Each operation and the last to end of those before it in its stream, if the one right before it is another.

    ```
    stream   [=== A ======)
               [= B =)      [= C =)      C is behind A too
    ```
    """
    order, last = np.argsort(work.stream, kind="stable"), np.full(len(work), NONE)
    last[order] = last_to_end(distinct(work.stream)[1], work.end, order)
    before = previous_on_stream(work.stream)
    longest = np.append(last, NONE)[before]
    return _ended(work, _pairs(np.where(longest == before, NONE, longest)))


def last_to_end(group: IntArray, end: IntArray, order: IntArray) -> IntArray:
    """For each row of `order`, in which groups ascend, the last to end of its group's rows so far."""
    by_end = np.argsort(end, kind="stable")
    place = np.empty(len(end), dtype=np.int64)
    place[by_end] = np.arange(len(end))
    count = max(len(end), 1)
    return by_end[np.maximum.accumulate(joint(group[order], place[order], count)) % count]


def class_order(work: Work) -> Before:
    """Each operation and the previous one of its class in its stream, if another one is between them: the remaining
    order of a stream once classes overlap."""
    own = previous_of_class(work)
    return _pairs(np.where(own == previous_on_stream(work.stream), NONE, own))


def previous_of_class(work: Work) -> IntArray:
    """The place of the last operation of the same class before each in its stream, NONE for the first."""
    return previous_on_stream(distinct(joint(work.stream, work.kind, len(Class)))[1])


def _pairs(before: IntArray) -> Before:
    after = np.flatnonzero(before >= 0)
    return Before(before[after], after)


def producers(work: Work, waits: StreamWaits, all_operations: int) -> IntArray:
    """For each cudaStreamWaitEvent the place of the operation that it waits for, NONE if it is not known or not
    among these; `all_operations` is how many the trace has."""
    place = np.full(all_operations + 1, NONE)
    place[work.row] = np.arange(len(work))
    return np.where(waits.producer >= 0, place[waits.producer], NONE)


def awaited_events(work: Work, waits: StreamWaits, all_operations: int) -> Before:
    """Each operation that a cudaStreamWaitEvent held back and the one that it waited for: the first to be issued to the
    stream after the wait."""
    producer = producers(work, waits, all_operations)
    known = np.flatnonzero(producer >= 0)
    after = first_since(work.stream, work.issued, waits.stream[known], waits.issued[known])
    return _ended(work, Before(producer[known], after).take((after >= 0) & (after != producer[known])))


def barriers(work: Work, activity: DeviceActivity) -> Before:
    """Each operation of a legacy default stream and the last to end of those issued to blocking streams of its context
    before it; and the other way round."""
    streams = activity.streams
    null = streams.null[work.stream] if len(streams.null) else np.zeros(len(work), dtype=np.bool_)
    blocking = ~(streams.non_blocking[work.stream] | null) if len(streams.null) else null
    if not null.any() or not blocking.any():
        return Before.empty()
    operations = activity.operations
    _, context = distinct(joint(distinct(operations.process[work.row])[1], operations.context[work.row], 1 << 32))
    parts = []
    for those, these in ((blocking, null), (null, blocking)):
        mine, others = np.flatnonzero(these), np.flatnonzero(those)
        issued = Issued(context[others], work.issued[others], work.end[others])
        found = targets(issued, HostWaits(context[mine], work.issued[mine], work.start[mine]))
        parts.append(Before(others[found[found >= 0]], mine[found >= 0]))
    return _ended(work, Before.concatenate(parts))


def observed_order(work: Work, late: BoolArray) -> Before:
    """For operations that started `late`, without a known reason: the operation of the device that was the last to end
    before."""
    asked = np.flatnonzero(late)
    before = last_before(work.device, work.end, work.device[asked], work.start[asked])
    return Before(before, asked).take((before >= 0) & (before != asked))


def hidden_order(work: Work, activity: DeviceActivity, stretch: Stretch) -> Before:
    """If streams wait for events of which some have no rows: each operation, and the last of its device to end
    before it. None if all waits of streams are known."""
    calls, waits = activity.api_calls, activity.waits
    names = np.flatnonzero(named_like(calls.names, STREAM_WAITS))
    if len(names) == 0:
        return Before.empty()
    asked = np.isin(calls.rows.name, names) & stretch.holds(calls.rows.start)
    known = waits.issued[waits.producer != UNKNOWN_PRODUCER]
    known = distinct_values(known[stretch.holds(known)])
    late = np.ones(len(work), dtype=np.bool_)
    return observed_order(work, late) if np.count_nonzero(asked) > len(known) else Before.empty()


EXPLAINED = 0.5
"""Share of the time by which an operation is late: rows that cover more than this explain it."""


def explained(work: Work, activity: DeviceActivity, late_ns: IntArray) -> BoolArray:
    """Which operations were late by `late_ns` as another process had the device, or pages of unified memory moved."""
    late, process, slices = late_ns > 0, activity.operations.process[work.row], activity.time_slices
    # Between two migrations the driver handles page faults.
    moved_until = paged_until(work, activity)
    known = np.where(moved_until >= 0, moved_until - work.start + late_ns, 0)
    for device in distinct_values(work.device[late]).tolist() if len(slices) else []:
        for owner in distinct_values(process[(work.device == device) & late]).tolist():
            mine = np.flatnonzero((work.device == device) & (process == owner) & late)
            others = slices_of_others(slices, activity.devices[device].gpu_id, owner)
            taken = coverage(others, Intervals(work.start[mine] - late_ns[mine], work.start[mine]))
            known[mine] = np.maximum(taken, known[mine])
    return late & (known > EXPLAINED * late_ns)


def _ended(work: Work, pairs: Before) -> Before:
    """The pairs of which the first had ended when the second started."""
    return pairs.take(work.end[pairs.before] <= work.start[pairs.after])


class Pace(Struct, frozen=True):
    """Shortest times of devices in ns, by device number and `Class`. `gap`: between two operations of a stream.
    `switch`: from the end of an operation to the start of one that waits for it in another stream. `latency`: from the
    issue of a launch to the start of its operation on an idle stream. `known` says whether the trace shows the gap."""

    gap: IntArray
    switch: IntArray
    latency: IntArray
    known: BoolArray


def paged_until(work: Work, activity: DeviceActivity) -> IntArray:
    """When the last pages of unified memory had moved on its device before each operation started, -1 for none."""
    moved = np.flatnonzero(activity.operations.migration)
    until = activity.operations.end[moved]
    return np.append(until, -1)[last_before(activity.device[moved], until, work.device, work.start)]


def paging_ns(work: Work, activity: DeviceActivity, late: BoolArray) -> IntArray:
    """For how long before each operation that is `late` pages moved on its device, in ns: since the first did so after
    the end of the operation before it in its stream; 0 if none did."""
    moved, mine = np.flatnonzero(activity.operations.migration), np.flatnonzero(late)
    found, begun = np.zeros(len(work), dtype=np.int64), activity.operations.start[moved]
    ended = work.ended_before()
    first = first_since(activity.device[moved], begun, work.device[mine], ended[mine])
    found[mine] = np.maximum(work.start[mine] - np.append(begun, np.iinfo(np.int64).max)[first], 0)
    return found


def pace_of(work: Work, ready: IntArray, others: Before, hidden: Before, paged: IntArray, devices: int) -> Pace:
    """Medians of what is seen; with few cases of a class those of the device, with few of these a usual figure. `ready`
    is when the launch of each operation was on its way; `others` are waits for other streams, and `hidden` what may be
    such waits. A gap is that of an operation whose launch had arrived when the one before ended. If pages moved
    meanwhile, or a host function ran, until `paged`, it is none, nor if it may have waited for another stream.

    ```
    stream    [==A==)..gap..[==B==)          ..[==A==)....[==B==)
    launch    [B]--latency->                        [B]--latency->     no gap: B starts when its launch arrives
    ```
    """
    order = stream_order(work)
    ended, free, behind = (_latest_end(work, pairs) for pairs in (order, others, hidden))
    launched = (work.launch >= 0) & (ended >= 0)
    gap, latency = work.start - ended, work.start - ready
    group = joint(work.device, work.kind, len(Class))
    paging = paged > ended
    before = np.maximum(np.maximum(ended, free), behind)
    idle = launched & ~paging & (work.issued >= before) & (latency <= LATENCY_HIGHEST_NS)
    usual = _usual(latency[idle], group[idle], devices, LATENCY_NS)
    arrived = ready + usual[work.device, work.kind]
    queued = launched & ~paging & (arrived <= ended) & (before <= ended) & (gap >= 0) & (gap <= LATENCY_HIGHEST_NS)
    held = (free > ended) & ~paging & (arrived <= free) & (work.start - free <= LATENCY_HIGHEST_NS)
    return Pace(
        _usual(gap[queued], group[queued], devices, GAP_NS),
        _usual((work.start - free)[held], group[held], devices, GAP_NS),
        usual,
        _usual(gap[queued], group[queued], devices, NONE) != NONE,
    )


def _latest_end(work: Work, pairs: Before) -> IntArray:
    """For each operation when the last of those before it ended, -1 if there is none."""
    found = np.full(len(work), -1)
    np.maximum.at(found, pairs.after, work.end[pairs.before])
    return found


def _usual(ns: IntArray, group: IntArray, devices: int, default: int) -> IntArray:
    """The median of each device and class, as an array of the two."""
    found = np.full((devices, len(Class)), default)
    for device in range(devices):
        own = group // len(Class) == device
        if np.count_nonzero(own) >= FEWEST_CASES:
            found[device] = np.median(ns[own])
        for kind in Class:
            mine = group == device * len(Class) + kind
            if np.count_nonzero(mine) >= FEWEST_CASES:
                found[device, kind] = np.median(ns[mine])
    return found


# Which operations a wait of the host waits for: those that were issued before it, and last for the last of them to
# end.

NONE = -1
"""The place of an operation that is not known, or not among those that are replayed."""


class Issued(Rows, frozen=True):
    """Operations: their `group` (a stream, a device or a process, by a number from 0 on), to which waits refer; the
    start of the call that launched them, and their end, in ns."""

    group: IntArray
    issued: IntArray
    end: IntArray


class HostWaits(Rows, frozen=True):
    """Waits [begin, end) in ns for the operations of a `group`."""

    group: IntArray
    begin: IntArray
    end: IntArray


def targets(operations: Issued, waits: HostWaits) -> IntArray:
    """The row of the operation that each wait waits for, or NONE.

    ```
    issued      A   B   |wait for the group       )  C
    stream 7     [==A=======)
    stream 9         [=====B==================)             waits for B
    ```

    A wait that ends while such an operation still runs is for an earlier one, as with an event: the last that had ended
    by then.
    """
    found = _last_to_end(operations, waits)
    runs = found >= 0
    runs[runs] = operations.end[found[runs]] > waits.end[runs]
    those = waits.take(runs)
    row = last_before(operations.group, operations.end, those.group, those.end)
    found[runs] = np.where(np.append(operations.issued, 0)[row] < those.begin, row, NONE)
    return found


def last_of_each_kind(operations: Issued, kind: IntArray, waits: HostWaits) -> tuple[IntArray, IntArray]:
    """The operations that each wait is for, and no wait before it in the group: of each `kind` the last to end. Pairs
    of rows of `waits` and of `operations`. One that still ran at the end of a wait is for a later wait.

    ```
    issued      A   B   C |wait for the group          )
    stream 7     [==A==)[=====C=======================)
    stream 9         [=====B==========)                       waits for C and B
    ```
    """
    order = np.lexsort((waits.begin, waits.group))
    sorted_waits = waits.take(order)
    issued, end, begin, over = keyed(
        (operations.group, operations.issued),
        (operations.group, operations.end),
        (sorted_waits.group, sorted_waits.begin),
        (sorted_waits.group, sorted_waits.end),
    )
    # The latest end of all waits of a group up to each one.
    over = np.maximum.accumulate(over)
    at = np.maximum(np.searchsorted(begin, issued, "right"), np.searchsorted(over, end))
    wait = np.append(order, 0)[at]
    known = np.flatnonzero(at < len(waits))
    known = known[(waits.group[wait[known]] == operations.group[known])]
    rows = known[operations.end[known] <= waits.end[wait[known]]]
    rows = rows[np.lexsort((operations.end[rows], kind[rows], wait[rows]))]
    last = (np.diff(wait[rows], append=-1) != 0) | (np.diff(kind[rows], append=-1) != 0)
    return wait[rows[last]], rows[last]


def following(group: IntArray, in_order: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of a wait and the next one of its group; `in_order` are the waits group by group."""
    before, after = in_order[:-1], in_order[1:]
    same = group[before] == group[after]
    return before[same], after[same]


def _last_to_end(operations: Issued, waits: HostWaits) -> IntArray:
    """Of all issued before the wait."""
    if len(operations) == 0:
        return np.full(len(waits), NONE, dtype=np.int64)
    theirs, asked = keyed((operations.group, operations.issued), (waits.group, waits.begin))
    order = np.argsort(theirs, kind="stable")
    at = nearest_before(theirs[order], asked - 1)
    row = last_to_end(operations.group, operations.end, order)[np.maximum(at, 0)]
    return np.where((at >= 0) & (operations.group[row] == waits.group), row, NONE)
