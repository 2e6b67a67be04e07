"""Waits that the trace does not show, as what they would be for had come before: with a fix it may not have.

```
helper   [works ](posts)[writes ......](takes a request at once)[works       a request came while it wrote
main     ..waits .....)[asks)(waits .................................
creator  [starts a thread][works ................](joins it at once)[works   the thread had ended by then
thread                    [works ...........]
solver   [launch][works ............](asks the device once)[launch       it had finished by then
```

They hold nothing back in what is likely, but in the bound that saves least.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, nearest_before
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, ThreadAxis, distinct
from nsysdiag.replay.device_waits import DeviceWaits
from nsysdiag.replay.edges import EdgeKind, Edges
from nsysdiag.replay.host_time import HostTime
from nsysdiag.replay.moments import DEVICE, Moments
from nsysdiag.replay.stretch import Stretch
from nsysdiag.replay.wakes import BLOCKED_NS, LOCKS, Births, CallsOf, Wakes, births, waits_of
from nsysdiag.replay.work import Work
from nsysdiag.wakeups.loaders import Finder, HostTrace
from nsysdiag.wakeups.waits import Ends

FEWEST = 5
"""Fewer of a kind say nothing."""


class PossibleWaits(Rows, frozen=True):
    """That `thread` may have had to wait at `since` for what `waker` had done at `at` (globalTids, ns). `born` is the
    thread whose work until `since` that is, 0 where it is none."""

    thread: IntArray
    since: IntArray
    waker: IntArray
    at: IntArray
    born: IntArray


def possible_waits(
    woken: Wakes, threads: IntArray, host_trace: HostTrace, finder: Finder, stretch: Stretch
) -> PossibleWaits:
    """Those of the replayed `threads`, for requests that were there, and for threads that had ended."""
    if not len(threads):
        return PossibleWaits.empty()
    found = [_requests(woken, host_trace, finder, stretch), _ended(woken, threads, host_trace, finder, stretch)]
    return PossibleWaits.concatenate([each for each in found if len(each) >= FEWEST] or [PossibleWaits.empty()])


def _requests(woken: Wakes, host_trace: HostTrace, finder: Finder, stretch: Stretch) -> PossibleWaits:
    """Waits for semaphores and signals that were over at once, of threads that answer another: by their own wakes. A
    thread that loads data works ahead."""
    answers = woken.take((woken.called > 0) | (woken.end - woken.begin >= BLOCKED_NS))
    answers = answers.take(~np.isin(answers.waker, woken.waker[woken.loader > 0]) & (answers.begin < answers.at))
    helpers, code = distinct(answers.waker)
    if not len(helpers):
        return PossibleWaits.empty()
    asking, who = distinct(answers.thread)
    count = np.bincount(joint(code, who, len(asking)), minlength=len(helpers) * len(asking))
    asks = asking[count.reshape(len(helpers), -1).argmax(axis=1)]
    view = host_trace.waiting(helpers)
    waits, _ = waits_of(view, helpers, stretch.begin, stretch.end)
    names = np.array([LOCKS.fullmatch(name) is not None for name in [*view.host.os_calls.names, ""]])
    at_once = (waits.end - waits.start < BLOCKED_NS) & (waits.timed == 0) & ~names[waits.name]
    at_once &= np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE)) & ~_known(waits.thread, waits.start, woken)
    waits = waits.take(at_once)
    partner = asks[np.searchsorted(helpers, waits.thread)]
    ago = finder().ran_until(partner, waits.start)
    at = CallsOf.of(host_trace, partner).before(partner, waits.start - np.maximum(ago, 0))
    fits = (ago >= 0) & (at >= stretch.begin)
    none = np.zeros(len(waits), dtype=np.int64)
    return PossibleWaits(waits.thread, waits.end, partner, at, none).take(fits)


def _known(thread: IntArray, begin: IntArray, woken: Wakes) -> BoolArray:
    _, code = distinct(np.concatenate((thread, woken.thread)))
    moments, rank = distinct(np.concatenate((begin, woken.begin)))
    asked, there = np.split(joint(code, rank, max(len(moments), 1)), [len(thread)])
    found: BoolArray = np.isin(asked, there)
    return found


def _ended(woken: Wakes, threads: IntArray, host_trace: HostTrace, finder: Finder, stretch: Stretch) -> PossibleWaits:
    """Threads that are born and end within a step, and that no wait is known for: they may be joined."""
    born = births(host_trace, stretch.begin, stretch.end) if stretch.stepwise else Births.empty()
    if not len(born):
        return PossibleWaits.empty()
    end, thread = finder().thread_ends()
    order = np.argsort(thread, kind="stable")
    row = np.minimum(np.searchsorted(thread[order], born.thread), max(len(order) - 1, 0))
    known = thread[order][row] == born.thread if len(order) else np.zeros(len(born), dtype=np.bool_)
    over = np.where(known, np.append(end[order], 0)[row], 0)
    step = (stretch.end - stretch.begin) // stretch.count
    known &= (over > born.at) & (over - born.at <= step) & (over < stretch.end) & np.isin(born.creator, threads)
    known &= ~np.isin(born.thread, woken.waker)
    return PossibleWaits(born.creator, over, born.creator, born.at, born.thread).take(known)


class PlacedWaits(Struct, frozen=True):
    """Possible waits as edges between the moments `source` and `target` of a graph, of which each is a row; `spans` are
    the times of threads that an edge is as long as, on the axis of the host, and `fixed` ns more. `operation` is the
    one that it is behind the start of, -1 for none."""

    source: IntArray
    target: IntArray
    spans: tuple[Intervals, ...]
    fixed: IntArray
    operation: IntArray

    @classmethod
    def nothing(cls) -> PlacedWaits:
        """No waits."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, (Intervals.empty(),) * 3, none, none)

    @classmethod
    def of(cls, waits: PossibleWaits, moments: Moments, axis: ThreadAxis) -> PlacedWaits:
        """From the last moment of the waker until then, to the first one of the thread since then.

        ```
        waker    source [works ] at
        thread                      since [works ] target       as long as all that is worked
        ```
        """
        before, behind = _place(moments, waits.waker, waits.at)[0], _place(moments, waits.thread, waits.since)[1]
        kept = (before >= 0) & (behind >= 0)
        waits, before, behind = waits.take(kept), before[kept], behind[kept]

        def on_axis(thread: IntArray, start: IntArray, end: IntArray) -> Intervals:
            rank = axis.lane(thread)
            none = rank < 0
            return axis.place(np.maximum(rank, 0), Intervals(np.where(none, 0, start), np.where(none, 0, end)))

        spans = (
            on_axis(waits.waker, moments.time[before], waits.at),
            on_axis(waits.thread, waits.since, moments.time[behind]),
            on_axis(waits.born, waits.at, np.where(waits.born > 0, waits.since, waits.at)),
        )
        fixed = np.where(waits.born > 0, waits.since - waits.at, 0)
        return cls(before + 1, behind + 1, spans, fixed, np.full(len(fixed), -1))

    def with_queries(
        self, asked: DeviceWaits, ends: IntArray, work: Work, moments: Moments, axis: ThreadAxis
    ) -> PlacedWaits:
        """With what threads asked devices for; the length of operations counts from the moments `ends`."""
        behind = _place(moments, asked.thread, asked.end)[1]
        asked, behind = asked.take(behind >= 0), behind[behind >= 0]
        none = Intervals(np.zeros(len(asked), dtype=np.int64), np.zeros(len(asked), dtype=np.int64))
        rank = axis.lane(asked.thread)
        until = np.where(rank < 0, asked.end, moments.time[behind])
        thread = axis.place(np.maximum(rank, 0), Intervals(asked.end, until))
        pairs = zip(self.spans, (none, thread, none), strict=True)
        return PlacedWaits(
            np.append(self.source, ends[asked.target]),
            np.append(self.target, behind + 1),
            tuple(Intervals(np.append(a.start, b.start), np.append(a.end, b.end)) for a, b in pairs),
            np.append(self.fixed, np.zeros(len(asked), dtype=np.int64)),
            np.append(self.operation, asked.target),
        )

    def lengths(self, pieces: HostTime, time: FloatArray, length: IntArray) -> IntArray:
        """How long each edge is with factors of the time of each piece of host time, and lengths of operations in
        ns."""
        waker, thread, born = (pieces.parts_in(time, each) for each in self.spans)
        worked = waker + thread - (pieces.parts_in(np.ones_like(time), self.spans[2]) - born)
        found: IntArray = worked + self.fixed + np.append(length, 0)[self.operation]
        return found

    def edges(self, pieces: HostTime, length: IntArray) -> Edges:
        """The edges as it was."""
        ns = self.lengths(pieces, np.ones(len(pieces)), length)
        found = Edges.of(self.source, self.target, ns, EdgeKind.POSSIBLE, np.arange(len(ns)))
        return found.take(found.source < found.target)


def _place(moments: Moments, thread: IntArray, time: IntArray) -> tuple[IntArray, IntArray]:
    """The rows of the last moment of each thread up to a time, and of the first one since then; -1 for none."""
    mine = np.flatnonzero(moments.thread != DEVICE)
    _, code = distinct(np.concatenate((moments.thread[mine], thread)))
    times, rank = distinct(np.concatenate((moments.time[mine], time)))
    key, asked = np.split(joint(code, rank, max(len(times), 1)), [len(mine)])
    order = np.argsort(key, kind="stable")
    before, behind = nearest_before(key[order], asked), np.searchsorted(key[order], asked)
    rows = np.append(mine[order], -1)
    owner = np.append(moments.thread, -1)
    before, behind = rows[before], rows[np.minimum(behind, len(rows) - 1)]
    return np.where(owner[before] == thread, before, -1), np.where(owner[behind] == thread, behind, -1)
