"""The steps of one device that count its time to bottlenecks, and meet those of the others in the phases of the job."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.account.bottlenecks import (
    MPI_START_UP,
    DeviceWaitCalls,
    IdlePieces,
    Piece,
    busy_pieces,
    compiling,
    idle_pieces,
    in_order,
)
from nsysdiag.account.filling import foreign_time
from nsysdiag.account.other_devices import followed, waited_for
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.causes import BLOCKING_COPY, SYNCHRONIZATION, families_of
from nsysdiag.causes.evidence import named
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import Measured
from nsysdiag.diagnosis.missing import MOST, Missing
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.memory import Memory
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.findings.attribution import Attribution, slice_kinds
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gaps.gaps import EventWaits, Gaps
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.memory.unified import demand_migrations
from nsysdiag.pipeline.stages import Stages
from nsysdiag.time.table import CODE, TimeTable
from nsysdiag.wakeups.batches import RootSlices

steps: Stages = Stages()


@steps.step()
def root_context(context: GapContext, root_slices: RootSlices) -> GapContext:
    """The gaps by root cause."""
    return replace(context, slices=root_slices.slices)


@steps.step(spills=True)
def kinds(root_context: GapContext, root_slices: RootSlices, layered: LayeredEvidence) -> IntArray:
    """The variant of its root cause that each slice shows."""
    return slice_kinds(root_context, layered, Attribution.by_root(root_slices))


@steps.step()
def device_waits(
    device: DeviceTimeline, activity: DeviceActivity, layered: LayeredEvidence, split: WindowSplit, host: HostActivity
) -> DeviceWaitCalls:
    """The calls in which threads waited for the device."""
    before, axis, calls = layered.before, host.axis, activity.api_calls.rows
    launch = device.launch[device.launch >= 0]
    lane = axis.rank(calls.thread[launch])
    launches = np.sort(axis.position(lane, calls.start[launch])[lane >= 0])
    return DeviceWaitCalls.of(before[SYNCHRONIZATION], before[BLOCKING_COPY], device.number, split.busy, launches, axis)


@steps.step(spills=True)
def families(root_slices: RootSlices, kinds: IntArray, missing: Missing) -> IntArray:
    """The bottleneck of each slice by its root cause; unknown where so many rows are missing that what looks idle may
    have been work."""
    rows = root_slices.slices.rows
    if missing.unseen_share >= MOST:
        return np.full(len(rows), CODE["unknown"], dtype=np.int8)
    return families_of(rows.cause, kinds).astype(np.int8)


@steps.step()
def compiles(ranges: NvtxRanges, host: HostActivity, missing: Missing) -> Intervals:
    """The time inside ranges that compile; empty where so many rows are missing that all idle time is unknown."""
    return Intervals.empty() if missing.unseen_share >= MOST else compiling(ranges, host.axis)


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


@steps.step(spills=True)
def idle(
    root_slices: RootSlices,
    families: IntArray,
    lane: IntArray,
    host: HostActivity,
    device_waits: DeviceWaitCalls,
    foreign: Intervals,
    compiles: Intervals,
) -> IdlePieces:
    """The idle time by bottleneck."""
    start_up = named(host.mpi, MPI_START_UP)
    return idle_pieces(
        root_slices.slices,
        families,
        root_slices.own,
        lane[root_slices.slices.rows.gap],
        union(host.mpi.take(~start_up).spans),
        device_waits,
        foreign,
        host.axis,
        compiles,
        waits_seen=bool(len(host.os_calls) or len(host.scheduling.on_cpu)),
    )


@steps.step()
def busy(device: DeviceTimeline, split: WindowSplit, hollow: Intervals | None, memory: Memory) -> list[Piece]:
    """The time of work by bottleneck."""
    operations = device.operations
    mine = operations.migration & device.running
    return busy_pieces(
        split,
        demand_migrations(memory, device.ids),
        Intervals.empty() if hollow is None else hollow,
        union(Intervals(operations.start[mine], operations.end[mine])),
    )


@steps.step(spills=True, trims=True)
def own_time(idle: IdlePieces, busy: list[Piece], other_devices: IntArray, root_slices: RootSlices) -> TimeTable:
    """All time of the window; waits for other devices are charged to `sync`."""
    return in_order(idle, busy, other_devices, root_slices.own, root_slices.slices.rows.cause)


@steps.step()
def numbered(device: DeviceTimeline, own_time: TimeTable) -> tuple[int, TimeTable]:
    """This with the number of the device."""
    return device.number, own_time


@steps.joined("numbered")
def of_every_device(numbered: list[tuple[int, TimeTable]]) -> dict[int, TimeTable]:
    """The time of all devices under analysis, by their numbers."""
    return dict(numbered)


@steps.step(spills=True)
def time(device: DeviceTimeline, of_every_device: dict[int, TimeTable]) -> TimeTable:
    """All time of the window; waits for other devices are charged to what these did."""
    return followed(device.number, of_every_device)
