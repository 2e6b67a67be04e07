"""Waits of host threads, what may end them, and how one thread is chosen of those that may have."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, rows_from
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.rows import CallTable, Rows, RowsOf


class Ends(IntEnum):
    """What ends a wait."""

    NO_THREAD = 0  # a disk or a timer
    SIGNAL = 1  # a condition variable: another thread of the process signals it
    RELEASE = 2  # a lock, semaphore or barrier: nothing that is traced
    WRITE = 3  # a pipe or a socket: a thread of any process writes
    CHILD = 4  # a process ends
    UNKNOWN = 5  # off the CPU in something that was not traced
    THREAD = 6  # a thread of the process ends


class Waits(Rows, frozen=True):
    """Waits [start, end) in ns of `thread` (globalTid). `name` says which call, `ends` is one of `Ends`; `timed` (1)
    are waits that may also end by themselves."""

    thread: IntArray
    start: IntArray
    end: IntArray
    name: IntArray
    ends: IntArray
    timed: IntArray


_BY_NAME = (
    (Ends.SIGNAL, re.compile(r"_*pthread_cond_\w*wait\w*")),
    (
        Ends.RELEASE,
        re.compile(
            r"_*pthread_(mutex_\w*lock|rwlock_\w*lock|barrier_wait|spin_lock)"
            r"|_*sem_\w*wait\w*|sem(timed)?op|futex\w*|flockfile|flock|lockf\w*"
        ),
    ),
    (
        Ends.WRITE,
        re.compile(
            r"_*(read|readv|recv\w*|poll|ppoll|__poll_chk|p?select|epoll_p?wait2?|accept4?|mq_\w*receive)(_chk)?"
        ),
    ),
    (Ends.CHILD, re.compile(r"waitpid|wait[34]?|waitid")),
    (Ends.THREAD, re.compile(r"_*pthread_(timed|clock|try)?join\w*")),
)
_TIMED = re.compile(r".*(timed|clock|poll|select|epoll).*")

SIGNALS = re.compile(r"_*pthread_cond_(signal|broadcast)")
RELEASES = re.compile(r"_*sem_post|_*pthread_(mutex|rwlock|spin)_unlock|futex_wake\w*|_*pthread_barrier_wait")
WRITES = re.compile(r"write|writev|send\w*|mq_\w*send|splice|vmsplice|close|shutdown|eventfd_write")


def wakes_another(name: str) -> bool:
    """Whether a call of this name may end a wait of another thread."""
    return any(each.fullmatch(name) for each in (SIGNALS, RELEASES, WRITES))


def ends_of(names: list[str]) -> IntArray:
    """What ends the waits in calls of each name."""
    found = [next((ends for ends, pattern in _BY_NAME if pattern.fullmatch(name)), Ends.NO_THREAD) for name in names]
    return np.array(found, dtype=np.int64)


def is_timed(names: list[str]) -> IntArray:
    """1 for calls that may end by themselves when a time is over."""
    return np.array([_TIMED.fullmatch(name) is not None for name in names], dtype=np.int64)


# Pairs of a wait and a thread that may have ended it, the evidence for each, and how one is chosen.


PAIRS_AT_ONCE = 2_000_000
"""Pairs of a wait and a row that are tried together, or those of a single wait: 16 MB for each array of 64-bit numbers.
The number changes memory and time only: the result is the same."""


class Pairs(Rows, frozen=True):
    """Waits, and threads that may have ended them, at a `distance` in ns from the moment; `at` is the time of that,
    `call` the call, -1 if unknown."""

    wait: IntArray
    thread: IntArray
    at: IntArray
    distance: IntArray
    call: IntArray

    @classmethod
    def without_calls(cls, wait: IntArray, thread: IntArray, at: IntArray, distance: IntArray) -> Pairs:
        """Pairs whose calls are not known."""
        return cls(wait, thread, at, distance, np.full(len(wait), -1, dtype=np.int64))


def within(
    time: IntArray, low: IntArray, high: IntArray, chosen: IntArray, fits: Callable[[IntArray, IntArray], BoolArray]
) -> tuple[IntArray, IntArray]:
    """For the `chosen` of some waits the rows of the sorted `time` in [low, high] that fit: (wait, row) pairs. Tried in
    parts: of many rows few fit."""
    first = np.searchsorted(time, low[chosen])
    count = np.maximum(np.searchsorted(time, high[chosen], side="right") - first, 0)
    parts = [(chosen[:0], first[:0])]
    for part in np.split(np.arange(len(chosen)), np.flatnonzero(np.diff(np.cumsum(count) // PAIRS_AT_ONCE)) + 1):
        some, begin = count[part], first[part]
        wait = np.repeat(chosen[part], some)
        row = rows_from(begin, some)
        kept = fits(wait, row)
        parts.append((wait[kept], row[kept]))
    waits, rows = (np.concatenate(side) for side in zip(*parts, strict=True))
    return waits, rows


def nearest(pairs: Pairs) -> Pairs:
    """The nearest pair of each wait, of equally near ones the thread with the lower number."""
    order = np.lexsort((pairs.call, pairs.at, pairs.thread, pairs.distance, pairs.wait))
    pairs = pairs.take(order)
    return pairs.take(np.append(True, pairs.wait[1:] != pairs.wait[:-1])[: len(pairs)])


def alone(pairs: Pairs) -> BoolArray:
    """True for pairs of waits that have a single thread."""
    if len(pairs) == 0:
        return np.zeros(0, dtype=np.bool_)
    size = int(pairs.wait.max()) + 1
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(lowest, pairs.wait, pairs.thread)
    np.maximum.at(highest, pairs.wait, pairs.thread)
    single: BoolArray = lowest == highest
    return single[pairs.wait]


def group_and_thread(pairs: Pairs, group: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each pair's (group of waits, thread), every wait counted once for a thread; and the threads."""
    threads, code = distinct(pairs.thread)
    _, key = distinct(group[pairs.wait] * len(threads) + code)
    return key, threads


