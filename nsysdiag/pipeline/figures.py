"""The figures of one device: its part of the report."""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec import Struct, structs

from nsysdiag.arrays.background import Background, Deferred
from nsysdiag.arrays.intervals import IntArray, Intervals, common_ns, union
from nsysdiag.arrays.spill import trim
from nsysdiag.causes import ALLOCATION
from nsysdiag.counters.counters import gap_notes, gpu_metrics, measured_sm_active, with_limits, with_sm_active
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.diagnosis.missing import device_notes
from nsysdiag.events.device import project
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence
from nsysdiag.findings.kernels import KernelWork
from nsysdiag.findings.phase_work import JudgedTime
from nsysdiag.gap_groups.details import describe_gaps, largest_gaps
from nsysdiag.gap_groups.groups import kinds_of_gaps, signature_rows
from nsysdiag.iterations.facts import IterationReport
from nsysdiag.iterations.loop import NVTX
from nsysdiag.iterations.report import DeviceIterations, device_iterations, pack_iterations
from nsysdiag.kernels.communication import collective_kinds, mpi_calls
from nsysdiag.kernels.facts import Communication, FamilyTime, KernelRow
from nsysdiag.kernels.kernels import FamilyRows, family_times
from nsysdiag.ledger.ledger import coverage
from nsysdiag.memory.copies import copy_report
from nsysdiag.memory.device import device_memory, unified_memory
from nsysdiag.peaks import link_of
from nsysdiag.phases.phases import JobPhases
from nsysdiag.phases.serving import served_steps, serving_phases
from nsysdiag.phases.steps import named_kinds
from nsysdiag.pipeline.device_time import DeviceTime
from nsysdiag.ranges.facts import RangeTree
from nsysdiag.ranges.tree import range_tree
from nsysdiag.report import DeviceId, DeviceReport, OpCounts, SignatureRow, Verdict, Window
from nsysdiag.utilization.facts import Utilization
from nsysdiag.utilization.utilization import utilization


class BegunFigures(Struct, frozen=True):
    """What the second thread makes of a device once the devices have met, and what that needs."""

    iterations: DeviceIterations
    signatures: list[SignatureRow]
    metrics: Deferred[GpuMetrics | None]
    used: Deferred[Utilization]
    ranges: Deferred[RangeTree | None]
    packed_iterations: Deferred[IterationReport | None]
    families: Deferred[list[FamilyTime]]
    work: Deferred[KernelWork]


def begin_figures(of: DeviceTime, job_phases: JobPhases, judged: JudgedTime, background: Background) -> BegunFigures:
    """Figures that need no others are made by the second thread."""
    iterations = _iterations(of, job_phases)
    calls, rows = of.reading.activity.api_calls.rows, of.reading.ranges.rows
    projected = Deferred(partial(project, of.device, calls, rows, of.device.running))  # if it is asked for
    metrics = background.begin(_metrics, of, iterations.report, projected)
    used = background.begin(_utilization, of, metrics)
    ranges = background.begin(_ranges, of, iterations.report, None if of.measured is None else projected)
    signatures = signature_rows(of.context, of.keys, iterations.steady)
    packed = background.begin(_packed_iterations, of, iterations, signatures)
    families = background.begin(_families, of, judged)
    work = background.begin(_work, of, judged, metrics)
    return BegunFigures(iterations, signatures, metrics, used, ranges, packed, families, work)


