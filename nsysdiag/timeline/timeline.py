"""From the analysed device to its timeline: levels of detail, lanes, and the threads that are worth drawing."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct, structs

from nsysdiag.arrays.groups import group_totals, longest
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending
from nsysdiag.arrays.nesting import levels
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import pid_of, tid_of
from nsysdiag.events.launch_shapes import LaunchShapes
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import NamedRows, picked
from nsysdiag.fields import Sentence
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.iterations.steps import steady_steps
from nsysdiag.kernels.names import normal_operation_names
from nsysdiag.ledger.ledger import Slices
from nsysdiag.report import DeviceReport, Finding, Gap
from nsysdiag.timeline.facts import OFF_CPU, TimelineLevels, TimelineThread
from nsysdiag.timeline.levels import (
    LaneSource,
    NameTable,
    Packing,
    Room,
    codes_of,
    exact_size,
    fitted,
    launch_column,
    reach_of,
    rows_in,
)
from nsysdiag.typed import NO_WORDS
from nsysdiag.wakeups.loaders import HostTrace

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


# Lanes of a device's timeline: its busiest streams, the causes in its longest gaps, and what threads did.


def cause_source(slices: Slices, gaps: IntArray, count: int, most: int) -> LaneSource | None:
    """The slices of the chosen `gaps` out of `count`, the longest `most` of them; None where there are none."""
    wanted = np.zeros(count, dtype=np.bool_)
    wanted[gaps] = True
    rows = np.flatnonzero(wanted[slices.rows.gap] & (slices.ns > 0))
    rows = rows[np.sort(longest(slices.lengths(rows), rows, most))]
    rows = rows[np.argsort(slices.rows.start[rows], kind="stable")]
    if len(rows) == 0:
        return None
    start, end, text = slices.rows.start[rows], slices.rows.end[rows], slices.rows.text[rows]
    return LaneSource(
        kind="causes",
        label="",
        thread=None,
        depth=0,
        start=start,
        end=end,
        reach=reach_of(end),
        named=codes_of(text + 1, [NO_WORDS, *slices.texts]),
        kinds=slices.rows.cause[rows],
        shares=False,
    )


MOST_STREAMS = 8
COMPUTE, COMMUNICATION, COPIES = range(3)


def work_kinds(device: DeviceTimeline) -> IntArray:
    """For each operation whether it is compute, communication or a copy (or memory set)."""
    category = device.operations.category
    kernels = (category == Category.KERNEL) | (category == Category.GRAPH)
    return np.where(device.communication, COMMUNICATION, np.where(kernels, COMPUTE, COPIES))


def stream_sources(
    device: DeviceTimeline, strings: Strings, shapes: LaunchShapes, low: int, high: int
) -> list[LaneSource]:
    """A lane for each of the busiest streams, and one for all the others together."""
    operations = device.operations
    rows = np.flatnonzero(device.running & (operations.end > low) & (operations.start < high))
    if len(rows) == 0:
        return []
    code = device.stream_code[rows]
    busy = np.bincount(code, (operations.end - operations.start)[rows])
    ranked = np.argsort(-busy, kind="stable")
    ranked = ranked[busy[ranked] > 0]
    shown = ranked[: MOST_STREAMS if len(ranked) <= MOST_STREAMS else MOST_STREAMS - 1]
    columns = _StreamColumns(work_kinds(device), *shape_columns(device, shapes))
    sources = []
    for stream in np.sort(shown).tolist():
        mine = rows[code == stream]
        label = f"stream {int(operations.stream[mine[0]])}"
        sources.append(_source(device, strings, mine, label, columns))
    if len(ranked) > len(shown):
        others = rows[~np.isin(code, shown)]
        sources.append(_source(device, strings, others, f"{len(ranked) - len(shown)} other streams", columns))
    return sources


class _StreamColumns(NamedTuple):
    """Of every operation of a device."""

    kinds: IntArray
    amounts: IntArray
    blocks_of: IntArray


def shape_columns(device: DeviceTimeline, shapes: LaunchShapes) -> tuple[IntArray, IntArray]:
    """For copies and sets their bytes, for kernels the blocks of the grid and the threads of a block; 0 where the trace
    does not say."""
    operations = device.operations
    known = operations.shape >= 0
    place = operations.shape[known]
    amounts, blocks_of = np.maximum(operations.size, 0).astype(np.int64), np.zeros(len(known), dtype=np.int64)
    amounts[known], blocks_of[known] = shapes.blocks[place], shapes.threads[place]
    return amounts, blocks_of


def _source(
    device: DeviceTimeline, strings: Strings, rows: IntArray, label: str, columns: _StreamColumns
) -> LaneSource:
    end = device.operations.end[rows]
    return LaneSource(
        kind="stream",
        label=label,
        thread=None,
        depth=0,
        start=device.operations.start[rows],
        end=end,
        reach=reach_of(end),
        named=lambda chosen: normal_operation_names(device, rows[chosen], strings),
        kinds=columns.kinds[rows],
        call=device.launch[rows],
        shape=(columns.amounts[rows], columns.blocks_of[rows]),
    )


MOST_DEPTH = 6


def thread_sources(
    host: HostActivity, ranges: NvtxRanges, thread: int, place: int, low: int, high: int
) -> list[LaneSource]:
    """All lanes of one thread (globalTid) over [low, high), those without rows left out; `place` is its number."""
    rank = int(host.axis.lane(np.array([thread]))[0])
    found = [*_nvtx(ranges, thread, place, low, high)]
    if rank >= 0:
        lanes = {"mpi": host.mpi, "api": host.api, "os": host.os_calls}
        found += [_calls(host, lane, kind, rank, place, low, high) for kind, lane in lanes.items()]
        found.append(_off_cpu(host, rank, place, low, high))
    return [source for source in found if len(source.start)]


def _calls(host: HostActivity, lane: NamedRows, kind: str, rank: int, place: int, low: int, high: int) -> LaneSource:
    """The outermost calls of the thread. They are picked in one go: there may be millions."""
    base = rank * host.axis.stride
    first, behind = np.searchsorted(lane.spans.start, (base, base + host.axis.stride))
    mine = slice(int(first), int(behind))
    spans = lane.spans[mine]
    shift = host.axis.origin - base
    kept = picked(lane.outermost[mine] & _inside(spans, low - shift, high - shift))
    start, end = spans.start[kept] + shift, spans.end[kept] + shift
    named = codes_of(lane.shown[mine][kept], lane.shown_names)
    calls = lane.row[mine][kept] if kind == "api" else None
    return LaneSource(kind, "", place, 0, start, end, reach_of(end), named, call=calls)


def _off_cpu(host: HostActivity, rank: int, place: int, low: int, high: int) -> LaneSource:
    base, out = rank * host.axis.stride, host.scheduling.out
    shift = host.axis.origin - base
    mine = picked((out.start >= base) & (out.start < base + host.axis.stride) & _inside(out, low - shift, high - shift))
    start, end = out.start[mine] + shift, out.end[mine] + shift
    if not ascending(start):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    return LaneSource(OFF_CPU, "", place, 0, start, end, reach_of(end), None)


def _nvtx(ranges: NvtxRanges, thread: int, place: int, low: int, high: int) -> list[LaneSource]:
    """A lane for each depth, without calls of MPI, which have their own; an open range ends with the timeline."""
    rows = ranges.rows.take((ranges.rows.thread == thread) & ~ranges.rows.mpi)
    kept = _inside(Intervals(rows.start, rows.end), low, high)
    rows = rows.take(kept)
    rows = rows.take(np.lexsort((rows.name, ~rows.end, rows.start)))
    # By their own ends: cut at the end of the timeline, an inner range may look as long as its outer one.
    depth = levels(Intervals(rows.start, rows.end), MOST_DEPTH + 1)
    result = []
    for level in range(int(min(depth.max(), MOST_DEPTH - 1)) + 1 if len(depth) else 0):
        mine = rows.take(depth == level)
        end = np.minimum(mine.end, high)
        named = codes_of(mine.name, ranges.names)
        result.append(LaneSource("nvtx", "", place, level, mine.start, end, reach_of(end), named, shares=False))
    return result


def _inside(spans: Intervals, low: int, high: int) -> BoolArray:
    """True for what is not empty and touches [low, high)."""
    inside: BoolArray = (spans.end > spans.start) & (spans.end > low) & (spans.start < high)
    return inside


ROWS, ROWS_NARROWED, LEAST_ROWS = 60_000, 120_000, 1_000
"""Rows of operations, and as many of threads, over all devices."""
BYTES, BYTES_NARROWED, FOR_OPERATIONS = 450_000, 900_000, 2 / 3
"""Room for all exact rows in a report, over all devices, and the part of it that operations may take."""
NAME_ROOM = 1_500_000
"""Characters of names over all devices."""
CAUSE_SLICES = 3
"""What part of the rows slices of gaps by cause may take."""
MOST_SIGNATURES = 20


class DeviceLanes(Struct, frozen=True):
    """A timeline without lanes of threads yet, and their input: the `threads`, the gaps that matter most in order, the
    names so far, the remaining space. `calls` are the launches of the operations of the first lanes, those of
    streams."""

    key: str
    levels: TimelineLevels
    threads: ShownThreads
    wanted: Intervals
    names: NameTable
    room: Room
    calls: list[IntArray]


def with_lanes(
    levels: TimelineLevels,
    context: GapContext,
    launching: IntArray,
    report: DeviceReport,
    findings: list[Finding],
    activity: DeviceActivity,
    *,
    narrowed: bool,
) -> DeviceLanes:
    """`levels` with the lanes of streams and causes. `launching` are the lanes of the threads that launched."""
    devices = max(len(activity.devices), 1)
    rows = max((ROWS_NARROWED if narrowed else ROWS) // devices, LEAST_ROWS)
    size = (BYTES_NARROWED if narrowed else BYTES) // devices
    low, high = levels.start_ns, levels.end_ns
    wanted = _wanted(report, findings)
    packing = Packing.over(NameTable(NAME_ROOM // devices), low, high)
    # Causes are drawn in the gaps that the report describes or that stand for a group.
    starts = [gap.start_ns for gap in report.gaps] + [row.representative_start_ns for row in report.signatures]
    gaps = np.flatnonzero(np.isin(context.frame.gaps.start, np.array(starts, dtype=np.int64)))
    causes = cause_source(context.slices, gaps, len(context.frame.gaps), rows // CAUSE_SLICES)
    slices = [] if causes is None else [packing.lane(causes, np.arange(len(causes.start)))]
    room = Room(rows, int(size * FOR_OPERATIONS) - exact_size(slices))
    streams = stream_sources(context.device, context.strings, activity.shapes, low, high)
    found = fitted(packing, streams, wanted, room, lambda source, parts, _rows: rows_in(source, parts), _step(report))
    lanes = [*found.lanes, *slices]
    return DeviceLanes(
        key=report.key,
        levels=structs.replace(levels, lanes=lanes, exact_operations=found.exact),
        threads=threads_of(context, launching, report.gaps),
        wanted=wanted,
        names=found.names,
        room=Room(rows, size - exact_size(lanes)),
        calls=found.calls,
    )


def _step(report: DeviceReport) -> Intervals | None:
    """The typical step, which a comparison draws; None where the report holds no steps."""
    steps = steady_steps(report.iterations) if report.iterations is not None else None
    return None if steps is None else steps.spans[[steps.nearest(float(np.median(steps.length)))]]


def _wanted(report: DeviceReport, findings: list[Finding]) -> Intervals:
    """The gaps that matter most first: those that stand for findings, for the costliest groups, then the longest."""
    rows = sorted(report.signatures, key=lambda row: (-row.total_ns, row.id))
    named = {finding.signature for finding in findings if finding.device == report.key}
    rows = [*(row for row in rows if row.id in named), *rows[:MOST_SIGNATURES]]
    pairs = [(row.representative_start_ns, row.representative_start_ns + row.max_ns) for row in rows]
    pairs += [(gap.start_ns, gap.end_ns) for gap in report.gaps]
    return Intervals.of(list(dict.fromkeys(pairs)))


MOST_LAUNCHING, MOST_WAKING = 4, 6
_THREAD_BITS = 48


class ShownThreads(Struct, frozen=True):
    """globalTids: the `launching` ones with most idle time behind them first, then the `waking` ones; `left_out` counts
    further ones that launched."""

    launching: list[int]
    waking: list[int]
    left_out: int

    @property
    def all(self) -> list[int]:
        """Every one, in the order of their places."""
        return [*self.launching, *self.waking]


def threads_of(context: GapContext, launching: IntArray, gaps: list[Gap]) -> ShownThreads:
    """The threads for a device; `launching` are the lanes of those that launched on it."""
    known, length = context.lane >= 0, context.frame.gaps.end - context.frame.gaps.start
    idle = group_totals(context.lane[known], length[known]).code.tolist()
    listed = set(idle)
    lanes = [*idle, *(lane for lane in launching.tolist() if lane >= 0 and lane not in listed)]
    chosen = [int(context.axis.threads[lane]) for lane in lanes[:MOST_LAUNCHING]]
    waking = _waking(gaps, chosen[0] >> _THREAD_BITS if chosen else 0, {int(t) for t in context.axis.threads[lanes]})
    return ShownThreads(chosen, waking, len(lanes) - len(chosen))


def _waking(gaps: list[Gap], machine: int, known: set[int]) -> list[int]:
    """The threads of the hops, by the length of the gaps; `machine` are the bits that all threads of it share."""
    total: dict[int, int] = {}
    for gap in gaps:
        for hop in gap.root.hops if gap.root else ():
            identity = machine << _THREAD_BITS | hop.thread.pid << 24 | hop.thread.tid
            if identity not in known:
                total[identity] = total.get(identity, 0) + gap.end_ns - gap.start_ns
    return sorted(total, key=lambda identity: (-total[identity], identity))[:MOST_WAKING]


def described(threads: ShownThreads, names: dict[int, str], key: str, home: dict[int, str]) -> list[TimelineThread]:
    """The threads as records, in the order of their places; `home` is the device with the lanes of each, `key` this
    one."""
    return [
        TimelineThread(
            pid=pid_of(each),
            tid=tid_of(each),
            name=names.get(each),
            launches=each in threads.launching,
            lanes_of=None if home[each] == key else home[each],
        )
        for each in threads.all
    ]


# The lanes of threads over all devices: each thread once, however many devices it serves.

LONGEST_RANGES = 36
"""What part of the rows the longest NVTX ranges of a depth may take."""


class Timelines(NamedTuple):
    """The timelines by device, and the sentences in them that hold names."""

    levels: dict[str, TimelineLevels]
    sentences: list[Sentence]


def with_threads(devices: list[DeviceLanes], host: HostActivity, host_trace: HostTrace) -> Timelines:
    """The complete timelines by device. A thread has its lanes in the timeline of its first device, over the time of
    all its devices. `host` is what the launching threads did."""
    home: dict[int, str] = {}
    for device in devices:
        for thread in device.threads.all:
            home.setdefault(thread, device.key)
    whole = {device.key: _whole(device, devices, home, host, host_trace) for device in devices}
    calls = {thread: rows for each in whole.values() for thread, rows in each.calls.items()}
    levels = {device.key: with_launches(whole[device.key].levels, device, calls) for device in devices}
    return Timelines(levels, [text for each in whole.values() for text in each.names.sentences.values()])


def with_launches(levels: TimelineLevels, device: DeviceLanes, calls: dict[int, IntArray]) -> TimelineLevels:
    """`levels` with the launch of each operation; `calls` are the calls that lanes show, by thread."""
    none = np.empty(0, dtype=np.int64)
    shown = np.concatenate([none, *(calls.get(thread, none) for thread in device.threads.all)])
    lanes = [
        structs.replace(lane, launches=launch_column(rows, shown))
        for lane, rows in zip(levels.lanes[: len(device.calls)], device.calls, strict=True)
    ]
    return structs.replace(levels, lanes=[*lanes, *levels.lanes[len(device.calls) :]])


class _Whole(NamedTuple):
    """The timeline of one device, its names, and the calls that the lane of each thread shows."""

    levels: TimelineLevels
    names: NameTable
    calls: dict[int, IntArray]


def _whole(
    device: DeviceLanes, devices: list[DeviceLanes], home: dict[int, str], host: HostActivity, host_trace: HostTrace
) -> _Whole:
    served = [
        each for each in devices if each is device or any(home[thread] == device.key for thread in each.threads.all)
    ]
    low, high = min(each.levels.start_ns for each in served), max(each.levels.end_ns for each in served)
    room = Room(sum(each.room.rows for each in served), sum(each.room.size for each in served))
    mine = {thread for thread in home if home[thread] == device.key}
    sources = _sources(device.threads, mine, host, host_trace, low, high)
    packing = Packing.over(device.names, low, high)
    found = fitted(packing, sources, _in_turn([each.wanted for each in served]), room, _chosen)
    own = (low, high) == (device.levels.start_ns, device.levels.end_ns)
    levels = structs.replace(
        device.levels,
        names=found.names.packed(),
        threads=described(device.threads, host_trace.thread_names, device.key, home),
        threads_left_out=device.threads.left_out,
        lanes=[*device.levels.lanes, *found.lanes],
        exact_host=found.exact,
        host_span=None if own else (low, high),
    )
    calls = {
        device.threads.all[source.thread]: rows
        for source, rows in zip(sources, found.calls, strict=True)
        if source.kind == "api" and source.thread is not None
    }
    return _Whole(levels, found.names, calls)


def _in_turn(wanted: list[Intervals]) -> Intervals:
    """The first gap of each device, then the second one of each, and so on."""
    pairs = [zip(gaps.start.tolist(), gaps.end.tolist(), strict=True) for gaps in wanted]
    found = [pair for pair in chain.from_iterable(zip_longest(*pairs)) if pair is not None]
    return Intervals.of(list(dict.fromkeys(found)))


def _sources(
    threads: ShownThreads, mine: set[int], host: HostActivity, host_trace: HostTrace, low: int, high: int
) -> list[LaneSource]:
    """The lanes of those `threads` of a device that are `mine`; their places are those among all of its threads."""
    launching = [(place, each) for place, each in enumerate(threads.launching) if each in mine]
    waking = [(place, each) for place, each in enumerate(threads.waking, len(threads.launching)) if each in mine]
    found = [(host, place, each) for place, each in launching]
    if waking:
        others = host_trace.waiting(np.array([each for _, each in waking], dtype=np.int64)).host
        found += [(others, place, each) for place, each in waking]
    return [
        source
        for activity, place, each in found
        for source in thread_sources(activity, host_trace.ranges, each, place, low, high)
    ]


def _chosen(source: LaneSource, parts: Intervals, rows: int) -> IntArray:
    """The rows in the parts; of NVTX ranges the longest as well, wherever they are."""
    inside = rows_in(source, parts)
    if source.kind != "nvtx":
        return inside
    longest = np.argsort(source.start - source.end, kind="stable")[: rows // LONGEST_RANGES]
    return np.union1d(inside, longest)
