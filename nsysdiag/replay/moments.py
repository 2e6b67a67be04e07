"""The moments of a replay in order, and the graph of what they wait for."""

from __future__ import annotations

from enum import IntEnum, unique
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, places_among
from nsysdiag.causes import HOST_CODE, PLACE
from nsysdiag.events.calls import CallRows
from nsysdiag.events.rows import Rows
from nsysdiag.replay.device_waits import NEVER, Behind, DeviceWaits, DeviceWaitTable
from nsysdiag.replay.meetings import Meetings, MpiCalls
from nsysdiag.replay.orders import NONE
from nsysdiag.replay.pacing import Timed
from nsysdiag.replay.wakes import Wakes
from nsysdiag.replay.work import Work, keyed

DEVICE = 0
"""In place of a thread: the moment is an operation's."""


class What(IntEnum):
    """What a moment is; of those at the same time the lower comes first."""

    WAKE = 0  # a thread wakes another
    OPERATION = 1  # an operation starts
    FINISHED = 2  # all that a wait of a thread is for, besides its target, has ended
    RETURN = 3  # a wait of a thread ends
    LAUNCH = 4  # a call that launches begins
    ARRIVAL = 5  # a thread comes to a meeting
    MEETING = 6  # the last rank has come to a collective
    BORDER = 7  # the replayed window begins or ends for a thread


class Moments(Rows, frozen=True):
    """Moments of threads (globalTid, or DEVICE), in ns. One that ends a wait has the wait's `begin`, the time at which
    it was `released`, and its `cause`, an index into the registry; for all others these are its own time, NEVER and
    -1."""

    time: IntArray
    what: IntArray
    thread: IntArray
    begin: IntArray
    released: IntArray
    cause: IntArray

    def lag(self, place: IntArray) -> IntArray:
        """For moments that end waits, what of each is left once it was released, or began, in ns."""
        row = place - 1
        return self.time[row] - np.maximum(self.begin[row], self.released[row])

    @classmethod
    def points(cls, time: IntArray, what: What, thread: IntArray | int) -> Moments:
        """Moments that end no wait, of one thread or of many."""
        what_of, owner, never, none = (np.full(len(time), each) for each in (what, thread, NEVER, -1))
        return cls(time, what_of, owner, time, never, none)

    @classmethod
    def returns(cls, waits: DeviceWaits | Wakes | MpiCalls, released: IntArray, cause: IntArray) -> Moments:
        """The ends of waits."""
        return cls(waits.end, np.full(len(waits), What.RETURN), waits.thread, waits.begin, released, cause)


class ThreadActions(Struct, frozen=True):
    """What the threads of a stretch did that the replay moves: the rows of the calls that launched its operations
    (ascending); waits for devices, with all that they are for, and full queues; the host `functions` that hold these.
    What they `asked` devices for was done at once.
    Also waits for other threads with their cause, and MPI calls in which ranks wait for each other. Waits that may end
    at a time of their own are `timed`."""

    launches: IntArray
    waited: DeviceWaitTable
    full: DeviceWaits
    woken: Wakes
    woken_cause: IntArray
    mpi: MpiCalls
    timed: Timed
    functions: Behind
    asked: DeviceWaits

    @property
    def held(self) -> DeviceWaits:
        """The waits for devices."""
        return self.waited.held

    def released(self, work: Work) -> IntArray:
        """When what each wait for a device is for had ended, in ns: its target, and host functions behind that."""
        ended = work.end[self.held.target]
        ended[self.functions.row] = np.maximum(ended[self.functions.row], self.functions.end)
        return ended


class MomentPlaces(Struct, frozen=True):
    """The number of each row's moment, from 1 on: 0 is the ORIGIN. `end` is the moment from which the length of each
    operation counts: its start, or its meeting. `mpi_return` is by the calls of MPI that leave a meeting; `finished` by
    waits for devices, NONE if there is none."""

    operation: IntArray
    launch: IntArray
    held: IntArray
    full: IntArray
    woken: IntArray
    wake: IntArray
    meeting: IntArray
    end: IntArray
    mpi_arrival: IntArray
    mpi_meeting: IntArray
    mpi_return: IntArray
    finished: IntArray
    timed: IntArray


