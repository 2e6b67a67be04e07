"""The way through the program: a trace file in, a report out. The order of steps, and no logic of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.intervals import IntArray
from nsysdiag.arrays.malloc_trim import trim
from nsysdiag.arrays.spill import spill
from nsysdiag.causes import CAUSES, FALLBACK
from nsysdiag.causes.call_facts import call_facts
from nsysdiag.causes.evidence import CallFacts, HostEvidence, Layer
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.pairing import require_names
from nsysdiag.config.settings import Settings
from nsysdiag.cost.cost import priced
from nsysdiag.counters.counters import read_counters
from nsysdiag.diagnosis.health import NOT_RECORDED, left_out_gpus, malformed_warnings, recapture
from nsysdiag.diagnosis.missing import UnseenLaunches, unseen_everywhere
from nsysdiag.errors import UsageError
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.device import DeviceActivity, DeviceTimeline, read_device_activity
from nsysdiag.events.host import HostActivity, host_activity
from nsysdiag.events.host_tables import large_tables, read_host_tables
from nsysdiag.events.identity import process_names, profiler_threads, thread_names
from nsysdiag.events.memory import read_memory
from nsysdiag.events.memory_fit import Part, part_that_fits
from nsysdiag.events.nvtx import read_ranges
from nsysdiag.events.python_stacks import PythonStacks
from nsysdiag.events.samples import chain_symbols, leaf_symbols
from nsysdiag.events.sharing import sharing_notes
from nsysdiag.findings.findings import ranked
from nsysdiag.findings.rules import FINDING_RULES
from nsysdiag.host.facts import HostReport
from nsysdiag.host.report import host_report
from nsysdiag.host.windows import Working
from nsysdiag.iterations.window import AnalysisWindow, window_of
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.ledger.drained import draining_calls
from nsysdiag.ledger.untraced_graphs import untraced_graphs
from nsysdiag.pipeline.device import analyze_device
from nsysdiag.pipeline.result import DeviceResult
from nsysdiag.pipeline.shared import Shared
from nsysdiag.printable import printable
from nsysdiag.ranks.advice import with_waits
from nsysdiag.ranks.comparison import ITERATIONS, compare_ranks
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.ranks.timeline import meet_by_mpi, rank_timeline
from nsysdiag.report import SCHEMA_VERSION, CauseInfo, Report, Tool, TraceInfo
from nsysdiag.shortage import Attempt
from nsysdiag.timeline.facts import TimelineLevels
from nsysdiag.timeline.host_lanes import Hosts, with_threads
from nsysdiag.trace.trace import Trace, open_trace
from nsysdiag.utilization.dashboard import check_periods
from nsysdiag.version import __version__
from nsysdiag.wakeups.host_trace import HostTrace, WaitingThreads
from nsysdiag.wakeups.search import RootSearch
from nsysdiag.wakeups.thread_names import ThreadNames
from nsysdiag.wakeups.waits import Files

Progress = Callable[[str, float], None]
Capture = Report | str | os.PathLike[str]
Side = Capture | Sequence[Capture]
"""One or several captures of a program: reports, or paths of traces."""
MARGIN_NS = 1_000_000  # host rows just before the first operation still matter to the first gap


def analyze(path: str | os.PathLike[str], settings: Settings | None = None, progress: Progress | None = None) -> Report:
    """Analyze one exported trace. Raises InputError for what is no export, UsageError for settings that do not fit,
    MemoryShortError, which is a MemoryError, where memory runs out."""
    settings = settings or Settings()
    with (
        Attempt(f"analyse '{printable(os.fsdecode(path))}'") as attempt,
        open_trace(path, reader=settings.reader, full_hash=settings.full_hash) as trace,
    ):
        return analyze_trace(trace, settings, attempt.noting(progress))


def compare(before: Side, after: Side, *, across_gpus: bool = False) -> Comparison:
    """Compare one or several captures before with one or several after: reports, or the traces that they are made of.
    Raises NotComparableError where there is no unit of work in common, the GPUs are of different models or names were
    replaced by other ones, InputError for what is no export."""
    left, right = _reports(before), _reports(after)
    require_names([*left, *right])
    return compare_reports(left, right, across_gpus=across_gpus)


def _reports(side: Side) -> list[Report]:
    captures = [side] if isinstance(side, str | os.PathLike | Report) else side
    return [capture if isinstance(capture, Report) else analyze(capture) for capture in captures]


def analyze_trace(trace: Trace, settings: Settings, progress: Progress | None = None) -> Report:
    """The report of an open trace. Raises UsageError for settings that do not fit."""
    step = progress or (lambda _name, _share: None)
    with Background() as beside:
        found = _analyzed(trace, settings, step, beside)
        step("looking at threads and CPUs", 0.9)
        trim()
        host = _host(found)
    step("writing the report", 0.95)
    trim()
    trace.check_unchanged()
    return priced(_report(trace, settings, found, host), settings.cost)


def _check_disabled(disabled: tuple[str, ...]) -> None:
    unknown = [cause for cause in disabled if cause not in CAUSES]
    if unknown:
        raise UsageError(f"there is no cause '{unknown[0]}'", hint="known causes: " + ", ".join(CAUSES))
    if FALLBACK in disabled:
        raise UsageError(f"'{FALLBACK}' cannot be disabled: it is what remains when nothing explains a gap")


def analyze_devices(
    trace: Trace, settings: Settings, progress: Progress | None = None
) -> tuple[list[DeviceResult], list[str]]:
    """The devices of an open trace, and warnings about its rows. Raises UsageError for settings that do not fit."""
    with Background() as beside:
        found = _analyzed(trace, settings, progress or (lambda _name, _share: None), beside)
    return found.results, found.warnings


@dataclass(frozen=True, slots=True)
class _Analyzed:
    """The results of the chosen devices, warnings about rows, and what the host's part is made of: the world of all
    threads, the launching ones, the devices and their windows, and where the lanes of threads come from."""

    results: list[DeviceResult]
    warnings: list[str]
    world: HostTrace
    host: HostActivity
    devices: list[DeviceTimeline]
    windows: list[AnalysisWindow]
    hosts: Hosts


def _analyzed(trace: Trace, settings: Settings, step: Progress, beside: Background) -> _Analyzed:
    _check_disabled(settings.disabled)
    check_periods(settings.utilization)
    step("reading device activity", 0.0)
    part = _part(trace, settings)
    trace.read_ahead(large_tables(trace))
    ranges = read_ranges(trace)
    activity = read_device_activity(
        trace, ranges, same_gpu=settings.same_gpu, communication_patterns=settings.communication_patterns
    )
    chosen = _chosen(activity.devices, settings.device)
    windows = [window_of(device, activity.api_calls.rows, ranges, settings, part) for device in chosen]
    _check_windows(chosen, windows)
    counters = beside.begin(read_counters, trace, activity.devices)
    unseen = beside.begin(UnseenLaunches.untold if trace.partial else partial(UnseenLaunches.of, activity))
    step("reading host activity", 0.3)
    tables = spill(read_host_tables(trace, ranges))
    host = spill(host_activity(tables, activity.api_calls, _axis(activity, chosen, windows), activity.latest_ns))
    step("classifying gaps", 0.6)
    facts = call_facts(activity)
    layered, draining = _layered(host, facts)
    names = thread_names(trace)
    world = HostTrace(
        tables=tables,
        activity=activity,
        facts=facts,
        ranges=ranges,
        low=host.axis.origin,
        high=host.axis.origin + host.axis.span,
        thread_names=names,
        process_names=process_names(trace),
        frames=partial(chain_symbols, trace),
        profilers=profiler_threads(trace),
    )
    shared = Shared(
        activity=activity,
        ranges=ranges,
        layered=layered,
        draining=draining,
        untraced=untraced_graphs(activity, facts),
        unseen=unseen.result(),
        sharing=sharing_notes(activity),
        events_dropped=trace.events_dropped,
        strings=trace.strings,
        thread_names=names,
        settings=settings,
        batched_launches=trace.has("TARGET_INFO_WDDM_CONTEXTS"),
        leaf_symbols=partial(leaf_symbols, trace),
        roots=RootSearch(
            world,
            WaitingThreads(host, facts),
            ThreadNames(world),
            Files(trace),
            settings.thresholds.root_floor,
            settings.disabled,
        ),
        call_chains=CallChains(trace, activity.api_calls),
        python_stacks=PythonStacks(trace, ranges.python),
        counters=counters.result(),
        memory=read_memory(trace, activity),
        beside=beside,
    )
    trim()
    results = [
        analyze_device(device, window, shared, last=device is chosen[-1])
        for device, window in zip(chosen, windows, strict=True)
    ]
    hosts = Hosts(shared.roots, ranges, names)
    warnings = [*left_out_gpus(activity), *malformed_warnings(host.malformed)]
    warnings += [] if activity.devices else unseen_everywhere(shared.unseen)
    return _Analyzed(results, warnings, world, host, chosen, windows, hosts)


def _part(trace: Trace, settings: Settings) -> Part | None:
    """The part of the trace that the memory limit allows to read, which is all that is read from now on."""
    if settings.memory_limit is None:
        return None
    part = part_that_fits(trace, settings.memory_limit, settings.start_ns, settings.end_ns)
    if part is None:
        return None
    if settings.nvtx is not None or settings.iterations is not None:
        raise UsageError(
            "the trace exceeds the memory limit, and --nvtx and --iterations need all of it",
            hint="choose a time with --from and --to, or raise --memory-limit",
        )
    trace.only_between(part.read_from, part.end)
    trace.warn(part.reason)
    return part


def _layered(host: HostActivity, facts: CallFacts) -> tuple[LayeredEvidence, list[Layer]]:
    """What the host-side rules make of the calls, and the calls that drain the device; the divided calls themselves
    are needed no longer."""
    evidence = HostEvidence.of(host, facts)
    return layer_evidence(evidence), draining_calls(evidence)


def _host(found: _Analyzed) -> HostReport | None:
    working = [
        Working(result.split.busy, window.parts) for result, window in zip(found.results, found.windows, strict=True)
    ]
    return host_report(found.world, found.host, found.devices, working)


def _chosen(devices: list[DeviceTimeline], wanted: str | None) -> list[DeviceTimeline]:
    """All devices, or those that `wanted` names: a key, the number in it, or a part of the GPU's name."""
    if wanted is None:
        return devices
    exact = [device for device in devices if wanted in (device.key, device.key.removeprefix("gpu"))]
    found = exact or [device for device in devices if wanted.lower() in device.gpu.name.lower()]
    if not found:
        known = ", ".join(f"{device.key} ({device.gpu.name})" for device in devices) or "none"
        raise UsageError(f"the trace has no device '{wanted}'", hint=f"devices in this trace: {known}")
    return found


