"""The range in equal windows, like the lines of vmstat: switches, synchronizations, launches, kernels, busy and off-CPU
shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag.arrays.groups import sorted_pairs
from nsysdiag.arrays.intervals import (
    FloatArray,
    IntArray,
    Intervals,
    ascending,
    coverage,
    equal_edges,
    nearest_before,
    union,
)
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import picked
from nsysdiag.host.facts import HostWindow
from nsysdiag.host.states import Stretches, ThreadStates
from nsysdiag.host.threads import HostScene
from nsysdiag.units import NS_PER

FEWEST, MOST = 30, 60


class Working(Struct, frozen=True):
    """What a device did in its window: the time of work and the parts of the window, both sets."""

    busy: Intervals
    parts: Intervals


def window_edges(low: int, high: int) -> IntArray:
    """The edges of the windows: one a second, thirty at least and sixty at most; fewer where there are not as many
    ns."""
    count = max(FEWEST, min(MOST, (high - low) // NS_PER["s"]))
    return equal_edges(low, high, min(count, high - low))


def window_of_time(edges: IntArray, times: IntArray) -> IntArray:
    """The window that each time of the range is in."""
    return nearest_before(edges[:-1], times)


def host_windows(
    scene: HostScene, states: ThreadStates | None, working: list[Working], late: IntArray, edges: IntArray
) -> list[HostWindow]:
    """A row for each window; `states` is None where scheduling was not captured. `late` is by how much each
    synchronization outlasted its work."""
    spans = Intervals(edges[:-1], edges[1:])
    length, count = spans.end - spans.start, len(spans)
    seconds = length / NS_PER["s"]
    calls = window_of_time(edges, scene.sync.spans.start)
    sync = _sync_columns(calls, scene.sync.spans.end - scene.sync.spans.start, count)
    mine = scene.launching[scene.sync.lane]
    lateness = _sync_columns(calls[mine], late[mine], count)
    launches = sum((_counted(edges, times) for times in _launch_times(scene)), np.zeros(count, dtype=np.int64))
    kernels = sum((_counted(edges, times) for times in _kernel_times(scene)), np.zeros(count, dtype=np.int64))
    busy = _busy(working, spans)
    switches = None if states is None else _counted(edges, states.left)
    away = None if states is None else _shares(scene, states, states.away, spans)
    lost = None if states is None else _shares(scene, states, states.away.take(states.preempted), spans)
    crowded = None if states is None else _shares(scene, states, states.away.take(states.crowded), spans)
    return [
        HostWindow(
            start_ns=int(edges[at]),
            end_ns=int(edges[at + 1]),
            switches=None if switches is None else int(switches[at]),
            sync_calls=int(sync.count[at]),
            sync_p50_ns=int(sync.p50[at]) if sync.count[at] else None,
            sync_p99_ns=int(sync.p99[at]) if sync.count[at] else None,
            sync_total_ns=int(sync.total[at]),
            launches_per_second=round(float(launches[at] / seconds[at]), 3),
            kernels_per_second=round(float(kernels[at] / seconds[at]), 3),
            busy_share=_share(busy, at),
            off_cpu_share=_share(away, at),
            preempted_share=_share(lost, at),
            crowded_share=_share(crowded, at),
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
    ratio: FloatArray = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return ratio


def _shares(scene: HostScene, states: ThreadStates, stretches: Stretches, spans: Intervals) -> FloatArray:
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
    share: FloatArray = spent / (len(lanes) * (spans.end - spans.start))
    return share


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