def moments_of(
    work: Work, threads: ThreadActions, calls: CallRows, meetings: Meetings, begin: int | None = None
) -> tuple[Moments, MomentPlaces]:
    """All moments in order, and where each row's is. If a window is replayed, what threads did from its `begin` on,
    in ns, is in the replay, too."""
    held, full, woken, mpi = threads.held, threads.full, threads.woken, threads.mpi
    _, first = np.unique(mpi.meeting, return_index=True)
    left = mpi.take(mpi.leaves)
    finished = threads.waited.ended(work)
    in_order = threads.waited.in_order
    some = in_order[finished[in_order] != NEVER]
    parts = {
        "operation": Moments.points(work.start, What.OPERATION, DEVICE),
        "launch": Moments.points(calls.start[threads.launches], What.LAUNCH, calls.thread[threads.launches]),
        "held": Moments.returns(held, threads.released(work), held.cause),
        "full": Moments.returns(full, work.start[full.target], full.cause),
        "woken": Moments.returns(woken, woken.at, threads.woken_cause),
        "wake": Moments.points(_behind_own_waits(threads), What.WAKE, woken.waker),
        "meeting": Moments.points(meetings.time, What.MEETING, DEVICE),
        "mpi_arrival": Moments.points(mpi.begin, What.ARRIVAL, mpi.thread),
        "mpi_meeting": Moments.points(mpi.came[first], What.MEETING, DEVICE),
        "mpi_return": Moments.returns(left, left.came, np.full(len(left), PLACE[HOST_CODE])),
        "finished": Moments.points(finished[some], What.FINISHED, DEVICE),
        "timed": Moments.points(threads.timed.end, What.RETURN, threads.timed.thread),
    }
    every = Moments.concatenate([*parts.values(), _borders(threads, calls, begin)])
    order = np.lexsort((every.thread, every.what, every.time))
    place = np.empty(len(every), dtype=np.int64)
    place[order] = np.arange(1, len(every) + 1)
    at = dict(zip(parts, np.split(place, np.cumsum([len(part) for part in parts.values()])), strict=False))
    of_waits = np.full(len(held), NONE)
    of_waits[some] = at["finished"]
    end = np.where(meetings.of >= 0, np.append(at["meeting"], 0)[meetings.of], at["operation"])
    return every.take(order), MomentPlaces(**{**at, "finished": of_waits, "end": end})


def _behind_own_waits(threads: ThreadActions) -> IntArray:
    """When each thread is woken, in ns: by a thread that had a wait of its own until that very time, 1 ns later."""
    woken, own = threads.woken, (threads.held, threads.full, threads.woken)
    asked, *ended = keyed((woken.waker, woken.at), *((each.thread, each.end) for each in own))
    return np.minimum(woken.at + np.isin(asked, np.concatenate(ended)), woken.end)


def _borders(threads: ThreadActions, calls: CallRows, begin: int | None) -> Moments:
    """When each launching thread made its first call of all, at or after the `begin` of the window, in ns: from then on
    it is known to be there. And when its last launch returned. None without a window."""
    launching = distinct_values(calls.thread[threads.launches])
    if begin is None or len(launching) == 0:
        return Moments.empty()
    place = places_among(launching, calls.thread)
    mine = np.flatnonzero(place >= 0)
    first = least_of_each(place[mine], calls.start[mine], len(launching))
    last = np.zeros(len(launching), dtype=np.int64)
    np.maximum.at(last, place[threads.launches], calls.end[threads.launches])
    # A call that launches is a moment of its own.
    earlier = ~np.isin(first, calls.start[threads.launches])
    time = np.concatenate((np.maximum(first, begin)[earlier], last))
    return Moments.points(time, What.BORDER, np.concatenate((launching[earlier], launching)))


