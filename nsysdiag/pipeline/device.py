"""The steps of one device, from its operations to the root cause of every idle nanosecond."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains
from nsysdiag.causes.evidence import Layer
from nsysdiag.communication import communication
from nsysdiag.config.settings import Settings
from nsysdiag.counters import report as counter_report
from nsysdiag.counters.counters import Counters
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.counters.measured import measured_sm_active
from nsysdiag.counters.report import Measured
from nsysdiag.diagnosis.missing import Missing, UnseenLaunches, missing_of
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.collectives import Collectives, find_collectives
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.python_stacks import PythonStacks
from nsysdiag.findings import empty_iterations
from nsysdiag.findings.empty_iterations import EmptyIterations
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.keys import GapKeys
from nsysdiag.gaps.calibration import Calibration, calibrate
from nsysdiag.gaps.gaps import Gaps, find_gaps
from nsysdiag.gaps.launch_frame import DeviceSide, Frame, frame_of
from nsysdiag.gaps.stream_waits import EventWaits, event_waits
from nsysdiag.iterations.device import DeviceIterations, device_iterations
from nsysdiag.iterations.iterations import Iterations, find_iterations
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.kernels.kernels import kernel_rows
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit, split_window
from nsysdiag.ledger.classify import LayeredEvidence, classify
from nsysdiag.ledger.drained import Drained, sync_drained
from nsysdiag.ledger.ledger import Ledger, Totals, add_up, ledger_of, pack_gaps
from nsysdiag.ledger.untraced_graphs import untraced_on
from nsysdiag.pipeline.stages import Steps
from nsysdiag.report import GapsPacked, KernelRow
from nsysdiag.stacks.call_sites import HostSide
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.levels import finest_level
from nsysdiag.timeline.levels import overview as draw_overview
from nsysdiag.trace.strings import Strings
from nsysdiag.utilization.facts import Utilization
from nsysdiag.utilization.utilization import utilization as measure_utilization
from nsysdiag.wakeups.host_trace import Finder, HostTrace, WaitingThreads
from nsysdiag.wakeups.levels import Chains, follow
from nsysdiag.wakeups.root_attribution import RootSlices, attribute_roots
from nsysdiag.wakeups.thread_names import ThreadNames
from nsysdiag.wakeups.waits import Files
from nsysdiag.wakeups.wake_chain import WakeChains

steps = Steps()


@steps.step()
def window(device: DeviceTimeline, windows: dict[str, AnalysisWindow]) -> AnalysisWindow:
    """The time under analysis."""
    return windows[device.key]


@steps.step(background=True)
def repeating(
    device: DeviceTimeline, window: AnalysisWindow, activity: DeviceActivity, ranges: NvtxRanges
) -> Iterations | None:
    """The iterations of the whole work; None for a narrowed window, which holds too little."""
    return None if window.narrowed else find_iterations(device, activity.api_calls.rows, ranges, window.whole)


@steps.step(background=True)
def without_work(
    device: DeviceTimeline, window: AnalysisWindow, activity: DeviceActivity, ranges: NvtxRanges, host: HostActivity
) -> EmptyIterations | None:
    """Iterations in which the device was given nothing to do; None for a narrowed window."""
    if window.narrowed:
        return None
    return empty_iterations.empty_iterations(device, activity.api_calls.rows, ranges, host.axis.threads)


@steps.step()
def split(device: DeviceTimeline, window: AnalysisWindow) -> WindowSplit:
    """The window by what the device did."""
    return split_window(device, window.parts)


@steps.step()
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


@steps.step()
def waits(device: DeviceTimeline, activity: DeviceActivity, gaps: Gaps) -> EventWaits:
    """Where the operation behind a gap waited for an event."""
    return event_waits(gaps, device, activity)


@steps.step()
def frame(
    device: DeviceTimeline, activity: DeviceActivity, gaps: Gaps, calibration: Calibration, waits: EventWaits
) -> Frame:
    """How the launch behind each gap lies to it."""
    return frame_of(gaps, device, activity, calibration, waits)


@steps.step()
def slices(
    device: DeviceTimeline,
    activity: DeviceActivity,
    frame: Frame,
    waits: EventWaits,
    layered: LayeredEvidence,
    untraced: dict[int, Intervals],
    settings: Settings,
) -> Slices:
    """What each nanosecond of the gaps was lost to."""
    side = DeviceSide(frame, device, activity, waits)
    return classify(side, layered, untraced_on(device, activity, untraced), settings.disabled)


@steps.step()
def ledger(slices: Slices, gaps: Gaps) -> Ledger:
    """Idle time by cause."""
    return ledger_of(slices, len(gaps))


@steps.step()
def iterations(repeating: Iterations | None, slices: Slices, split: WindowSplit, strings: Strings) -> DeviceIterations:
    """What the iterations are made of."""
    return device_iterations(repeating, slices, split, strings)


@steps.step()
def inside(device: DeviceTimeline, window: AnalysisWindow) -> BoolArray:
    """The operations that tables count: all of the device, or those that start inside a narrowed window."""
    if not window.narrowed:
        return np.ones(len(device.operations), dtype=np.bool_)
    return contains(window.parts, device.operations.start)


@steps.step(background=True)
def missing(device: DeviceTimeline, activity: DeviceActivity, unseen: UnseenLaunches, events_dropped: bool) -> Missing:
    """What was not recorded."""
    return missing_of(device, activity, unseen, reported=events_dropped)


@steps.step(background=True)
def packed_gaps(gaps: Gaps, ledger: Ledger) -> GapsPacked:
    """All gaps in a few bytes each."""
    return pack_gaps(gaps, ledger)


@steps.step()
def measured(device: DeviceTimeline, counters: Counters) -> Measured | None:
    """The GPU metrics of this device."""
    return counters.of(device)


@steps.step(background=True)
def metrics(
    measured: Measured | None,
    device: DeviceTimeline,
    activity: DeviceActivity,
    ranges: NvtxRanges,
    strings: Strings,
    window: AnalysisWindow,
    gaps: Gaps,
    split: WindowSplit,
    iterations: DeviceIterations,
    settings: Settings,
) -> GpuMetrics | None:
    """What the GPU's own counters say of the window."""
    if measured is None or not window.length_ns:
        return None
    return counter_report.gpu_metrics(
        measured,
        device,
        activity.api_calls.rows,
        ranges,
        strings,
        window.parts,
        Intervals(gaps.start, gaps.end),
        split,
        iterations.report,
        settings.thresholds.clock,
    )


