"""The second stage: what threads and CPUs did, and what that is evidence of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import Groups
from nsysdiag.arrays.intervals import IntArray, Intervals
from nsysdiag.arrays.spill import laid, trim
from nsysdiag.causes.evidence import CallFacts, EvidenceLayer, HostEvidence, call_facts
from nsysdiag.events.callchains import CallChains
from nsysdiag.events.capture import Sharing, sharing_of
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import (
    HostActivity,
    HostTables,
    host_activity,
    place_api_calls,
    place_os_calls,
    read_host_tables,
    recorded_time,
)
from nsysdiag.events.identity import nsys_threads, process_names, thread_names
from nsysdiag.events.memory import Memory, read_memory
from nsysdiag.events.nvtx import PlacedRanges
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.events.samples import PythonStacks, chain_symbols, leaf_symbols
from nsysdiag.findings.phase_work import RangeSets
from nsysdiag.iterations.named import HostLoop, host_loop
from nsysdiag.launches.launches import durations_of
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.ledger.ledger import draining_calls
from nsysdiag.ledger.untraced_graphs import PartialReplays, partial_replays, untraced_graphs
from nsysdiag.pipeline.reading import Progress, Reading
from nsysdiag.programs.facts import Framework
from nsysdiag.programs.names import frameworks_of, names_of
from nsysdiag.stacks.samples import LeafSymbols
from nsysdiag.trace.trace import Trace
from nsysdiag.wakeups.loaders import HostTrace, ThreadNames, WaitingThreads
from nsysdiag.wakeups.runs import Runs
from nsysdiag.wakeups.wake_chain import Files
from nsysdiag.wakeups.wakers import BEFORE_NS, WakeFinder

MARGIN_NS = 1_000_000  # host rows just before the first operation still matter to the first gap
NEVER = np.iinfo(np.int64).max


class HostReading(Struct, frozen=True):
    """What the threads of a trace did. `host` is that of the threads that launched work, on an axis of their own;
    `placed` are the ranges on it, and `range_sets` their time by name. `layered` is what the host-side rules of all
    causes make of the calls of these threads; `draining` are the calls that drain a device.

    `call_durations` are those of all CUDA calls by name. `untraced` is the time of graphs whose nodes were not
    recorded, by launching thread; `partial_graphs` are launches of graphs of which some nodes were not. `runs` tells
    when each thread ran: most traces hold no wait that cost GPU time, and no need for it. `recorded_span` is when the
    first event of any kind begins, and the last one ends. `loop` is that of the host's ranges where there is no
    device."""

    tables: HostTables
    recorded_span: tuple[int, int]
    frameworks: list[Framework]
    loop: HostLoop | None
    host: HostActivity
    placed: PlacedRanges
    range_sets: Callable[[], RangeSets]
    facts: CallFacts
    layered: LayeredEvidence
    draining: list[EvidenceLayer]
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
        return cache(lambda: WakeFinder(traced.tables, runs(), traced.nsys_threads, traced.low, traced.high))


def look_at_host(reading: Reading, progress: Progress) -> HostReading:
    """Reads the tables of the host, and runs the host-side rules of all causes."""
    trace, activity, ranges = reading.trace, reading.activity, reading.ranges
    progress("reading host activity", 0.3)
    tables = laid(read_host_tables(trace, ranges))
    trim()
    span = recorded_time(tables, activity, ranges)
    frameworks = frameworks_of(names_of(trace, activity, ranges, tables.samples))
    host = _host(reading, tables)
    placed = laid(PlacedRanges.of(ranges, host.axis), ranges)
    progress("classifying gaps", 0.6)
    facts = laid(call_facts(activity))
    evidence = HostEvidence.of(host, facts)
    layered = laid(layer_evidence(evidence), evidence)
    traced = _traced(trace, reading, tables, facts, host)
    return HostReading(
        tables=tables,
        recorded_span=span,
        frameworks=frameworks,
        loop=None if activity.devices else host_loop(ranges),
        host=host,
        placed=placed,
        range_sets=cache(partial(RangeSets.of, placed)),
        facts=facts,
        layered=layered,
        draining=draining_calls(evidence),
        call_durations=cache(partial(durations_of, activity.api_calls.rows)),
        untraced=untraced_graphs(activity, facts),
        partial_graphs=partial_replays(activity, facts),
        sharing=sharing_of(activity),
        traced=traced,
        launching=WaitingThreads(host, facts),
        runs=cache(partial(_runs, traced)),
        names=ThreadNames(traced),
        files=Files(trace),
        leaf_symbols=partial(leaf_symbols, trace),
        call_chains=CallChains(trace, activity.api_calls),
        python_stacks=PythonStacks(trace, ranges.python),
        memory=read_memory(trace, activity),
    )


def _host(reading: Reading, tables: HostTables) -> HostActivity:
    """All that the threads did that launched work."""
    activity = reading.activity
    axis = _axis(reading)
    api = laid(place_api_calls(axis, activity.api_calls, activity.latest_ns), activity)
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
    thread = reading.activity.api_calls.rows.thread
    launches = [device.launch[device.launch >= 0] for device in reading.devices]
    threads: list[IntArray] = [np.empty(0, dtype=np.int64), *(thread[rows] for rows in launches if len(rows))]
    return ThreadAxis.over(np.concatenate(threads), low, high)


def _first_launch(reading: Reading, device: DeviceTimeline) -> int:
    """When the first call began that launched work of this device in its window."""
    start = reading.windows[device.key].whole.start
    launch = device.launch[device.operations.start >= start[0]] if len(start) else device.launch[:0]
    return int(reading.activity.api_calls.rows.start[launch[launch >= 0]].min(initial=NEVER))


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
