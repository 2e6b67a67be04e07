"""The first part of one device: its window, its gaps and what they were lost to."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
from msgspec import Struct

from nsysdiag.account.filling import hollow_time
from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.counters.counters import Measured
from nsysdiag.diagnosis.missing import Missing, missing_of
from nsysdiag.events.capture import launches_begin
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.findings.pointers import EmptyIterations, empty_iterations
from nsysdiag.gaps.gaps import Calibration, DeviceSide, Gaps, LaunchFrame, calibrate, event_waits, find_gaps, frame_of
from nsysdiag.iterations.chosen import FEWEST_CHOSEN, AnalysisWindow
from nsysdiag.iterations.iterations import main_loop
from nsysdiag.iterations.loop import LAYER, Loop
from nsysdiag.kernels.facts import KernelRow
from nsysdiag.kernels.kernels import kernel_rows
from nsysdiag.kernels.limits import residency
from nsysdiag.ledger.classify import classify
from nsysdiag.ledger.ledger import Ledger, Slices, WindowSplit, ledger_of, split_window
from nsysdiag.ledger.untraced_graphs import untraced_on
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.levels import finest_level, overview


class DeviceGaps(Struct, frozen=True):
    """A device, the window under analysis and the idle time in it: `slices` is what each nanosecond was lost to,
    `ledger` their sums. `awaited` is the other device whose event held the operation behind each gap. `inside` are the
    operations that tables count: all of the device, or those that start inside a narrowed window.

    The second thread makes: `loops`, those of the whole work or the steps that the user names; `repeating`, the one
    whose repeats are the iterations; `without_work`, iterations in which the device was given nothing to do (None for a
    narrowed window); `hollow`, the compute time in which most of the chip was empty (None where the trace cannot tell);
    what is `missing`; the table of `kernels`; and the `overview` of the timeline in buckets (None if not requested, or
    if nothing ran)."""

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
    loops: Future[list[Loop]]
    repeating: Future[Loop | None]
    without_work: Future[EmptyIterations | None]
    hollow: Future[Intervals | None]
    missing: Future[Missing]
    kernels: Future[list[KernelRow]]
    overview: Future[TimelineLevels | None]


def gaps_of(device: DeviceTimeline, reading: Reading, host: HostReading, background: Background) -> DeviceGaps:
    """The gaps of a device, classified."""
    activity, window = reading.activity, reading.windows[device.key]
    missing = background.begin(_missing, device, reading, host)
    split = laid(split_window(device, window.parts), device, window)
    measured = reading.counters.result().of(device)
    hollow = background.begin(_hollow, device, activity, split, measured)
    loops = background.begin(_loops, device, window, reading)
    repeating = background.begin(_repeating, loops)
    without_work = background.begin(_without_work, device, window, reading, host)
    every = laid(find_gaps(device, window.whole), device, window)
    calibration = calibrate(every, device, activity, event_waits(every, device, activity).present)
    gaps = find_gaps(device, window.parts) if window.narrowed else every
    del every
    waits = laid(event_waits(gaps, device, activity), device, activity, gaps)
    frame = laid(frame_of(gaps, device, activity, calibration, waits), device, activity, gaps, waits)
    slices = laid(_slices(DeviceSide(frame, device, activity, waits), reading, host))
    ledger = laid(ledger_of(slices, len(gaps)))
    inside = _inside(device, window)
    trim()
    return DeviceGaps(
        device,
        window,
        split,
        measured,
        gaps,
        calibration,
        waits.other.astype(np.int16),
        frame,
        slices,
        ledger,
        inside,
        loops,
        repeating,
        without_work,
        hollow,
        missing,
        kernels=background.begin(kernel_rows, device, inside, reading.strings),
        overview=background.begin(_overview, device, window, gaps, ledger, reading),
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


SLOW_BORDER = 1.5
"""Times the median: so slow is a repeat in which launches begin to be in the file, if another pass begins there."""


def _repeating(loops: Future[list[Loop]]) -> Loop | None:
    return main_loop(loops.result())


def _without_work(
    device: DeviceTimeline, window: AnalysisWindow, reading: Reading, host: HostReading
) -> EmptyIterations | None:
    if window.narrowed:
        return None
    return empty_iterations(device, reading.activity.api_calls.rows, reading.ranges, host.host.axis.threads)


def _hollow(
    device: DeviceTimeline, activity: DeviceActivity, split: WindowSplit, measured: Measured | None
) -> Intervals | None:
    return hollow_time(device, split, residency(activity.shapes, device.gpu), measured)


def _slices(side: DeviceSide, reading: Reading, host: HostReading) -> Slices:
    dropped = host.partial_graphs.spans.get(side.device.number, Intervals.empty())
    untraced = untraced_on(side.device, reading.activity, host.untraced)
    return classify(side, host.layered, untraced, reading.settings.disabled, dropped)


def _inside(device: DeviceTimeline, window: AnalysisWindow) -> BoolArray:
    if not (window.narrowed or window.late):
        return np.ones(len(device.operations), dtype=np.bool_)
    return contains(window.parts, device.operations.start)


def _missing(device: DeviceTimeline, reading: Reading, host: HostReading) -> Missing:
    unseen, reported = reading.unseen.result(), reading.trace.events_dropped
    return missing_of(device, reading.activity, unseen, host.partial_graphs, reported=reported)


def _overview(
    device: DeviceTimeline, window: AnalysisWindow, gaps: Gaps, ledger: Ledger, reading: Reading
) -> TimelineLevels | None:
    if not reading.settings.timeline:
        return None
    return overview(device, window, gaps, ledger, finest_level(len(reading.devices)))
