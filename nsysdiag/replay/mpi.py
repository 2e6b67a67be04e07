"""Calls of MPI between ranks: messages, and calls that wait for one other rank."""

from __future__ import annotations

import re

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.events.collectives import Does, Messages
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import NamedRows, Rows, distinct
from nsysdiag.kernels.communication import steady_sends
from nsysdiag.replay.changes import Changes
from nsysdiag.replay.model import Model
from nsysdiag.replay.moments import MpiCalls, mpi_calls
from nsysdiag.replay.stretch import LEAST_ERROR

# Messages of MPI between ranks of one trace: who receives one waits until it is sent, who sends may wait, too.
#
# ```
# rank 0   [computes       ][MPI_Send)
#                           v posted
# rank 1   [MPI_Recv =======|==)      the n-th receive of a tag from a rank is that of its n-th send to this one
# ```

SHIFTS = (0, -1, 1)
"""How many receives are left out at the begin of a link; the first is usual."""
CLEARLY = 2
"""Times as long: receives that fit other sends so much better are not known."""


class _Pairs(Rows, frozen=True):
    """Rows of messages: the one that `sends` and the one that `receives`, and the number of their `link`: two ranks, a
    direction and a tag."""

    sends: IntArray
    receives: IntArray
    link: IntArray


class _Ends(Rows, frozen=True):
    """That the wait for the message `waits` ends once the call of the message `comes` has begun, by rows; of what
    `link`; a `sure` one needs no proof."""

    waits: IntArray
    comes: IntArray
    link: IntArray
    sure: BoolArray


def waits_for_messages(messages: Messages) -> MpiCalls:
    """The waits for messages, each a meeting that one rank leaves and to which others come."""
    pairs, count = _pairs(messages)
    both = messages.does == Does.SEND | Does.RECEIVE
    twofold = np.zeros(len(messages), dtype=np.bool_)
    twofold[both] = _exchanged_with_several(messages.take(both))
    none = np.zeros(len(pairs), dtype=np.bool_)
    received = _Ends(pairs.receives, pairs.sends, pairs.link, ~twofold[pairs.receives])
    sent = _Ends(pairs.sends, pairs.receives, pairs.link, none)
    found = [_proven(messages, each, count) for each in (received, sent)]
    return _calls(messages, _Ends.concatenate(found))


def _exchanged_with_several(calls: Messages) -> BoolArray:
    """Which of calls that send and receive do so with two ranks: of which they receive is not known."""
    _thread, who = distinct(calls.thread)
    times, time = distinct(calls.begin)
    call, of = distinct(joint(who, time, max(len(times), 1)))
    low, high = np.full(len(call), np.iinfo(np.int64).max), np.full(len(call), -1)
    np.minimum.at(low, of, calls.remote)
    np.maximum.at(high, of, calls.remote)
    found: BoolArray = (low < high)[of]
    return found


def _pairs(messages: Messages) -> tuple[_Pairs, int]:
    """Sends and the receives of what they send, by their order on each link; and how many links there are."""
    sends, receives = (np.flatnonzero(messages.does & each) for each in (Does.SEND, Does.RECEIVE))
    source = np.concatenate((messages.rank[sends], messages.remote[receives]))
    target = np.concatenate((messages.remote[sends], messages.rank[receives]))
    tags, tag = distinct(messages.tag[np.concatenate((sends, receives))])
    most = int(max(source.max(initial=0), target.max(initial=0))) + 1
    links, link = distinct(joint(joint(source, target, most), tag, max(len(tags), 1)))
    of_send, of_receive = np.split(link, [len(sends)])
    counts = [np.bincount(each, minlength=len(links)) for each in (of_send, of_receive)]
    sent, received = _numbered(messages, sends, of_send), _numbered(messages, receives, of_receive)
    by_shift = [_shifted(messages, sent, received, shift) for shift in SHIFTS]
    return _Pairs.concatenate(_best(messages, by_shift, counts)), len(links)


def _numbered(messages: Messages, row: IntArray, link: IntArray) -> tuple[IntArray, IntArray]:
    """The rows by their links, in order, and a number for each link and place, ascending; those of the places beyond
    both ends of a link are free."""
    order = np.lexsort((messages.posted[row], link))
    row, link = row[order], link[order]
    count = np.bincount(link)
    place = np.arange(len(row)) - (np.cumsum(count) - count)[link]
    return row, joint(link, place + 1, len(messages) + 2)


