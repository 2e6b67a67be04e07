"""What each moment of a replay waits for, as edges of its graph."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.rows import Rows
from nsysdiag.events.streams import previous_on_stream
from nsysdiag.replay.device_waits import DeviceWaitTable
from nsysdiag.replay.graph import ORIGIN, EdgeKind, Edges
from nsysdiag.replay.moments import DEVICE, Meetings, MomentPlaces, Moments, MpiCalls, ThreadActions
from nsysdiag.replay.targets import following
from nsysdiag.replay.work import LATENCY_NS, Before, Pace, Work, class_order, overlapped_order, stream_order


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
    staged = np.maximum(work.start - np.maximum(work.issued, ended) - LATENCY_NS, 0)
    cost[waits] = np.where(ended[waits] <= work.issued[waits], staged[waits], 0)
    return cost


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