def _check_windows(devices: list[DeviceTimeline], windows: list[AnalysisWindow]) -> None:
    """A window that holds nothing on any device is a mistake, not a healthy result."""
    narrowed = [window for window in windows if window.narrowed]
    if not narrowed or any(window.length_ns for window in narrowed):
        return
    spans = [
        f"{device.key} works from {window.whole.start[0]:,} to {window.whole.end[0]:,} ns"
        for device, window in zip(devices, windows, strict=True)
        if len(window.whole)
    ]
    raise UsageError(f"no GPU work lies in the chosen time: {narrowed[0].reason}", hint="; ".join(spans) or None)


def _axis(activity: DeviceActivity, devices: list[DeviceTimeline], windows: list[AnalysisWindow]) -> ThreadAxis:
    """An axis for the threads that launched anything on the chosen devices, over the time of their work."""
    spans = [window.whole for window in windows if len(window.whole)]
    low = min((int(span.start[0]) for span in spans), default=0) - MARGIN_NS
    high = max((int(span.end[0]) for span in spans), default=0)
    calls = activity.api_calls.rows
    launches = [device.launch[device.launch >= 0] for device in devices]
    threads: list[IntArray] = [calls.thread[rows] for rows in launches if len(rows)]
    return ThreadAxis.over(np.concatenate(threads) if threads else np.empty(0, dtype=np.int64), low, high)


