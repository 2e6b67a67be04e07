"""The model of a stretch of a trace: its graph, and what may be changed in it.

```
thread     L-------L----------W(sync)---L
           |       |          ^         |        L: a launch call begins    W: a wait ends
device     S==A==) S====B=====)         S==C==)  S: an operation starts
```
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    contains,
    coverage,
    nearest_before,
    pieces,
    sorted_times,
    union,
)
from nsysdiag.causes import BLOCKED, FALLBACK, PLACE, THREAD_WAIT, places
from nsysdiag.causes.sync import NOT_READY, QUERIES
from nsysdiag.causes.thread_states import BY_SAMPLES
from nsysdiag.causes.thread_waits import SLEEP
from nsysdiag.events.calls import named_like
from nsysdiag.events.collectives import KINDS, SEND_RECEIVE, kind_of
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.identity import process_of
from nsysdiag.events.nvtx import NvtxRanges, RangeRows
from nsysdiag.events.operations import Category, copy_name
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.replay.beside import Beside, StepWork, at_own_pace, step_work, with_most_work
from nsysdiag.replay.device_waits import LAUNCHES, DeviceWaits
from nsysdiag.replay.edges import PlacedWaits, Program
from nsysdiag.replay.meetings import MpiCalls
from nsysdiag.replay.moments import OF_OPERATIONS, EdgeKind, Graph, MomentPlaces, ThreadActions
from nsysdiag.replay.orders import Before, Pace
from nsysdiag.replay.pacing import WAITED_NS, Outlived, Timed
from nsysdiag.replay.spins import Spins
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Class, HostNames, HostTime, Stretch, Work, beside_others, launched_by, on_axis
from nsysdiag.trace.columns import Strings
from nsysdiag.wakeups.levels import MOST_HOPS
from nsysdiag.wakeups.waits import Ends, ends_of

WAITS = places(lambda cause: cause.follows_wakeups)
"""Causes of waits that may be for other threads."""
MOST_UNPAIRED = 0.1
"""Share of the kernels that send or receive: a few may have their peers outside of the replayed time."""


class OperationNames(Struct, frozen=True):
    """The short and the whole name of each operation, copies by kind, as codes into `texts`, and as shown in reports in
    `shown`; NVTX ranges; and the device keys by number. `graphs` marks those that were recorded as a whole, without
    their kernels."""

    short: IntArray
    whole: IntArray
    graphs: BoolArray
    texts: list[str]
    shown: list[str]
    ranges: NvtxRanges
    keys: list[str]

    @classmethod
    def of(cls, work: Work, activity: DeviceActivity, ranges: NvtxRanges, strings: Strings) -> OperationNames:
        """Those of the operations of a stretch."""
        operations = activity.operations.take(work.row)
        copies = operations.category == Category.MEMCPY
        others = [copy_name(kind) for kind in range(int(operations.copy_kind.max(initial=-1)) + 1)]
        ids, code = distinct(np.concatenate((operations.short_name, operations.name)))
        short, whole = np.split(code + len(others), 2)
        short = np.where(copies, operations.copy_kind, short)
        # Exports without whole names have -1 there, which is not a string.
        texts = [*others, *("" if each < 0 else strings.text(each) for each in ids.tolist())]
        return cls(
            short,
            whole,
            operations.category == Category.GRAPH,
            texts,
            [normal_kernel(each) for each in texts],
            ranges,
            [each.key for each in activity.devices],
        )


class Model(Struct, frozen=True, dict=True):
    """The graph of a stretch.

    `pace` is that of the devices. `program` has a row for each PROGRAM edge, and `pieces` its host time, on the axis of
    `host`; `named` are its labels and calls. `cost` is the time of each operation's launch call before the launch is
    issued, `length` the duration of the operation. `first` is when the first operation of each device of the trace
    starts, by the numbers of devices. `cpus` is how many CPUs the trace shows, 0 if unknown. `beside` are the
    threads that the graph does not hold. `explained` marks the operations of which rows say why they started late;
    `paging` is for how long pages moved before each of them, in ns.
    `uploads` are copies from pageable memory, of which those that are `staged` started late; `downloads` are all copies
    to the host. `possible` are waits that the trace does not show, and `spins` host code that may wait for a device.
    For the share `hidden` of the time a device may run graphs whose kernels were not recorded: the largest share of any
    device."""

    stretch: Stretch
    work: Work
    threads: ThreadActions
    places: MomentPlaces
    graph: Graph
    pace: Pace
    program: Program
    pieces: HostTime
    named: HostNames
    host: LayeredEvidence
    cost: IntArray
    length: IntArray
    names: OperationNames
    outlived: Outlived
    first: IntArray
    cpus: int
    beside: Beside
    explained: BoolArray
    paging: IntArray
    uploads: BoolArray
    downloads: BoolArray
    staged: BoolArray
    possible: PlacedWaits
    spins: Spins
    hidden: float

    def on_axis(self, thread: IntArray, start: IntArray, end: IntArray) -> Intervals:
        """Stretches of threads on the axis of `host`; those of other threads are empty."""
        return on_axis(self.host.host.axis, thread, start, end)

    def on_axis_of(self, waits: Wakes | DeviceWaits | MpiCalls | Timed) -> Intervals:
        """The whole of waits on the axis of `host`."""
        return self.on_axis(waits.thread, waits.begin, waits.end)

    @cached_property
    def devices(self) -> list[int]:
        """The numbers of the devices whose work is replayed, ascending."""
        return distinct_values(self.work.device).tolist()

    @cached_property
    def launching(self) -> IntArray:
        """The threads that launched operations, ascending."""
        return distinct_values(self.host.host.api_calls.rows.thread[self.threads.launches])

    @cached_property
    def unpaired(self) -> BoolArray:
        """The kernels that send or receive, if it is not known of many what their peer does."""
        kinds = np.array([kind_of(text) == KINDS.index(SEND_RECEIVE) for text in self.names.texts], dtype=np.bool_)
        short = self.names.short
        named = np.append(kinds, False)[np.where((short >= 0) & (short < len(kinds)), short, -1)]
        sends = (self.work.kind == Class.COMMUNICATION) & named
        alone = sends & (self.places.end == self.places.operation)
        return alone & (alone.sum() > MOST_UNPAIRED * sends.sum())

    @cached_property
    def step_work(self) -> IntArray:
        """The `StepWork` of each operation."""
        thread = self.launched_by
        part = step_work(self.work, thread, self.stretch, self.names.short, self.events)
        part = np.minimum(part, self.others_work)
        return with_most_work(self.work, thread, self.stretch, self.threads.woken, part)

    @cached_property
    def step_threads(self) -> IntArray:
        """The threads that launch work of the steps, sorted; also -1 for work of which that is not known."""
        return distinct_values(self.launched_by[self.step_work == StepWork.OWN])

    @cached_property
    def events(self) -> Before:
        """The operations that wait for an event in another stream, and what they wait for."""
        rows, edges = self.graph.rows[EdgeKind.EVENT], self.graph.edges
        operation = self.graph.at(self.places.operation, np.arange(len(self.work)), -1)
        return Before(edges.row[rows], operation[edges.target[rows]])

    @cached_property
    def others_work(self) -> IntArray:
        """The `StepWork` of what threads launch at a pace of their own, OWN of all else."""
        return at_own_pace(self.work, self.launched_by, self.stretch, self.threads.woken)

    @cached_property
    def launched_by(self) -> IntArray:
        """The thread that launched each operation, -1 if that is not known."""
        return launched_by(self.work, self.host.host.api_calls.rows.thread)

    @cached_property
    def unseen(self) -> IntArray:
        """The host time of each row of `program` that no piece holds, in ns: what is outside the time of `host`."""
        seen = np.bincount(self.pieces.owner, self.pieces.length, len(self.program))
        return self.program.end - self.program.start - seen.astype(np.int64)

    @cached_property
    def nearby(self) -> RangeRows:
        """The ranges that touch a piece of host time or a wait. Also those at the origin of the axis, where `on_axis`
        puts unknown threads."""
        axis, waits, rows = self.host.host.axis, self.threads, self.names.ranges.rows
        spans = [(each.begin, each.end) for each in (waits.woken, waits.held, waits.full)]
        begin = axis.time(self.pieces.start)
        spans.append((begin, begin + self.pieces.end - self.pieces.start))
        # Times outside of the axis are moved to its borders.
        first = min(int(start.min(initial=axis.origin + axis.span)) for start, _ in spans)
        last = max(int(end.max(initial=axis.origin)) for _, end in spans)
        there = (rows.start <= last) & (rows.end >= first)
        return rows.take(there | ((rows.start <= axis.origin) & (rows.end >= axis.origin)))

    def ranges_of(self, codes: list[int], rows: RangeRows) -> Intervals:
        """Those of `rows` whose names have these codes, on the axis of `host`."""
        rows = rows.take(np.isin(rows.name, codes))
        return self.on_axis(rows.thread, rows.start, rows.end)

    def ever(self, chosen: BoolArray) -> int:
        """For how long any thread is in one of the `chosen` pieces of host time, in ns."""
        pieces = self.pieces.take(chosen)
        begin = self.host.host.axis.time(pieces.start)
        return union(Intervals(begin, begin + pieces.length)).total()

    def row_of_piece(self, spans: Intervals) -> IntArray:
        """The row in `spans` (on the axis of `host`, in any order) in which each piece of host time begins: the one
        that starts last, -1 for none."""
        order = np.argsort(spans.start, kind="stable")
        row = np.append(order, -1)[nearest_before(spans.start[order], self.pieces.start)]
        return np.where((row >= 0) & (np.append(spans.end, 0)[row] > self.pieces.start), row, -1)

    @cached_property
    def timed_of_piece(self) -> IntArray:
        """The row in `threads.timed` of the wait that each piece of host time is in, -1 for none."""
        return self.row_of_piece(self.on_axis_of(self.threads.timed))

    def in_calls(self, pattern: re.Pattern[str]) -> BoolArray:
        """Which pieces of host time are in calls whose whole name matches."""
        return self.named.calls_like(pattern)[self.pieces.call]

    @cached_property
    def unresolved(self) -> BoolArray:
        """Which pieces of host time are waits for other threads, of which none is known."""
        ends = np.append(ends_of(self.named.calls), Ends.UNKNOWN)
        # No thread ends a sleep or a read of a file.
        found: BoolArray = np.isin(self.pieces.cause, WAITS) & (ends[self.pieces.call] != Ends.NO_THREAD)
        found |= self.asks_again
        return found | self.without_evidence if self.without_evidence.any() and self._several_work else found

    @cached_property
    def without_evidence(self) -> BoolArray:
        """Which pieces of host time may be waits for anything, as no OS calls of their process were captured, and are
        long enough. They are scheduled out, or nothing is known of them; a sample shows a moment of its period."""
        host, pieces = self.host.host, self.pieces
        found = np.isin(pieces.cause, (PLACE[FALLBACK], PLACE[BLOCKED])) | self.sampled
        untraced: BoolArray = ~host.os_traced[pieces.start // host.axis.stride]
        return found & untraced & (pieces.length >= WAITED_NS)

    @cached_property
    def sampled(self) -> BoolArray:
        """Which pieces of host time are known by CPU samples alone."""
        return np.array([*(label is BY_SAMPLES for label in self.named.labels), False])[self.pieces.label]

    @cached_property
    def _several_work(self) -> bool:
        """Whether a thread may wait for another one, or in other ways than by a call for a device. Several threads have
        CUDA calls or ranges in the replayed time, or one of the driver runs functions for a device; or a thread asks a
        device again, in most steps, which is not done."""
        calls, ranges = self.host.host.api_calls, self.names.ranges.rows
        called, marked = (np.flatnonzero(self.stretch.holds(rows.start)) for rows in (calls.rows, ranges))
        threads = np.union1d(calls.rows.threads_at(called), ranges.thread[marked])
        name, refused = calls.rows.name[called], np.isin(calls.rows.returned[called], NOT_READY)
        functions, asks = (np.append(named_like(calls.names, each), False)[name] for each in (LAUNCHES, QUERIES))
        asked = 2 * np.count_nonzero(asks & refused) >= self.stretch.count
        return len(threads) > 1 or bool(functions.any()) or bool(asked)

    @cached_property
    def asks_again(self) -> BoolArray:
        """Which pieces are sleeps of launching threads, while a thread follows the steps of which no wait is known:
        they may look again and again whether it has made something."""
        pieces, followers = self.pieces, np.array([each.thread for each in self.beside.followers], dtype=np.int64)
        followers = followers[np.isin(process_of(followers), process_of(self.launching))]
        unknown = not bool(np.isin(followers, self.threads.woken.awaited).all())
        mine = np.isin(self.program.thread[pieces.owner], self.launching)
        return (pieces.cause == PLACE[SLEEP.id]) & mine & unknown

    @cached_property
    def unknown_waits(self) -> BoolArray:
        """Which pieces of host time are waits for a thread, of which it is not known what that one is."""
        # A thread that wakes another at the begin of a wait of its own has a piece of that before it.
        return (self.pieces.cause == PLACE[THREAD_WAIT]) & ~self.in_known_waits

    @cached_property
    def returns_of_others(self) -> BoolArray:
        """Which pieces of host time are in a wait, before the moment at which the thread is seen to wake another: it
        did that just before it waited, and the other one took so long to return.

        ```
        thread   [works](posts)[waits ......................
        another  [waits .............|- returns -|[works]
        ```
        """
        return np.isin(self.pieces.cause, WAITS) & self.in_known_waits

    @cached_property
    def in_known_waits(self) -> BoolArray:
        """Which pieces of host time are in a wait of which the waker is known."""
        return coverage(union(self.on_axis_of(self.threads.woken)), self.pieces.spans) > 0

    @cached_property
    def waits_of_others(self) -> BoolArray:
        """Which waits for a device are those of threads that launch no work of the steps, or only copies: what they
        wait for may be for others.

        ```
        trainer  [launch][launch][sync: needless )[launch]
        saver    [copy to the host][sync: the copy is needed )[writes the copy]
        ```
        """
        computes = self.launched_by[(self.step_work == StepWork.OWN) & (self.work.kind == Class.COMPUTE)]
        mine = distinct_values(computes) if len(computes) else self.step_threads
        return ~np.isin(self.threads.held.thread, mine)

    @cached_property
    def waits_before_mpi(self) -> BoolArray:
        """Which waits for a device are followed by a call of MPI before the thread launches anything: the call may send
        what the device made.

        ```
        thread   [launch][copy of the residual to the host)[MPI_Allreduce of it)[launch]
        ```
        """
        before, _ = self._before_mpi
        return before

    @cached_property
    def waits_for_mpi(self) -> BoolArray:
        """Those of `waits_before_mpi` whose call of MPI copies on a device itself: it was given what a device made, and
        needs the wait.

        ```
        thread   [launch][synchronization)[MPI_Sendrecv: [copy from the device]  )[launch]
        ```
        """
        before, launch = self._before_mpi
        starts, mpi = sorted_times(self.launch_spans.start), self.host.host.mpi.spans
        inside = np.append(contains(union(mpi), starts), False)
        return before & inside[launch]

    @cached_property
    def _before_mpi(self) -> tuple[BoolArray, IntArray]:
        """`waits_before_mpi`, and the place of the first launch after each wait among all launches by their start."""
        held, calls = self.threads.held, self.host.host.mpi.spans.start
        end, never = self.on_axis_of(held).end, np.iinfo(np.int64).max
        launches, stride = sorted_times(self.launch_spans.start), self.host.host.axis.stride
        at = np.searchsorted(launches, end)
        call, launch = np.append(calls, never)[np.searchsorted(calls, end)], np.append(launches, never)[at]
        return (call <= launch) & (call // stride == end // stride), at

    @cached_property
    def beside_others(self) -> IntArray:
        """For how long kernels of other processes run on its device during each operation, in ns."""
        return beside_others(self.work, self.launched_by)

    @cached_property
    def launch_spans(self) -> Intervals:
        """The calls that launched operations, on the axis of `host`."""
        calls, rows = self.host.host.api_calls.rows, self.threads.launches
        return self.on_axis(calls.thread[rows], calls.start[rows], calls.end[rows])

    @cached_property
    def normal_ranges(self) -> dict[int, str]:
        """The names without counters of the NVTX ranges in the replayed time, by their codes."""
        ranges, lo, hi = self.names.ranges, int(self.graph.time[0]), int(self.graph.time[-1])
        inside = (ranges.rows.start <= hi) & ((ranges.rows.end >= lo) | (ranges.rows.end < 0))
        codes = distinct_values(ranges.rows.name[inside])
        return {code: normal_range(ranges.names[code]) for code in codes.tolist()}

    @cached_property
    def pieces_in_order(self) -> IntArray:
        """The rows of `pieces` by their owner, and of one owner by their start."""
        return np.lexsort((self.pieces.start, self.pieces.owner))

    @cached_property
    def call_of_piece(self) -> IntArray:
        """The index in `threads.launches` of the call during which each piece of host time ran, -1 for none."""
        return self.row_of_piece(self.launch_spans)

    @cached_property
    def call_of_operation(self) -> IntArray:
        """The index in `threads.launches` of the call that launched each operation, -1 for none."""
        at = np.searchsorted(self.threads.launches, self.work.launch)
        return np.where(self.work.launch >= 0, at, -1)

    @cached_property
    def program_into(self) -> IntArray:
        """The row of the PROGRAM edge into each moment, -1 if there is none."""
        edges = self.graph.edges
        mine = edges.kind == EdgeKind.PROGRAM
        return self.graph.at(edges.target[mine], edges.row[mine], -1)

    @cached_property
    def operation_in(self) -> IntArray:
        """The operation whose length is a part of each edge, -1 for none."""
        edges = self.graph.edges
        ended = self.graph.at(self.places.end, np.arange(len(self.work)), -1)
        found = np.where(np.isin(edges.kind, OF_OPERATIONS), edges.row, -1)
        found = np.where(edges.kind == EdgeKind.FUNCTION, ended[edges.source], found)
        waits = edges.kind == EdgeKind.DEVICE_WAIT
        found[waits] = self.threads.held.target[edges.row[waits]]
        spins = edges.kind == EdgeKind.SPIN
        found[spins] = self.spins.operation[edges.row[spins]]
        return found

    @cached_property
    def operation_at(self) -> IntArray:
        """The operation that starts at each moment, -1 for none."""
        return self.graph.at(self.places.operation, np.arange(len(self.work)), -1)


T = TypeVar("T")


def once(make: Callable[[Model], T]) -> Callable[[Model], T]:
    """A function of a model alone, computed once for each model: the replays of all changes ask for it again."""
    name = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def known(model: Model) -> T:
        made: dict[str, T] = vars(model)
        if name not in made:
            made[name] = make(model)
        return made[name]

    return known


# Who is behind the waits of threads: the threads that ended them, those that these waited for in turn, and when.


def time_behind(model: Model, chosen: BoolArray, followed: BoolArray | None = None) -> Intervals:
    """The time of other threads behind the `chosen` waits, a set on the axis of threads: of the threads that ended
    them, and where these waited meanwhile, of the threads that ended those waits, if they are `followed` (None: all).
    It begins at the last wait of the same thread that they ended: they may work ahead.

    ```
    A   ---[= waits for B =]---------------[========= waits for B =========]---
    B   -------------------]-------------------[== waits for C ==]----------]
                           [...................]                 [..........]   behind A's second wait
    C                                          [.................]              behind A's second wait
    ```
    """
    woken = model.threads.woken
    through = np.arange(len(woken)) if followed is None else np.flatnonzero(followed)
    waits = model.on_axis(woken.thread, woken.begin, woken.at)[through]
    row = np.flatnonzero(chosen)
    begin, end = _since_the_last(woken)[row], woken.at[row]
    found: list[Intervals] = []
    for _hop in range(MOST_HOPS):
        found.append(union(model.on_axis(woken.waker[row], begin, end)))
        part, meanwhile = pieces(found[-1], waits)
        if len(part) == 0:
            break
        row, shift = through[part], woken.begin[through[part]] - waits.start[part]
        begin, end = meanwhile.start + shift, meanwhile.end + shift
    return union(*found)


def _since_the_last(woken: Wakes) -> IntArray:
    """When the waker of each wait ended a wait of the same thread before; if it did not, when the wait begins."""
    order = np.lexsort((woken.at, woken.thread, woken.waker))
    found = woken.begin.copy()
    same = (np.diff(woken.waker[order]) == 0) & (np.diff(woken.thread[order]) == 0)
    found[order[1:][same]] = np.minimum(found[order[1:]], woken.at[order[:-1]])[same]
    return found
