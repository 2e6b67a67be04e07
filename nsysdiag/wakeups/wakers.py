"""Who ended a wait: a thread that made a wake call just before, else one that ran until the right moment.

```
waiter   [--- pthread_cond_wait ------------------)
                                            ^ scheduled in
waker    [ read ][ compute ][cond_signal]             begun 15-100 µs before
waker    [ read ][ compute ](sem_post)[ waits again   no row of its own: it was on a CPU, or had just gone off it
```
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals
from nsysdiag.events.host import HostTables
from nsysdiag.events.identity import process_of
from nsysdiag.events.scheduling import BREAK_NS
from nsysdiag.wakeups.runs import Runs
from nsysdiag.wakeups.waits import (
    LEAST,
    MOST,
    REPEATED,
    STANDS_OUT,
    Callers,
    Ends,
    How,
    Pairs,
    Presence,
    Waits,
    WakeMoments,
    Wakers,
    alone,
    callers_within,
    group_and_thread,
    most_often,
    nearest,
    one_a_thread,
    passers_by,
    stands_out,
    usual_callers,
    wake_calls,
    within,
)

BEFORE_NS, AFTER_NS = 100_000, 15_000
"""How long before and after the waiting thread is scheduled in its waker's call may begin; and how long before its
waker may have gone off the CPU."""
CHILD_NS = 2_000_000
"""How long before the wait for it does a child may end."""
QUEUED_NS = 5_000_000
"""How long a thread that was woken may have stood in the queue of a busy CPU."""
AFTER_A_QUEUE = 0.9
"""How much of its confidence evidence keeps that is taken from before such a queue."""
SURE = 0.5
"""How sure such evidence must be to be taken."""
ELSEWHERE = 0.6
"""How sure a call of another process is: few locks are shared."""
ONE_OF_POOL = 0.6
"""How sure it is that a thread was joined which ended just then, where several did, or a time may have run out."""
EITHER = 0.4
"""How sure it is which of two it was, where as much speaks for the one as for the other."""
SLOW_NS = 1_000_000
"""How long after a call of the thread that usually ends such waits the waiting one may come in."""


class WakeFinder:
    """Finds wakers in the tables of one trace whose times are in [low, high). `ignored` threads wake no other; `runs`
    are those of all others, made with BEFORE_NS."""

    def __init__(self, tables: HostTables, runs: Runs, ignored: IntArray, low: int, high: int) -> None:
        self._runs = runs
        self._wake_calls = wake_calls(tables.os_calls, ignored)
        self._callers, caller = distinct(self._wake_calls.thread)
        self._calls_of_callers = np.bincount(caller, minlength=len(self._callers))
        self._span = max(high - low, 1)
        # Who calls so often is there by chance, and would make a pair with every wait.
        seldom = self._calls_of_callers * SLOW_NS <= (1 - STANDS_OUT) * self._span
        self._seldom_calls = self._wake_calls if seldom.all() else self._wake_calls.take(seldom[caller])
        self._os_calls = tables.os_calls
        self._cpus = tables.cpus
        self._ignored = ignored
        traced = process_of(distinct_values(tables.os_calls.thread))
        self._untraced = ~np.isin(process_of(self._runs.axis.threads), traced)

    def find(self, waits: Waits) -> Wakers:
        """Who ended each of `waits`."""
        came, cpu = self._runs.switched_in(waits.thread, waits.start, waits.end)
        moment = np.where(came >= 0, came, waits.end)
        found = Wakers.none(moment)
        _, group = distinct(waits.thread)
        group = group * (int(waits.name.max(initial=0)) + 1) + waits.name
        at_once = (came < 0) & (waits.end - waits.start <= BEFORE_NS)
        unclear = at_once | (self._cpus.held_since(cpu, moment, BEFORE_NS) < moment - BEFORE_NS)
        self._by_joined_threads(waits, moment, found)
        self._by_calls(waits, WakeMoments(moment, moment), group, found)
        usual = self._usual_callers(waits, moment, group)
        self._prefer_usual_waker(waits, moment, cpu, usual, found)
        self._by_ended_threads(waits, moment, group[~unclear], group, found)
        self._by_runs(waits, moment, group, found)
        self._forget_passers_by(waits, moment, unclear, group, found)
        self._by_calls_elsewhere(waits, moment, found)
        self._by_returns(waits, moment, found)
        self._by_ended_processes(waits, moment, found)
        self._before_the_queue(waits, moment, cpu, group, found)
        self._by_usual_waker(waits, moment, cpu, usual, found)
        self._forget_passers_by(waits, moment, unclear, group, found)
        self._by_runs_elsewhere(waits, moment, group, found)
        return found

    def ran_until(self, thread: IntArray, moment: IntArray) -> IntArray:
        """How long before each moment the thread stopped running, in ns: 0 if it still ran, -1 if it never
        had."""
        return self._runs.ran(thread, moment)

    def thread_ends(self) -> tuple[IntArray, IntArray]:
        """When each thread went off its CPU for good, sorted, and the threads."""
        return self._runs.thread_ends()

    def _forget_passers_by(
        self, waits: Waits, moment: IntArray, unclear: BoolArray, group: IntArray, found: Wakers
    ) -> None:
        """Forget threads that were there at the end of some waits only, as they are at any moment."""

        def there(thread: int, rows: IntArray) -> BoolArray:
            ago = self._runs.ran(np.full(len(rows), thread), moment[rows])
            ran = (ago >= 0) & (ago <= BEFORE_NS) & (ago <= moment[rows] - waits.start[rows])
            ran &= (waits.ends[rows] != Ends.WRITE) | self._is_untraced(thread)
            low, high = np.maximum(moment[rows] - BEFORE_NS, waits.start[rows]), moment[rows] + AFTER_NS
            return ran | self._calls_by_thread.between(thread, waits.ends[rows], low, high)

        rows = passers_by(waits, group, found, Presence(there, self._chance, unclear))
        found.put(rows, Wakers.none(moment[rows]))

    def _is_untraced(self, thread: int) -> bool:
        """Whether no OS call of a thread's process is traced. Others end waits for a pipe by a write that is."""
        lane = int(self._runs.axis.lane(np.array([thread]))[0])
        return lane >= 0 and bool(self._untraced[lane])

    @cached_property
    def _calls_by_thread(self) -> Callers:
        return Callers(self._wake_calls)

    def _chance(self, thread: int, ends: int) -> float:
        """How likely a thread that may end such waits runs, or calls, around any moment."""
        lane = int(self._runs.axis.lane(np.array([thread]))[0])
        counts = lane >= 0 and (ends != Ends.WRITE or self._is_untraced(thread))
        ran = float(self._runs.share[lane]) if counts else 0.0
        at = int(np.searchsorted(self._callers, thread))
        calls = int(self._calls_of_callers[at]) if thread in self._callers[at : at + 1] else 0
        return min(ran + calls * (BEFORE_NS + AFTER_NS) / self._span, 1.0)

    def _by_runs_elsewhere(self, waits: Waits, moment: IntArray, group: IntArray, found: Wakers) -> None:
        """If no thread of its own process ends such waits: the thread of another one that ran until nearly all of them
        ended. A semaphore may be shared, and its post leaves no row."""
        open_ = (found.how == How.NOTHING) & (waits.timed == 0) & np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE))
        total = np.bincount(group, minlength=int(group.max(initial=0)) + 1)
        chosen = np.flatnonzero(open_ & (total[group] >= LEAST))
        lanes = len(self._runs.axis.threads)
        if len(chosen) == 0 or lanes == 0:
            return
        seen = self._runs.seen(moment[chosen], np.zeros_like(chosen), np.full_like(chosen, lanes))
        wait, thread = chosen[seen.query], self._runs.axis.threads[seen.lane]
        other = process_of(thread) != process_of(waits.thread[wait])
        other &= seen.ago <= moment[wait] - waits.start[wait]
        pairs = Pairs.without_calls(wait, thread, moment[wait], seen.distance).take(other)
        pairs = pairs.take(self._stands_out(pairs, group, np.arange(len(waits))))
        found.settle(pairs, How.RAN_OFTEN)
        found.confidence[pairs.wait] = ELSEWHERE

    def _usual_callers(self, waits: Waits, moment: IntArray, group: IntArray) -> IntArray:
        """For each wait the thread that nearly always calls shortly before such waits end; 0 if there is none."""
        earliest = np.maximum(waits.start, moment - SLOW_NS)
        pairs = one_a_thread(callers_within(self._seldom_calls, waits, WakeMoments(earliest, moment + AFTER_NS)))
        chance = self._calls_per_ns(pairs.thread) * (moment - earliest)[pairs.wait]
        close = pairs.distance <= BEFORE_NS + AFTER_NS
        return usual_callers(pairs, close, np.minimum(chance, 1), group, waits.end - waits.start)

    def _prefer_usual_waker(
        self, waits: Waits, moment: IntArray, cpu: IntArray, usual: IntArray, found: Wakers
    ) -> None:
        """A call just before is a coincidence if the waiting thread was queued for its CPU, and the usual waker had
        called since then. If the calling thread freed the CPU, it may be either."""
        called = (found.how == How.CALL) | (found.how == How.CALL_OF_SEVERAL)
        doubted = np.flatnonzero(called & (usual > 0) & (usual != found.thread) & (cpu >= 0))
        if len(doubted) == 0:
            return
        held = np.maximum(self._cpus.held_since(cpu[doubted], moment[doubted], BREAK_NS), waits.start[doubted])
        held = np.maximum(held - BEFORE_NS, np.maximum(waits.start, moment - SLOW_NS)[doubted])
        again = Wakers.none(moment[doubted])
        asked = WakeMoments(held, moment[doubted])
        self._call_of(usual[doubted], waits.take(doubted), asked, cpu[doubted], again)
        better = again.how != How.NOTHING
        made_room = self._cpus.last_holder(cpu[doubted], moment[doubted]) == found.thread[doubted]
        found.put(doubted[better & ~made_room], again.take(better & ~made_room))
        either = doubted[better & made_room]
        found.how[either] = How.CALL_OF_SEVERAL
        found.confidence[either] = np.minimum(found.confidence[either], EITHER)

    def _before_the_queue(self, waits: Waits, moment: IntArray, cpu: IntArray, group: IntArray, found: Wakers) -> None:
        """The waits still open whose thread was scheduled in on a CPU that others had held: they may have been woken as
        long before as it was held. Timed waits may have been queued after the timeout."""
        open_ = np.flatnonzero((found.how == How.NOTHING) & (cpu >= 0) & (waits.timed == 0))
        if len(open_) == 0:
            return
        held = np.maximum(self._cpus.held_since(cpu[open_], moment[open_], BEFORE_NS), waits.start[open_])
        late = held < moment[open_]
        open_, held = open_[late], held[late]
        queued, since = waits.take(open_), np.maximum(held, moment[open_] - QUEUED_NS)
        again = Wakers.none(moment[open_])
        self._by_calls(queued, WakeMoments(since, moment[open_]), group[open_], again)
        # Who ran at a moment in the midst of a longer queue may have begun after T was woken.
        whole = np.flatnonzero(since == held)
        ran = again.take(whole)
        self._by_runs(queued.take(whole), since[whole], group[open_][whole], ran)
        self._only_if_alone(queued.take(whole), WakeMoments(since[whole], moment[open_][whole]), ran)
        again.put(whole, ran)
        again.confidence[:] *= AFTER_A_QUEUE
        sure = again.confidence >= SURE
        found.put(open_[sure], again.take(sure))

    def _only_if_alone(self, waits: Waits, moment: WakeMoments, found: Wakers) -> None:
        """Drop candidates that ran until the first moment if another thread of the process was scheduled in or out at
        the end of the wait: the waiting thread may have been in the queue of another CPU before."""
        ran = np.flatnonzero(found.how == How.RAN)
        if len(ran) == 0:
            return
        low, high = np.maximum(moment.first - QUEUED_NS, waits.start)[ran], moment.last[ran]
        others = self._runs.switches_of_process(waits.thread[ran], low, high)
        for thread in (waits.thread[ran], found.thread[ran]):
            others -= self._runs.switches(thread, low, high)
        several = ran[others > 0]
        found.put(several, Wakers.none(moment.last[several]))

    def _by_calls(self, waits: Waits, moment: WakeMoments, group: IntArray, found: Wakers) -> None:
        """The only thread of the process that made such a call around the moment; of several, the one that does so at
        most waits of the group."""
        looked = WakeMoments(moment.first - BEFORE_NS, moment.last + AFTER_NS)
        pairs = callers_within(self._wake_calls, waits, looked)
        # If queued: the first of several calls woke it. If scheduled at once: the nearest.
        first, last = moment.first[pairs.wait], moment.last[pairs.wait]
        pairs.distance[:] = np.where(first < last, pairs.at + BEFORE_NS - first, np.abs(last - pairs.at))
        pairs.distance[pairs.at > waits.end[pairs.wait]] += BEFORE_NS  # a call that begins after a wait ended none
        one, several = alone(pairs), most_often(pairs, group)
        found.settle(pairs.take(one), How.CALL)
        found.settle(several, How.CALL_OF_SEVERAL)
        called = np.flatnonzero((found.how == How.CALL) | (found.how == How.CALL_OF_SEVERAL))
        self._discount(found, called, BEFORE_NS + AFTER_NS + (moment.last - moment.first)[called])

    def _by_calls_elsewhere(self, waits: Waits, moment: IntArray, found: Wakers) -> None:
        """If no thread of its own process can have ended a wait for a lock or a signal: the only thread of another
        process that made such a call, as they may share it."""
        open_ = found.how == How.NOTHING
        looked = WakeMoments(moment - BEFORE_NS, moment + AFTER_NS)
        pairs = callers_within(self._wake_calls, waits, looked, anywhere=True)
        pairs = pairs.take(open_[pairs.wait])
        pairs = pairs.take(alone(pairs))
        found.settle(pairs, How.CALL)
        rows = distinct_values(pairs.wait)
        found.confidence[rows] = ELSEWHERE
        self._discount(found, rows, np.full(len(rows), BEFORE_NS + AFTER_NS))

    def _discount(self, found: Wakers, rows: IntArray, looked: IntArray) -> None:
        """A thread that makes such calls all the time is around any wait's end: the longer was looked for one, the
        likelier."""
        found.confidence[rows] *= 1 - np.minimum(self._calls_per_ns(found.thread[rows]) * looked, 1)

    def _calls_per_ns(self, thread: IntArray) -> FloatArray:
        return self._calls_of_callers[np.searchsorted(self._callers, thread)] / self._span

    def _by_runs(self, waits: Waits, moment: IntArray, group: IntArray, found: Wakers) -> None:
        """For waits still open, the only thread that ran until the moment; of several, the one that does so at nearly
        every wait of the group, else the nearest."""
        open_ = found.how == How.NOTHING
        own = np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE, Ends.UNKNOWN))
        low, high = self._runs.lanes_of(process_of(waits.thread))
        # A pipe's writer may be in any process; where OS calls are traced, it would have been found by its write.
        anywhere = (waits.ends == Ends.WRITE) & self._untraced.any()
        low, high = np.where(anywhere, 0, low), np.where(anywhere, len(self._runs.axis.threads), high)
        chosen = np.flatnonzero(open_ & (own | anywhere) & (high > low))
        if len(chosen) == 0:
            return
        seen = self._runs.seen(moment[chosen], low[chosen], high[chosen])
        wait, thread = chosen[seen.query], self._runs.axis.threads[seen.lane]
        other = (thread != waits.thread[wait]) & (own[wait] | self._untraced[seen.lane])
        other &= seen.ago <= moment[wait] - waits.start[wait]
        pairs = Pairs.without_calls(wait, thread, moment[wait], seen.distance).take(other)
        plain = (waits.timed[pairs.wait] == 0) & np.isin(waits.ends[pairs.wait], (Ends.SIGNAL, Ends.RELEASE))
        found.settle(pairs.take(alone(pairs) & plain), How.RAN)
        found.settle(pairs.take(self._stands_out(pairs, group, chosen)), How.RAN_OFTEN)
        self._by_any_that_ran(waits, pairs.take(plain), found)
        found.settle(nearest(pairs.take(plain)), How.RAN_NEAREST)

    def _by_any_that_ran(self, waits: Waits, pairs: Pairs, found: Wakers) -> None:
        """Where several threads ran until the moment, and each of them throughout the wait: whichever of them ended it,
        it computed until then."""
        start, until = waits.start[pairs.wait], pairs.at - BEFORE_NS
        ran_on = (self._runs.ran(pairs.thread, until) == 0) & (until > start)
        ran_on &= self._runs.switches(pairs.thread, start, until) == 0
        count, throughout = (np.bincount(pairs.wait, weights, len(waits)) for weights in (None, ran_on))
        rows = pairs.take((count == throughout)[pairs.wait] & (found.how[pairs.wait] == How.NOTHING))
        found.settle(rows, How.RAN_OFTEN)
        found.confidence[rows.wait] = ONE_OF_POOL

    def _stands_out(self, pairs: Pairs, group: IntArray, waits: IntArray) -> BoolArray:
        """Which pairs are of a thread that is there at nearly every such wait, and more than chance and any other."""
        if len(pairs) == 0:
            return np.zeros(0, dtype=np.bool_)
        key, _ = group_and_thread(pairs, group)
        total = np.bincount(group[waits], minlength=int(group.max()) + 1)[group[pairs.wait]]
        rate, chance = np.bincount(key)[key] / total, self._runs.share[self._runs.axis.lane(pairs.thread)]
        return (total >= REPEATED) & stands_out(pairs.wait, rate, chance)

    def _by_returns(self, waits: Waits, moment: IntArray, found: Wakers) -> None:
        """Without any scheduling: the only thread of the process whose OS call ended or began around the moment."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE)))
        chosen = chosen[waits.timed[chosen] == 0]
        if len(chosen) == 0 or len(self._runs.position):
            return
        calls = self._os_calls
        kept = ~np.isin(calls.thread, self._ignored) & (calls.start >= 0) & (calls.end >= calls.start)
        time = np.concatenate((calls.start[kept], calls.end[kept]))
        order = np.argsort(time, kind="stable")
        time, thread = time[order], np.concatenate((calls.thread[kept], calls.thread[kept]))[order]
        process, own = process_of(thread), process_of(waits.thread)

        def fits(wait: IntArray, row: IntArray) -> BoolArray:
            return (thread[row] != waits.thread[wait]) & (process[row] == own[wait])

        wait, row = within(time, moment - BEFORE_NS, moment + AFTER_NS, chosen, fits)
        pairs = Pairs.without_calls(wait, thread[row], time[row], np.abs(time[row] - moment[wait]))
        found.settle(pairs.take(alone(pairs)), How.RETURNED)

    def _by_usual_waker(self, waits: Waits, moment: IntArray, cpu: IntArray, usual: IntArray, found: Wakers) -> None:
        """For waits still open whose group has a usual waker: its last such call before, which the waiting thread may
        have followed late. Or, as short calls are not recorded, that it ran until then or until the waiting thread was
        queued, unless it nearly always runs."""
        self._call_of(usual, waits, WakeMoments(np.maximum(waits.start, moment - QUEUED_NS), moment), cpu, found)
        chosen = np.flatnonzero((found.how == How.NOTHING) & (usual > 0))
        if len(chosen) == 0 or len(self._runs.share) == 0:
            return
        lane, ago = self._runs.axis.lane(usual[chosen]), self._runs.ran(usual[chosen], moment[chosen])
        there = (lane >= 0) & (ago >= 0) & (ago <= (moment - waits.start)[chosen])
        there &= (ago <= BEFORE_NS) | self._stood(cpu[chosen], moment[chosen] - np.maximum(ago, 0), moment[chosen])
        there &= self._runs.share[np.maximum(lane, 0)] <= 1 - STANDS_OUT
        wait, ago = chosen[there], ago[there]
        at = moment[wait] - np.where(ago > BEFORE_NS, ago, 0)
        found.settle(Pairs.without_calls(wait, usual[wait], at, ago), How.USUAL)
        # The further back, the likelier that a thread ran by chance.
        often = self._runs.came_in(lane[there]) / self._span
        found.confidence[wait] *= 1 - np.minimum(np.where(ago > BEFORE_NS, often * ago, 0), 1)

    def _call_of(self, usual: IntArray, waits: Waits, moment: WakeMoments, cpu: IntArray, found: Wakers) -> None:
        """For waits still open, the last call of the `usual` waker of each, between two moments. It may be long before
        only if others held the CPU of the waiting thread since then."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & (usual > 0))
        calls = self._wake_calls

        def fits(wait: IntArray, call: IntArray) -> BoolArray:
            return (calls.thread[call] == usual[wait]) & (calls.ends[call] == waits.ends[wait])

        wait, call = within(calls.start, moment.first, moment.last, chosen, fits)
        at = calls.start[call]
        pairs = nearest(Pairs(wait, calls.thread[call], at, moment.last[wait] - at, calls.name[call]))
        stood = self._stood(cpu[pairs.wait], pairs.at, moment.last[pairs.wait])
        pairs = pairs.take((pairs.distance <= SLOW_NS) | stood)
        found.settle(pairs, How.USUAL)
        self._discount(found, pairs.wait, np.maximum(pairs.distance, SLOW_NS))

    def _stood(self, cpu: IntArray, since: IntArray, moment: IntArray) -> BoolArray:
        """Whether others held each CPU since then, so that a thread woken then may have stood in its queue."""
        return self._cpus.held(cpu, Intervals(since, moment)) & (since >= moment - QUEUED_NS)

    def _by_ended_processes(self, waits: Waits, moment: IntArray, found: Wakers) -> None:
        """A child ends 0.4 to 1 ms before the wait for it does."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & (waits.ends == Ends.CHILD))
        pairs = self._ended(waits, WakeMoments(moment - CHILD_NS, moment), chosen, self._runs.process_ends(), own=False)
        found.settle(pairs.take(alone(pairs)), How.ENDED)

    def _by_joined_threads(self, waits: Waits, moment: IntArray, found: Wakers) -> None:
        """A thread that is joined ends just before."""
        self._settle_ended(self._ended_threads(waits, moment, Ends.THREAD, found), waits, found)

    def _by_ended_threads(
        self, waits: Waits, moment: IntArray, clear: IntArray, group: IntArray, found: Wakers
    ) -> None:
        """Where a lock tells of a thread's end, as in Python's Thread.join, the thread ends around the moment. Threads
        must end so at most waits of a group: one may be there by chance. `clear` are the groups of waits that took
        their time."""
        pairs = self._ended_threads(waits, moment, Ends.RELEASE, found)
        hits = np.bincount(group[distinct_values(pairs.wait)], minlength=int(group.max(initial=0)) + 1)
        often = (hits >= REPEATED) & (hits >= MOST * np.bincount(clear, minlength=len(hits)))
        self._settle_ended(pairs.take(often[group[pairs.wait]]), waits, found)

    def _ended_threads(self, waits: Waits, moment: IntArray, ends: Ends, found: Wakers) -> Pairs:
        """The open waits for such an end, and the threads of the process that ended around the moment."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & (waits.ends == ends))
        last = moment if ends == Ends.THREAD else moment + BEFORE_NS
        return self._ended(waits, WakeMoments(moment - BEFORE_NS, last), chosen, self._runs.thread_ends(), own=True)

    def _settle_ended(self, pairs: Pairs, waits: Waits, found: Wakers) -> None:
        """Of several it is not sure which was waited for; nor whether it was one, where a time may have run out."""
        unsure = pairs.take(~alone(pairs) | (waits.timed[pairs.wait] != 0)).wait
        found.settle(pairs, How.ENDED)
        found.confidence[unsure] = np.minimum(found.confidence[unsure], ONE_OF_POOL)

    def _ended(
        self, waits: Waits, moment: WakeMoments, chosen: IntArray, ends: tuple[IntArray, IntArray], *, own: bool
    ) -> Pairs:
        """The `chosen` waits, and what ended between two moments: times, sorted, and threads, of the same process
        (`own`) or another."""
        end, thread = ends
        process, mine = process_of(thread), process_of(waits.thread)

        def fits(wait: IntArray, row: IntArray) -> BoolArray:
            return ((process[row] == mine[wait]) == own) & (thread[row] != waits.thread[wait])

        wait, row = within(end, np.maximum(moment.first, waits.start), moment.last, chosen, fits)
        distance = np.abs(moment.last[wait] - end[row])
        return Pairs.without_calls(wait, thread[row], end[row], distance)