@steps.step(background=True)
def utilization(
    device: DeviceTimeline,
    activity: DeviceActivity,
    strings: Strings,
    window: AnalysisWindow,
    split: WindowSplit,
    inside: BoolArray,
    metrics: GpuMetrics | None,
    settings: Settings,
) -> Utilization:
    """How well the GPU was used, by its counters or by what was launched."""
    sms = measured_sm_active(metrics)
    return measure_utilization(device, window.parts, split, inside, activity.shapes, strings, settings, sms)


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
    """The timeline in buckets; None where none is asked for, or nothing ran."""
    if not settings.timeline:
        return None
    return draw_overview(device, window, gaps, ledger, finest_level(len(activity.devices)))


@steps.step()
def lane(frame: Frame, activity: DeviceActivity, host: HostActivity) -> IntArray:
    """The lane of the thread that launched the operation behind each gap, on the axis of the host; -1 for none."""
    calls = activity.api_calls.rows
    if len(calls) == 0:
        return np.full(len(frame.call), -1, dtype=np.int32)
    return np.where(frame.call >= 0, host.axis.rank(calls.thread[frame.call]), -1).astype(np.int32)


@steps.step()
def chains(
    slices: Slices,
    lane: IntArray,
    launching: WaitingThreads,
    host_trace: HostTrace,
    finder: Finder,
    settings: Settings,
) -> Chains:
    """The wake chains behind the waits of launching threads."""
    return follow(slices, lane, launching, host_trace, finder, settings.thresholds.root_floor, settings.disabled)


@steps.step(trims=True)
def root_slices(slices: Slices, chains: Chains, names: ThreadNames) -> RootSlices:
    """The slices by root cause."""
    return attribute_roots(slices, chains, names)


@steps.step()
def wake_chains(
    slices: Slices,
    chains: Chains,
    names: ThreadNames,
    files: Files,
    leaf_symbols: LeafSymbols,
    host_trace: HostTrace,
    settings: Settings,
) -> WakeChains:
    """The chains as records."""
    calls = host_trace.tables.os_calls.names
    return WakeChains(slices, chains, names, files, leaf_symbols, calls, settings.thresholds.root_floor)


@steps.step()
def drained(frame: Frame, draining: list[Layer], host: HostActivity, lane: IntArray) -> Drained:
    """The gaps that a synchronization opened."""
    return sync_drained(frame, draining, host.axis, lane)


@steps.step()
def context(
    device: DeviceTimeline,
    frame: Frame,
    slices: Slices,
    ledger: Ledger,
    drained: Drained,
    lane: IntArray,
    host: HostActivity,
    host_trace: HostTrace,
    strings: Strings,
    leaf_symbols: LeafSymbols,
    wake_chains: WakeChains,
    call_chains: CallChains,
    python_stacks: PythonStacks,
) -> GapContext:
    """The gaps with all that describes them."""
    return GapContext(
        device=device,
        frame=frame,
        slices=slices,
        ledger=ledger,
        drained=drained,
        lane=lane,
        axis=host.axis,
        ranges=host_trace.ranges,
        strings=strings,
        thread_names=host_trace.thread_names,
        samples=host.samples,
        leaf_symbols=leaf_symbols,
        wake_chains=wake_chains,
        host_side=HostSide(frame, slices, ledger.dominant, lane, host, call_chains, python_stacks),
    )


@steps.step()
def root_totals(root_slices: RootSlices, slices: Slices, ledger: Ledger) -> Totals:
    """Idle time by root cause."""
    return ledger if root_slices.slices is slices else add_up(root_slices.slices)


@steps.step()
def keys(context: GapContext, ledger: Ledger) -> GapKeys:
    """What makes gaps alike."""
    return GapKeys.of(context, ledger.dominant)


@steps.step()
def collectives(device: DeviceTimeline, activity: DeviceActivity, ranges: NvtxRanges, strings: Strings) -> Collectives:
    """The communication kernels."""
    return find_collectives(device, activity.api_calls.rows, ranges, strings)


@steps.step()
def threads(device: DeviceTimeline, activity: DeviceActivity, host: HostActivity) -> IntArray:
    """The lanes of the threads that launched on the device."""
    return communication.launching_lanes(device, activity.api_calls.rows, host.axis)


@steps.step()
def meetings(host: HostActivity, threads: IntArray) -> Collectives:
    """The MPI calls in which these threads met those of other ranks."""
    return communication.mpi_meetings(host.mpi, threads, host.axis)
