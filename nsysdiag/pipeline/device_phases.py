"""The steps of one device in which it meets the others: the phases of the job, and what it did in each."""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag.account.outside import Outside, Start, device_phases, evidence_of_start, outside_of, start_of
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.causes.evidence import CallFacts
from nsysdiag.diagnosis.focus import Focus, focus_of
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.host import HostTables
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.iterations.loop import LAYER, Loop
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.phases.signal import StepLoop as PhaseLoop
from nsysdiag.pipeline.stages import Stages
from nsysdiag.time.table import TimeTable

steps: Stages = Stages()


@steps.step()
def outside(
    window: AnalysisWindow, activity: DeviceActivity, device: DeviceTimeline, recorded_span: tuple[int, int]
) -> Outside | None:
    """What the program did from its first CUDA call to the device's first work, as far as anything was recorded; or in
    the chosen time before that work."""
    if window.narrowed and window.asked is None:
        return None
    found = outside_of(window.parts, device, activity.api_calls.rows)
    return found if found is None or window.asked is None else replace(found, since=max(window.asked, recorded_span[0]))


@steps.step()
def signal(
    device: DeviceTimeline,
    window: AnalysisWindow,
    split: WindowSplit,
    time: TimeTable,
    loops: list[Loop],
    outside: Outside | None,
) -> DeviceSignal:
    """What the device tells about the phases of the job."""
    runs = [_of_phases(loop, run) for loop in loops for run in loop.runs]
    return DeviceSignal(
        device=device,
        window=window.parts,
        split=split,
        startup=time.set_of("startup"),
        memory=time.set_of("memory"),
        unknown=time.set_of("unknown"),
        loops=tuple(runs),
        first_call_ns=None if outside is None else outside.begin if outside.since is None else outside.since,
        narrowed=window.narrowed,
    )


def _of_phases(loop: Loop, starts: IntArray) -> PhaseLoop:
    parts, group = (0 if each is None else each.per_iteration for each in (loop.inner, loop.outer))
    closed = loop.kind != LAYER
    return PhaseLoop(starts, loop.source, loop.name, closed, parts, group, loop.certain, loop.kernels, loop.model)


@steps.joined("signal")
def job_phases(signals: list[DeviceSignal]) -> JobPhases:
    """The phases of the job, of all its devices."""
    calls = [each.first_call_ns for each in signals if each.first_call_ns is not None]
    return find_phases(signals, min(calls, default=None), narrowed=any(each.narrowed for each in signals))


@steps.step()
def before_device(
    job_phases: JobPhases,
    outside: Outside | None,
    tables: HostTables,
    activity: DeviceActivity,
    facts: CallFacts,
    ranges: NvtxRanges,
) -> Start | None:
    """What the program did before the device's first work, from the first CUDA call of the job on, or in the chosen
    time."""
    if outside is None or not job_phases.phases:
        return None
    begin = job_phases.phases[0].start if outside.since is None else outside.since
    since = replace(outside, since=begin)
    return start_of(evidence_of_start([since], tables, activity, facts), since, ranges).between(begin, outside.end)


@steps.step()
def before_work(job_phases: JobPhases, before_device: Start | None) -> Start | None:
    """This where it is judged: in a cold start, which is about it, and where the user chose it; else None."""
    return before_device if job_phases.judges_before else None


@steps.step(trims=True)
def devices_in_phases(
    job_phases: JobPhases,
    device: DeviceTimeline,
    activity: DeviceActivity,
    time: TimeTable,
    before_device: Start | None,
) -> list[PhaseDevice]:
    """What the device did in each phase."""
    keys = [each.key for each in activity.devices]
    return device_phases(job_phases, device.key, time, before_device, keys)


@steps.joined("devices_in_phases")
def focus(devices: list[list[PhaseDevice]], job_phases: JobPhases) -> Focus:
    """The time that findings are about."""
    return focus_of(job_phases, devices)
