"""The figures of one device: its part of the report."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
from msgspec import Struct, structs

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import BoolArray, Intervals, intersect, union
from nsysdiag.arrays.spill import evict, trim
from nsysdiag.causes import ALLOCATION
from nsysdiag.counters.counters import gap_notes, gpu_metrics, measured_sm_active, with_sm_active
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.diagnosis.missing import device_notes
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence
from nsysdiag.gap_groups.details import describe_gaps, largest_gaps
from nsysdiag.gap_groups.groups import kinds_of_gaps, pack_places, signature_rows
from nsysdiag.iterations.chosen import AnalysisWindow
from nsysdiag.iterations.facts import IterationReport
from nsysdiag.iterations.loop import NVTX, Loop
from nsysdiag.iterations.report import DeviceIterations, device_iterations, pack_iterations
from nsysdiag.kernels.communication import collective_kinds, mpi_calls
from nsysdiag.kernels.facts import Communication, KernelRow
from nsysdiag.launches.facts import Launch
from nsysdiag.launches.launches import depth_of_queue, launch_report
from nsysdiag.ledger.ledger import WindowSplit, coverage, pack_gaps
from nsysdiag.memory.copies import copy_report
from nsysdiag.memory.device import device_memory, unified_memory
from nsysdiag.memory.facts import Copies, DeviceMemory, UnifiedMemory
from nsysdiag.peaks import link_of
from nsysdiag.phases.phases import JobPhases
from nsysdiag.phases.serving import served_steps, serving_phases
from nsysdiag.phases.steps import named_kinds
from nsysdiag.pipeline.device_findings import DeviceRoots
from nsysdiag.pipeline.device_gaps import DeviceGaps
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.ranges.facts import RangeTree
from nsysdiag.ranges.tree import range_tree
from nsysdiag.report import DeviceId, DeviceReport, Gap, GapsPacked, OpCounts, SignatureRow, Verdict, Window
from nsysdiag.time.table import TimeTable
from nsysdiag.utilization.facts import Utilization
from nsysdiag.utilization.utilization import utilization


class _Inputs(Struct, frozen=True):
    """What all figures of a device are made of."""

    found: DeviceGaps
    roots: DeviceRoots
    time: TimeTable
    iterations: DeviceIterations
    reading: Reading
    host: HostReading


class EarlyFigures(Struct, frozen=True):
    """What the second thread makes of the gaps and their root causes, before the devices meet."""

    launch: Future[Launch]
    packed_gaps: Future[GapsPacked]

    @classmethod
    def of(
        cls, found: DeviceGaps, roots: DeviceRoots, reading: Reading, host: HostReading, background: Background
    ) -> EarlyFigures:
        """Begins them."""
        return cls(background.begin(_launch, found, roots, reading, host), background.begin(_packed_gaps, found, roots))


class BegunFigures(Struct, frozen=True):
    """What the second thread makes of a device once the devices have met, and what that needs."""

    of: _Inputs
    metrics: Future[GpuMetrics | None]
    used: Future[Utilization]
    ranges: Future[RangeTree | None]
    signatures: list[SignatureRow]
    packed_iterations: Future[IterationReport | None]

    @classmethod
    def begin(
        cls,
        found: DeviceGaps,
        roots: DeviceRoots,
        time: TimeTable,
        job_phases: JobPhases,
        reading: Reading,
        host: HostReading,
        background: Background,
    ) -> BegunFigures:
        """Begins them."""
        iterations = _iterations(found.repeating.result(), found.device, time, job_phases, reading)
        of = _Inputs(found, roots, time, iterations, reading, host)
        metrics = background.begin(_metrics, of)
        used = background.begin(_utilization, of, metrics)
        ranges = background.begin(_ranges, of)
        signatures = signature_rows(roots.context, roots.keys, iterations.steady)
        packed_iterations = background.begin(_packed_iterations, of, signatures)
        evict()
        return cls(of, metrics, used, ranges, signatures, packed_iterations)


def figures_of(early: EarlyFigures, begun: BegunFigures) -> DeviceReport:
    """A device's part of the report, without its verdict."""
    of, metrics = begun.of, begun.metrics
    found, roots, reading = of.found, of.roots, of.reading
    notes, largest, copies = _notes(of, metrics), _largest(of), _copies(of)
    kernels = found.kernels.result()
    split, ledger, calibration = found.split, found.ledger, found.calibration
    drained = (found.gaps.end - found.gaps.start)[roots.drained.flag]
    covered = coverage(ledger.total)
    report = DeviceReport(
        key=found.device.key,
        name=found.device.gpu.name,
        sm_count=found.device.gpu.sm_count,
        ids=[DeviceId(pid=pid, device_id=number) for pid, number in found.device.ids],
        window=_window(found.window, reading.activity),
        window_ns=split.window_ns,
        busy_ns=split.busy_ns,
        idle_ns=split.idle_ns,
        compute_ns=split.compute_ns,
        exposed_comm_ns=split.exposed_comm_ns,
        exposed_copy_ns=split.exposed_copy_ns,
        overlapped_comm_ns=split.overlapped_comm_ns,
        ops=_counts(found.device, found.inside),
        ledger=ledger.total,
        root_ledger=dict(roots.root_totals.total),
        labels=ledger.labels,
        sync_drained={"gaps": len(drained), "ns": int(drained.sum())},
        coverage=None if covered is None else round(covered, 6),
        floor_ns=calibration.floor_ns,
        floor_calibrated=calibration.floor_calibrated,
        launch_latency_ns=calibration.latency_ns,
        launch_latency_calibrated=calibration.latency_calibrated,
        verdict=Verdict(id="", sentence=""),
        gap_count=len(found.gaps),
        gaps=largest,
        gaps_packed=early.packed_gaps.result(),
        signatures=begun.signatures,
        iterations=begun.packed_iterations.result(),
        launch=early.launch.result(),
        kernels=kernels,
        copies=copies,
        communication=_communication(of, kernels),
        utilization=begun.used.result(),
        notes=notes,
        root_labels=roots.root_totals.labels,
        gpu_metrics=metrics.result(),
        unified_memory=_unified_memory(of),
        memory=_allocated(of),
        ranges=begun.ranges.result(),
        sliced=found.missing.result().sliced,
    )
    trim()
    return report


