"""All threads of the processes that use GPUs, with what they called: what the tables of the host are made from."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, coverage, nearest_before, union
from nsysdiag.arrays.nesting import outermost
from nsysdiag.causes.sync import CALLS as SYNC_CALLS
from nsysdiag.events.axis import Lane, ThreadAxis
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity, place_api_calls, place_os_calls
from nsysdiag.events.identity import process_of, tid_of
from nsysdiag.events.rows import distinct_values
from nsysdiag.wakeups.host_trace import HostTrace


class Calls(Struct, frozen=True):
    """The outermost calls of some threads on their lanes."""

    axis: ThreadAxis
    spans: Intervals
    name: IntArray
    names: list[str]

    @classmethod
    def of(cls, axis: ThreadAxis, lane: Lane) -> Calls:
        """The outermost calls on a lane."""
        outer = lane if lane.outermost.all() else lane.take(lane.outermost)
        return cls(axis, outer.spans, outer.name, outer.names)

    def lanes(self, low: int, high: int) -> Intervals:
        """The time [low, high) of each thread."""
        rank = np.arange(len(self.axis.threads), dtype=np.int64)
        return self.axis.place(rank, Intervals(np.full(len(rank), low), np.full(len(rank), high)))

    def ns(self, low: int, high: int) -> IntArray:
        """How long each thread was inside one of them during [low, high)."""
        return coverage(union(self.spans), self.lanes(low, high))

    def count(self, low: int, high: int) -> IntArray:
        """How many of them each thread began in [low, high)."""
        lanes = self.lanes(low, high)
        return np.searchsorted(self.spans.start, lanes.end) - np.searchsorted(self.spans.start, lanes.start)

    def at(self, thread: IntArray, time: IntArray) -> IntArray:
        """The call that each thread is in at a time, -1 where it is in none."""
        rank = self.axis.rank(thread)
        if len(self.spans) == 0 or len(rank) == 0:
            return np.full(len(rank), -1, dtype=np.int64)
        position = self.axis.position(np.maximum(rank, 0), time)
        row = nearest_before(self.spans.start, position)
        return np.where((rank >= 0) & (row >= 0) & (self.spans.end[row] > position), row, -1)


class SyncCalls(Struct, frozen=True):
    """Synchronizations that begin in the range, not nested: `lane` on the axis of all threads, times in ns, `row` in
    the table of API calls."""

    lane: IntArray
    spans: Intervals
    row: IntArray


class HostScene(Struct, frozen=True):
    """`axis` has a lane for every thread with any evidence, of the processes that worked on `devices`; without nsys's
    own. The range [low, high) is what is reported. `launched` holds for each device the calls that launched its
    operations in the range, even calls before it (rows of the table of API calls). `launching` marks the lanes of the
    threads that made them; `os_traced` those of processes whose OS calls were captured."""

    host_trace: HostTrace
    devices: list[DeviceTimeline]
    low: int
    high: int
    axis: ThreadAxis
    api: tuple[Calls, Calls]
    os_calls: Calls
    sync: SyncCalls
    launched: list[IntArray]
    launching: BoolArray
    os_traced: BoolArray

    @property
    def span(self) -> int:
        return self.high - self.low


def host_scene(
    host_trace: HostTrace, host: HostActivity, devices: list[DeviceTimeline], low: int, high: int
) -> HostScene:
    """The threads over [low, high); `host` is what is placed already of those that launch work."""
    activity, tables, latest = host_trace.activity, host_trace.tables, host_trace.activity.latest_ns
    calls = activity.api_calls.rows
    processes = np.unique(np.concatenate([distinct_values(device.operations.process) for device in devices]))
    launched = [_launched(device, len(calls), low, high) for device in devices]
    axis = ThreadAxis.over(
        _threads(host_trace, processes, launched), host.axis.origin, host.axis.origin + host.axis.span
    )
    rest = axis.threads[host.axis.rank(axis.threads) < 0]
    others = ThreadAxis.over(rest, axis.origin, axis.origin + axis.span)
    launching = np.zeros(len(axis.threads), dtype=np.bool_)
    for rows in launched:
        launching[axis.rank(distinct_values(calls.thread[rows]))] = True
    return HostScene(
        host_trace=host_trace,
        devices=devices,
        low=low,
        high=high,
        axis=axis,
        api=(Calls.of(host.axis, host.api), Calls.of(others, place_api_calls(others, activity.api_calls, latest))),
        os_calls=Calls.of(axis, place_os_calls(axis, tables, latest)[0]),
        sync=_sync_calls(host_trace, axis, low, high),
        launched=launched,
        launching=launching,
        os_traced=np.isin(process_of(axis.threads), distinct_values(process_of(tables.os_calls.thread))),
    )


def _threads(host_trace: HostTrace, processes: IntArray, launched: list[IntArray]) -> IntArray:
    """Every thread of `processes` that any table has an event of. A profiler's own thread is one only if it launched
    work: then it is none."""
    tables, calls = host_trace.tables, host_trace.activity.api_calls.rows
    columns = (tables.switches.thread, tables.os_calls.thread, tables.samples.thread, calls.thread)
    found = np.unique(np.concatenate([distinct_values(column) for column in columns]))
    found = found[np.isin(process_of(found), processes) & (tid_of(found) != 0)]
    launchers = [distinct_values(calls.thread[rows]) for rows in launched]
    kept = ~np.isin(found, host_trace.profilers)
    return np.unique(np.concatenate([found[kept], *launchers]))


def _launched(device: DeviceTimeline, calls: int, low: int, high: int) -> IntArray:
    """The calls that launched what ran on a device in [low, high), each once."""
    operations = device.operations
    ran = (operations.start < high) & (operations.end > low)
    seen = np.zeros(calls + 1, dtype=np.bool_)
    # -1, an operation without a launch row, marks the place behind the last.
    seen[device.launch if ran.all() else device.launch[ran]] = True
    return np.flatnonzero(seen[:-1])


def _sync_calls(host_trace: HostTrace, axis: ThreadAxis, low: int, high: int) -> SyncCalls:
    calls, names = host_trace.activity.api_calls.rows, host_trace.activity.api_calls.names
    wanted = np.array([SYNC_CALLS.fullmatch(name) is not None for name in names] + [False], dtype=np.bool_)
    row = np.flatnonzero(wanted[calls.name])
    row = row[(calls.start[row] >= low) & (calls.start[row] < high)]
    lane = axis.rank(calls.thread[row])
    row, lane = row[lane >= 0], lane[lane >= 0]
    spans = Intervals(calls.start[row], calls.end[row])
    outer = outermost(spans, lane)
    return SyncCalls(lane[outer], spans[outer], row[outer])
