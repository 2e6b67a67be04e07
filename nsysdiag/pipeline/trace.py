"""The steps of a trace: reading, then every device, then what is said of all of them."""

from __future__ import annotations

import msgspec
from msgspec import structs

from nsysdiag.arrays.intervals import Intervals, union
from nsysdiag.config.settings import Settings
from nsysdiag.diagnosis.health import NOT_RECORDED, left_out_gpus, malformed_warnings, recapture
from nsysdiag.diagnosis.judge import NO_FOCUS, NO_PHASES, Judgment, judge
from nsysdiag.diagnosis.late import followed, lateness, with_late
from nsysdiag.diagnosis.missing import UnseenLaunches, unseen_everywhere
from nsysdiag.diagnosis.savings import predict_of
from nsysdiag.diagnosis.sentences import unseen_host
from nsysdiag.diagnosis.shortage import with_shortage
from nsysdiag.diagnosis.unused_gpus import working_processes
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.gpus import gpus_present
from nsysdiag.events.host import HostActivity
from nsysdiag.events.identity import mpi_ranks
from nsysdiag.events.sharing import Sharing
from nsysdiag.findings.rules import cause_infos
from nsysdiag.host import report as host_steps
from nsysdiag.host.alone import Alone, host_alone
from nsysdiag.host.facts import HostReport
from nsysdiag.host.report import HostOverTime
from nsysdiag.host.states import HostScene, ThreadStates, thread_states
from nsysdiag.host.sync_latency import Working
from nsysdiag.iterations.happened import HostLoop
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.phrases import finished
from nsysdiag.pipeline import device, reading, replaying
from nsysdiag.pipeline.result import DeviceResult, TraceResult
from nsysdiag.pipeline.stages import Stages
from nsysdiag.programs.facts import Framework
from nsysdiag.programs.names import ids_of
from nsysdiag.ranks.clocks import meet_by_mpi, rank_timeline
from nsysdiag.ranks.comparison import ITERATIONS, compare_ranks
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.replay.predict import Predictions
from nsysdiag.report import SCHEMA_VERSION, Report, Tool, TraceInfo
from nsysdiag.time.facts import TimeColumns
from nsysdiag.timeline.timeline import Timelines, with_threads
from nsysdiag.trace.capabilities import was_asked
from nsysdiag.trace.trace import Trace
from nsysdiag.version import __version__
from nsysdiag.wakeups.loaders import HostTrace

HOST_TABLES = ("OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS")
"""What shows the host outside of CUDA calls."""

steps: Stages = Stages(reading.steps)
steps.for_each("results", "device", "devices", device.steps, device.result)


@steps.step()
def reported(results: list[DeviceResult], shown: frozenset[str]) -> list[DeviceResult]:
    """The devices that are reported."""
    return [each for each in results if each.report.key in shown]


steps.extend(replaying.steps)


@steps.step()
def row_warnings(activity: DeviceActivity, host: HostActivity, unseen: UnseenLaunches) -> list[str]:
    """What is wrong with the rows of the trace."""
    found = [*left_out_gpus(activity), *malformed_warnings(host.malformed)]
    return found if activity.devices else [*found, *unseen_everywhere(unseen)]


@steps.step()
def trace_result(
    trace: Trace,
    reported: list[DeviceResult],
    row_warnings: list[str],
    frameworks: list[Framework],
    activity: DeviceActivity,
    predictions: Predictions | str,
    scheduled: bool,
) -> TraceResult:
    """The devices, for a comparison of ranks."""
    return TraceResult(
        reported,
        row_warnings,
        ids_of(frameworks),
        gpus_present(trace),
        activity.duration_ns,
        predictions,
        scheduled=scheduled,
        ranks=mpi_ranks(trace),
        host_unseen=_host_unseen(trace),
    )


def _host_unseen(trace: Trace) -> bool:
    return not any(map(trace.has, HOST_TABLES))


@steps.step(spills=True, progress=("looking at threads and CPUs", 0.9))
def scene(
    host_trace: HostTrace,
    host: HostActivity,
    devices: list[DeviceTimeline],
    windows: dict[str, AnalysisWindow],
    shown: frozenset[str],
) -> HostScene | None:
    """All threads of the programs that used the devices, meanwhile; None where no time is under analysis."""
    mine = [each for each in devices if each.key in shown]
    return host_steps.scene_of(host_trace, host, mine, [windows[each.key] for each in mine])


@steps.step()
def host_states(scene: HostScene | None) -> ThreadStates | None:
    """When these threads were on a CPU."""
    return None if scene is None else thread_states(scene)


@steps.step()
def host_over_time(
    scene: HostScene | None,
    host_states: ThreadStates | None,
    windows: dict[str, AnalysisWindow],
    reported: list[DeviceResult],
) -> HostOverTime | None:
    """What they did, window by window."""
    working = [Working(result.split.busy, windows[result.report.key].parts) for result in reported]
    return None if scene is None or host_states is None else host_steps.over_time(scene, host_states, working)


