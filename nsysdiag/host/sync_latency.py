"""Synchronizations that return late: how long after the end of the work, in quiet and in busy windows."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import IntArray, nearest_before
from nsysdiag.events.identity import process_of
from nsysdiag.events.rows import RowsOf, distinct_values
from nsysdiag.host.facts import HostWindow, SyncLatency, SyncPart
from nsysdiag.host.threads import HostScene
from nsysdiag.host.windows import window_of_time
from nsysdiag.units import NS_PER

FEWEST = 20
"""Calls that each side needs."""
FACTOR, LEAST_RATE = 2.0, 10.0
"""How many times more context switches the busy side must have, and how many a second at least."""
CROWDED = 0.05
"""How much more of its time the busy side must be crowded."""
PARTS = 4


class Sides(Struct, frozen=True):
    """Windows to compare, and by which of their columns they were chosen."""

    quiet: IntArray
    busy: IntArray
    by: str


def sync_latency(scene: HostScene, late: IntArray, windows: list[HostWindow], edges: IntArray) -> SyncLatency | None:
    """None without synchronizations on threads that launch work; `late` is by how much each outlasted its work."""
    mine = scene.launching[scene.sync.lane]
    if not mine.any():
        return None
    latency, window = late[mine], window_of_time(edges, scene.sync.spans.start[mine])
    sides = _sides(windows)
    quiet = _part(windows, sides.quiet, window, latency) if sides else None
    busy = _part(windows, sides.busy, window, latency) if sides else None
    return SyncLatency(
        calls=len(latency),
        p50_ns=_percentile(latency, 50),
        p99_ns=_percentile(latency, 99),
        quiet=quiet,
        busy=busy,
        p50_ratio=_ratio(busy, quiet, "p50_ns"),
        p99_ratio=_ratio(busy, quiet, "p99_ns"),
        by=sides.by if sides else None,
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
    latency: IntArray = spans.end - np.maximum(spans.start, work)
    return latency


def _last_end(ends: IntArray, times: IntArray) -> IntArray:
    """The last of the ends at or before each time."""
    ends = np.sort(ends, kind="stable")
    at = nearest_before(ends, times)
    return np.where(at >= 0, np.append(ends, 0)[at], np.iinfo(np.int64).min // 2)


def _sides(windows: list[HostWindow]) -> Sides | None:
    """A quarter of the windows on each side, by how much others had the launching threads' CPUs; if that is about
    constant, by context switches.

    None if these do not differ either, or are unknown. Context switches come second, as a neighbour with long time
    slices makes them rarer.
    """
    if len(windows) < PARTS or any(window.switches is None for window in windows):
        return None
    crowded = [window.crowded_share or 0.0 for window in windows]
    quiet, busy = _quarters(crowded)
    least, most = (sum(crowded[at] for at in side) / len(side) for side in (quiet, busy))
    if most - least >= CROWDED:
        return Sides(quiet, busy, "crowded_share")
    quiet, busy = _quarters([_rate([window]) for window in windows])
    least, most = _rate(_of(windows, quiet)), _rate(_of(windows, busy))
    return Sides(quiet, busy, "switches") if most >= max(FACTOR * least, LEAST_RATE) else None


def _quarters(values: list[float]) -> tuple[IntArray, IntArray]:
    """The windows with the least and with the most; of equal ones the earlier have less."""
    order = np.argsort(np.array(values), kind="stable")
    part = len(values) // PARTS
    return np.sort(order[:part]), np.sort(order[-part:])


def _of(windows: list[HostWindow], side: IntArray) -> list[HostWindow]:
    return [windows[at] for at in side.tolist()]


def _mean(windows: list[HostWindow], field: str) -> float | None:
    """The mean of a column over the windows that know it."""
    values = [value for window in windows if (value := getattr(window, field)) is not None]
    return sum(values) / len(values) if values else None


def _rate(windows: list[HostWindow]) -> float:
    """Switches a second."""
    length = sum(window.end_ns - window.start_ns for window in windows)
    return sum(window.switches or 0 for window in windows) * NS_PER["s"] / length


def _part(windows: list[HostWindow], side: IntArray, window: IntArray, latency: IntArray) -> SyncPart:
    chosen = _of(windows, side)
    mine = latency[np.isin(window, side)]
    lost, crowded = _mean(chosen, "preempted_share"), _mean(chosen, "crowded_share")
    return SyncPart(
        windows=len(chosen),
        switches_per_second=round(_rate(chosen), 3),
        preempted_share=None if lost is None else round(lost, 6),
        crowded_share=None if crowded is None else round(crowded, 6),
        calls=len(mine),
        p50_ns=_percentile(mine, 50) if len(mine) >= FEWEST else None,
        p99_ns=_percentile(mine, 99) if len(mine) >= FEWEST else None,
    )


def _percentile(values: IntArray, rank: int) -> int:
    """The smallest value that `rank` % do not exceed."""
    return int(np.sort(values)[-(-len(values) * rank // 100) - 1])


def _ratio(busy: SyncPart | None, quiet: SyncPart | None, field: str) -> float | None:
    part, whole = getattr(busy, field, None), getattr(quiet, field, None)
    return round(part / whole, 3) if part is not None and whole else None
