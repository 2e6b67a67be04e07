"""Which waits are waits for a worker that loads input data. Evidence is needed: a name, a range, a frame, a process."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import PurePath
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.distinct import distinct, distinct_values
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_before, union
from nsysdiag.arrays.matching import matching
from nsysdiag.causes import CAUSES
from nsysdiag.causes.evidence import CallFacts, EvidenceLayer, HostEvidence
from nsysdiag.causes.thread_waits import gil_waits
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.host import HostActivity, HostTables, host_activity, place_api_calls, place_os_calls
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import ThreadAxis, coded_tuples
from nsysdiag.fields import Sentence
from nsysdiag.report import Thread
from nsysdiag.typed import NO_WORDS, say
from nsysdiag.wakeups.waits import Ends, Waits, ends_of, is_timed
from nsysdiag.wakeups.wakers import WakeFinder

# What the search for roots draws on: the tables of the host side, and chosen threads' activity in layers of causes.

AGAIN_NS = 100_000
"""The longest pause between two calls with a time limit that are one wait. A longer one joins waits for different
things; a shorter one cuts a wait if its thread is slow to call again."""
Frames = Callable[[IntArray], list[str]]
Finder = Callable[[], WakeFinder]


class HostTrace(Struct, frozen=True, dict=True):
    """One trace, as far as wake-ups need it; times are in [low, high).

    `thread_names` and `process_names` are names by globalTid and globalPid; `frames` gives the functions in the call
    chains of CPU samples, by their ids. `nsys_threads` are threads of nsys itself.
    """

    tables: HostTables
    activity: DeviceActivity
    facts: CallFacts
    ranges: NvtxRanges
    low: int
    high: int
    thread_names: dict[int, str]
    process_names: dict[int, str]
    frames: Frames
    nsys_threads: IntArray

    @cached_property
    def gpu_processes(self) -> IntArray:
        """The processes that have work on any GPU."""
        return distinct_values(self.activity.operations.process)

    @cached_property
    def traced_processes(self) -> IntArray:
        """The processes with calls or ranges of their own in the trace: those of the program that was captured."""
        threads = (self.tables.os_calls.thread, self.activity.api_calls.rows.thread, self.ranges.rows.thread)
        return distinct_values(np.concatenate([distinct_values(process_of(each)) for each in threads]))

    def program(self, process: int) -> str | None:
        """The name of a process's program without its folders, which may tell who ran it; None if it has none."""
        return PurePath(self.process_names[process]).name if process in self.process_names else None

    @cached_property
    def _views(self) -> WeakValueDictionary[bytes, WaitingThreads]:
        return WeakValueDictionary()

    def waiting(self, threads: IntArray) -> WaitingThreads:
        """`threads` over the whole time; made again only if nothing refers to what was made of them before."""
        axis = ThreadAxis.over(threads, self.low, self.high)
        view = self._views.get(key := axis.threads.tobytes())
        if view is None:
            calls, latest = self.activity.api_calls, self.activity.latest_ns
            api, os_calls = place_api_calls(axis, calls, latest), place_os_calls(axis, self.tables, latest)
            host = host_activity(self.tables, calls, axis, api, os_calls, latest)
            view = self._views[key] = WaitingThreads(host, self.facts)
        return view


class ThreadNames:
    """Threads in words, with their names as far as the trace has them."""

    def __init__(self, host_trace: HostTrace) -> None:
        self._host_trace = host_trace
        self.named: Callable[[int], Sentence] = cache(self._named)

    def thread(self, identity: int) -> Thread:
        """The thread as a record."""
        return Thread(pid=pid_of(identity), tid=tid_of(identity), name=self.name(identity))

    def name(self, identity: int) -> str | None:
        """Its name alone; None if it has none."""
        return self._host_trace.thread_names.get(identity)

    def _named(self, identity: int) -> Sentence:
        """`thread 17 'loader'`, in a process without GPU work `process 9 'python3', thread 17 'loader'`."""
        name, process = self.name(identity), process_of(identity)
        own = say("thread {}{}", tid_of(identity), say(" '{}'", typed.thread(name)) if name else "")
        if process in self._host_trace.gpu_processes:
            return own
        program = self._host_trace.program(process) or ""
        if tid_of(identity) == pid_of(identity):
            program, own = name or program, NO_WORDS
        of = say(" '{}'", typed.process(program)) if program else ""
        return say("process {}{}{}", pid_of(identity), of, own and ", " + own)


