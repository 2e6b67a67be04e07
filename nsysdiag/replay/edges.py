"""What each moment of a replay waits for, as edges of its graph."""

from __future__ import annotations

from enum import IntEnum, unique
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.rows import Rows, previous_on_stream
from nsysdiag.replay.device_waits import DeviceWaitTable
from nsysdiag.replay.moments import DEVICE, Meetings, MomentPlaces, Moments, MpiCalls, ThreadActions
from nsysdiag.replay.targets import following
from nsysdiag.replay.work import LATENCY_NS, Before, Pace, Work, class_order, overlapped_order, stream_order

# A graph of dependencies: moments that happen a given time after others, at the latest of what they wait for.
#
# ```
# launch call ----> kernel starts ------> wait ends ----> next launch call
#      \______________________________/      (the later of the two edges into a moment decides)
# ```

ORIGIN = 0
"""The moment at which the replayed time begins: it never moves."""
NEVER_NS = -(1 << 60)
"""As the length of an edge: it holds nothing back."""


@unique
class EdgeKind(IntEnum):
    """Why a moment waits for another."""

    PROGRAM = 0  # the next thing that a thread does
    LAUNCH = 1  # an operation and the call that launched it
    STREAM = 2  # an operation and the one before it in its stream
    EVENT = 3  # cudaStreamWaitEvent
    BARRIER = 4  # the legacy default stream
    OBSERVED = 5  # the order of operations in which nothing proves a dependency
    DEVICE_WAIT = 6  # a synchronization or blocking copy, and the operation that it waits for
    WAKE = 7  # a wait and the thread that ended it
    SLOT = 8  # a launch call and the full queue that held it
    MEETING = 9  # a collective and the ranks that take part
    START = 10  # what began before the replayed time
    CLASS = 11  # an operation and the one before it in its stream that is of its own kind
    FINISHED = 12  # what a wait for a device is for besides its target, and one of these operations
    RELEASED = 13  # a wait for a device, and all that it is for besides its target
    PASSED = 14  # what such a wait is for besides its target, and the same of the wait before
    PACED = 15  # the end of a wait that has a time of its own
    HIDDEN = 16  # the order of streams that wait for events of which the trace does not say what they are for
    AHEAD = 17  # a wait for a device, and an operation of an earlier step
    FUNCTION = 18  # an operation or a wait, and the host function before it in its stream
    POSSIBLE = 19  # what a thread may have to wait for, though it had come before


class Edges(Rows, frozen=True):
    """Edges from the moment `source` to the moment `target`, which is at least `ns` later; `kind` is one of `EdgeKind`.
    `row` depends on the kind: the operation whose length it is, or an index into a table of host time or of waits; -1
    for none."""

    source: IntArray
    target: IntArray
    ns: IntArray
    kind: IntArray
    row: IntArray

    @classmethod
    def of(cls, source: IntArray, target: IntArray, ns: IntArray, kind: EdgeKind, row: IntArray | None = None) -> Edges:
        """Edges of one kind."""
        about = np.full(len(source), -1) if row is None else row
        return cls(source, target, ns, np.full(len(source), kind, dtype=np.int8), about)


class Slots(Struct, frozen=True):
    """The edges of a graph, at most two into each node; a moment with more has joining nodes before it.

    `node` is the node of each moment. `source` (two rows) are the nodes that each node waits for, `edge` (two rows)
    their edges, -1 for an edge to a joining node."""

    node: IntArray
    source: IntArray
    edge: IntArray


