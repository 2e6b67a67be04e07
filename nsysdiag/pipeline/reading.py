"""The first steps of a trace: what is read of it, the window of each device, and the evidence of the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nsysdiag import typed
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.causes.call_facts import call_facts
from nsysdiag.causes.evidence import CallFacts, EvidenceLayer, HostEvidence
from nsysdiag.config.settings import Settings
from nsysdiag.config.step import parse_step
from nsysdiag.counters.counters import Counters, read_counters
from nsysdiag.diagnosis.missing import UnseenLaunches
from nsysdiag.errors import UsageError
from nsysdiag.events.axis import NamedRows, ThreadAxis
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.calls import ApiCalls, read_api_calls
from nsysdiag.events.device import DeviceActivity, DeviceTimeline, GpuOperations, device_activity, operations_by_gpu
from nsysdiag.events.host import (
    HostActivity,
    HostTables,
    host_activity,
    large_tables,
    place_api_calls,
    place_os_calls,
    read_host_tables,
    recorded_time,
)
from nsysdiag.events.identity import process_names, profiler_threads
from nsysdiag.events.identity import thread_names as read_thread_names
from nsysdiag.events.memory import Memory, read_memory
from nsysdiag.events.memory_fit import FittingSpan, part_that_fits
from nsysdiag.events.nvtx import NvtxRanges, read_ranges
from nsysdiag.events.operations import RecordedOperations, read_operations
from nsysdiag.events.python_stacks import PythonStacks
from nsysdiag.events.samples import chain_symbols
from nsysdiag.events.samples import leaf_symbols as read_leaf_symbols
from nsysdiag.events.sharing import Sharing, sharing_of
from nsysdiag.iterations.chosen import chosen_loops
from nsysdiag.iterations.happened import HostLoop
from nsysdiag.iterations.happened import host_loop as find_host_loop
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.window import AnalysisWindow, window_of
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.ledger.drained import draining_calls
from nsysdiag.ledger.untraced_graphs import PartialReplays, partial_replays, untraced_graphs
from nsysdiag.pipeline.stages import Stages
from nsysdiag.programs.facts import Framework
from nsysdiag.programs.names import frameworks_of, names_of
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.trace import Trace
from nsysdiag.wakeups.loaders import HostTrace, ThreadNames, WaitingThreads
from nsysdiag.wakeups.runs import Runs
from nsysdiag.wakeups.waits import Files
from nsysdiag.wakeups.wakers import BEFORE_NS, WakeFinder

MARGIN_NS = 1_000_000  # host rows just before the first operation still matter to the first gap

steps: Stages = Stages()


@steps.step(progress=("reading device activity", 0.0))
def part(trace: Trace, settings: Settings) -> FittingSpan | None:
    """The part of the trace that the memory limit allows to read, which is all that is read from now on."""
    if settings.memory_limit is None:
        return None
    found = part_that_fits(trace, settings.memory_limit, settings.start_ns, settings.end_ns)
    if found is None:
        return None
    if settings.nvtx is not None or settings.iterations is not None:
        raise UsageError(
            "the trace exceeds the memory limit, and --nvtx and --iterations need all of it",
            hint="choose a time with --from and --to, or raise --memory-limit",
        )
    trace.only_between(found.read_from, found.end)
    trace.warn(found.reason)
    return found


@steps.step()
def ranges(trace: Trace) -> NvtxRanges:
    """NVTX ranges. The large tables that come next are read meanwhile."""
    trace.read_ahead(large_tables(trace))
    return read_ranges(trace)


@steps.step(spills=True)
def recorded(trace: Trace) -> RecordedOperations:
    """Kernels, copies, sets and graphs of all GPUs."""
    return read_operations(trace)


@steps.step(spills=True)
def api_calls(trace: Trace, recorded: RecordedOperations) -> ApiCalls:
    """Calls of the runtime and the driver."""
    return read_api_calls(trace, recorded.latest_ns)


@steps.step(spills=True)
def operations(trace: Trace, recorded: RecordedOperations, api_calls: ApiCalls, settings: Settings) -> GpuOperations:
    """The operations with their launches, by GPU and time."""
    return operations_by_gpu(trace, recorded, api_calls, same_gpu=settings.same_gpu)


@steps.step()
def activity(
    trace: Trace, ranges: NvtxRanges, api_calls: ApiCalls, operations: GpuOperations, settings: Settings
) -> DeviceActivity:
    """What all GPUs did, and the API calls that launched it."""
    return device_activity(trace, ranges, api_calls, operations, settings.communication_patterns)


@steps.step()
def devices(activity: DeviceActivity) -> list[DeviceTimeline]:
    """All devices: what one of them waits for may be another one, whichever are shown."""
    return activity.devices


@steps.step()
def shown(activity: DeviceActivity, settings: Settings) -> frozenset[str]:
    """The keys of the devices that are reported: all, or those that the settings name by key, by the number in it, or
    by a part of the GPU's name."""
    wanted, every = settings.device, activity.devices
    if wanted is None:
        return frozenset(each.key for each in every)
    exact = [device for device in every if wanted in (device.key, device.key.removeprefix("gpu"))]
    found = exact or [device for device in every if wanted.lower() in device.gpu.name.lower()]
    if not found:
        known = ", ".join(f"{device.key} ({device.gpu.name})" for device in every) or "none"
        raise UsageError(f"the trace has no device '{wanted}'", hint=f"devices in this trace: {known}")
    return frozenset(each.key for each in found)


