"""From one device's timeline to its part of the report: every step in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import structs

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, union
from nsysdiag.arrays.malloc_trim import trim
from nsysdiag.arrays.spill import evict, spill
from nsysdiag.causes import ALLOCATION, PLACE, PREEMPTION, SYNCHRONIZATION
from nsysdiag.communication.communication import collective_kinds, launching_lanes, mpi_calls, mpi_meetings
from nsysdiag.copies.copies import copy_report
from nsysdiag.counters.counters import gap_notes
from nsysdiag.counters.measured import with_sm_active
from nsysdiag.diagnosis.device import device_trouble
from nsysdiag.diagnosis.health import device_notes
from nsysdiag.diagnosis.missing import DOUBTED
from nsysdiag.diagnosis.verdict import VerdictInput, verdict
from nsysdiag.events.collectives import Collectives, find_collectives
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.findings.attribution import Attribution
from nsysdiag.findings.findings import findings_of
from nsysdiag.findings.text import FindingContext
from nsysdiag.gap_groups.details import GapContext, describe_gaps, largest_gaps
from nsysdiag.gap_groups.groups import kinds_of_gaps, signature_rows
from nsysdiag.gap_groups.keys import GapKeys
from nsysdiag.gaps.calibration import Calibration, calibrate
from nsysdiag.gaps.gaps import find_gaps
from nsysdiag.gaps.launch_frame import DeviceSide, Frame, frame_of
from nsysdiag.gaps.stream_waits import event_waits
from nsysdiag.iterations.packing import pack_iterations
from nsysdiag.iterations.report import idle_parts
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.launches.launches import median_work_ns
from nsysdiag.launches.report import launch_report
from nsysdiag.ledger.assignment import Slices
from nsysdiag.ledger.busy import WindowSplit, split_window
from nsysdiag.ledger.classify import LayeredEvidence, classify
from nsysdiag.ledger.drained import Drained, sync_drained
from nsysdiag.ledger.ledger import Ledger, Totals, add_up, coverage, ledger_of
from nsysdiag.ledger.untraced_graphs import untraced_on
from nsysdiag.memory.device import MemoryContext, device_memory
from nsysdiag.memory.facts import DeviceMemory
from nsysdiag.memory.unified import unified_memory
from nsysdiag.pipeline.device_background import Begun, Searching
from nsysdiag.pipeline.iterations import Steps, steps_of
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.pipeline.shared import Shared
from nsysdiag.report import CollectiveKind, Communication, DeviceId, DeviceReport, KernelRow, MpiCall, OpCounts, Window
from nsysdiag.stacks.call_sites import HostSide
from nsysdiag.timeline.timeline import with_lanes
from nsysdiag.wakeups.root_attribution import RootSlices
from nsysdiag.wakeups.wake_chain import WakeChains


def analyze_device(device: DeviceTimeline, window: AnalysisWindow, shared: Shared, *, last: bool) -> DeviceResult:
    """Every step for one device, in order. After the `last` device nobody asks any more who woke whom."""
    activity, settings, axis = shared.activity, shared.settings, shared.layered.host.axis
    searching = Searching.of(device, window, shared)
    split = spill(split_window(device, window.parts))
    frame, calibration, slices = _classified(device, window, shared)
    ledger = ledger_of(slices, len(frame.gaps))
    steps = steps_of(searching.iterations, slices, split, shared)
    begun = Begun.of(device, frame.gaps, ledger, window, split, steps, shared)
    lane = _lanes(frame, activity, shared.layered)
    rooted, wake_chains = shared.roots.roots(slices, lane, shared.leaf_symbols)
    rooted = spill(rooted)
    if last:
        shared.roots.host_trace.forget_finder()
    trim()
    context = _context(device, frame, slices, ledger, lane, wake_chains, shared)
    root = add_up(rooted.slices) if rooted.slices is not slices else ledger
    keys = GapKeys.of(context, ledger.dominant)
    collectives = find_collectives(device, activity.api_calls.rows, shared.ranges, shared.strings)
    threads = launching_lanes(device, activity.api_calls.rows, axis)
    meetings = mpi_meetings(shared.layered.host.mpi, threads, axis)
    report = _report(context, root, keys, window, split, calibration, shared, collectives, threads, steps, begun)
    evict()
    report = _with_iterations(report, steps, context, rooted, keys)
    by_root = replace(context, slices=rooted.slices)
    trouble = device_trouble(report, by_root, window.parts, split, steps.steady, settings)
    report = structs.replace(report, trouble=trouble)
    evict()
    ground = FindingContext(by_root, shared.layered, keys, Attribution.by_root(rooted), settings.findings)
    found = findings_of(report, ground, searching.without_work)
    if begun.missing.result().reasons():
        found = [structs.replace(each, confidence=DOUBTED * each.confidence) for each in found]
    levels, timeline = begun.overview, None
    if levels is not None:
        timeline = with_lanes(levels, context, threads, report, found, activity, narrowed=window.narrowed)
    return DeviceResult(report, rooted.slices, found, timeline, split, collectives, meetings)


def _classified(device: DeviceTimeline, window: AnalysisWindow, shared: Shared) -> tuple[Frame, Calibration, Slices]:
    """The gaps inside the window, by what all gaps tell of the device, and what each nanosecond of them was lost to."""
    activity = shared.activity
    everywhere = find_gaps(device, window.whole)
    calibration = calibrate(everywhere, device, activity, event_waits(everywhere, device, activity).present)
    gaps = find_gaps(device, window.parts) if window.narrowed else everywhere
    waits = event_waits(gaps, device, activity)
    frame = spill(frame_of(gaps, device, activity, calibration, waits))
    untraced = untraced_on(device, activity, shared.untraced)
    side = DeviceSide(frame, device, activity, waits)
    return frame, calibration, spill(classify(side, shared.layered, untraced, shared.settings.disabled))


def _context(
    device: DeviceTimeline,
    frame: Frame,
    slices: Slices,
    ledger: Ledger,
    lane: IntArray,
    wake_chains: WakeChains,
    shared: Shared,
) -> GapContext:
    host = shared.layered.host
    return GapContext(
        device=device,
        frame=frame,
        slices=slices,
        ledger=ledger,
        drained=sync_drained(frame, shared.draining, host.axis, lane),
        lane=lane,
        axis=host.axis,
        ranges=shared.ranges,
        strings=shared.strings,
        thread_names=shared.thread_names,
        samples=host.samples,
        leaf_symbols=shared.leaf_symbols,
        wake_chains=wake_chains,
        host_side=HostSide(
            frame=frame,
            slices=slices,
            dominant=ledger.dominant,
            lane=lane,
            host=host,
            chains=shared.call_chains,
            python=shared.python_stacks,
        ),
    )


def _with_iterations(
    report: DeviceReport, steps: Steps, context: GapContext, rooted: RootSlices, keys: GapKeys
) -> DeviceReport:
    """With the numbers of every steady iteration, where there are any."""
    if steps.report is None or steps.steady is None:
        return report
    roots = idle_parts(rooted.slices, steps.steady) if rooted.slices is not context.slices else None
    kinds = kinds_of_gaps(context.frame.gaps, keys, report.signatures)
    packed = pack_iterations(steps.steady, steps.parts, roots, context.device, report.kernels, kinds, context.strings)
    return structs.replace(report, iterations=structs.replace(steps.report, packed=packed))


def _lanes(frame: Frame, activity: DeviceActivity, layered: LayeredEvidence) -> IntArray:
    calls = activity.api_calls.rows
    if len(calls) == 0:
        return np.full(len(frame.call), -1, dtype=np.int32)
    return np.where(frame.call >= 0, layered.host.axis.rank(calls.thread[frame.call]), -1).astype(np.int32)


def _report(
    context: GapContext,
    root: Totals,
    keys: GapKeys,
    window: AnalysisWindow,
    split: WindowSplit,
    calibration: Calibration,
    shared: Shared,
    collectives: Collectives,
    threads: IntArray,
    steps: Steps,
    begun: Begun,
) -> DeviceReport:
    device, ledger, settings = context.device, context.ledger, shared.settings
    inside = begun.inside
    trim()
    launch = launch_report(
        context, window, inside, shared.activity, shared.layered, shared.untraced, settings.thresholds
    )
    evict()
    share = coverage(ledger.total)
    missing = begun.missing.result()
    given = VerdictInput(
        split=split,
        ledger=root.total,
        drained_ns=_drained_ns(context),
        coverage=share,
        median_interval_ns=launch.median_interval_ns,
        median_work_ns=median_work_ns(context.device, inside, launch.median_kernel_ns),
        labels=root.labels,
        off_cpu_ns=ledger.total.get(PREEMPTION, 0),
        missing=missing,
        thresholds=settings.thresholds,
    )
    notes = device_notes(
        sharing=shared.sharing.get(device.key),
        malformed=device.malformed,
        narrowed_away=window.narrowed and window.length_ns == 0,
        migrated_share=_migrated_share(device, split),
        batched=shared.batched_launches,
    )
    measured = shared.counters.of(device)
    signatures = signature_rows(context, keys, steps.steady)
    metrics, utilized = begun.measuring.result()
    kernels = begun.kernels.result()
    notes += [*missing.note(), *shared.counters.absence(device), *gap_notes(metrics, settings.thresholds.gap_sm_active)]
    return DeviceReport(
        key=device.key,
        name=device.gpu.name,
        sm_count=device.gpu.sm_count,
        ids=[DeviceId(pid=pid, device_id=number) for pid, number in device.ids],
        window=_window(window, shared.activity.duration_ns),
        window_ns=split.window_ns,
        busy_ns=split.busy_ns,
        idle_ns=split.idle_ns,
        compute_ns=split.compute_ns,
        exposed_comm_ns=split.exposed_comm_ns,
        exposed_copy_ns=split.exposed_copy_ns,
        overlapped_comm_ns=split.overlapped_comm_ns,
        ops=_counts(device, inside),
        ledger=ledger.total,
        root_ledger=dict(root.total),
        labels=ledger.labels,
        sync_drained=_drained_summary(context.drained, context.frame),
        coverage=None if share is None else round(share, 6),
        floor_ns=calibration.floor_ns,
        floor_calibrated=calibration.floor_calibrated,
        launch_latency_ns=calibration.latency_ns,
        launch_latency_calibrated=calibration.latency_calibrated,
        verdict=verdict(given),
        gap_count=len(context.frame.gaps),
        gaps=with_sm_active(describe_gaps(context, largest_gaps(context, settings.gaps)), measured),
        gaps_packed=begun.packing.result(),
        signatures=signatures,
        iterations=steps.report,
        launch=launch,
        kernels=kernels,
        copies=copy_report(
            device,
            shared.activity,
            inside,
            split,
            steps.steady,
            shared.memory.limits[device.key],
            settings.memory,
        ),
        communication=_communication(
            kernels,
            split,
            collective_kinds(collectives, inside, split),
            mpi_calls(shared.layered.host.mpi, context.frame.gaps, context.lane, threads, context.axis),
        ),
        utilization=utilized,
        notes=notes,
        root_labels=root.labels,
        gpu_metrics=metrics,
        unified_memory=unified_memory(
            shared.memory, device.ids, window, shared.activity.duration_ns, settings.memory.thrash_moves
        ),
        memory=_memory(context, window, steps.steady, shared),
    )


def _memory(
    context: GapContext, window: AnalysisWindow, steady: Intervals | None, shared: Shared
) -> DeviceMemory | None:
    ground = MemoryContext(
        device=context.device,
        api_calls=shared.activity.api_calls,
        window=window,
        steady=steady,
        chip=shared.memory.limits[context.device.key],
        creates_context=shared.layered.facts.creates_context,
        allocation_idle_ns=context.ledger.total.get(ALLOCATION, 0),
    )
    return device_memory(shared.memory.usage, ground, shared.settings.memory)


def _communication(
    kernels: list[KernelRow], split: WindowSplit, kinds: list[CollectiveKind], mpi: list[MpiCall]
) -> Communication:
    rows = [row for row in kernels if row.communication]
    return Communication(
        kernels=rows,
        total_ns=sum(row.total_ns for row in rows),
        exposed_ns=split.exposed_comm_ns,
        overlapped_ns=split.overlapped_comm_ns,
        kinds=kinds,
        mpi=mpi,
    )


def _window(window: AnalysisWindow, duration_ns: int | None) -> Window:
    parts = list(zip(window.parts.start.tolist(), window.parts.end.tolist(), strict=True))
    return Window(
        start_ns=parts[0][0] if parts else 0,
        end_ns=parts[-1][1] if parts else 0,
        parts=parts,
        reason=window.reason,
        outside_ns=window.outside_ns,
        edge_ns=window.edge_ns(duration_ns),
    )


def _counts(device: DeviceTimeline, inside: BoolArray) -> OpCounts:
    of = np.bincount(device.operations.category[inside], minlength=len(Category))
    return OpCounts(
        kernel=int(of[Category.KERNEL]),
        memcpy=int(of[Category.MEMCPY]),
        memset=int(of[Category.MEMSET]),
        graph=int(of[Category.GRAPH]),
        zero_length=int((inside & ~device.running).sum()),
        malformed=device.malformed,
    )


def _migrated_share(device: DeviceTimeline, split: WindowSplit) -> float:
    """The share of the time with kernels in which pages of unified memory migrated as well."""
    operations = device.operations
    migration = operations.migration
    if not migration.any() or not split.kernel_ns:
        return 0.0
    spans = Intervals(operations.start, operations.end)
    kernels = (operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)
    return intersect(union(spans[kernels]), union(spans[migration])).total() / union(spans[kernels]).total()


def _drained_ns(context: GapContext) -> int:
    """All of the sync-drained gaps, and synchronization in the others: nothing counted twice."""
    gaps, rows = context.frame.gaps, context.slices.rows
    whole = int((gaps.end - gaps.start)[context.drained.flag].sum())
    other = (rows.cause == PLACE[SYNCHRONIZATION]) & ~context.drained.flag[rows.gap]
    return whole + int(context.slices.lengths(other).sum())


def _drained_summary(drained: Drained, frame: Frame) -> dict[str, int]:
    length = (frame.gaps.end - frame.gaps.start)[drained.flag]
    return {"gaps": len(length), "ns": int(length.sum())}
