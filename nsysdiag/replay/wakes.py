"""Waits of host threads for other threads, and who ended each: over whole threads, not only while a device was idle."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    contains,
    coverage,
    nearest_before,
    union,
)
from nsysdiag.causes.thread_waits import SWITCH_INTERVAL_NS, TIMED_WAIT
from nsysdiag.events.calls import named_like
from nsysdiag.events.host import place_api_calls
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.rows import CallTable, Rows, ThreadAxis, first_since, last_before, place_calls
from nsysdiag.replay.pacing import WAITED_NS
from nsysdiag.replay.work import keyed
from nsysdiag.wakeups.levels import MOST_HOPS
from nsysdiag.wakeups.loaders import Finder, HostTrace, Loaders, WaitingThreads
from nsysdiag.wakeups.waits import Ends, Waits, wakes_another
from nsysdiag.wakeups.wakers import BEFORE_NS

# Threads that are born in the trace: the call of another thread that started each, and when its own activity began.
#
# ```
# creator   ---[pthread_create]------------
#                    \
# thread              `.....[ first activity
# ```

THREADS = re.compile(r"_*(pthread_create|thrd_create|clone3?)")
PROCESSES = re.compile(r"_*(v?fork|clone3?|posix_spawnp?|system|popen)")
SOON_NS = 10_000_000
"""How long after such a call the thread may show itself: it may have stood in the queue of a busy CPU."""


class Births(Rows, frozen=True):
    """That `thread` was first active at `begun`, and the call of `creator` (globalTids) that started it began at `at`,
    in ns."""

    thread: IntArray
    begun: IntArray
    creator: IntArray
    at: IntArray


def births(host_trace: HostTrace, lo: int, hi: int) -> Births:
    """Those of the threads that were started in [lo, hi)."""
    calls = host_trace.tables.os_calls
    inside = (calls.start >= lo) & (calls.start < hi)
    called = [np.append(named_like(map(typed.plain, calls.names), pattern), False) for pattern in (THREADS, PROCESSES)]
    started = [np.flatnonzero(inside & each[calls.name]) for each in called]
    if not any(map(len, started)):
        return Births.empty()
    thread, begun = _first_activity(host_trace)
    fresh = (begun >= lo) & (begun < hi + SOON_NS) & ~np.isin(thread, host_trace.nsys_threads)
    thread, begun = thread[fresh], begun[fresh]
    main = tid_of(thread) == pid_of(thread)
    parts = [
        _matched(thread[main == alone], begun[main == alone], calls, rows, alone=alone)
        for rows, alone in zip(started, (False, True), strict=True)
    ]
    return Births.concatenate(parts)


def _first_activity(host_trace: HostTrace) -> tuple[IntArray, IntArray]:
    """All threads, and when the first of their rows begins, in ns."""
    tables, api = host_trace.tables, host_trace.activity.api_calls.rows
    rows = (tables.os_calls.thread, api.thread, tables.switches.thread)
    threads, lane = distinct(np.concatenate(rows))
    begun = np.concatenate((tables.os_calls.start, api.start, tables.switches.time))
    return threads, least_of_each(lane, begun, len(threads))


def _matched(thread: IntArray, begun: IntArray, calls: CallTable, rows: IntArray, *, alone: bool) -> Births:
    """Threads and the calls at `rows` in order, those of a process with each other; with `alone` those of all
    processes. If several threads show themselves after the same call, the last of them is its own.

    ```
    calls     a   b            c
    threads             A  B     C       b is the last call before A and B: A is of a, and B of b
    ```
    """
    if len(rows) == 0 or len(thread) == 0:
        return Births.empty()
    owner, kin = (process_of(each) * (not alone) for each in (calls.thread[rows], thread))
    called, asked = keyed((owner, calls.start[rows]), (kin, begun))
    order, kids = np.argsort(called, kind="stable"), np.argsort(asked, kind="stable")
    last = nearest_before(called[order], asked[kids])
    same = np.searchsorted(last, last, side="right") - 1 - np.arange(len(last))
    at = order[np.maximum(last - same, 0)]
    call, thread, begun = rows[at], thread[kids], begun[kids]
    known = (last >= same) & (last >= 0) & (owner[at] == kin[kids]) & (calls.thread[call] != thread)
    known &= (calls.start[call] <= begun) & (begun - calls.end[call] <= SOON_NS)
    return Births(thread[known], begun[known], calls.thread[call[known]].astype(np.int64), calls.start[call[known]])


LOCKS = re.compile(r"_*(pthread_(mutex|rwlock|spin)_\w*lock|flockfile|flock|lockf\w*)")
"""Calls that wait until a lock is free: what its holder does meanwhile need not be for them."""
STARTED = 0.9
"""How sure it is which call started a thread."""
SURE_LOCK, MAYBE_LOCK, SEMAPHORE = 1, 2, 3
"""Values of `Wakes.lock`: a lock for certain, maybe the lock of Python's interpreter, and a semaphore that may be
one."""
RESTS_NS = 20_000
"""Who waits again sooner than this after it woke another is always the next in turn."""
OFTEN = 1 / 3
"""Of the waits that a thread ends."""
PYTHON = re.compile(r"python[\d.]*")
"""Programs with an interpreter lock."""

POST_NS = 1_000
"""Between two CUDA calls that are less apart a thread wakes no other: that takes a system call."""
BLOCKED_NS, DOUBTED = 3_000, 0.5
"""A thread needs longer to leave its CPU and to come back: a shorter call had what it asked for. Who was active then
may have nothing to do with it, unless it loads data and launches nothing. How sure the waker is at most."""


class Wakes(Rows, frozen=True):
    """Waits [begin, end) in ns of `thread` that `waker` ended (globalTids) at `at`; `confidence` is how sure that is, 0
    to 1. `loader` is 1 if the waker loads data, `interpreter` if the wait was for the interpreter lock. `lock` is
    SURE_LOCK if it was for any lock, MAYBE_LOCK if it may have been for that one. It is SEMAPHORE if it was
    for a semaphore that may be a lock, else 0. A thread that is born in the trace waits for the call that starts it,
    from its begin on, until the thread's own first activity. `called` is 1 if a call of the waker shows `at`: else
    that is when the thread was seen to go on, a little later."""

    thread: IntArray
    begin: IntArray
    end: IntArray
    waker: IntArray
    at: IntArray
    confidence: FloatArray
    loader: IntArray
    interpreter: IntArray
    lock: IntArray
    called: IntArray

    @property
    def awaited(self) -> IntArray:
        """The threads that ended waits of others, which were not over at once."""
        return distinct_values(self.waker[self.end - self.begin >= WAITED_NS])


class WaitSearch(Struct, frozen=True):
    """Which waits of a trace are looked for: those that begin in [lo, hi), in ns. Their wakers are those of the finder,
    without what is less sure than `floor`."""

    host_trace: HostTrace
    finder: Finder
    lo: int
    hi: int
    floor: float


def wakes(launching: WaitingThreads, threads: IntArray, search: WaitSearch) -> Wakes:
    """Those of the launching `threads` and of the threads that woke them, up to MOST_HOPS away."""
    host_trace = search.host_trace
    loaders, own, known = Loaders(host_trace), threads, threads
    born = births(host_trace, search.lo, search.hi)
    parts: list[Wakes] = []
    view = launching
    while len(threads) and len(parts) <= MOST_HOPS:
        waited = _of_threads(view, threads, own, loaders, search)
        begun = born.take(np.isin(born.thread, threads))
        none, sure = np.zeros(len(begun), dtype=np.int64), np.full(len(begun), STARTED)
        starts = Wakes(begun.thread, begun.at, begun.begun, begun.creator, begun.at, sure, none, none, none, none + 1)
        found = Wakes.concatenate([waited, starts])
        parts.append(found)
        threads = np.setdiff1d(found.waker, known)
        known = np.union1d(known, threads)
        view = host_trace.waiting(threads) if len(threads) else view
    return _told_apart(Wakes.concatenate(parts)) if parts else Wakes.empty()


def _told_apart(woken: Wakes) -> Wakes:
    """A semaphore may be a lock for threads that wait for each other, if all of them often work on once they have
    posted. In the meantime a lock could be taken again. Who waits again at once is next in turn, whatever it is. A
    thread may do both: it posts one semaphore as a message, and another one as a lock.

    ```
    lock      T  [waits ....][holds](posts)[rests ........][waits ....][holds](posts)
              H  ...[holds](posts)[rests ....][waits ][holds](posts)[rests ....]
    message   T  [waits .........][works](posts)[works][waits ........][works](posts)
              H  [works ..](posts)[waits ......][works ......](posts)[waits ......]
    ```
    """
    rows = np.flatnonzero(woken.lock == SEMAPHORE)
    if len(rows) == 0:
        return woken
    posted = woken.take(rows)
    threads, code = distinct(np.concatenate((posted.thread, posted.waker)))
    waiting, waking = np.split(code, 2)
    rests = np.bincount(waking, _rest(posted, waiting, waking) >= RESTS_NS, len(threads))
    among: BoolArray = np.greater(rests, OFTEN * np.bincount(waking, minlength=len(threads)))
    inside: BoolArray = among[waiting] & among[waking]
    # Of those that rest, none who waits for no other, or is waited for by none, is part of a circle.
    while inside.any():
        turns = np.zeros((2, len(threads)), dtype=np.bool_)
        turns[0, waiting[inside]] = turns[1, waking[inside]] = True
        both: BoolArray = turns[0] & turns[1]
        left = inside & both[waiting] & both[waking]
        if np.array_equal(left, inside):
            break
        inside = left
    lock = np.where(woken.lock == SEMAPHORE, 0, woken.lock)
    lock[rows[inside]] = SEMAPHORE
    return replace(woken, lock=lock)


def _rest(posted: Wakes, waiting: IntArray, waking: IntArray) -> IntArray:
    """For each wait, how long its waker goes on in ns after it woke the thread, until it waits in turn: 0 if it
    waits already. `waiting` and `waking` are numbers of the threads."""
    last = last_before(waiting, posted.begin, waking, posted.at)
    following = first_since(waiting, posted.begin, waking, posted.at + 1)
    rests = (following >= 0) & ~((last >= 0) & (posted.end[last] > posted.at))
    return np.where(rests, posted.begin[following] - posted.at, 0)


def _of_threads(view: WaitingThreads, threads: IntArray, own: IntArray, loaders: Loaders, search: WaitSearch) -> Wakes:
    """The waits of these threads; `own` are those that launch."""
    host_trace = search.host_trace
    waits, interpreter = waits_of(view, threads, search.lo, search.hi)
    if len(waits) == 0:
        return Wakes.empty()
    found = search.finder().find(waits)
    sure = (found.thread > 0) & (found.confidence >= search.floor) & (found.at > waits.start) & (found.at <= waits.end)
    calls = CallsOf.of(host_trace, found.thread[sure])
    stayed = np.flatnonzero(sure & _on_its_cpu(view, waits))
    sure[stayed] = ~calls.hold(found.thread[stayed], found.at[stayed])
    waits, found = waits.take(sure), found.take(sure)
    seen = found.call >= 0
    at = np.where(seen, found.at, np.maximum(calls.before(found.thread, found.at), waits.start + 1))
    loads = loaders.by_waker(waits, found.thread, found.at)
    inside = loaders.in_range(waits.thread, Intervals(waits.start, waits.end))
    loads |= inside & ~loaders.for_orders(waits.thread, found.thread)
    loader, held = loads.astype(np.int64), interpreter[sure].astype(np.int64)
    names = np.append(named_like(view.host.os_calls.names, LOCKS), False)
    lock = np.maximum(names[waits.name], held) * SURE_LOCK
    lock = np.where((lock == 0) & _may_be_interpreter(host_trace, view, waits), MAYBE_LOCK, lock)
    lock = np.where((lock == 0) & (waits.ends == Ends.RELEASE) & ~loads, SEMAPHORE, lock)
    doubted = (waits.end - waits.start < BLOCKED_NS) & ~(loads & ~np.isin(found.thread, own))
    confidence = np.where(doubted, np.minimum(found.confidence, DOUBTED), found.confidence)
    called = seen.astype(np.int64)
    return Wakes(waits.thread, waits.start, waits.end, found.thread, at, confidence, loader, held, lock, called)


def _may_be_interpreter(host_trace: HostTrace, view: WaitingThreads, waits: Waits) -> BoolArray:
    """Which waits of a Python program are like those for its lock: no longer than a switch interval. Of shorter
    ones alone `gil_waits` cannot tell."""
    processes, code = distinct(process_of(waits.thread))
    python = [PYTHON.fullmatch(host_trace.program(each) or "") is not None for each in processes.tolist()]
    timed = np.append(named_like(view.host.os_calls.names, TIMED_WAIT), False)
    alike = np.array([*python, False])[code] & timed[waits.name]
    return alike & (waits.end - waits.start <= SWITCH_INTERVAL_NS[1])


def waits_of(view: WaitingThreads, threads: IntArray, lo: int, hi: int) -> tuple[Waits, BoolArray]:
    """The waits that another thread may end, and which are for the interpreter lock. Those inside a CUDA or MPI call
    are that call's own affair."""
    host = view.host
    axis, calls = host.axis, host.os_calls
    if len(calls) == 0 or len(threads) == 0:
        return Waits.empty(), np.zeros(0, dtype=np.bool_)
    lane, begin = calls.spans.start // axis.stride, axis.time(calls.spans.start)
    chosen = (begin >= lo) & (begin < hi) & np.isin(axis.threads[lane], threads)
    chosen &= coverage(union(host.api.spans, host.mpi.spans), calls.spans) == 0
    rows = np.flatnonzero(chosen)
    waits = view.waits(lane[rows], begin[rows], np.zeros(len(rows), dtype=np.bool_))
    kept = (waits.ends != Ends.NO_THREAD) & (waits.end > waits.start)
    waits, interpreter = waits.take(kept), view.interpreter[rows[kept]]
    # Calls with a time limit that follow each other are one wait.
    _, first = np.unique(np.stack((waits.thread, waits.start)), axis=1, return_index=True)
    return waits.take(first), interpreter[first]


