"""The third stage, one device by itself: its gaps, what each nanosecond of them was lost to, and its table of time.

```
gaps_of      -> DeviceGaps              the window, its gaps and their causes
roots_of     -> DeviceRoots(DeviceGaps) waits followed to the threads that ended them, and what describes the gaps
time_of      -> DeviceTime(DeviceRoots) each nanosecond of the device in a row of the table of time
```

Each record has all that the ones before it have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from nsysdiag.account.bottlenecks import DeviceWaitCalls, Made, busy_pieces, compiling, idle_pieces, in_order
from nsysdiag.account.filling import foreign_time, hollow_time, waited_for
from nsysdiag.arrays.background import Background, Deferred
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, sorted_times, union
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.causes import BLOCKING_COPY, SYNCHRONIZATION, bottlenecks_of
from nsysdiag.counters.counters import Measured
from nsysdiag.diagnosis.missing import MOST, Missing, missing_of
from nsysdiag.events.capture import launches_begin
from nsysdiag.events.collectives import Collectives, find_collectives
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.identity import once
from nsysdiag.events.rows import picked
from nsysdiag.findings.attribution import Attribution, slice_kinds
from nsysdiag.findings.pointers import EmptyIterations, empty_iterations
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys, pack_places
from nsysdiag.gaps.gaps import (
    Calibration,
    DeviceSide,
    EventWaits,
    Gaps,
    LaunchFrame,
    calibrate,
    event_waits,
    find_gaps,
    frame_of,
)
from nsysdiag.iterations.chosen import FEWEST_CHOSEN, AnalysisWindow
from nsysdiag.iterations.iterations import main_loop
from nsysdiag.iterations.loop import LAYER, Loop
from nsysdiag.kernels.communication import launching_lanes, mpi_meetings, time_in_mpi
from nsysdiag.kernels.facts import KernelRow
from nsysdiag.kernels.kernels import kernel_rows
from nsysdiag.kernels.limits import residency
from nsysdiag.launches.facts import Launch
from nsysdiag.launches.launches import depth_of_queue, launch_report
from nsysdiag.ledger.classify import classify
from nsysdiag.ledger.ledger import (
    CauseTotals,
    Drained,
    Ledger,
    Slices,
    WindowSplit,
    add_up,
    ledger_of,
    pack_gaps,
    split_window,
    sync_drained,
)
from nsysdiag.ledger.untraced_graphs import untraced_launches_on, untraced_on
from nsysdiag.memory.device import demand_migrations
from nsysdiag.pipeline.reading import HostReading, Reading
from nsysdiag.ranges.facts import FlameGraph
from nsysdiag.ranges.stacks import flame_graph
from nsysdiag.report import GapsPacked
from nsysdiag.stacks.call_sites import HostSide
from nsysdiag.time.table import TimeTable
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.levels import finest_level, overview
from nsysdiag.wakeups.batches import RootSlices, attribute_roots
from nsysdiag.wakeups.levels import Chains, follow
from nsysdiag.wakeups.wake_chain import WakeChains
from nsysdiag.wakeups.wakers import WakeFinder

SLOW_BORDER = 1.5
"""Times the median: so slow is a repeat in which launches begin to be in the file, if another pass begins there."""


class DeviceGaps(Struct, frozen=True):
    """A device, the window under analysis and the idle time in it: `slices` is what each nanosecond was lost to,
    `ledger` their sums. `awaited` is the other device whose event held the operation behind each gap. `inside` are the
    operations that tables count: all of the device, or those that start inside a narrowed window. `finder` is shared by
    all devices.

    The second thread makes: `loops`, those of the whole work or the steps that the user names; `repeating`, the one
    whose repeats are the iterations; `without_work`, iterations in which the device was given nothing to do (None for a
    narrowed window); `hollow`, the compute time in which most of the chip was empty (None if the trace cannot tell);
    what is `missing`; the table of `kernels`; and the `overview` of the timeline in buckets (None if not requested, or
    if nothing ran)."""

    host: HostReading
    finder: Callable[[], WakeFinder]
    device: DeviceTimeline
    window: AnalysisWindow
    split: WindowSplit
    measured: Measured | None
    gaps: Gaps
    calibration: Calibration
    awaited: IntArray
    frame: LaunchFrame
    slices: Slices
    ledger: Ledger
    inside: BoolArray
    loops: Deferred[list[Loop]]
    repeating: Deferred[Loop | None]
    without_work: Deferred[EmptyIterations | None]
    hollow: Deferred[Intervals | None]
    missing: Deferred[Missing]
    kernels: Deferred[list[KernelRow]]
    overview: Deferred[TimelineLevels | None]

    @property
    def reading(self) -> Reading:
        """What was read of the trace."""
        return self.host.reading

    @property
    def unseen(self) -> bool:
        """Whether so many rows are missing that what looks idle may have been work."""
        return self.missing.result().unseen_share >= MOST


class FramedGaps(Struct, frozen=True):
    """The gaps of a device in its window, and the launches behind them."""

    calibration: Calibration
    gaps: Gaps
    waits: EventWaits
    frame: LaunchFrame


class BegunDevice(Struct, frozen=True):
    """What the second thread makes of a device while the tables of the host are read."""

    split: Deferred[WindowSplit]
    framed: Deferred[FramedGaps]
    loops: Deferred[list[Loop]]


def begin_devices(reading: Reading, background: Background) -> dict[str, BegunDevice]:
    """Begin with every device, by its key. Who takes one out lets it go."""

    def begun(device: DeviceTimeline, window: AnalysisWindow) -> BegunDevice:
        split = background.begin(lambda: laid(split_window(device, window.parts), device, window))
        framed = background.begin(_framed, device, window, reading)
        return BegunDevice(split, framed, background.begin_long(_loops, device, window, reading))

    return {device.key: begun(device, reading.windows[device.key]) for device in reading.devices}


def _framed(device: DeviceTimeline, window: AnalysisWindow, reading: Reading) -> FramedGaps:
    activity = reading.activity
    every = laid(find_gaps(device, window.whole), device, window)
    calibration = calibrate(every, device, activity, event_waits(every, device, activity).present)
    gaps = find_gaps(device, window.parts) if window.narrowed else every
    del every
    waits = laid(event_waits(gaps, device, activity), device, activity, gaps)
    frame = laid(frame_of(gaps, device, activity, calibration, waits), device, activity.api_calls.rows, gaps, waits)
    return FramedGaps(calibration, gaps, waits, frame)


def gaps_of(
    device: DeviceTimeline,
    begun: BegunDevice,
    host: HostReading,
    finder: Callable[[], WakeFinder],
    background: Background,
) -> DeviceGaps:
    """The gaps of a device, classified."""
    reading = host.reading
    activity, window = reading.activity, reading.windows[device.key]
    missing = background.begin(_missing, device, host)
    split, loops, measured = begun.split.result(), begun.loops, reading.counters.result().of(device)
    hollow = background.begin(lambda: hollow_time(device, split, residency(activity.shapes, device.gpu), measured))
    repeating = background.begin_long(lambda: main_loop(loops.result()))
    without_work = background.begin(_without_work, device, window, host)
    framed = begun.framed.result()
    slices = laid(_slices(DeviceSide(framed.frame, device, activity, framed.waits), host))
    ledger = laid(ledger_of(slices, len(framed.gaps)))
    inside = _inside(device, window)
    trim()
    return DeviceGaps(
        host,
        finder,
        device,
        window,
        split,
        measured,
        framed.gaps,
        framed.calibration,
        framed.waits.other.astype(np.int16),
        framed.frame,
        slices,
        ledger,
        inside,
        loops,
        repeating,
        without_work,
        hollow,
        missing,
        kernels=background.begin(kernel_rows, device, inside, reading.strings),
        overview=background.begin(_overview, device, window, framed.gaps, ledger, reading),
    )


def _loops(device: DeviceTimeline, window: AnalysisWindow, reading: Reading) -> list[Loop]:
    """A narrowed window holds too little to find any: of it only such steps as are named, and whole inside it."""
    if reading.settings.step is not None or reading.chosen:
        named = reading.chosen.get(device.key, [])
        inside = [loop.inside(window.parts) for loop in named] if window.narrowed else named
        return [loop for loop in inside if len(loop) >= FEWEST_CHOSEN]
    if window.narrowed:
        return []
    found = reading.loops(device, window.whole)
    passes = window.passes
    if passes is not None:
        borders = np.concatenate([passes.spans.start, passes.spans.end])
        found = [loop.of_kind(LAYER) if passes.of_layers(loop) else loop for loop in found]
        return [loop.left_at(borders) for loop in found]
    restarts = launches_begin(device)
    return [loop.left_at(restarts, SLOW_BORDER) for loop in found]


def _without_work(device: DeviceTimeline, window: AnalysisWindow, host: HostReading) -> EmptyIterations | None:
    if window.narrowed:
        return None
    reading = host.reading
    return empty_iterations(device, reading.activity.api_calls.rows, reading.ranges, host.host.axis.threads)


def _slices(side: DeviceSide, host: HostReading) -> Slices:
    dropped = host.partial_graphs.spans.get(side.device.number, Intervals.empty())
    untraced = untraced_on(side.device, side.activity, host.untraced)
    return classify(side, host.layered, untraced, host.reading.settings.disabled, dropped)


def _inside(device: DeviceTimeline, window: AnalysisWindow) -> BoolArray:
    if not (window.narrowed or window.late):
        return np.ones(len(device.operations), dtype=np.bool_)
    return contains(window.parts, device.operations.start)


def _missing(device: DeviceTimeline, host: HostReading) -> Missing:
    reading = host.reading
    unseen, reported = reading.unseen.result(), reading.trace.events_dropped
    return missing_of(device, reading.activity, unseen, host.partial_graphs, reported=reported)


def _overview(
    device: DeviceTimeline, window: AnalysisWindow, gaps: Gaps, ledger: Ledger, reading: Reading
) -> TimelineLevels | None:
    if not reading.settings.timeline:
        return None
    return overview(device, window, gaps, ledger, finest_level(len(reading.devices)))


# Waits followed to their roots, and what describes the gaps.


class DeviceRoots(DeviceGaps, frozen=True):
    """The idle time of a device by root cause. `context` describes the gaps by what the launching threads did,
    `root_context` by its root causes; `keys` is what makes gaps alike. `threads` are the lanes of the threads that
    launched on the device; `meetings` the MPI calls in which these met those of other ranks; `in_mpi` the time in which
    any of them is in a call of MPI."""

    chains: Chains
    root_slices: RootSlices
    root_totals: CauseTotals
    context: GapContext
    root_context: GapContext
    keys: GapGroupKeys
    collectives: Collectives
    threads: IntArray
    meetings: Collectives
    in_mpi: Intervals


def roots_of(found: DeviceGaps) -> DeviceRoots:
    """The root causes of a device's idle time."""
    host, reading, slices = found.host, found.reading, found.slices
    calls, floor = reading.activity.api_calls.rows, reading.settings.thresholds.root_floor
    lane = laid(_lane(found))
    disabled = reading.settings.disabled
    chains = follow(slices, lane, host.launching, host.traced, found.finder, floor, disabled)
    root_slices = laid(attribute_roots(slices, chains, host.names, floor), slices)
    trim()
    draining = [*host.layered.before[SYNCHRONIZATION], *host.layered.before[BLOCKING_COPY]]
    drained = laid(sync_drained(found.frame, draining, host.host.axis, lane))
    context = _context(found, lane, chains, drained)
    keys = laid(GapGroupKeys.of(context, found.ledger.dominant))
    threads = launching_lanes(found.device, calls, host.host.axis)
    trim()
    return DeviceRoots(
        **asdict(found),
        chains=chains,
        root_slices=root_slices,
        root_totals=found.ledger if root_slices.slices is slices else add_up(root_slices.slices),
        context=context,
        root_context=replace(context, slices=root_slices.slices),
        keys=keys,
        collectives=find_collectives(found.device, calls, reading.ranges, reading.strings),
        threads=threads,
        meetings=mpi_meetings(host.host.mpi, threads, host.host.axis),
        in_mpi=time_in_mpi(host.host.mpi, threads, host.host.axis),
    )


