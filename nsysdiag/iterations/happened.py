"""What happens in a loop, by name: the operations of a device, what the threads that launch them call, and replays of
graphs."""

from __future__ import annotations

import re
from functools import cached_property, partial
from typing import Any

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import least_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, searched, stretches
from nsysdiag.arrays.matching import matching
from nsysdiag.events.calls import ApiCalls, issue_times
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import joint, once
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category, Operations
from nsysdiag.events.rows import Rows, picked
from nsysdiag.iterations.loop import Called, Loop, loop_of, pauses
from nsysdiag.iterations.named import Kinds
from nsysdiag.ledger.untraced_graphs import RecordedNodes
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.enums import CopyKind

UPDATES = re.compile(
    r"adam|sgd|momentum|multi_?tensor|optimi[sz]er|lamb_|lamb<|rmsprop|adagrad|adafactor|"
    r"apply_?grad|update_?(weight|param)|(weight|param(eter)?)s?_?update",
    re.IGNORECASE,
)
"""Kernels that update the weights of a model."""

ATTENTION = re.compile(r"^(?!.*(bwd|bw_|_bw|backward|grad))(.*flash|.*fmha|.*attention|.*attn|.*sdpa)", re.IGNORECASE)
"""Kernels of a layer's attention, as one runs it forward."""

NETWORKS = re.compile(
    r"flash|fmha|attention|attn|sdpa|softmax|gemm|nvjet|matmul|cutlass|(layer|group|rms|batch)_?norm|RowwiseMoments|"
    r"^ln_|^bn_|conv(?!er)|relu|gelu|silu|swish|dropout|embedding",
    re.IGNORECASE,
)
"""Kernels of the layers of a network."""
WAITS = re.compile(r"Synchronize")
"""CUDA calls that wait for the device."""


class NameKinds(Rows, frozen=True):
    """What the names of a device and its host are; a row for each `code`. `anchor` is the string id of a kernel's name,
    -1 for other names. Kernels include graphs that were recorded as a whole. Calls and ranges are of the `host`. The
    last row stands for anything else, and is none of these."""

    code: IntArray
    anchor: IntArray
    host: BoolArray
    kernel: BoolArray
    upload: BoolArray
    download: BoolArray
    update: BoolArray
    network: BoolArray
    attention: BoolArray
    wait: BoolArray

    @property
    def exchanged(self) -> BoolArray:
        """Copies from and to the host."""
        return self.upload | self.download

    @classmethod
    def of(cls, rows: IntArray, operations: Operations, calls: list[str], ranges: int, strings: Strings) -> NameKinds:
        """Those of operations, of which `rows` has one for each name; then the `calls`, and so many names of ranges."""
        columns, others = (operations.category, operations.copy_kind, operations.name), len(calls) + ranges + 1
        category, copied, anchor = (np.append(each[rows], np.full(others, -1)) for each in columns)
        host = (category < 0) & (np.arange(len(category)) < len(category) - 1)
        anchor[category != Category.KERNEL] = -1
        texts = [*strings.texts(anchor[: len(rows)]), *calls, *[""] * (ranges + 1)]

        return cls(
            code=np.arange(len(anchor)),
            anchor=anchor,
            host=host,
            kernel=np.isin(category, (Category.KERNEL, Category.GRAPH)),
            upload=copied == CopyKind.HOST_TO_DEVICE,
            download=copied == CopyKind.DEVICE_TO_HOST,
            update=matching(UPDATES, texts) & (anchor >= 0),
            network=matching(NETWORKS, texts) & (anchor >= 0),
            attention=matching(ATTENTION, texts) & (anchor >= 0),
            wait=matching(WAITS, texts) & host,
        )


class Happened(Struct, frozen=True, dict=True):
    """What shows levels of a device: its operations in order of time, and the calls and ranges of the threads that
    launch them. Operations have their time on the device. Nodes of graphs that the trace lost are there, and take no
    time. `code` and `host_code` are places in `names`. `operations` are the rows of the operations. Behind these
    columns is what they are made of: the span `whole` of a device, its calls and ranges."""

    start: IntArray
    end: IntArray
    code: IntArray
    host_time: IntArray
    host_code: IntArray
    names: NameKinds
    operations: IntArray
    device: DeviceTimeline
    api: ApiCalls
    ranges: NvtxRanges
    kinds: Kinds
    strings: Strings
    replays: Replays
    whole: Intervals

    @property
    def last(self) -> int:
        """Where the time ends in which loops are looked for, in ns."""
        return int(self.whole.end[-1])

    @property
    def issued_early(self) -> IntArray:
        """The copies from the host whose calls are known. Another stream may run them long before the kernels that
        were launched after them: the order of the calls is that of the program."""
        if not self.names.upload.any():
            return np.empty(0, np.int64)
        early = np.flatnonzero(self.names.upload[self.code])
        return early[self.device.launch[self.operations[early]] >= 0]

    def issued_at(self, places: IntArray | slice) -> IntArray:
        """When the operations at these places were issued, in ns; -1 where that is not known."""
        return issue_times(self.device.launch[self.operations[places]], self.api.rows, -1)

    @cached_property
    def counted(self) -> dict[bool, tuple[tuple[int, bytes], Any]]:
        """The last repeats that were counted with the calls of the host, and without: several rules ask for those of
        one loop."""
        return {}

    def called(self, code: int) -> Called:
        """The repeating item, for a kernel."""
        return Called(anchor=int(self.names.anchor[code]))

    def loop_from(self, called: Called, starts: IntArray) -> Loop:
        """The loop of repeats that take any time, from the first of `starts` to the end: it is left if the device is
        idle for far longer than a repeat takes."""
        until, length = np.maximum.accumulate(self.end), np.diff(starts)
        own_end = until[searched(self.start, np.append(starts[1:], self.last), "left") - 1]
        away = pauses(starts[1:] - own_end[:-1], float(np.median(length)), int(length.sum())) if len(length) else length
        return loop_of(called, starts, away > 0, own_end, self.last)

    @classmethod
    def of(
        cls, device: DeviceTimeline, api: ApiCalls, ranges: NvtxRanges, strings: Strings, whole: Intervals
    ) -> Happened:
        """What happened on a device and on its threads."""
        operations, kinds, replays = device.operations, Kinds.of(ranges), Replays.of(device)
        rows, alike = with_lost(np.flatnonzero(device.running & ~operations.migration).astype(np.int32), replays)
        at = picked(rows)
        start, end = operations.start[at], operations.end[at]
        code = distinct(_keys(device)[picked(alike)])[1].astype(np.int32)
        first = alike[least_of_each(code, np.arange(len(code)), int(code.max(initial=-1)) + 1)]
        host_time, host_code = _on_host(device, api, ranges, kinds, rows)
        return cls(
            start=start,
            end=end if alike is rows else np.where(alike == rows, end, start),
            code=code,
            host_time=host_time,
            host_code=len(first) + host_code,
            names=NameKinds.of(first, operations, api.names, len(kinds.words), strings),
            operations=rows,
            device=device,
            api=api,
            ranges=ranges,
            kinds=kinds,
            strings=strings,
            replays=replays,
            whole=whole,
        )


