"""The first two stages: what is read of a trace with the window of each device, and what threads and CPUs did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.background import Background, Deferred
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.groups import Groups
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.arrays.spill import Evicting, keep_for, keep_little, laid, trim
from nsysdiag.causes.evidence import CallFacts, HostEvidence, call_facts
from nsysdiag.config.file import parse_step
from nsysdiag.config.settings import Settings
from nsysdiag.counters.counters import Counters, read_counters
from nsysdiag.diagnosis.missing import UnseenLaunches
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.calls import read_api_calls
from nsysdiag.events.capture import Sharing, sharing_of
from nsysdiag.events.device import DeviceActivity, DeviceTimeline, device_activity, operations_by_gpu
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
from nsysdiag.events.identity import nsys_threads, process_names, thread_names
from nsysdiag.events.memory import FittingSpan, Memory, part_that_fits, read_memory
from nsysdiag.events.nvtx import NvtxRanges, PlacedRanges, read_ranges
from nsysdiag.events.operations import read_operations
from nsysdiag.events.rows import NamedRows, ThreadAxis, picked
from nsysdiag.events.samples import PythonStacks, chain_symbols, leaf_symbols
from nsysdiag.findings.phase_work import RangeSets
from nsysdiag.iterations.chosen import AnalysisWindow, CarriedSteps, chosen_loops, window_of
from nsysdiag.iterations.doubts import perhaps_launches
from nsysdiag.iterations.iterations import find_loops
from nsysdiag.iterations.loop import Loop
from nsysdiag.iterations.named import HostLoop, host_loop, layers_named
from nsysdiag.launches.launches import durations_of
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.ledger.untraced_graphs import (
    PartialReplays,
    partial_replays,
    untraced_graphs,
    untraced_launches,
    untraced_launches_on,
)
from nsysdiag.messages import UsageError
from nsysdiag.programs.facts import Framework
from nsysdiag.programs.names import frameworks_of, names_of
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.trace.capabilities import was_asked
from nsysdiag.trace.columns import Strings
from nsysdiag.trace.trace import Trace
from nsysdiag.wakeups.loaders import HostTrace, ThreadNames, WaitingThreads
from nsysdiag.wakeups.runs import Runs
from nsysdiag.wakeups.wake_chain import Files
from nsysdiag.wakeups.wakers import BEFORE_NS, WakeFinder

Progress = Callable[[str, float], None]
"""Takes what is done next, and the share of the work that is done, 0 to 1."""


def silent(_step: str, _share: float) -> None:
    """Progress that is not shown."""


HOST_TABLES = ("OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS")
MARGIN_NS = 1_000_000
"""How long, in ns, before the first operation rows of the host are read: they matter to the first gap."""
NEVER = np.iinfo(np.int64).max


class Reading(Struct, frozen=True):
    """What was read of a trace. `chosen` are the steps that the user names, by the key of the device, empty if they
    are found; `windows` the time under analysis of each device, by its key. `shown` are the keys of the devices that
    are reported; what one of them waits for may be another one, so all are analyzed. `untraced` has the rows of
    launches of graphs of which the trace holds nothing else."""

    trace: Trace
    settings: Settings
    ranges: NvtxRanges
    activity: DeviceActivity
    strings: Strings
    shown: frozenset[str]
    chosen: dict[str, list[Loop]]
    windows: dict[str, AnalysisWindow]
    counters: Deferred[Counters]
    unseen: Deferred[UnseenLaunches]
    untraced: Callable[[], IntArray]

    @property
    def devices(self) -> list[DeviceTimeline]:
        """All devices."""
        return self.activity.devices

    def loops(self, device: DeviceTimeline, whole: Intervals) -> list[Loop]:
        """What repeats on a device in its whole time."""
        hidden = untraced_launches_on(device, self.activity, self.untraced())
        found = find_loops(device, self.activity.api_calls, self.ranges, self.strings, whole)
        return [perhaps_launches(loop, hidden) for loop in found]

    @property
    def host_unseen(self) -> bool:
        """Whether the trace shows nothing of the host but its CUDA calls."""
        return not any(map(self.trace.has, HOST_TABLES))

    @property
    def asked(self) -> frozenset[str]:
        """The kinds of evidence that were asked for at capture, and of which the trace has none."""
        told = self.trace.capabilities()
        return frozenset(each.id for each in told if was_asked(told, each.id))


SMALL_BYTES = 4_000_000
"""A trace below this size is analyzed in one thread. From 0.7 to 1.3 MB that takes 1 to 9% less time than two threads
on two cores. At 4 MB it takes as much, at 13 MB up to 13% more."""


@contextmanager
def working(trace: Trace) -> Iterator[Background]:
    """The second thread for the work on a trace; meanwhile arrays in files leave memory."""
    keep_for(trace.size_bytes)
    with Background(small=trace.size_bytes < SMALL_BYTES) as background, Evicting(trace.size_bytes):
        yield background


def read(
    trace: Trace,
    settings: Settings,
    background: Background,
    progress: Progress,
    steps: CarriedSteps | None = None,
) -> Reading:
    """Reads ranges, the work of all GPUs and the calls that launched it. `steps` are those that another trace shows,
    None if they are found or chosen. Raises UsageError for settings that do not fit the trace."""
    progress("reading device activity", 0.0)
    part = _part(trace, settings)
    trace.read_ahead(large_tables(trace))
    begun = background.begin(lambda: laid(read_ranges(trace)))
    activity = read_activity(trace, begun.result, settings)
    ranges, strings = begun.result(), trace.strings
    chosen = _chosen(activity, ranges, strings, settings) if steps is None else steps.loops(activity.devices)
    shown = _shown(activity, settings)
    windows = _windows(trace, activity, ranges, settings, part, chosen, shown)
    return Reading(
        trace,
        settings,
        ranges,
        activity,
        strings,
        shown,
        chosen,
        windows,
        counters=background.begin(read_counters, trace, activity.devices),
        unseen=background.begin(_unseen, trace, activity),
        untraced=Deferred(partial(untraced_launches, activity)).result,
    )


def _part(trace: Trace, settings: Settings) -> FittingSpan | None:
    """The part of the trace that the memory limit allows to read, which is all that is read from now on."""
    if settings.memory_limit is None:
        return None
    keep_little()
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


def read_activity(trace: Trace, ranges: Callable[[], NvtxRanges], settings: Settings) -> DeviceActivity:
    """What all GPUs did, and the API calls that launched it; the ranges are asked for last."""
    recorded = read_operations(trace)
    api_calls = laid(read_api_calls(trace, recorded.latest_ns))
    operations = laid(operations_by_gpu(trace, recorded, api_calls, same_gpu=settings.same_gpu), api_calls)
    del recorded
    return laid(device_activity(trace, ranges(), api_calls, operations, settings.communication_patterns))


def _shown(activity: DeviceActivity, settings: Settings) -> frozenset[str]:
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


def _chosen(
    activity: DeviceActivity, ranges: NvtxRanges, strings: Strings, settings: Settings
) -> dict[str, list[Loop]]:
    if settings.step is None:
        return {}
    return chosen_loops(parse_step(settings.step), activity.devices, activity.api_calls, ranges, strings)


def _windows(
    trace: Trace,
    activity: DeviceActivity,
    ranges: NvtxRanges,
    settings: Settings,
    part: FittingSpan | None,
    chosen: dict[str, list[Loop]],
    shown: frozenset[str],
) -> dict[str, AnalysisWindow]:
    """The window of each device, by its key. One that holds nothing on any device is a mistake, not a healthy
    result."""
    calls, cut, layers = activity.api_calls, trace.cut, _layers(trace)

    def window(device: DeviceTimeline) -> AnalysisWindow:
        steps = chosen.get(device.key)
        return window_of(device, calls, ranges, trace.strings, settings, part, steps, cut=cut, layers=layers)

    found = {device.key: window(device) for device in activity.devices}
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


def _layers(trace: Trace) -> int:
    """How many layers the Python functions of the PyTorch profiler name; 0 in other traces."""
    if not trace.cut:
        return 0
    return layers_named(text for text in trace.read("StringIds", "value").text("value").texts() if text)


def _unseen(trace: Trace, activity: DeviceActivity) -> UnseenLaunches:
    """Launches of which nothing was recorded but the call."""
    return UnseenLaunches.unknown() if trace.partial else laid(UnseenLaunches.of(activity))


# The second stage: what threads and CPUs did, and what that is evidence of.


class HostReading(Struct, frozen=True):
    """What the threads of a trace did; `reading` is what was read of it before. `host` is that of the threads that
    launched work, on an axis of their own; `placed` are the ranges on it, and `range_sets` their time by name.
    `layered` is what the host-side rules of all causes make of the calls of these threads.

    `call_durations` are those of all CUDA calls by name. `untraced` is the time of graphs whose nodes were not
    recorded, by launching thread; `partial_graphs` are launches of graphs of which some nodes were not. `runs` tells
    when each thread ran: most traces hold no wait that cost GPU time, and no need for it. `recorded_span` is when the
    first event of any kind begins, and the last one ends. `loop` is that of the host's ranges if there is no device."""

    reading: Reading
    tables: HostTables
    recorded_span: tuple[int, int]
    frameworks: list[Framework]
    loop: HostLoop | None
    host: HostActivity
    placed: PlacedRanges
    range_sets: Callable[[], RangeSets]
    facts: CallFacts
    layered: LayeredEvidence
    call_durations: Callable[[], Groups]
    untraced: dict[int, Intervals]
    partial_graphs: PartialReplays
    sharing: Sharing
    traced: HostTrace
    launching: WaitingThreads
    runs: Callable[[], Runs]
    names: ThreadNames
    files: Files
    leaf_symbols: LeafSymbols
    call_chains: CallChains
    python_stacks: PythonStacks
    memory: Memory

    @property
    def scheduled(self) -> bool:
        """Whether the trace has scheduling events."""
        return len(self.tables.switches) > 0

    def finder(self) -> Callable[[], WakeFinder]:
        """Finds who ended a wait, made at its first call. It holds much: who asks for one lets it go."""
        traced, runs = self.traced, self.runs
        return Deferred(lambda: WakeFinder(traced.tables, runs(), traced.nsys_threads, traced.low, traced.high)).result


