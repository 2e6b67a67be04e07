"""The third part of one device: each nanosecond of it in a row of the table of time."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.account.bottlenecks import (
    MPI_START_UP,
    DeviceWaitCalls,
    IdlePieces,
    Made,
    TimePiece,
    busy_pieces,
    compiling,
    idle_pieces,
    in_order,
)
from nsysdiag.account.filling import foreign_time
from nsysdiag.account.other_devices import waited_for
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.causes import BLOCKING_COPY, SYNCHRONIZATION, bottlenecks_of
from nsysdiag.causes.evidence import named
from nsysdiag.diagnosis.missing import MOST
from nsysdiag.findings.attribution import Attribution, slice_kinds
from nsysdiag.memory.unified import demand_migrations
from nsysdiag.pipeline.device_gaps import DeviceGaps
from nsysdiag.pipeline.device_roots import DeviceRoots
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.time.table import TimeTable


class DeviceAccount(Struct, frozen=True):
    """The time of a device by bottleneck, where waits for other devices are charged to `sync`. `kinds` is the variant
    of the root cause of each slice, `slice_bottlenecks` its bottleneck. `device_waits` are the calls in which threads
    waited for the device, `made` the idle time that these caused."""

    kinds: IntArray
    slice_bottlenecks: IntArray
    device_waits: DeviceWaitCalls
    made: Made
    time: TimeTable


def account_of(found: DeviceGaps, roots: DeviceRoots, reading: Reading, host: HostReading) -> DeviceAccount:
    """The time of a device by bottleneck."""
    rooted, context = roots.root_slices, roots.root_context
    kinds = laid(slice_kinds(context, host.layered, Attribution.by_root(rooted)))
    waits = _device_waits(found, reading, host)
    slice_bottlenecks = laid(_families(found, roots, kinds))
    idle = laid(_idle(found, roots, slice_bottlenecks, waits, reading, host), rooted, waits)
    time = in_order(idle, _busy(found, host), _other_devices(found, roots, host), rooted.own, rooted.slices.rows.cause)
    time = laid(time, rooted.own, rooted.slices.rows.cause)
    trim()
    return DeviceAccount(kinds, slice_bottlenecks, waits, idle.made, time)


def _device_waits(found: DeviceGaps, reading: Reading, host: HostReading) -> DeviceWaitCalls:
    device, before, axis = found.device, host.layered.before, host.host.axis
    calls, launch = reading.activity.api_calls.rows, device.launch[device.launch >= 0]
    lane = axis.lane(calls.thread[launch])
    launches = np.sort(axis.position(lane, calls.start[launch])[lane >= 0])
    waits, copies = before[SYNCHRONIZATION], before[BLOCKING_COPY]
    return DeviceWaitCalls.of(waits, copies, device.number, found.split.busy, launches, axis)


def _families(found: DeviceGaps, roots: DeviceRoots, kinds: IntArray) -> IntArray:
    """The bottleneck of each slice by its root cause; unknown where so many rows are missing that what looks idle may
    have been work."""
    rows = roots.root_slices.slices.rows
    if found.missing.result().unseen_share >= MOST:
        return np.full(len(rows), BOTTLENECK_NUMBER["unknown"], dtype=np.int8)
    return bottlenecks_of(rows.cause, kinds).astype(np.int8)


def _idle(
    found: DeviceGaps,
    roots: DeviceRoots,
    slice_bottlenecks: IntArray,
    waits: DeviceWaitCalls,
    reading: Reading,
    host: HostReading,
) -> IdlePieces:
    """The idle time by bottleneck. In `foreign` another program had the GPU, by its counters; `compiles` is the time
    inside ranges that compile, empty where so many rows are missing that all idle time is unknown."""
    unseen = found.missing.result().unseen_share >= MOST
    compiles = Intervals.empty() if unseen else compiling(reading.ranges, host.host.axis)
    mpi, limit = host.host.mpi, reading.settings.thresholds.gap_sm_active
    foreign = foreign_time(Intervals(found.gaps.start, found.gaps.end), found.measured, limit)
    slices = roots.root_slices.slices
    return idle_pieces(
        slices,
        slice_bottlenecks,
        roots.root_slices.own,
        roots.context.lane[slices.rows.gap],
        union(mpi.take(~named(mpi, MPI_START_UP)).spans),
        waits,
        foreign,
        host.host.axis,
        compiles,
        waits_seen=bool(len(host.host.os_calls) or len(host.host.scheduling.on_cpu)),
    )


def _busy(found: DeviceGaps, host: HostReading) -> list[TimePiece]:
    """The time of work by bottleneck."""
    device, hollow = found.device, found.hollow.result()
    operations = device.operations
    mine = operations.migration & device.running
    return busy_pieces(
        found.split,
        demand_migrations(host.memory, device.ids),
        Intervals.empty() if hollow is None else hollow,
        union(Intervals(operations.start[mine], operations.end[mine])),
    )


def _other_devices(found: DeviceGaps, roots: DeviceRoots, host: HostReading) -> IntArray:
    """The number of the other device that each slice waited for, -1 for none."""
    calls = (host.layered.before[SYNCHRONIZATION], host.layered.inside[SYNCHRONIZATION])
    return waited_for(roots.root_slices.slices, roots.context.lane, calls, found.awaited, host.host.axis)
