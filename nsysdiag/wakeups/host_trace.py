"""What the search for roots draws on: the tables of the host side, and chosen threads' activity in layers of causes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from pathlib import PurePath

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before
from nsysdiag.causes import CAUSES
from nsysdiag.causes.evidence import CallFacts, HostEvidence, Layer
from nsysdiag.causes.gil import gil_waits
from nsysdiag.events.axis import ThreadAxis
from nsysdiag.events.device import DeviceActivity
from nsysdiag.events.host import HostActivity, HostTables, host_activity, place_api_calls, place_os_calls
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.rows import distinct_values
from nsysdiag.report import Thread
from nsysdiag.wakeups.waits import Ends, Waits, ends_of, is_timed
from nsysdiag.wakeups.wakers import WakeFinder

AGAIN_NS = 100_000
Frames = Callable[[IntArray], list[str]]
Finder = Callable[[], WakeFinder]


class HostTrace(Struct, frozen=True, dict=True):
    """One trace, as far as wake-ups need it; times are in [low, high).

    `thread_names` and `process_names` are names by globalTid and globalPid; `frames` gives the functions in the call
    chains of CPU samples, by their ids. `profilers` are the profiler's own threads.
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
    profilers: IntArray

    @cached_property
    def gpu_processes(self) -> IntArray:
        """The processes that have work on any GPU."""
        return distinct_values(self.activity.operations.process)

    @cached_property
    def traced_processes(self) -> IntArray:
        """The processes with calls or ranges of their own in the trace: those of the program that was captured."""
        threads = (self.tables.os_calls.thread, self.activity.api_calls.rows.thread, self.ranges.rows.thread)
        return np.unique(np.concatenate([distinct_values(process_of(each)) for each in threads]))

    def program(self, process: int) -> str | None:
        """The name of a process's program without its folders, which may tell who ran it; None where it has none."""
        return PurePath(self.process_names[process]).name if process in self.process_names else None

    def waiting(self, threads: IntArray) -> WaitingThreads:
        """`threads` over the whole time."""
        axis = ThreadAxis.over(threads, self.low, self.high)
        api_calls, latest = self.activity.api_calls, self.activity.latest_ns
        api = place_api_calls(axis, api_calls, latest)
        os_calls = place_os_calls(axis, self.tables, latest)
        return WaitingThreads(host_activity(self.tables, api_calls, axis, api, os_calls, latest), self.facts)


class ThreadNames:
    """Threads in words, with their names as far as the trace has them."""

    def __init__(self, host_trace: HostTrace) -> None:
        self._host_trace = host_trace
        self.named: Callable[[int], str] = cache(self._named)

    def thread(self, identity: int) -> Thread:
        """The thread as a record."""
        return Thread(pid=pid_of(identity), tid=tid_of(identity), name=self.name(identity))

    def name(self, identity: int) -> str | None:
        """Its name alone; None where it has none."""
        return self._host_trace.thread_names.get(identity)

    def _named(self, identity: int) -> str:
        """`thread 17 'loader'`, in a process without GPU work `process 9 'python3', thread 17 'loader'`."""
        name, process = self.name(identity), process_of(identity)
        own = f"thread {tid_of(identity)}" + (f" '{typed.thread(name)}'" if name else "")
        if process in self._host_trace.gpu_processes:
            return own
        program = self._host_trace.program(process) or ""
        if tid_of(identity) == pid_of(identity):
            program, own = name or program, ""
        return (
            f"process {pid_of(identity)}"
            + (f" '{typed.process(program)}'" if program else "")
            + (f", {own}" if own else "")
        )


class WaitingThreads(Struct, frozen=True, dict=True):
    """Threads whose waits, and what they did in layers of causes, are looked at."""

    host: HostActivity
    facts: CallFacts

    @cached_property
    def layers(self) -> dict[str, list[Layer]]:
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
