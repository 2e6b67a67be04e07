"""Who ended a wait: a thread that made a wake call just before, else one that ran until the right moment.

```
waiter   [--- pthread_cond_wait ------------------)
                                            ^ scheduled in
waker    [ read ][ compute ][cond_signal]             begun 15-100 us before
waker    [ read ][ compute ](sem_post)[ waits again   no row of its own: it was on a CPU, or had just gone off it
```
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from nsysdiag.activity.host_tables import HostTables
from nsysdiag.activity.identity import BoolArray, IntArray, process_of
from nsysdiag.activity.lane import CallTable
from nsysdiag.activity.rows import Rows
from nsysdiag.activity.streams import distinct
from nsysdiag.analysis.roots.candidates import (
    Pairs,
    alone,
    group_and_thread,
    most_often,
    nearest,
    one_a_thread,
    two_best,
    within,
)
from nsysdiag.analysis.roots.runs import Runs
from nsysdiag.analysis.roots.waits import RELEASES, SIGNALS, WRITES, Ends, Waits
from nsysdiag.paged import laid_away
from nsysdiag.timeline.intervals import FloatArray

BEFORE_NS = 100_000
AFTER_NS = 15_000
CHILD_NS = 2_000_000
QUEUED_NS = 5_000_000
"""How long a thread that was woken may have stood in the queue of a busy CPU."""
AFTER_A_QUEUE = 0.9
"""How much of its confidence evidence keeps that is taken from before such a queue."""
SLOW_NS = 1_000_000
"""How long after a call of the thread that usually ends such waits the waiting one may come in."""
REPEATED = 5
ALWAYS = 0.8
SURE = 0.5
"""How sure a wake-up must be to say who usually makes them."""
STANDS_OUT = 0.25


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
    How.USUAL: 0.65,  # the thread whose calls ended nearly all other such waits was there
}
"""Lower than what the captured waits in tests/fixtures give, where the first, third, fourth and last were always right
and the nearest of several in 19 of 26."""


@dataclass(frozen=True, slots=True)
class Wakers(Rows):
    """For each wait: the thread that ended it (globalTid, 0: nobody known), when in ns, by what call (an index into the
    names of OS calls, -1: none known), how that is known (`How`), and how sure it is, 0 to 1."""

    thread: IntArray
    at: IntArray
    call: IntArray
    how: IntArray
    confidence: FloatArray

    @classmethod
    def nobody(cls, at: IntArray) -> Wakers:
        """Nothing known of any."""
        nothing = np.zeros(len(at), dtype=np.int64)
        return cls(nothing, at.copy(), np.full(len(at), -1, dtype=np.int64), nothing.copy(), np.zeros(len(at)))


@dataclass(frozen=True, slots=True)
class _WakeCalls(Rows):
    """Calls that end waits, by start; `ends` as in `Ends`, `name` an index into the names of OS calls."""

    start: IntArray
    thread: IntArray
    ends: IntArray
    name: IntArray


@dataclass(frozen=True, slots=True)
class Moments:
    """When each wait may have been ended: between the `first` and the `last` moment, in ns."""

    first: IntArray
    last: IntArray


class WakeFinder:
    """Finds wakers in the tables of one trace whose times lie in [low, high). `ignored` threads wake nobody."""

    def __init__(self, tables: HostTables, ignored: IntArray, low: int, high: int) -> None:
        self._runs = laid_away(Runs.of(tables.switches, ignored, low, high, BEFORE_NS))
        self._wake_calls = _wake_calls(tables.os_calls, ignored)
        self._callers, caller = distinct(self._wake_calls.thread)
        self._calls_of_callers = np.bincount(caller, minlength=len(self._callers))
        self._os_calls = tables.os_calls
        self._cpus = tables.cpus
        self._ignored = ignored
        traced = np.unique(process_of(tables.os_calls.thread))
        self._untraced = ~np.isin(process_of(self._runs.axis.threads), traced)
        self._span = max(high - low, 1)

    def find(self, waits: Waits) -> Wakers:
        """Who ended each of `waits`."""
        came, cpu = self._runs.switched_in(waits.thread, waits.start, waits.end)
        moment = np.where(came >= 0, came, waits.end)
        found = Wakers.nobody(moment)
        _, group = distinct(waits.thread)
        group = group * (int(waits.name.max(initial=0)) + 1) + waits.name
        self._by_calls(waits, Moments(moment, moment), group, found)
        usual = self._usual_callers(waits, moment, group)
        self._rather_the_usual(waits, moment, cpu, usual, found)
        self._by_runs(waits, moment, group, found)
        self._by_returns(waits, moment, found)
        self._by_ended_processes(waits, moment, found)
        self._before_the_queue(waits, moment, cpu, group, found)
        settled = _usual(waits, group, found)
        self._by_habit(waits, moment, np.where(settled > 0, settled, usual), found)
        return found

    def _usual_callers(self, waits: Waits, moment: IntArray, group: IntArray) -> IntArray:
        """For each wait the thread that made a call which may have ended it shortly before nearly every wait of its
        group, more than chance and any other thread; 0 where there is none. Long waits count for more."""
        usual = np.zeros(len(waits), dtype=np.int64)
        earliest = np.maximum(waits.start, moment - SLOW_NS)
        pairs = one_a_thread(self._callers_within(waits, Moments(earliest, moment + AFTER_NS)))
        if len(pairs) == 0:
            return usual
        length = (waits.end - waits.start).astype(np.float64)
        key, threads = group_and_thread(pairs, group)
        hits, spent = np.bincount(key), np.bincount(key, weights=length[pairs.wait])
        # A row for each group and thread.
        owner, caller = (np.zeros(len(hits), dtype=np.int64) for _ in range(2))
        owner[key], caller[key] = group[pairs.wait], np.searchsorted(self._callers, pairs.thread)
        whole, looked = (
            np.bincount(group, weights=length * each)[owner] for each in (np.ones(len(waits)), moment - earliest)
        )
        rate = spent / whole
        lift = rate - np.minimum(self._calls_of_callers[caller] * looked / whole / self._span, 1)
        best, second = two_best(owner, lift)
        ahead = best[owner] - np.maximum(second, 0)[owner]
        leads = (lift == best[owner]) & (ahead >= STANDS_OUT) & (lift >= STANDS_OUT)
        leads &= (rate >= ALWAYS) & (hits > REPEATED)
        of_group = np.zeros(int(group.max()) + 1, dtype=np.int64)
        of_group[owner[leads]] = self._callers[caller[leads]]
        result: IntArray = of_group[group]
        return result

    def _rather_the_usual(
        self, waits: Waits, moment: IntArray, cpu: IntArray, usual: IntArray, found: Wakers
    ) -> None:
        """A call just before is another's by chance where the waiting thread stood in the queue of its CPU, and the
        thread that ends such waits had called since the queue began."""
        called = (found.how == How.CALL) | (found.how == How.CALL_OF_SEVERAL)
        doubted = np.flatnonzero(called & (usual > 0) & (usual != found.thread) & (cpu >= 0))
        if len(doubted) == 0:
            return
        held = np.maximum(self._cpus.held_since(cpu[doubted], moment[doubted], BEFORE_NS), waits.start[doubted])
        held = np.maximum(held - BEFORE_NS, np.maximum(waits.start, moment - SLOW_NS)[doubted])
        again = Wakers.nobody(moment[doubted])
        self._call_of(usual[doubted], waits.take(doubted), Moments(held, moment[doubted]), again)
        better = again.how != How.NOTHING
        _put(found, doubted[better], again.take(better))

    def _before_the_queue(self, waits: Waits, moment: IntArray, cpu: IntArray, group: IntArray, found: Wakers) -> None:
        """Of those still open the ones that came in on a CPU which others had held until then: they may have been
        woken as long before as it was held. Waits with a time limit may have stood in the queue after it."""
        open_ = np.flatnonzero((found.how == How.NOTHING) & (cpu >= 0) & (waits.timed == 0))
        if len(open_) == 0:
            return
        held = np.maximum(self._cpus.held_since(cpu[open_], moment[open_], BEFORE_NS), waits.start[open_])
        late = held < moment[open_]
        open_, held = open_[late], held[late]
        queued, since = waits.take(open_), np.maximum(held, moment[open_] - QUEUED_NS)
        again = Wakers.nobody(moment[open_])
        self._by_calls(queued, Moments(since, moment[open_]), group[open_], again)
        # Who ran at a moment in the midst of a longer queue may have begun after T was woken.
        whole = np.flatnonzero(since == held)
        ran = again.take(whole)
        self._by_runs(queued.take(whole), since[whole], group[open_][whole], ran)
        self._only_if_alone(queued.take(whole), Moments(since[whole], moment[open_][whole]), ran)
        _put(again, whole, ran)
        again.confidence[:] *= AFTER_A_QUEUE
        sure = again.confidence >= SURE
        _put(found, open_[sure], again.take(sure))

    def _only_if_alone(self, waits: Waits, moment: Moments, found: Wakers) -> None:
        """Forget those that ran until the first moment where another thread of the process came in or went out at the
        end of the wait: T may have stood in the queue of another CPU before."""
        ran = np.flatnonzero(found.how == How.RAN)
        if len(ran) == 0:
            return
        low, high = np.maximum(moment.first - QUEUED_NS, waits.start)[ran], moment.last[ran]
        others = self._runs.switches_of_process(waits.thread[ran], low, high)
        for thread in (waits.thread[ran], found.thread[ran]):
            others -= self._runs.switches(thread, low, high)
        several = ran[others > 0]
        _put(found, several, Wakers.nobody(moment.last[several]))

    def _by_calls(self, waits: Waits, moment: Moments, group: IntArray, found: Wakers) -> None:
        pairs = self._callers_within(waits, Moments(moment.first - BEFORE_NS, moment.last + AFTER_NS))
        # Who stands in a queue was woken by the first of several calls, who came in at once by the nearest.
        first, last = moment.first[pairs.wait], moment.last[pairs.wait]
        pairs.distance[:] = np.where(first < last, pairs.at + BEFORE_NS - first, np.abs(last - pairs.at))
        one, several = alone(pairs), most_often(pairs, group)
        _settle(found, pairs.take(one), How.CALL)
        _settle(found, several, How.CALL_OF_SEVERAL)
        called = np.flatnonzero((found.how == How.CALL) | (found.how == How.CALL_OF_SEVERAL))
        self._discount(found, called, BEFORE_NS + AFTER_NS + (moment.last - moment.first)[called])

    def _callers_within(self, waits: Waits, moment: Moments) -> Pairs:
        """Threads whose calls between two moments may have ended each wait; the distance is to the later one."""
        calls, process, own = self._wake_calls, process_of(self._wake_calls.thread), process_of(waits.thread)

        def fits(wait: IntArray, call: IntArray) -> BoolArray:
            other = (calls.thread[call] != waits.thread[wait]) & (calls.start[call] >= waits.start[wait])
            reaches = (process[call] == own[wait]) | (waits.ends[wait] == Ends.WRITE)
            result: BoolArray = other & reaches & (calls.ends[call] == waits.ends[wait])
            return result

        chosen = np.flatnonzero(np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE, Ends.WRITE)))
        wait, call = within(calls.start, moment.first, moment.last, chosen, fits)
        at = calls.start[call]
        return Pairs(wait, calls.thread[call], at, moment.last[wait] - at, calls.name[call])

    def _discount(self, found: Wakers, rows: IntArray, looked: IntArray) -> None:
        """A thread that makes such calls all the time is around any wait's end: the longer was looked for one, the
        likelier."""
        calls = self._calls_of_callers[np.searchsorted(self._callers, found.thread[rows])]
        found.confidence[rows] *= 1 - np.minimum(calls * looked / self._span, 1)

    def _by_runs(self, waits: Waits, moment: IntArray, group: IntArray, found: Wakers) -> None:
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
        _settle(found, pairs.take(alone(pairs) & plain), How.RAN)
        _settle(found, pairs.take(self._stands_out(pairs, group, chosen)), How.RAN_OFTEN)
        _settle(found, nearest(pairs.take(plain)), How.RAN_NEAREST)

    def _stands_out(self, pairs: Pairs, group: IntArray, waits: IntArray) -> BoolArray:
        """Which pairs are of a thread that is there at nearly every such wait, and more than chance and any other."""
        if len(pairs) == 0:
            return np.zeros(0, dtype=np.bool_)
        key, _ = group_and_thread(pairs, group)
        hits = np.bincount(key)
        total = np.bincount(group[waits], minlength=int(group.max()) + 1)[group[pairs.wait]]
        rate = hits[key] / total
        lift = rate - self._runs.share[self._runs.axis.rank(pairs.thread)]
        best, second = two_best(pairs.wait, lift)
        ahead = best[pairs.wait] - np.maximum(second, np.finfo(np.float64).min)[pairs.wait]
        leads = (lift == best[pairs.wait]) & (ahead >= STANDS_OUT)
        result: BoolArray = (total >= REPEATED) & (rate >= ALWAYS) & leads & (lift >= STANDS_OUT)
        return result

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
            result: BoolArray = (thread[row] != waits.thread[wait]) & (process[row] == own[wait])
            return result

        wait, row = within(time, moment - BEFORE_NS, moment + AFTER_NS, chosen, fits)
        pairs = Pairs.without_calls(wait, thread[row], time[row], np.abs(time[row] - moment[wait]))
        _settle(found, pairs.take(alone(pairs)), How.RETURNED)

    def _by_habit(self, waits: Waits, moment: IntArray, usual: IntArray, found: Wakers) -> None:
        """Of those still open the ones whose like one thread ended nearly always: its last such call before, which the
        waiting thread may have been slow to follow, or else that it ran until then; short calls are not recorded."""
        self._call_of(usual, waits, Moments(np.maximum(waits.start, moment - SLOW_NS), moment), found)
        self._ran_usually(waits, moment, usual, found)

    def _call_of(self, usual: IntArray, waits: Waits, moment: Moments, found: Wakers) -> None:
        """For those still open the last call of the thread that is `usual` for each, between two moments."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & (usual > 0))
        calls = self._wake_calls

        def fits(wait: IntArray, call: IntArray) -> BoolArray:
            result: BoolArray = (calls.thread[call] == usual[wait]) & (calls.ends[call] == waits.ends[wait])
            return result

        wait, call = within(calls.start, moment.first, moment.last, chosen, fits)
        at = calls.start[call]
        _settle(found, Pairs(wait, calls.thread[call], at, moment.last[wait] - at, calls.name[call]), How.USUAL)
        called = chosen[found.how[chosen] == How.USUAL]
        self._discount(found, called, (moment.last - moment.first)[called])

    def _ran_usually(self, waits: Waits, moment: IntArray, usual: IntArray, found: Wakers) -> None:
        """The `usual` threads that ran until the moment, unless they nearly always run."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & (usual > 0))
        lane, ago = self._runs.axis.rank(usual[chosen]), self._runs.ran(usual[chosen], moment[chosen])
        there = (ago >= 0) & (ago <= np.minimum(BEFORE_NS, (moment - waits.start)[chosen]))
        there &= self._runs.share[np.maximum(lane, 0)] <= 1 - STANDS_OUT if len(self._runs.share) else False
        wait = chosen[there]
        _settle(found, Pairs.without_calls(wait, usual[wait], moment[wait], ago[there]), How.USUAL)

    def _by_ended_processes(self, waits: Waits, moment: IntArray, found: Wakers) -> None:
        """A child ends 0.4 to 1 ms before the wait for it does."""
        chosen = np.flatnonzero((found.how == How.NOTHING) & (waits.ends == Ends.CHILD))
        end, thread = self._runs.process_ends()
        process, own = process_of(thread), process_of(waits.thread)

        def fits(wait: IntArray, row: IntArray) -> BoolArray:
            result: BoolArray = process[row] != own[wait]
            return result

        wait, row = within(end, np.maximum(moment - CHILD_NS, waits.start), moment, chosen, fits)
        pairs = Pairs.without_calls(wait, thread[row], end[row], moment[wait] - end[row])
        _settle(found, pairs.take(alone(pairs)), How.ENDED)


def _wake_calls(calls: CallTable, ignored: IntArray) -> _WakeCalls:
    by_name = np.zeros(len(calls.names), dtype=np.int64)
    for ends, pattern in ((Ends.SIGNAL, SIGNALS), (Ends.RELEASE, RELEASES), (Ends.WRITE, WRITES)):
        by_name[[pattern.fullmatch(name) is not None for name in calls.names]] = ends
    kind = by_name[calls.name] if len(calls.names) else calls.name
    chosen = np.flatnonzero((kind > 0) & (calls.start >= 0) & ~np.isin(calls.thread, ignored))
    chosen = chosen[np.argsort(calls.start[chosen], kind="stable")]
    return _WakeCalls(calls.start[chosen], calls.thread[chosen], kind[chosen], calls.name[chosen])


def _usual(waits: Waits, group: IntArray, found: Wakers) -> IntArray:
    """For each wait the thread whose calls ended the waits of its group nearly all the time; 0 where none did."""
    called = (found.how == How.CALL) | (found.how == How.CALL_OF_SEVERAL)
    settled = np.flatnonzero(called & (found.confidence >= SURE))
    if len(settled) == 0:
        return np.zeros(len(group), dtype=np.int64)
    groups, place = distinct(group)
    threads, code = distinct(found.thread[settled])
    length = (waits.end - waits.start).astype(np.float64)
    keys, key = np.unique(place[settled] * len(threads) + code, return_inverse=True)
    owner, spent = keys // len(threads), np.bincount(key, weights=length[settled])
    often = (np.bincount(key) >= REPEATED) & (spent >= ALWAYS * np.bincount(place, weights=length)[owner])
    usual = np.zeros(len(groups), dtype=np.int64)
    usual[owner[often]] = threads[keys[often] % len(threads)]
    result: IntArray = usual[place]
    return result


def _put(found: Wakers, rows: IntArray, others: Wakers) -> None:
    """Write others down in some rows."""
    for field in dataclasses.fields(Wakers):
        getattr(found, field.name)[rows] = getattr(others, field.name)


def _settle(found: Wakers, pairs: Pairs, how: How) -> None:
    """Write down the nearest pair of each wait that is still open."""
    pairs = nearest(pairs.take(found.how[pairs.wait] == How.NOTHING))
    found.thread[pairs.wait] = pairs.thread
    found.at[pairs.wait] = pairs.at
    found.call[pairs.wait] = pairs.call
    found.how[pairs.wait] = how
    found.confidence[pairs.wait] = CONFIDENCE[how]
