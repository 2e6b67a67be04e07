"""Work and idle time of a device by the path of ranges that were open on the launching thread.

```
thread    [step        [forward launch] launch    ] [step [forward
device                       |==forward==|==step==|.......|==
paths                        | step      | step   | step  |
                             | › forward |        | › forward: the thread was there when it launched what follows
```

The path of a range is known at its start. An operation belongs to the innermost range that is open when its launch
begins. Idle time belongs to the one that is open at the moment of the gap (see gap_groups.details).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.background import Deferred
from nsysdiag.arrays.claim import CodeTable
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.groups import sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, stretches
from nsysdiag.arrays.nesting import Nesting
from nsysdiag.causes import CAUSES
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline, project
from nsysdiag.events.identity import joint
from nsysdiag.events.nvtx import RangePaths
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import ThreadAxis, picked
from nsysdiag.gap_groups.details import GapContext, gap_moments
from nsysdiag.gap_groups.groups import normal_range, without_ids
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.limits import short_path
from nsysdiag.ranges.facts import RangePath, RangeTree
from nsysdiag.time.table import TimeTable

MOST_PATHS, ALIKE = 200, 100
"""Paths of a report; and how many siblings that differ in a counter alone keep their names."""


class Nodes(Struct, frozen=True):
    """The nodes of a tree: node 0, without a name, holds all, and `levels` are slices of nodes with a parent in one of
    the slices before. `of_range` is the node of each range, -1 for a range that holds no time or is nested too
    deeply; behind them is that of no range."""

    parent: IntArray
    levels: list[slice]
    names: list[str]
    nesting: Nesting
    of_range: IntArray

    def at(self, position: IntArray) -> IntArray:
        """The node of the innermost range that is open at each position; 0 without any."""
        return self.of_range.take(self.nesting.innermost(position))

    def added_up(self, own: IntArray) -> IntArray:
        """What each node and all nodes inside it have: `own` has a row for each node."""
        whole = own.copy()
        for level in reversed(self.levels):
            np.add.at(whole, self.parent[level], whole[level])
        return whole

    def path(self, node: int) -> list[str]:
        """The names from the outermost range to that of a node."""
        found: list[str] = []
        while node:
            found.append(self.names[node])
            node = int(self.parent[node])
        return short_path(found[::-1])


def nodes_of(
    nesting: Nesting, name: IntArray, names: list[str], steps: str = "", paths: RangePaths | None = None
) -> Nodes:
    """The tree of ranges on an axis of threads; `name` is an index into `names`. Ranges that are the `steps` are one
    node whatever their counters. `paths` are those of the ranges, of which there are few; without them, as of ranges
    that do not nest, each range has its own."""
    if paths is None:
        above, name = np.append(0, nesting.parents() + 1), np.append(0, name)
        path, members = np.arange(1, len(name)), [each + 1 for each in nesting.members]
    else:
        path, above, name = paths.code, paths.above, paths.name
        members = [np.arange(*each) for each in paths.levels]
    used, code = distinct(name[1:])
    code = np.append(0, code)
    texts, normal_texts = CodeTable[str](), CodeTable[str]()
    exact = texts.codes(without_ids(names[each]) for each in used.tolist())[code]
    normal = normal_texts.codes(normal_range(names[each]) for each in used.tolist())[code]
    exact_names, normal_names = list(texts.known), list(normal_texts.known)
    always = np.array([each == steps for each in normal_names], dtype=np.bool_)
    width, exact_width = len(normal_names), len(exact_names) + 1

    def children(rows: IntArray, above: IntArray) -> tuple[IntArray, list[str], IntArray]:
        """New nodes for ranges in the nodes `above`: the parent and the name of each, and that of each row."""
        kinds, kind = distinct(joint(above, normal[rows], width))
        each = distinct(joint(kind, exact[rows], exact_width))[0] // exact_width
        many = (np.bincount(each, minlength=len(kinds)) > ALIKE) | always[kinds % width]
        label = np.where(many[kind], exact_width - 1, exact[rows])
        keys, of_row = distinct(joint(kind, label, exact_width))
        of_kind, shown = kinds[keys // exact_width], (keys % exact_width).tolist()
        found = [
            normal_names[other] if each == exact_width - 1 else exact_names[each]
            for other, each in zip((of_kind % width).tolist(), shown, strict=True)
        ]
        return of_kind // width, found, of_row

    timed = nesting.intervals.end > nesting.intervals.start
    held, node = np.zeros(len(above), dtype=np.bool_), np.full(len(above), -1, dtype=np.int32)
    held[path[timed]] = True
    node[0] = 0
    parents, labels = [np.array([-1])], [""]
    levels = []
    for each in members:
        rows = each[held[each]]
        parent, found, of_row = children(rows, node[above[rows]])
        node[rows] = len(labels) + of_row
        parents.append(parent)
        levels.append(slice(len(labels), len(labels) + len(found)))
        labels += found
    of_range = np.append(np.where(timed, node[path], np.int32(-1)), np.int32(0))
    return Nodes(np.concatenate(parents), levels, labels, nesting, of_range)


def own_spans(device: DeviceTimeline, split: WindowSplit) -> Iterator[tuple[IntArray, Intervals, Intervals]]:
    """The rows of operations by state, the time of each that none before it has, and the time in which that counts. Of
    several at once one counts: computing before communication before copies, and of these the one that started first.

    ```
    compute    |==A======|            A
                   |==B======|          the rest of B
    copy           |==C===========|         the rest of C
    ```
    """
    operations = device.operations
    computes = (operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)
    state = np.where(device.communication, np.int8(1), np.where(computes, np.int8(0), np.int8(2)))
    # What computes counts all through the window.
    for at, part in enumerate((split.window, *split.parts[1:])):
        rows = np.flatnonzero(state == at).astype(np.int32)
        start, end = (taken(each, picked(rows)) for each in (operations.start, operations.end))
        begin = np.full(len(rows), np.iinfo(np.int64).min)
        np.maximum.accumulate(end[:-1], out=begin[1:])
        np.maximum(start, begin, out=begin)
        yield rows, Intervals(begin, end), part


def own_work_of(device: DeviceTimeline, split: WindowSplit) -> IntArray:
    """The busy time of each operation in the window; of several at once one counts."""
    ns = np.zeros(len(device.operations), dtype=np.int64)
    for rows, spans, part in own_spans(device, split):
        ns[rows] = coverage(part, spans)
    return ns


def range_tree(
    calls: CallRows,
    gaps: GapContext,
    time: TimeTable,
    split: WindowSplit,
    inside: BoolArray,
    steps: str = "",
    known: Deferred[tuple[IntArray, Intervals]] | None = None,
) -> RangeTree | None:
    """The tree of a device; None if its threads have no ranges. `gaps` has the slices of `time`, `inside` marks the
    operations of the window, and `steps` is the name of the ranges that are its steps. `known` are the rows of all
    ranges with their time on the device, by all operations that run; it is used if these are all there are."""
    device, placed = gaps.device, gaps.ranges
    if len(placed.row) == 0:
        return None
    nodes = nodes_of(placed.nesting, placed.name, placed.ranges.names, steps, placed.paths)
    count = len(nodes.names)
    every = len(placed.row) == len(placed.ranges.rows) and bool(inside.all() and device.running.all())
    if known is not None and every:
        instance, projected = known.result()
    else:
        instance, projected = project(device, calls, placed.ranges.rows.take(placed.row), inside)
    node, length = nodes.of_range[instance], projected.end - projected.start
    node, length = node[node >= 0], length[node >= 0]
    launched = _launched_in(nodes, device, calls, gaps.axis)
    operations = nodes.added_up(np.bincount(launched[inside], minlength=count))
    own_work, (own_idle, causes) = sum_of_each(launched, own_work_of(device, split), count), _idle(nodes, gaps, time)
    work, idle = nodes.added_up(own_work), nodes.added_up(own_idle)
    whole = work + idle.sum(axis=1)
    held = np.flatnonzero((whole > 0) | (operations > 0))
    instances, projected_ns = np.bincount(node, minlength=count), sum_of_each(node, length, count)
    rows = [
        RangePath(
            path=nodes.path(each),
            instances=int(instances[each]),
            projected_ns=int(projected_ns[each]),
            operations=int(operations[each]),
            work_ns=int(work[each]),
            own_work_ns=int(own_work[each]),
            own_idle_ns=int(own_idle[each].sum()),
            idle={name: ns for name, ns in zip(causes, idle[each].tolist(), strict=True) if ns},
        )
        for each in _in_order(nodes, held[np.lexsort((held, -whole[held]))][:MOST_PATHS].tolist())
    ]
    return RangeTree(rows=rows, count=len(held))


def _in_order(nodes: Nodes, chosen: list[int]) -> list[int]:
    """The nodes with each before those inside it. In `chosen` none is before its parent: it has no more time, and a
    higher number."""
    inside: dict[int, list[int]] = {}
    for node in chosen:
        inside.setdefault(int(nodes.parent[node]), []).append(node)
    ordered, left = [], inside.get(-1, [])[::-1]
    while left:
        ordered.append(left.pop())
        left += inside.get(ordered[-1], [])[::-1]
    return ordered


def _idle(nodes: Nodes, gaps: GapContext, time: TimeTable) -> tuple[IntArray, list[str]]:
    """The idle time of each node alone, a row for each, by cause, and the causes of the columns."""
    of_gap, present = np.empty(len(gaps.lane), dtype=np.int32), distinct_values(time.own)
    for part in stretches(len(of_gap)):
        of_gap[part] = nodes.at(_positions(gaps.axis, gaps.lane[part], gap_moments(gaps.frame.take(part))))
    idle = np.zeros(len(nodes.names) * len(present), dtype=np.int64)
    for part in stretches(len(time)):
        waits = np.flatnonzero(time.slice[part] >= 0)
        rows, spans = taken(time.slice[part], waits), time.spans[part][waits]
        cause = np.searchsorted(present, taken(time.own, rows))
        node = taken(of_gap, taken(gaps.slices.rows.gap, rows))
        np.add.at(idle, joint(node, cause, len(present)), spans.end - spans.start)
    return idle.reshape(len(nodes.names), -1), [list(CAUSES)[each] for each in present.tolist()]


def _launched_in(nodes: Nodes, device: DeviceTimeline, calls: CallRows, axis: ThreadAxis) -> IntArray:
    """The node of each operation; 0 for those that no call launched."""
    node = np.zeros(len(device.operations), dtype=np.int32)
    for part in stretches(len(node)):
        known = np.flatnonzero(device.launch[part] >= 0)
        call = device.launch[part][known]
        node[part][known] = nodes.at(_positions(axis, calls.lanes_at(axis, call), taken(calls.start, call)))
    return node


def _positions(axis: ThreadAxis, lane: IntArray, moment: IntArray) -> IntArray:
    """The places of moments on an axis, -1 for those of no lane, where no range is."""
    return np.where(lane >= 0, axis.position(np.maximum(lane, 0), moment), -1)