def _lane(found: DeviceGaps) -> IntArray:
    """The lane of the thread that launched the operation behind each gap, on the axis of the host; -1 for none."""
    lane = found.reading.activity.api_calls.rows.lanes_at(found.host.host.axis, found.frame.call)
    return once(lane, lambda codes: codes.astype(np.int32))


def _context(found: DeviceGaps, lane: IntArray, chains: Chains, drained: Drained) -> GapContext:
    """The gaps with all that describes them."""
    host, reading, slices, dominant = found.host, found.reading, found.slices, found.ledger.dominant
    calls, floor = host.tables.os_calls.names, reading.settings.thresholds.root_floor
    return GapContext(
        device=found.device,
        frame=found.frame,
        slices=slices,
        ledger=found.ledger,
        drained=drained,
        lane=lane,
        axis=host.host.axis,
        ranges=host.placed,
        strings=reading.strings,
        thread_names=host.traced.thread_names,
        samples=host.host.samples,
        leaf_symbols=host.leaf_symbols,
        wake_chains=WakeChains(slices, chains, host.names, host.files, host.leaf_symbols, calls, floor),
        host_side=HostSide(found.frame, slices, dominant, lane, host.host, host.call_chains, host.python_stacks),
    )


# Each nanosecond of the device in a row of the table of time.


