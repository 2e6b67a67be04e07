"""The fourth stage: what is said of all devices together."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.account.outside import Outside, evidence_of_start
from nsysdiag.arrays.background import Background, Deferred
from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.critical_path.facts import CriticalPath
from nsysdiag.critical_path.path import critical_path
from nsysdiag.diagnosis.behind import followed, lateness, with_late, with_shortage
from nsysdiag.diagnosis.focus import Scope
from nsysdiag.diagnosis.judge import (
    NO_FOCUS,
    NO_PHASES,
    JobFacts,
    Judgment,
    WithoutWork,
    barely_used,
    judge,
    rank_alone,
    ranks_elsewhere,
    working_processes,
)
from nsysdiag.diagnosis.missing import MPI, left_out_gpus, malformed_warnings, unseen_everywhere
from nsysdiag.diagnosis.savings import predict_of
from nsysdiag.diagnosis.sentences import unrecorded
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.gpus import gpus_present
from nsysdiag.events.identity import mpi_ranks
from nsysdiag.fields import Sentence
from nsysdiag.findings.phase_work import work_outside
from nsysdiag.host.alone import Alone, host_alone
from nsysdiag.host.facts import HostReport
from nsysdiag.host.report import host_report, scene_of
from nsysdiag.host.sync_latency import Working
from nsysdiag.host.threads import thread_states
from nsysdiag.kernels.communication import idle_in_steady_sends
from nsysdiag.kernels.limits import InOrder
from nsysdiag.ledger.ledger import WindowSplit
from nsysdiag.phases.facts import LEAST_WORK, told
from nsysdiag.phases.phases import JobPhases
from nsysdiag.pipeline.devices import Devices
from nsysdiag.pipeline.reading import HostReading, Progress
from nsysdiag.pipeline.replaying import Builder
from nsysdiag.pipeline.result import DeviceResult, TraceResult
from nsysdiag.programs.names import ids_of
from nsysdiag.ranges.facts import FlameStack
from nsysdiag.ranks.clocks import meet_by_mpi, rank_timeline
from nsysdiag.ranks.comparison import ITERATIONS, compare_ranks
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.replay.predict import Predictions
from nsysdiag.trace.capabilities import was_asked
from nsysdiag.trace.trace import Trace

NOTABLE = 0.1
"""Share of what was recorded: what the host did in less time is not said."""


class Job(Struct, frozen=True):
    """The job of a trace: the results of all devices, those that are `reported`, and the judgment.

    `threads` is what threads and CPUs did meanwhile, None if no device worked. `ranks` compares the devices, None if
    they have nothing in common. `predictions` are those of savings, or a sentence why there are none; `builder` makes
    the model that they rest on. `host_stacks` are the functions of threads if no device worked. The second thread finds
    the critical `path` (None: no model) while findings are replayed."""

    results: list[DeviceResult]
    reported: list[DeviceResult]
    warnings: list[str]
    threads: HostReport | None
    ranks: RankComparison | None
    builder: Builder
    predictions: Predictions | str
    judgment: Judgment
    host_stacks: list[FlameStack]
    path: Deferred[CriticalPath | None]


def look_at_threads(shown: list[tuple[DeviceTimeline, WindowSplit]], host: HostReading) -> HostReport | None:
    """What all threads of the programs that used these devices did meanwhile; None if no time is under analysis."""
    devices = [device for device, _ in shown]
    windows = [host.reading.windows[each.key] for each in devices]
    scene = laid(scene_of(host.traced, host.host, devices, windows), host.traced)
    if scene is None:
        return None
    working = [Working(split.busy, window.parts) for (_, split), window in zip(shown, windows, strict=True)]
    made = host_report(scene, thread_states(scene), working)
    del scene
    trim()
    return made


def judge_job(
    devices: Devices,
    threads: Deferred[HostReport | None],
    host: HostReading,
    background: Background,
    progress: Progress,
) -> Job:
    """What holds the job up, and what to do about it; `threads` are what threads and CPUs did meanwhile."""
    reading, results = host.reading, devices.results
    reported = [each for each in results if each.report.key in reading.shown]
    warnings = _row_warnings(host)
    progress("looking at threads and CPUs", 0.9)
    seen = threads.result()
    progress("writing the report", 0.95)
    ranks = _ranks(results, reading.trace)
    alone = _alone(host)
    predictions = devices.predictions.result()
    path = background.begin(_path, results, predictions)
    judgment = _judgment(results, reported, ranks, seen, predictions, alone, host)
    return Job(results, reported, warnings, seen, ranks, devices.builder, predictions, judgment, alone.stacks, path)


def devices_for_ranks(devices: Devices, host: HostReading) -> TraceResult:
    """The devices of a trace, for a comparison of ranks."""
    reading = host.reading
    return TraceResult(
        [each for each in devices.results if each.report.key in reading.shown],
        _row_warnings(host),
        ids_of(host.frameworks),
        gpus_present(reading.trace),
        reading.activity.duration_ns,
        devices.predictions.result(),
        scheduled=host.scheduled,
        ranks=mpi_ranks(reading.trace),
        host_unseen=reading.host_unseen,
    )


def _row_warnings(host: HostReading) -> list[str]:
    """What is wrong with the rows of the trace."""
    reading = host.reading
    found = [*left_out_gpus(reading.activity), *malformed_warnings(host.host.malformed)]
    return found if reading.devices else [*found, *unseen_everywhere(reading.unseen.result())]


def _ranks(results: list[DeviceResult], trace: Trace) -> RankComparison | None:
    """The devices as ranks, if they ran collectives together or are in step by their iterations."""
    if len(results) < 2:
        return None
    by_mpi = meet_by_mpi(each.collectives for each in results)
    timelines = [rank_timeline(each.report.key, trace.file, 0, None, each, by_mpi=by_mpi) for each in results]
    compared = compare_ranks(timelines)
    return compared if compared.groups or compared.basis == ITERATIONS else None


def _path(results: list[DeviceResult], predictions: Predictions | str) -> CriticalPath | None:
    """None for a start: most of it is before the first work, and other sections say what took it."""
    if isinstance(predictions, str) or results[0].focus.phase is None:
        return None
    return critical_path(predictions.model)


def _alone(host: HostReading) -> Alone:
    """What threads did if there is no GPU activity; nothing if there is any."""
    if host.reading.devices:
        return Alone()
    looping = None if host.loop is None else host.loop.thread
    return host_alone(host.traced, host.call_chains, *host.recorded_span, looping=looping)


def _judgment(
    results: list[DeviceResult],
    reported: list[DeviceResult],
    ranks: RankComparison | None,
    threads: HostReport | None,
    predictions: Predictions | str,
    alone: Alone,
    host: HostReading,
) -> Judgment:
    """Of chosen devices it is what holds these up, which may be another one."""
    reading = host.reading
    late = lateness([result.report for result in results], ranks)
    every = with_late([each for result in results for each in result.findings], late, reading.settings.findings)
    keys = {each.report.key for each in reported}
    found = [each for each in every if each.device in keys]
    phases, focus = (results[0].job_phases, results[0].focus) if results else (NO_PHASES, NO_FOCUS)
    operations = reading.activity.operations
    paging = union(Intervals(operations.start, operations.end)[operations.migration])
    asked = was_asked(reading.trace.capabilities(), "cuda-api")
    narrowed = any(window.narrowed for window in reading.windows.values())
    elsewhere = narrowed and any(len(each.operations) for each in reading.devices if each.key in reading.shown)
    by_phase = [followed(result.phases, late.get(result.report.key)) for result in reported]
    return judge(
        phases,
        by_phase,
        focus,
        Scope.of(phases, focus, paging, _around_phases(phases, host), by_phase),
        with_shortage(found, threads),
        _facts(results, reported, predictions, host),
        WithoutWork(unrecorded(host.loop, alone, cuda_asked=asked, elsewhere=elsewhere), alone.lines),
    )


def _facts(
    results: list[DeviceResult], reported: list[DeviceResult], predictions: Predictions | str, host: HostReading
) -> JobFacts:
    reading, frameworks = host.reading, ids_of(host.frameworks)
    processes = working_processes(reading.activity) if reading.settings.device is None else None
    busy = {result.report.key: result.split.busy.total() for result in results}
    return JobFacts(
        frameworks=frameworks,
        limits=reading.settings.findings,
        gpus_present=gpus_present(reading.trace),
        gpus_worked=sum(ns > 0 and ns >= LEAST_WORK * max(busy.values()) for ns in busy.values()),
        processes=processes,
        duration_ns=reading.activity.duration_ns,
        recorded=host.recorded_span,
        missing={result.report.key: result.missing for result in results},
        ranks=ranks_elsewhere(mpi_ranks(reading.trace), processes, mpi=MPI in frameworks)
        or rank_alone(reading.trace.rank),
        functions=len(host.tables.functions.start) > 0,
        scheduled=host.scheduled,
        host_unseen=reading.host_unseen,
        in_turns=host.sharing.in_turns,
        unused=barely_used(busy, {each.report.key for each in reported}),
        behind={result.report.key: result.behind for result in reported},
        in_order=_in_order(results[0].focus.parts, host) if results else {},
        predict=predict_of(predictions),
    )


def _in_order(parts: Intervals, host: HostReading) -> dict[str, InOrder]:
    """What no fix changes of the order of what each device did in the judged time, by its key."""
    calls, mpi, axis = host.reading.activity.api_calls.rows, host.host.mpi, host.host.axis
    return {
        each.key: InOrder.of(each, calls, parts, idle_in_steady_sends(each, calls, mpi, axis, parts))
        for each in host.reading.devices
    }


# What the host did before the first phase of a job and after its last one.


def _around_phases(found: JobPhases, host: HostReading) -> tuple[Sentence, Sentence]:
    """The calls and host code of the thread that launched most, in words; empty for a short time, and if nothing is
    known of it.

    ```
    recorded  [import torch ....][start-up][steady ....][getc ..........................]
    said       ^ host code 1.2 s                         ^ getc 32.9 s
    ```
    """
    activity = host.reading.activity
    launch = activity.launch[activity.launch >= 0]
    if not len(launch) or not found.phases:
        return "", ""
    thread, (first, last) = activity.api_calls.rows.busiest_thread(launch), host.recorded_span
    begin, end, least = found.phases[0].start, found.phases[-1].end, NOTABLE * (last - first)
    if max(begin - first, last - end) < least:
        return "", ""
    begun, ended = _lived(thread, host)
    return _did(thread, (max(first, begun), begin), least, host), _did(thread, (end, min(ended, last)), least, host)


def _lived(thread: int, host: HostReading) -> tuple[int, int]:
    """When the first event of a thread begins and the last one ends: of other time nothing is known of it."""
    tables, reading = host.tables, host.reading
    rows = (reading.activity.api_calls.rows, tables.os_calls, reading.ranges.rows)
    spans = [(each.start, each.end, each.thread) for each in rows]
    spans += [(each.time, each.time, each.thread) for each in (tables.switches, tables.samples)]
    mine = [(start[own], end[own]) for start, end, of in spans if (own := of == thread).any()]
    return min(int(start.min()) for start, _ in mine), max(int(end.max()) for _, end in mine)


def _did(thread: int, span: tuple[int, int], least: float, host: HostReading) -> Sentence:
    if span[1] - span[0] < least:
        return ""
    evidence = evidence_of_start(Outside(thread, *span), host.tables, host.reading.activity, host.facts)
    return told(work_outside(evidence, thread, span, host.call_chains))
