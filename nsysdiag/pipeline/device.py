"""The steps of one device in their order, of which the last make its report, its findings and its timeline."""

from __future__ import annotations

from msgspec import structs

from nsysdiag.account.bottlenecks import DeviceWaitCalls, IdlePieces
from nsysdiag.account.outside import Start, charged_before, rows_before
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.diagnosis.focus import Focus
from nsysdiag.diagnosis.missing import DOUBTED, Missing
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.collectives import Collectives
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostTables
from nsysdiag.findings.attribution import Attribution, Shares, shares_of
from nsysdiag.findings.before_work import before_findings
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.findings import IdleFindings, findings_of
from nsysdiag.findings.inside import RangeSets
from nsysdiag.findings.kernels import KernelWork, kernel_findings
from nsysdiag.findings.phase_work import JudgedTime, work_of_phase
from nsysdiag.findings.pointers import EmptyIterations, pointers_of
from nsysdiag.findings.text import FindingContext
from nsysdiag.findings.unfused import single_precision_findings, unfused_findings
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import GapKeys, slices_in_words
from nsysdiag.gaps.gaps import Calibration, Gaps
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.ledger.classify import LayeredEvidence
from nsysdiag.ledger.drained import Drained
from nsysdiag.ledger.ledger import CauseTotals, Ledger, coverage
from nsysdiag.memory.facts import DeviceMemory, UnifiedMemory
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases
from nsysdiag.pipeline import device_account, device_figures, device_ledger, device_phases, device_roots
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.pipeline.stages import Stages
from nsysdiag.programs.facts import Framework
from nsysdiag.programs.names import ids_of
from nsysdiag.report import (
    Communication,
    Copies,
    DeviceId,
    DeviceReport,
    Finding,
    Gap,
    GapsPacked,
    IterationReport,
    KernelRow,
    Launch,
    OpCounts,
    SignatureRow,
    Verdict,
    Window,
)
from nsysdiag.time.columns import time_columns as columns_of
from nsysdiag.time.facts import TimeColumns
from nsysdiag.time.table import TimeTable
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.timeline import DeviceLanes, with_lanes
from nsysdiag.trace.columns import Strings
from nsysdiag.utilization.facts import Utilization
from nsysdiag.wakeups.batches import Batches, RootSlices, batches_of
from nsysdiag.wakeups.levels import Chains
from nsysdiag.wakeups.loaders import Finder

steps: Stages = Stages(
    [
        *device_ledger.steps,
        *device_roots.steps,
        *device_account.steps,
        *device_phases.steps,
        *device_figures.steps,
    ]
)


@steps.step()
def judged(time: TimeTable, window: AnalysisWindow, focus: Focus, before_work: Start | None) -> JudgedTime:
    """The time that findings are about."""
    before_ns = 0 if before_work is None else sum(before_work.account.values())
    return JudgedTime.of(time, window.parts, focus.parts, before_ns)


@steps.step()
def kernel_work(
    device: DeviceTimeline, judged: JudgedTime, activity: DeviceActivity, strings: Strings, metrics: GpuMetrics | None
) -> KernelWork:
    """What the kernels of that time do."""
    return KernelWork.of(device, judged, activity.shapes, strings, metrics)