@steps.step(trims=True)
def host_report(
    scene: HostScene | None, host_states: ThreadStates | None, host_over_time: HostOverTime | None
) -> HostReport | None:
    """What threads and CPUs did while the devices were in use."""
    if scene is None or host_states is None or host_over_time is None:
        return None
    return host_steps.host_report(scene, host_states, host_over_time)


@steps.step(progress=("writing the report", 0.95))
def ranks(trace: Trace, results: list[DeviceResult]) -> RankComparison | None:
    """The devices as ranks, where they ran collectives together or are in step by their iterations."""
    if len(results) < 2:
        return None
    by_mpi = meet_by_mpi(results)
    timelines = [rank_timeline(each.report.key, trace.file, 0, None, each, by_mpi=by_mpi) for each in results]
    compared = compare_ranks(timelines)
    return compared if compared.groups or compared.basis == ITERATIONS else None


@steps.step()
def timelines(reported: list[DeviceResult], host: HostActivity, host_trace: HostTrace) -> Timelines:
    """The timelines of the devices that have one."""
    return with_threads([each.timeline for each in reported if each.timeline is not None], host, host_trace)


@steps.step()
def alone(
    devices: list[DeviceTimeline],
    host_trace: HostTrace,
    call_chains: CallChains,
    recorded_span: tuple[int, int],
    host_loop: HostLoop | None,
) -> Alone | None:
    """What threads did in a trace without GPU activity; None where there is any."""
    if devices:
        return None
    return host_alone(host_trace, call_chains, *recorded_span, looped=host_loop is not None)


@steps.step()
def judgment(
    trace: Trace,
    activity: DeviceActivity,
    results: list[DeviceResult],
    reported: list[DeviceResult],
    ranks: RankComparison | None,
    frameworks: list[Framework],
    host_report: HostReport | None,
    host_loop: HostLoop | None,
    alone: Alone | None,
    predictions: Predictions | str,
    scheduled: bool,
    sharing: Sharing,
    recorded_span: tuple[int, int],
    settings: Settings,
) -> Judgment:
    """What holds the job up, and what to do about it. Of chosen devices it is what holds these up, which may be another
    one."""
    late = lateness([result.report for result in results], ranks)
    every = with_late([finding for result in results for finding in result.findings], late, settings.findings)
    keys = {each.report.key for each in reported}
    found = [each for each in every if each.device in keys]
    host_unseen = _host_unseen(trace)
    found = unseen_host(found) if host_unseen else found
    return judge(
        results[0].job_phases if results else NO_PHASES,
        [followed(result.phases, late.get(result.report.key)) for result in reported],
        results[0].focus if results else NO_FOCUS,
        with_shortage(found, host_report),
        frameworks=ids_of(frameworks),
        gpus_present=gpus_present(trace),
        processes=working_processes(activity) if settings.device is None else None,
        duration_ns=activity.duration_ns,
        recorded=recorded_span,
        host_loop=host_loop,
        alone=alone,
        cuda_asked=was_asked(trace.capabilities(), "cuda-api"),
        limits=settings.findings,
        missing={result.report.key: result.missing for result in results},
        predict=predict_of(predictions),
        ranks=mpi_ranks(trace),
        scheduled=scheduled,
        host_unseen=host_unseen,
        in_turns=sharing.in_turns,
        behind={result.report.key: result.behind for result in reported},
        paging=_paging(activity),
    )


def _paging(activity: DeviceActivity) -> Intervals:
    """The set of time in which pages of unified memory move."""
    operations = activity.operations
    return union(Intervals(operations.start, operations.end)[operations.migration])


@steps.step()
def report(
    trace: Trace,
    settings: Settings,
    reported: list[DeviceResult],
    row_warnings: list[str],
    ranks: RankComparison | None,
    judgment: Judgment,
    timelines: Timelines,
    predictions: Predictions | str,
    host_report: HostReport | None,
) -> Report:
    """The report."""
    capabilities = trace.capabilities()
    devices = [structs.replace(each.report, verdict=judgment.verdict(each.report.key)) for each in reported]
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
            warnings=[*trace.typed_warnings, *row_warnings],
            sha256=trace.sha256,
        ),
        devices=devices,
        findings=judgment.findings,
        causes=cause_infos(),
        recapture=recapture(devices, capabilities, judgment.findings, judgment.diagnosis.frameworks),
        settings=settings.changed(partial=trace.partial),
        timeline=timelines.levels if settings.timeline else msgspec.UNSET,
        ranks=ranks if len(reported) > 1 else None,
        not_recorded=list(NOT_RECORDED),
        host=host_report,
        diagnosis=judgment.diagnosis,
        phases=judgment.phases,
        outlooks=[] if isinstance(predictions, str) else predictions.outlooks(judgment.findings),
    )
    return finished(made, timelines.sentences)


@steps.step()
def report_and_time(report: Report, reported: list[DeviceResult]) -> tuple[Report, list[TimeColumns]]:
    """The report, and the table of time of each device in it, where requested."""
    return report, [each.time for each in reported if each.time is not None]
