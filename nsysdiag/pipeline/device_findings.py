"""The findings of one device: what is worth doing something about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs
from msgspec.structs import replace

from nsysdiag.account.bottlenecks import (
    DeviceWaitCalls,
    IdlePieces,
    Made,
    TimePiece,
    busy_pieces,
    compiling,
    idle_pieces,
    in_order,
)
from nsysdiag.account.filling import foreign_time, waited_for
from nsysdiag.account.outside import Start
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.arrays.spill import evict, laid, trim
from nsysdiag.bottlenecks import BOTTLENECK_NUMBER
from nsysdiag.causes import BLOCKING_COPY, SYNCHRONIZATION, bottlenecks_of
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.missing import DOUBTED, MOST
from nsysdiag.events.collectives import Collectives, find_collectives
from nsysdiag.findings.attribution import Attribution, Shares, shares_of, slice_kinds
from nsysdiag.findings.before_work import before_findings
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.findings import IdleFindings, findings_of
from nsysdiag.findings.kernels import KernelWork, kernel_findings, single_precision_findings, unfused_findings
from nsysdiag.findings.phase_work import JudgedTime
from nsysdiag.findings.pointers import pointers_of
from nsysdiag.findings.spot_facts import FindingContext
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapGroupKeys
from nsysdiag.gaps.gaps import LaunchFrame
from nsysdiag.kernels.communication import launching_lanes, mpi_meetings, time_in_mpi
from nsysdiag.ledger.ledger import CauseTotals, Drained, add_up, sync_drained
from nsysdiag.memory.device import demand_migrations
from nsysdiag.pipeline.device_gaps import DeviceGaps
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.programs.names import ids_of
from nsysdiag.report import DeviceReport
from nsysdiag.stacks.call_sites import HostSide
from nsysdiag.time.table import TimeTable
from nsysdiag.wakeups.batches import Batches, RootSlices, attribute_roots, batches_of
from nsysdiag.wakeups.levels import Chains, follow
from nsysdiag.wakeups.wake_chain import WakeChains
from nsysdiag.wakeups.wakers import WakeFinder

# The second part of one device: waits followed to their roots, and what describes its gaps.


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
        ranges=host.placed,
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


# The third part of one device: each nanosecond of it in a row of the table of time.


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
    limit = reading.settings.thresholds.gap_sm_active
    foreign = foreign_time(Intervals(found.gaps.start, found.gaps.end), found.measured, limit)
    slices = roots.root_slices.slices
    return idle_pieces(
        slices,
        slice_bottlenecks,
        roots.root_slices.own,
        roots.context.lane[slices.rows.gap],
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


class DeviceFindings(Struct, frozen=True):
    """The findings of a device, and those of them on its idle time, with what threads did behind waits."""

    found: list[Finding]
    idle: IdleFindings


def judged_time(found: DeviceGaps, time: TimeTable, focus: Focus, before: Start | None) -> JudgedTime:
    """The time that findings are about; `before` is judged time before the work of the device."""
    before_ns = 0 if before is None else sum(before.account.values())
    return JudgedTime.of(time, found.window.parts, focus.parts, before_ns)


class IdleShares(Struct, frozen=True):
    """Whose the judged idle time is, and the places in the program that it is at."""

    attribution: Attribution
    batches: Batches
    shares: Shares
    paths: list[list[str]]

    @classmethod
    def of(
        cls,
        roots: DeviceRoots,
        account: DeviceAccount,
        time: TimeTable,
        judged: JudgedTime,
        reading: Reading,
        host: HostReading,
        finder: Callable[[], WakeFinder],
    ) -> IdleShares:
        """Needs no figures of the device."""
        attribution, floor = Attribution.by_root(roots.root_slices), reading.settings.thresholds.root_floor
        batches = batches_of(roots.root_slices, roots.chains, finder, floor, judged.parts)
        kinds, waited = batches.longest(account.kinds, attribution.cause), (account.device_waits, account.made)
        context, charged = roots.root_context, account.slice_bottlenecks
        made = shares_of(context, host.layered, roots.keys, attribution, kinds, charged, time, waited, judged.parts)
        shares, paths = laid(made)
        trim()
        return cls(attribution, batches, shares, paths)


def device_findings(
    found: DeviceGaps,
    roots: DeviceRoots,
    account: DeviceAccount,
    time: TimeTable,
    judged: JudgedTime,
    idle_shares: IdleShares,
    report: DeviceReport,
    before: Start | None,
    reading: Reading,
    host: HostReading,
) -> DeviceFindings:
    """The findings of a device; less sure where rows are missing. `before` is judged time before its first work."""
    limits, missing = reading.settings.findings, found.missing.result()
    context, idle = _idle_findings(roots, account, time, judged, idle_shares, report, reading, host)
    work = KernelWork.of(found.device, judged, time, reading.activity.shapes, reading.strings, report.gpu_metrics)
    made = [
        *idle.found,
        *kernel_findings(report, context, time, work),
        *single_precision_findings(report, context),
        *unfused_findings(report, context),
        *before_findings(report.key, judged, before, host.tables.samples, host.call_chains, limits),
        *pointers_of(report, context, found.without_work.result(), idle.found),
    ]
    trim()
    if missing.reasons():
        made = [structs.replace(each, confidence=DOUBTED * each.confidence) for each in made]
    return DeviceFindings(made, idle)


def _idle_findings(
    roots: DeviceRoots,
    account: DeviceAccount,
    time: TimeTable,
    judged: JudgedTime,
    idle: IdleShares,
    report: DeviceReport,
    reading: Reading,
    host: HostReading,
) -> tuple[FindingContext, IdleFindings]:
    """The findings on time in which the device waited, or worked exposed, and what all findings of it are about."""
    root_context = roots.root_context
    context = FindingContext(
        root_context,
        roots.keys,
        idle.attribution,
        Sightings.of(root_context, host.layered, idle.attribution.own),
        account.device_waits,
        time,
        idle.batches,
        idle.paths,
        host.range_sets(),
        judged,
        reading.settings.findings,
        tuple(ids_of(host.frameworks)),
        host_unseen=reading.host_unseen,
        asked=reading.asked,
    )
    gpus = [each.key for each in reading.devices]
    return context, findings_of(report, context, idle.shares, time, gpus)
