"""Which operations a wait of the host waits for: those that were issued before it, and last for the last of them to
end."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, nearest_before
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, distinct, last_before

NONE = -1


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
    found[runs] = _last_ended(operations, waits.take(runs))
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
    moments, rank = distinct(np.concatenate((operations.issued, operations.end, sorted_waits.begin, sorted_waits.end)))
    issued, end, begin, over = np.split(rank, np.cumsum([len(operations), len(operations), len(waits)]))
    width = max(len(moments), 1)
    # Until when all waits of a group up to each one have lasted.
    over = np.maximum.accumulate(joint(sorted_waits.group, over, width))
    behind = np.searchsorted(joint(sorted_waits.group, begin, width), joint(operations.group, issued, width), "right")
    at = np.maximum(behind, np.searchsorted(over, joint(operations.group, end, width)))
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
    moments, rank = distinct(np.concatenate((operations.issued, waits.begin)))
    key = joint(np.concatenate((operations.group, waits.group)), rank, len(moments))
    theirs, asked = key[: len(operations)], key[len(operations) :]
    order = np.argsort(theirs, kind="stable")
    # The place of each end among all, made larger in each group than in the ones before: its running maximum in the
    # order of issue is that of the group.
    place = np.empty(len(operations), dtype=np.int64)
    by_end = np.argsort(operations.end, kind="stable")
    place[by_end] = np.arange(len(operations))
    latest = np.maximum.accumulate(joint(operations.group[order], place[order], len(operations)))
    at = nearest_before(theirs[order], asked - 1)
    return _of_group(operations, waits, by_end[latest[np.maximum(at, 0)] % len(operations)], at >= 0)


def _last_ended(operations: Issued, waits: HostWaits) -> IntArray:
    """Of all that had ended when the wait did; NONE where that one was issued later."""
    row = last_before(operations.group, operations.end, waits.group, waits.end)
    return np.where(np.append(operations.issued, 0)[row] < waits.begin, row, NONE)


def _of_group(operations: Issued, waits: HostWaits, row: IntArray, known: BoolArray) -> IntArray:
    found: IntArray = np.where(known & (operations.group[row] == waits.group), row, NONE)
    return found
