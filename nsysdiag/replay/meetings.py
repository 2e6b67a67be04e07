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
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, distinct
from nsysdiag.replay.work import Class, Work

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

    @classmethod
    def nothing(cls) -> Met:
        """No meetings."""
        none = np.empty(0, dtype=np.int64)
        return cls.collectives(none, none, none)


def all_of(parts: list[Met]) -> Met:
    """Meetings that are numbered apart in each part, numbered together."""
    behind = np.cumsum([0, *(1 + int(each.meeting.max(initial=-1)) for each in parts)])
    return Met.concatenate(
        [replace(each, meeting=each.meeting + first) for each, first in zip(parts, behind.tolist(), strict=False)]
    )


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
    came, left = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(came, meeting, begin)
    np.minimum.at(left, meeting, end)
    return came, came <= left


def meetings_of(work: Work, met: Met) -> Meetings:
    """The meetings of which all parts are among the operations. One that a rank left before another came was none."""
    of, none = np.full(len(work), -1), np.empty(0, np.int64)
    if len(met) == 0 or len(work) == 0:
        return Meetings(none, of, none, none)
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
    take about as long once those that they exchange with have come. Empty where no such order is found.

    ```
    gpu0   [===== waits |==)            exchanges with 1
    gpu1         [waits |==)            exchanges with 0 and 2
    gpu2                [==)            exchanges with 1
    ```
    """
    for period in range(1, min(MOST_GROUPS, start.shape[1] // FEWEST) + 1):
        turns = [slice(turn, None, period) for turn in range(period)]
        linked = [_linked(start[:, turn], end[:, turn]) for turn in turns]
        if all(each is not None for each in linked):
            return _left_alone(device, start, [each for each in linked if each is not None])
    return Met.nothing()


def _linked(start: IntArray, end: IntArray) -> BoolArray | None:
    """Which rows exchange with which, themselves included; None where that does not explain when they end."""
    at_once = (start[:, None] < end[None]) & (start[None] < end[:, None])
    found: BoolArray = at_once.mean(axis=2) >= 1 - RARE
    came = np.where(found[..., None], start[None], 0).max(axis=1)
    apart = np.ptp(end - came, axis=0)
    explained = np.mean((apart <= ENDS_APART_NS) & ((end - came).min(axis=0) >= 0)) >= 1 - RARE
    return found if explained and (found.sum(axis=1) > 1).all() else None


def _left_alone(device: IntArray, start: IntArray, linked: list[BoolArray]) -> Met:
    """A meeting for each kernel, which it leaves, and to which those come that it exchanges with."""
    members, groups = start.shape
    links = np.stack([linked[group % len(linked)] for group in range(groups)])
    group, leaving, coming = np.nonzero(links)
    return Met(group * members + leaving, device[coming], start[coming, group], leaving == coming)


class Transfers(Rows, frozen=True):
    """Kernels that send or receive, as [start, end) in ns, with the numbers of their `device` and their `stream`."""

    device: IntArray
    stream: IntArray
    start: IntArray
    end: IntArray

    def without(self, met: Met) -> Transfers:
        """Those that are not of any of these meetings."""
        starts, rank = distinct(np.concatenate((self.start, met.start)))
        key = joint(np.concatenate((self.device, met.device)), rank, max(len(starts), 1))
        return self.take(~np.isin(key[: len(self)], key[len(self) :]))


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
