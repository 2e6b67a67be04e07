"""The threads that a replay does not hold, as no wait leads to them; those that may be waited for some day; and which
operations belong to the steps."""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, places_among, union
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import RangeRows
from nsysdiag.events.rows import CallTable, Rows, RowsOf
from nsysdiag.events.scheduling import Cpus
from nsysdiag.replay.orders import Before
from nsysdiag.replay.pacing import MANY, MESSAGES, WAITED_NS
from nsysdiag.replay.wakes import LOCKS, Wakes
from nsysdiag.replay.work import LEAST_ERROR, Class, Stretch, Work
from nsysdiag.wakeups.loaders import HostTrace
from nsysdiag.wakeups.waits import WRITES, Ends, ends_of, is_timed

FEWEST_ANSWERED = 5
"""A thread that waited so often for others of the program in a window without steps is one that they ask."""
SLEEPS = re.compile(r".*sleep\w*")
"""Calls that wait for a time, other than those that start threads or wait for their end."""
OUTSIDE = re.compile(rf"{SLEEPS.pattern}|{MESSAGES.pattern}|_*(readv?(_chk)?|accept4?|ioctl)")
"""Calls that wait for a time, a device, a file, or other computers."""


READS = re.compile(r"_*(readv?|recv\w*)(_chk)?")
"""Calls that make room in a pipe or a socket."""
CUT = 0.25
"""Of the writes: so many more or fewer reads may be in the replayed time, as its borders cut bursts of them: those of
ten in 40 steps. A larger number takes more threads that read something else for those that read what is written."""
FEWEST_BURSTS = 3
"""Two have one distance by chance. More would not find a thread that hands over ten at a time in 40 steps."""
MOST_WAITING = 0.05
"""Of the replayed time: who waits for less is busy all the time."""
LEAST_SPAN = 1 / 3
"""Of the steps: who waits in the first of them only does not follow them."""
MOSTLY = 0.8
"""Of the steps: who makes something once in so many, and twice in others, gets ahead of them. With a larger number a
thread that fills a queue of four in 35 steps makes nothing for them."""
ANSWER_NS = 100_000
"""The longest that it usually takes to wake a thread that is asked, and then the one that waits for its answer: 50 µs
each. Neither is part of its work."""


class Follower(Struct, frozen=True):
    """A `thread` (globalTid) that follows the steps. `works_ns` is how long it works, and is on its way to that, in a
    step or in the window. `turns_ns` is how long it works from wait to wait, empty if that is not known."""

    thread: int
    works_ns: int
    turns_ns: IntArray = np.empty(0, dtype=np.int64)


class Requests(Rows, frozen=True):
    """Waits [start, end) in ns of `thread` for messages, while no thread of the trace sent any."""

    thread: IntArray
    start: IntArray
    end: IntArray

    @classmethod
    def of(cls, calls: CallTable, launching: IntArray, activity: DeviceActivity, stretch: Stretch) -> Requests:
        """Those of `launching` threads in any step of the loop, also in one that is not replayed. The first step may
        wait as well, since the last operation that starts before it. In a window it is since the last CUDA call before
        its first work is launched: what is before that may be a start."""
        begin, end = _in_loop(activity, stretch)
        long = (calls.start >= begin) & (calls.end <= end) & (calls.end - calls.start >= WAITED_NS)
        asks = np.append(named_like(calls.names, MESSAGES), False)[calls.name]
        rows = np.flatnonzero(long & asks & np.isin(calls.thread, launching))
        if not len(rows):
            return cls.empty()
        sent = np.sort(calls.start[np.append(named_like(calls.names, WRITES), False)[calls.name]])
        alone = np.searchsorted(sent, calls.start[rows]) == np.searchsorted(sent, calls.end[rows], side="right")
        rows = rows[alone]
        return cls(calls.thread[rows], calls.start[rows], calls.end[rows])


def _in_loop(activity: DeviceActivity, stretch: Stretch) -> tuple[int, int]:
    """From when to when threads may ask for what the loop works on, in ns."""
    start = activity.operations.start
    if stretch.stepwise:
        first, end = stretch.loop
        return int(start[start < first].max(initial=0)), end
    calls, inside = activity.api_calls.rows, np.flatnonzero(start >= stretch.begin)
    if not len(inside):
        return stretch.end, stretch.end
    row = inside[start[inside].argmin()]
    launched = start[row] if activity.launch[row] < 0 else calls.start[activity.launch[row]]
    return int(calls.end[calls.end <= launched].max(initial=0)), stretch.end


