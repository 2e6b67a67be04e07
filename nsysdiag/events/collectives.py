"""Which collective each communication kernel is: its kind and its communicator, by its name and by the NCCL call that
launched it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import IntArray, nearest_before
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.rows import Rows, RowsOf

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings

# The words of a name without its underscores, and the kind that they say. A name may hold several (ReduceScatter,
# AllGather): the one that begins first counts, of those the longest.
_WORDS = {
    "allreduce": "AllReduce",
    "allgather": "AllGather",
    "reducescatter": "ReduceScatter",
    "alltoall": "AllToAll",
    "sendrecv": "SendRecv",
    "send": "SendRecv",
    "recv": "SendRecv",
    "broadcast": "Broadcast",
    "bcast": "Broadcast",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
    "barrier": "Barrier",
}
OTHER, SEND_RECEIVE = "Other", "SendRecv"
KINDS = (*dict.fromkeys(_WORDS.values()), OTHER)
MEETINGS = frozenset({"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Barrier"})
"""The kinds that no rank can leave before every rank has come: they end together."""
_OTHER = KINDS.index(OTHER)
_GROUP_START, _GROUP_END = "ncclGroupStart", "ncclGroupEnd"
_NOT_OPERATIONS = ("ncclGroup", "ncclComm")


def kind_of(name: str) -> int:
    """The kind that a kernel's or a call's name says, an index into KINDS.

    `ncclKernel_AllReduce_RING_LL_Sum_float`, `ncclDevKernel_ReduceScatter_Sum_f32_RING_LL`, `ncclAllGather`."""
    text = name.lower().replace("_", "")
    found = [(text.find(word), -len(word), kind) for word, kind in _WORDS.items() if word in text]
    return KINDS.index(min(found)[2]) if found else _OTHER


class Collectives(Rows, frozen=True):
    """The communication kernels of a device in order of start: `row` among its operations, times in ns, `kind` an index
    into KINDS, `communicator` 0 where the trace does not name it, `stream` a code. MPI calls likewise, where these are
    what ranks meet in: `row` among the calls, `stream` that of the thread."""

    row: IntArray
    start: IntArray
    end: IntArray
    kind: IntArray
    communicator: IntArray
    stream: IntArray


def find_collectives(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, strings: Strings) -> Collectives:
    """Every communication kernel of the device that ran for any time."""
    operations = device.operations
    row = np.flatnonzero(device.communication & device.running)
    names, code = np.unique(operations.short_name[row], return_inverse=True)
    by_name = np.array([kind_of(text) for text in strings.texts(names)], dtype=np.int64)
    kind = by_name[code] if len(row) else row
    by_call, communicator = _by_calls(device.launch[row], calls, ranges)
    return Collectives(
        row=row,
        start=operations.start[row],
        end=operations.end[row],
        kind=np.where(kind == _OTHER, by_call, kind),
        communicator=communicator,
        stream=device.stream_code[row],
    )


def _by_calls(launch: IntArray, calls: CallRows, ranges: NvtxRanges) -> tuple[IntArray, IntArray]:
    """The kind and the communicator of the NCCL calls behind each launch."""
    kind, communicator = np.full(len(launch), _OTHER, dtype=np.int64), np.zeros(len(launch), dtype=np.int64)
    rows = ranges.rows.take(ranges.rows.communication)
    launched = np.flatnonzero(launch >= 0) if len(rows) else np.empty(0, dtype=np.int64)
    launched_by = RowsOf(calls.thread[launch[launched]])
    of_thread = RowsOf(rows.thread, launched_by.values())
    for thread in launched_by.values():
        its = launched[launched_by[thread]]
        mine = rows.take(of_thread[thread])
        mine = mine.take(np.argsort(mine.start, kind="stable"))
        kind[its], communicator[its] = _on_thread(calls.start[launch[its]], mine, ranges.names)
    return kind, communicator


def _on_thread(issued: IntArray, rows: RangeRows, names: list[str]) -> tuple[IntArray, IntArray]:
    """By the calls of one thread, in order: the one around the launch, or all those of the group that launched it.

    ```
    thread  [GroupStart][AllReduce][AllReduce][GroupEnd  launch  ]      [AllGather  launch ]
    ```
    """
    words, word = np.unique(rows.name, return_inverse=True)
    texts = [names[name] for name in words.tolist()]
    operation = np.array([not text.startswith(_NOT_OPERATIONS) for text in texts], dtype=np.bool_)[word]
    calls = rows.take(operation)
    if len(calls) == 0:
        return np.full(len(issued), _OTHER, dtype=np.int64), np.zeros(len(issued), dtype=np.int64)
    step = np.array([(text == _GROUP_START) - (text == _GROUP_END) for text in texts], dtype=np.int64)[word]
    # A group's end counts where no group around it is open. A capture may begin inside a group: the lowest depth is
    # outside of all.
    depth = np.cumsum(step)
    ends_of_groups = rows.take((step < 0) & (depth == depth.min(initial=0)))
    first, behind = _calls_behind(issued, calls, ends_of_groups)
    kinds = np.array([kind_of(text) for text in texts], dtype=np.int64)[word[operation]]
    return _common(kinds, first, behind, _OTHER), _common(calls.communicator, first, behind, 0)


def _calls_behind(issued: IntArray, calls: RangeRows, groups: RangeRows) -> tuple[IntArray, IntArray]:
    """For each launch the first of its calls and one behind the last."""
    around = nearest_before(calls.start, issued)
    inside = (around >= 0) & (calls.end[np.maximum(around, 0)] > issued)
    group = nearest_before(groups.start, issued)
    previous_end = np.append(groups.end, np.iinfo(np.int64).min)[group - 1 if len(groups) else group]
    previous_end = np.where(group > 0, previous_end, np.iinfo(np.int64).min)
    grouped = (group >= 0) & (np.append(groups.end, 0)[group] > issued)
    begin = np.searchsorted(calls.start, previous_end, side="left")
    first = np.where(inside, around, np.where(grouped, begin, 0))
    behind = np.where(inside, around + 1, np.where(grouped, around + 1, 0))
    return first, behind


def _common(values: IntArray, first: IntArray, behind: IntArray, otherwise: int) -> IntArray:
    """The value that all of values[first:behind] have; `otherwise` where there are none or they differ."""
    changes = np.append(0, np.cumsum(values[1:] != values[:-1]))
    last = np.maximum(behind - 1, 0)
    same = (behind > first) & (changes[last] == changes[np.minimum(first, len(values) - 1)])
    return np.where(same, values[last], otherwise)
