"""The analysis of a trace: five stages, each a function of what those before it made.

```
read             -> Reading              what is read of the trace, and the window of each device
look_at_host     -> HostReading          what threads and CPUs did, and what that is evidence of
meet,            -> list[MetDevice]      every device: its table of time, and the phases of the job
look_at_devices  -> Devices              its figures, its findings
judge_job        -> Job                  what holds the job up, and what to do about it
write_report     -> Report
```
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, structs

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.spill import trim
from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.config.settings import Settings
from nsysdiag.cost.cost import priced
from nsysdiag.diagnosis.missing import not_recorded, recapture
from nsysdiag.findings.rules import cause_infos
from nsysdiag.iterations.chosen import CarriedSteps
from nsysdiag.iterations.report import referenced
from nsysdiag.messages import UsageError
from nsysdiag.phrases import finished
from nsysdiag.pipeline.device_time import BegunDevice, begin_devices
from nsysdiag.pipeline.devices import Devices, look_at_devices, meet
from nsysdiag.pipeline.job import Job, devices_for_ranks, judge_job, look_at_threads
from nsysdiag.pipeline.reading import HostReading, Progress, Reading, look_at_host, read, silent, working
from nsysdiag.pipeline.result import TraceResult
from nsysdiag.record import ByName
from nsysdiag.report import SCHEMA_VERSION, Report, Tool, TraceInfo
from nsysdiag.time.table import charged_as
from nsysdiag.timeline.timeline import Timelines, with_threads
from nsysdiag.trace.trace import Trace
from nsysdiag.utilization.utilization import check_periods, with_flops
from nsysdiag.version import __version__

# The fifth stage: the report.


def write_report(job: Job, host: HostReading, timelines: Timelines) -> Report:
    """The report on a job, with the timelines of its devices."""
    trace, settings = host.reading.trace, host.reading.settings
    judgment, predictions = job.judgment, job.predictions
    devices = [structs.replace(each.report, verdict=judgment.verdict(each.report.key)) for each in job.reported]
    capabilities = trace.capabilities()
    made = Report(
        schema_version=SCHEMA_VERSION,
        tool=Tool(name="nsysdiag", version=__version__),
        trace=TraceInfo(
            file=trace.file,
            size_bytes=trace.size_bytes,
            fingerprint=trace.fingerprint,
            nsys_version=trace.nsys_version,
            export_schema_version=trace.schema_version,
            tables=trace.tables(),
            capabilities=capabilities,
            warnings=[*trace.typed_warnings, *job.warnings],
            sha256=trace.sha256,
        ),
        devices=ByName(devices),
        findings=ByName(judgment.findings),
        causes=cause_infos(),
        recapture=recapture(devices, capabilities, judgment.findings, judgment.diagnosis.frameworks),
        settings=settings.changed(partial=trace.partial),
        timeline=timelines.levels if settings.timeline else msgspec.UNSET,
        ranks=job.ranks if len(job.reported) > 1 else None,
        not_recorded=not_recorded(judgment.diagnosis.frameworks),
        host=job.threads,
        diagnosis=judgment.diagnosis,
        phases=judgment.phases,
        host_stacks=job.host_stacks,
        critical_path=job.path.result(),
        outlooks=[] if isinstance(predictions, str) else predictions.outlooks(judgment.findings),
    )
    return finished(made, timelines.sentences)


class Analysis(Struct, frozen=True):
    """The report on a trace, and the job that it is about."""

    report: Report
    job: Job


def analysis_of(
    trace: Trace,
    settings: Settings,
    progress: Progress | None = None,
    *,
    keep_time: bool = False,
    steps: CarriedSteps | None = None,
) -> Analysis:
    """The analysis of an open trace. With `keep_time` the results of the devices have their tables of time. `steps` are
    those that another trace shows."""
    told = progress or silent
    with working(trace) as background:
        host, begun = _looked_at(read(trace, settings, background, told, steps), background, told)
        met = meet(host, begun, background)
        shown = [(each.device, each.split) for each in met if each.device.key in host.reading.shown]
        threads = background.begin(look_at_threads, shown, host)
        devices = look_at_devices(met, host, background, keep_time=keep_time)
        timelines = background.begin(_timelines, devices, host)
        job = judge_job(devices, threads, host, background, told)
        return Analysis(write_report(job, host, timelines.result()), job)


def _looked_at(
    reading: Reading, background: Background, progress: Progress
) -> tuple[HostReading, dict[str, BegunDevice]]:
    """What the host did, and the devices, which the second thread begins with meanwhile."""
    begun = begin_devices(reading, background)
    return look_at_host(reading, progress), begun


def _timelines(devices: Devices, host: HostReading) -> Timelines:
    """Those of the devices that are reported."""
    shown = [each.timeline for each in devices.results if each.report.key in host.reading.shown]
    return with_threads([found for each in shown if (found := each.result()) is not None], host.host, host.traced)


# The entrances: a trace in, a report out.


def analyze_trace(
    trace: Trace,
    settings: Settings,
    progress: Progress | None = None,
    *,
    keep_time: bool = False,
    steps: CarriedSteps | None = None,
) -> Report:
    """The report of an open trace, with its table of time if `keep_time`. Raises UsageError for settings that do not
    fit."""
    _check(settings)
    found = analysis_of(trace, settings, progress, keep_time=keep_time, steps=steps)
    trace.check_unchanged()
    made = with_given(found.report, settings)
    if keep_time:
        phases = [each for phase in made.phases for each in phase.devices]
        times = (each.time for each in found.job.reported if each.time is not None)
        made.keep_time([charged_as(time, [each for each in phases if each.key == time.device]) for time in times])
        del times
    del found
    trim()  # what is written next needs the report alone
    return made


def with_given(report: Report, settings: Settings) -> Report:
    """The report with what the settings give and no trace holds: prices, a step without the profiler, the operations of
    a step. Raises UsageError if it has no steps for the latter two."""
    made = referenced(priced(report, settings.cost), settings.reference_step_ns)
    return with_flops(made, settings.flops_per_step)


def analyze_devices(trace: Trace, settings: Settings) -> TraceResult:
    """The devices of an open trace, for a comparison of ranks. Raises UsageError for settings that do not fit."""
    _check(settings)
    with working(trace) as background:
        host, begun = _looked_at(read(trace, settings, background, silent), background, silent)
        return devices_for_ranks(look_at_devices(meet(host, begun, background), host, background), host)


def _check(settings: Settings) -> None:
    unknown = [cause for cause in settings.disabled if cause not in CAUSES]
    if unknown:
        raise UsageError(f"there is no cause '{unknown[0]}'", hint="known causes: " + ", ".join(CAUSES))
    if FALLBACK in settings.disabled:
        raise UsageError(f"'{FALLBACK}' cannot be disabled: it is what remains when nothing explains a gap")
    check_periods(settings.utilization)