class Beside(Struct, frozen=True):
    """`threads` (globalTids, ascending) with calls or ranges, but for those of nsys; `messages` is how many calls
    that send something they begin in the replayed time. One of them that is of the program sleeps `naps` times then, or
    waits for something outside of it.

    `followers` are threads of the program that wait for another one in nearly each step, or time and again in a window,
    and launch nothing; a replay may hold them. Others have a range in each step, or sleep in most, and no thread is
    known to wait for them. They may hand over what they made in memory, while who needs it asks again and again. Of
    these it is the time in their ranges, or between their sleeps, and a sleep; or all of a step, if they hold a CPU all
    the time. `requests` are waits of threads that launch for what is outside of the trace."""

    threads: IntArray = np.empty(0, dtype=np.int64)
    messages: int = 0
    naps: int = 0
    followers: tuple[Follower, ...] = ()
    requests: Requests = Requests.empty()

    @classmethod
    def of(
        cls, host_trace: HostTrace, held: IntArray, launching: IntArray, wakers: IntArray, stretch: Stretch
    ) -> Beside:
        """All threads but those that a replay holds; the followers do not include those that are `launching`, nor those
        with ranges the `wakers`, of which it is known who waits for them."""
        calls, ranges = host_trace.tables.os_calls, host_trace.ranges.rows
        every = np.union1d(distinct_values(calls.thread), distinct_values(ranges.thread))
        threads = np.setdiff1d(every, np.union1d(held, host_trace.nsys_threads))
        sends = np.append(named_like(calls.names, WRITES), False)
        inside = stretch.holds(calls.start) & np.isin(calls.thread, threads)
        others = np.setdiff1d(every, np.union1d(launching, host_trace.nsys_threads))
        kin = others[np.isin(process_of(others), process_of(held))]
        naps = _naps(calls, np.flatnonzero(inside & np.isin(calls.thread, kin)))
        found = _followers(calls, kin, stretch)
        found += _always_busy(calls, np.setdiff1d(_without(kin, found), wakers), launching, stretch)
        found += _readers(calls, _without(others, found), launching, stretch)
        makers = _makers(ranges, np.setdiff1d(_without(kin, found), wakers), stretch)
        asleep = np.flatnonzero(
            np.append(named_like(calls.names, SLEEPS), False)[calls.name] & stretch.holds(calls.start)
        )
        makers += _sleepers(calls, asleep, np.setdiff1d(_without(kin, [*found, *makers]), wakers), stretch)
        found += [replace(each, works_ns=each.works_ns + _nap_ns(calls, asleep, each.thread)) for each in makers]
        known = [wakers, host_trace.nsys_threads, _carrying(host_trace.thread_names)]
        found += _running(host_trace.tables.cpus, launching, np.concatenate(known), found, stretch)
        requests = Requests.of(calls, launching, host_trace.activity, stretch)
        return cls(threads, int((sends[calls.name] & inside).sum()), naps, tuple(found), requests)


_CARRIES = re.compile(r"(?:nccl|rccl|nvshmem|ucx|ofi)\b.*", re.IGNORECASE)
"""Threads of libraries for communication, by the names that these give them."""


def _carrying(names: dict[int, str]) -> IntArray:
    """The threads that carry messages for devices, and look for more all the time: their work is in the length of what
    they carry."""
    return np.array([thread for thread, name in names.items() if _CARRIES.fullmatch(name)], dtype=np.int64)


def _running(
    cpus: Cpus, launching: IntArray, known: IntArray, found: list[Follower], stretch: Stretch
) -> list[Follower]:
    """Those of the threads of processes that launch which hold a CPU all the time, until they end: they make something
    without a stop, or ask again and again for room. Who works ahead is done before the last steps. `known` threads are
    others, and those `found` before.

    ```
    producer  [decodes ........][decodes .........][asks .][decodes ......]
    solver    (asks .....)[step](asks .......)[step       ](asks ...)[step]
    ```
    """
    near = np.flatnonzero((cpus.holds.start < stretch.end) & (cpus.holds.end > stretch.begin))
    others = distinct_values(cpus.thread[near])
    others = others[np.isin(process_of(others), process_of(launching))]
    threads = np.setdiff1d(others, np.union1d(launching, known))
    place = places_among(threads, cpus.thread[near])
    holds, thread = cpus.holds[near[place >= 0]], place[place >= 0]
    begin, end = (np.clip(each, stretch.begin, stretch.end) for each in (holds.start, holds.end))
    held, last = np.bincount(thread, end - begin, len(threads)), np.full(len(threads), stretch.begin)
    np.maximum.at(last, thread, end)
    until = last - stretch.begin
    runs = threads[(held >= (1 - MOST_WAITING) * until) & (until >= LEAST_SPAN * (stretch.end - stretch.begin))]
    longest = int(np.diff(stretch.borders).max())
    return [Follower(each, longest) for each in _without(runs, found).tolist()]


