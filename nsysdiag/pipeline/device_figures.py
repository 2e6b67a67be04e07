"""The steps of one device that make the figures of its report."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, intersect, union
from nsysdiag.causes import ALLOCATION
from nsysdiag.communication.communication import collective_kinds, mpi_calls
from nsysdiag.config.settings import Settings
from nsysdiag.copies.copies import copy_report
from nsysdiag.counters import counters as counter_report
from nsysdiag.counters.counters import Counters, Measured, gap_notes, measured_sm_active, with_sm_active
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.diagnosis.health import device_notes
from nsysdiag.diagnosis.missing import Missing
from nsysdiag.events.collectives import Collectives
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.memory import Memory
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.sharing import Sharing
from nsysdiag.gap_groups.details import GapContext, describe_gaps, largest_gaps
from nsysdiag.gap_groups.groups import GapKeys, kinds_of_gaps, pack_places, signature_rows
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.report import DeviceIterations, device_iterations, pack_iterations
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.launches.launches import depth_of_queue, launch_report
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.ledger.ledger import Ledger, Slices, pack_gaps
from nsysdiag.ledger.untraced_graphs import PartialReplays
from nsysdiag.memory import unified
from nsysdiag.memory.device import device_memory
from nsysdiag.memory.facts import DeviceMemory, UnifiedMemory
from nsysdiag.phases.phases import JobPhases
from nsysdiag.pipeline.stages import Stages
from nsysdiag.report import (
    Communication,
    Copies,
    Gap,
    GapsPacked,
    IterationReport,
    KernelRow,
    Launch,
    OpCounts,
    QueueDepth,
    SignatureRow,
    Window,
)
from nsysdiag.time.table import TimeTable
from nsysdiag.trace.columns import Strings
from nsysdiag.utilization.facts import Utilization
from nsysdiag.utilization.utilization import utilization as measure_utilization
from nsysdiag.wakeups.batches import RootSlices

steps: Stages = Stages()


@steps.step()
def iterations(repeating: Loop | None, time: TimeTable, strings: Strings, job_phases: JobPhases) -> DeviceIterations:
    """What the iterations are made of."""
    pauses = Intervals.of([(each.start, each.end) for each in job_phases.phases if each.name == "pause"])
    return device_iterations(repeating, time, strings, pauses)


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
def ahead(
    context: GapContext,
    window: AnalysisWindow,
    activity: DeviceActivity,
    layered: LayeredEvidence,
    settings: Settings,
) -> QueueDepth | None:
    """How far the host was ahead."""
    return depth_of_queue(context, layered, activity, window.parts, settings.thresholds)


@steps.step(background=True)
def launch(
    context: GapContext,
    window: AnalysisWindow,
    inside: BoolArray,
    activity: DeviceActivity,
    layered: LayeredEvidence,
    untraced: dict[int, Intervals],
    partial_graphs: PartialReplays,
    ahead: QueueDepth | None,
    settings: Settings,
) -> Launch:
    """How work reached the device."""
    return launch_report(
        context, window, inside, activity, layered, untraced, partial_graphs, ahead, settings.thresholds
    )


@steps.step(background=True)
def packed_gaps(gaps: Gaps, ledger: Ledger, keys: GapKeys, lane: IntArray) -> GapsPacked:
    """All gaps in a few bytes each."""
    return pack_gaps(gaps, ledger, pack_places(keys, lane >= 0))


@steps.step()
def signatures(context: GapContext, keys: GapKeys, iterations: DeviceIterations) -> list[SignatureRow]:
    """Gaps that look alike, added up."""
    return signature_rows(context, keys, iterations.steady)


@steps.step()
def migrated_share(device: DeviceTimeline, split: WindowSplit) -> float:
    """The share of the time with kernels in which pages of unified memory migrated as well."""
    operations = device.operations
    if not operations.migration.any() or not split.kernel_ns:
        return 0.0
    spans = Intervals(operations.start, operations.end)
    kernels = union(spans[(operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)])
    return intersect(kernels, union(spans[operations.migration])).total() / kernels.total()


@steps.step()
def notes(
    device: DeviceTimeline,
    window: AnalysisWindow,
    missing: Missing,
    counters: Counters,
    metrics: GpuMetrics | None,
    sharing: Sharing,
    migrated_share: float,
    batched_launches: bool,
    settings: Settings,
) -> list[str]:
    """What a reader must know before trusting the numbers."""
    found = device_notes(
        sharing=sharing.notes.get(device.key),
        malformed=device.malformed,
        narrowed_away=window.narrowed and window.length_ns == 0,
        migrated_share=migrated_share,
        batched=batched_launches,
    )
    unlikely = gap_notes(metrics, settings.thresholds.gap_sm_active)
    return [*found, *missing.note(), *counters.absence(device), *unlikely]


@steps.step()
def largest(context: GapContext, measured: Measured | None, settings: Settings) -> list[Gap]:
    """The largest gaps in full."""
    return with_sm_active(describe_gaps(context, largest_gaps(context, settings.gaps)), measured)


@steps.step()
def copies(
    device: DeviceTimeline,
    activity: DeviceActivity,
    inside: BoolArray,
    split: WindowSplit,
    iterations: DeviceIterations,
    memory: Memory,
    settings: Settings,
) -> Copies:
    """Copies and sets."""
    return copy_report(device, activity, inside, split, iterations.steady, memory.limits[device.key], settings.memory)


@steps.step()
def communication(
    kernels: list[KernelRow],
    collectives: Collectives,
    inside: BoolArray,
    split: WindowSplit,
    host: HostActivity,
    gaps: Gaps,
    lane: IntArray,
    threads: IntArray,
) -> Communication:
    """Communication kernels and MPI calls."""
    rows = [row for row in kernels if row.communication]
    return Communication(
        kernels=rows,
        total_ns=sum(row.total_ns for row in rows),
        exposed_ns=split.exposed_comm_ns,
        overlapped_ns=split.overlapped_comm_ns,
        kinds=collective_kinds(collectives, inside, split),
        mpi=mpi_calls(host.mpi, gaps, lane, threads, host.axis),
    )


@steps.step()
def unified_memory(
    device: DeviceTimeline, activity: DeviceActivity, window: AnalysisWindow, memory: Memory, settings: Settings
) -> UnifiedMemory | None:
    """Migrations and page faults."""
    return unified.unified_memory(memory, device.ids, window, activity.duration_ns, settings.memory.thrash_moves)


@steps.step()
def allocated(
    device: DeviceTimeline,
    activity: DeviceActivity,
    layered: LayeredEvidence,
    window: AnalysisWindow,
    iterations: DeviceIterations,
    ledger: Ledger,
    memory: Memory,
    settings: Settings,
) -> DeviceMemory | None:
    """The memory of the device over time."""
    return device_memory(
        memory.usage,
        device,
        activity.api_calls,
        layered.facts.creates_context,
        window,
        iterations.steady,
        memory.limits[device.key],
        ledger.total.get(ALLOCATION, 0),
        settings.memory,
    )


@steps.step(background=True)
def packed_iterations(
    iterations: DeviceIterations,
    root_slices: RootSlices,
    slices: Slices,
    time: TimeTable,
    device: DeviceTimeline,
    kernels: list[KernelRow],
    context: GapContext,
    keys: GapKeys,
    signatures: list[SignatureRow],
) -> IterationReport | None:
    """The report on the iterations with the numbers of every steady one, where there are any."""
    if iterations.report is None or iterations.steady is None:
        return iterations.report
    steady = iterations.steady
    roots = None if root_slices.slices is slices else time.root_causes(steady)
    kinds = kinds_of_gaps(context.frame.gaps, keys, signatures)
    packed = pack_iterations(steady, iterations.parts, roots, device, kernels, kinds, context.strings)
    return structs.replace(iterations.report, packed=packed)


@steps.step()
def shown_window(window: AnalysisWindow, activity: DeviceActivity) -> Window:
    """The window as a record."""
    parts = list(zip(window.parts.start.tolist(), window.parts.end.tolist(), strict=True))
    return Window(
        start_ns=parts[0][0] if parts else 0,
        end_ns=parts[-1][1] if parts else 0,
        parts=parts,
        reason=window.reason,
        outside_ns=window.outside_ns,
        edge_ns=window.edge_ns(activity.duration_ns),
    )


@steps.step()
def operation_counts(device: DeviceTimeline, inside: BoolArray) -> OpCounts:
    """How many operations there are of each category."""
    of = np.bincount(device.operations.category[inside], minlength=len(Category))
    return OpCounts(
        kernel=int(of[Category.KERNEL]),
        memcpy=int(of[Category.MEMCPY]),
        memset=int(of[Category.MEMSET]),
        graph=int(of[Category.GRAPH]),
        zero_length=int((inside & ~device.running).sum()),
        malformed=device.malformed,
    )
