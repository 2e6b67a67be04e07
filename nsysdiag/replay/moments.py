"""The moments of a replay in order: operations start, launches begin, waits end, and threads wake others."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes import HOST_CODE, PLACE
from nsysdiag.events.calls import CallRows
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, distinct, distinct_values
from nsysdiag.replay.device_waits import NEVER, DeviceWaits, DeviceWaitTable
from nsysdiag.replay.functions import Behind
from nsysdiag.replay.pacing import Timed
from nsysdiag.replay.targets import NONE
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Class, Work

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

    @classmethod
    def nothing(cls) -> MpiCalls:
        """No calls."""
        none = np.empty(0, dtype=np.int64)
        return mpi_calls(none, none, none, none)


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


def both(first: MpiCalls, second: MpiCalls) -> MpiCalls:
    """The meetings of both."""
    moved = replace(second, meeting=second.meeting + 1 + first.meeting.max(initial=-1))
    return MpiCalls.concatenate([first, moved])


def within(calls: MpiCalls, lo: int, hi: int) -> MpiCalls:
    """The meetings whose calls all begin in [lo, hi), numbered from 0."""
    inside = (calls.begin >= lo) & (calls.begin < hi)
    outside = np.unique(calls.meeting[~inside])
    kept = calls.take(~np.isin(calls.meeting, outside))
    return replace(kept, meeting=distinct(kept.meeting)[1])


DEVICE = 0
"""In place of a thread: the moment is an operation's."""


class What(IntEnum):
    """What a moment is; of those at the same time the lower comes first."""

    WAKE = 0  # a thread wakes another
    OPERATION = 1  # an operation starts
    FINISHED = 2  # all that a wait of a thread is for, besides its target, has ended
    RETURN = 3  # a wait of a thread ends
    LAUNCH = 4  # a call that launches begins
    ARRIVAL = 5  # a thread comes to a meeting
    MEETING = 6  # the last rank has come to a collective
    BORDER = 7  # the replayed window begins or ends for a thread


class Moments(Rows, frozen=True):
    """Moments of threads (globalTid, or DEVICE), in ns. One that ends a wait has the wait's `begin`, the time at which
    it was `released`, and its `cause`, an index into the registry; for all others these are its own time, NEVER and
    -1."""

    time: IntArray
    what: IntArray
    thread: IntArray
    begin: IntArray
    released: IntArray
    cause: IntArray

    @classmethod
    def points(cls, time: IntArray, what: What, thread: IntArray) -> Moments:
        """Moments that end no wait."""
        none = np.full(len(time), -1)
        return cls(time, np.full(len(time), what), thread, time, np.full(len(time), NEVER), none)

    @classmethod
    def returns(cls, begin: IntArray, end: IntArray, thread: IntArray, released: IntArray, cause: IntArray) -> Moments:
        """The ends of waits."""
        return cls(end, np.full(len(end), What.RETURN), thread, begin, released, cause)


class ThreadActions(Struct, frozen=True):
    """What the threads of a stretch did that the replay moves: the rows of the calls that launched its operations
    (ascending); waits for devices, with all that they are for, and full queues; the host `functions` that hold these.
    What they `asked` devices for was done at once.
    Also waits for other threads with their cause, and MPI calls in which ranks wait for each other. Waits that may end
    at a time of their own are `timed`."""

    launches: IntArray
    waited: DeviceWaitTable
    full: DeviceWaits
    woken: Wakes
    woken_cause: IntArray
    mpi: MpiCalls
    timed: Timed
    functions: Behind
    asked: DeviceWaits

    @property
    def held(self) -> DeviceWaits:
        """The waits for devices."""
        return self.waited.held

    def released(self, work: Work) -> IntArray:
        """When what each wait for a device is for had ended, in ns: its target, and host functions behind that."""
        ended = work.end[self.held.target]
        ended[self.functions.row] = np.maximum(ended[self.functions.row], self.functions.end)
        return ended


class MomentPlaces(Struct, frozen=True):
    """The number of each row's moment, from 1 on: 0 is the ORIGIN. `end` is the moment from which the length of each
    operation counts: its start, or its meeting. `mpi_return` is by the calls of MPI that leave a meeting; `finished` by
    waits for devices, NONE where there is none."""

    operation: IntArray
    launch: IntArray
    held: IntArray
    full: IntArray
    woken: IntArray
    wake: IntArray
    meeting: IntArray
    end: IntArray
    mpi_arrival: IntArray
    mpi_meeting: IntArray
    mpi_return: IntArray
    finished: IntArray
    timed: IntArray