class DeviceTime(DeviceRoots, frozen=True):
    """The `time` of a device by bottleneck, where waits for other devices are charged to `sync`. `kinds` is the variant
    of the root cause of each slice, `slice_bottlenecks` its bottleneck. `device_waits` are the calls in which threads
    waited for the device, `made` the idle time that these caused.

    The second thread makes: `launch`, how work reached the device; all gaps in a few bytes each; and `flames`, the idle
    time by root cause and the waits for the device as stacks."""

    kinds: IntArray
    slice_bottlenecks: IntArray
    device_waits: DeviceWaitCalls
    made: Made
    time: TimeTable
    launch: Deferred[Launch]
    packed_gaps: Deferred[GapsPacked]
    flames: Deferred[FlameGraph]


def time_of(found: DeviceRoots, background: Background) -> DeviceTime:
    """The time of a device by bottleneck."""
    launch = background.begin(_launch, found)
    packed_gaps = background.begin(_packed_gaps, found)
    rooted, context, host = found.root_slices, found.root_context, found.host
    slices, axis = rooted.slices, host.host.axis
    kinds = laid(slice_kinds(context, host.layered, Attribution.by_root(rooted)))
    waits = _device_waits(found)
    slice_bottlenecks = laid(_slice_bottlenecks(found, kinds))
    limit = found.reading.settings.thresholds.gap_sm_active
    idle = idle_pieces(
        slices,
        slice_bottlenecks,
        rooted.own,
        taken(found.context.lane, slices.rows.gap),
        waits,
        foreign_time(Intervals(found.gaps.start, found.gaps.end), found.measured, limit),
        axis,
        Intervals.empty() if found.unseen else compiling(found.reading.ranges, axis),
        waits_seen=bool(len(host.host.os_calls) or len(host.host.scheduling.on_cpu)),
    )
    idle = laid(idle, rooted, waits)
    device, hollow = found.device, found.hollow.result()
    migrates = device.operations.migration & device.running
    busy = busy_pieces(
        found.split,
        demand_migrations(host.memory, device.ids),
        Intervals.empty() if hollow is None else hollow,
        union(Intervals(device.operations.start, device.operations.end)[migrates]),
    )
    calls = (host.layered.before[SYNCHRONIZATION], host.layered.inside[SYNCHRONIZATION])
    others = waited_for(slices, found.context.lane, calls, found.awaited, axis)
    time = in_order(idle, busy, others, rooted.own, slices.rows.cause)
    time = laid(time, rooted.own, slices.rows.cause)
    made = idle.made
    del idle, busy, others
    trim()
    return DeviceTime(
        **asdict(found),
        kinds=kinds,
        slice_bottlenecks=slice_bottlenecks,
        device_waits=waits,
        made=made,
        time=time,
        launch=launch,
        packed_gaps=packed_gaps,
        flames=background.begin(flame_graph, found.split, context, found.keys, rooted, found.chains, waits),
    )


