"""The third stage, all devices together: the phases of the job, what each device did in them, and its findings."""

from __future__ import annotations

from msgspec import Struct, structs
from msgspec.structs import asdict, replace

from nsysdiag.account.filling import followed
from nsysdiag.account.outside import (
    Outside,
    Start,
    charged_before,
    device_phases,
    evidence_of_start,
    outside_of,
    rows_before,
    start_of,
)
from nsysdiag.arrays.background import Background, Deferred
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.diagnosis.focus import Focus, focus_of
from nsysdiag.diagnosis.judge import NO_FOCUS, NO_PHASES
from nsysdiag.diagnosis.missing import DOUBTED
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.findings.attribution import Attribution, Shares, shares_of
from nsysdiag.findings.before_work import before_findings
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.findings import findings_of
from nsysdiag.findings.kernels import JudgedKernels, kernel_findings, single_precision_findings, unfused_findings
from nsysdiag.findings.phase_work import JudgedTime, work_of_phase
from nsysdiag.findings.pointers import pointers_of
from nsysdiag.findings.spot_facts import FindingContext
from nsysdiag.gap_groups.groups import slices_in_words
from nsysdiag.ledger.ledger import only_graphs
from nsysdiag.phases.facts import BehindWait, PhaseDevice
from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.pipeline.device_time import BegunDevice, DeviceTime, gaps_of, roots_of, time_of
from nsysdiag.pipeline.figures import BegunFigures, begin_figures, figures_of
from nsysdiag.pipeline.reading import HostReading
from nsysdiag.pipeline.replaying import Builder, MetDevices, builder_of, predictions_of
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.programs.names import ids_of
from nsysdiag.ranks.clocks import RankTimeline, meet_by_mpi
from nsysdiag.replay.predict import Predictions
from nsysdiag.report import DeviceReport
from nsysdiag.time.facts import TimeColumns
from nsysdiag.time.table import time_columns
from nsysdiag.timeline.timeline import DeviceLanes, with_lanes
from nsysdiag.wakeups.batches import Batches, batches_of

MOST_STARTED = 2_000
"""Rows of what the host did in a start-up that the timeline holds."""


class MetDevice(DeviceTime, frozen=True):
    """A device that has met the others: its `time` has waits for them charged to what they did, `phases` is what it did
    in each phase of the job. `before` is the time before its first work (None: not recorded), from the first CUDA call
    of the job on or in the chosen time."""

    phases: list[PhaseDevice]
    before: Start | None
    job_phases: JobPhases
    focus: Focus

    @property
    def judged_before(self) -> Start | None:
        """The time before its first work, if that is judged."""
        return self.before if self.job_phases.judges_before else None


class Devices(Struct, frozen=True):
    """The results of all devices. `builder` makes the model of what they did, `predictions` are those of savings, made
    by the second thread, or a sentence why there are none."""

    results: list[DeviceResult]
    builder: Builder
    predictions: Deferred[Predictions | str]


def meet(host: HostReading, begun: dict[str, BegunDevice], background: Background) -> list[MetDevice]:
    """The time of all devices, which have `begun`, and the phases of the job."""
    finder = host.finder()  # let go with this function

    def alone(device: DeviceTimeline) -> DeviceTime:
        return time_of(roots_of(gaps_of(device, begun.pop(device.key), host, finder, background)), background)

    return _meet(background.each(alone, [*host.reading.devices]))


def look_at_devices(
    met: list[MetDevice], host: HostReading, background: Background, *, keep_time: bool = False
) -> Devices:
    """The results of all devices, which are released. With `keep_time` each has its table of time."""
    builder = builder_of(_replayed(met, host.reading.trace.file), host)
    predictions = background.begin(predictions_of, builder, host.reading, background)
    results = background.each(lambda each: _result(each, background, keep_time=keep_time), met)
    return Devices(results, builder, predictions)


# Where devices meet.


