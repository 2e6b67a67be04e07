"""Where ranks wait for each other: collectives, sends and receives, and calls of MPI."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray
from nsysdiag.events.collectives import Does, Messages
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows
from nsysdiag.replay.work import Class, Work, keyed, row_of

# Collectives: none of the ranks that take part can leave one before the last of them has come.
#
# ```
# rank 0   [== waits ==|==]
# rank 1             [====]        the exchange begins when rank 1 has come
#                      ^ meeting
# ```

ENDS_APART_NS = 20_000
"""Send and receive of one transfer end within this time: the last piece has to be written and acknowledged."""


MOST_GROUPS, FEWEST = 8, 4
"""As many groups of sends and receives may be in a step; each has to be there a few times."""


RARE = 0.05
"""Share of a stream's pairs: two streams that seldom end together do so by chance."""


class Met(Rows, frozen=True):
    """That the communication kernel of `device` (a number) which started at `start` (ns) comes to `meeting`, a number;
    one that has to wait for it `leaves` it: in a collective all."""

    meeting: IntArray
    device: IntArray
    start: IntArray
    leaves: BoolArray

    @classmethod
    def collectives(cls, meeting: IntArray, device: IntArray, start: IntArray) -> Met:
        """Kernels that all wait for each other."""
        return cls(meeting, device, start, np.ones(len(meeting), dtype=np.bool_))


class Meetings(Struct, frozen=True):
    """`time` is when the last rank came to each, in ns; `of` is the place of the meeting that each operation leaves, -1
    for none. The operations `come` (rows) to the meetings `to`."""

    time: IntArray
    of: IntArray
    come: IntArray
    to: IntArray

    def lengths(self, work: Work) -> IntArray:
        """How long each operation takes once it can: from its start, or from the meeting."""
        begun = np.where(self.of >= 0, np.append(self.time, 0)[self.of], work.start)
        return work.end - begun


def last_to_come(meeting: IntArray, count: int, begin: IntArray, end: IntArray) -> tuple[IntArray, BoolArray]:
    """When the last part of each of `count` meetings began, in ns, and whether none had ended by then; `meeting` is the
    number of each part's."""
    came = np.zeros(count, np.int64)
    np.maximum.at(came, meeting, begin)
    return came, came <= least_of_each(meeting, end, count)


def meetings_of(work: Work, met: Met) -> Meetings:
    """The meetings of which all parts are among the operations. One that a rank left before another came was none."""
    of, none = np.full(len(work), -1), np.empty(0, np.int64)
    if len(met) == 0 or len(work) == 0:
        return Meetings(none, of, none, none)
    communication = np.flatnonzero(work.kind == Class.COMMUNICATION)
    theirs, asked = keyed((work.device[communication], work.start[communication]), (met.device, met.start))
    at = row_of(asked, theirs)
    known = at >= 0
    row = communication[at[known]]
    numbers, meeting = distinct(met.meeting)
    whole = np.bincount(meeting[known], minlength=len(numbers)) == np.bincount(meeting, minlength=len(numbers))
    leaves = met.leaves[known]
    left = np.where(leaves, work.end[row], np.iinfo(np.int64).max)
    came, together = last_to_come(meeting[known], len(numbers), work.start[row], left)
    whole &= together
    place = np.where(whole, np.cumsum(whole) - 1, -1)[meeting[known]]
    of[row[leaves]] = place[leaves]
    return Meetings(came[whole], of, row[place >= 0], place[place >= 0])