# A graph of dependencies: moments that happen a given time after others, at the latest of what they wait for.
#
# ```
# launch call ----> kernel starts ------> wait ends ----> next launch call
#      \______________________________/      (the later of the two edges into a moment decides)
# ```


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
    SPIN = 20  # host code that may wait for a device, and the operation that it ends with


OF_OPERATIONS = (
    *(EdgeKind.STREAM, EdgeKind.CLASS, EdgeKind.FINISHED, EdgeKind.AHEAD),
    *(EdgeKind.EVENT, EdgeKind.BARRIER, EdgeKind.OBSERVED, EdgeKind.HIDDEN),
)
"""Edges that hold the length of the operation at their row."""
OF_BOUNDS = (EdgeKind.HIDDEN, EdgeKind.POSSIBLE, EdgeKind.SPIN)
"""Edges that hold something back in bounds alone: each moment has others besides them."""
ENDS = (EdgeKind.DEVICE_WAIT, EdgeKind.FINISHED, EdgeKind.RELEASED)
"""Edges into the end of a wait for a device."""

ORIGIN = 0
"""The moment at which the replayed time begins: it never moves."""


NEVER_NS = -(1 << 60)
"""As the length of an edge: it holds nothing back."""


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
    def of(
        cls, source: IntArray | int, target: IntArray, ns: IntArray | int, kind: EdgeKind, row: IntArray | int = -1
    ) -> Edges:
        """Edges of one kind; a number stands for that of all."""
        source, ns, row = (np.full(len(target), each) if isinstance(each, int) else each for each in (source, ns, row))
        return cls(source, target, ns, np.full(len(target), kind, dtype=np.int8), row)


class Slots(Struct, frozen=True):
    """The edges of a graph, at most two into each node; a moment with more has joining nodes before it. A node with one
    edge may follow the node before it in a chain: it is as much later than the head of the chain as its edges say.

    ```
    launches   L ---> L ---> L        a chain: each launch has one edge, and its head is where the thread waited last
               |      |      |
    device     S ---> S ---> S        each start has two edges, and is the head of its own chain
    ```

    `node` is the node of each moment. `edge` (two rows) are the edges of each node, -1 for one to a joining node.
    `heads` are the nodes that are heads, ascending, `place` is that of each node's head among them, and `order` the
    nodes by chain. `source` (two rows) are the nodes that the heads but the first wait for, `before` their places."""

    node: IntArray
    edge: IntArray
    heads: IntArray
    place: IntArray
    order: IntArray
    source: IntArray
    before: list[list[int]]

    @classmethod
    def of(cls, count: int, edges: Edges, rows: IntArray) -> Slots:
        """Those of the edges at these `rows`, which are sorted by target, between so many moments."""
        node, source, edge = _nodes(count, edges.take(rows))
        alone = np.flatnonzero(edge[0] == edge[1])
        after = np.zeros(source.shape[1], dtype=np.int64)
        after[source[0, alone]] = alone  # of several that have one edge from a node the last one follows
        head = np.arange(source.shape[1])
        follows = alone[after[source[0, alone]] == alone]
        head[follows] = source[0, follows]
        while (head != (further := head[head])).any():
            head = further
        heads = np.flatnonzero(head == np.arange(len(head)))
        place = np.searchsorted(heads, head)
        source = source[:, heads[1:]]
        order = np.argsort(place, kind="stable")
        return cls(node, np.append(rows, -1)[edge], heads, place, order, source, place[source].tolist())


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
        """Those of all edges; made when they are first replayed."""
        return Slots.of(len(self.time), self.edges, np.arange(len(self.edges)))

    @cached_property
    def likely_slots(self) -> Slots:
        """The same without the edges that hold something back in bounds alone."""
        return Slots.of(len(self.time), self.edges, np.flatnonzero(~np.isin(self.edges.kind, OF_BOUNDS)))

    @cached_property
    def beyond(self) -> IntArray:
        """By how much each moment is later than its edges asked for, in ns, however little that is."""
        arrives = np.full(len(self.time), NEVER_NS)
        np.maximum.at(arrives, self.edges.target, self.time[self.edges.source] + self.asked)
        arrives[ORIGIN] = self.time[ORIGIN]
        return np.maximum(self.time - arrives, 0)

    def at(self, moments: IntArray, values: Any, other: Any = 0) -> npt.NDArray[Any]:
        """An array with a value for each moment: `values` at these moments, and `other` at all others."""
        found = np.full(len(self.time), other)
        found[moments] = values
        return found

    @cached_property
    def rows(self) -> list[IntArray]:
        """The places of the edges of each kind, ascending."""
        kind = self.edges.kind
        return np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind, minlength=len(EdgeKind)))[:-1])

    def of_rows(self, kind: EdgeKind, rows: BoolArray) -> BoolArray:
        """The edges of a kind whose `row` is marked in `rows`."""
        found, mine = np.zeros(len(self.edges), dtype=np.bool_), self.rows[kind]
        found[mine] = rows[self.edges.row[mine]]
        return found

    @classmethod
    def of(cls, time: IntArray, edges: Edges, little: int = 0) -> Graph:
        """The graph with these edges. `time` does not descend, and edges go forward; a moment without an edge keeps its
        distance from the ORIGIN. An edge longer than the recorded time is shortened to it. A moment up to `little` ns
        later than its edges has no residual: its deciding edges are made longer."""
        alone = np.flatnonzero(np.bincount(edges.target, minlength=len(time)) == 0)
        alone = alone[alone != ORIGIN]
        distance = time[alone] - time[ORIGIN]
        edges = Edges.concatenate([edges, Edges.of(ORIGIN, alone, distance, EdgeKind.START)])
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
    if not len(more):
        return graph
    ns = np.minimum(more.ns, graph.time[more.target] - graph.time[more.source])
    every = Edges.concatenate([graph.edges, replace(more, ns=ns)])
    order = np.argsort(every.target, kind="stable")
    asked = np.concatenate((graph.asked, more.ns))[order]
    return Graph(graph.time, every.take(order), graph.residual, asked)