def _iterations(
    repeating: Loop | None, device: DeviceTimeline, time: TimeTable, job_phases: JobPhases, reading: Reading
) -> DeviceIterations:
    """What the iterations are made of."""
    kinds = None
    if repeating is not None and repeating.closed and repeating.has_slow:
        kinds = named_kinds(repeating.spans, device, reading.strings)
    pauses = Intervals.of([(each.start, each.end) for each in job_phases.phases if each.name == "pause"])
    if repeating is None or not repeating.closed:
        return device_iterations(repeating, time, reading.strings, pauses, kinds)
    calls, strings = reading.activity.api_calls.rows, reading.strings
    served = served_steps(repeating.spans, device, calls, reading.ranges, strings)
    found = device_iterations(repeating, time, strings, pauses, kinds, None if served is None else served.phase)
    if served is None or found.report is None:
        return found
    steady = np.setdiff1d(np.arange(len(repeating)), found.report.left_out)
    report = structs.replace(found.report, serving=serving_phases(served, repeating.spans, steady, time))
    return structs.replace(found, report=report)


def _metrics(of: _Inputs) -> GpuMetrics | None:
    """What the GPU's own counters say of the window."""
    found, reading = of.found, of.reading
    if found.measured is None or not found.window.length_ns:
        return None
    return gpu_metrics(
        found.measured,
        found.device,
        reading.activity.api_calls.rows,
        reading.ranges,
        reading.strings,
        found.window.parts,
        Intervals(found.gaps.start, found.gaps.end),
        found.split,
        of.iterations.report,
        reading.settings.thresholds.clock,
    )


def _utilization(of: _Inputs, metrics: Future[GpuMetrics | None]) -> Utilization:
    """How well the GPU was used, by its counters or by what was launched."""
    found, reading = of.found, of.reading
    return utilization(
        found.device,
        found.window.parts,
        found.split,
        found.inside,
        reading.activity.shapes,
        reading.strings,
        reading.settings,
        measured_sm_active(metrics.result()),
    )


def _launch(found: DeviceGaps, roots: DeviceRoots, reading: Reading, host: HostReading) -> Launch:
    """How work reached the device, and how far the host was ahead."""
    activity, limits, context, layered = reading.activity, reading.settings.thresholds, roots.context, host.layered
    ahead = depth_of_queue(context, layered, activity, found.window.parts, limits)
    return launch_report(
        context,
        found.window,
        found.inside,
        activity,
        host.call_durations,
        layered,
        host.untraced,
        host.partial_graphs,
        ahead,
        limits,
    )


def _ranges(of: _Inputs) -> RangeTree | None:
    """The time by NVTX range."""
    found, reading, loop = of.found, of.reading, of.iterations.report
    return range_tree(
        found.device,
        reading.activity.api_calls.rows,
        of.roots.root_context,
        of.time,
        found.split,
        found.inside,
        loop.name if loop is not None and loop.source == NVTX else "",
    )


