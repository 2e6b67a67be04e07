"""Graphs that are launched again and again, node by node: which launches lack nodes that others have.

```
graph 1     |n1|n2|n3|n4|     |n1|n4|        |n1|n2|n3|n4|        the second launch lacks n2 and n3
happened    |n1|n2|n3|n4|     |n1|n4 n2 n3|  |n1|n2|n3|n4|        a trace may lose nodes; the graph did not
```
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint
from nsysdiag.events.rows import distinct
from nsysdiag.ledger.untraced_graphs import RecordedNodes

MOST_FILLED = 4_000_000
"""Nodes of launches that lack some: of more nothing is filled in, as that takes too much memory."""


class Replays(Struct, frozen=True):
    """The nodes of graphs among the operations of a device. For each of the `rows`: whether it is the `first` of its
    launch, the number of its `graph`, and whether that `lacks` nodes in some launches. `lost` are the missing nodes:
    for each the last operation of its launch, and one that is the same node in another launch."""

    rows: IntArray
    first: BoolArray
    graph: IntArray
    lacks: BoolArray
    lost: tuple[IntArray, IntArray]

    @classmethod
    def of(cls, device: DeviceTimeline) -> Replays:
        """Those of a device, whose operations are in order of time."""
        operations = device.operations
        rows = np.flatnonzero(device.running & (operations.graph_node > 0) & (device.launch >= 0))
        none = np.empty(0, np.int64)
        if not len(rows):
            return cls(rows, np.empty(0, np.bool_), none, np.empty(0, np.bool_), (none, none))
        found = RecordedNodes.of(operations.process[rows], operations.graph_node[rows], device.launch[rows])
        launch, count = found.launch, len(found.of_node)
        first = np.zeros(len(rows), np.bool_)
        first[np.unique(launch, return_index=True)[1]] = True
        lacks = np.isin(found.graph, found.graph[found.missing > 0])
        lost = _lost(found)
        last = np.zeros(len(found.call), np.int64)
        np.maximum.at(last, launch, rows)
        known = np.zeros(count, np.int64)
        known[found.node] = rows
        return cls(rows, first, found.graph[launch], lacks[launch], (last[lost // count], known[lost % count]))

    def called(self, name: IntArray) -> tuple[IntArray, IntArray]:
        """The names of all operations, and the nodes that show no repeat: of a graph that lacks nodes the first one of
        each launch does, whichever that is. It has the name of that of the first launch."""
        begins = np.flatnonzero(self.lacks & self.first)
        if not len(begins):
            return name, begins
        of_graph = name[self.rows[begins[np.unique(self.graph[begins], return_index=True)[1]]]]
        name = name.copy()
        name[self.rows[begins]] = of_graph[distinct(self.graph[begins])[1]]
        return name, self.rows[self.lacks & ~self.first]


def _lost(found: RecordedNodes) -> IntArray:
    """The pairs of launch and node that are missing."""
    partial, of_node = np.flatnonzero(found.missing > 0), found.of_node
    order = np.argsort(of_node, kind="stable")
    first, behind = (np.searchsorted(of_node[order], found.graph[partial], side=side) for side in ("left", "right"))
    size = behind - first
    if int(size.sum()) > MOST_FILLED:
        return np.empty(0, np.int64)
    at = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    every = joint(np.repeat(partial, size), order[np.repeat(first, size) + at], len(of_node))
    return every[~np.isin(every, found.pairs)]


def with_lost(rows: IntArray, replays: Replays) -> tuple[IntArray, IntArray]:
    """The operations `rows`, with the lost nodes at the end of their launches: the place in time of each, and the
    operation that it is like."""
    at, like = replays.lost
    if not len(at):
        return rows, rows
    place, alike = np.append(rows, at), np.append(rows, like)
    order = np.argsort(place, kind="stable")
    return place[order], alike[order]
