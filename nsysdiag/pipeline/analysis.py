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

from msgspec import Struct

from nsysdiag.arrays.background import Background
from nsysdiag.config.settings import Settings
from nsysdiag.pipeline.devices import look_at_devices
from nsysdiag.pipeline.host import look_at_host
from nsysdiag.pipeline.job import Job, devices_for_ranks, judge_job
from nsysdiag.pipeline.reading import Progress, read, silent
from nsysdiag.pipeline.result import TraceResult
from nsysdiag.pipeline.written import write_report
from nsysdiag.report import Report
from nsysdiag.trace.trace import Trace


class Analysis(Struct, frozen=True):
    """The report on a trace, and the job that it is about."""

    report: Report
    job: Job


def analysis_of(
    trace: Trace, settings: Settings, progress: Progress | None = None, *, keep_time: bool = False
) -> Analysis:
    """The analysis of an open trace. With `keep_time` the results of the devices have their tables of time."""
    told = progress or silent
    with Background() as background:
        reading = read(trace, settings, background, told)
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
