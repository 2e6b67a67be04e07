"""The analysis of a trace: five stages, each a function of what those before it made.

```
read             -> Reading              what is read of the trace, and the window of each device
look_at_host     -> HostReading             what threads and CPUs did, and what that is evidence of
look_at_devices  -> list[DeviceResult]   every device: its table of time, its figures, its findings
judge_job        -> Job                  what holds the job up, and what to do about it
write_report     -> Report
```
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, structs

from nsysdiag.arrays.background import Background
from nsysdiag.config.settings import Settings
from nsysdiag.critical_path.facts import CriticalPath
from nsysdiag.critical_path.path import critical_path
from nsysdiag.diagnosis.facts import Diagnosis
from nsysdiag.diagnosis.missing import not_recorded, recapture
from nsysdiag.findings.rules import cause_infos
from nsysdiag.iterations.chosen import CarriedSteps
from nsysdiag.phrases import finished
from nsysdiag.pipeline.devices import look_at_devices
from nsysdiag.pipeline.host import HostReading, look_at_host
from nsysdiag.pipeline.job import Job, devices_for_ranks, judge_job
from nsysdiag.pipeline.reading import Progress, Reading, read, silent
from nsysdiag.pipeline.result import TraceResult
from nsysdiag.record import ByName
from nsysdiag.replay.predict import Predictions
from nsysdiag.report import SCHEMA_VERSION, Report, Tool, TraceInfo
from nsysdiag.timeline.timeline import with_threads
from nsysdiag.trace.trace import Trace
from nsysdiag.version import __version__

# The fifth stage: the report.


def write_report(job: Job, reading: Reading, host: HostReading) -> Report:
    """The report on a job."""
    trace, settings = reading.trace, reading.settings
    judgment, predictions = job.judgment, job.predictions
    devices = [structs.replace(each.report, verdict=judgment.verdict(each.report.key)) for each in job.reported]
    lanes = [each.timeline for each in job.reported if each.timeline is not None]
    timelines = with_threads(lanes, host.host, host.traced)
    capabilities = trace.capabilities()
    made = Report(
        schema_version=SCHEMA_VERSION,
        tool=Tool(name="nsysdiag", version=__version__),
        trace=_trace_info(job, reading),
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
        critical_path=_path_of(judgment.diagnosis, predictions),
        outlooks=[] if isinstance(predictions, str) else predictions.outlooks(judgment.findings),
    )
    return finished(made, timelines.sentences)


def _path_of(diagnosis: Diagnosis, predictions: Predictions | str) -> CriticalPath | None:
    """None for a start: most of it is before the first work, and other sections say what took it."""
    if diagnosis.phase is None or isinstance(predictions, str):
        return None
    return critical_path(predictions.model)


def _trace_info(job: Job, reading: Reading) -> TraceInfo:
    trace = reading.trace
    return TraceInfo(
        file=trace.file,
        size_bytes=trace.size_bytes,
        fingerprint=trace.fingerprint,
        nsys_version=trace.nsys_version,
        export_schema_version=trace.schema_version,
        tables=trace.tables(),
        capabilities=trace.capabilities(),
        warnings=[*trace.typed_warnings, *job.warnings],
        sha256=trace.sha256,
    )


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
    with Background() as background:
        reading = read(trace, settings, background, told, steps)
        host = look_at_host(reading, told)
        results = look_at_devices(reading, host, background, keep_time=keep_time)
        job = judge_job(results, reading, host, background, told)
        return Analysis(write_report(job, reading, host), job)


def devices_of(trace: Trace, settings: Settings) -> TraceResult:
    """The devices of an open trace, for a comparison of ranks."""
    with Background() as background:
        reading = read(trace, settings, background, silent)
        host = look_at_host(reading, silent)
        return devices_for_ranks(look_at_devices(reading, host, background), reading, host)