def _meet(every: list[DeviceTime]) -> list[MetDevice]:
    """Waits for other devices are charged to what these did; the phases of the job are those of all devices, and one of
    them is judged."""
    own = {each.device.number: each.time for each in every}
    times = [laid(followed(number, own), own[number]) for number in own]
    trim()
    alone = [replace(each, time=time) for each, time in zip(every, times, strict=True)]
    outside = [_time_before(each) for each in alone]
    signals = [_signal(each, time) for each, time in zip(alone, outside, strict=True)]
    calls = [each.first_call_ns for each in signals if each.first_call_ns is not None]
    job = find_phases(signals, min(calls, default=None), narrowed=any(each.window.narrowed for each in signals))
    before = [_before(each, time, job) for each, time in zip(alone, outside, strict=True)]
    phases = [_phases(each, start, job) for each, start in zip(alone, before, strict=True)]
    focus = focus_of(job, phases)
    parts = zip(alone, phases, before, strict=True)
    return [
        MetDevice(**asdict(each), phases=its, before=start, job_phases=job, focus=focus) for each, its, start in parts
    ]


def _time_before(found: DeviceTime) -> Outside | None:
    """What the program did from its first CUDA call to the device's first work, as far as anything was recorded; or in
    the chosen time before that work. A capture that begins in the middle of a run has no start."""
    window = found.window
    if window.asked is None and (window.narrowed or window.inside_run):
        return None
    outside = outside_of(window.parts, found.device, found.reading.activity.api_calls.rows)
    if outside is None or window.asked is None:
        return outside
    return replace(outside, since=max(window.asked, found.host.recorded_span[0]))


def _signal(found: DeviceTime, outside: Outside | None) -> DeviceSignal:
    """What a device tells about the phases of the job; `outside` is the time before its first work."""
    time = found.time
    return DeviceSignal(
        device=found.device,
        window=found.window,
        split=found.split,
        startup=time.set_of("startup"),
        memory=time.set_of("memory"),
        unknown=time.set_of("unknown"),
        loops=tuple(run for loop in found.loops.result() for run in loop.runs),
        first_call_ns=None if outside is None else outside.begin if outside.since is None else outside.since,
    )


def _before(found: DeviceTime, outside: Outside | None, job: JobPhases) -> Start | None:
    if outside is None or not job.phases:
        return None
    host, reading = found.host, found.reading
    begin = job.phases[0].start if outside.since is None else outside.since
    since = replace(outside, since=begin)
    evidence = evidence_of_start(since, host.tables, reading.activity, host.facts)
    return start_of(evidence, since, reading.ranges, host.call_chains).between(begin, outside.end)


def _phases(found: DeviceTime, before: Start | None, job: JobPhases) -> list[PhaseDevice]:
    """What a device did in each phase."""
    keys = [each.key for each in found.reading.devices]
    graphs = only_graphs(found.device, found.split.parts[0])
    made = device_phases(job, found.device.key, found.time, before, keys, graphs)
    trim()
    return made


def _replayed(met: list[MetDevice], file: str) -> MetDevices:
    """What a replay needs of the devices."""
    if not met:
        return MetDevices([], by_mpi=False, all_call=False, job_phases=NO_PHASES, focus=NO_FOCUS)
    by_mpi = meet_by_mpi(each.collectives for each in met)
    ranks, all_call = [_rank(each, file, by_mpi=by_mpi) for each in met], all(len(each.meetings) for each in met)
    return MetDevices(ranks, by_mpi, all_call, met[0].job_phases, met[0].focus)


def _rank(met: MetDevice, file: str, *, by_mpi: bool) -> RankTimeline:
    """A device as a rank that meets others, without what it did alone."""
    key, name, meetings = met.device.key, met.device.gpu.name, met.meetings if by_mpi else met.collectives
    return RankTimeline(key, file, key, name, 0, None, meetings, met.window.parts, {}, None)


# What the steps after the devices need of one.


def _result(met: MetDevice, background: Background, *, keep_time: bool) -> DeviceResult:
    before_ns = 0 if met.judged_before is None else sum(met.judged_before.account.values())
    judged = JudgedTime.of(met.time, met.window.parts, met.focus.parts, before_ns)
    shares = background.begin(_idle_shares, met, judged)
    begun = begin_figures(met, met.job_phases, judged, background)
    report = figures_of(met, begun)
    phases = background.begin(_with_work, met)
    findings, behind = _findings(met, judged, shares.result(), begun, report, background)
    return DeviceResult(
        report,
        met.root_slices.slices,
        findings,
        behind,
        background.begin(_lanes, met, report, findings),
        met.split,
        met.collectives,
        met.meetings,
        met.in_mpi,
        met.job_phases,
        phases.result(),
        met.focus,
        met.missing.result(),
        _time_columns(met) if keep_time else None,
    )


class _IdleShares(Struct, frozen=True):
    """Whose the judged idle time is, and the places in the program that it is at."""

    attribution: Attribution
    batches: Batches
    shares: Shares
    paths: list[list[str]]