def _notes(of: _Inputs, metrics: Future[GpuMetrics | None]) -> list[Sentence]:
    """What a reader must know before trusting the numbers."""
    device, window, reading = of.found.device, of.found.window, of.reading
    made = device_notes(
        sharing=of.host.sharing.notes.get(device.key),
        malformed=device.malformed,
        narrowed_away=window.narrowed and window.length_ns == 0,
        migrated_share=_migrated_share(device, of.found.split),
        # As WDDM does, the driver may hold launches back to submit several at once.
        batched=reading.trace.has("TARGET_INFO_WDDM_CONTEXTS"),
    )
    unlikely = gap_notes(metrics.result(), reading.settings.thresholds.gap_sm_active)
    return [*made, *of.found.missing.result().note(), *reading.counters.result().absence(device), *unlikely]


def _migrated_share(device: DeviceTimeline, split: WindowSplit) -> float:
    """The share of the time with kernels in which pages of unified memory migrated as well."""
    operations = device.operations
    if not operations.migration.any() or not split.kernel_ns:
        return 0.0
    spans = Intervals(operations.start, operations.end)
    kernels = union(spans[(operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)])
    return intersect(kernels, union(spans[operations.migration])).total() / kernels.total()


def _largest(of: _Inputs) -> list[Gap]:
    """The largest gaps in full."""
    context = of.roots.context
    return with_sm_active(describe_gaps(context, largest_gaps(context, of.reading.settings.gaps)), of.found.measured)


def _packed_gaps(found: DeviceGaps, roots: DeviceRoots) -> GapsPacked:
    """All gaps in a few bytes each."""
    return pack_gaps(found.gaps, found.ledger, pack_places(roots.keys, roots.context.lane >= 0))


def _copies(of: _Inputs) -> Copies:
    """Copies and sets."""
    device, reading = of.found.device, of.reading
    limits = of.host.memory.limits[device.key]
    return copy_report(
        device, reading.activity, of.found.inside, of.found.split, of.iterations.steady, limits, reading.settings.memory
    )


def _communication(of: _Inputs, kernels: list[KernelRow]) -> Communication:
    """Communication kernels and MPI calls."""
    rows = [row for row in kernels if row.communication]
    host, found, roots = of.host.host, of.found, of.roots
    return Communication(
        kernels=rows,
        total_ns=sum(row.total_ns for row in rows),
        exposed_ns=found.split.exposed_comm_ns,
        overlapped_ns=found.split.overlapped_comm_ns,
        kinds=collective_kinds(roots.collectives, found.inside, found.split, found.device.gpu.name),
        mpi=mpi_calls(host.mpi, found.gaps, roots.context.lane, roots.threads, host.axis),
        link_bytes_per_second=link_of(found.device.gpu.name) if rows else None,
    )


def _unified_memory(of: _Inputs) -> UnifiedMemory | None:
    """Migrations and page faults."""
    found, reading = of.found, of.reading
    limit, duration = reading.settings.memory.thrash_moves, reading.activity.duration_ns
    return unified_memory(of.host.memory, found.device.ids, found.window, duration, limit)


def _allocated(of: _Inputs) -> DeviceMemory | None:
    """The memory of the device over time."""
    device, memory = of.found.device, of.host.memory
    return device_memory(
        memory.usage,
        device,
        of.reading.activity.api_calls,
        of.host.layered.facts.creates_context,
        of.found.window,
        of.iterations.steady,
        memory.limits[device.key],
        of.found.ledger.total.get(ALLOCATION, 0),
        of.reading.settings.memory,
    )


def _packed_iterations(of: _Inputs, signatures: list[SignatureRow]) -> IterationReport | None:
    """The report on the iterations with the numbers of every steady one, where there are any."""
    found, roots, iterations = of.found, of.roots, of.iterations
    if iterations.report is None or iterations.steady is None:
        return iterations.report
    same = roots.root_slices.slices is found.slices
    causes = None if same else of.time.root_causes(iterations.steady)
    kinds = kinds_of_gaps(found.gaps, roots.keys, signatures)
    kernels, strings = found.kernels.result(), of.reading.strings
    packed = pack_iterations(iterations.steady, iterations.parts, causes, found.device, kernels, kinds, strings)
    return structs.replace(iterations.report, packed=packed)


def _window(window: AnalysisWindow, activity: DeviceActivity) -> Window:
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


def _counts(device: DeviceTimeline, inside: BoolArray) -> OpCounts:
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
