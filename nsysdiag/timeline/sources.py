"""Lanes of a device's timeline: its busiest streams, the causes in its longest gaps, and what threads did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.groups import least_of_each, longest
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending, places_among
from nsysdiag.arrays.nesting import is_ordered, levels
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.event_waits import HostFunctions
from nsysdiag.events.host import HostActivity
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category, LaunchShapes
from nsysdiag.events.rows import NamedRows, picked
from nsysdiag.fields import Sentence
from nsysdiag.iterations.report import Steps
from nsysdiag.kernels.names import normal_operation_names
from nsysdiag.ledger.ledger import Slices
from nsysdiag.timeline.facts import OFF_CPU
from nsysdiag.timeline.levels import LaneSource, codes_of
from nsysdiag.typed import NO_WORDS
from nsysdiag.units import format_count

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


def cause_source(slices: Slices, wanted: BoolArray, most: int) -> LaneSource:
    """The slices of the `wanted` gaps, the longest `most` of them."""
    rows = np.flatnonzero(taken(wanted, slices.rows.gap) & (slices.ns > 0))
    rows = rows[np.sort(longest(slices.lengths(rows), rows, most))]
    rows = rows[np.argsort(slices.rows.start[rows], kind="stable")]
    named = codes_of(slices.rows.text[rows] + 1, [NO_WORDS, *slices.texts])
    start, end, kinds = slices.rows.start[rows], slices.rows.end[rows], slices.rows.cause[rows]
    return LaneSource("causes", start, end, named, kinds=kinds.take, shares=False)


NamedSpans = Sequence[tuple[Sentence, int, int]]
"""Names, starts and ends in ns, in order of time."""


def row_source(kind: str, given: NamedSpans, low: int, high: int) -> LaneSource:
    """Those that touch [low, high), in a lane of the first thread."""
    rows = [(name, max(start, low), min(end, high)) for name, start, end in given if start < high and end > low]
    start, end = (np.array([row[at] for row in rows], dtype=np.int64) for at in (1, 2))
    named = codes_of(np.arange(len(rows)), [name for name, _start, _end in rows])
    return LaneSource(kind, start, end, named, thread=0, shares=False)


def step_source(steps: Steps, low: int, high: int) -> LaneSource:
    """The steady steps that touch [low, high), by their numbers."""
    steps = steps.take(np.flatnonzero(_inside(steps.spans, low, high)))
    return _of_device("steps", steps.spans, steps.number, "step {}".format, len(steps.number))


def graph_source(device: DeviceTimeline, most: int, low: int, high: int) -> LaneSource:
    """The launches of CUDA graphs that touch [low, high) and whose nodes were recorded, the `most` longest. Each is
    from its first node to its last one, by how many run in it. A launch is the call that the nodes share."""
    operations = device.operations
    rows = np.flatnonzero((operations.graph_node > 0) & device.running & (device.launch >= 0))
    calls, call = distinct(device.launch[rows])
    start = least_of_each(call, operations.start[rows], len(calls))
    end = -least_of_each(call, -operations.end[rows], len(calls))
    nodes = np.bincount(call, minlength=len(calls))
    inside = np.flatnonzero(_inside(Intervals(start, end), low, high))
    spans = Intervals(start[inside], end[inside])
    return _of_device("graphs", spans, nodes[inside], lambda count: f"graph of {format_count(count)} nodes", most)


def function_source(device: DeviceTimeline, functions: HostFunctions, most: int, low: int, high: int) -> LaneSource:
    """The host functions that streams of the device wait for and that touch [low, high); the `most` longest."""
    codes, code = distinct(device.stream_code)
    first = least_of_each(code, np.arange(len(code), dtype=np.int32), len(codes))
    place = places_among(codes, functions.stream)
    mine = np.flatnonzero((place >= 0) & _inside(Intervals(functions.start, functions.end), low, high))
    spans = Intervals(functions.start[mine], functions.end[mine])
    stream = device.operations.stream[first[place[mine]]].astype(np.int64)
    return _of_device("host_functions", spans, stream, "host function in stream {}".format, most)


def _of_device(kind: str, spans: Intervals, value: IntArray, text: Callable[[int], str], most: int) -> LaneSource:
    """The `most` longest of such rows, named by a value of each."""
    rows = np.arange(len(spans))
    if len(rows) > most:
        rows = np.sort(longest(spans.end - spans.start, rows, most))
    rows = rows[np.lexsort((spans.end[rows], spans.start[rows]))]
    values, code = np.unique(value[rows], return_inverse=True)
    named = codes_of(code, [*map(text, values.tolist())])
    return LaneSource(kind, spans.start[rows], spans.end[rows], named, shares=False)


MOST_STREAMS = 8
COMPUTE, COMMUNICATION, COPIES = range(3)


def work_kinds(device: DeviceTimeline, rows: IntArray) -> IntArray:
    """For each of the operations whether it is compute, communication or a copy (or memory set)."""
    category = device.operations.category[rows]
    kernels = (category == Category.KERNEL) | (category == Category.GRAPH)
    return np.where(device.communication[rows], COMMUNICATION, np.where(kernels, COMPUTE, COPIES))


def stream_sources(
    device: DeviceTimeline, strings: Strings, shapes: LaunchShapes, low: int, high: int
) -> list[LaneSource]:
    """A lane for each of the busiest streams, and one for all the others together."""
    operations = device.operations
    rows = np.flatnonzero(device.running & (operations.end > low) & (operations.start < high))
    code = device.stream_code[rows]
    busy = np.bincount(code, (operations.end - operations.start)[rows])
    ranked = np.argsort(-busy, kind="stable")
    ranked = ranked[busy[ranked] > 0]
    shown = ranked[: MOST_STREAMS if len(ranked) <= MOST_STREAMS else MOST_STREAMS - 1]

    def source(mine: IntArray, label: str) -> LaneSource:
        return LaneSource(
            "stream",
            operations.start[mine],
            operations.end[mine],
            lambda chosen: normal_operation_names(device, mine[chosen], strings),
            label=label,
            kinds=lambda chosen: work_kinds(device, mine[chosen]),
            call=lambda chosen: device.launch[mine[chosen]],
            shape=lambda chosen: shape_columns(device, mine[chosen], shapes),
        )

    each = [rows[code == stream] for stream in np.sort(shown).tolist()]
    sources = [source(mine, f"stream {int(operations.stream[mine[0]])}") for mine in each]
    if len(ranked) > len(shown):
        others = rows[~np.isin(code, shown)]
        sources.append(source(others, f"{len(ranked) - len(shown)} other streams"))
    return sources


def shape_columns(device: DeviceTimeline, rows: IntArray, shapes: LaunchShapes) -> tuple[IntArray, IntArray]:
    """For copies and sets their bytes, for kernels the blocks of the grid and the threads of a block; 0 if the trace
    does not say."""
    shape = device.operations.shape[rows]
    known = shape >= 0
    amounts = np.maximum(device.operations.size[rows], 0).astype(np.int64)
    blocks_of = np.zeros(len(known), dtype=np.int64)
    amounts[known], blocks_of[known] = shapes.blocks[shape[known]], shapes.threads[shape[known]]
    return amounts, blocks_of


MOST_DEPTH, MOST_DIRECTIVES = 6, 3


def thread_sources(
    host: HostActivity, ranges: NvtxRanges, thread: int, place: int, low: int, high: int
) -> list[LaneSource]:
    """All lanes of one thread (globalTid) over [low, high), those without rows left out; `place` is its number."""
    found = _nvtx(ranges, thread, place, low, high)
    lane = int(host.axis.lane(np.array([thread]))[0])
    if lane >= 0:
        lanes = _ThreadLanes(lane * host.axis.stride, host.axis.stride, host.axis.origin, place, low, high)
        found += [
            lanes.calls(host.mpi, "mpi"),
            *lanes.nested(host.openacc, "openacc"),
            *lanes.nested(host.openmp, "openmp"),
            lanes.calls(host.api, "api"),
            lanes.calls(host.os_calls, "os"),
            lanes.off_cpu(host.scheduling.out),
        ]
    return [source for source in found if len(source.start)]


class _ThreadLanes(NamedTuple):
    """Lanes of a thread whose time is [base, base + stride) of the axis of all threads, which begins at `origin`."""

    base: int
    stride: int
    origin: int
    place: int
    low: int
    high: int

    @property
    def _shift(self) -> int:
        return self.origin - self.base

    def _inside(self, spans: Intervals) -> BoolArray:
        return _inside(spans, self.low - self._shift, self.high - self._shift)

    def _mine(self, lane: NamedRows) -> slice:
        first, behind = np.searchsorted(lane.spans.start, (self.base, self.base + self.stride)).tolist()
        return slice(first, behind)

    def calls(self, lane: NamedRows, kind: str) -> LaneSource:
        """The outermost calls of the thread. They are picked in one go: there may be millions."""
        mine = self._mine(lane)
        spans = lane.spans[mine]
        kept = picked(lane.outermost[mine] & self._inside(spans))
        names = codes_of(lane.shown[mine], lane.shown_names)

        def of(chosen: IntArray) -> IntArray:
            return chosen + kept.start if isinstance(kept, slice) else kept[chosen]

        call = (lambda chosen: lane.row[mine][of(chosen)]) if kind == "api" else None
        start, end = spans.start[kept] + self._shift, spans.end[kept] + self._shift
        return LaneSource(kind, start, end, lambda chosen: names(of(chosen)), thread=self.place, call=call)

    def nested(self, lane: NamedRows, kind: str) -> list[LaneSource]:
        """A lane for each depth of the thread's events."""
        mine = lane.take(self._mine(lane))
        mine = mine.take(self._inside(mine.spans))
        start, end = mine.spans.start + self._shift, mine.spans.end + self._shift
        depth = levels(Intervals(start, end), MOST_DIRECTIVES + 1)
        rows = [np.flatnonzero(depth == level) for level in range(MOST_DIRECTIVES)]
        named = [codes_of(mine.shown[its], mine.shown_names) for its in rows]
        return [
            LaneSource(kind, start[its], end[its], named[at], thread=self.place, depth=at, shares=not at)
            for at, its in enumerate(rows)
        ]

    def off_cpu(self, out: Intervals) -> LaneSource:
        """When the thread had no CPU."""
        mine = picked((out.start >= self.base) & (out.start < self.base + self.stride) & self._inside(out))
        start, end = out.start[mine] + self._shift, out.end[mine] + self._shift
        if not ascending(start):
            order = np.argsort(start, kind="stable")
            start, end = start[order], end[order]
        return LaneSource(OFF_CPU, start, end, None, thread=self.place)


def _nvtx(ranges: NvtxRanges, thread: int, place: int, low: int, high: int) -> list[LaneSource]:
    """A lane for each depth, without calls of MPI, which have their own; an open range ends with the timeline."""
    rows = ranges.rows.take((ranges.rows.thread == thread) & ~ranges.rows.mpi)
    rows = rows.take(_inside(Intervals(rows.start, rows.end), low, high))
    keys = (rows.name, ~rows.end, rows.start)
    rows = rows if is_ordered(keys) else rows.take(np.lexsort(keys))
    # By their own ends: cut at the end of the timeline, an inner range may look as long as its outer one.
    depth = levels(Intervals(rows.start, rows.end), MOST_DEPTH + 1)
    result = []
    for level in range(min(int(depth.max(initial=-1)), MOST_DEPTH - 1) + 1):
        mine = rows.take(depth == level)
        end, named = np.minimum(mine.end, high), codes_of(mine.name, ranges.names)
        result.append(LaneSource("nvtx", mine.start, end, named, thread=place, depth=level, shares=False))
    return result


def _inside(spans: Intervals, low: int, high: int) -> BoolArray:
    """True for what is not empty and touches [low, high)."""
    return (spans.end > spans.start) & (spans.end > low) & (spans.start < high)