class WaitingThreads(Struct, frozen=True, dict=True, weakref=True):
    """Threads whose waits, and what they did in layers of causes, are looked at."""

    host: HostActivity
    facts: CallFacts

    @cached_property
    def layers(self) -> dict[str, list[EvidenceLayer]]:
        """The layers of each cause in order of precedence, as for time before a launch."""
        evidence = HostEvidence.of(self.host, self.facts)
        return {cause.id: cause.host(evidence) for cause in CAUSES.values() if cause.host is not None}

    @cached_property
    def _away(self) -> Intervals:
        out = self.host.scheduling.out
        return out[np.argsort(out.start, kind="stable")]

    @cached_property
    def _ends(self) -> IntArray:
        """What ends the wait that each OS call is. Those for the interpreter lock are followed for show only."""
        ends = ends_of(self.host.os_calls.names)
        return ends[self.host.os_calls.name] if len(ends) else self.host.os_calls.name

    @cached_property
    def interpreter(self) -> BoolArray:
        """True for OS calls that wait for the interpreter lock."""
        return gil_waits(self.host)

    @cached_property
    def _timed(self) -> BoolArray:
        timed = is_timed(self.host.os_calls.names)
        return timed[self.host.os_calls.name] == 1 if len(timed) else np.zeros(0, dtype=np.bool_)

    @cached_property
    def _joined(self) -> Intervals:
        """Each OS call's span, those of a wait that went on in several calls with a time limit as one. A thread that
        called the GPU in between had what it waited for.

        ```
        poll(5 ms) poll(5 ms) poll     [-----)[-----)[--)
        joined                         [----------------)    for each of the three
        ```
        """
        calls = self.host.os_calls
        spans, stride = calls.spans, self.host.axis.stride
        if len(spans) == 0:
            return spans
        again = self._timed[1:] & (calls.name[1:] == calls.name[:-1])
        again &= (spans.start[1:] - spans.end[:-1] <= AGAIN_NS) & (
            spans.start[1:] // stride == spans.start[:-1] // stride
        )
        launched = self.host.api.spans.start
        again &= np.searchsorted(launched, spans.end[:-1]) == np.searchsorted(launched, spans.start[1:])
        group = np.append(0, np.cumsum(~again))
        first = np.flatnonzero(np.append(True, ~again))
        last = np.append(first[1:] - 1, len(spans) - 1)
        return Intervals(spans.start[first][group], spans.end[last][group])

    def waits(self, lane: IntArray, time: IntArray, away: BoolArray) -> Waits:
        """The waits that threads are in at each `time`: the OS call, or where `away` says so, the time off the CPU."""
        axis, calls = self.host.axis, self.host.os_calls
        position = axis.position(np.maximum(lane, 0), time)
        row, inside = _covering(calls.spans, position, (lane >= 0) & ~away)
        gone, outside = _covering(self._away, position, (lane >= 0) & away)
        start = np.where(inside, _at(self._joined.start, row), np.where(outside, _at(self._away.start, gone), position))
        end = np.where(inside, _at(self._joined.end, row), np.where(outside, _at(self._away.end, gone), position))
        length = end - start
        begin = axis.time(start)
        # Untraced waits count as one more kind, in addition to those of each call.
        return Waits(
            thread=axis.threads[np.maximum(lane, 0)] if len(axis.threads) else lane,
            start=begin,
            end=begin + length,
            name=np.where(inside, _at(calls.name, row), len(calls.names)),
            ends=np.where(inside, _at(self._ends, row), np.where(outside, Ends.UNKNOWN, Ends.NO_THREAD)),
            timed=np.where(inside, _at(self._timed & ~self.interpreter, row), 0),
        )


def _covering(spans: Intervals, position: IntArray, wanted: BoolArray) -> tuple[IntArray, BoolArray]:
    """The interval that holds each position, and where there is one."""
    at = nearest_before(spans.start, position)
    return np.maximum(at, 0), wanted & (at >= 0) & (_at(spans.end, np.maximum(at, 0)) > position)


def _at(values: IntArray | BoolArray, index: IntArray) -> IntArray:
    return values[index].astype(np.int64) if len(values) else np.zeros(len(index), dtype=np.int64)


