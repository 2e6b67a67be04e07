"""The gaps of one device: maximal idle intervals, each with the operation before it and the one that ends it; and the
dispatch floor and the launch latency that the trace shows."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, pieces
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import Rows, previous_on_stream


class Gaps(Rows, frozen=True):
    """Idle intervals [start, end) inside the window, sorted.

    For a gap cut by a border of the window, `opened` and `closed` are the bounds of the whole gap. `previous` and
    `next` are rows of the device's operations. `target` is the next operation that is not a migration: its launch shows
    what the device waited for; -1 if no launched operation follows.
    """

    start: IntArray
    end: IntArray
    opened: IntArray
    closed: IntArray
    previous: IntArray
    next: IntArray
    target: IntArray


def find_gaps(device: DeviceTimeline, parts: Intervals) -> Gaps:
    """All idle time of `device` inside the set `parts`.

    ```
    stream 7   [==A==)          [==C==)
    stream 9      [=====B=====)            [==D==)
    gaps                        ^none   [--)         previous C, next D
    ```
    """
    rows = np.flatnonzero(device.running).astype(np.int32)
    spans = Intervals(device.operations.start, device.operations.end)[device.running]
    reach = np.maximum.accumulate(spans.end)
    behind = np.flatnonzero(spans.start[1:] > reach[:-1]) + 1
    whole = Intervals(reach[behind - 1], spans.start[behind])
    gap, inside, whole = _inside(whole, parts)
    before, behind = behind[gap] - 1, behind[gap]
    return Gaps(
        start=inside.start,
        end=inside.end,
        opened=whole.start,
        closed=whole.end,
        previous=rows[_first_to_reach(reach)[before]],
        next=rows[behind],
        target=_launched(device, rows, behind),
    )


def _inside(gaps: Intervals, parts: Intervals) -> tuple[IntArray | slice, Intervals, Intervals]:
    """The parts of the set `gaps` inside the set `parts`, the gap of each, and those gaps: the same where nothing is
    cut."""
    if len(parts) == 1 and len(gaps) and parts.start[0] <= gaps.start[0] and gaps.end[-1] <= parts.end[0]:
        return slice(None), gaps, gaps
    gap, inside = pieces(parts, gaps)
    return gap, inside, gaps[gap]


def _first_to_reach(reach: IntArray) -> IntArray:
    """For each operation, in order of start, the first one that ended as late as any so far."""
    raises = np.append(True, reach[1:] > reach[:-1])[: len(reach)]
    place = np.arange(len(reach), dtype=np.int32)
    return place if raises.all() else np.maximum.accumulate(np.where(raises, place, np.int32(0)))


def _launched(device: DeviceTimeline, rows: IntArray, behind: IntArray) -> IntArray:
    """The first of the `rows` from each index `behind` on that is not a migration; -1 for none."""
    migrates = device.operations.migration[rows]
    if not migrates.any():
        return rows[behind]
    launched = np.flatnonzero(~migrates)
    found: IntArray = np.append(rows[launched], np.int32(-1))[np.searchsorted(launched, behind, side="left")]
    return found


# The dispatch floor and the launch latency of a device, learned from its trace.

DEFAULT_NS = 5_000
FLOOR_SAMPLES, FLOOR_PERCENTILE, FLOOR_LOWEST_NS, FLOOR_HIGHEST_NS = 200, 95, 2_000, 10_000
LATENCY_SAMPLES, LATENCY_PERCENTILE = 20, 25
LATENCY_FACTOR, LATENCY_LOWEST_NS, LATENCY_HIGHEST_NS = 3, 20_000, 100_000


class Calibration(Struct, frozen=True):
    """`floor_ns`: a gap that short before launched work is dispatch. `latency_ns`: from the end of a launch call to the
    start of its kernel on an idle device. A value that the trace has too few cases for is 5 µs, and not calibrated."""

    floor_ns: int
    floor_calibrated: bool
    latency_ns: int
    latency_calibrated: bool

    @property
    def latency_limit_ns(self) -> int:
        """The longest that a launch may take to reach an idle device before something else must be the cause."""
        return min(max(LATENCY_FACTOR * self.latency_ns, LATENCY_LOWEST_NS), LATENCY_HIGHEST_NS)


def calibrate(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity, waits_present: BoolArray) -> Calibration:
    """Learn both from all gaps of the device; `waits_present` marks gaps whose next operation waited for an event."""
    floor = _floor(device, activity)
    latency = _latency(gaps, device, activity, waits_present)
    return Calibration(
        DEFAULT_NS if floor is None else floor,
        floor is not None,
        DEFAULT_NS if latency is None else latency,
        latency is not None,
    )


def _floor(device: DeviceTimeline, activity: DeviceActivity) -> int | None:
    """The 95th percentile of the gaps between operations of one stream that were already launched."""
    calls = activity.api_calls.rows
    rows = np.flatnonzero(device.running)
    before = previous_on_stream(device.stream_code[rows])
    later = np.flatnonzero((before >= 0) & (device.launch[rows] >= 0))
    if len(later) == 0:
        return None
    ended = device.operations.end[rows[before[later]]]
    gap = device.operations.start[rows[later]] - ended
    issued = calls.end[device.launch[rows[later]]] <= ended
    gap = gap[issued & (gap > 0)]
    if len(gap) < FLOOR_SAMPLES:
        return None
    return int(np.clip(np.percentile(gap, FLOOR_PERCENTILE), FLOOR_LOWEST_NS, FLOOR_HIGHEST_NS))


def _latency(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity, waits_present: BoolArray) -> int | None:
    """The lower quartile of start - api_end over kernels that found the device idle and waited for no event."""
    calls = activity.api_calls.rows
    launch = device.launch[gaps.next]
    operations = device.operations
    kernel = (operations.category[gaps.next] == Category.KERNEL) & (operations.graph_node[gaps.next] <= 0)
    chosen = np.flatnonzero(kernel & (launch >= 0) & ~waits_present)
    chosen = chosen[calls.start[launch[chosen]] >= gaps.opened[chosen]] if len(chosen) else chosen
    if len(chosen) < LATENCY_SAMPLES:
        return None
    delay = np.maximum(operations.start[gaps.next[chosen]] - calls.end[launch[chosen]], 0)
    return int(np.percentile(delay, LATENCY_PERCENTILE))
