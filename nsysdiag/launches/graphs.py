"""CUDA graphs: the host cost of their launches per node, compared with single kernel launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import medians
from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.gaps.launch_frame import same_graph_launch
from nsysdiag.kernels.names import operation_names
from nsysdiag.report import GraphLaunches, GraphRow

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings

MOST = 20


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
    """The graph launches of which an operation is `inside` the window; None where the device has none at all. `partial`
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
        none = dict.fromkeys(("count", "launches", "nodes", "api_ns", "node_api_ns", "work_ns", "between_ns"), 0)
        return GraphLaunches(**none, untraced=untraced, rows=[]) if untraced else None
    found = _launches(device, calls, rows, gaps, partial)
    by_node = found.nodes > 0
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
    )


def _launches(device: DeviceTimeline, calls: CallRows, rows: IntArray, gaps: Gaps, partial: IntArray) -> _Launches:
    operations = device.operations
    rows = rows[np.argsort(device.launch[rows], kind="stable")]  # of one launch still in order of start
    begin = np.flatnonzero(np.append(True, np.diff(device.launch[rows]) != 0))
    first = rows[begin]
    call = device.launch[first]
    node = operations.graph_node[rows]
    duration = (operations.end - operations.start)[rows]
    nodes = np.add.reduceat((node > 0).astype(np.int64), begin)
    recorded = np.add.reduceat(np.where(node > 0, duration, 0), begin)
    executable = np.maximum.reduceat(operations.graph[rows], begin)
    lowest = np.minimum.reduceat(np.where(node > 0, node, np.iinfo(np.int64).max), begin)
    between, between_gaps = _between(device, gaps, call)
    return _Launches(
        call=call,
        nodes=nodes,
        first=first,
        graph=_codes(operations.process[first], executable, np.where(executable < 0, lowest, 0)),
        executable=executable,
        api=calls.end[call] - calls.start[call],
        work=np.where(nodes > 0, recorded, np.add.reduceat(duration, begin)),
        between=np.where(np.isin(call, partial), 0, between),
        between_gaps=np.where(np.isin(call, partial), 0, between_gaps),
    )


def _codes(*columns: IntArray) -> IntArray:
    """One code for each combination of values."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, number = distinct(column)
        code = distinct(code * len(values) + number)[1]
    return code


def _between(device: DeviceTimeline, gaps: Gaps, call: IntArray) -> tuple[IntArray, IntArray]:
    """The idle ns between the nodes of each launch, and the number of such gaps."""
    rows = np.flatnonzero(same_graph_launch(gaps, device))
    at = np.minimum(np.searchsorted(call, device.launch[gaps.next[rows]]), len(call) - 1)
    known = call[at] == device.launch[gaps.next[rows]]
    rows, at = rows[known], at[known]
    ns = np.bincount(at, weights=(gaps.end - gaps.start)[rows], minlength=len(call)).astype(np.int64)
    return ns, np.bincount(at, minlength=len(call)).astype(np.int64)


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
    executable = found.executable[first]
    return [
        GraphRow(
            name=names[code],
            executable=int(executable[graph]) if executable[graph] >= 0 else None,
            launches=int(launches[graph]),
            nodes=int(nodes[graph]) or None,
            api_ns=int(api[graph]),
            median_api_ns=int(usual_api[graph]),
            work_ns=int(work[graph]),
            between_ns=int(between[graph]),
            between_gaps=int(gaps[graph]),
        )
        for graph, code in zip(top.tolist(), name.tolist(), strict=True)
    ]