def most_often(pairs: Pairs, group: IntArray) -> Pairs:
    """Of each wait's pairs those of the thread that is there at most waits of its group."""
    if len(pairs) == 0:
        return pairs
    pairs = one_a_thread(pairs)
    key, _ = group_and_thread(pairs, group)
    hits = np.bincount(key)[key].astype(np.float64)
    best, _ = two_best(pairs.wait, hits)
    return pairs.take(hits == best[pairs.wait])


def one_a_thread(pairs: Pairs) -> Pairs:
    """The nearest pair of each wait and thread."""
    order = np.lexsort((pairs.call, pairs.at, pairs.distance, pairs.thread, pairs.wait))
    pairs = pairs.take(order)
    new = (pairs.wait[1:] != pairs.wait[:-1]) | (pairs.thread[1:] != pairs.thread[:-1])
    return pairs.take(np.append(True, new)[: len(pairs)])


def two_best(owner: IntArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest and the second largest value of each owner; -inf where there is none."""
    size = int(owner.max(initial=-1)) + 1
    best, second = np.full(size, -np.inf), np.full(size, -np.inf)
    order = np.lexsort((value, owner))
    owner, value = owner[order], value[order]
    last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    best[owner[last]] = value[last]
    before = np.flatnonzero(last) - 1
    before = before[before >= 0]
    again = before[owner[before] == owner[before + 1]]
    second[owner[again]] = value[again]
    return best, second


class How(IntEnum):
    """The evidence that a thread ended a wait."""

    NOTHING = 0
    CALL = 1
    CALL_OF_SEVERAL = 2
    RAN = 3
    RAN_OFTEN = 4
    RAN_NEAREST = 5
    RETURNED = 6
    ENDED = 7
    USUAL = 8


CONFIDENCE = {
    How.NOTHING: 0.0,
    How.CALL: 0.95,  # its wake call is the only one around
    How.CALL_OF_SEVERAL: 0.6,  # several threads made wake calls: the one that does so each time, else the nearest
    How.RAN: 0.85,  # the only thread that ran until then
    How.RAN_OFTEN: 0.65,  # of several the one that ran until then again and again, more than chance has it
    How.RAN_NEAREST: 0.4,  # of several the one that stopped running closest
    How.RETURNED: 0.5,  # without scheduling: the only thread whose call ended or began then
    How.ENDED: 0.8,  # the process whose last sign of life was just before
    How.USUAL: 0.75,  # the thread whose calls ended nearly all other such waits was there
}
"""Confidences, lower than measured on the captured waits in tests/fixtures: there the first, third, fourth and last
were always right, and the nearest of several in 19 of 26."""


class Wakers(Rows, frozen=True):
    """For each wait: the thread that ended it (globalTid, 0: unknown), the time in ns, the call (an index into the
    names of OS calls, -1: unknown), the kind of evidence (`How`), and the confidence, 0 to 1."""

    thread: IntArray
    at: IntArray
    call: IntArray
    how: IntArray
    confidence: FloatArray

    @classmethod
    def none(cls, at: IntArray) -> Wakers:
        """Nothing known of any."""
        nothing = np.zeros(len(at), dtype=np.int64)
        return cls(nothing, at.copy(), np.full(len(at), -1, dtype=np.int64), nothing.copy(), np.zeros(len(at)))

    def put(self, rows: IntArray, others: Wakers) -> None:
        """Write others down in some rows."""
        for name in self.__struct_fields__:
            getattr(self, name)[rows] = getattr(others, name)

    def settle(self, pairs: Pairs, how: How) -> None:
        """Write down the nearest pair of each wait that is still open."""
        pairs = nearest(pairs.take(self.how[pairs.wait] == How.NOTHING))
        self.thread[pairs.wait] = pairs.thread
        self.at[pairs.wait] = pairs.at
        self.call[pairs.wait] = pairs.call
        self.how[pairs.wait] = how
        self.confidence[pairs.wait] = CONFIDENCE[how]


REPEATED = 5
"""Waits of a group, at least, before any thread is there again and again."""
ALWAYS = 0.8
"""Of the waits of a group: where a thread is there so often, it is nearly always."""
STANDS_OUT = 0.25
"""By so much a thread must be there more often than by chance, and than any other."""


def usual_callers(pairs: Pairs, close: BoolArray, chance: FloatArray, group: IntArray, length: IntArray) -> IntArray:
    """For each wait, `length` ns long: the thread that is paired with nearly every wait of its group, more often than
    any other and than its `chance` (of each pair); 0 for none. Several of its pairs must be `close`: a thread that
    never calls right before the end is not the waker. No pair occurs twice. Long waits have more weight."""
    of_group = np.zeros(int(group.max(initial=0)) + 1, dtype=np.int64)
    if len(pairs):
        weight = length.astype(np.float64)
        key, _ = group_and_thread(pairs, group)
        # A row for each group and thread.
        hits, spent = np.bincount(key), np.bincount(key, weights=weight[pairs.wait])
        near = np.bincount(key, weights=close)
        expected = np.bincount(key, weights=chance * weight[pairs.wait]) / np.maximum(spent, 1)
        owner, thread = np.zeros((2, len(hits)), dtype=np.int64)
        owner[key], thread[key] = group[pairs.wait], pairs.thread
        rate = spent / np.maximum(np.bincount(group, weights=weight)[owner], 1)
        usual = stands_out(owner, rate, expected) & (hits > REPEATED) & (near >= REPEATED)
        of_group[owner[usual]] = thread[usual]
    return of_group[group]


def stands_out(owner: IntArray, rate: FloatArray, chance: FloatArray) -> BoolArray:
    """Of each owner's rows the one whose rate is high, and above chance by more than that of any other."""
    lift = rate - chance
    best, second = two_best(owner, lift)
    result: BoolArray = (rate >= ALWAYS) & (lift == best[owner])
    return result & (lift - np.maximum(second, 0)[owner] >= STANDS_OUT)


# Calls that end waits, and the threads that made them around the end of one.


class WakeCalls(Rows, frozen=True):
    """Calls that end waits, by start; `ends` as in `Ends`, `name` an index into the names of OS calls."""

    start: IntArray
    thread: IntArray
    ends: IntArray
    name: IntArray


class Callers:
    """When each thread made wake calls."""

    def __init__(self, calls: WakeCalls) -> None:
        self._calls, self._of_thread = calls, RowsOf(calls.thread)

    def between(self, thread: int, ends: IntArray, low: IntArray, high: IntArray) -> BoolArray:
        """True where the thread made a call within [low, high] that ends such waits."""
        mine = self._calls.take(self._of_thread[thread])
        result = np.zeros(len(low), dtype=np.bool_)
        for kind in distinct_values(ends).tolist():
            start = mine.start[mine.ends == kind]
            rows = np.flatnonzero(ends == kind)
            result[rows] = np.searchsorted(start, low[rows]) < np.searchsorted(start, high[rows], side="right")
        return result


def wake_calls(calls: CallTable, ignored: IntArray) -> WakeCalls:
    """The OS calls that end waits, but those of `ignored` threads."""
    by_name = np.zeros(len(calls.names), dtype=np.int64)
    for ends, pattern in ((Ends.SIGNAL, SIGNALS), (Ends.RELEASE, RELEASES), (Ends.WRITE, WRITES)):
        by_name[[pattern.fullmatch(name) is not None for name in calls.names]] = ends
    kind = by_name[calls.name] if len(calls.names) else calls.name
    chosen = np.flatnonzero((kind > 0) & (calls.start >= 0) & ~np.isin(calls.thread, ignored))
    chosen = chosen[np.argsort(calls.start[chosen], kind="stable")]
    return WakeCalls(calls.start[chosen], calls.thread[chosen], kind[chosen], calls.name[chosen])


class WakeMoments(Struct, frozen=True):
    """When each wait may have been ended: between the `first` and the `last` moment, in ns."""

    first: IntArray
    last: IntArray


def callers_within(calls: WakeCalls, waits: Waits, moment: WakeMoments, *, anywhere: bool = False) -> Pairs:
    """Threads whose calls between two moments may have ended each wait; the distance is to the later one. Writes may be
    those of any process, other calls only with `anywhere`."""
    process, own = process_of(calls.thread), process_of(waits.thread)

    def fits(wait: IntArray, call: IntArray) -> BoolArray:
        other = (calls.thread[call] != waits.thread[wait]) & (calls.start[call] >= waits.start[wait])
        reaches = anywhere | (process[call] == own[wait]) | (waits.ends[wait] == Ends.WRITE)
        return other & reaches & (calls.ends[call] == waits.ends[wait])

    chosen = np.flatnonzero(np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE, Ends.WRITE)))
    wait, call = within(calls.start, moment.first, moment.last, chosen, fits)
    at = calls.start[call]
    return Pairs(wait, calls.thread[call], at, moment.last[wait] - at, calls.name[call])