def _shifted(
    messages: Messages, sent: tuple[IntArray, IntArray], received: tuple[IntArray, IntArray], shift: int
) -> _Pairs:
    """Each send and the receive of the same number, or so many later, of its link."""
    at = np.searchsorted(received[1], sent[1] + shift)
    there = np.append(received[1], -1)[at] == sent[1] + shift
    return _Pairs(sent[0][there], received[0][at[there]], sent[1][there] // (len(messages) + 2))


def _best(messages: Messages, by_shift: list[_Pairs], counts: list[IntArray]) -> list[_Pairs]:
    """Of each link the pairs in which no message is received before it is sent. At the borders of a trace a call may
    be missing: where pairs with one more or less fit far better, or as well, none is known."""
    apart = counts[0] - counts[1]
    late = [
        np.where((np.abs(apart) <= 1) & (apart * shift <= 0), _late(messages, pairs, len(apart)), np.inf)
        for pairs, shift in zip(by_shift, SHIFTS, strict=True)
    ]
    found = []
    for at, pairs in enumerate(by_shift):
        others = np.min([each for place, each in enumerate(late) if place != at], axis=0)
        chosen = late[at] < np.inf
        if at == 0:  # all messages are there: only what fits far better speaks against their order
            chosen &= np.where(apart == 0, late[0] < CLEARLY * others + 1, CLEARLY * late[0] < others)
        else:
            chosen &= (apart != 0) & (CLEARLY * late[at] < others)
        found.append(pairs.take(chosen[pairs.link]))
    return found


def _late(messages: Messages, pairs: _Pairs, links: int) -> FloatArray:
    """How long waits for messages go on in the mean once these are sent, by links, in ns; infinite where one is
    received before it is sent."""
    posted, begin, end = messages.posted[pairs.sends], messages.begin[pairs.receives], messages.end[pairs.receives]
    count = np.bincount(pairs.link, minlength=links)
    ns = np.bincount(pairs.link, np.where(begin >= 0, end - np.maximum(begin, posted), 0), links)
    early = np.bincount(pairs.link, (begin >= 0) & (end < posted), links) > 0
    found: FloatArray = np.where(early | (count == 0), np.inf, ns / np.maximum(count, 1))
    return found


def _proven(messages: Messages, ends: _Ends, links: int) -> _Ends:
    """Those of links on which no wait ended before the other call had begun. They are sure where it is certain what is
    received, or where one waited for longer than others take."""
    ends = ends.take(messages.begin[ends.waits] >= 0)
    begin, end, came = messages.begin[ends.waits], messages.end[ends.waits], messages.posted[ends.comes]
    against = np.bincount(ends.link, end < came, links) > 0
    longest, shortest = np.full(links, -1), np.full(links, np.iinfo(np.int64).max)
    np.maximum.at(longest, ends.link, came - begin)
    np.minimum.at(shortest, ends.link, end - np.maximum(begin, came))
    sure = ends.sure | (longest > shortest)[ends.link]
    return replace(ends, sure=sure).take(~against[ends.link])


def _calls(messages: Messages, ends: _Ends) -> MpiCalls:
    """A meeting for each call that waits, with all that it waits for."""
    _threads, who = distinct(messages.thread[ends.waits])
    times, time = distinct(messages.begin[ends.waits])
    _, first, meeting = np.unique(joint(who, time, max(len(times), 1)), return_index=True, return_inverse=True)
    leaving, coming = ends.waits[first], ends.comes
    return mpi_calls(
        np.concatenate((messages.thread[leaving], messages.thread[coming])),
        np.concatenate((messages.begin[leaving], messages.posted[coming])),
        np.concatenate((messages.end[leaving], messages.posted[coming])),
        np.concatenate((np.arange(len(first)), meeting.reshape(-1))),
        leaves=np.repeat((True, False), (len(leaving), len(coming))),
        sure=np.append(np.ones(len(leaving), dtype=np.bool_), ends.sure),
    )


# Calls of MPI that wait for one other rank: the trace does not say which call of that rank they are for.
#
# ```
# rank 0   [MPI_Sendrecv ====)      ends sooner, or as it did, once rank 1 is faster
# rank 1   [computes    ][===)
# ```

_EXCHANGES = re.compile(r"MPI_(Sendrecv\w*|[BRS]?send|Send|M?Recv|M?Probe|Wait(all|any|some)?)", re.IGNORECASE)


def without_waits(changes: Changes) -> Changes | None:
    """The same if such calls of a rank take no time, except for those that are changed themselves. Messages that
    always take the same time stay, too. A peer that is always late makes even the shortest one wait. None where they
    hardly take any."""
    model, calls = changes.model, exchanging(changes.model)
    axis, stretch = model.host.host.axis, model.stretch
    begun = axis.time(calls.spans.start)
    calls = calls.take(~steady_sends(calls, axis, (begun >= stretch.begin) & (begun < stretch.end)))
    if not len(calls) or not len(model.pieces):
        return None
    waits = (model.row_of_piece(calls.spans) >= 0) & (changes.time >= 1)
    waited = int((model.pieces.end - model.pieces.start)[waits].sum())
    if waited < LEAST_ERROR * (model.stretch.end - model.stretch.begin):
        return None
    return replace(changes, time=np.where(waits, 0.0, changes.time))


def most_sooner(changes: Changes) -> float:
    """By how much the changes make a peer sooner in a step, in ns: what they take away from the process and the device
    that they take most from."""
    model, pieces = changes.model, changes.model.pieces
    axis = model.host.host.axis
    _, process = distinct(process_of(axis.threads[pieces.start // axis.stride].astype(np.int64)))
    host = np.bincount(process, (pieces.end - pieces.start) * (1 - changes.time)).max(initial=0)
    unseen = (model.unseen * (1 - changes.unseen)).sum()
    work = np.bincount(model.work.device, model.length - changes.length).max(initial=0)
    return float(host + unseen + work) / max(model.stretch.count, 1)


def in_a_row(model: Model) -> int:
    """How many ranks may wait for each other in a row: all others of the trace that make such calls, at least one."""
    calls, axis = exchanging(model), model.host.host.axis
    return max(len(np.unique(process_of(axis.threads[calls.spans.start // axis.stride].astype(np.int64)))) - 1, 1)


def takes_out_waits(changes: Changes) -> bool:
    """Whether any wait is gone, or any order of work."""
    kept = (changes.held, changes.others, changes.full, changes.woken, ~changes.dropped)
    return not all(each.all() for each in kept)


def exchanging(model: Model) -> NamedRows:
    """The outermost calls that wait for one rank of which it is not known what it does."""
    lane, met = model.host.host.mpi, model.threads.mpi
    named = np.array([_EXCHANGES.fullmatch(each) is not None for each in lane.names], dtype=np.bool_)
    rows = np.flatnonzero(named[lane.name] & lane.outermost) if len(lane) else np.empty(0, dtype=np.int64)
    calls, left = lane.take(rows), met.take(met.leaves)
    known = model.on_axis(left.thread, left.begin, left.end)
    return calls.take(~np.isin(calls.spans.start, known.start))