@steps.step()
def report(
    device: DeviceTimeline,
    shown_window: Window,
    split: WindowSplit,
    operation_counts: OpCounts,
    ledger: Ledger,
    root_totals: CauseTotals,
    gaps: Gaps,
    drained: Drained,
    calibration: Calibration,
    largest: list[Gap],
    packed_gaps: GapsPacked,
    signatures: list[SignatureRow],
    packed_iterations: IterationReport | None,
    launch: Launch,
    kernels: list[KernelRow],
    copies: Copies,
    communication: Communication,
    utilization: Utilization,
    notes: list[str],
    metrics: GpuMetrics | None,
    unified_memory: UnifiedMemory | None,
    allocated: DeviceMemory | None,
) -> DeviceReport:
    """The device's part of the report; its verdict is that of the judge, who sees all devices."""
    drained_lengths = (gaps.end - gaps.start)[drained.flag]
    covered = coverage(ledger.total)
    return DeviceReport(
        key=device.key,
        name=device.gpu.name,
        sm_count=device.gpu.sm_count,
        ids=[DeviceId(pid=pid, device_id=number) for pid, number in device.ids],
        window=shown_window,
        window_ns=split.window_ns,
        busy_ns=split.busy_ns,
        idle_ns=split.idle_ns,
        compute_ns=split.compute_ns,
        exposed_comm_ns=split.exposed_comm_ns,
        exposed_copy_ns=split.exposed_copy_ns,
        overlapped_comm_ns=split.overlapped_comm_ns,
        ops=operation_counts,
        ledger=ledger.total,
        root_ledger=dict(root_totals.total),
        labels=ledger.labels,
        sync_drained={"gaps": len(drained_lengths), "ns": int(drained_lengths.sum())},
        coverage=None if covered is None else round(covered, 6),
        floor_ns=calibration.floor_ns,
        floor_calibrated=calibration.floor_calibrated,
        launch_latency_ns=calibration.latency_ns,
        launch_latency_calibrated=calibration.latency_calibrated,
        verdict=Verdict(id="", sentence=""),
        gap_count=len(gaps),
        gaps=largest,
        gaps_packed=packed_gaps,
        signatures=signatures,
        iterations=packed_iterations,
        launch=launch,
        kernels=kernels,
        copies=copies,
        communication=communication,
        utilization=utilization,
        notes=notes,
        root_labels=root_totals.labels,
        gpu_metrics=metrics,
        unified_memory=unified_memory,
        memory=allocated,
    )


@steps.step()
def batches(root_slices: RootSlices, chains: Chains, finder: Finder, settings: Settings, judged: JudgedTime) -> Batches:
    """What loading workers did over whole batches."""
    return batches_of(root_slices, chains, finder, settings.thresholds.root_floor, judged.parts)


@steps.step(spills=True, trims=True)
def shares(
    root_context: GapContext,
    root_slices: RootSlices,
    batches: Batches,
    layered: LayeredEvidence,
    keys: GapKeys,
    kinds: IntArray,
    families: IntArray,
    time: TimeTable,
    idle: IdlePieces,
    device_waits: DeviceWaitCalls,
    judged: JudgedTime,
) -> tuple[Shares, list[list[str]]]:
    """Whose idle time that is, and the places in the program that it is at."""
    attribution = Attribution.by_root(root_slices)
    kinds = batches.longest(kinds, attribution.cause)
    waited = (device_waits, idle.made)
    return shares_of(root_context, layered, keys, attribution, kinds, families, time, waited, judged.parts)


@steps.step()
def finding_context(
    root_context: GapContext,
    root_slices: RootSlices,
    batches: Batches,
    layered: LayeredEvidence,
    keys: GapKeys,
    device_waits: DeviceWaitCalls,
    time: TimeTable,
    shares: tuple[Shares, list[list[str]]],
    judged: JudgedTime,
    frameworks: list[Framework],
    settings: Settings,
) -> FindingContext:
    """What all findings of the device are about."""
    attribution, made_with = Attribution.by_root(root_slices), tuple(ids_of(frameworks))
    sightings = Sightings.of(root_context, layered, attribution.own)
    return FindingContext(
        root_context,
        keys,
        attribution,
        sightings,
        device_waits,
        time,
        batches,
        shares[1],
        RangeSets.of(root_context.ranges, root_context.axis),
        judged,
        settings.findings,
        made_with,
    )


@steps.step()
def of_idle_time(
    report: DeviceReport,
    finding_context: FindingContext,
    shares: tuple[Shares, list[list[str]]],
    time: TimeTable,
    gpus: list[str],
) -> IdleFindings:
    """The findings on time in which the device waited, or worked exposed."""
    return findings_of(report, finding_context, shares[0], time, gpus)