def _report(trace: Trace, settings: Settings, analyzed: _Analyzed, host: HostReport | None) -> Report:
    capabilities, results = trace.capabilities(), analyzed.results
    devices = [result.report for result in results]
    ranks = _ranks(trace, results)
    found = [finding for result in results for finding in result.findings]
    return Report(
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
            warnings=[*trace.warnings, *analyzed.warnings],
            sha256=trace.sha256,
        ),
        devices=devices,
        findings=with_waits(ranked(found, settings.findings.most), ranks),
        causes=cause_infos(),
        recapture=recapture(devices, capabilities),
        settings=settings.changed(partial=trace.partial),
        timeline=_timeline(analyzed) if settings.timeline else msgspec.UNSET,
        ranks=ranks,
        untold=list(NOT_RECORDED),
        host=host,
    )


def _ranks(trace: Trace, results: list[DeviceResult]) -> RankComparison | None:
    """The devices beside each other, where they ran collectives together or are in step by their iterations."""
    if len(results) < 2:
        return None
    by_mpi = meet_by_mpi(results)
    ranks = [rank_timeline(each.report.key, trace.file, 0, None, each, by_mpi=by_mpi) for each in results]
    compared = compare_ranks(ranks)
    return compared if compared.groups or compared.basis == ITERATIONS else None


def _timeline(analyzed: _Analyzed) -> dict[str, TimelineLevels]:
    drawn = [result.timeline for result in analyzed.results if result.timeline is not None]
    return with_threads(drawn, analyzed.hosts)


def cause_infos() -> list[CauseInfo]:
    """The registry of causes as data, and what else findings are about."""
    causes = [
        CauseInfo(id=each.id, title=each.title, meaning=each.meaning, color=each.color, unresolved=each.unresolved)
        for each in CAUSES.values()
    ]
    return causes + [
        CauseInfo(id=rule.id, title=rule.title, meaning=rule.meaning, color=rule.color)
        for rule in FINDING_RULES.values()
    ]
