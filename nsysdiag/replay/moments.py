"""The moments of a replay in order: operations start, launches begin, waits end, and threads wake others."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.causes import HOST_CODE, PLACE
from nsysdiag.events.calls import CallRows
from nsysdiag.events.rows import Rows, distinct_values
from nsysdiag.replay.device_waits import NEVER, DeviceWaits, Waited
from nsysdiag.replay.meetings import Meetings
from nsysdiag.replay.mpi_meetings import MpiCalls
from nsysdiag.replay.pacing import Timed
from nsysdiag.replay.targets import NONE
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Work

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


class Threads(Struct, frozen=True):
    """What the threads of a stretch did that the replay moves: the rows of the calls that launched its operations
    (ascending); waits for devices, with all that they are for, and full queues; waits for other threads with their
    cause; MPI calls in which ranks wait for each other; and waits that may end at a time of their own."""

    launches: IntArray
    waited: Waited
    full: DeviceWaits
    woken: Wakes
    woken_cause: IntArray
    mpi: MpiCalls
    timed: Timed

    @property
    def held(self) -> DeviceWaits:
        """The waits for devices."""
        return self.waited.held


class Places(Struct, frozen=True):
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
    work: Work, threads: Threads, calls: CallRows, meetings: Meetings, begin: int | None = None
) -> tuple[Moments, Places]:
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
        Moments.returns(held.begin, held.end, held.thread, work.end[held.target], held.cause),
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
    places = Places(operation, launch, held_at, full_at, woken_at, wake, meeting, end, come, met, back, of_waits, timed)
    return every.take(order), places


def _behind_own_waits(threads: Threads) -> IntArray:
    """When each thread is woken, in ns: by a thread that had a wait of its own until that very time, 1 ns later."""
    woken, own = threads.woken, (threads.held, threads.full, threads.woken)
    ended = np.unique(np.concatenate([np.stack((each.thread, each.end), axis=1) for each in own]), axis=0)
    asked = np.stack((woken.waker, woken.at), axis=1)
    _, code = np.unique(np.concatenate((ended, asked)), axis=0, return_inverse=True)
    known, code = np.split(code.reshape(-1), [len(ended)])
    return np.minimum(woken.at + np.isin(code, known), woken.end)


def _borders(threads: Threads, calls: CallRows, begin: int | None) -> Moments:
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
