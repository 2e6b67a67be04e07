"""The entrances of the program: a trace file in, a report out. `analysis` has the stages between them, `changes`
compares."""

from __future__ import annotations

import os

from nsysdiag.arrays.spill import trim
from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.config.settings import Settings
from nsysdiag.cost.cost import priced
from nsysdiag.iterations.chosen import CarriedSteps
from nsysdiag.iterations.report import referenced
from nsysdiag.messages import UsageError, printable
from nsysdiag.pipeline.analysis import analysis_of, devices_of
from nsysdiag.pipeline.reading import Progress
from nsysdiag.pipeline.result import TraceResult
from nsysdiag.report import Report
from nsysdiag.shortage import Attempt
from nsysdiag.time.facts import TimeColumns
from nsysdiag.time.table import charged_as
from nsysdiag.trace.trace import Trace, open_trace
from nsysdiag.utilization.utilization import check_periods, with_flops


def analyze(
    path: str | os.PathLike[str],
    settings: Settings | None = None,
    progress: Progress | None = None,
    *,
    keep_time: bool = False,
    steps: CarriedSteps | None = None,
) -> Report:
    """Analyze one exported trace. With `keep_time` the report keeps its table of time. `steps` are those that another
    trace shows, None where they are found or chosen.

    Raises InputError for other files, UsageError for settings that do not fit, and MemoryShortError, a MemoryError, if
    memory runs out."""
    settings = settings or Settings()
    with (
        Attempt(f"analyze '{printable(os.fsdecode(path))}'") as attempt,
        open_trace(path, reader=settings.reader, full_hash=settings.full_hash, nsys=settings.nsys) as trace,
    ):
        return analyze_trace(trace, settings, attempt.noting(progress), keep_time=keep_time, steps=steps)


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
        made.keep_time([_charged(each.time, made) for each in found.job.reported if each.time is not None])
    del found
    trim()  # what is written next needs the report alone
    return made


def _charged(table: TimeColumns, report: Report) -> TimeColumns:
    """The table of time of a device, charged as its phases are."""
    return charged_as(table, [each for phase in report.phases for each in phase.devices if each.key == table.device])


def with_given(report: Report, settings: Settings) -> Report:
    """The report with what the settings give and no trace holds: prices, a step without the profiler, the operations of
    a step. Raises UsageError if it has no steps for the latter two."""
    made = referenced(priced(report, settings.cost), settings.reference_step_ns)
    return with_flops(made, settings.flops_per_step)


def analyze_devices(trace: Trace, settings: Settings) -> TraceResult:
    """The devices of an open trace, for a comparison of ranks. Raises UsageError for settings that do not fit."""
    _check(settings)
    return devices_of(trace, settings)


def _check(settings: Settings) -> None:
    unknown = [cause for cause in settings.disabled if cause not in CAUSES]
    if unknown:
        raise UsageError(f"there is no cause '{unknown[0]}'", hint="known causes: " + ", ".join(CAUSES))
    if FALLBACK in settings.disabled:
        raise UsageError(f"'{FALLBACK}' cannot be disabled: it is what remains when nothing explains a gap")
    check_periods(settings.utilization)