def _without(threads: IntArray, followers: list[Follower]) -> IntArray:
    return threads[~np.isin(threads, [each.thread for each in followers])]


def _naps(calls: CallTable, rows: IntArray) -> int:
    """How often the thread that does it most waits in one of these calls for a time, or for something outside of the
    program."""
    names = np.append(named_like(calls.names, OUTSIDE), False)
    long = names[calls.name[rows]] & (calls.end[rows] - calls.start[rows] >= WAITED_NS)
    return int(np.bincount(distinct(calls.thread[rows[long]])[1]).max(initial=0))


def _nap_ns(calls: CallTable, asleep: IntArray, thread: int) -> int:
    """How long a thread usually sleeps at a time, in ns: who looks again that late whether more is wanted begins it as
    late. 0 if it does not sleep. `asleep` are the rows of calls that wait for a time."""
    rows = asleep[calls.thread[asleep] == thread]
    length = (calls.end - calls.start)[rows]
    return int(np.median(length)) if len(rows) >= FEWEST_ANSWERED else 0


def _sleepers(calls: CallTable, asleep: IntArray, threads: IntArray, stretch: Stretch) -> list[Follower]:
    """Those of the threads that sleep in MANY steps, and work for much of the time between: they may look whether more
    is wanted."""
    rows = asleep[np.isin(calls.thread[asleep], threads)]
    length = (np.minimum(calls.end, stretch.end) - calls.start)[rows]
    rows, length = (each[(length >= WAITED_NS) & stretch.stepwise] for each in (rows, length))
    found, thread = distinct(calls.thread[rows])
    count = counts_in_steps(stretch, thread, calls.start[rows], len(found))
    works = (stretch.end - stretch.begin - np.bincount(thread, length, len(found))) / stretch.count
    follows = np.count_nonzero(count, axis=1) >= MANY * stretch.count
    follows &= works >= LEAST_SPAN * (stretch.end - stretch.begin) / stretch.count
    return [Follower(int(found[at]), round(float(works[at]))) for at in np.flatnonzero(follows)]


def _followers(calls: CallTable, threads: IntArray, stretch: Stretch) -> list[Follower]:
    """Those of the threads that follow the steps."""
    begin, end = (np.clip(each, stretch.begin, stretch.end) for each in (calls.start, calls.end))
    inside = (calls.start < stretch.end) & (calls.end > stretch.begin)
    every = np.flatnonzero(_answered(calls) & inside & np.isin(calls.thread, threads))
    rows = every[end[every] - begin[every] >= WAITED_NS]
    found, thread = distinct(calls.thread[rows])
    follows = several = np.bincount(thread) >= FEWEST_ANSWERED
    if stretch.stepwise:
        follows = _in_each_step(thread, begin[rows], len(found), stretch)
        # Who works for any time, or for most of a step, comes to some of its waits too late to wait.
        asks = every[np.isin(calls.thread[every], found)]
        of_asks = np.searchsorted(found, calls.thread[asks])
        follows |= _in_each_step(of_asks, begin[asks], len(found), stretch) & several
    waits_of, asks_of = RowsOf(calls.thread[rows]), RowsOf(calls.thread[every])
    return [
        Follower(each, _works_ns(begin[waits], end[waits], stretch), _between(begin[asks], end[asks]))
        for each in found[follows].tolist()
        for waits, asks in ((rows[waits_of[each]], every[asks_of[each]]),)
    ]


def _between(begin: IntArray, end: IntArray) -> IntArray:
    """How long a thread works between waits that begin and end then."""
    order = np.argsort(begin, kind="stable")
    return np.maximum(begin[order][1:] - end[order][:-1], 0)


def _answered(calls: CallTable) -> BoolArray:
    """Which calls wait for another thread of the program, and for no lock."""
    return np.append(answered(calls.names), False)[calls.name]


def answered(names: list[str]) -> BoolArray:
    """Which names are those of calls that wait for another thread of the program, and for no lock."""
    return np.isin(ends_of(names), (Ends.SIGNAL, Ends.RELEASE)) & (is_timed(names) == 0) & ~named_like(names, LOCKS)


