"""Synchronizations that return late: how long after the end of the work, in quiet and in busy windows."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.activity.identity import BoolArray, IntArray, process_of
from nsysdiag.activity.streams import distinct_values
from nsysdiag.analysis.host.scene import HostScene
from nsysdiag.analysis.host.windows import window_of_time
from nsysdiag.model_host import HostWindow, SyncLatency, SyncPart
from nsysdiag.timeline.intervals import nearest_before
from nsysdiag.units import NS_PER

FEWEST = 20
"""Calls that each side needs."""
FACTOR, LEAST_RATE = 2.0, 10.0
"""How many times more context switches the busy side must have, and how many a second at least."""
PARTS = 4


def sync_latency(scene: HostScene, windows: list[HostWindow], edges: IntArray) -> SyncLatency | None:
    """None without synchronizations on threads that launch work."""
    mine = scene.launching[scene.sync.lane]
    if not mine.any():
        return None
    latency = _latencies(scene)[mine]
    window = window_of_time(edges, scene.sync.spans.start[mine])
    sides = _sides(windows)
    quiet, busy = (None, None) if sides is None else (_part(windows, side, window, latency) for side in sides)
    return SyncLatency(
        calls=len(latency),
        p50_ns=_percentile(latency, 50),
        p99_ns=_percentile(latency, 99),
        quiet=quiet,
        busy=busy,
        p50_ratio=_ratio(busy, quiet, "p50_ns"),
        p99_ratio=_ratio(busy, quiet, "p99_ns"),
    )


def _latencies(scene: HostScene) -> IntArray:
    """For each synchronization the time from the end of the last operation that it had to wait for, or from its own
    beginning where that is later, to its return.

    ```
    device   ....[==A==)
    thread  [ synchronize  )
                       |---|  the latency
    ```

    The operation is the last that ended before the return: on the stream or the device that the trace names, else on
    the devices of the process. So it is never too long: what ended later than the work that was waited for hides a part
    of it.
    """
    activity, spans = scene.world.activity, scene.sync.spans
    work = np.full(len(spans), np.iinfo(np.int64).min // 2)
    named = activity.synchronized[scene.sync.row]
    owner = process_of(scene.axis.threads[scene.sync.lane])
    stream = activity.synchronized_stream[scene.sync.row]
    by_stream = np.zeros(len(spans), dtype=np.bool_)
    for device in activity.devices:
        for code in np.intersect1d(stream[stream >= 0], distinct_values(device.stream_code)).tolist():
            rows = np.flatnonzero(stream == code)
            by_stream[rows] = True
            work[rows] = _last_end(device, device.stream_code == code, spans.end[rows])
        process = device.operations.process
        for number in np.intersect1d(distinct_values(owner), distinct_values(process)).tolist():
            rows = np.flatnonzero((owner == number) & ((named < 0) | (named == device.number)) & ~by_stream)
            work[rows] = np.maximum(work[rows], _last_end(device, process == number, spans.end[rows]))
    latency: IntArray = spans.end - np.maximum(spans.start, work)
    return latency


def _last_end(device: DeviceTimeline, chosen: BoolArray, times: IntArray) -> IntArray:
    """The last end of an operation at or before each time."""
    ends = np.sort(device.operations.end[chosen & ~device.operations.migration], kind="stable")
    at = nearest_before(ends, times)
    return np.where(at >= 0, np.append(ends, 0)[at], np.iinfo(np.int64).min // 2)


def _sides(windows: list[HostWindow]) -> tuple[IntArray, IntArray] | None:
    """The quarter of the windows with the fewest and the one with the most switches a second; None where these are not
    known, or do not differ by the factor."""
    rates = np.array([_rate([window]) for window in windows])
    if any(window.switches is None for window in windows) or len(windows) < PARTS:
        return None
    order = np.argsort(rates, kind="stable")
    part = len(windows) // PARTS
    quiet, busy = np.sort(order[:part]), np.sort(order[-part:])
    least, most = (_rate([windows[at] for at in side]) for side in (quiet, busy))
    differ = most >= max(FACTOR * least, LEAST_RATE)
    return (quiet, busy) if differ else None


def _rate(windows: list[HostWindow]) -> float:
    """Switches a second."""
    length = sum(window.end_ns - window.start_ns for window in windows)
    return sum(window.switches or 0 for window in windows) * NS_PER["s"] / length


def _part(windows: list[HostWindow], side: IntArray, window: IntArray, latency: IntArray) -> SyncPart:
    chosen = [windows[at] for at in side]
    mine = latency[np.isin(window, side)]
    lost = [each.preempted_share for each in chosen if each.preempted_share is not None]
    return SyncPart(
        windows=len(chosen),
        switches_per_second=round(_rate(chosen), 3),
        preempted_share=round(sum(lost) / len(lost), 6) if lost else None,
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