def _keys(device: DeviceTimeline) -> IntArray:
    """What operations of one name have in common, as small numbers: these need no sort."""
    operations = device.operations
    detail = np.empty(len(operations), dtype=np.int64)
    for part in stretches(len(detail)):
        category = operations.category[part]
        mine = np.where(category == Category.MEMCPY, operations.copy_kind[part], operations.name[part])
        mine = np.where(category == Category.GRAPH, operations.graph[part], mine)
        detail[part] = np.where(category == Category.MEMSET, 0, mine)
    present, code = distinct(detail)
    return joint(operations.category, code, max(len(present), 1))


def _on_host(
    device: DeviceTimeline, api: ApiCalls, ranges: NvtxRanges, kinds: Kinds, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """The calls that launch nothing, and the ranges, of the threads that launch the operations: the time of each, and
    the number of its name; names of ranges follow those of calls."""
    calls, launch = api.rows, device.launch[rows]
    launch = launch[launch >= 0]
    threads = calls.threads_at(launch)
    launched_by = partial(np.isin, test_elements=threads)
    mine = calls.made_by(threads).copy()
    mine[launch] = False
    others = np.flatnonzero(mine)
    if calls.share_ids:  # the driver's row of a launch is inside that of the runtime
        others = others[~_are_among(calls.correlation[others], calls.correlation[launch])]
    named = (
        once(ranges.rows.thread, launched_by) & ~taken(kinds.operator, ranges.rows.name) & ~ranges.rows.communication
    )
    # What is called as often as kernels are launched, such as a query, shows no step.
    called = np.bincount(calls.name[others], minlength=1)
    others = others[(called <= len(rows) // 2)[calls.name[others]]]
    time = np.append(calls.start[others], ranges.rows.start[named])
    return time, np.append(calls.name[others], len(api.names) + kinds.code[ranges.rows.name[named]]).astype(np.int32)


def _are_among(ids: IntArray, known: IntArray) -> BoolArray:
    """Which of the ids are known. By a table, also where other devices have most of the ids between: np.isin sorts
    then."""
    dense = len(known) > 0 and int(known.max()) - int(known.min()) < 64 * len(known)
    return np.isin(ids, known, kind="table" if dense else None)


# Graphs that are launched again and again, node by node: which launches lack nodes that others have.
#
# ```
# graph 1     |n1|n2|n3|n4|     |n1|n4|        |n1|n2|n3|n4|        the second launch lacks n2 and n3
# happened    |n1|n2|n3|n4|     |n1|n4 n2 n3|  |n1|n2|n3|n4|        a trace may lose nodes; the graph did not
# ```

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
        rows = np.flatnonzero(device.running & (operations.graph_node > 0) & (device.launch >= 0)).astype(np.int32)
        none = np.empty(0, np.int64)
        if not len(rows):
            return cls(rows, np.empty(0, np.bool_), none, np.empty(0, np.bool_), (none, none))
        found = RecordedNodes.of(operations.process[rows], operations.graph_node[rows], device.launch[rows])
        launch, count = found.launch, len(found.of_node)
        first = np.zeros(len(rows), np.bool_)
        earliest = least_of_each(launch, np.arange(len(launch), dtype=np.int32), len(found.call))
        first[earliest[earliest < len(launch)]] = True
        lacks = np.isin(found.graph, found.graph[found.missing > 0])
        missing = _lost(found)
        last, known = np.zeros(len(found.call), np.int32), np.zeros(count, np.int32)
        np.maximum.at(last, launch, rows)
        known[found.node] = rows
        lost = last[missing // count], known[missing % count]
        return cls(rows, first, found.graph.astype(np.int32)[launch], lacks[launch], lost)

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
