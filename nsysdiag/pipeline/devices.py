"""The third stage: every device, and where they meet."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from nsysdiag.account.other_devices import followed
from nsysdiag.account.outside import charged_before, rows_before
from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.arrays.spill import evict, laid, trim
from nsysdiag.diagnosis.focus import Focus, focus_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.findings.phase_work import work_of_phase
from nsysdiag.gap_groups.groups import slices_in_words
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases
from nsysdiag.pipeline.device_account import DeviceAccount, account_of
from nsysdiag.pipeline.device_figures import figures_of
from nsysdiag.pipeline.device_findings import device_findings, judged_time
from nsysdiag.pipeline.device_gaps import DeviceGaps, gaps_of
from nsysdiag.pipeline.device_phases import DevicePhases, phases_of, phases_of_job, signal_of, time_before
from nsysdiag.pipeline.device_roots import DeviceRoots, roots_of
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.report import DeviceReport, Finding
from nsysdiag.time.columns import time_columns
from nsysdiag.time.facts import TimeColumns
from nsysdiag.time.table import TimeTable
from nsysdiag.timeline.timeline import DeviceLanes, with_lanes
from nsysdiag.wakeups.wakers import WakeFinder


class _Alone(Struct, frozen=True):
    """What is known of a device before it meets the others."""

    gaps: DeviceGaps
    roots: DeviceRoots
    account: DeviceAccount


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
    return _Alone(gaps, roots, account_of(gaps, roots, reading, host))


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
    report = figures_of(gaps, roots, time, job, reading, host, background)
    judged_before = before if job.judges_before else None
    judged = judged_time(gaps, time, met.focus, judged_before)
    evict()
    findings = device_findings(gaps, roots, account, time, judged, report, judged_before, reading, host, finder)
    return DeviceResult(
        report,
        roots.root_slices.slices,
        findings.found,
        findings.idle.behind,
        _lanes(gaps, roots, report, findings.found, reading),
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


def _lanes(
    gaps: DeviceGaps, roots: DeviceRoots, report: DeviceReport, findings: list[Finding], reading: Reading
) -> DeviceLanes | None:
    """The timeline without the lanes of threads, which devices share."""
    overview = gaps.overview.result()
    if overview is None:
        return None
    narrowed = gaps.window.narrowed
    return with_lanes(overview, roots.context, roots.threads, report, findings, reading.activity, narrowed=narrowed)


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