def exchanges(device: IntArray, start: IntArray, end: IntArray) -> Met:
    """Groups of sends and receives on more than two devices: `start` and `end` (ns) have a row for each `device` and a
    column for each group. Who exchanges with whom repeats after some groups; two that exchange run at once, and all
    take about as long once those that they exchange with have come. Empty if no such order is found.

    ```
    gpu0   [===== waits |==)            exchanges with 1
    gpu1         [waits |==)            exchanges with 0 and 2
    gpu2                [==)            exchanges with 1
    ```
    """
    for period in range(1, min(MOST_GROUPS, start.shape[1] // FEWEST) + 1):
        turns = [slice(turn, None, period) for turn in range(period)]
        linked = [_linked(start[:, turn], end[:, turn]) for turn in turns]
        known = [each for each in linked if each is not None]
        if len(known) == period:
            # A meeting for each kernel, which it leaves, and to which those come that it exchanges with.
            members, groups = start.shape
            links = np.stack([known[group % period] for group in range(groups)])
            group, leaving, coming = np.nonzero(links)
            return Met(group * members + leaving, device[coming], start[coming, group], leaving == coming)
    return Met.empty()


def _linked(start: IntArray, end: IntArray) -> BoolArray | None:
    """Which rows exchange with which, themselves included; None if that does not explain when they end."""
    at_once = (start[:, None] < end[None]) & (start[None] < end[:, None])
    found: BoolArray = at_once.mean(axis=2) >= 1 - RARE
    came = np.where(found[..., None], start[None], 0).max(axis=1)
    apart = np.ptp(end - came, axis=0)
    explained = np.mean((apart <= ENDS_APART_NS) & ((end - came).min(axis=0) >= 0)) >= 1 - RARE
    return found if explained and (found.sum(axis=1) > 1).all() else None


class Transfers(Rows, frozen=True):
    """Kernels that send or receive, as [start, end) in ns, with the numbers of their `device` and their `stream`."""

    device: IntArray
    stream: IntArray
    start: IntArray
    end: IntArray

    def without(self, met: Met) -> Transfers:
        """Those that are not of any of these meetings."""
        mine, theirs = keyed((self.device, self.start), (met.device, met.start))
        return self.take(~np.isin(mine, theirs))


def peers(transfers: Transfers) -> Met:
    """Send and receive of one transfer: on two devices at the same time, and each the nearest to end.

    ```
    gpu0   [stage][send ...|==)[stage]
    gpu1                   [==)[stage]      the receive came last, and both end with the transfer
    ```

    Pairs of streams that are rarely found together are left out."""
    order = np.lexsort((transfers.start, transfers.end))
    sorted_ = transfers.take(order)
    fits = np.diff(sorted_.end) <= ENDS_APART_NS
    fits &= np.diff(sorted_.device) != 0
    fits &= np.maximum(sorted_.start[1:], sorted_.start[:-1]) < np.minimum(sorted_.end[1:], sorted_.end[:-1])
    apart = np.where(fits, np.diff(sorted_.end), ENDS_APART_NS + 1)
    before, behind = (np.insert(apart, at, ENDS_APART_NS + 1) for at in (0, len(apart)))
    # A pair is nearer to each other than each is to its other neighbor; of equally near ones the first.
    first = np.flatnonzero(fits & (before[:-1] > apart) & (behind[1:] >= apart))
    stream = np.stack((sorted_.stream[first], sorted_.stream[first + 1]))
    links, link, count = np.unique(np.sort(stream, axis=0), axis=1, return_inverse=True, return_counts=True)
    of_stream = np.bincount(stream.reshape(-1))
    usual = count >= RARE * of_stream[links].max(axis=0) if len(first) else count > 0
    first = first[usual[link.reshape(-1)]]
    both = np.concatenate((first, first + 1))
    return Met.collectives(np.tile(np.arange(len(first)), 2), sorted_.device[both], sorted_.start[both])


# Calls of MPI in which ranks of one trace wait for each other, as all of them in collectives.
#
# ```
# rank 0   [MPI_Allreduce =====|=)      waits for rank 1, then exchanges
# rank 1           [computes ] [=)
#                              ^ meeting
# ```


class MpiCalls(Rows, frozen=True):
    """Calls [begin, end) in ns of `thread` (globalTid) that come to a `meeting`, a number; `came` is when the last one
    came to it. Those that have to wait for the meeting leave it (`leaves`). Whether others have to wait for one that
    is not `sure` is not known."""

    thread: IntArray
    begin: IntArray
    end: IntArray
    meeting: IntArray
    came: IntArray
    leaves: BoolArray
    sure: BoolArray


Numbered = TypeVar("Numbered", Met, MpiCalls)


def all_of(parts: list[Numbered]) -> Numbered:
    """Meetings that are numbered apart in each part, numbered together; at least one part."""
    behind = np.cumsum([0, *(1 + int(each.meeting.max(initial=-1)) for each in parts)]).tolist()
    moved = [replace(each, meeting=each.meeting + first) for each, first in zip(parts, behind, strict=False)]
    return type(parts[0]).concatenate(moved)


def mpi_calls(
    thread: IntArray,
    begin: IntArray,
    end: IntArray,
    meeting: IntArray,
    leaves: BoolArray | None = None,
    sure: BoolArray | None = None,
) -> MpiCalls:
    """With the time of each meeting; without `leaves` and `sure` all leave it, and are sure. One that a rank left
    before another came was none, and is left out."""
    every = np.ones(len(thread), dtype=np.bool_)
    leaves, sure = every if leaves is None else leaves, every if sure is None else sure
    numbers, of = distinct(meeting)
    came, together = last_to_come(of, len(numbers), begin, np.where(leaves, end, np.iinfo(np.int64).max))
    kept = together[of]
    return MpiCalls(thread[kept], begin[kept], end[kept], of[kept], came[of][kept], leaves[kept], sure[kept])


def within(calls: MpiCalls, lo: int, hi: int) -> MpiCalls:
    """The meetings whose calls all begin in [lo, hi), numbered from 0."""
    inside = (calls.begin >= lo) & (calls.begin < hi)
    outside = distinct_values(calls.meeting[~inside])
    kept = calls.take(~np.isin(calls.meeting, outside))
    return replace(kept, meeting=distinct(kept.meeting)[1])


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


class _Ends(Rows, frozen=True):
    """That the wait for the message `waits` ends once the call of the message `comes` has begun, by rows. `link` is the
    number of their link: two ranks, a direction and a tag. A `sure` one needs no proof."""

    waits: IntArray
    comes: IntArray
    link: IntArray
    sure: BoolArray


def waits_for_messages(messages: Messages) -> MpiCalls:
    """The waits for messages, each a meeting that one rank leaves and to which others come."""
    received, count = _received(messages)
    sent = _Ends(received.comes, received.waits, received.link, np.zeros(len(received), dtype=np.bool_))
    return _calls(messages, _Ends.concatenate([_proven(messages, each, count) for each in (received, sent)]))


def _with_several(messages: Messages) -> BoolArray:
    """Which of them are of a call that sends and receives with two ranks: which it receives is not known."""
    found, both = np.zeros(len(messages), dtype=np.bool_), messages.does == Does.SEND | Does.RECEIVE
    calls = messages.take(both)
    call, of = distinct(*keyed((calls.thread, calls.begin)))
    several = least_of_each(of, calls.remote, len(call)) < -least_of_each(of, -calls.remote, len(call))
    found[both] = several[of]
    return found


def _received(messages: Messages) -> tuple[_Ends, int]:
    """Receives and the sends of what they receive, by their order on each link; and how many links there are."""
    rows = [np.flatnonzero(messages.does & each) for each in (Does.SEND, Does.RECEIVE)]
    sends, receives = rows
    source = np.concatenate((messages.rank[sends], messages.remote[receives]))
    target = np.concatenate((messages.remote[sends], messages.rank[receives]))
    tags, tag = distinct(messages.tag[np.concatenate(rows)])
    most = int(max(source.max(initial=0), target.max(initial=0))) + 1
    links, link = distinct(joint(joint(source, target, most), tag, max(len(tags), 1)))
    link_of = np.split(link, [len(sends)])
    order = [np.lexsort((messages.posted[row], of)) for row, of in zip(rows, link_of, strict=True)]
    (sends, receives), (sent, received) = (
        [each[at] for each, at in zip(of, order, strict=True)] for of in (rows, link_of)
    )
    # The place of the receive that has the number of each send on its link, or the number after that, or before.
    place = np.searchsorted(received, sent) + np.arange(len(sent)) - np.searchsorted(sent, sent)
    sure, by_shift = ~_with_several(messages), []
    for shift in SHIFTS:
        there = np.flatnonzero(np.append(received, -1)[np.clip(place + shift, -1, len(received))] == sent)
        waits = receives[place[there] + shift]
        by_shift.append(_Ends(waits, sends[there], sent[there], sure[waits]))
    counts = [np.bincount(each, minlength=len(links)) for each in (sent, received)]
    return _best(messages, by_shift, counts[0] - counts[1]), len(links)


def _best(messages: Messages, by_shift: list[_Ends], apart: IntArray) -> _Ends:
    """Of each link the pairs in which no message is received before it is sent; it has so many more sends than receives
    (`apart`). At the borders of a trace a call may be missing: if pairs with one more or less fit far better, or as
    well, none is known."""
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
    return _Ends.concatenate(found)


def _late(messages: Messages, pairs: _Ends, links: int) -> FloatArray:
    """How long waits for messages go on in the mean once these are sent, by links, in ns; infinite if one is
    received before it is sent."""
    posted, begin, end = messages.posted[pairs.comes], messages.begin[pairs.waits], messages.end[pairs.waits]
    count = np.bincount(pairs.link, minlength=links)
    ns = np.bincount(pairs.link, np.where(begin >= 0, end - np.maximum(begin, posted), 0), links)
    early = np.bincount(pairs.link, (begin >= 0) & (end < posted), links) > 0
    return np.where(early | (count == 0), np.inf, ns / np.maximum(count, 1))


def _proven(messages: Messages, ends: _Ends, links: int) -> _Ends:
    """Those of links on which no wait ended before the other call had begun. They are sure if it is certain what is
    received, or if one waited for longer than others take."""
    ends = ends.take(messages.begin[ends.waits] >= 0)
    begin, end, came = messages.begin[ends.waits], messages.end[ends.waits], messages.posted[ends.comes]
    against = np.bincount(ends.link, end < came, links) > 0
    longest, shortest = np.full(links, -1), least_of_each(ends.link, end - np.maximum(begin, came), links)
    np.maximum.at(longest, ends.link, came - begin)
    sure = ends.sure | (longest > shortest)[ends.link]
    return replace(ends, sure=sure).take(~against[ends.link])


def _calls(messages: Messages, ends: _Ends) -> MpiCalls:
    """A meeting for each call that waits, with all that it waits for."""
    (call,) = keyed((messages.thread[ends.waits], messages.begin[ends.waits]))
    _, first, meeting = np.unique(call, return_index=True, return_inverse=True)
    leaving, coming = ends.waits[first], ends.comes
    return mpi_calls(
        np.concatenate((messages.thread[leaving], messages.thread[coming])),
        np.concatenate((messages.begin[leaving], messages.posted[coming])),
        np.concatenate((messages.end[leaving], messages.posted[coming])),
        np.concatenate((np.arange(len(first)), meeting.reshape(-1))),
        leaves=np.repeat((True, False), (len(leaving), len(coming))),
        sure=np.append(np.ones(len(leaving), dtype=np.bool_), ends.sure),
    )