def look_at_host(reading: Reading, progress: Progress) -> HostReading:
    """Reads the tables of the host, and runs the host-side rules of all causes."""
    trace, activity, ranges = reading.trace, reading.activity, reading.ranges
    progress("reading host activity", 0.3)
    axis = _axis(reading)  # while tables of the host are read
    api = laid(place_api_calls(axis, activity.api_calls, activity.latest_ns), activity)
    placed = laid(PlacedRanges.of(ranges, axis), ranges)
    facts = laid(call_facts(activity))
    tables = laid(read_host_tables(trace, ranges))
    trim()
    span = recorded_time(tables, activity, ranges)
    frameworks = frameworks_of(names_of(trace, activity, ranges, tables.samples))
    host = _host(reading, tables, axis, api)
    progress("classifying gaps", 0.6)
    evidence = HostEvidence.of(host, facts)
    layered = laid(layer_evidence(evidence), evidence)
    traced = _traced(trace, reading, tables, facts, host)
    return HostReading(
        reading=reading,
        tables=tables,
        recorded_span=span,
        frameworks=frameworks,
        loop=None if activity.devices else host_loop(ranges),
        host=host,
        placed=placed,
        range_sets=Deferred(partial(RangeSets.of, placed)).result,
        facts=facts,
        layered=layered,
        call_durations=Deferred(partial(durations_of, activity.api_calls.rows)).result,
        untraced=untraced_graphs(activity, facts, reading.untraced()),
        partial_graphs=partial_replays(activity, facts),
        sharing=sharing_of(activity),
        traced=traced,
        launching=WaitingThreads(host, facts),
        runs=Deferred(partial(_runs, traced)).result,
        names=ThreadNames(traced),
        files=Files(trace),
        leaf_symbols=partial(leaf_symbols, trace),
        call_chains=CallChains(trace, activity.api_calls),
        python_stacks=PythonStacks(trace, ranges.python),
        memory=read_memory(trace, activity),
    )


