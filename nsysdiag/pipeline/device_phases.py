"""The fourth part of one device, in which it meets the others: the phases of the job, and what it did in each."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.account.outside import Outside, Start, device_phases, evidence_of_start, outside_of, start_of
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.arrays.spill import trim
from nsysdiag.iterations.loop import LAYER, Loop
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phases.phases import JobPhases, find_phases
from nsysdiag.phases.signal import DeviceSignal
from nsysdiag.phases.signal import StepLoop as PhaseLoop
from nsysdiag.pipeline.device_gaps import DeviceGaps
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.reading import Reading
from nsysdiag.time.table import TimeTable


class DevicePhases(Struct, frozen=True):
    """What a device did in each phase of the job. `before` is the time before its first work (None: not recorded), from
    the first CUDA call of the job on or in the chosen time."""

    devices: list[PhaseDevice]
    before: Start | None


def signal_of(found: DeviceGaps, time: TimeTable, outside: Outside | None) -> DeviceSignal:
    """What a device tells about the phases of the job; `outside` is the time before its first work."""
    return DeviceSignal(
        device=found.device,
        window=found.window.parts,
        split=found.split,
        startup=time.set_of("startup"),
        memory=time.set_of("memory"),
        unknown=time.set_of("unknown"),
        loops=tuple(_of_phases(loop, run) for loop in found.loops.result() for run in loop.runs),
        first_call_ns=None if outside is None else outside.begin if outside.since is None else outside.since,
        narrowed=found.window.narrowed,
    )


def phases_of_job(signals: list[DeviceSignal]) -> JobPhases:
    """The phases of the job, of all its devices."""
    calls = [each.first_call_ns for each in signals if each.first_call_ns is not None]
    return find_phases(signals, min(calls, default=None), narrowed=any(each.narrowed for each in signals))


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
    made = DevicePhases(device_phases(job_phases, found.device.key, time, before, keys), before)
    trim()
    return made


def time_before(found: DeviceGaps, reading: Reading, host: HostReading) -> Outside | None:
    """What the program did from its first CUDA call to the device's first work, as far as anything was recorded; or in
    the chosen time before that work."""
    window = found.window
    if window.narrowed and window.asked is None:
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
    return start_of(evidence, since, reading.ranges).between(begin, outside.end)


def _of_phases(loop: Loop, starts: IntArray) -> PhaseLoop:
    parts, group = (0 if each is None else each.per_iteration for each in (loop.inner, loop.outer))
    closed = loop.kind != LAYER
    return PhaseLoop(starts, loop.source, loop.name, closed, parts, group, loop.certain, loop.kernels, loop.model)
