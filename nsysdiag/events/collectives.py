"""Which collective each communication kernel is: its kind and its communicator, by its name and by the NCCL call that
launched it."""

from __future__ import annotations

import re
from enum import IntFlag
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, IntArray, nearest_before, places_among
from nsysdiag.events.calls import CallRows, coded_names
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.rows import Rows, RowsOf, combinations

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings
    from nsysdiag.trace.trace import Trace


# The words of a name without its underscores, and the kind that they say. A name may hold several (ReduceScatter,
# AllGather): the one that begins first counts, of those the longest.
_WORDS = {
    "allreduce": "AllReduce",
    "allgather": "AllGather",
    "reducescatter": "ReduceScatter",
    "crossdevicereduce": "AllReduce",
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
_IN_SWITCH = re.compile(r"NVLS|LDMC|multimem")
"""NCCL's algorithm, its kernels on symmetric memory that read by multicast, and those of PyTorch."""
_RECEIVE = "ncclRecv"
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
    into KINDS, `communicator` 0 if the trace does not name it, `stream` a code. MPI calls likewise, where these are
    what ranks meet in: `row` among the calls, `stream` that of the thread. `message` is the bytes of the message and
    `ranks` the number of ranks, as NCCL's calls say it; 0 if these are not known. `in_switch`: the name says that
    switches of NVLink add up."""

    row: IntArray
    start: IntArray
    end: IntArray
    kind: IntArray
    communicator: IntArray
    stream: IntArray
    message: IntArray
    ranks: IntArray
    in_switch: BoolArray


def find_collectives(device: DeviceTimeline, calls: CallRows, ranges: NvtxRanges, strings: Strings) -> Collectives:
    """Every communication kernel of the device that ran for any time."""
    operations = device.operations
    row = np.flatnonzero(device.communication & device.running)
    names, by_text = np.unique(operations.short_name[row], return_inverse=True)
    texts = strings.texts(names)
    by_name = np.array([kind_of(text) for text in texts], dtype=np.int64)
    in_switch = np.array([_IN_SWITCH.search(text) is not None for text in texts], dtype=np.bool_)
    kind = by_name[by_text] if len(row) else row
    by_call, communicator, message = _by_calls(device.launch[row], calls, ranges)
    known, code = distinct(communicator)
    ranks = np.array([ranges.ranks.get(each, 0) for each in known.tolist()], dtype=np.int64)
    return Collectives(
        row=row,
        start=operations.start[row],
        end=operations.end[row],
        kind=np.where(kind == _OTHER, by_call, kind),
        communicator=communicator,
        stream=device.stream_code[row],
        message=message,
        ranks=ranks[code] if len(row) else row,
        in_switch=in_switch[by_text] if len(row) else np.zeros(0, dtype=np.bool_),
    )


def _by_calls(launch: IntArray, calls: CallRows, ranges: NvtxRanges) -> tuple[IntArray, ...]:
    """The kind, the communicator and the message of the NCCL calls behind each launch."""
    kind, (communicator, message) = np.full(len(launch), _OTHER), np.zeros((2, len(launch)), dtype=np.int64)
    rows = ranges.rows.take(ranges.rows.communication)
    launched = np.flatnonzero(launch >= 0) if len(rows) else np.empty(0, dtype=np.int64)
    launched_by = RowsOf(calls.thread[launch[launched]])
    of_thread = RowsOf(rows.thread, launched_by.values())
    for thread in launched_by.values():
        its = launched[launched_by[thread]]
        mine = rows.take(of_thread[thread])
        mine = mine.take(np.argsort(mine.start, kind="stable"))
        found = _on_thread(calls.start[launch[its]], mine, ranges.names)
        kind[its], communicator[its], message[its] = found
    return kind, communicator, message


def _on_thread(issued: IntArray, rows: RangeRows, names: list[str]) -> tuple[IntArray, ...]:
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
        return np.full(len(issued), _OTHER), *np.zeros((2, len(issued)), dtype=np.int64)
    step = np.array([(text == _GROUP_START) - (text == _GROUP_END) for text in texts], dtype=np.int64)[word]
    # A group's end counts where no group around it is open. A capture may begin inside a group: the lowest depth is
    # outside of all.
    depth = np.cumsum(step)
    outside = depth.min(initial=0)
    ends_of_groups = rows.take((step < 0) & (depth == outside))
    opened = rows.start[(step > 0) & (depth == outside + 1)]
    first, behind = _calls_behind(issued, calls, ends_of_groups, opened)
    kinds = np.array([kind_of(text) for text in texts], dtype=np.int64)[word[operation]]
    receives = np.array([text == _RECEIVE for text in texts], dtype=np.bool_)[word[operation]]
    message = np.maximum(*(_sums(calls.message * each, first, behind) for each in (receives, ~receives)))
    message[_sums((calls.message <= 0).astype(np.int64), first, behind) > 0] = 0
    # Of several kernels of one group nothing says which of its calls each is for.
    called = behind > first
    _, group, size = np.unique(np.where(called, first, -1), return_inverse=True, return_counts=True)
    message[(size[group] > 1) | ~called] = 0
    return _common(kinds, first, behind, _OTHER), _common(calls.communicator, first, behind, 0), message


def _sums(values: IntArray, first: IntArray, behind: IntArray) -> IntArray:
    """The sums of values[first:behind]."""
    until = np.append(0, np.cumsum(values))
    return until[behind] - until[first]


def _calls_behind(issued: IntArray, calls: RangeRows, groups: RangeRows, opened: IntArray) -> tuple[IntArray, IntArray]:
    """For each launch the first of its calls and one behind the last; groups are `opened` at these times."""
    around = nearest_before(calls.start, issued)
    inside = (around >= 0) & (calls.end[np.maximum(around, 0)] > issued)
    group = nearest_before(groups.start, issued)
    previous_end = np.append(groups.end, np.iinfo(np.int64).min)[group - 1 if len(groups) else group]
    previous_end = np.where(group > 0, previous_end, np.iinfo(np.int64).min)
    grouped = (group >= 0) & (np.append(groups.end, 0)[group] > issued)
    began = np.append(opened, np.iinfo(np.int64).min)[nearest_before(opened, issued)]
    begin = np.searchsorted(calls.start, np.maximum(previous_end, began), side="left")
    first = np.where(inside, around, np.where(grouped, begin, 0))
    behind = np.where(inside, around + 1, np.where(grouped, around + 1, 0))
    return first, behind


def _common(values: IntArray, first: IntArray, behind: IntArray, otherwise: int) -> IntArray:
    """The value that all of values[first:behind] have; `otherwise` where there are none or they differ."""
    changes = np.append(0, np.cumsum(values[1:] != values[:-1]))
    last = np.maximum(behind - 1, 0)
    same = (behind > first) & (changes[last] == changes[np.minimum(first, len(values) - 1)])
    return np.where(same, values[last], otherwise)


# What ranks of MPI send each other, where the trace says so: the calls, the other rank, and who waits for it where.

MESSAGES, WAITS, RANKS = "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_RANKS"
UNKNOWN = -1
"""The rank of a process, or the wait for a message, if the trace does not show it: both are at least 0."""
MOST_RANK = 1 << 31
"""MPI numbers ranks with 32 bits: larger ones are damage."""


class Does(IntFlag):
    """What a call does with a message. MPI_Sendrecv has a row for each of its two, and none says which it is."""

    SEND = 1
    RECEIVE = 2


_KINDS = (
    (re.compile(r"MPI_(I?[rs]?send)", re.IGNORECASE), Does.SEND),
    (re.compile(r"MPI_I?m?recv", re.IGNORECASE), Does.RECEIVE),
    (re.compile(r"MPI_Sendrecv\w*", re.IGNORECASE), Does.SEND | Does.RECEIVE),
)
_AT_ONCE = re.compile(r"MPI_I(?!nit)\w+", re.IGNORECASE)
_WAITS = re.compile(r"MPI_Wait\w*", re.IGNORECASE)


class Messages(Rows, frozen=True):
    """Calls that began at `posted` (ns), by `thread` (globalTid) of `rank`, for messages to or from rank `remote`.
    Ranks and the `tag` of a message are at least 0; `does` is one of `Does`. The thread waits for it in the call
    [begin, end): this one, or the one that waits for its request; UNKNOWN for none that is known."""

    thread: IntArray
    posted: IntArray
    begin: IntArray
    end: IntArray
    rank: IntArray
    remote: IntArray
    tag: IntArray
    does: IntArray


def read_messages(trace: Trace) -> Messages:
    """All messages between two known ranks. A receive from any rank, or of any tag, may be of each message to its rank:
    nothing is known of those. Where a process uses several communicators, ranks may have other numbers in each: none is
    known."""
    columns = trace.read(MESSAGES, "start", "end", "globalTid", "textId", "commHandle", "tag", "remoteRank")
    thread = columns["globalTid"].astype(np.int64)
    does = _by_name(trace, columns["textId"], _KINDS)
    rank = _rank_of(trace, process_of(thread))
    start, end = columns["start"], columns["end"]
    begin, end = _waits(trace, thread, start, end, _by_name(trace, columns["textId"], ((_AT_ONCE, 1),)) > 0)
    every = Messages(thread, start, begin, end, rank, columns["remoteRank"], columns["tag"], does)
    known = (does > 0) & (rank >= 0) & (np.maximum(rank, every.remote) < MOST_RANK)
    anybody = known & ((every.remote < 0) | (every.tag < 0)) & (does == Does.RECEIVE)
    known &= (every.remote >= 0) & (every.tag >= 0) & ~_several(process_of(thread), columns["commHandle"])
    to = np.where(does & Does.RECEIVE > 0, rank, every.remote)
    return every.take(known & ~np.isin(to, rank[anybody]) & ~np.isin(every.remote, rank[anybody]))


def _by_name(trace: Trace, ids: IntArray, kinds: tuple[tuple[re.Pattern[str], int], ...]) -> IntArray:
    """The number of the kind that the name of each row is, 0 for none."""
    code, names = coded_names(trace, ids)
    found = [next((number for pattern, number in kinds if pattern.fullmatch(name)), 0) for name in names]
    return np.array([*map(int, found), 0], dtype=np.int64)[code]


def _rank_of(trace: Trace, process: IntArray) -> IntArray:
    ranks = trace.read(RANKS, "globalTid", "rank")
    known, first = np.unique(process_of(ranks["globalTid"].astype(np.int64)), return_index=True)
    return np.append(ranks["rank"][first], UNKNOWN)[places_among(known, process)]


def _several(process: IntArray, communicator: IntArray) -> BoolArray:
    """The rows of processes with more than one communicator."""
    _, (processes, _) = combinations(process, communicator)
    known, count = np.unique(processes, return_counts=True)
    return np.isin(process, known[count > 1])


def _waits(
    trace: Trace, thread: IntArray, start: IntArray, end: IntArray, at_once: BoolArray
) -> tuple[IntArray, IntArray]:
    """The begin and the end in ns of the call in which a thread waits for each message. A request is waited for before
    its number is used again."""
    rows = trace.read(WAITS, "start", "end", "globalTid", "textId", "requestHandle")
    waits = np.flatnonzero(_by_name(trace, rows["textId"], ((_WAITS, 1),)) > 0)
    requests = trace.read(MESSAGES, "requestHandle")["requestHandle"]
    asked = np.flatnonzero(at_once)
    who = np.concatenate((rows["globalTid"][waits].astype(np.int64), thread[asked]))
    key, _ = combinations(who, np.concatenate((rows["requestHandle"][waits], requests[asked])))
    time = np.concatenate((rows["start"][waits], start[asked]))
    message = np.append(np.full(len(waits), UNKNOWN), asked)
    # What comes next for a request: of its wait, if nothing is between.
    order = np.lexsort((message < 0, time, key))
    after = np.roll(order, -1)
    follows = (message[order] >= 0) & (key[after] == key[order]) & (message[after] < 0)
    follows[-1:] = False
    begin, done = np.where(at_once, UNKNOWN, start), np.where(at_once, UNKNOWN, end)
    mine, wait = message[order[follows]], waits[after[follows]]
    begin[mine], done[mine] = rows["start"][wait], rows["end"][wait]
    return begin, done
