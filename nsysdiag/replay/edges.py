"""What each moment of a replay waits for, as edges of its graph."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, FloatArray, IntArray, Intervals, places_among
from nsysdiag.events.calls import CallRows, named_like
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import Rows, ThreadAxis, first_since, last_before, previous_on_stream
from nsysdiag.gaps.gaps import LATENCY_HIGHEST_NS
from nsysdiag.replay.device_waits import Behind, DeviceWaits
from nsysdiag.replay.meetings import Meetings
from nsysdiag.replay.moments import DEVICE, ORIGIN, EdgeKind, Edges, MomentPlaces, Moments, ThreadActions
from nsysdiag.replay.orders import (
    LATENCY_NS,
    Before,
    Pace,
    class_order,
    following,
    overlapped_order,
    previous_of_class,
    stream_order,
)
from nsysdiag.replay.wakes import BLOCKED_NS, LOCKS, Births, CallsOf, Wakes, births, waits_of
from nsysdiag.replay.work import HostTime, Stretch, Work, keyed, on_axis, row_of
from nsysdiag.wakeups.loaders import Finder, HostTrace
from nsysdiag.wakeups.waits import Ends


class Program(Rows, frozen=True):
    """The edges between moments of a thread that follow each other: the host time [start, end) in ns of `thread`, and
    `lag`, the fixed cost at the end of a wait, whose cause is `cause`; -1 without a wait."""

    thread: IntArray
    start: IntArray
    end: IntArray
    lag: IntArray
    cause: IntArray


def program_order(moments: Moments) -> tuple[Program, Edges]:
    """Each moment of a thread and the one before it.

    ```
    before        begin of the wait      released    end
    |--- host time ---|.....................|-- lag --|
    ```
    """
    mine = np.flatnonzero(moments.thread != DEVICE)
    mine = mine[np.argsort(moments.thread[mine], kind="stable")]
    follows = moments.thread[mine[1:]] == moments.thread[mine[:-1]]
    before, after = mine[:-1][follows], mine[1:][follows]
    start = moments.time[before]
    end = np.maximum(moments.begin[after], start)
    lag = np.minimum(moments.time[after] - np.maximum(end, moments.released[after]), moments.time[after] - end)
    lag = np.where(moments.cause[after] >= 0, lag, 0)
    row = np.arange(len(after))
    edges = Edges.of(before + 1, after + 1, end - start + lag, EdgeKind.PROGRAM, row)
    return Program(moments.thread[after], start, end, lag, moments.cause[after]), edges


def launch_cost(work: Work, threads: ThreadActions, calls: CallRows, others: Before, uploads: BoolArray) -> IntArray:
    """For each operation the time of its call before the launch is issued, in ns: the whole call, but at most until the
    operation starts. One that is held by a full queue has the length without that wait. A call that waits for its own
    copy takes until the copy starts, or until what the copy waits for has ended: the previous work of the stream, and
    `others`. It takes long for `uploads` alone, which are staged first: another copy that is late waits for something.
    """
    own = np.flatnonzero(work.launch >= 0)
    cost = np.zeros(len(work), dtype=np.int64)
    length = calls.end[work.launch[own]] - work.issued[own]
    full, row = threads.full, row_of(work.launch[own], threads.full.call)
    alone = full.begin - calls.start[full.call] + full.end - work.start[full.target]
    length = np.where(row >= 0, np.append(alone, 0)[row], length)
    cost[own] = np.minimum(length, work.start[own] - work.issued[own])
    ended = work.ended_before()
    np.maximum.at(ended, others.after, work.end[others.before])
    waits = np.flatnonzero(np.isin(work.launch, threads.held.call) & (work.launch >= 0))
    until = np.maximum(work.start - np.maximum(work.issued, ended) - LATENCY_NS, 0)
    issuing = (ended <= work.issued) & (uploads | (until <= LATENCY_HIGHEST_NS))
    cost[waits] = np.where(issuing, until, 0)[waits]
    return cost


def staged(work: Work, uploads: BoolArray, calls: CallRows, late_ns: IntArray) -> BoolArray:
    """Which of the `uploads` were late by `late_ns` as the driver first staged them: once the stream was empty, and
    until about the start of the copy."""
    found: BoolArray = uploads & (late_ns > 0) & (work.launch >= 0)
    rows = np.flatnonzero(found)
    found[rows] = calls.end[work.launch[rows]] >= work.start[rows] - LATENCY_NS
    return found


class KnownOrder(Struct, frozen=True):
    """What a trace says of who waits for whom, as edges between the `moments` of threads and devices, which are at
    `places`. `length` is that of each operation, from its place `end` on; `cost` the time of its call before the launch
    is issued, both in ns. `awaited` and `barred` are waits for other streams, `hidden` what may be such waits, and
    `behind` the operations behind host functions. Replayed time begins at `begin`."""

    begin: int
    work: Work
    calls: CallRows
    threads: ThreadActions
    meetings: Meetings
    moments: Moments
    places: MomentPlaces
    in_order: Edges
    length: IntArray
    cost: IntArray
    awaited: Before
    barred: Before
    hidden: Before
    pace: Pace
    behind: Behind

    @property
    def time(self) -> IntArray:
        """When each moment was, in ns, the ORIGIN included."""
        return np.append(self.moments.time.min(initial=self.begin), self.moments.time)

    def edges(self) -> Edges:
        """All of these edges."""
        found = [
            self.in_order,
            self.begun_before(),
            *self._waits(),
            self._own_times(),
            self._launches(),
            *self.on_devices(),
            *self._meetings(),
            *self._behind_functions(),
        ]
        every = Edges.concatenate(found)
        return every.take(every.source < every.target)

    def begun_before(self) -> Edges:
        """Operations that were launched before the replayed time began, the first of their class in their streams: they
        start no sooner than the first of all in these. That one starts when it did.

        ```
        stream   [== k0 ==)|[copy)[== k1 ==)     k0 is not in the replay: if kernels and copies do not wait for each
        begin              |                     other, nothing else keeps k1 behind it
        ```
        """
        work = self.work
        first = np.flatnonzero(previous_on_stream(work.stream) < 0)
        began = np.zeros(int(work.stream.max(initial=-1)) + 1, dtype=np.int64)
        began[work.stream[first]] = self.time[self.places.operation[first]] - self.time[ORIGIN]
        held = np.flatnonzero((previous_of_class(work) < 0) & (work.issued < self.begin))
        return Edges.of(ORIGIN, self.places.operation[held], began[work.stream[held]], EdgeKind.START)

    def _waits(self) -> list[Edges]:
        """The ends of waits, and the operations or threads that they are for."""
        at, held, full = self.places, self.threads.held, self.threads.full
        ended = self.moments.lag(at.held) + self.length[held.target]
        woken, queued = np.arange(len(at.woken)), np.arange(len(full))
        return [
            Edges.of(at.end[held.target], at.held, ended, EdgeKind.DEVICE_WAIT, np.arange(len(held))),
            *self._besides_targets(),
            Edges.of(at.operation[full.target], at.full, self.moments.lag(at.full), EdgeKind.SLOT, queued),
            Edges.of(at.wake, at.woken, self.moments.lag(at.woken), EdgeKind.WAKE, woken),
        ]

    def _besides_targets(self) -> list[Edges]:
        """Waits for devices, and what they are for besides their targets.

        ```
        operations    [A) [B    )   [C)
        wait 1      [           )         for B, its target, and A: FINISHED, then RELEASED
        wait 2                   [    )   for C, its target, and what wait 1 was for: PASSED, and B
        ```

        A wait that is not for the whole of its group is for its target's stream.
        """
        at, waited, finished = self.places, self.threads.waited, self.threads.waited.finished
        lag, ns, ended = self.moments.lag(at.held), self.length[finished.operation], at.end[finished.operation]
        known = at.finished >= 0
        whole = np.flatnonzero(known & waited.whole)
        before, after = following(waited.group, waited.in_order)
        before, after = before[known[before]], after[known[before]]
        own = np.flatnonzero(finished.own & ~waited.whole[finished.wait])
        direct, wait = finished.operation[own], finished.wait[own]
        return [
            Edges.of(ended, at.finished[finished.wait], ns, EdgeKind.FINISHED, finished.operation),
            Edges.of(ended[own], at.held[wait], ns[own] + lag[wait], EdgeKind.FINISHED, direct),
            Edges.of(at.finished[whole], at.held[whole], lag[whole], EdgeKind.RELEASED, whole),
            Edges.of(at.finished[before], at.finished[after], 0, EdgeKind.PASSED),
        ]

    def _own_times(self) -> Edges:
        """Waits that end at a time of their own; if that is not sure, the edge is one of a bound, and has no length.
        The first moment of a thread is where it was without one."""
        row = np.flatnonzero(np.isin(self.places.timed, self.in_order.target))
        end, time = self.places.timed[row], self.time
        ns = np.where(self.threads.timed.sure[row] > 0, time[end] - time[ORIGIN], 0)
        return Edges.of(ORIGIN, end, ns, EdgeKind.PACED, row)

    def _call(self) -> IntArray:
        """The place among the launches of the call that launched each operation, -1 for none."""
        return places_among(self.threads.launches, self.work.launch)

    def _launches(self) -> Edges:
        """Operations and the calls that launched them."""
        call, work = self._call(), self.work
        rows = np.flatnonzero(call >= 0)
        ns = (self.cost + self.pace.latency[work.device, work.kind])[rows]
        return Edges.of(self.places.launch[call[rows]], self.places.operation[rows], ns, EdgeKind.LAUNCH, rows)

    def on_devices(self) -> list[Edges]:
        """Operations and what they wait for on their device."""
        work, order = self.work, stream_order(self.work)
        # Nodes of a graph may overlap in what is recorded as one stream: only their starts are in order.
        apart = work.end[order.before] <= work.start[order.after]
        ended, nodes = Before.concatenate([order.take(apart), overlapped_order(work)]), order.take(~apart)
        # Time between the nodes of one graph is a part of the graph.
        of_graph = (work.launch[ended.after] >= 0) & (work.launch[ended.after] == work.launch[ended.before])
        between = np.maximum(work.start[ended.after] - work.end[ended.before], 0)
        gap, switch = (each[work.device, work.kind] for each in (self.pace.gap, self.pace.switch))
        at, started = self.places.operation, work.start[nodes.after] - work.start[nodes.before]
        return [
            self.after_end(ended, EdgeKind.STREAM, np.where(of_graph, between, gap[ended.after])),
            Edges.of(at[nodes.before], at[nodes.after], started, EdgeKind.STREAM),
            self.after_end(class_order(work), EdgeKind.CLASS),
            self.after_end(self.awaited, EdgeKind.EVENT, switch[self.awaited.after]),
            self.after_end(self.barred, EdgeKind.BARRIER, switch[self.barred.after]),
        ]

    def after_end(self, pairs: Before, kind: EdgeKind, gap: IntArray | int = 0) -> Edges:
        """That operations wait for others to end, and the shortest gap."""
        ns = self.length[pairs.before] + gap
        return Edges.of(self.places.end[pairs.before], self.places.operation[pairs.after], ns, kind, pairs.before)

    def _meetings(self) -> list[Edges]:
        """Collectives and the operations of all ranks that take part; meetings in MPI, who comes to them and who
        leaves. Those who come and are not sure have their rows in `mpi`."""
        at, mpi = self.places, self.threads.mpi
        met, unsure = at.mpi_meeting[mpi.meeting], np.where(mpi.sure, -1, np.arange(len(mpi)))
        return [
            Edges.of(at.operation[self.meetings.come], at.meeting[self.meetings.to], 0, EdgeKind.MEETING),
            Edges.of(at.mpi_arrival, met, 0, EdgeKind.MEETING, unsure),
            Edges.of(met[mpi.leaves], at.mpi_return, self.moments.lag(at.mpi_return), EdgeKind.MEETING),
        ]

    def _behind_functions(self) -> list[Edges]:
        """Operations that are behind host functions in their streams, and waits of threads that such functions hold."""
        at, work, calls, launches = self.places, self.work, self.calls, self.threads.launches
        behind, waits = self.behind, self.threads.functions
        row, ran = behind.row, behind.end - behind.start
        gap = self.pace.gap[work.device[row], work.kind[row]]
        waited = work.issued[row] < behind.end
        ran = ran + np.where(waited, np.maximum(work.start[row] - behind.end, 0), gap)
        held, returned = waits.row, waits.end - waits.start + self.moments.lag(at.held)[waits.row]
        last = last_before(calls.thread[launches], calls.start[launches], self.threads.held.thread[held], waits.issued)
        return [
            *self._after_functions(behind, at.operation[row], ran, self._call()[row], -1),
            *self._after_functions(waits, at.held[held], returned, last, held),
        ]

    def _after_functions(
        self, behind: Behind, moment: IntArray, ran: IntArray, call: IntArray, row: IntArray | int
    ) -> list[Edges]:
        """That each moment is `ran` ns after the begin of a function. That is after the end of the operation before it,
        and after the last launch of its thread before it was issued: `call`, a place among the launches."""
        at, begun = self.places, np.append(self.calls.start[self.threads.launches], 0)[call]
        after_end, after_issue = behind.begins_after(self.work)
        after_end = after_end + np.append(self.length, 0)[behind.before] + ran
        since = behind.issued - begun + after_issue + ran
        source, launch = np.append(at.end, 0)[behind.before], np.append(at.launch, 0)[call]
        return [
            Edges.of(source, moment, after_end, EdgeKind.FUNCTION, row).take(behind.before >= 0),
            Edges.of(launch, moment, since, EdgeKind.FUNCTION, row).take((call >= 0) & (behind.issued > 0)),
        ]


# Waits that the trace does not show, as what they would be for had come before: with a fix it may not have.
#
# ```
# helper   [works ](posts)[writes ......](takes a request at once)[works       a request came while it wrote
# main     ..waits .....)[asks)(waits .................................
# creator  [starts a thread][works ................](joins it at once)[works   the thread had ended by then
# thread                    [works ...........]
# solver   [launch][works ............](asks the device once)[launch       it had finished by then
# ```
#
# They hold nothing back in what is likely, but in the bound that saves least.

FEWEST = 5
"""Fewer of a kind say nothing."""


class PossibleWaits(Rows, frozen=True):
    """That `thread` may have had to wait at `since` for what `waker` had done at `at` (globalTids, ns). `born` is the
    thread whose work until `since` that is, 0 for none. A wait for a device has no waker (0): it is for an `operation`,
    -1 for none."""

    thread: IntArray
    since: IntArray
    waker: IntArray
    at: IntArray
    born: IntArray
    operation: IntArray


def possible_waits(
    woken: Wakes, asked: DeviceWaits, threads: IntArray, host_trace: HostTrace, finder: Finder, stretch: Stretch
) -> PossibleWaits:
    """Those of the replayed `threads`: for requests that were there, for threads that had ended, and what they `asked`
    devices for."""
    none = np.zeros(len(asked), dtype=np.int64)
    queries = PossibleWaits(asked.thread, asked.end, none, none, none, asked.target)
    if not len(threads):
        return queries
    found = [_requests(woken, host_trace, finder, stretch), _ended(woken, threads, host_trace, finder, stretch)]
    return PossibleWaits.concatenate([*(each for each in found if len(each) >= FEWEST), queries])


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
    names = np.append(named_like(view.host.os_calls.names, LOCKS), False)
    at_once = (waits.end - waits.start < BLOCKED_NS) & (waits.timed == 0) & ~names[waits.name]
    at_once &= np.isin(waits.ends, (Ends.SIGNAL, Ends.RELEASE)) & ~_known(waits.thread, waits.start, woken)
    waits = waits.take(at_once)
    partner = asks[np.searchsorted(helpers, waits.thread)]
    ago = finder().ran_until(partner, waits.start)
    at = CallsOf.of(host_trace, partner).before(partner, waits.start - np.maximum(ago, 0))
    fits = (ago >= 0) & (at >= stretch.begin)
    none = np.zeros(len(waits), dtype=np.int64)
    return PossibleWaits(waits.thread, waits.end, partner, at, none, none - 1).take(fits)


def _known(thread: IntArray, begin: IntArray, woken: Wakes) -> BoolArray:
    asked, there = keyed((thread, begin), (woken.thread, woken.begin))
    return np.isin(asked, there)


def _ended(woken: Wakes, threads: IntArray, host_trace: HostTrace, finder: Finder, stretch: Stretch) -> PossibleWaits:
    """Threads that are born and end within a step, and that no wait is known for: they may be joined."""
    born = births(host_trace, stretch.begin, stretch.end) if stretch.stepwise else Births.empty()
    if not len(born):
        return PossibleWaits.empty()
    end, thread = finder().thread_ends()
    row = row_of(born.thread, thread)
    known, over = row >= 0, np.append(end, 0)[row]
    step = (stretch.end - stretch.begin) // stretch.count
    known &= (over > born.at) & (over - born.at <= step) & (over < stretch.end) & np.isin(born.creator, threads)
    known &= ~np.isin(born.thread, woken.waker)
    none = np.full(len(born), -1)
    return PossibleWaits(born.creator, over, born.creator, born.at, born.thread, none).take(known)


class PlacedWaits(Struct, frozen=True):
    """Possible waits as edges between the moments `source` and `target` of a graph, of which each is a row. An edge is
    as long as the threads' time in its `spans`, on the axis of the host: of the waker, the thread, and one that was
    born; and `fixed` ns longer. `operation` is the one that it is behind the start of, -1 for none."""

    source: IntArray
    target: IntArray
    spans: tuple[Intervals, Intervals, Intervals]
    fixed: IntArray
    operation: IntArray

    @classmethod
    def of(cls, waits: PossibleWaits, ends: IntArray, moments: Moments, axis: ThreadAxis) -> PlacedWaits:
        """From the last moment of the waker until then, to the first one of the thread since then. The length of an
        operation counts from the moment `ends`.

        ```
        waker    source [works ] at
        thread                      since [works ] target       as long as all that is worked
        ```
        """
        mine = np.flatnonzero(moments.thread != DEVICE)
        rows, owner, time = np.append(mine, -1), moments.thread[mine], moments.time[mine]
        before = rows[last_before(owner, time, waits.waker, waits.at)]
        behind = rows[first_since(owner, time, waits.thread, waits.since)]
        source = np.where(waits.operation >= 0, np.append(ends, 0)[waits.operation], before + 1)
        kept = (source > 0) & (behind >= 0)
        waits, source, behind = waits.take(kept), source[kept], behind[kept]
        born = waits.born > 0
        spans = (
            on_axis(axis, waits.waker, moments.time[source - 1], waits.at),
            on_axis(axis, waits.thread, waits.since, moments.time[behind]),
            on_axis(axis, waits.born, waits.at, np.where(born, waits.since, waits.at)),
        )
        return cls(source, behind + 1, spans, np.where(born, waits.since - waits.at, 0), waits.operation)

    def lengths(self, pieces: HostTime, time: FloatArray, length: IntArray) -> IntArray:
        """How long each edge is with factors of the time of each piece of host time, and lengths of operations in
        ns."""
        waker, thread, born = self.spans
        worked = pieces.parts_in(time, waker) + pieces.parts_in(time, thread)
        rows = np.flatnonzero(self.fixed)
        born = born[rows]
        worked[rows] += pieces.parts_in(time, born) - pieces.parts_in(np.ones_like(time), born)
        return worked + self.fixed + np.append(length, 0)[self.operation]

    def edges(self, pieces: HostTime, length: IntArray) -> Edges:
        """The edges as it was."""
        ns = self.lengths(pieces, np.ones(len(pieces)), length)
        found = Edges.of(self.source, self.target, ns, EdgeKind.POSSIBLE, np.arange(len(ns)))
        return found.take(found.source < found.target)