def figures_of(of: DeviceTime, begun: BegunFigures) -> DeviceReport:
    """A device's part of the report, without its verdict."""
    reading, host, device, split = of.reading, of.host, of.device, of.split
    settings, ledger, calibration, context = reading.settings, of.ledger, of.calibration, of.context
    metrics, steady = begun.metrics, begun.iterations.steady
    notes = _notes(of, metrics)
    largest = with_sm_active(describe_gaps(context, largest_gaps(context, settings.gaps)), of.measured)
    limits = host.memory.limits[device.key]
    copies = copy_report(device, reading.activity, of.inside, split, steady, limits, settings.memory)
    kernels = of.kernels.result()
    drained = (of.gaps.end - of.gaps.start)[context.drained.flag]
    covered = coverage(ledger.total)
    report = DeviceReport(
        key=device.key,
        name=device.gpu.name,
        sm_count=device.gpu.sm_count,
        ids=[DeviceId(pid=pid, device_id=number) for pid, number in device.ids],
        window=_window(of),
        window_ns=split.window_ns,
        busy_ns=split.busy_ns,
        idle_ns=split.idle_ns,
        compute_ns=split.compute_ns,
        exposed_comm_ns=split.exposed_comm_ns,
        exposed_copy_ns=split.exposed_copy_ns,
        overlapped_comm_ns=split.overlapped_comm_ns,
        ops=_counts(of),
        ledger=ledger.total,
        root_ledger=dict(of.root_totals.total),
        labels=ledger.labels,
        sync_drained={"gaps": len(drained), "ns": int(drained.sum())},
        coverage=None if covered is None else round(covered, 6),
        floor_ns=calibration.floor_ns,
        floor_calibrated=calibration.floor_calibrated,
        launch_latency_ns=calibration.latency_ns,
        launch_latency_calibrated=calibration.latency_calibrated,
        verdict=Verdict(id="", sentence=""),
        gap_count=len(of.gaps),
        gaps=largest,
        gaps_packed=of.packed_gaps.result(),
        signatures=begun.signatures,
        iterations=begun.packed_iterations.result(),
        launch=of.launch.result(),
        kernels=kernels,
        copies=copies,
        communication=_communication(of, kernels),
        utilization=begun.used.result(),
        notes=notes,
        root_labels=of.root_totals.labels,
        gpu_metrics=metrics.result(),
        unified_memory=unified_memory(
            host.memory, device.ids, of.window, reading.activity.duration_ns, settings.memory.thrash_moves
        ),
        memory=device_memory(
            host.memory.usage,
            device,
            reading.activity.api_calls,
            host.layered.facts.creates_context,
            of.window,
            steady,
            limits,
            ledger.total.get(ALLOCATION, 0),
            settings.memory,
        ),
        ranges=begun.ranges.result(),
        kernel_families=begun.families.result(),
        flames=of.flames.result(),
        sliced=of.missing.result().sliced,
    )
    trim()
    return report


def _iterations(of: DeviceTime, job_phases: JobPhases) -> DeviceIterations:
    """What the iterations are made of."""
    repeating, reading, strings = of.repeating.result(), of.reading, of.reading.strings
    pauses = Intervals.of([(each.start, each.end) for each in job_phases.phases if each.name == "pause"])
    if repeating is None or not repeating.closed:
        return device_iterations(repeating, of.time, strings, pauses, None)
    kinds = named_kinds(repeating.spans, of.device, strings) if repeating.has_slow else None
    served = served_steps(repeating.spans, of.device, reading.activity.api_calls.rows, reading.ranges, strings)
    found = device_iterations(repeating, of.time, strings, pauses, kinds, None if served is None else served.phase)
    if served is None or found.report is None:
        return found
    steady = np.setdiff1d(np.arange(len(repeating)), found.report.left_out)
    report = structs.replace(found.report, serving=serving_phases(served, repeating.spans, steady, of.time))
    return structs.replace(found, report=report)


Projected = Deferred[tuple[IntArray, Intervals]]
"""Rows of ranges, and their time on a device."""


def _metrics(of: DeviceTime, iterations: IterationReport | None, projected: Projected) -> GpuMetrics | None:
    """What the GPU's own counters say of the window."""
    reading = of.reading
    if of.measured is None or not of.window.length_ns:
        return None
    return gpu_metrics(
        of.measured,
        of.device,
        reading.ranges,
        projected,
        reading.strings,
        of.window.parts,
        Intervals(of.gaps.start, of.gaps.end),
        of.split,
        iterations,
        reading.settings.thresholds.clock,
    )


def _utilization(of: DeviceTime, metrics: Deferred[GpuMetrics | None]) -> Utilization:
    """How well the GPU was used, by its counters or by what was launched."""
    reading = of.reading
    return utilization(
        of.device,
        of.window.parts,
        of.split,
        of.inside,
        reading.activity.shapes,
        reading.strings,
        reading.settings,
        measured_sm_active(metrics.result()),
    )


def _ranges(of: DeviceTime, iterations: IterationReport | None, known: Projected | None) -> RangeTree | None:
    """The time by NVTX range."""
    step = iterations.name if iterations is not None and iterations.source == NVTX else ""
    calls = of.reading.activity.api_calls.rows
    return range_tree(calls, of.root_context, of.time, of.split, of.inside, step, known)