class Graph(Struct, frozen=True, dict=True):
    """Moments in an order in which every edge goes forward; the first is ORIGIN. `time` is the time of each in ns,
    `residual` its delay beyond its edges; `asked` is the length of each edge before it was shortened to the recorded
    time."""

    time: IntArray
    edges: Edges
    residual: IntArray
    asked: IntArray

    @cached_property
    def slots(self) -> Slots:
        """Those of the edges; made when the graph is first replayed."""
        return _slots(len(self.time), self.edges)

    @cached_property
    def beyond(self) -> IntArray:
        """By how much each moment is later than its edges asked for, in ns, however little that is."""
        arrives = np.full(len(self.time), NEVER_NS)
        np.maximum.at(arrives, self.edges.target, self.time[self.edges.source] + self.asked)
        arrives[ORIGIN] = self.time[ORIGIN]
        beyond: IntArray = np.maximum(self.time - arrives, 0)
        return beyond

    @classmethod
    def of(cls, time: IntArray, edges: Edges, little: int = 0) -> Graph:
        """The graph with these edges. `time` does not descend, and edges go forward; a moment without an edge keeps its
        distance from the ORIGIN. An edge longer than the recorded time is shortened to it. A moment up to `little` ns
        later than its edges has no residual: its deciding edges are made longer."""
        alone = np.flatnonzero(np.bincount(edges.target, minlength=len(time)) == 0)
        alone = alone[alone != ORIGIN]
        distance = time[alone] - time[ORIGIN]
        edges = Edges.concatenate([edges, Edges.of(np.full(len(alone), ORIGIN), alone, distance, EdgeKind.START)])
        edges = edges.take(np.argsort(edges.target, kind="stable"))
        slack = time[edges.target] - time[edges.source]
        wanted = edges.ns
        edges = replace(edges, ns=np.minimum(wanted, slack))
        # Every moment but the first has an edge by now, and those of one moment stand together.
        first = np.flatnonzero(np.append(True, edges.target[1:] != edges.target[:-1]))[: len(time) - 1]
        asked = np.maximum.reduceat(time[edges.source] + edges.ns, first) if len(first) else time[:0]
        late = np.append(0, time[1:] - asked)
        # What is a little late came late by the edge that decided: it moves with that one, and holds no other back.
        decided = (time[edges.source] + edges.ns + late[edges.target] == time[edges.target]) & (late[edges.target] > 0)
        decided &= late[edges.target] <= little
        edges = replace(edges, ns=np.where(decided, edges.ns + late[edges.target], edges.ns))
        return cls(time, edges, np.where(late <= little, 0, late), wanted)


def extended(graph: Graph, more: Edges) -> Graph:
    """The graph with these edges in addition, shortened to the recorded time."""
    ns = np.minimum(more.ns, graph.time[more.target] - graph.time[more.source])
    every = Edges.concatenate([graph.edges, replace(more, ns=ns)])
    order = np.argsort(every.target, kind="stable")
    asked = np.concatenate((graph.asked, more.ns))[order]
    return Graph(graph.time, every.take(order), graph.residual, asked)


def _slots(count: int, edges: Edges) -> Slots:
    """Edges are sorted by target.

    ```
    edges into a moment   a b c d
    nodes                 (a b) -> (. c) -> (. d)     the last is the moment itself
    ```
    """
    each = np.bincount(edges.target, minlength=count)
    joining = np.maximum(each - 2, 0)
    node = np.arange(count) + np.cumsum(joining)
    first = np.cumsum(each) - each
    place = np.arange(len(edges)) - first[edges.target]
    base = (node - joining)[edges.target]
    total = count + int(joining.sum())
    # A joining node, and the moment behind it, wait for the node before them.
    source = np.tile(np.maximum(np.arange(total) - 1, 0), (2, 1))
    edge = np.full((2, total), -1)
    at, column = base + np.maximum(place - 1, 0), np.minimum(place, 1)
    source[column, at], edge[column, at] = node[edges.source], np.arange(len(edges))
    # Where there is one edge only, both are the same.
    single = node[each == 1]
    source[1, single], edge[1, single] = source[0, single], edge[0, single]
    source[:, ORIGIN] = ORIGIN
    return Slots(node, source, edge)


def replay(graph: Graph, ns: IntArray | None = None, residual: IntArray | None = None) -> IntArray:
    """When each moment would be, in ns: with other lengths `ns` of the edges, or other residuals.

    With neither it is when each moment was, exactly. The loop looks at each edge once; two million moments take about a
    second."""
    ns = graph.edges.ns if ns is None else ns
    residual = graph.residual if residual is None else residual
    slots = graph.slots
    lengths = np.append(ns, 0)[slots.edge]
    lengths[:, slots.node] += residual
    begin = int(graph.time[ORIGIN])
    times = [begin] * lengths.shape[1]
    columns = (column[1:].tolist() for column in (*slots.source, *lengths))
    for at, (one, other, after_one, after_other) in enumerate(zip(*columns, strict=True), 1):
        first, second = times[one] + after_one, times[other] + after_other
        times[at] = first if first > second else second
    found: IntArray = np.array(times, dtype=np.int64)[slots.node]
    return found