def _host(reading: Reading, tables: HostTables, axis: ThreadAxis, api: NamedRows) -> HostActivity:
    """All that the threads of the axis did, whose CUDA calls are `api`."""
    activity = reading.activity
    os_calls = laid(place_os_calls(axis, tables, activity.latest_ns), tables)
    made = host_activity(tables, activity.api_calls, axis, api, os_calls, activity.latest_ns)
    return laid(made, tables, activity, api, os_calls)


def _axis(reading: Reading) -> ThreadAxis:
    """The threads that launched anything on the devices, over the time of their work and of the calls that launched
    it."""
    spans = [window.whole for window in reading.windows.values() if len(window.whole)]
    low = min((int(span.start[0]) for span in spans), default=0) - MARGIN_NS
    low = min([low, *(_first_launch(reading, device) for device in reading.devices)])
    high = max((int(span.end[0]) for span in spans), default=0)
    calls = reading.activity.api_calls.rows
    launches = (device.launch[picked(device.launch >= 0)] for device in reading.devices)
    threads: list[IntArray] = [np.empty(0, dtype=np.int64), *map(calls.threads_at, launches)]
    return ThreadAxis.over(np.concatenate(threads), low, high)


def _first_launch(reading: Reading, device: DeviceTimeline) -> int:
    """When the first call began that launched work of this device in its window."""
    start = reading.windows[device.key].whole.start
    launch = device.launch[device.operations.start >= start[0]] if len(start) else device.launch[:0]
    return int(taken(reading.activity.api_calls.rows.start, launch[launch >= 0]).min(initial=NEVER))


def _traced(trace: Trace, reading: Reading, tables: HostTables, facts: CallFacts, host: HostActivity) -> HostTrace:
    """What wake-ups and the report on the host look at."""
    return HostTrace(
        tables=tables,
        activity=reading.activity,
        facts=facts,
        ranges=reading.ranges,
        low=host.axis.origin,
        high=host.axis.origin + host.axis.span,
        thread_names=thread_names(trace),
        process_names=process_names(trace),
        frames=partial(chain_symbols, trace),
        nsys_threads=nsys_threads(trace),
    )


def _runs(traced: HostTrace) -> Runs:
    return laid(Runs.of(traced.tables.switches, traced.nsys_threads, traced.low, traced.high, BEFORE_NS), traced.tables)
