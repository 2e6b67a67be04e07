"""Graph launches of which the trace holds nothing but the call, or not all nodes: when the device was probably busy
with them."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, sorted_times, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes import blocking_copy, sync
from nsysdiag.causes.evidence import CallFacts
from nsysdiag.events.calls import named_like
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import joint, process_of
from nsysdiag.events.operations import Operations
from nsysdiag.events.rows import RowsOf, combinations, first_since, picked
from nsysdiag.gaps.gaps import FLOOR_HIGHEST_NS

_LAUNCH = re.compile(r"(cuda|cu)GraphLaunch")
_ASYNC = re.compile(r".*Async.*")
_FOREVER = np.iinfo(np.int64).max // 2
"""Until when a graph may run if nothing follows it, in ns: behind any time of a trace. Half of the largest number, so
that sums with it fit in 64 bits."""


def untraced_graphs(activity: DeviceActivity, facts: CallFacts, launches: IntArray) -> dict[int, Intervals]:
    """For each thread (globalTid) the spans of its untraced graph `launches`, a set.

    ```
    thread  [cudaGraphLaunch]            [launch B]   [sync            ]
    device                                     [==B==)
    span    |---------------------------------|  to the start of the next launched operation, or the end of the first
                                                 blocking call begun after it, whichever is earlier
    ```
    """
    calls = activity.api_calls.rows
    if len(launches) == 0:
        return {}
    until = _horizons(activity, facts, launches)
    of_thread = RowsOf(calls.thread[launches])
    return {
        thread: union(Intervals(calls.start[launches[mine]], until[mine]))
        for thread in of_thread.values()
        for mine in (of_thread[thread],)
    }


def _horizons(activity: DeviceActivity, facts: CallFacts, launches: IntArray) -> IntArray:
    """Until when the graphs of these launches may run, as far as the trace shows what they ran."""
    calls, operations, launch = activity.api_calls.rows, activity.operations, activity.launch
    asked, begin = process_of(calls.thread[launches]), calls.start[launches]
    # The nodes of one graph share a launch: the first of them to run counts. Of nested calls the outer one.
    work = np.flatnonzero(launch >= 0)
    work = work[np.argsort(operations.start[work], kind="stable")]
    blocking = np.flatnonzero(_blocks(activity, facts))
    blocking = blocking[np.argsort(-calls.end[blocking], kind="stable")]
    issued = first_since(operations.process[work], calls.start[launch[work]], asked, begin + 1)
    # A call that waits for an event waits for what was issued before that was recorded.
    recorded, called = activity.synchronized_streams.until[blocking], calls.start[blocking]
    issued_before = np.where(recorded >= 0, np.minimum(recorded, called), called)
    waited = first_since(process_of(calls.thread[blocking]), issued_before, asked, begin)
    until = np.append(operations.start[work], _FOREVER)[issued], np.append(calls.end[blocking], _FOREVER)[waited]
    return np.minimum(*until)


class PartialReplays(Struct, frozen=True):
    """Graph launches that lack nodes which other launches of the same graph have. `calls` are their rows, `spans` by
    device the set of time in which missing nodes may have run. Of `nodes` in all so many are `lost`. `launches` counts
    all launches recorded node by node."""

    calls: IntArray
    spans: dict[int, Intervals]
    launches: int
    lost: int
    nodes: int

    @classmethod
    def none(cls) -> PartialReplays:
        """For a trace that lacks none."""
        return cls(np.empty(0, dtype=np.int64), {}, 0, 0, 0)


def partial_replays(activity: DeviceActivity, facts: CallFacts) -> PartialReplays:
    """The time in which missing nodes may have run.

    A node belongs to one graph, so launches with a common node are of the same graph. A launch with all of its nodes
    shows their order.

    ```
    all of them     [n1)[n2)..[n3)[n4)[n5)
    some            [n1)[n2)......[n4)          [sync ]
    may have run            |-----|  |----------------|   n3 and n5; between n1 and n2 nothing is missing
    ```

    A graph that was launched once may lack nodes as well, where others do: in pauses that are longer than those
    between queued operations.
    """
    rows = np.flatnonzero((activity.operations.graph_node > 0) & (activity.launch >= 0))
    if len(rows) == 0:
        return PartialReplays.none()
    operations = activity.operations
    nodes = RecordedNodes.of(operations.process[rows], operations.graph_node[rows], activity.launch[rows])
    partial = np.flatnonzero(nodes.missing > 0)
    if len(partial) == 0:
        return PartialReplays.none()
    found = _Replays.in_order(nodes, operations, rows)
    until = _horizons(activity, facts, found.call[partial])
    spans, launch = found.unseen(activity, partial, until)
    pauses, once = found.long_pauses(activity)
    spans, launch = Intervals.concatenate([spans, pauses]), np.concatenate((launch, once))
    # The last launch may be cut by the end of the trace: then nothing is missing before that.
    inside = np.minimum(spans.end, operations.end.max()) > spans.start
    spans, launch = spans[inside], launch[inside]
    graph, partial = found.graph[launch], np.intersect1d(launch, partial)
    by_device = {
        number: union(spans[np.isin(graph, found.graph[found.launch[activity.device[rows] == number]])])
        for number in distinct_values(activity.device[rows]).tolist()
    }
    recorded, lost = int(found.recorded.sum()), int(found.missing[partial].sum())
    return PartialReplays(found.call[partial], by_device, len(found.call), lost, recorded + lost)


class RecordedNodes(Struct, frozen=True):
    """Graph launches recorded node by node. By launch: `call` is its row, `graph` a number of its graph, `recorded` how
    many different nodes it has. `missing` is how many it lacks that other launches of its graph have. For each of the
    operations: its `launch`, and the number of its `node`. `of_node` is the graph of each node, `pairs` the launches
    and nodes that occur together, as joint numbers."""

    call: IntArray
    graph: IntArray
    recorded: IntArray
    missing: IntArray
    launch: IntArray
    node: IntArray
    of_node: IntArray
    pairs: IntArray

    @classmethod
    def of(cls, process: IntArray, graph_node: IntArray, launched: IntArray) -> RecordedNodes:
        """Of operations that are nodes of graphs; `launched` are the rows of the calls that launched them."""
        call, launch = distinct(launched)
        node, (nodes, _) = combinations(process, graph_node)
        graph, of_node = _graphs(launch, node, len(call), len(nodes))
        pairs = distinct_values(joint(launch, node, len(nodes)))
        of_pair = launch if len(pairs) == len(launch) else pairs // len(nodes)
        recorded = np.bincount(of_pair, minlength=len(call))
        missing = np.bincount(of_node, minlength=len(call))[graph] - recorded
        return cls(call, graph, recorded, missing, launch, node, of_node, pairs)


class _Replays(RecordedNodes, frozen=True):
    """Also for each of the operations: its row in `rows`, and its `place` in the order of a launch with all nodes, -1
    if there is none; and by launch the place of its `last` node."""

    rows: IntArray
    place: IntArray
    last: IntArray

    @classmethod
    def in_order(cls, found: RecordedNodes, operations: Operations, rows: IntArray) -> _Replays:
        """Of these operations, which are the nodes `found`."""
        graph, missing, launch, node = found.graph, found.missing, found.launch, found.node
        place = np.full(len(found.of_node), -1, dtype=np.int64)
        whole = np.unique(graph[missing == 0], return_index=True)[1]
        shown = np.isin(launch, np.flatnonzero(missing == 0)[whole])
        order = np.lexsort((operations.start[rows[shown]], launch[shown]))
        first = np.flatnonzero(np.append(True, np.diff(launch[shown][order]) != 0)[: len(order)])
        length = np.diff(np.append(first, len(order)))
        place[node[shown][order]] = np.arange(len(order)) - np.repeat(first, length)
        last = np.full(len(found.call), -1, dtype=np.int64)
        last[graph[launch[shown][order][first]]] = length - 1
        return cls(**asdict(found), rows=rows, place=place[node], last=last[graph])

    def unseen(self, activity: DeviceActivity, partial: IntArray, until: IntArray) -> tuple[Intervals, IntArray]:
        """Where nodes of the launches `partial` may have run, and of which of them; `until` is when they have to have
        ended."""
        operations, number = activity.operations, np.full(len(self.call), -1, dtype=np.int64)
        number[partial] = np.arange(len(partial))
        mine = np.flatnonzero(number[self.launch] >= 0)
        mine = mine[np.lexsort((operations.start[self.rows[mine]], self.launch[mine]))]
        launch, place, start = self.launch[mine], self.place[mine], operations.start[self.rows[mine]]
        ended = operations.end[self.rows[mine]]
        begins, ends = np.append(True, np.diff(launch) != 0), np.append(np.diff(launch) != 0, True)
        called = activity.api_calls.rows.start[self.call[launch]]
        before = np.where(begins, called, np.append(0, start[:-1]))
        gap_free = np.where(begins, place == 0, place == np.append(-2, place[:-1]) + 1) & (place >= 0)
        behind = ends & ((place != self.last[launch]) | (place < 0))
        spans = Intervals(
            np.append(before[~gap_free], ended[behind]),
            np.append(start[~gap_free], np.maximum(until[number[launch[behind]]], ended[behind])),
        )
        return spans, np.append(launch[~gap_free], launch[behind])

    def long_pauses(self, activity: DeviceActivity) -> tuple[Intervals, IntArray]:
        """The pauses between nodes of graphs that were launched once that are longer than the device needs between two
        operations, and the launch of each."""
        once = np.flatnonzero(np.bincount(self.graph, minlength=len(self.call))[self.graph][self.launch] == 1)
        operations = activity.operations
        once = once[np.lexsort((operations.start[self.rows[once]], self.launch[once]))]
        launch, start, end = self.launch[once], operations.start[self.rows[once]], operations.end[self.rows[once]]
        within = np.flatnonzero(launch[1:] == launch[:-1])
        pauses = Intervals(end[within], np.maximum(start[within + 1], end[within]))
        long = pauses.end - pauses.start > FLOOR_HIGHEST_NS
        return pauses[long], launch[within[long]]


def _graphs(launch: IntArray, node: IntArray, launches: int, nodes: int) -> tuple[IntArray, IntArray]:
    """A number for the graph of each launch and of each node: launches with a common node have the same one, that of
    the first of them."""
    of_row = launch
    while True:
        of_node = least_of_each(node, of_row, nodes)
        least = of_node.take(node)
        graph = least_of_each(launch, least, launches)
        of_row = graph.take(launch)
        if np.array_equal(of_row, least):
            return graph, of_node


def untraced_launches(activity: DeviceActivity) -> IntArray:
    """The rows of successful graph launches, outermost calls only, of which the trace holds no operation."""
    calls = activity.api_calls.rows
    launches = activity.api_calls.called(_LAUNCH)
    launches = launches[calls.returned[launches] == 0]
    if len(launches):
        launches = launches[is_outermost(activity, launches)]
        launches = launches[~has_operations(activity, launches)]
    return launches


def untraced_on(device: DeviceTimeline, activity: DeviceActivity, spans: dict[int, Intervals]) -> Intervals:
    """The untraced time of `device`, a set: graphs of its processes, launched by threads that launched other work on
    it, or no other work at all."""
    return union(*(spans[thread] for thread in _feeding(device, activity, list(spans))))


def untraced_launches_on(device: DeviceTimeline, activity: DeviceActivity, launches: IntArray) -> IntArray:
    """When the untraced graph `launches` that concern `device` begin, in ns, ascending."""
    calls = activity.api_calls.rows.take(launches)
    threads = _feeding(device, activity, distinct_values(calls.thread).tolist())
    return sorted_times(calls.start[np.isin(calls.thread, threads)])


def _feeding(device: DeviceTimeline, activity: DeviceActivity, threads: list[int]) -> list[int]:
    if not threads:
        return []
    calls = activity.api_calls.rows
    processes = set(distinct_values(device.operations.process).tolist())
    here, anywhere = (
        set(distinct_values(calls.thread[rows[rows >= 0]]).tolist()) for rows in (device.launch, activity.launch)
    )
    return [
        thread for thread in threads if process_of(thread) in processes and (thread in here or thread not in anywhere)
    ]


def has_operations(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """True for launches whose correlation id has kernels or a graph row."""
    launched = np.zeros(len(activity.api_calls.rows), dtype=np.bool_)
    launched[activity.launch[activity.launch >= 0]] = True
    found = launched[launches]
    # Of two calls of one id only one is known to have launched something.
    rest = np.flatnonzero(~found)
    found[rest] = _shares_an_id(activity, launches[rest])
    return found


def _shares_an_id(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """True for launches with the correlation id of any operation of their process."""
    if len(launches) == 0:
        return np.zeros(0, dtype=np.bool_)
    calls, operations = activity.api_calls.rows, activity.operations
    process = np.concatenate((operations.process, process_of(calls.thread[launches])))
    key, _ = combinations(process, np.concatenate((operations.correlation, calls.correlation[launches])))
    return np.isin(key[len(operations) :], key[: len(operations)])


def is_outermost(activity: DeviceActivity, launches: IntArray) -> BoolArray:
    """Runtime and driver rows of one launch count once."""
    calls, chosen = activity.api_calls.rows, picked(launches)
    # By id: of calls at the very same time the first counts, whatever the order of the rows.
    id = taken(calls.correlation, chosen)
    order = slice(None) if ascending(id) else np.argsort(id, kind="stable")
    start, end, thread = (taken(taken(each, chosen), order) for each in (calls.start, calls.end, calls.thread_place))
    result = np.zeros(len(launches), dtype=np.bool_)
    result[order] = outermost(Intervals(start, end), thread)
    return result


def _blocks(activity: DeviceActivity, facts: CallFacts) -> BoolArray:
    """Calls after which everything issued before is done: synchronization and blocking copies."""
    calls, names = activity.api_calls.rows, activity.api_calls.names
    copies, asynchronous = named_like(names, blocking_copy.COPIES), named_like(names, _ASYNC)
    waits = named_like(names, sync.CALLS) | (copies & ~asynchronous)
    return waits[calls.name] | (copies[calls.name] & facts.pageable)
