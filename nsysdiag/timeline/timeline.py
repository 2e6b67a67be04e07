"""From the analyzed device to its timeline: levels of detail, lanes, and the threads that are worth drawing."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from nsysdiag.arrays.groups import group_totals, longest
from nsysdiag.arrays.intervals import IntArray, Intervals, places_among
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import pid_of, tid_of
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.iterations.report import Steps, steady_steps
from nsysdiag.report import DeviceReport, Gap
from nsysdiag.timeline import sources
from nsysdiag.timeline.facts import TimelineLevels, TimelineThread
from nsysdiag.timeline.levels import (
    Fitted,
    LaneSource,
    NameTable,
    Packing,
    Room,
    exact_size,
    fitted,
    launch_column,
    rows_in,
)
from nsysdiag.timeline.sources import NamedSpans
from nsysdiag.wakeups.loaders import HostTrace

ROWS, ROWS_NARROWED, LEAST_ROWS = 60_000, 120_000, 1_000
"""Rows of operations, and as many of threads, over all devices."""
BYTES, BYTES_NARROWED, FOR_OPERATIONS = 450_000, 900_000, 2 / 3
"""Room for all exact rows in a report, over all devices, and the part of it that operations may take."""
NAME_ROOM = 1_500_000
"""Characters of names over all devices."""
STARTUP = "start-up"
"""The phase that is shown although the device did nothing yet."""
CAUSE_SLICES = 3
"""What part of the rows slices of gaps by cause may take."""
MOST_SIGNATURES = 20


class DeviceLanes(Struct, frozen=True):
    """A timeline without lanes of threads yet, and their input: the `threads`, the gaps that matter most in order, the
    names so far, the remaining space. `calls` are the launches of the operations of the first lanes, those of
    streams. Lanes of threads start at `begin`, with the start-up of the job. They show its `phases`, and what the host
    did until it `started`."""

    key: str
    levels: TimelineLevels
    threads: ShownThreads
    wanted: Intervals
    names: NameTable
    room: Room
    calls: list[IntArray]
    begin: int
    phases: NamedSpans
    started: NamedSpans


def with_lanes(
    levels: TimelineLevels,
    context: GapContext,
    launching: IntArray,
    report: DeviceReport,
    findings: list[Finding],
    activity: DeviceActivity,
    phases: NamedSpans,
    started: NamedSpans,
    *,
    narrowed: bool,
) -> DeviceLanes:
    """`levels` with the lanes of the device. `launching` are the lanes of the threads that launched. The job has
    `phases`, and `started` is what the host did before the device's first work."""
    devices = max(len(activity.devices), 1)
    rows = max((ROWS_NARROWED if narrowed else ROWS) // devices, LEAST_ROWS)
    size = (BYTES_NARROWED if narrowed else BYTES) // devices
    low, high = levels.start_ns, levels.end_ns
    wanted = _wanted(report, findings)
    packing = Packing(NameTable(NAME_ROOM // devices), low, high)
    # Causes are drawn in the gaps that the report describes or that stand for a group.
    starts = [gap.start_ns for gap in report.gaps] + [row.representative_start_ns for row in report.signatures]
    described = np.zeros(len(context.frame.gaps), dtype=np.bool_)
    at = places_among(context.frame.gaps.start, np.array(starts, dtype=np.int64))
    described[at[at >= 0]] = True
    most = rows // CAUSE_SLICES
    steps = steady_steps(report.iterations) if report.iterations is not None else None
    own = _with_rows(
        sources.cause_source(context.slices, described, most),
        *([] if steps is None else [sources.step_source(steps, low, high)]),
        sources.graph_source(context.device, most, low, high),
        sources.function_source(context.device, activity.host_functions, most, low, high),
    )
    slices = [packing.lane(each, np.arange(len(each.start))) for each in own]
    before = [] if narrowed else [start for name, start, _end in phases if name == STARTUP]
    room = Room(rows, int(size * FOR_OPERATIONS) - exact_size(slices))
    streams = sources.stream_sources(context.device, context.strings, activity.shapes, low, high)
    found = fitted(packing, streams, wanted, room, lambda source, parts, _rows: rows_in(source, parts), _step(steps))
    lanes = [*found.lanes, *slices]
    return DeviceLanes(
        key=report.key,
        levels=structs.replace(levels, lanes=lanes, exact_operations=found.exact),
        threads=threads_of(context, launching, report.gaps),
        wanted=wanted,
        names=found.names,
        room=Room(rows, size - exact_size(lanes)),
        calls=found.calls,
        begin=min([low, *before]),
        phases=phases if len(phases) > 1 else [],
        started=[] if narrowed else started,
    )


def _with_rows(*found: LaneSource) -> list[LaneSource]:
    return [source for source in found if len(source.start)]


def _step(steps: Steps | None) -> Intervals | None:
    """The typical step, which a comparison draws; None if the report holds no steps."""
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
    calls = {
        device.threads.all[lane.thread]: rows
        for device in devices
        for lane, rows in zip(whole[device.key][1].lanes, whole[device.key][1].calls, strict=True)
        if lane.kind == "api" and lane.thread is not None
    }
    levels = {device.key: with_launches(whole[device.key][0], device, calls) for device in devices}
    return Timelines(levels, [text for _levels, found in whole.values() for text in found.names.sentences.values()])


def with_launches(levels: TimelineLevels, device: DeviceLanes, calls: dict[int, IntArray]) -> TimelineLevels:
    """`levels` with the launch of each operation; `calls` are the calls that lanes show, by thread."""
    none = np.empty(0, dtype=np.int64)
    shown = np.concatenate([none, *(calls.get(thread, none) for thread in device.threads.all)])
    lanes = [
        structs.replace(lane, launches=launch_column(rows, shown))
        for lane, rows in zip(levels.lanes[: len(device.calls)], device.calls, strict=True)
    ]
    return structs.replace(levels, lanes=[*lanes, *levels.lanes[len(device.calls) :]])


def _whole(
    device: DeviceLanes, devices: list[DeviceLanes], home: dict[int, str], host: HostActivity, host_trace: HostTrace
) -> tuple[TimelineLevels, Fitted]:
    """The timeline of a device with the lanes of the threads whose home it is, and these by themselves."""
    served = [
        each for each in devices if each is device or any(home[thread] == device.key for thread in each.threads.all)
    ]
    low, high = min(each.begin for each in served), max(each.levels.end_ns for each in served)
    room = Room(sum(each.room.rows for each in served), sum(each.room.size for each in served))
    mine = {thread for thread in home if home[thread] == device.key}
    lanes = _sources(device.threads, mine, host, host_trace, low, high)
    if mine.intersection(device.threads.all[:1]):
        job = {"phases": device.phases, "start": device.started}
        lanes = [*_with_rows(*(sources.row_source(kind, rows, low, high) for kind, rows in job.items())), *lanes]
    wanted = _in_turn([each.wanted for each in served])
    found = fitted(Packing(device.names, low, high), lanes, wanted, room, _chosen)
    own = (low, high) == (device.levels.start_ns, device.levels.end_ns)
    levels = structs.replace(
        device.levels,
        names=found.names.packed(),
        threads=[
            TimelineThread(
                pid=pid_of(each),
                tid=tid_of(each),
                name=host_trace.thread_names.get(each),
                launches=each in device.threads.launching,
                lanes_of=None if home[each] == device.key else home[each],
            )
            for each in device.threads.all
        ],
        threads_left_out=device.threads.left_out,
        lanes=[*device.levels.lanes, *found.lanes],
        exact_host=found.exact,
        host_span=None if own else (low, high),
    )
    return levels, found


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
        for source in sources.thread_sources(activity, host_trace.ranges, each, place, low, high)
    ]


def _chosen(source: LaneSource, parts: Intervals, rows: int) -> IntArray:
    """The rows in the parts; of NVTX ranges the longest as well, wherever they are."""
    if source.kind in ("phases", "start"):
        return np.arange(len(source.start))
    inside = rows_in(source, parts)
    if source.kind != "nvtx":
        return inside
    return np.union1d(inside, longest(source.end - source.start, source.start, rows // LONGEST_RANGES))
