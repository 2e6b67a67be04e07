"""Collectives: none of the ranks that take part can leave one before the last of them has come.

```
rank 0   [== waits ==|==]
rank 1             [====]        the exchange begins when rank 1 has come
                     ^ meeting
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.replay.work import Class, Work

ENDS_APART_NS = 20_000
"""Send and receive of one transfer end within this time: the last piece has to be written and acknowledged."""
RARE = 0.05
"""Share of a stream's pairs: two streams that seldom end together do so by chance."""


class Met(Rows, frozen=True):
    """That the communication kernel of `device` (a number) which started at `start` (ns) is a part of the collective
    `meeting`, a number."""

    meeting: IntArray
    device: IntArray
    start: IntArray


class Meetings(Struct, frozen=True):
    """`time` is when the last rank came to each, in ns; `of` is the place of each operation's meeting, -1 for none."""

    time: IntArray
    of: IntArray

    def lengths(self, work: Work) -> IntArray:
        """How long each operation takes once it can: from its start, or from the meeting."""
        begun = np.where(self.of >= 0, np.append(self.time, 0)[self.of], work.start)
        return work.end - begun


def last_to_come(meeting: IntArray, count: int, begin: IntArray, end: IntArray) -> tuple[IntArray, BoolArray]:
    """When the last part of each of `count` meetings began, in ns, and whether none had ended by then; `meeting` is the
    number of each part's."""
    came, left = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(came, meeting, begin)
    np.minimum.at(left, meeting, end)
    return came, came <= left


def meetings_of(work: Work, met: Met) -> Meetings:
    """The meetings of which all parts are among the operations. One that a rank left before another came was none."""
    of = np.full(len(work), -1)
    if len(met) == 0 or len(work) == 0:
        return Meetings(np.empty(0, np.int64), of)
    communication = np.flatnonzero(work.kind == Class.COMMUNICATION)
    starts, rank = distinct(np.concatenate((work.start[communication], met.start)))
    key = joint(np.concatenate((work.device[communication], met.device)), rank, len(starts))
    theirs, asked = key[: len(communication)], key[len(communication) :]
    order = np.argsort(theirs, kind="stable")
    at = np.minimum(np.searchsorted(theirs[order], asked), max(len(order) - 1, 0))
    known = theirs[order][at] == asked if len(order) else np.zeros(len(asked), dtype=np.bool_)
    row = communication[order[at[known]]] if len(order) else communication
    numbers, meeting = distinct(met.meeting)
    whole = np.bincount(meeting[known], minlength=len(numbers)) == np.bincount(meeting, minlength=len(numbers))
    came, together = last_to_come(meeting[known], len(numbers), work.start[row], work.end[row])
    whole &= together
    place = np.where(whole, np.cumsum(whole) - 1, -1)
    of[row] = place[meeting[known]]
    return Meetings(came[whole], of)


class Transfers(Rows, frozen=True):
    """Kernels that send or receive, as [start, end) in ns, with the numbers of their `device` and their `stream`."""

    device: IntArray
    stream: IntArray
    start: IntArray
    end: IntArray


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
    return Met(np.tile(np.arange(len(first)), 2), sorted_.device[both], sorted_.start[both])
