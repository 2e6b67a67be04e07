"""Launch calls that wait until there is room in the queue of a stream."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.causes import PLACE, QUEUE_FULL
from nsysdiag.events.calls import CallRows
from nsysdiag.events.rows import Rows, last_before
from nsysdiag.replay.device_waits import DeviceWaits
from nsysdiag.replay.work import Work, keyed

HELD_NS, HELD_FACTOR, RELEASED_NS = 20_000, 4, 20_000
"""A launch call waited for space in the queue if it takes longer than this and than this many medians. It must return
this soon after the start of an operation."""
FEWEST_QUEUED = 32
"""Operations that are launched and have not started when a queue is full."""
NEARLY_FULL, OFTEN = 0.9, 0.05
"""Of the most that ever wait in a stream: a queue with so many is full, if so many of all calls find it so and take
longer. A queue that only fills up to a synchronization is that long for a tenth of the calls, few of which take longer
by chance."""
LONGER = 1.25
"""Times the usual length: a call that finds a full queue, and takes no longer, did not wait. Calls for kernels of a few
µs wait as little; a larger number takes their waits for work of the host."""
SHORTEST, FEWEST_FREE = 500, 10
"""If fewer calls find a queue that is not full, the usual length is that of the shortest ones of the whole trace: so
many, or a tenth of all. A queue of 1,024 is filled by calls that do not wait."""
ALWAYS = 0.9
"""If so many calls find a full queue, and an operation starts during each, hardly any call does not wait: it is not
known how long one takes. It is taken to be twice as long as it lasts on once there is room: before it waits it does
about as much. Calls that do not wait are short, and few operations start during them."""


class _LaunchCalls(Rows, frozen=True):
    """Launch calls: the row of each, the first of its operations (a place in `Work`), and when it was, in ns."""

    call: IntArray
    first: IntArray
    begin: IntArray
    end: IntArray

    @classmethod
    def of(cls, work: Work, calls: CallRows) -> _LaunchCalls:
        """Those of some work."""
        launched = np.flatnonzero(work.launch >= 0)
        call, first = np.unique(work.launch[launched], return_index=True)
        return cls(call, launched[first], calls.start[call], calls.end[call])

    @property
    def length(self) -> IntArray:
        """How long each takes, in ns."""
        return self.end - self.begin


def full_queues(work: Work, calls: CallRows, first: IntArray | None = None) -> DeviceWaits:
    """Launch calls that waited for a place in a full queue, and the operation whose start freed it. `first` is when the
    first operation of each device of the trace starts, in ns, by its number; None if `work` has all operations.

    ```
    device    [==A==)[==B==)[==C==)         launched long ago
    thread    [launch of Z .)[launch of ..  returns when B starts
    ```
    """
    launches = _LaunchCalls.of(work, calls)
    often = _held_often(work, calls, launches, first)
    others = launches.take(~np.isin(launches.call, often.call))
    return DeviceWaits.concatenate([_held_now_and_then(work, calls, others), often])


def _held_now_and_then(work: Work, calls: CallRows, launches: _LaunchCalls) -> DeviceWaits:
    """Those that take far longer than most, on whatever stream."""
    usual = int(np.median(launches.length)) if len(launches) else 0
    launches = launches.take(launches.length > max(HELD_NS, HELD_FACTOR * usual))
    device = work.device[launches.first]
    target = last_before(work.device, work.start, device, launches.end)
    queued, since = _queued(work, work.device, device, launches), np.append(work.start, 0)[target]
    held: BoolArray = (target >= 0) & (queued >= FEWEST_QUEUED) & (launches.end - since <= RELEASED_NS)
    held &= since > launches.begin + usual
    return _waits(calls, launches.take(held), target[held], np.full(np.count_nonzero(held), usual))


def _held_often(work: Work, calls: CallRows, launches: _LaunchCalls, first: IntArray | None) -> DeviceWaits:
    """Those of programs that are ahead of the device as far as the queue of a stream allows: their calls wait there
    until one more operation is done, and return a little later.

    ```
    device    [==A==)[==B==)[==C==)[==D==)           launched long ago
    thread    [launch ...)[launch ...)[launch ...)   each as long as the kernel that makes room
    ```
    """
    stream = work.stream[launches.first]
    queued = _queued(work, work.stream, stream, launches)
    most = np.zeros(int(stream.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, stream, queued)
    full = (queued >= FEWEST_QUEUED) & (queued >= NEARLY_FULL * most[stream])
    target = last_before(work.stream, work.start, stream, launches.end)
    since = np.append(work.start, 0)[target]
    inside = (target >= 0) & (since > launches.begin)
    known = _knows_queue(work, launches, first)
    found = _Found(launches.take(known), full[known], np.where(inside, launches.end - since, -1)[known])
    usual = _usual_ns(calls, calls.name[launches.call], found)
    held: BoolArray = full & inside & (launches.length > LONGER * usual) & (launches.end - since <= RELEASED_NS + usual)
    if np.count_nonzero(held) < max(OFTEN * len(launches), FEWEST_QUEUED):
        return DeviceWaits.empty()
    # What the call does once there is room is a part of what it usually does.
    before = np.maximum(usual - (launches.end - since), 0)
    return _waits(calls, launches.take(held), target[held], before[held])


def _queued(work: Work, queue: IntArray, asked: IntArray, launches: _LaunchCalls) -> IntArray:
    """How many operations of the `asked` queue of each call were issued before it began, and had not started when it
    ended; `queue` is that of each operation."""
    issued, at = keyed((queue, work.issued), (asked, launches.begin))
    started, end = keyed((queue, work.start), (asked, launches.end))
    found: IntArray = np.searchsorted(np.sort(issued), at) - np.searchsorted(np.sort(started), end, side="right")
    return found


def _knows_queue(work: Work, launches: _LaunchCalls, first: IntArray | None) -> BoolArray:
    """For which calls it is known how many operations are queued: from the start of one in their stream on that has a
    launch, or from the `first` of the device on.

    ```
    device    ..[== launched before the trace, or not in the work ==)[==A==)[==B==)[==C==)
    thread    ..[launch of A ......)[launch of B ....)[launch of C ......)[launch of D ..)    as full at A as at D
    ```
    """
    launched = np.flatnonzero(work.launch >= 0)
    begun = np.full(int(work.device.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(begun, work.device[launched], work.start[launched])
    whole = np.ones(len(begun), dtype=np.bool_) if first is None else begun <= first[: len(begun)]
    stream, start = work.stream[launched], work.start[launched]
    seen = last_before(stream, start, work.stream[launches.first], launches.end) >= 0
    return whole[work.device[launches.first]] | seen


class _Found(Struct, frozen=True):
    """Launch calls of which it is known how many operations were queued, and whether the queue was `full`. `behind` is
    how long each lasts on after an operation started during it, in ns, -1 if none did."""

    calls: _LaunchCalls
    full: BoolArray
    behind: IntArray


def _usual_ns(calls: CallRows, name: IntArray, found: _Found) -> IntArray:
    """How long each call with these names takes if the queue is not full, in ns: as calls of its name that do not find
    it so."""
    usual, named = np.zeros(len(name), dtype=np.int64), calls.name[found.calls.call]
    for each in np.unique(named[found.full]).tolist():
        mine = named == each
        free = found.calls.length[mine & ~found.full]
        if len(free) >= FEWEST_FREE:
            usual[name == each] = np.median(free)
            continue
        waits = found.behind[mine & found.full & (found.behind >= 0)]
        always = len(waits) >= ALWAYS * np.count_nonzero(mine)
        shortest = _shortest_ns(calls, each)
        usual[name == each] = min(shortest, 2 * np.median(waits)) if always else shortest
    return usual


def _shortest_ns(calls: CallRows, name: int) -> int:
    """How long the shortest calls of a name take, in ns."""
    rows = np.flatnonzero(calls.name == name)
    length, count = calls.end[rows] - calls.start[rows], min(len(rows) // 10, SHORTEST)
    return int(np.partition(length, count)[count])


def _waits(calls: CallRows, launches: _LaunchCalls, target: IntArray, before: IntArray) -> DeviceWaits:
    """The waits of calls for these targets, which begin `before` ns after the call."""
    cause = np.full(len(launches), PLACE[QUEUE_FULL])
    begin = launches.begin + before
    return DeviceWaits(calls.thread[launches.call], begin, launches.end, cause, launches.call, target)
