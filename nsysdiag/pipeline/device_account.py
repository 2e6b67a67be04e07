"""The steps of one device that count its time to bottlenecks, and meet those of the others in the phases of the job."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.account.bottlenecks import CODE, MPI_START_UP, Bottlenecks
from nsysdiag.account.bottlenecks import bottlenecks as divide
from nsysdiag.account.credit import Waits
from nsysdiag.account.families import slice_families
from nsysdiag.account.filling import foreign_time
from nsysdiag.account.other_devices import followed, waited_for
from nsysdiag.account.outside import Outside, Start, evidence_of_start, outside_of, start_of
from nsysdiag.account.phases import device_phases
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.causes import BLOCKING_COPY, SYNCHRONIZATION
from nsysdiag.causes.evidence import CallFacts, named
from nsysdiag.config.settings import Settings
from nsysdiag.counters.report import Measured
from nsysdiag.diagnosis.focus import Focus, focus_of
from nsysdiag.diagnosis.missing import MOST, Missing
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity, HostTables
from nsysdiag.events.memory import Memory
from nsysdiag.findings.attribution import Attribution, slice_kinds
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.keys import GapKeys
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.gaps.stream_waits import EventWaits
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.memory.unified import demand_migrations
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.phases.signal import Loop as PhaseLoop
from nsysdiag.pipeline.stages import Steps
from nsysdiag.wakeups.root_attribution import RootSlices

steps: Steps = Steps()
COLD = "cold"


@steps.step()
def root_context(context: GapContext, root_slices: RootSlices) -> GapContext:
    """The gaps by root cause."""
    return replace(context, slices=root_slices.slices)


@steps.step(spills=True)
def kinds(root_context: GapContext, root_slices: RootSlices, layered: LayeredEvidence) -> IntArray:
    """The variant of its root cause that each slice shows."""
    return slice_kinds(root_context, layered, Attribution.by_root(root_slices))


@steps.step()
def device_waits(device: DeviceTimeline, layered: LayeredEvidence, split: WindowSplit, host: HostActivity) -> Waits:
    """The calls in which threads waited for the device."""
    before = layered.before
    return Waits.of(before[SYNCHRONIZATION], before[BLOCKING_COPY], device.number, split.busy, host.axis)


@steps.step(spills=True)
def families(root_slices: RootSlices, kinds: IntArray, keys: GapKeys, missing: Missing) -> IntArray:
    """The bottleneck of each slice by its root cause; unknown where so many rows are missing that what looks idle may
    have been work."""
    rows = root_slices.slices.rows
    if missing.unseen_share >= MOST:
        return np.full(len(rows), CODE["unknown"], dtype=np.int8)
    return slice_families(rows.cause, kinds, rows.gap, keys)


@steps.step()
def foreign(gaps: Gaps, measured: Measured | None, settings: Settings) -> Intervals:
    """The idle time in which another program had the GPU, by its counters."""
    return foreign_time(Intervals(gaps.start, gaps.end), measured, settings.thresholds.gap_sm_active)


@steps.step()
def other_devices(
    root_slices: RootSlices, lane: IntArray, layered: LayeredEvidence, waits: EventWaits, host: HostActivity
) -> IntArray:
    """The number of the other device that each slice waited for, -1 for none."""
    calls = (layered.before[SYNCHRONIZATION], layered.inside[SYNCHRONIZATION])
    return waited_for(root_slices.slices, lane, calls, waits.other, host.axis)


@steps.step(spills=True, trims=True)
def own_bottlenecks(
    device: DeviceTimeline,
    split: WindowSplit,
    root_slices: RootSlices,
    families: IntArray,
    lane: IntArray,
    host: HostActivity,
    device_waits: Waits,
    hollow: Intervals | None,
    foreign: Intervals,
    other_devices: IntArray,
    memory: Memory,
) -> Bottlenecks:
    """All time of the window by bottleneck; waits for other devices count to `sync`."""
    rows = root_slices.slices.rows
    return divide(
        split,
        root_slices.slices,
        families,
        lane[rows.gap],
        union(host.mpi.take(~named(host.mpi, MPI_START_UP)).spans),
        device_waits,
        demand_migrations(memory, device.ids),
        Intervals.empty() if hollow is None else hollow,
        foreign,
        other_devices,
        host.axis,
    )


@steps.step()
def numbered(device: DeviceTimeline, own_bottlenecks: Bottlenecks) -> tuple[int, Bottlenecks]:
    """These with the number of the device."""
    return device.number, own_bottlenecks


@steps.joined("numbered")
def of_every_device(numbered: list[tuple[int, Bottlenecks]]) -> dict[int, Bottlenecks]:
    """The time of all devices under analysis by bottleneck, by their numbers."""
    return dict(numbered)


@steps.step(spills=True)
def bottlenecks(device: DeviceTimeline, of_every_device: dict[int, Bottlenecks]) -> Bottlenecks:
    """All time of the window by bottleneck; waits for other devices count to what these did."""
    return followed(device.number, of_every_device)


@steps.step()
def outside(window: AnalysisWindow, activity: DeviceActivity, device: DeviceTimeline) -> Outside | None:
    """What the program did from its first CUDA call to the device's first work."""
    return None if window.narrowed else outside_of(window.parts, device, activity.api_calls.rows)


@steps.step()
def signal(
    device: DeviceTimeline,
    window: AnalysisWindow,
    split: WindowSplit,
    bottlenecks: Bottlenecks,
    loops: list[Loop],
    outside: Outside | None,
) -> DeviceSignal:
    """What the device tells about the phases of the job."""
    runs = [PhaseLoop(run, loop.source, loop.name, loop.closed) for loop in loops for run in loop.runs]
    return DeviceSignal(
        device=device,
        window=window.parts,
        split=split,
        startup=bottlenecks.set_of("startup"),
        memory=bottlenecks.set_of("memory"),
        unknown=bottlenecks.set_of("unknown"),
        loops=tuple(runs),
        first_call_ns=None if outside is None else outside.begin,
        narrowed=window.narrowed,
    )


@steps.joined("signal")
def job_phases(signals: list[DeviceSignal]) -> JobPhases:
    """The phases of the job, of all its devices."""
    calls = [each.first_call_ns for each in signals if each.first_call_ns is not None]
    return find_phases(signals, min(calls, default=None), narrowed=any(each.narrowed for each in signals))


@steps.step()
def before_work(
    job_phases: JobPhases, outside: Outside | None, tables: HostTables, activity: DeviceActivity, facts: CallFacts
) -> Start | None:
    """In a cold start what the program did before the device's first work; else None."""
    if outside is None or job_phases.basis != COLD:
        return None
    return start_of(evidence_of_start([outside], tables, activity, facts), outside)


@steps.step(trims=True)
def devices_in_phases(
    job_phases: JobPhases,
    device: DeviceTimeline,
    activity: DeviceActivity,
    slices: Slices,
    split: WindowSplit,
    bottlenecks: Bottlenecks,
    before_work: Start | None,
) -> list[PhaseDevice]:
    """What the device did in each phase."""
    before = None if before_work is None else before_work.account
    keys = [each.key for each in activity.devices]
    return device_phases(job_phases, device.key, slices, split, bottlenecks, before, keys)


@steps.joined("devices_in_phases")
def focus(devices: list[list[PhaseDevice]], job_phases: JobPhases) -> Focus:
    """The time that findings are about."""
    return focus_of(job_phases, devices)
