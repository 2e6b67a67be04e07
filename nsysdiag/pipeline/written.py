"""The fifth stage: the report."""

from __future__ import annotations

import msgspec
from msgspec import structs

from nsysdiag.diagnosis.health import NOT_RECORDED, recapture
from nsysdiag.findings.rules import cause_infos
from nsysdiag.phrases import finished
from nsysdiag.pipeline.host import HostReading
from nsysdiag.pipeline.job import Job
from nsysdiag.pipeline.reading import Reading
from nsysdiag.report import SCHEMA_VERSION, Report, Tool, TraceInfo
from nsysdiag.timeline.timeline import with_threads
from nsysdiag.version import __version__


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
        devices=devices,
        findings=judgment.findings,
        causes=cause_infos(),
        recapture=recapture(devices, capabilities, judgment.findings, judgment.diagnosis.frameworks),
        settings=settings.changed(partial=trace.partial),
        timeline=timelines.levels if settings.timeline else msgspec.UNSET,
        ranks=job.ranks if len(job.reported) > 1 else None,
        not_recorded=list(NOT_RECORDED),
        host=job.threads,
        diagnosis=judgment.diagnosis,
        phases=judgment.phases,
        outlooks=[] if isinstance(predictions, str) else predictions.outlooks(judgment.findings),
    )
    return finished(made, timelines.sentences)


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