# Wakers that were there by chance: a thread that ends waits of a kind is there whenever one of them ends.
#
# ```
# T          [ sem_wait ---)   [ sem_wait ---)   [ sem_wait ---)   [ sem_wait ---)      119 times
# waker      runs, posts ->|   runs, posts ->|   runs, posts ->|   runs, posts ->|      there 110 times
# unrelated                       [== runs ==]                                          there 12 times, as at any moment
# ```

LEAST = 10
"""Fewer waits of a kind have no rate."""
MOST = 0.5
"""A waker is there when at least so many of them end; of a pool of threads, these together."""
TIMES, DEVIATIONS = 2.0, 2.5
"""A thread of a pool is there so many times as often as at any moment, or by so many standard deviations more often."""
FAR = 10.0
"""So many times as often as by chance: its writes end these waits, whatever ends the others."""
SAMPLED = 1_000
"""As many of a kind are enough for a rate."""
_DOUBTED = (How.CALL, How.CALL_OF_SEVERAL, How.RAN, How.RAN_NEAREST, How.RETURNED)


class Presence(Struct, frozen=True):
    """Threads around the ends of waits. `there` is True for the waits at some rows if a thread ran until the end or
    made a call then; `chance` (0 to 1) is the probability of that for a thread at any moment, by the `Ends` of waits.
    `unclear` marks waits without a search for a waker: they ended long before, or the call returned at once, like a
    read with available data."""

    there: Callable[[int, IntArray], BoolArray]
    chance: Callable[[int, int], float]
    unclear: BoolArray