def without(ns: IntArray, dropped: BoolArray) -> IntArray:
    """Lengths with which the edges that are `dropped` hold nothing back."""
    return np.where(dropped, NEVER_NS, ns)


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


def lag_of(moments: Moments, place: IntArray) -> IntArray:
    """For moments that end waits, what of each is left once it was released, or began."""
    row = place - 1
    return moments.time[row] - np.maximum(moments.begin[row], moments.released[row])


def releases(threads: ThreadActions, places: MomentPlaces, moments: Moments, length: IntArray) -> Edges:
    """The ends of waits, and the operations or threads that they are for."""
    held, full = threads.held, threads.full
    row, lag = np.arange(len(held)), lag_of(moments, places.held)
    ended = lag + length[held.target]
    return Edges.concatenate(
        [
            Edges.of(places.end[held.target], places.held, ended, EdgeKind.DEVICE_WAIT, row),
            _of_others(threads.waited, places, lag, length),
            Edges.of(
                places.operation[full.target],
                places.full,
                lag_of(moments, places.full),
                EdgeKind.SLOT,
                np.arange(len(full)),
            ),
            Edges.of(
                places.wake, places.woken, lag_of(moments, places.woken), EdgeKind.WAKE, np.arange(len(places.woken))
            ),
        ]
    )


def own_times(threads: ThreadActions, places: MomentPlaces, time: IntArray, in_order: Edges) -> Edges:
    """Waits that end at a time of their own; where that is not sure, the edge is one of a bound, and has no length. The
    first moment of a thread is where it was without one."""
    row = np.flatnonzero(np.isin(places.timed, in_order.target))
    end = places.timed[row]
    ns = np.where(threads.timed.sure[row] > 0, time[end] - time[ORIGIN], 0)
    return Edges.of(np.full(len(row), ORIGIN), end, ns, EdgeKind.PACED, row)


def _of_others(waited: DeviceWaitTable, places: MomentPlaces, lag: IntArray, length: IntArray) -> Edges:
    """Waits for devices, and what they are for besides their targets.

    ```
    operations    [A) [B    )   [C)
    wait 1      [           )         for B, its target, and A: FINISHED, then RELEASED
    wait 2                   [    )   for C, its target, and what wait 1 was for: PASSED, and B
    ```

    A wait that is not for the whole of its group is for its target's stream.
    """
    finished = waited.finished
    known = places.finished >= 0
    whole = np.flatnonzero(known & waited.whole)
    before, after = following(waited.group, waited.in_order)
    before, after = before[known[before]], after[known[before]]
    ended, at = places.end[finished.operation], places.finished[finished.wait]
    ns = length[finished.operation]
    own = np.flatnonzero(finished.own & ~waited.whole[finished.wait])
    direct, wait = finished.operation[own], finished.wait[own]
    return Edges.concatenate(
        [
            Edges.of(ended, at, ns, EdgeKind.FINISHED, finished.operation),
            Edges.of(ended[own], places.held[wait], ns[own] + lag[wait], EdgeKind.FINISHED, direct),
            Edges.of(places.finished[whole], places.held[whole], lag[whole], EdgeKind.RELEASED, whole),
            Edges.of(
                places.finished[before], places.finished[after], np.zeros(len(before), dtype=np.int64), EdgeKind.PASSED
            ),
        ]
    )


def launch_cost(work: Work, threads: ThreadActions, calls: CallRows, others: Before) -> IntArray:
    """For each operation the time of its call before the launch is issued, in ns: the whole call, but at most until the
    operation starts. A call held by a full queue has the usual length. A call that waits for its own copy stages it
    until the copy starts, or until what the copy waits for has ended: the previous work of the stream, and `others`."""
    own = np.flatnonzero(work.launch >= 0)
    cost = np.zeros(len(work), dtype=np.int64)
    length = calls.end[work.launch[own]] - work.issued[own]
    held = np.isin(work.launch[own], threads.full.call)
    length = np.where(held, int(np.median(length)) if len(length) else 0, length)
    cost[own] = np.minimum(length, work.start[own] - work.issued[own])
    before = previous_on_stream(work.stream)
    ended = np.where(before >= 0, np.append(work.end, 0)[before], 0)
    np.maximum.at(ended, others.after, work.end[others.before])
    waits = np.flatnonzero(np.isin(work.launch, threads.held.call) & (work.launch >= 0))
    until = np.maximum(work.start - np.maximum(work.issued, ended) - LATENCY_NS, 0)
    cost[waits] = np.where(ended[waits] <= work.issued[waits], until[waits], 0)
    return cost


