"""The third stage: every device, and where they meet."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from msgspec import Struct, structs
from msgspec.structs import replace

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
from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.arrays.spill import evict, laid, trim
from nsysdiag.counters.counters import with_limits
from nsysdiag.diagnosis.focus import Focus, focus_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.phase_work import JudgedTime, work_of_phase
from nsysdiag.gap_groups.groups import slices_in_words
from nsysdiag.iterations.loop import LAYER, Loop
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.kernels.kernels import family_times
from nsysdiag.ledger.ledger import only_graphs
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.phases.signal import StepLoop as PhaseLoop
from nsysdiag.pipeline.device_figures import BegunFigures, EarlyFigures, figures_of
from nsysdiag.pipeline.device_findings import (
    DeviceAccount,
    DeviceRoots,
    IdleShares,
    account_of,
    device_findings,
    judged_time,
    roots_of,
)
from nsysdiag.pipeline.device_gaps import DeviceGaps, gaps_of
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.ranges.facts import FlameGraph
from nsysdiag.ranges.stacks import flame_graph
from nsysdiag.report import DeviceReport
from nsysdiag.time.facts import TimeColumns
from nsysdiag.time.table import TimeTable, time_columns
from nsysdiag.timeline.timeline import DeviceLanes, with_lanes
from nsysdiag.wakeups.wakers import WakeFinder

# The fourth part of one device, in which it meets the others: the phases of the job, and what it did in each.


class DevicePhases(Struct, frozen=True):
    """What a device did in each phase of the job. `before` is the time before its first work (None: not recorded), from
    the first CUDA call of the job on or in the chosen time."""

    devices: list[PhaseDevice]
    before: Start | None


def signal_of(found: DeviceGaps, time: TimeTable, outside: Outside | None) -> DeviceSignal:
    """What a device tells about the phases of the job; `outside` is the time before its first work."""
    return DeviceSignal(
        device=found.device,
        window=found.window,
        split=found.split,
        startup=time.set_of("startup"),
        memory=time.set_of("memory"),
        unknown=time.set_of("unknown"),
        loops=tuple(_of_phases(loop, run) for loop in found.loops.result() for run in loop.runs),
        first_call_ns=None if outside is None else outside.begin if outside.since is None else outside.since,
    )


def phases_of_job(signals: list[DeviceSignal]) -> JobPhases:
    """The phases of the job, of all its devices."""
    calls = [each.first_call_ns for each in signals if each.first_call_ns is not None]
    return find_phases(signals, min(calls, default=None), narrowed=any(each.window.narrowed for each in signals))


def phases_of(
    found: DeviceGaps,
    time: TimeTable,
    outside: Outside | None,
    job_phases: JobPhases,
    reading: Reading,
    host: HostReading,
) -> DevicePhases:
    """What a device did in each phase."""
    before = _before(outside, job_phases, reading, host)
    keys = [each.key for each in reading.devices]
    graphs = only_graphs(found.device, found.split.parts[0])
    made = DevicePhases(device_phases(job_phases, found.device.key, time, before, keys, graphs), before)
    trim()
    return made


def time_before(found: DeviceGaps, reading: Reading, host: HostReading) -> Outside | None:
    """What the program did from its first CUDA call to the device's first work, as far as anything was recorded; or in
    the chosen time before that work. A capture that begins in the middle of a run has no start."""
    window = found.window
    if window.asked is None and (window.narrowed or window.inside_run):
        return None
    outside = outside_of(window.parts, found.device, reading.activity.api_calls.rows)
    if outside is None or window.asked is None:
        return outside
    return replace(outside, since=max(window.asked, host.recorded_span[0]))


def _before(outside: Outside | None, job_phases: JobPhases, reading: Reading, host: HostReading) -> Start | None:
    if outside is None or not job_phases.phases:
        return None
    begin = job_phases.phases[0].start if outside.since is None else outside.since
    since = replace(outside, since=begin)
    evidence = evidence_of_start([since], host.tables, reading.activity, host.facts)
    return start_of(evidence, since, reading.ranges, host.call_chains).between(begin, outside.end)


def _of_phases(loop: Loop, starts: IntArray) -> PhaseLoop:
    parts, group = (0 if each is None else each.per_iteration for each in (loop.inner, loop.outer))
    closed = loop.kind != LAYER
    return PhaseLoop(
        starts,
        loop.source,
        loop.name,
        closed,
        parts,
        group,
        loop.certain,
        loop.kernels,
        loop.model,
        layers=loop.layers,
    )


class _Alone(Struct, frozen=True):
    """What is known of a device before it meets the others."""

    gaps: DeviceGaps
    roots: DeviceRoots
    account: DeviceAccount
    early: EarlyFigures
    flames: Future[FlameGraph]


class _Together(Struct, frozen=True):
    """What is known of a device once it has met the others, and of the job."""

    alone: _Alone
    time: TimeTable
    phases: DevicePhases
    job_phases: JobPhases
    focus: Focus


def look_at_devices(
    reading: Reading, host: HostReading, background: Background, *, keep_time: bool = False
) -> list[DeviceResult]:
    """The results of all devices. With `keep_time` each has its table of time."""
    finder = host.finder()  # let go with this function
    alone = [_alone(device, reading, host, finder, background) for device in reading.devices]
    met = _meet(alone, reading, host)
    alone.clear()
    results = []
    while met:
        results.append(_result(met.pop(0), reading, host, finder, background, keep_time=keep_time))
        trim()
    return results


def _alone(
    device: DeviceTimeline,
    reading: Reading,
    host: HostReading,
    finder: Callable[[], WakeFinder],
    background: Background,
) -> _Alone:
    gaps = gaps_of(device, reading, host, background)
    roots = roots_of(gaps, reading, host, finder)
    early = EarlyFigures.of(gaps, roots, reading, host, background)
    account = account_of(gaps, roots, reading, host)
    return _Alone(gaps, roots, account, early, background.begin(_flames, gaps, roots, account))


def _meet(every: list[_Alone], reading: Reading, host: HostReading) -> list[_Together]:
    """Waits for other devices are charged to what these did; the phases of the job are those of all devices, and one of
    them is judged."""
    own = {each.gaps.device.number: each.account.time for each in every}
    times = [laid(followed(number, own), own[number]) for number in own]
    trim()
    before = [time_before(each.gaps, reading, host) for each in every]
    parts = list(zip(every, times, before, strict=True))
    job = phases_of_job([signal_of(each.gaps, time, outside) for each, time, outside in parts])
    phases = [phases_of(each.gaps, time, outside, job, reading, host) for each, time, outside in parts]
    focus = focus_of(job, [each.devices for each in phases])
    return [_Together(each, time, its, job, focus) for each, time, its in zip(every, times, phases, strict=True)]


def _result(
    met: _Together,
    reading: Reading,
    host: HostReading,
    finder: Callable[[], WakeFinder],
    background: Background,
    *,
    keep_time: bool,
) -> DeviceResult:
    """What the steps after the devices need of one."""
    gaps, roots, account, time = met.alone.gaps, met.alone.roots, met.alone.account, met.time
    before, job = met.phases.before, met.job_phases
    begun = BegunFigures.begin(gaps, roots, time, job, reading, host, background)
    judged_before = before if job.judges_before else None
    judged = judged_time(gaps, time, met.focus, judged_before)
    shares = IdleShares.of(roots, account, time, judged, reading, host, finder)  # while the second thread makes figures
    report = figures_of(met.alone.early, begun)
    report = structs.replace(report, kernel_families=_families(gaps, judged, reading), flames=met.alone.flames.result())
    evict()
    findings = device_findings(gaps, roots, account, time, judged, shares, report, judged_before, reading, host)
    return DeviceResult(
        report,
        roots.root_slices.slices,
        findings.found,
        findings.idle.behind,
        _lanes(gaps, roots, report, findings.found, reading, job, before),
        gaps.split,
        roots.collectives,
        roots.meetings,
        roots.in_mpi,
        job,
        _phases(met, host),
        met.focus,
        gaps.missing.result(),
        _time_columns(met, reading) if keep_time else None,
    )


def _flames(gaps: DeviceGaps, roots: DeviceRoots, account: DeviceAccount) -> FlameGraph:
    """The idle time by root cause, and the waits for the device, as stacks."""
    context, rooted, waits = roots.root_context, roots.root_slices, account.device_waits
    return flame_graph(gaps.device, gaps.split, context, roots.keys, rooted, roots.chains, waits)


def _families(gaps: DeviceGaps, judged: JudgedTime, reading: Reading) -> list[FamilyTime]:
    """The kernels of the judged time by family."""
    loop = gaps.repeating.result()
    steps = Intervals.empty() if loop is None or loop.kind == LAYER else loop.spans
    found = family_times(gaps.device, judged.parts, judged.account_ns, steps, reading.strings)
    return with_limits(found, gaps.device, judged.parts, reading.strings, gaps.measured)


MOST_STARTED = 2_000
"""Rows of what the host did in a start-up that the timeline holds."""


def _lanes(
    gaps: DeviceGaps,
    roots: DeviceRoots,
    report: DeviceReport,
    findings: list[Finding],
    reading: Reading,
    job: JobPhases,
    before: Start | None,
) -> DeviceLanes | None:
    """The timeline without the lanes of threads, which devices share."""
    overview = gaps.overview.result()
    if overview is None:
        return None
    narrowed = gaps.window.narrowed
    phases = [(phase.name, phase.start, phase.end) for phase in job.phases]
    return with_lanes(
        overview,
        roots.context,
        roots.threads,
        report,
        findings,
        reading.activity,
        phases,
        [] if before is None else before.rows(MOST_STARTED),
        narrowed=narrowed,
    )


def _phases(met: _Together, host: HostReading) -> list[PhaseDevice]:
    """What the device did in each phase, with what took most of those that are not judged."""
    found, context = [], met.alone.roots.root_context
    for at, (phase, each) in enumerate(zip(met.job_phases.phases, met.phases.devices, strict=True)):
        if at in met.job_phases.judged:
            found.append(each)
            continue
        before = met.phases.before if each.account_base == "start" else None
        did = work_of_phase(context, met.time, (phase.start, phase.end), each, before, host.call_chains)
        found.append(structs.replace(each, did=did))
    return found


def _time_columns(met: _Together, reading: Reading) -> TimeColumns:
    """All time of the device as columns."""
    gaps, roots = met.alone.gaps, met.alone.roots
    repeating = gaps.repeating.result()
    return time_columns(
        gaps.device.key,
        met.time,
        slices_in_words(roots.root_context, roots.keys),
        rows_before(charged_before(met.job_phases, met.phases.before)),
        Intervals.of([(phase.start, phase.end) for phase in met.job_phases.phases]),
        met.focus.places,
        Intervals.empty() if repeating is None else repeating.spans,
        {each.number: each.key for each in reading.devices},
    )