def passers_by(waits: Waits, group: IntArray, found: Wakers, presence: Presence) -> IntArray:
    """The rows of the waits whose waker in `found` does not end most waits of their group, neither alone nor as one of
    a pool. Waits that may end by themselves are not judged, and groups of fewer than ten."""
    judged = (waits.timed == 0) & np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE, Ends.WRITE))
    judged &= ~(presence.unclear & (found.how == How.NOTHING))
    rows = np.flatnonzero(judged)
    size = np.bincount(group[rows], minlength=int(group.max(initial=0)) + 1)
    rows = rows[size[group[rows]] >= LEAST]
    doubted = rows[np.isin(found.how[rows], _DOUBTED)]
    if len(doubted) == 0:
        return doubted
    threads, thread = distinct(found.thread[doubted])
    keys, key = distinct(joint(group[doubted], thread, len(threads)))
    of_group = RowsOf(group[rows])
    pairs = [divmod(each, len(threads)) for each in keys.tolist()]
    rated = [_rate(int(threads[at]), rows[of_group[kind]], waits, found, presence) for kind, at in pairs]
    alone = np.array([rate.share >= MOST for rate in rated], dtype=np.bool_)
    more = np.array([rate.often for rate in rated], dtype=np.bool_)
    # A thread may read files as well, whose reads no thread ends. A write that comes seldom is not chance.
    written = np.array([rate.far for rate in rated], dtype=np.bool_)[key] & (waits.ends[doubted] == Ends.WRITE)
    # Of all waits of a group those with a waker, of the doubted ones only those whose waker is there often enough.
    sure = rows[(found.thread[rows] > 0) & ~np.isin(found.how[rows], _DOUBTED)]
    explained = np.bincount(group[np.append(sure, doubted[(alone | more)[key]])], minlength=len(size))
    together = explained / np.maximum(np.bincount(group[rows], minlength=len(size)), 1) >= MOST
    return doubted[~(alone[key] | written | (more[key] & together[group[doubted]]))]


class Rate(NamedTuple):
    """The share of the waits of a group at whose end a thread is there; whether that is `often`er than by chance, and
    `far` from it."""

    share: float
    often: bool
    far: bool


def _rate(thread: int, rows: IntArray, waits: Waits, found: Wakers, presence: Presence) -> Rate:
    rows = rows[:: -(-len(rows) // SAMPLED)]
    there = presence.there(thread, rows) | (found.thread[rows] == thread)
    hits, count = int(np.count_nonzero(there)), len(rows)
    expected = count * presence.chance(thread, int(waits.ends[rows[0]]))
    spread = math.sqrt(expected * (1 - expected / count))
    often = hits >= TIMES * expected or hits >= expected + DEVIATIONS * spread
    return Rate(hits / count, often, hits >= max(LEAST, FAR * expected))