def _always_busy(calls: CallTable, threads: IntArray, launching: IntArray, stretch: Stretch) -> list[Follower]:
    """Those of the threads that take what others hand over, and hardly ever wait for more: with shorter steps these may
    have to wait for them, as soon as no more fits between them.

    ```
    solver   [step 0](hands over)[step 1][step 2](hands over)[step 3][step 4](hands over)
    writer   (takes)[writes ...............](takes)[writes .................](takes)[writes ...
    ```
    """
    begin, end = (np.clip(each, stretch.begin, stretch.end) for each in (calls.start, calls.end))
    rows = np.flatnonzero(_answered(calls) & stretch.holds(calls.start))
    of_steps = np.count_nonzero(np.isin(calls.thread[rows], launching))
    rows = rows[np.isin(calls.thread[rows], threads)]
    if not stretch.stepwise or of_steps < FEWEST_ANSWERED:
        return []
    found, thread = distinct(calls.thread[rows])
    waited = np.bincount(thread, (end - begin)[rows])
    busy = (np.bincount(thread) >= FEWEST_ANSWERED) & (waited < MOST_WAITING * (stretch.end - stretch.begin))
    return [Follower(each, (stretch.end - stretch.begin) // stretch.count) for each in found[busy].tolist()]


def _readers(calls: CallTable, threads: IntArray, launching: IntArray, stretch: Stretch) -> list[Follower]:
    """Those of the threads, of any process, that read as often as a launching thread writes. A full pipe holds who
    writes until there is room: with shorter steps it is full sooner. For one that held a write, a step is as long as
    it was.

    ```
    solver   [step 0](writes)[step 1](writes)[step 2](writes ..................)[step 3](writes)
    logger   (reads)(reads)[flushes to a disk ......................](reads)(reads)[flushes
    ```
    """
    inside, length, whole = stretch.holds(calls.start), calls.end - calls.start, stretch.end - stretch.begin
    writes, reads = (
        np.flatnonzero(inside & np.append(named_like(calls.names, each), False)[calls.name] & np.isin(calls.thread, of))
        for each, of in ((WRITES, launching), (READS, threads))
    )
    (_, writer), (found, reader) = (distinct(calls.thread[rows]) for rows in (writes, reads))
    written, waits = np.bincount(writer), np.where(length[writes] >= WAITED_NS, length[writes], 0)
    often = np.abs(np.bincount(reader)[:, None] - written) <= CUT * written
    often &= written >= FEWEST_ANSWERED
    held = (often & (np.bincount(writer, waits) >= LEAST_ERROR * whole)).any(axis=1)
    works = np.where(held, whole, whole - np.bincount(reader, length[reads]).astype(np.int64)) // stretch.count
    return [
        Follower(int(found[row]), int(works[row]), _between(calls.start[mine], calls.end[mine]))
        for row in np.flatnonzero(often.any(axis=1)).tolist()
        for mine in (reads[reader == row],)
    ]


def _works_ns(begin: IntArray, end: IntArray, stretch: Stretch) -> int:
    """How long in a step, or in the window, a thread with these waits works, in ns: who is done before the last step
    works for those before that."""
    order = np.argsort(begin, kind="stable")
    steps = np.searchsorted(stretch.borders, begin[order[[0, -1]]], side="right")
    whole = not stretch.stepwise or steps[1] >= stretch.count or steps[1] == steps[0]
    first, last = (stretch.begin, stretch.end) if whole else (int(begin[order[0]]), int(begin[order[-1]]))
    waits = int((np.clip(end, first, last) - np.clip(begin, first, last)).sum())
    answers = ANSWER_NS * np.count_nonzero((begin >= first) & (begin < last))
    return int(last - first - waits + answers) // (stretch.count if whole else int(steps[1] - steps[0]))


def _makers(ranges: RangeRows, threads: IntArray, stretch: Stretch) -> list[Follower]:
    """Those of the threads that have as many ranges in each step, and how long in one these take, in ns."""
    inside = stretch.holds(ranges.start) & (ranges.end > ranges.start)
    rows = np.flatnonzero(np.isin(ranges.thread, threads) & inside) if stretch.stepwise else np.empty(0, dtype=np.int64)
    found, thread = distinct(ranges.thread[rows])
    counts = counts_in_steps(stretch, thread, ranges.start[rows], len(found))
    makes = np.flatnonzero(np.array([_mostly_regular(each) for each in counts], dtype=np.bool_))
    its = [ranges.take(rows[thread == each]) for each in makes.tolist()]
    spans = [union(Intervals(each.start, each.end)) for each in its]
    works = [max(round(len(each) / stretch.count), 1) * each.total() // len(each) for each in spans]
    return [Follower(*each) for each in zip(found[makes].tolist(), works, strict=True)]


def _in_each_step(thread: IntArray, begin: IntArray, count: int, stretch: Stretch) -> BoolArray:
    """Which of so many threads have as many waits, which `begin` in order, in nearly each step."""
    return np.array([_regular(each) for each in counts_in_steps(stretch, thread, begin, count)], dtype=np.bool_)


def counts_in_steps(stretch: Stretch, kind: IntArray, time: IntArray, count: int) -> IntArray:
    """How many times of each kind, 0 to `count` - 1, are in each step: a row for each kind."""
    found = np.zeros((count, stretch.count), dtype=np.int64)
    np.add.at(found, (kind, np.clip(stretch.step(time), 0, stretch.count - 1)), 1)
    return found


def as_often(counts: IntArray) -> BoolArray:
    """Whether there are as many in most steps (the last axis), at least one. One near the border of two steps may be
    charged to either."""
    usual = np.round(counts.mean(axis=-1, keepdims=True))
    ahead = np.cumsum(counts - usual, axis=-1)
    near = np.abs(ahead - np.median(ahead, axis=-1, keepdims=True)) <= 1
    return (near.mean(axis=-1) >= REGULAR) & (usual[..., 0] > 0)


def _regular(waits: IntArray) -> bool:
    """Whether there are as many of these numbers of waits in each step. Who works ahead is done before the last steps,
    and waits in none of them."""
    last = int(np.flatnonzero(waits)[-1]) + 1
    counts = waits[:last]
    return last >= max(LEAST_SPAN * len(waits), 2) and (bool(as_often(counts)) or _in_bursts(counts))


def _mostly_regular(counts: IntArray) -> bool:
    """The same of ranges; or most steps have as many, and the thread gets further ahead by those that have more."""
    made = counts[: int(np.flatnonzero(counts)[-1]) + 1]
    usual = np.median(made)
    ahead = len(made) >= LEAST_SPAN * len(counts) and usual > 0 and np.mean(made == usual) >= MOSTLY
    return bool(ahead) or _regular(counts)


def _in_bursts(counts: IntArray) -> bool:
    """Whether there are as many as steps, or so many times that, but several at once and none in other steps. Then a
    queue holds what is handed over. At no time there are more too many, or too few, than come in one step.

    ```
    producer   [reads a shard ...][1][2][3][4]....[reads a shard ...][1][2][3][4]....
    steps      |        |        |        |        |        |        |        |
    ```
    """
    usual, bursts = round(float(counts.mean())), np.count_nonzero(np.diff(counts > 0, prepend=False) & (counts > 0))
    within = np.ptp(np.cumsum(counts - usual)) <= counts.max()
    return bool(usual > 0 and bursts >= FEWEST_BURSTS and within)


# Which operations are work of the steps, and which run at a pace of their own meanwhile.
#
# ```
# thread     [step 1    ][step 2    ][step 3    ]      its operations begin the steps: they are work of the steps,
# stream 7   [==)  [=)   [==)  [=)   [==)  [=)         and so is all in their streams
# stream 9   [====)[====)[====)[====)[====)[==         of another thread or process: not of the steps, unless they wait
# ```

REGULAR = 0.9
"""Share of the steps that hold the same number of operations of another thread: it may belong to them."""


class StepWork(IntEnum):
    """What an operation is to the steps."""

    BESIDE = 0
    MAYBE = 1
    OWN = 2


def step_work(work: Work, thread: IntArray, stretch: Stretch, kernel: IntArray, events: Before) -> IntArray:
    """The `StepWork` of each operation; `thread` launched it (-1: unknown), `kernel` is the code of its name.

    The steps are those of the threads that launched the operations with which they begin. What others launch is work of
    the steps if it is in a stream of these; or on another device, by the same process, by one that does the same
    work, or by one that communicates. If another thread of the process does as much in each step, it may be; it is if
    its streams wait for work of the steps in each, by `events`.

    ```
    feeder   [decode    ][copy]        [decode    ][copy]
    trainer               [wait event][train]       [wait event][train]
    ```
    """
    first = begin_steps(work, thread, stretch)
    part = np.full(len(work), StepWork.OWN)
    if not stretch.stepwise or not first.any():
        return part
    mine = np.isin(thread, thread[first]) | (thread < 0)
    mine |= np.isin(work.stream, work.stream[mine & (thread >= 0)])
    process = process_of(thread)
    kin = np.isin(process, process[np.isin(kernel, kernel[first]) | (work.kind == Class.COMMUNICATION)])
    elsewhere = ~np.isin(work.device, work.device[mine])
    part[~mine & ~(elsewhere & (kin | np.isin(process, process[first])))] = StepWork.BESIDE
    for each in distinct_values(thread[(part == StepWork.BESIDE) & np.isin(process, process[first])]).tolist():
        its = (thread == each) & (part == StepWork.BESIDE)
        if _is_regular(work.start[its], stretch, none=False):
            takes = events.after[its[events.after] & (part[events.before] == StepWork.OWN)]
            part[its] = StepWork.OWN if _is_regular(work.start[takes], stretch, none=False) else StepWork.MAYBE
    return part


def with_most_work(work: Work, thread: IntArray, stretch: Stretch, woken: Wakes, part: IntArray) -> IntArray:
    """The `StepWork` of operations; those that may belong to the steps do if they compute for longer than all that
    surely do. Their threads wait for another one in most steps, or end such a wait. The steps may be found by what
    hands them over.

    ```
    decoder   [waits for a frame][convert][waits for a frame][convert]      the steps begin with these
    main      ..(waits)[== infer ==)........(waits)[== infer ==)            but no frame is done before this
    ```
    """
    maybe = (part == StepWork.MAYBE) & np.isin(thread, _in_most(woken.take(woken.lock == 0), stretch.count))
    compute = work.length * (work.kind == Class.COMPUTE)
    return np.where(maybe & (compute[maybe].sum() > compute[part == StepWork.OWN].sum()), StepWork.OWN, part)


def at_own_pace(work: Work, thread: IntArray, stretch: Stretch, woken: Wakes) -> IntArray:
    """The `StepWork` of operations that threads of the process launch at a pace of their own, and OWN for all others.
    It is none of the steps if it is another number in each, and MAYBE if such a thread meets others at locks
    only. `thread` launched each, -1 if that is not known. A thread that ends a wait of another in most steps, or
    waits for one, is tied to it, whatever it launches; and so is one that communicates."""
    first = begin_steps(work, thread, stretch)
    found = np.full(len(work), StepWork.OWN)
    if not stretch.stepwise or not first.any():
        return found
    process, steps = process_of(thread), stretch.count
    locks = woken.lock > 0
    tied, meets = _in_most(woken.take(~locks), steps), np.union1d(woken.waker[locks], woken.thread[locks])
    tied = np.union1d(tied, thread[work.kind == Class.COMMUNICATION])
    mine = (thread >= 0) & np.isin(process, process[first])
    for each in np.setdiff1d(thread[mine], np.union1d(thread[first], tied)).tolist():
        its = thread == each
        if not _is_regular(work.start[its], stretch):
            found[its] = StepWork.BESIDE
        elif each in meets:
            found[its] = StepWork.MAYBE
    return found


def begin_steps(work: Work, thread: IntArray, stretch: Stretch) -> BoolArray:
    """The operations with which steps begin. Another thread may launch one that starts at the same time by chance.
    If some threads begin a part of the steps each, and most together, the others do not count."""
    found: BoolArray = np.isin(work.start, stretch.borders[:-1]) & (thread >= 0)
    threads, count = np.unique(thread[found], return_counts=True)
    steps = stretch.count
    often = count >= (1 - REGULAR) * steps
    return found & np.isin(thread, threads[often]) if 2 * count[often].sum() >= steps else found


def _in_most(woken: Wakes, steps: int) -> IntArray:
    """The threads that end a wait, or wait for another thread, in most of so many steps."""
    counted = (np.unique(each, return_counts=True) for each in (woken.waker, woken.thread))
    return np.concatenate([threads[times >= REGULAR * steps] for threads, times in counted])


def _is_regular(times: IntArray, stretch: Stretch, *, none: bool = True) -> bool:
    """Whether in most steps there are as many of these times; if that is none, the answer is
    `none`."""
    step, steps = stretch.step(times), stretch.count
    count = np.bincount(step[(step >= 0) & (step < steps)], minlength=steps)
    usual = int(np.bincount(count).argmax())
    return bool(np.mean(count == usual) >= REGULAR) and (none or usual > 0)
