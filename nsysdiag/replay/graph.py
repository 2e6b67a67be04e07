"""A graph of dependencies: moments that happen a given time after others, at the latest of what they wait for.

```
launch call ----> kernel starts ------> wait ends ----> next launch call
     \\______________________________/      (the later of the two edges into a moment decides)
```
"""

from __future__ import annotations

from enum import IntEnum, unique
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.rows import Rows

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
