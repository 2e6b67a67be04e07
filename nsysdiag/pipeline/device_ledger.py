"""The first steps of one device: its window, its gaps and what they were lost to, and what follows from these alone."""

from __future__ import annotations

import numpy as np

from nsysdiag.account.filling import hollow_time
from nsysdiag.arrays.intervals import BoolArray, Intervals, contains
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import Counters, Measured
from nsysdiag.diagnosis.missing import Missing, UnseenLaunches, missing_of
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.findings import pointers as empty_iterations
from nsysdiag.findings.pointers import EmptyIterations
from nsysdiag.gaps.gaps import Calibration, EventWaits, Gaps, calibrate, event_waits, find_gaps
from nsysdiag.gaps.launch_frame import DeviceSide, LaunchFrame, frame_of
from nsysdiag.iterations.chosen import FEWEST_CHOSEN
from nsysdiag.iterations.iterations import find_loops, main_loop
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.kernels.kernels import kernel_rows
from nsysdiag.kernels.shapes import residency
from nsysdiag.ledger.busy import WindowSplit, split_window
from nsysdiag.ledger.classify import LayeredEvidence, classify
from nsysdiag.ledger.ledger import Ledger, Slices, ledger_of
from nsysdiag.ledger.untraced_graphs import PartialReplays, untraced_on
from nsysdiag.pipeline.stages import Stages
from nsysdiag.report import KernelRow
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.levels import finest_level
from nsysdiag.timeline.levels import overview as draw_overview
from nsysdiag.trace.columns import Strings

steps: Stages = Stages()


@steps.step()
def window(device: DeviceTimeline, windows: dict[str, AnalysisWindow]) -> AnalysisWindow:
    """The time under analysis."""
    return windows[device.key]


@steps.step(background=True)
def loops(
    device: DeviceTimeline,
    window: AnalysisWindow,
    activity: DeviceActivity,
    ranges: NvtxRanges,
    strings: Strings,
    settings: Settings,
    chosen: dict[str, list[Loop]],
) -> list[Loop]:
    """The loops of the whole work, or the steps that the user names. A narrowed window holds too little to find any:
    of it only such steps as are named, and whole inside it."""
    if settings.step is not None:
        named = chosen.get(device.key, [])
        inside = [loop.inside(window.parts) for loop in named] if window.narrowed else named
        return [loop for loop in inside if len(loop) >= FEWEST_CHOSEN]
    if window.narrowed:
        return []
    calls = activity.api_calls
    return find_loops(device, calls.rows, ranges, strings, window.whole, names=calls.names)


@steps.step(background=True)
def repeating(loops: list[Loop]) -> Loop | None:
    """The loop whose repeats are the iterations."""
    return main_loop(loops)


@steps.step(background=True)
def without_work(
    device: DeviceTimeline, window: AnalysisWindow, activity: DeviceActivity, ranges: NvtxRanges, host: HostActivity
) -> EmptyIterations | None:
    """Iterations in which the device was given nothing to do; None for a narrowed window."""
    if window.narrowed:
        return None
    return empty_iterations.empty_iterations(device, activity.api_calls.rows, ranges, host.axis.threads)


@steps.step(spills=True)
def split(device: DeviceTimeline, window: AnalysisWindow) -> WindowSplit:
    """The window by what the device did."""
    return split_window(device, window.parts)


@steps.step()
def measured(device: DeviceTimeline, counters: Counters) -> Measured | None:
    """The GPU metrics of this device."""
    return counters.of(device)


@steps.step(background=True)
def hollow(
    device: DeviceTimeline, activity: DeviceActivity, split: WindowSplit, measured: Measured | None
) -> Intervals | None:
    """The compute time in which most of the chip was empty; None where the trace cannot tell."""
    return hollow_time(device, split, residency(activity.shapes, device.gpu), measured)


@steps.step(spills=True)
def all_gaps(device: DeviceTimeline, window: AnalysisWindow) -> Gaps:
    """The gaps in all of the device's work."""
    return find_gaps(device, window.whole)


@steps.step()
def calibration(device: DeviceTimeline, activity: DeviceActivity, all_gaps: Gaps) -> Calibration:
    """How long a launch takes on this device, and the shortest gap between two operations."""
    return calibrate(all_gaps, device, activity, event_waits(all_gaps, device, activity).present)


@steps.step()
def gaps(device: DeviceTimeline, window: AnalysisWindow, all_gaps: Gaps) -> Gaps:
    """The gaps inside the window."""
    return find_gaps(device, window.parts) if window.narrowed else all_gaps


@steps.step(spills=True)
def waits(device: DeviceTimeline, activity: DeviceActivity, gaps: Gaps) -> EventWaits:
    """Where the operation behind a gap waited for an event."""
    return event_waits(gaps, device, activity)


@steps.step(spills=True)
def frame(
    device: DeviceTimeline, activity: DeviceActivity, gaps: Gaps, calibration: Calibration, waits: EventWaits
) -> LaunchFrame:
    """How the launch behind each gap relates to it."""
    return frame_of(gaps, device, activity, calibration, waits)


@steps.step(spills=True)
def slices(
    device: DeviceTimeline,
    activity: DeviceActivity,
    frame: LaunchFrame,
    waits: EventWaits,
    layered: LayeredEvidence,
    untraced: dict[int, Intervals],
    partial_graphs: PartialReplays,
    settings: Settings,
) -> Slices:
    """What each nanosecond of the gaps was lost to."""
    side = DeviceSide(frame, device, activity, waits)
    dropped = partial_graphs.spans.get(device.number, Intervals.empty())
    return classify(side, layered, untraced_on(device, activity, untraced), settings.disabled, dropped)


@steps.step(spills=True)
def ledger(slices: Slices, gaps: Gaps) -> Ledger:
    """Idle time by cause."""
    return ledger_of(slices, len(gaps))


@steps.step()
def inside(device: DeviceTimeline, window: AnalysisWindow) -> BoolArray:
    """The operations that tables count: all of the device, or those that start inside a narrowed window."""
    if not window.narrowed:
        return np.ones(len(device.operations), dtype=np.bool_)
    return contains(window.parts, device.operations.start)


@steps.step(background=True)
def missing(
    device: DeviceTimeline,
    activity: DeviceActivity,
    unseen: UnseenLaunches,
    partial_graphs: PartialReplays,
    events_dropped: bool,
) -> Missing:
    """What was not recorded."""
    return missing_of(device, activity, unseen, partial_graphs, reported=events_dropped)


@steps.step(background=True)
def kernels(device: DeviceTimeline, inside: BoolArray, strings: Strings) -> list[KernelRow]:
    """The table of kernels."""
    return kernel_rows(device, inside, strings)


@steps.step(background=True)
def overview(
    device: DeviceTimeline,
    activity: DeviceActivity,
    window: AnalysisWindow,
    gaps: Gaps,
    ledger: Ledger,
    settings: Settings,
) -> TimelineLevels | None:
    """The timeline in buckets; None if not requested, or if nothing ran."""
    if not settings.timeline:
        return None
    return draw_overview(device, window, gaps, ledger, finest_level(len(activity.devices)))