@steps.step()
def gpus(activity: DeviceActivity) -> list[str]:
    """The keys of all devices, by number."""
    return [each.key for each in activity.devices]


@steps.step()
def host_loop(devices: list[DeviceTimeline], ranges: NvtxRanges) -> HostLoop | None:
    """The ranges of the host that repeat, where nothing else tells what the program did."""
    return None if devices else find_host_loop(ranges)


@steps.step()
def strings(trace: Trace) -> Strings:
    """The texts of the trace by their ids."""
    return trace.strings


@steps.step()
def chosen(
    devices: list[DeviceTimeline], activity: DeviceActivity, ranges: NvtxRanges, strings: Strings, settings: Settings
) -> dict[str, list[Loop]]:
    """The steps that the user names, by the key of the device; empty where they are found."""
    if settings.step is None:
        return {}
    return chosen_loops(parse_step(settings.step), devices, activity.api_calls.rows, ranges, strings)


@steps.step()
def windows(
    devices: list[DeviceTimeline],
    activity: DeviceActivity,
    ranges: NvtxRanges,
    strings: Strings,
    settings: Settings,
    part: FittingSpan | None,
    chosen: dict[str, list[Loop]],
    shown: frozenset[str],
) -> dict[str, AnalysisWindow]:
    """The window of each device, by its key. One that holds nothing on any device is a mistake, not a healthy
    result."""
    calls = activity.api_calls.rows
    found = {
        device.key: window_of(device, calls, ranges, strings, settings, part, chosen.get(device.key))
        for device in devices
    }
    narrowed = [window for key, window in found.items() if window.narrowed and key in shown]
    if narrowed and not any(window.length_ns for window in narrowed):
        spans = [
            f"{key} works from {window.whole.start[0]:,} to {window.whole.end[0]:,} ns"
            for key, window in found.items()
            if len(window.whole) and key in shown
        ]
        reason = typed.plain(narrowed[0].reason)
        raise UsageError(f"no GPU work is in the chosen time: {reason}", hint="; ".join(spans) or None)
    return found


@steps.step(background=True)
def counters(trace: Trace, activity: DeviceActivity) -> Counters:
    """GPU metrics."""
    return read_counters(trace, activity.devices)


@steps.step(background=True)
def unseen(trace: Trace, activity: DeviceActivity) -> UnseenLaunches:
    """Launches of which nothing was recorded but the call."""
    return UnseenLaunches.unknown() if trace.partial else UnseenLaunches.of(activity)


@steps.step(spills=True, trims=True, progress=("reading host activity", 0.3))
def tables(trace: Trace, ranges: NvtxRanges) -> HostTables:
    """What threads and CPUs did, table by table."""
    return read_host_tables(trace, ranges)


@steps.step()
def recorded_span(tables: HostTables, activity: DeviceActivity, ranges: NvtxRanges) -> tuple[int, int]:
    """When the first event of any kind begins, and the last one ends."""
    return recorded_time(tables, activity, ranges)


@steps.step()
def scheduled(tables: HostTables) -> bool:
    """Whether the trace has scheduling events."""
    return len(tables.switches) > 0


@steps.step()
def frameworks(trace: Trace, activity: DeviceActivity, ranges: NvtxRanges, tables: HostTables) -> list[Framework]:
    """What the programs are made with, by names."""
    return frameworks_of(names_of(trace, activity, ranges, tables.samples))


@steps.step()
def axis(activity: DeviceActivity, devices: list[DeviceTimeline], windows: dict[str, AnalysisWindow]) -> ThreadAxis:
    """The threads that launched anything on the devices, over the time of their work."""
    spans = [window.whole for window in windows.values() if len(window.whole)]
    low = min((int(span.start[0]) for span in spans), default=0) - MARGIN_NS
    high = max((int(span.end[0]) for span in spans), default=0)
    thread = activity.api_calls.rows.thread
    launches = [device.launch[device.launch >= 0] for device in devices]
    threads: list[IntArray] = [np.empty(0, dtype=np.int64), *(thread[rows] for rows in launches if len(rows))]
    return ThreadAxis.over(np.concatenate(threads), low, high)


@steps.step(spills=True)
def placed_api_calls(axis: ThreadAxis, activity: DeviceActivity) -> NamedRows:
    """Their API calls."""
    return place_api_calls(axis, activity.api_calls, activity.latest_ns)