def _launch(found: DeviceRoots) -> Launch:
    """How work reached the device, and how far the host was ahead."""
    host, activity, limits = found.host, found.reading.activity, found.reading.settings.thresholds
    context, layered, window = found.context, host.layered, found.window
    untraced = untraced_launches_on(found.device, activity, found.reading.untraced())
    durations, graphs = host.call_durations, (untraced, host.partial_graphs)
    ahead = depth_of_queue(context, layered, activity, window.parts, limits)
    return launch_report(context, window, found.inside, activity, durations, layered, *graphs, ahead, limits)


def _packed_gaps(found: DeviceRoots) -> GapsPacked:
    return pack_gaps(found.gaps, found.ledger, pack_places(found.keys, found.context.lane >= 0))


def _device_waits(found: DeviceRoots) -> DeviceWaitCalls:
    device, before, axis = found.device, found.host.layered.before, found.host.host.axis
    calls, launch = found.reading.activity.api_calls.rows, device.launch[device.launch >= 0]
    lane = calls.lanes_at(axis, launch)
    launches = sorted_times(axis.position(lane, calls.start.take(launch))[picked(lane >= 0)])
    waits, copies = before[SYNCHRONIZATION], before[BLOCKING_COPY]
    return DeviceWaitCalls.of(waits, copies, device.number, found.split.busy, launches, axis)


def _slice_bottlenecks(found: DeviceRoots, kinds: IntArray) -> IntArray:
    """The bottleneck of each slice by its root cause; unknown for all of them if too many rows are missing."""
    rows = found.root_slices.slices.rows
    if found.unseen:
        return np.full(len(rows), BOTTLENECK_NUMBER["unknown"], dtype=np.int8)
    return bottlenecks_of(rows.cause, kinds)