def _nodes(count: int, edges: Edges) -> tuple[IntArray, IntArray, IntArray]:
    """The node of each moment, and of each node the sources and the edges, in two rows. Edges are sorted by target.

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
    # If there is one edge only, both are the same.
    single = node[each == 1]
    source[1, single], edge[1, single] = source[0, single], edge[0, single]
    source[:, ORIGIN] = ORIGIN
    return node, source, edge


def replay(graph: Graph, ns: IntArray | None = None, residual: IntArray | None = None) -> IntArray:
    """When each moment would be, in ns: with other lengths `ns` of the edges, or other residuals.

    With neither it is when each moment was, exactly. The loop looks at each head once; 100,000 take about 20 ms."""
    ns = graph.edges.ns if ns is None else ns
    residual = graph.residual if residual is None else residual
    likely = all((ns[graph.rows[kind]] == NEVER_NS).all() for kind in OF_BOUNDS)
    slots = graph.likely_slots if likely else graph.slots
    lengths = np.append(ns, 0).take(slots.edge)
    lengths[:, slots.node] += residual
    later = _behind_heads(slots, lengths[0])
    after = (lengths[:, slots.heads[1:]] + later[slots.source]).tolist()
    times = [int(graph.time[ORIGIN])]
    for one, other, after_one, after_other in zip(*slots.before, *after, strict=True):
        first, second = times[one] + after_one, times[other] + after_other
        times.append(first if first > second else second)
    return (np.array(times, dtype=np.int64)[slots.place] + later)[slots.node]


def _behind_heads(slots: Slots, lengths: IntArray) -> IntArray:
    """How much later each node is than the head of its chain, by the `lengths` from the node before it, in ns."""
    lengths, later = lengths.copy(), np.empty_like(lengths)
    lengths[slots.heads] = 0
    later[slots.order] = np.cumsum(lengths[slots.order])
    return later - later[slots.heads][slots.place]