def moments_of(
    work: Work, threads: ThreadActions, calls: CallRows, meetings: Meetings, begin: int | None = None
) -> tuple[Moments, MomentPlaces]:
    """All moments in order, and where each row's is. Where a window is replayed, what threads did from its `begin` on,
    in ns, is in the replay, too."""
    held, full, woken, mpi = threads.held, threads.full, threads.woken, threads.mpi
    _, first = np.unique(mpi.meeting, return_index=True)
    left = mpi.take(mpi.leaves)
    finished = threads.waited.ended(work)
    in_order = threads.waited.in_order
    some = in_order[finished[in_order] != NEVER]
    parts = [
        Moments.points(work.start, What.OPERATION, np.full(len(work), DEVICE)),
        Moments.points(calls.start[threads.launches], What.LAUNCH, calls.thread[threads.launches].astype(np.int64)),
        Moments.returns(held.begin, held.end, held.thread, threads.released(work), held.cause),
        Moments.returns(full.begin, full.end, full.thread, work.start[full.target], full.cause),
        Moments.returns(woken.begin, woken.end, woken.thread, woken.at, threads.woken_cause),
        Moments.points(_behind_own_waits(threads), What.WAKE, woken.waker),
        Moments.points(meetings.time, What.MEETING, np.full(len(meetings.time), DEVICE)),
        Moments.points(mpi.begin, What.ARRIVAL, mpi.thread),
        Moments.points(mpi.came[first], What.MEETING, np.full(len(first), DEVICE)),
        Moments.returns(left.begin, left.end, left.thread, left.came, np.full(len(left), PLACE[HOST_CODE])),
        Moments.points(finished[some], What.FINISHED, np.full(len(some), DEVICE)),
        Moments.points(threads.timed.end, What.RETURN, threads.timed.thread),
    ]
    parts.append(_borders(threads, calls, begin))
    every = Moments.concatenate(parts)
    order = np.lexsort((every.thread, every.what, every.time))
    place = np.empty(len(every), dtype=np.int64)
    place[order] = np.arange(1, len(every) + 1)
    operation, launch, held_at, full_at, woken_at, wake, meeting, come, met, back, finished_at, timed, _ = np.split(
        place, np.cumsum([len(part) for part in parts])[:-1]
    )
    end = np.where(meetings.of >= 0, np.append(meeting, 0)[meetings.of], operation)
    of_waits = np.full(len(held), NONE)
    of_waits[some] = finished_at
    places = MomentPlaces(
        operation, launch, held_at, full_at, woken_at, wake, meeting, end, come, met, back, of_waits, timed
    )
    return every.take(order), places


def _behind_own_waits(threads: ThreadActions) -> IntArray:
    """When each thread is woken, in ns: by a thread that had a wait of its own until that very time, 1 ns later."""
    woken, own = threads.woken, (threads.held, threads.full, threads.woken)
    ended = np.unique(np.concatenate([np.stack((each.thread, each.end), axis=1) for each in own]), axis=0)
    asked = np.stack((woken.waker, woken.at), axis=1)
    _, code = np.unique(np.concatenate((ended, asked)), axis=0, return_inverse=True)
    known, code = np.split(code.reshape(-1), [len(ended)])
    return np.minimum(woken.at + np.isin(code, known), woken.end)


def _borders(threads: ThreadActions, calls: CallRows, begin: int | None) -> Moments:
    """When each launching thread made its first call of all, at or after the `begin` of the window, in ns: from then on
    it is known to be there. And when its last launch returned. None without a window."""
    launching = distinct_values(calls.thread[threads.launches])
    if begin is None or len(launching) == 0:
        return Moments.empty()
    place = np.minimum(np.searchsorted(launching, calls.thread), len(launching) - 1)
    mine = np.flatnonzero(launching[place] == calls.thread)
    first, last = np.full(len(launching), np.iinfo(np.int64).max), np.zeros(len(launching), dtype=np.int64)
    np.minimum.at(first, place[mine], calls.start[mine])
    np.maximum.at(last, place[threads.launches], calls.end[threads.launches])
    # A call that launches is a moment of its own.
    earlier = ~np.isin(first, calls.start[threads.launches])
    time = np.concatenate((np.maximum(first, begin)[earlier], last))
    return Moments.points(time, What.BORDER, np.concatenate((launching[earlier], launching)).astype(np.int64))