def _idle_shares(met: MetDevice, judged: JudgedTime) -> _IdleShares:
    attribution, floor = Attribution.by_root(met.root_slices), met.reading.settings.thresholds.root_floor
    batches = batches_of(met.root_slices, met.chains, met.finder, floor, judged.parts)
    kinds, waited = batches.longest(met.kinds, attribution.cause), (met.device_waits, met.made)
    context, layered, charged = met.root_context, met.host.layered, met.slice_bottlenecks
    shares, paths = shares_of(context, layered, met.keys, attribution, kinds, charged, met.time, waited, judged.parts)
    return _IdleShares(attribution, batches, laid(shares), paths)


def _findings(
    met: MetDevice,
    judged: JudgedTime,
    shares: _IdleShares,
    begun: BegunFigures,
    report: DeviceReport,
    background: Background,
) -> tuple[list[Finding], list[BehindWait]]:
    """The findings of a device, less sure if rows are missing; and what threads did behind waits."""
    reading, before = met.reading, met.judged_before
    context = _finding_context(met, judged, shares)
    kernels = background.begin(_kernel_findings, report, context, begun)
    gpus = [each.key for each in reading.devices]
    idle = findings_of(report, context, shares.shares, met.time, gpus, background)
    samples, chains = met.host.tables.samples, met.host.call_chains
    made = [
        *idle.found,
        *kernels.result(),
        *before_findings(report.key, judged, before, samples, chains, reading.settings.findings),
        *pointers_of(report, context, begun.iterations.slow, met.without_work.result(), idle.found),
    ]
    trim()
    if met.missing.result().reasons():
        made = [structs.replace(each, confidence=DOUBTED * each.confidence) for each in made]
    return made, idle.behind


def _finding_context(met: MetDevice, judged: JudgedTime, idle: _IdleShares) -> FindingContext:
    """What all findings of a device are about."""
    host, reading, root_context = met.host, met.reading, met.root_context
    return FindingContext(
        root_context,
        met.keys,
        idle.attribution,
        Sightings.of(root_context, host.layered, idle.attribution.own),
        met.device_waits,
        met.time,
        idle.batches,
        idle.paths,
        host.range_sets(),
        judged,
        reading.settings.findings,
        tuple(ids_of(host.frameworks)),
        host_unseen=reading.host_unseen,
        asked=reading.asked,
    )


def _kernel_findings(report: DeviceReport, context: FindingContext, begun: BegunFigures) -> list[Finding]:
    """The findings on what kernels do."""
    kernels = JudgedKernels.of(context)
    return [
        *kernel_findings(report, context, context.time, begun.work.result()),
        *single_precision_findings(report, context, kernels),
        *unfused_findings(report, context, kernels),
    ]


def _lanes(met: MetDevice, report: DeviceReport, findings: list[Finding]) -> DeviceLanes | None:
    """The timeline without the lanes of threads, which devices share."""
    overview = met.overview.result()
    if overview is None:
        return None
    return with_lanes(
        overview,
        met.context,
        met.threads,
        report,
        findings,
        met.reading.activity,
        [(phase.name, phase.start, phase.end) for phase in met.job_phases.phases],
        [] if met.before is None else met.before.rows(MOST_STARTED),
        narrowed=met.window.narrowed,
    )


def _with_work(met: MetDevice) -> list[PhaseDevice]:
    """What the device did in each phase, with what took most of those that are not judged."""
    found = []
    for at, (phase, each) in enumerate(zip(met.job_phases.phases, met.phases, strict=True)):
        if at in met.job_phases.judged:
            found.append(each)
            continue
        before = met.before if each.account_base == "start" else None
        span = (phase.start, phase.end)
        did = work_of_phase(met.root_context, met.time, span, each, before, met.host.call_chains)
        found.append(structs.replace(each, did=did))
    return found


def _time_columns(met: MetDevice) -> TimeColumns:
    """All time of the device as columns."""
    repeating = met.repeating.result()
    return time_columns(
        met.device.key,
        met.time,
        slices_in_words(met.root_context, met.keys),
        rows_before(charged_before(met.job_phases, met.before)),
        Intervals.of([(phase.start, phase.end) for phase in met.job_phases.phases]),
        met.focus.places,
        Intervals.empty() if repeating is None else repeating.spans,
        {each.number: each.key for each in met.reading.devices},
    )
