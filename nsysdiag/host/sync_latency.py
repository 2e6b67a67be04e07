"""Synchronizations that return late: how long after the end of the work, in quiet and in busy windows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.groups import sorted_pairs
from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    ascending,
    coverage,
    equal_edges,
    nearest_before,
    union,
)
from nsysdiag.events.identity import process_of
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import RowsOf, picked
from nsysdiag.host.facts import HostWindow, SyncLatency, SyncPart
from nsysdiag.host.threads import CpuStretches, HostScene, ThreadStates
from nsysdiag.units import NS_PER

# The range in equal windows, like the lines of vmstat: switches, synchronizations, launches, kernels, busy and off-CPU
# shares.

FEWEST, MOST = 30, 60
"""Windows of a range. Fewer say less exactly when a change began; of more, each holds fewer events and says less."""


class Working(Struct, frozen=True):
    """What a device did in its window: the time of work and the parts of the window, both sets."""

    busy: Intervals
    parts: Intervals


def window_edges(low: int, high: int) -> IntArray:
    """The edges of the windows: one a second, thirty at least and sixty at most; fewer if there are not as many
    ns."""
    count = max(FEWEST, min(MOST, (high - low) // NS_PER["s"]))
    return equal_edges(low, high, min(count, high - low))


def window_of_time(edges: IntArray, times: IntArray) -> IntArray:
    """The window that each time of the range is in."""
    return nearest_before(edges[:-1], times)


SHARES = ("busy_share", "off_cpu_share", "preempted_share", "crowded_share")


def host_windows(
    scene: HostScene, states: ThreadStates | None, working: list[Working], late: IntArray, edges: IntArray
) -> list[HostWindow]:
    """A row for each window; `states` is None if scheduling was not captured. `late` is by how much each
    synchronization outlasted its work."""
    spans = Intervals(edges[:-1], edges[1:])
    length, count = spans.end - spans.start, len(spans)
    seconds = length / NS_PER["s"]
    calls = window_of_time(edges, scene.sync.spans.start)
    sync = _sync_columns(calls, scene.sync.spans.end - scene.sync.spans.start, count)
    mine = scene.launching[scene.sync.lane]
    lateness = _sync_columns(calls[mine], late[mine], count)
    launches, kernels = (
        sum((_counted(edges, times) for times in every), np.zeros(count, dtype=np.int64)) / seconds
        for every in (_launch_times(scene), _kernel_times(scene))
    )
    shares = {"busy_share": _busy(working, spans)}
    if states is not None:
        chosen: dict[str, slice | BoolArray] = {
            "off_cpu_share": slice(None),
            "preempted_share": states.preempted,
            "crowded_share": states.crowded,
        }
        shares |= {name: _shares(scene, states, states.away.take(rows), spans) for name, rows in chosen.items()}
    switches = None if states is None else _counted(edges, states.left)
    return [
        HostWindow(
            start_ns=int(edges[at]),
            end_ns=int(edges[at + 1]),
            switches=None if switches is None else int(switches[at]),
            sync_calls=int(sync.count[at]),
            sync_p50_ns=int(sync.p50[at]) if sync.count[at] else None,
            sync_p99_ns=int(sync.p99[at]) if sync.count[at] else None,
            sync_total_ns=int(sync.total[at]),
            launches_per_second=round(float(launches[at]), 3),
            kernels_per_second=round(float(kernels[at]), 3),
            **{name: _share(shares.get(name), at) for name in SHARES},
            sync_late_p50_ns=int(lateness.p50[at]) if lateness.count[at] else None,
        )
        for at in range(count)
    ]


def _share(values: FloatArray | None, at: int) -> float | None:
    return None if values is None or np.isnan(values[at]) else round(float(values[at]), 6)


def _counted(edges: IntArray, times: IntArray) -> IntArray:
    """How many of the times, which are all in the range, are in each window."""
    if ascending(times):
        return np.diff(np.searchsorted(times, edges))
    return np.bincount(window_of_time(edges, times), minlength=len(edges) - 1)


def _launch_times(scene: HostScene) -> list[IntArray]:
    """When the calls that launched work on each device began, in the range."""
    starts = [scene.host_trace.activity.api_calls.rows.start[rows] for rows in scene.launched]
    return [start[(start >= scene.low) & (start < scene.high)] for start in starts]


def _kernel_times(scene: HostScene) -> list[IntArray]:
    """When the kernels of each device began, in the range."""
    found = []
    for device in scene.devices:
        start = device.operations.start
        chosen = (device.operations.category == Category.KERNEL) & (start >= scene.low) & (start < scene.high)
        found.append(start if chosen.all() else start[chosen])
    return found


def _busy(working: list[Working], spans: Intervals) -> FloatArray:
    """The mean over the devices of the busy share of their window inside each of `spans`; NaN if no device's window is
    in a span."""
    shares = [_ratio(coverage(each.busy, spans), coverage(each.parts, spans)) for each in working]
    known = [~np.isnan(share) for share in shares]
    total = sum((np.nan_to_num(share) for share in shares), np.zeros(len(spans)))
    return _ratio(total, sum((each.astype(np.int64) for each in known), np.zeros(len(spans), dtype=np.int64)))


def _ratio(part: npt.NDArray[np.generic], whole: IntArray) -> FloatArray:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def _shares(scene: HostScene, states: ThreadStates, stretches: CpuStretches, spans: Intervals) -> FloatArray:
    """The share of each of `spans` that launching threads spent in `stretches`: a mean over those with scheduling
    events; NaN without any."""
    chosen = scene.launching & states.known
    lanes = np.flatnonzero(chosen)
    if len(lanes) == 0:
        return np.full(len(spans), np.nan)
    mine = stretches.take(picked(chosen[stretches.lane]))
    covered = union(scene.axis.place(mine.lane, mine.spans))
    lane, window = np.repeat(lanes, len(spans)), np.tile(np.arange(len(spans)), len(lanes))
    spent = coverage(covered, scene.axis.place(lane, spans[window])).reshape(len(lanes), -1).sum(axis=0)
    return spent / (len(lanes) * (spans.end - spans.start))


class SyncColumns(Struct, frozen=True):
    """Of the synchronizations that begin in each window: how many, and how long they take. Percentile p is the smallest
    length that p % do not exceed; 0 in windows without any."""

    count: IntArray
    p50: IntArray
    p99: IntArray
    total: IntArray


def _sync_columns(window: IntArray, length: IntArray, count: int) -> SyncColumns:
    calls = np.bincount(window, minlength=count)
    first = np.cumsum(calls) - calls
    ordered = np.append(sorted_pairs(window, length)[1], 0) if len(window) else np.zeros(1, dtype=np.int64)
    total = np.append(np.int64(0), np.cumsum(ordered[:-1], dtype=np.int64))

    def percentile(rank: int) -> IntArray:
        return np.where(calls > 0, ordered[first + np.maximum(-(-calls * rank // 100) - 1, 0)], 0)

    return SyncColumns(calls, percentile(50), percentile(99), total[first + calls] - total[first])


FEWEST_SYNCS = 20
"""Calls that each side needs."""
FACTOR, LEAST_RATE = 2.0, 10.0
"""How many times more context switches the busy side must have, and how many a second at least."""
CROWDED = 0.05
"""How much more of its time the busy side must be crowded."""
PARTS = 4
"""The quietest and the busiest of so many parts of the windows are compared. If larger, they differ more, and each has
fewer synchronizations."""


def sync_latency(scene: HostScene, late: IntArray, windows: list[HostWindow], edges: IntArray) -> SyncLatency | None:
    """None without synchronizations on threads that launch work; `late` is by how much each outlasted its work."""
    mine = scene.launching[scene.sync.lane]
    if not mine.any():
        return None
    latency, window = late[mine], window_of_time(edges, scene.sync.spans.start[mine])
    sides = _sides(windows)
    by, *parts = sides or (None, None, None)
    quiet, busy = (None if each is None else _part(windows, each, window, latency) for each in parts)
    return SyncLatency(
        calls=len(latency),
        p50_ns=_percentile(latency, 50),
        p99_ns=_percentile(latency, 99),
        quiet=quiet,
        busy=busy,
        p50_ratio=_ratio_of(busy, quiet, "p50_ns"),
        p99_ratio=_ratio_of(busy, quiet, "p99_ns"),
        by=by,
    )


def latencies(scene: HostScene) -> IntArray:
    """For each synchronization the time from the end of the last operation that it waited for to its return; from its
    own beginning if that is later.

    ```
    device   ....[==A==)
    thread  [ synchronize  )
                       |---|  the latency
    ```

    The operation is the last that ended before the return: on the stream or the device in the trace, else on the
    devices of the process. So the time is a lower bound: an unrelated later operation hides a part of it.
    """
    activity, spans = scene.host_trace.activity, scene.sync.spans
    work = np.full(len(spans), np.iinfo(np.int64).min // 2)
    named = activity.synchronized[scene.sync.row]
    owner = process_of(scene.axis.threads[scene.sync.lane])
    stream = activity.synchronized_streams.stream[scene.sync.row]
    by_stream = np.zeros(len(spans), dtype=np.bool_)
    of_stream, of_owner = RowsOf(stream), RowsOf(owner)
    for device in activity.devices:
        end, counted = device.operations.end, np.flatnonzero(~device.operations.migration)
        on_stream, of_process = RowsOf(device.stream_code[counted]), RowsOf(device.operations.process[counted])
        for code in np.intersect1d(stream[stream >= 0], distinct_values(device.stream_code)).tolist():
            rows = of_stream[code]
            by_stream[rows] = True
            work[rows] = _last_end(end[counted[on_stream[code]]], spans.end[rows])
        for number in np.intersect1d(distinct_values(owner), of_process.values()).tolist():
            rows = of_owner[number]
            rows = rows[((named[rows] < 0) | (named[rows] == device.number)) & ~by_stream[rows]]
            work[rows] = np.maximum(work[rows], _last_end(end[counted[of_process[number]]], spans.end[rows]))
    return spans.end - np.maximum(spans.start, work)


def _last_end(ends: IntArray, times: IntArray) -> IntArray:
    """The last of the ends at or before each time."""
    ends = np.sort(ends, kind="stable")
    at = nearest_before(ends, times)
    return np.where(at >= 0, np.append(ends, 0)[at], np.iinfo(np.int64).min // 2)


def _sides(windows: list[HostWindow]) -> tuple[str, IntArray, IntArray] | None:
    """A quarter of the windows on each side, quiet and busy, and by which column: by how much others had the launching
    threads' CPUs; if that is about constant, by context switches.

    None if these do not differ either, or are unknown. Context switches come second, as a neighbour with long time
    slices makes them rarer.
    """
    if len(windows) < PARTS or any(window.switches is None for window in windows):
        return None
    crowded = np.array([window.crowded_share or 0.0 for window in windows])
    quiet, busy = _quarters(crowded)
    if crowded[busy].mean() - crowded[quiet].mean() >= CROWDED:
        return "crowded_share", quiet, busy
    quiet, busy = _quarters(np.array([window.switches_per_second for window in windows]))
    least, most = _rate(windows, quiet), _rate(windows, busy)
    return ("switches", quiet, busy) if most >= max(FACTOR * least, LEAST_RATE) else None


def _quarters(values: FloatArray) -> tuple[IntArray, IntArray]:
    """The windows with the least and with the most; of equal ones the earlier have less."""
    order = np.argsort(values, kind="stable")
    part = len(values) // PARTS
    return np.sort(order[:part]), np.sort(order[-part:])


def _rate(windows: list[HostWindow], side: IntArray) -> float:
    """Switches a second in some of the windows."""
    chosen: list[HostWindow] = [windows[at] for at in side.tolist()]
    length = sum(window.end_ns - window.start_ns for window in chosen)
    return sum(window.switches or 0 for window in chosen) * NS_PER["s"] / length


def _part(windows: list[HostWindow], side: IntArray, window: IntArray, latency: IntArray) -> SyncPart:
    mine, chosen = latency[np.isin(window, side)], [windows[at] for at in side.tolist()]

    def mean(values: Iterable[float | None]) -> float | None:
        known = [each for each in values if each is not None]
        return round(sum(known) / len(known), 6) if known else None

    return SyncPart(
        windows=len(chosen),
        switches_per_second=round(_rate(windows, side), 3),
        preempted_share=mean(each.preempted_share for each in chosen),
        crowded_share=mean(each.crowded_share for each in chosen),
        calls=len(mine),
        p50_ns=_percentile(mine, 50) if len(mine) >= FEWEST_SYNCS else None,
        p99_ns=_percentile(mine, 99) if len(mine) >= FEWEST_SYNCS else None,
    )


def _percentile(values: IntArray, rank: int) -> int:
    """The smallest value that `rank` % do not exceed."""
    return int(np.sort(values)[-(-len(values) * rank // 100) - 1])


def _ratio_of(busy: SyncPart | None, quiet: SyncPart | None, field: str) -> float | None:
    part, whole = getattr(busy, field, None), getattr(quiet, field, None)
    return round(part / whole, 3) if part is not None and whole else None