@steps.step(spills=True)
def placed_os_calls(axis: ThreadAxis, tables: HostTables, activity: DeviceActivity) -> tuple[NamedRows, int]:
    """Their OS calls, and how many were left out."""
    return place_os_calls(axis, tables, activity.latest_ns)


@steps.step(spills=True)
def host(
    axis: ThreadAxis,
    tables: HostTables,
    activity: DeviceActivity,
    placed_api_calls: NamedRows,
    placed_os_calls: tuple[NamedRows, int],
) -> HostActivity:
    """All that these threads did."""
    return host_activity(tables, activity.api_calls, axis, placed_api_calls, placed_os_calls, activity.latest_ns)


@steps.step(spills=True, progress=("classifying gaps", 0.6))
def facts(activity: DeviceActivity) -> CallFacts:
    """What API calls are known to be."""
    return call_facts(activity)


@steps.step()
def evidence(host: HostActivity, facts: CallFacts) -> HostEvidence:
    """The calls of the launching threads as rules look at them."""
    return HostEvidence.of(host, facts)


@steps.step(spills=True)
def layered(evidence: HostEvidence) -> LayeredEvidence:
    """What the host-side rules of all causes make of the calls."""
    return layer_evidence(evidence)


@steps.step()
def draining(evidence: HostEvidence) -> list[EvidenceLayer]:
    """The calls that drain the device."""
    return draining_calls(evidence)


@steps.step()
def untraced(activity: DeviceActivity, facts: CallFacts) -> dict[int, Intervals]:
    """The time of graphs whose nodes were not recorded, by launching thread."""
    return untraced_graphs(activity, facts)


@steps.step()
def partial_graphs(activity: DeviceActivity, facts: CallFacts) -> PartialReplays:
    """The launches of graphs of which some nodes were not recorded."""
    return partial_replays(activity, facts)


@steps.step()
def sharing(activity: DeviceActivity) -> Sharing:
    """The devices that may be the same GPU as others."""
    return sharing_of(activity)


@steps.step()
def host_trace(
    trace: Trace,
    tables: HostTables,
    activity: DeviceActivity,
    facts: CallFacts,
    ranges: NvtxRanges,
    host: HostActivity,
) -> HostTrace:
    """What wake-ups and the report on the host look at."""
    return HostTrace(
        tables=tables,
        activity=activity,
        facts=facts,
        ranges=ranges,
        low=host.axis.origin,
        high=host.axis.origin + host.axis.span,
        thread_names=read_thread_names(trace),
        process_names=process_names(trace),
        frames=partial(chain_symbols, trace),
        profilers=profiler_threads(trace),
    )


@steps.step()
def launching(host: HostActivity, facts: CallFacts) -> WaitingThreads:
    """The launching threads, with their waits."""
    return WaitingThreads(host, facts)


@steps.step(deferred=True, spills=True)
def runs(host_trace: HostTrace) -> Runs:
    """When each thread ran. Most traces hold no wait that cost GPU time, and no need for it."""
    return Runs.of(host_trace.tables.switches, host_trace.profilers, host_trace.low, host_trace.high, BEFORE_NS)


@steps.step(deferred=True)
def finder(host_trace: HostTrace, runs: Callable[[], Runs]) -> WakeFinder:
    """Finds who ended a wait. It holds much, and is needed no more when the roots of the last device are known."""
    return WakeFinder(host_trace.tables, runs(), host_trace.profilers, host_trace.low, host_trace.high)


@steps.step()
def names(host_trace: HostTrace) -> ThreadNames:
    """Threads in words."""
    return ThreadNames(host_trace)


@steps.step()
def files(trace: Trace) -> Files:
    """The files that threads read."""
    return Files(trace)


@steps.step()
def events_dropped(trace: Trace) -> bool:
    """Whether nsys reports that it lost events."""
    return trace.events_dropped


@steps.step()
def batched_launches(trace: Trace) -> bool:
    """Whether the driver holds launches back to submit several at once, as WDDM does."""
    return trace.has("TARGET_INFO_WDDM_CONTEXTS")


@steps.step()
def leaf_symbols(trace: Trace) -> LeafSymbols:
    """The innermost functions of CPU samples."""
    return partial(read_leaf_symbols, trace)


@steps.step()
def call_chains(trace: Trace, activity: DeviceActivity) -> CallChains:
    """The call chains of CUDA calls, OS calls and CPU samples."""
    return CallChains(trace, activity.api_calls)


@steps.step()
def python_stacks(trace: Trace, ranges: NvtxRanges) -> PythonStacks:
    """The Python stacks."""
    return PythonStacks(trace, ranges.python)


@steps.step()
def memory(trace: Trace, activity: DeviceActivity) -> Memory:
    """Allocations, migrations and page faults."""
    return read_memory(trace, activity)