def _on_its_cpu(view: WaitingThreads, waits: Waits) -> BoolArray:
    """Which waits a thread spent on its CPU: what it waited for had come before, or was free."""
    axis, length = view.host.axis, waits.end - waits.start
    begin = axis.position(axis.lane(waits.thread), waits.start)
    return coverage(view.host.scheduling.on_cpu, Intervals(begin, begin + length)) == length


class CallsOf(Struct, frozen=True):
    """The CUDA calls of some threads, as a set on an axis of these; and the same with OS calls that wake no other."""

    axis: ThreadAxis
    cuda: Intervals
    spans: Intervals

    @classmethod
    def of(cls, host_trace: HostTrace, thread: IntArray) -> CallsOf:
        """Those of these threads."""
        axis, activity = ThreadAxis.over(thread, host_trace.low, host_trace.high), host_trace.activity
        cuda = union(place_api_calls(axis, activity.api_calls, activity.latest_ns).spans)
        calls, _ = place_calls(axis, host_trace.tables.os_calls, activity.latest_ns)
        wakes_none = np.array([not wakes_another(name) for name in calls.names], dtype=np.bool_)
        others = calls.spans[wakes_none[calls.name]] if len(calls) else Intervals.empty()
        return cls(axis, cuda, union(cuda, others))

    def hold(self, thread: IntArray, at: IntArray) -> BoolArray:
        """Which threads are in a CUDA call at a time: they end no wait then that others spend on their CPU."""
        return contains(self.cuda, self._place(thread, at))

    def before(self, thread: IntArray, at: IntArray) -> IntArray:
        """When each thread last was between two calls for POST_NS, up to `at`: it wakes no other in one. Who was woken
        then returned later. The time itself, if that is too long before.

        ```
        T       [sync)(posts)[sync of another stream ...][launch][sync ...
        helper  [waits ..............................................][works
                       ^ woken here                              ^ seen here
        ```
        """
        calls, here = self.spans, self._place(thread, at)
        if len(calls) == 0:
            return at
        apart = calls.start[1:] - calls.end[:-1] > POST_NS
        begin, end = calls.start[np.append(True, apart)], calls.end[np.append(apart, True)]
        row = nearest_before(begin, here)
        ago = np.where((row >= 0) & (end[row] > here), here - begin[row], 0)
        return at - np.where(ago <= BEFORE_NS, ago, 0)

    def _place(self, thread: IntArray, at: IntArray) -> IntArray:
        return self.axis.position(self.axis.lane(thread), at)


def loaders(woken: Wakes) -> IntArray:
    """The threads that load data: those that end waits for input, and those that they wait for in turn, such as the
    worker behind the thread that feeds its queue. A thread that only waits for input is none, though it may tell the
    worker what to load."""
    found = distinct_values(woken.waker[woken.loader > 0])
    served = np.setdiff1d(woken.thread[woken.loader > 0], found)
    behind = found
    while len(behind):
        behind = np.setdiff1d(woken.waker[np.isin(woken.thread, behind)], np.union1d(found, served))
        found = np.union1d(found, behind)
    return found
