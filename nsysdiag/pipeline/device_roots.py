"""The steps of one device that follow waits to their roots, and what describes its gaps."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.communication import communication
from nsysdiag.config.settings import Settings
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.collectives import Collectives, find_collectives
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.python_stacks import PythonStacks
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapKeys
from nsysdiag.gaps.launch_frame import LaunchFrame
from nsysdiag.ledger.drained import Drained, sync_drained
from nsysdiag.ledger.ledger import CauseTotals, Ledger, Slices, add_up
from nsysdiag.pipeline.stages import Stages
from nsysdiag.stacks.call_sites import HostSide
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.trace.columns import Strings
from nsysdiag.wakeups.batches import RootSlices, attribute_roots
from nsysdiag.wakeups.levels import Chains, follow
from nsysdiag.wakeups.loaders import Finder, HostTrace, ThreadNames, WaitingThreads
from nsysdiag.wakeups.waits import Files
from nsysdiag.wakeups.wake_chain import WakeChains

steps: Stages = Stages()


@steps.step(spills=True)
def lane(frame: LaunchFrame, activity: DeviceActivity, host: HostActivity) -> IntArray:
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


@steps.step(spills=True, trims=True)
def root_slices(slices: Slices, chains: Chains, names: ThreadNames, settings: Settings) -> RootSlices:
    """The slices by root cause."""
    return attribute_roots(slices, chains, names, settings.thresholds.root_floor)


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


@steps.step(spills=True)
def drained(frame: LaunchFrame, draining: list[EvidenceLayer], host: HostActivity, lane: IntArray) -> Drained:
    """The gaps that a synchronization opened."""
    return sync_drained(frame, draining, host.axis, lane)


@steps.step()
def context(
    device: DeviceTimeline,
    frame: LaunchFrame,
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
def root_totals(root_slices: RootSlices, slices: Slices, ledger: Ledger) -> CauseTotals:
    """Idle time by root cause."""
    return ledger if root_slices.slices is slices else add_up(root_slices.slices)


@steps.step(spills=True)
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


@steps.step()
def in_mpi(host: HostActivity, threads: IntArray) -> Intervals:
    """The time in which any of these threads is in a call of MPI."""
    return communication.time_in_mpi(host.mpi, threads, host.axis)