NAMES = re.compile(
    r"data[ _]?load|pin[ _]?memory|pt_data|_worker_loop|\bloader\b|_loader\b|input[ _]?(pipeline|worker|queue)"
    r"|prefetch(er)?\b|queue\W{0,2}get\b|(next|get|load|fetch|read)_?batch|fetch_?data|batch_?(loader|reader|producer)|\bcollate|\bdataset"
    r"|\btf_?data|\bdali\b|\bdecode_(image|jpeg|sample)",
    re.IGNORECASE,
)
"""What threads, NVTX ranges and functions of input pipelines are called."""
MOST_SAMPLES = 64
"""CPU samples of a thread in which names of data loading are looked for, evenly chosen; less than twice as many are
read. More take longer, with fewer a loader that seldom runs is missed."""


class Loaders:
    """Finds them in one trace. What is known of a thread is looked up once."""

    def __init__(self, host_trace: HostTrace) -> None:
        self._host_trace = host_trace
        rows = host_trace.ranges.rows
        named = matching(NAMES, host_trace.ranges.names)
        chosen = rows.take(taken(named, rows.name)) if len(rows) else rows
        self._axis = ThreadAxis.over(chosen.thread, host_trace.low, host_trace.high)
        spans = self._axis.place(self._axis.lane(chosen.thread), Intervals(chosen.start, chosen.end))
        self._ranges = union(spans)
        self._is_loader = cache(self._by_name_or_frames)

    def by_waker(self, waits: Waits, waker: IntArray, until: IntArray) -> BoolArray:
        """True for waits that a loading worker ended: `waker` (0: none), at `until`."""
        threads, code = distinct(waker)
        known = np.array([thread > 0 and self._is_loader(thread) for thread in threads.tolist()], dtype=np.bool_)
        result = known[code] if len(waker) else np.zeros(0, dtype=np.bool_)
        result = result | self.in_range(waker, Intervals(waits.start, until))
        return (result | self._is_worker_process(waits, waker)) & (waker > 0) & ~self.for_orders(waits.thread, waker)

    def for_orders(self, thread: IntArray, waker: IntArray) -> BoolArray:
        """True where a thread that launches nothing waits for one that launches most work of a device: that one takes
        what it makes, whatever names of data loading are met in it."""
        leading, launching = self._launching
        return np.isin(waker, leading) & ~np.isin(thread, launching)

    @cached_property
    def _launching(self) -> tuple[IntArray, IntArray]:
        """The thread that launched most of each device's work, and all threads that launched any."""
        calls = self._host_trace.activity.api_calls.rows
        every = [each.launch[each.launch >= 0] for each in self._host_trace.activity.devices]
        leading = np.array([calls.busiest_thread(each) for each in every if len(each)], dtype=np.int64)
        return leading, calls.threads_at(np.concatenate([*every, np.empty(0, dtype=np.int32)]))

    def in_range(self, thread: IntArray, time: Intervals) -> BoolArray:
        """True where a range that the thread named after loading data holds at least half of the time. That says what
        the time was for; that a thread waited for another one at all is for the wake-up to show."""
        lane = self._axis.lane(thread)
        covered = coverage(self._ranges, self._axis.place(np.maximum(lane, 0), time))
        return (lane >= 0) & (covered > 0) & (2 * covered >= time.end - time.start)

    def _is_worker_process(self, waits: Waits, waker: IntArray) -> BoolArray:
        """True for a waker in another process of the same program, or forked from it, that works on no GPU."""
        own, other = process_of(waits.thread), process_of(waker)
        result: BoolArray = (own != other) & np.isin(waits.ends, (Ends.WRITE, Ends.RELEASE))
        chosen = np.flatnonzero(result & ~np.isin(other, self._host_trace.gpu_processes))
        place, pairs = coded_tuples(own[chosen], other[chosen])
        names = self._host_trace.process_names
        # A process that only forked has no name of its own.
        alike = [here in names and names.get(there, names[here]) == names[here] for here, there in pairs]
        result[:] = False
        result[chosen] = np.array(alike, dtype=np.bool_)[place]
        return result

    def _by_name_or_frames(self, thread: int) -> bool:
        name = self._host_trace.thread_names.get(thread, "")
        if NAMES.search(name):
            return True
        samples = self._host_trace.tables.samples
        mine = np.flatnonzero(samples.thread == thread)
        mine = mine[np.lexsort((samples.id[mine], samples.time[mine]))]
        step = max(len(mine) // MOST_SAMPLES, 1)
        frames = self._host_trace.frames(samples.id[mine[::step]]) if len(mine) else []
        return any(NAMES.search(frame) for frame in frames)