def _packed_iterations(
    of: DeviceTime, iterations: DeviceIterations, signatures: list[SignatureRow]
) -> IterationReport | None:
    """The report on the iterations with the numbers of every steady one, if there are any."""
    if iterations.report is None or iterations.steady is None:
        return iterations.report
    same = of.root_slices.slices is of.slices
    causes = None if same else of.time.root_causes(iterations.steady)
    kinds = kinds_of_gaps(of.gaps, of.keys, signatures)
    kernels, strings = of.kernels.result(), of.reading.strings
    packed = pack_iterations(iterations.steady, iterations.parts, causes, of.device, kernels, kinds, strings)
    return structs.replace(iterations.report, packed=packed)


def _notes(of: DeviceTime, metrics: Deferred[GpuMetrics | None]) -> list[Sentence]:
    """What a reader must know before trusting the numbers."""
    device, window, reading = of.device, of.window, of.reading
    made = device_notes(
        sharing=of.host.sharing.notes.get(device.key),
        malformed=device.malformed,
        narrowed_away=window.narrowed and window.length_ns == 0,
        migrated_share=_migrated_share(of),
        # As WDDM does, the driver may hold launches back to submit several at once.
        batched=reading.trace.has("TARGET_INFO_WDDM_CONTEXTS"),
    )
    unlikely = gap_notes(metrics.result(), reading.settings.thresholds.gap_sm_active)
    return [*made, *of.missing.result().note(), *reading.counters.result().absence(device), *unlikely]


def _migrated_share(of: DeviceTime) -> float:
    """The share of the time with kernels in which pages of unified memory migrated as well."""
    operations = of.device.operations
    if not operations.migration.any() or not of.split.kernel_ns:
        return 0.0
    spans = Intervals(operations.start, operations.end)
    kernels = union(spans[(operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)])
    return common_ns(kernels, union(spans[operations.migration])) / kernels.total()


def _communication(of: DeviceTime, kernels: list[KernelRow]) -> Communication:
    """Communication kernels and MPI calls."""
    rows, host, gpu = [row for row in kernels if row.communication], of.host.host, of.device.gpu.name
    return Communication(
        kernels=rows,
        total_ns=sum(row.total_ns for row in rows),
        exposed_ns=of.split.exposed_comm_ns,
        overlapped_ns=of.split.overlapped_comm_ns,
        kinds=collective_kinds(of.collectives, of.inside, of.split, gpu),
        mpi=mpi_calls(host.mpi, of.gaps, of.context.lane, of.threads, host.axis),
        link_bytes_per_second=link_of(gpu) if rows else None,
    )


def _families(of: DeviceTime, judged: JudgedTime) -> list[FamilyTime]:
    """The kernels of the judged time by family; a step's, if what repeats is surely one."""
    loop, parts = of.repeating.result(), judged.parts
    steps = loop.spans if loop is not None and loop.closed else Intervals.empty()
    rows = FamilyRows.of(of.device, parts, of.reading.strings)
    found = family_times(of.device, rows, parts, judged.account_ns, steps)
    return with_limits(found, of.device, rows, parts, of.measured)


def _work(of: DeviceTime, judged: JudgedTime, metrics: Deferred[GpuMetrics | None]) -> KernelWork:
    """What findings on kernels look at."""
    reading = of.reading
    return KernelWork.of(of.device, judged, of.time, reading.activity.shapes, reading.strings, metrics.result())


def _window(of: DeviceTime) -> Window:
    """The window as a record."""
    window = of.window
    parts = list(zip(window.parts.start.tolist(), window.parts.end.tolist(), strict=True))
    return Window(
        start_ns=parts[0][0] if parts else 0,
        end_ns=parts[-1][1] if parts else 0,
        parts=parts,
        reason=window.reason,
        outside_ns=window.outside_ns,
        edge_ns=window.edge_ns(of.reading.activity.duration_ns),
    )


def _counts(of: DeviceTime) -> OpCounts:
    """How many operations there are of each category."""
    count = np.bincount(of.device.operations.category[of.inside], minlength=len(Category))
    return OpCounts(
        kernel=int(count[Category.KERNEL]),
        memcpy=int(count[Category.MEMCPY]),
        memset=int(count[Category.MEMSET]),
        graph=int(count[Category.GRAPH]),
        zero_length=int((of.inside & ~of.device.running).sum()),
        malformed=of.device.malformed,
    )