@steps.step()
def of_kernels(
    report: DeviceReport, finding_context: FindingContext, time: TimeTable, kernel_work: KernelWork
) -> list[Finding]:
    """The findings on time in which it computed."""
    found = kernel_findings(report, finding_context, time, kernel_work)
    of_kind = (single_precision_findings, unfused_findings)
    return [*found, *(each for made in of_kind for each in made(report, finding_context))]


@steps.step()
def findings(
    report: DeviceReport,
    finding_context: FindingContext,
    of_idle_time: IdleFindings,
    of_kernels: list[Finding],
    judged: JudgedTime,
    without_work: EmptyIterations | None,
    before_work: Start | None,
    tables: HostTables,
    call_chains: CallChains,
    missing: Missing,
    settings: Settings,
) -> list[Finding]:
    """What is worth doing something about; less sure where rows are missing."""
    found = [
        *of_idle_time.found,
        *of_kernels,
        *before_findings(report.key, judged, before_work, tables.samples, call_chains, settings.findings),
        *pointers_of(report, finding_context, without_work, of_idle_time.found),
    ]
    if not missing.reasons():
        return found
    return [structs.replace(each, confidence=DOUBTED * each.confidence) for each in found]


@steps.step()
def lanes(
    overview: TimelineLevels | None,
    context: GapContext,
    threads: IntArray,
    report: DeviceReport,
    findings: list[Finding],
    activity: DeviceActivity,
    window: AnalysisWindow,
) -> DeviceLanes | None:
    """The timeline without the lanes of threads, which devices share."""
    if overview is None:
        return None
    return with_lanes(overview, context, threads, report, findings, activity, narrowed=window.narrowed)


@steps.step()
def phases(
    job_phases: JobPhases,
    devices_in_phases: list[PhaseDevice],
    root_context: GapContext,
    time: TimeTable,
    before_device: Start | None,
    call_chains: CallChains,
) -> list[PhaseDevice]:
    """What the device did in each phase, with what took most of those that are not judged."""
    return [
        structs.replace(
            each,
            did=work_of_phase(
                root_context,
                time,
                (phase.start, phase.end),
                each,
                before_device if each.account_base == "start" else None,
                call_chains,
            ),
        )
        if at not in job_phases.judged
        else each
        for at, (phase, each) in enumerate(zip(job_phases.phases, devices_in_phases, strict=True))
    ]


@steps.step()
def time_columns(
    keep_time: bool,
    device: DeviceTimeline,
    activity: DeviceActivity,
    time: TimeTable,
    root_context: GapContext,
    keys: GapKeys,
    job_phases: JobPhases,
    focus: Focus,
    repeating: Loop | None,
    before_device: Start | None,
) -> TimeColumns | None:
    """All time of the device as columns, where the user is to have them."""
    if not keep_time:
        return None
    return columns_of(
        device.key,
        time,
        slices_in_words(root_context, keys),
        rows_before(charged_before(job_phases, before_device)),
        Intervals.of([(phase.start, phase.end) for phase in job_phases.phases]),
        focus.places,
        Intervals.empty() if repeating is None else repeating.spans,
        {each.number: each.key for each in activity.devices},
    )


@steps.step(trims=True)
def result(
    report: DeviceReport,
    root_slices: RootSlices,
    findings: list[Finding],
    of_idle_time: IdleFindings,
    lanes: DeviceLanes | None,
    split: WindowSplit,
    collectives: Collectives,
    meetings: Collectives,
    in_mpi: Intervals,
    job_phases: JobPhases,
    phases: list[PhaseDevice],
    focus: Focus,
    missing: Missing,
    time_columns: TimeColumns | None,
) -> DeviceResult:
    """What the steps after the devices need of one."""
    return DeviceResult(
        report,
        root_slices.slices,
        findings,
        of_idle_time.behind,
        lanes,
        split,
        collectives,
        meetings,
        in_mpi,
        job_phases,
        phases,
        focus,
        missing,
        time_columns,
    )
