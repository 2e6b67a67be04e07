"""The second part of one device: waits followed to their roots, and what describes its gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.arrays.spill import evict, laid, trim
from nsysdiag.communication.communication import launching_lanes, mpi_meetings, time_in_mpi
from nsysdiag.events.collectives import Collectives, find_collectives
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys
from nsysdiag.gaps.launch_frame import LaunchFrame
from nsysdiag.ledger.drained import Drained, sync_drained
from nsysdiag.ledger.ledger import CauseTotals, add_up
from nsysdiag.pipeline.device_gaps import DeviceGaps
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.stacks.call_sites import HostSide
from nsysdiag.wakeups.batches import RootSlices, attribute_roots
from nsysdiag.wakeups.levels import Chains, follow
from nsysdiag.wakeups.wake_chain import WakeChains
from nsysdiag.wakeups.wakers import WakeFinder


class DeviceRoots(Struct, frozen=True):
    """The idle time of a device by root cause. `context` describes the gaps by what the launching threads did,
    `root_context` by its root causes; `keys` is what makes gaps alike. `threads` are the lanes of the threads that
    launched on the device; `meetings` the MPI calls in which these met those of other ranks; `in_mpi` the time in which
    any of them is in a call of MPI."""

    chains: Chains
    root_slices: RootSlices
    root_totals: CauseTotals
    drained: Drained
    context: GapContext
    root_context: GapContext
    keys: GapGroupKeys
    collectives: Collectives
    threads: IntArray
    meetings: Collectives
    in_mpi: Intervals


def roots_of(found: DeviceGaps, reading: Reading, host: HostReading, finder: Callable[[], WakeFinder]) -> DeviceRoots:
    """The root causes of a device's idle time."""
    settings, floor = reading.settings, reading.settings.thresholds.root_floor
    slices, activity = found.slices, reading.activity
    lane = laid(_lane(found.frame, reading, host))
    chains = follow(slices, lane, host.launching, host.traced, finder, floor, settings.disabled)
    evict()
    root_slices = laid(attribute_roots(slices, chains, host.names, floor), slices)
    trim()
    drained = laid(sync_drained(found.frame, host.draining, host.host.axis, lane))
    context = _context(found, reading, host, lane, chains, drained)
    keys = laid(GapGroupKeys.of(context, found.ledger.dominant))
    threads = launching_lanes(found.device, activity.api_calls.rows, host.host.axis)
    trim()
    return DeviceRoots(
        chains,
        root_slices,
        root_totals=found.ledger if root_slices.slices is slices else add_up(root_slices.slices),
        drained=drained,
        context=context,
        root_context=replace(context, slices=root_slices.slices),
        keys=keys,
        collectives=find_collectives(found.device, activity.api_calls.rows, reading.ranges, reading.strings),
        threads=threads,
        meetings=mpi_meetings(host.host.mpi, threads, host.host.axis),
        in_mpi=time_in_mpi(host.host.mpi, threads, host.host.axis),
    )


def _lane(frame: LaunchFrame, reading: Reading, host: HostReading) -> IntArray:
    """The lane of the thread that launched the operation behind each gap, on the axis of the host; -1 for none."""
    calls = reading.activity.api_calls.rows
    if len(calls) == 0:
        return np.full(len(frame.call), -1, dtype=np.int32)
    return np.where(frame.call >= 0, host.host.axis.lane(calls.thread[frame.call]), -1).astype(np.int32)


def _context(
    found: DeviceGaps, reading: Reading, host: HostReading, lane: IntArray, chains: Chains, drained: Drained
) -> GapContext:
    """The gaps with all that describes them."""
    dominant = found.ledger.dominant
    return GapContext(
        device=found.device,
        frame=found.frame,
        slices=found.slices,
        ledger=found.ledger,
        drained=drained,
        lane=lane,
        axis=host.host.axis,
        ranges=reading.ranges,
        strings=reading.strings,
        thread_names=host.traced.thread_names,
        samples=host.host.samples,
        leaf_symbols=host.leaf_symbols,
        wake_chains=_wake_chains(found, reading, host, chains),
        host_side=HostSide(found.frame, found.slices, dominant, lane, host.host, host.call_chains, host.python_stacks),
    )


def _wake_chains(found: DeviceGaps, reading: Reading, host: HostReading, chains: Chains) -> WakeChains:
    """The chains as records."""
    calls, floor = host.tables.os_calls.names, reading.settings.thresholds.root_floor
    return WakeChains(found.slices, chains, host.names, host.files, host.leaf_symbols, calls, floor)
