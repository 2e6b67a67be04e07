"""How work reached the device: launches, the delay in the queue, and the API calls of its processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import Groups, group_durations, group_totals, medians
from nsysdiag.arrays.intervals import (
    BoolArray,
    IntArray,
    Intervals,
    ascending,
    contains,
    coverage,
    places_among,
    stretches,
)
from nsysdiag.causes import CAUSES, QUEUE_FULL
from nsysdiag.config.settings import Thresholds
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.identity import joint, pid_of, process_of, tid_of
from nsysdiag.events.operations import Category, Operations
from nsysdiag.events.rows import ThreadAxis, combinations, picked
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gaps.gaps import Gaps, LaunchCase, same_graph_launch
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.kernels.names import operation_names
from nsysdiag.launches.facts import (
    ApiRow,
    Distribution,
    FunctionThread,
    GraphLaunches,
    GraphRow,
    Launch,
    QueueDepth,
    StreamFunctions,
)
from nsysdiag.launches.queue_depth import find_drains, launch_bound_report, outstanding, queue_depth
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.ledger.ledger import Slices
from nsysdiag.ledger.untraced_graphs import PartialReplays
from nsysdiag.record import records

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# CUDA graphs: the host cost of their launches per node, compared with single kernel launches.

MOST, MOST_OUTSIDE = 20, 3
"""Graphs with rows in a report, those with most kernel time; MOST_OUTSIDE: names of kernels outside of graphs. More
make reports larger. Round numbers: nothing depends on them closely."""
MANY_MEDIANS, PAUSE = 20, 0.02
"""A pause between launches is so many times longer than the median interval, and takes at least this share of all."""
_NO_ROWS = GraphLaunches(
    count=0, launches=0, nodes=0, api_ns=0, node_api_ns=0, work_ns=0, between_ns=0, untraced=0, rows=[]
)


class _Launches(Struct, frozen=True):
    """One row per graph launch, sorted by `call`, its row among the API calls. `nodes` is 0 if only the whole graph was
    recorded; `first` is the row of the operation that ran first, `graph` the code of its graph; times in ns."""

    call: IntArray
    nodes: IntArray
    first: IntArray
    graph: IntArray
    executable: IntArray
    api: IntArray
    work: IntArray
    between: IntArray
    between_gaps: IntArray


def graph_launches(
    device: DeviceTimeline,
    calls: CallRows,
    inside: BoolArray,
    gaps: Gaps,
    strings: Strings,
    untraced: int,
    partial: IntArray,
) -> GraphLaunches | None:
    """The graph launches of which an operation is `inside` the window; None if the device has none at all. `partial`
    are the calls of those that lack nodes: what is between their nodes is not known.

    ```
    thread   [cudaGraphLaunch]
    device       [node)..[node)[node)...[node)     work: all nodes; between: the two gaps
    ```
    """
    operations = device.operations
    member = (operations.graph_node > 0) | (operations.category == Category.GRAPH)
    rows = np.flatnonzero(member & inside & (device.launch >= 0)) if member.any() else np.empty(0, dtype=np.int64)
    if len(rows) == 0:
        return msgspec.structs.replace(_NO_ROWS, untraced=untraced) if untraced else None
    found = _launches(device, calls, rows, gaps, partial)
    by_node = found.nodes > 0
    alone = np.flatnonzero(inside & ~member & (operations.category == Category.KERNEL) & (device.launch >= 0))
    name, names = operation_names(device, alone, strings)
    most = group_totals(name, operations.end[alone] - operations.start[alone])
    return GraphLaunches(
        count=int(found.graph.max()) + 1,
        launches=len(found.call),
        nodes=int(found.nodes.sum()),
        api_ns=int(found.api.sum()),
        node_api_ns=int(found.api[by_node].sum()),
        work_ns=int(found.work.sum()),
        between_ns=int(found.between.sum()),
        untraced=untraced,
        partial=int(np.isin(found.call, partial).sum()),
        rows=_rows(device, found, strings),
        outside=len(alone),
        outside_ns=int(most.total.sum()),
        outside_kernels=[names[code] for code in most.code[:MOST_OUTSIDE].tolist()],
    )


def _launches(device: DeviceTimeline, calls: CallRows, rows: IntArray, gaps: Gaps, partial: IntArray) -> _Launches:
    operations = device.operations
    if not ascending(device.launch[rows]):
        rows = rows[np.argsort(device.launch[rows], kind="stable")]  # of one launch still in order of start
    begin = np.flatnonzero(np.append(True, np.diff(device.launch[rows]) != 0))
    first = rows[begin]
    call = device.launch[first]
    node = operations.graph_node[rows]
    duration = operations.end[rows] - operations.start[rows]
    nodes = np.add.reduceat((node > 0).astype(np.int64), begin)
    recorded = np.add.reduceat(np.where(node > 0, duration, 0), begin)
    executable = np.maximum.reduceat(operations.graph[rows], begin)
    lowest = np.minimum.reduceat(np.where(node > 0, node, np.iinfo(node.dtype).max), begin)
    between, between_gaps = _between(device, gaps, call)
    return _Launches(
        call=call,
        nodes=nodes,
        first=first,
        graph=combinations(operations.process[first], executable, np.where(executable < 0, lowest, 0))[0],
        executable=executable,
        api=calls.end[call] - calls.start[call],
        work=np.where(nodes > 0, recorded, np.add.reduceat(duration, begin)),
        between=np.where(np.isin(call, partial), 0, between),
        between_gaps=np.where(np.isin(call, partial), 0, between_gaps),
    )


def _between(device: DeviceTimeline, gaps: Gaps, call: IntArray) -> tuple[IntArray, IntArray]:
    """The idle ns between the nodes of each launch, and the number of such gaps."""
    ns, count = np.zeros((2, len(call)), dtype=np.int64)
    for part in stretches(len(gaps)):
        some = gaps.take(part)
        rows = np.flatnonzero(same_graph_launch(some, device))
        at = places_among(call, device.launch[some.next[rows]])
        rows, at = rows[at >= 0], at[at >= 0]
        np.add.at(ns, at, some.end[rows] - some.start[rows])
        np.add.at(count, at, 1)
    return ns, count


def _rows(device: DeviceTimeline, found: _Launches, strings: Strings) -> list[GraphRow]:
    """One row for each of the graphs with most work."""
    first = np.unique(found.graph, return_index=True)[1]
    launches = np.bincount(found.graph)
    api, work, between, gaps = (
        np.bincount(found.graph, weights=each).astype(np.int64)
        for each in (found.api, found.work, found.between, found.between_gaps)
    )
    nodes, usual_api = (medians(found.graph, each, len(first)) for each in (found.nodes, found.api))
    top = np.lexsort((found.call[first], -work))[:MOST]
    name, names = operation_names(device, found.first[first[top]], strings)
    return records(
        GraphRow,
        name=[names[each] for each in name.tolist()],
        executable=[each if each >= 0 else None for each in found.executable[first[top]].tolist()],
        launches=launches[top],
        nodes=[each or None for each in nodes[top].tolist()],
        api_ns=api[top],
        median_api_ns=usual_api[top],
        work_ns=work[top],
        between_ns=between[top],
        between_gaps=gaps[top],
    )


PERCENTILES = (5, 25, 50, 75, 95, 99)
"""Percentiles of times of launches and kernels in a report: each is a field of Distribution."""
EDGES = np.array([0, *(step * 10**power for power in range(2, 18) for step in (1, 2, 5))], dtype=np.int64)
"""Beginnings of the bins of a histogram, in ns: three to a decade from 100 ns on, and one for all below. Only bins from
the smallest value to the largest are stored."""


def _times(device: DeviceTimeline, calls: CallRows, inside: BoolArray, launched: BoolArray) -> dict[str, Any]:
    """How long kernels and launch calls took, and the times between them, of the operations that are `inside` and
    `launched`."""
    operations, kernel = device.operations, inside & (device.operations.category == Category.KERNEL)
    row, start = _pick(device.launch, launched), _pick(operations.start, launched)
    alone = _pick(kernel & (operations.graph_node <= 0), launched)
    call, alone_call = _distinct(row, len(calls)), _distinct(_pick(row, alone), len(calls))
    return {
        "calls": len(call),
        **_kernel_lengths(operations, kernel),
        **_intervals(taken(calls.start, call)),
        **_delays(calls, row, start, alone),
        "call": distribution(_sorted(taken(calls.end, alone_call) - taken(calls.start, alone_call))),
    }


# Each of these releases its arrays before the next one allocates.


def _kernel_lengths(operations: Operations, kernel: BoolArray) -> dict[str, Any]:
    length = _sorted(_pick(operations.end, kernel) - _pick(operations.start, kernel))
    return {"median_kernel_ns": _median(length), "kernel": distribution(length)}


def _intervals(begin: IntArray) -> dict[str, Any]:
    """From the beginning of each launch to that of the next; a pause is longer than MANY_MEDIANS, and a notable part of
    all."""
    begin = np.sort(begin, kind="stable")
    interval = _sorted(begin[1:] - begin[:-1])
    apart = interval[np.searchsorted(interval, 1) :]
    median = _median(apart)
    longest = max(MANY_MEDIANS * (median or 0), PAUSE * int(interval.sum()))
    in_a_row = int(np.searchsorted(interval, longest, side="right"))
    return {
        "median_interval_ns": median,
        "interval": distribution(interval),
        "in_a_row": in_a_row,
        "in_a_row_ns": int(interval[:in_a_row].sum()),
    }


def _delays(calls: CallRows, row: IntArray, start: IntArray, alone: BoolArray) -> dict[str, Any]:
    """From each call and from its return to the start of its operation; those of graphs are not delays of one call."""
    delay = np.maximum(start - taken(calls.end, row), 0)
    of_calls = distribution(_sorted(delay[alone]))
    delay = _sorted(delay)
    found = {"median_queue_delay_ns": _median(delay), "queue_delay": of_calls}
    row, start = _pick(row, alone), _pick(start, alone)
    np.subtract(start, taken(calls.start, row), out=delay[: len(row)])
    return found | {"to_start": distribution(_sorted(np.maximum(delay[: len(row)], 0)))}


def distribution(ordered: IntArray) -> Distribution | None:
    """Sorted values from 0 up, in ns, as percentiles and a histogram on a logarithmic scale; None without any.
    Percentile p is the smallest value that p % do not exceed, so it occurs."""
    if len(ordered) == 0:
        return None
    at = {f"p{percent}_ns": -(-len(ordered) * percent // 100) - 1 for percent in PERCENTILES}
    first, behind = np.searchsorted(EDGES, ordered[[0, -1]], side="right") - (1, 0)
    edges = EDGES[first:behind]
    counts = np.diff(np.searchsorted(ordered, edges), append=len(ordered))
    return Distribution(
        count=len(ordered),
        total_ns=int(ordered.sum()),
        max_ns=int(ordered[-1]),
        bins=list(zip(edges.tolist(), counts.tolist(), strict=True)),
        **{name: int(ordered[place]) for name, place in at.items()},
    )


def _pick(values: npt.NDArray[Any], chosen: BoolArray) -> npt.NDArray[Any]:
    """The chosen values; without a copy if they follow each other."""
    return values[picked(chosen)]


def _distinct(rows: IntArray, count: int) -> IntArray:
    """The rows of a table of `count` that occur, each once."""
    if np.all(rows[1:] > rows[:-1]):
        return rows
    seen = np.zeros(count, dtype=np.bool_)
    seen[rows] = True
    return np.flatnonzero(seen).astype(np.int32)


def _sorted(values: IntArray) -> IntArray:
    """Sorted once: percentiles, medians and histograms follow from it without looking at each value again. Values that
    32 bits hold are sorted in half the time."""
    narrow = values.astype(np.int32)
    if np.array_equal(narrow, values):
        narrow.sort()
        values[:] = narrow
    else:
        values.sort()
    return values


def _median(ordered: IntArray) -> int | None:
    """The mean of the two middle values if their number is even, rounded down."""
    middle = len(ordered) // 2
    return int(np.mean(ordered[middle - 1 + len(ordered) % 2 : middle + 1])) if len(ordered) else None


def _cause_by_name(api_calls: ApiCalls, slices: Slices) -> dict[str, str]:
    """The cause that calls of each name were given most idle time of, if they were given any."""
    names = {typed.api(name) for name in api_calls.names}
    texts = np.array([text in names for text in slices.texts] + [False], dtype=np.bool_)
    rows = np.flatnonzero(taken(texts, slices.rows.text))
    said = joint(slices.rows.text[rows], slices.rows.cause[rows], len(CAUSES))
    groups = group_totals(said, slices.lengths(rows))
    ids = list(CAUSES)
    found: dict[str, str] = {}
    for code in groups.code.tolist():
        found.setdefault(typed.plain(slices.texts[code // len(CAUSES)]), ids[code % len(CAUSES)])
    return found


def _calls_of(device: DeviceTimeline, calls: CallRows, window: AnalysisWindow) -> CallRows:
    """The calls of the processes that worked on the device, inside the window if it is narrowed."""
    owners = distinct_values(device.operations.process)
    mine = np.isin(process_of(calls.threads), owners)
    if not window.narrowed and mine.all():
        return calls
    inside = contains(window.parts, calls.start) | (not window.narrowed)
    return calls.take(calls.made_by(calls.threads[mine]) & inside)


def durations_of(calls: CallRows) -> Groups:
    """The durations of calls by name."""
    return group_durations(calls.name, calls.end - calls.start)


def _api_rows(
    device: DeviceTimeline,
    api_calls: ApiCalls,
    every: Callable[[], Groups],
    window: AnalysisWindow,
    slices: Slices,
) -> list[ApiRow]:
    causes, calls = _cause_by_name(api_calls, slices), _calls_of(device, api_calls.rows, window)
    groups = every() if calls is api_calls.rows else durations_of(calls)
    names = [api_calls.names[each] for each in groups.code.tolist()]
    return records(ApiRow, name=names, cause=list(map(causes.get, names)), **groups.columns)


# How work reached a device: calls and delays, queue depth and drains, launch-bound phases, graphs.


def launch_report(
    context: GapContext,
    window: AnalysisWindow,
    inside: BoolArray,
    activity: DeviceActivity,
    every: Callable[[], Groups],
    layered: LayeredEvidence,
    untraced: IntArray,
    partial: PartialReplays,
    ahead: QueueDepth | None,
    limits: Thresholds,
) -> Launch:
    """Everything about the launches of one device; `inside` marks its operations inside the window, `ahead` is how far
    the host was, `every` are the durations of all calls by name. `untraced` are the times of launches of graphs without
    any other row. Migrations have no launch and count as neither."""
    device, frame, calls = context.device, context.frame, activity.api_calls.rows
    launched = inside & (device.launch >= 0)
    unseen = int(np.count_nonzero(contains(window.parts, untraced)))
    return Launch(
        launched_ops=int(np.count_nonzero(launched)),
        unlaunched_ops=int(np.count_nonzero(inside & ~launched & ~device.operations.migration)),
        found_device_idle=int(np.isin(frame.case, (LaunchCase.LATE, LaunchCase.ISSUING)).sum()),
        launch_bound=launch_bound_report(context, calls, window.parts, limits),
        api=_api_rows(device, activity.api_calls, every, window, context.slices),
        queue_full_ns=_queue_full_ns(device, activity, context.axis, layered, window.parts),
        queue_depth=ahead,
        graphs=graph_launches(device, calls, inside, frame.gaps, context.strings, unseen, partial.calls),
        functions=_stream_functions(device, activity, window.parts),
        **_times(device, calls, inside, launched),
    )


def _stream_functions(device: DeviceTimeline, activity: DeviceActivity, parts: Intervals) -> StreamFunctions | None:
    """The host functions in the streams of the device, inside the window; None without any."""
    every = activity.host_functions
    mine = every.take(np.isin(every.stream, distinct_values(device.stream_code))) if len(every) else every
    held = coverage(parts, Intervals(mine.start, mine.end))
    mine, held = mine.take(held > 0), held[held > 0]
    if len(mine) == 0:
        return None
    known = np.flatnonzero(mine.ran >= 0)
    threads, thread = np.unique(mine.thread[known], return_inverse=True)
    ran, count = np.bincount(thread, mine.ran[known], len(threads)), np.bincount(thread, minlength=len(threads))
    found = records(FunctionThread, pid=pid_of(threads), tid=tid_of(threads), count=count, ran_ns=ran.astype(np.int64))
    longest = sorted(found, key=lambda row: (-row.ran_ns, row.pid, row.tid))
    return StreamFunctions(count=len(mine), held_ns=int(held.sum()), threads=longest)


def depth_of_queue(
    context: GapContext, layered: LayeredEvidence, activity: DeviceActivity, parts: Intervals, limits: Thresholds
) -> QueueDepth | None:
    """The queue depth over the window, and what drained the queue. Also releases the sorted times."""
    calls = activity.api_calls
    work = outstanding(context.device, calls.rows)
    drains = find_drains(context.frame, work, context.lane, context.axis, layered.before, calls, limits.drain_depth)
    return queue_depth(work, parts, drains)


def _queue_full_ns(
    device: DeviceTimeline, activity: DeviceActivity, axis: ThreadAxis, layered: LayeredEvidence, parts: Intervals
) -> int:
    """The time inside the window in which threads that launch on the device waited for space in a command buffer. The
    trace does not show for which of their devices."""
    spans = [layer.spans for layer in layered.before[QUEUE_FULL] if len(layer)]
    if not spans:
        return 0
    calls = activity.api_calls.rows
    feeding = axis.lane(distinct_values(calls.thread[device.launch[device.launch >= 0]]))
    total = 0
    for each in spans:
        mine = each[np.isin(each.start // axis.stride, feeding)]
        start = axis.time(mine.start)
        total += int(coverage(parts, Intervals(start, start + mine.end - mine.start)).sum())
    return total