def staged(work: Work, uploads: BoolArray, calls: CallRows, late_ns: IntArray) -> BoolArray:
    """Which of the `uploads` were late by `late_ns` as the driver first staged them: once the stream was empty, and
    until about the start of the copy."""
    found: BoolArray = uploads & (late_ns > 0)
    found &= np.append(calls.end, 0)[work.launch] >= work.start - LATENCY_NS
    return found


def launched(work: Work, threads: ThreadActions, places: MomentPlaces, cost: IntArray, pace: Pace) -> Edges:
    """Operations and the calls that launched them."""
    rows = np.flatnonzero(work.launch >= 0)
    call = places.launch[np.searchsorted(threads.launches, work.launch[rows])]
    ns = cost[rows] + pace.latency[work.device[rows], work.kind[rows]]
    return Edges.of(call, places.operation[rows], ns, EdgeKind.LAUNCH, rows)


def begun_before(work: Work, places: MomentPlaces, begin: int, time: IntArray) -> Edges:
    """Operations that were launched before the replayed time began, the first of their streams: they start when they
    did."""
    first = np.flatnonzero((previous_on_stream(work.stream) < 0) & (work.issued < begin))
    place = places.operation[first]
    return Edges.of(np.full(len(first), ORIGIN), place, time[place] - time[ORIGIN], EdgeKind.START)


def arrivals(places: MomentPlaces, meetings: Meetings, mpi: MpiCalls, moments: Moments) -> Edges:
    """Collectives and the operations of all ranks that take part; meetings in MPI, who comes to them and who leaves.
    Those who come and are not sure have their rows in `mpi`."""
    come, met = places.meeting[meetings.to], places.mpi_meeting[mpi.meeting]
    unsure = np.where(mpi.sure, -1, np.arange(len(mpi)))
    return Edges.concatenate(
        [
            Edges.of(places.operation[meetings.come], come, np.zeros(len(come), np.int64), EdgeKind.MEETING),
            Edges.of(places.mpi_arrival, met, np.zeros(len(mpi), np.int64), EdgeKind.MEETING, unsure),
            Edges.of(met[mpi.leaves], places.mpi_return, lag_of(moments, places.mpi_return), EdgeKind.MEETING),
        ]
    )


def of_devices(
    work: Work, places: MomentPlaces, events: Before, barriers: Before, pace: Pace, length: IntArray
) -> Edges:
    """Operations and what they wait for on their device; `length` counts from the moments `places.end`."""
    order = stream_order(work)
    # Nodes of a graph may overlap in what is recorded as one stream: only their starts are in order.
    apart = work.end[order.before] <= work.start[order.after]
    ended = Before.concatenate([order.take(apart), overlapped_order(work)])
    gap = pace.gap[work.device[ended.after], work.kind[ended.after]]
    # Time between the nodes of one graph is a part of the graph.
    of_graph = (work.launch[ended.after] >= 0) & (work.launch[ended.after] == work.launch[ended.before])
    gap = np.where(of_graph, np.maximum(work.start[ended.after] - work.end[ended.before], 0), gap)
    return Edges.concatenate(
        [
            after_end(length, places, ended, EdgeKind.STREAM, gap),
            _after_start(work, places, order.take(~apart)),
            after_end(length, places, class_order(work), EdgeKind.CLASS),
            after_end(
                length, places, events, EdgeKind.EVENT, pace.switch[work.device[events.after], work.kind[events.after]]
            ),
            after_end(
                length,
                places,
                barriers,
                EdgeKind.BARRIER,
                pace.switch[work.device[barriers.after], work.kind[barriers.after]],
            ),
        ]
    )


def after_end(length: IntArray, places: MomentPlaces, pairs: Before, kind: EdgeKind, gap: IntArray | int = 0) -> Edges:
    """That operations wait for others to end, and the shortest gap."""
    ns = length[pairs.before] + gap
    return Edges.of(places.end[pairs.before], places.operation[pairs.after], ns, kind, pairs.before)


def _after_start(work: Work, places: MomentPlaces, pairs: Before) -> Edges:
    ns = work.start[pairs.after] - work.start[pairs.before]
    return Edges.of(places.operation[pairs.before], places.operation[pairs.after], ns, EdgeKind.STREAM)
