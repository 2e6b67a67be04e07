"""What ranks of MPI send each other, where the trace says so: the calls, the other rank, and who waits for it where."""

from __future__ import annotations

import re
from enum import IntFlag
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import coded_names
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import Rows, distinct

if TYPE_CHECKING:
    from nsysdiag.trace.trace import Trace

MESSAGES, WAITS, RANKS = "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_RANKS"
UNKNOWN = -1
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
    if len(known) == 0:
        return np.full(len(process), UNKNOWN)
    at = np.minimum(np.searchsorted(known, process), len(known) - 1)
    return np.where(known[at] == process, ranks["rank"][first][at], UNKNOWN)


def _several(process: IntArray, communicator: IntArray) -> BoolArray:
    """The rows of processes with more than one communicator."""
    numbers, number = distinct(process)
    codes, code = distinct(communicator)
    pairs = np.unique(joint(number, code, max(len(codes), 1)))
    several: BoolArray = np.bincount(pairs // max(len(codes), 1), minlength=len(numbers)) > 1
    return several[number]


def _waits(
    trace: Trace, thread: IntArray, start: IntArray, end: IntArray, at_once: BoolArray
) -> tuple[IntArray, IntArray]:
    """The begin and the end in ns of the call in which a thread waits for each message. A request is waited for before
    its number is used again."""
    rows = trace.read(WAITS, "start", "end", "globalTid", "textId", "requestHandle")
    waits = np.flatnonzero(_by_name(trace, rows["textId"], ((_WAITS, 1),)) > 0)
    requests = trace.read(MESSAGES, "requestHandle")["requestHandle"]
    asked = np.flatnonzero(at_once)
    _, who = distinct(np.concatenate((rows["globalTid"][waits].astype(np.int64), thread[asked])))
    handles, handle = distinct(np.concatenate((rows["requestHandle"][waits], requests[asked])))
    key = joint(who, handle, max(len(handles), 1))
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
