"""The launch of the next operation in each gap: the borders between host, call, latency and device time."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.rows import distinct, picked
from nsysdiag.gaps.gaps import Calibration, EventWaits, Gaps


class LaunchCase(IntEnum):
    """What the next operation's launch says about a gap."""

    LATE = 0  # launched after the gap opened: the host is late
    ISSUING = 1  # its call was running when the gap opened
    ISSUED = 2  # launched before the gap opened
    DISPATCH = 3  # already launched, and within the floor
    INTRA_GRAPH = 4  # a node of the graph launch that ran before
    BEFORE_CAPTURE = 5  # launched before the capture began
    UNIFIED_MEMORY = 6  # a migration in front of work that was already launched
    UNKNOWN = 7  # no launch row


class LaunchFrame(Struct, frozen=True):
    """For each gap its case, the row of the launching call (-1: none), the start and end of that call, and whether its
    operation waited for an event, or for a host function (`held`). `latency_ns` is how long a launch may take after
    its call. The borders inside [opened, closed) are computed from these on each access:

    ```
    opened      call_start       call_end        settled          closed
    |-- host side --|-- call's part --|-- latency --|-- device side --|
    ```
    """

    gaps: Gaps
    case: IntArray
    call: IntArray
    whole_call: Intervals
    event_wait: BoolArray
    held: BoolArray
    latency_ns: int

    def take(self, rows: IntArray) -> LaunchFrame:
        """That of some of the gaps."""
        call, whole = self.call[rows], self.whole_call[rows]
        waits, held = self.event_wait[rows], self.held[rows]
        return LaunchFrame(self.gaps.take(rows), self.case[rows], call, whole, waits, held, self.latency_ns)

    @property
    def host_known(self) -> BoolArray:
        """Does the launch tell when the host was done?"""
        return _host_known(self.case)

    @property
    def call_start(self) -> IntArray:
        """The beginning of the call's part; the opening of the gap where nothing is known of the host."""
        return self._inside(self.whole_call.start)

    @property
    def call_end(self) -> IntArray:
        """The end of the call's part."""
        return self._inside(self.whole_call.end)

    @property
    def settled(self) -> IntArray:
        """The end of the latency."""
        # A malformed end near the largest number must not wrap around.
        return self._inside(np.minimum(self.whole_call.end, self.gaps.closed) + self.latency_ns)

    def _inside(self, times: IntArray) -> IntArray:
        opened = self.gaps.opened
        return np.where(self.host_known, np.clip(times, opened, self.gaps.closed), opened)

    def region(self, low: IntArray, high: IntArray, chosen: BoolArray) -> tuple[Intervals, IntArray]:
        """[low, high) of the chosen gaps, cut to the parts inside the window, and whose each piece is."""
        owner = np.flatnonzero(chosen)
        if len(owner) == 0:
            return Intervals.empty(), owner
        start, end = self.gaps.start[owner], self.gaps.end[owner]
        start = start if low is self.gaps.opened else np.maximum(low[owner], start)
        end = end if high is self.gaps.closed else np.minimum(high[owner], end)
        kept = picked(end > start)
        return Intervals(start[kept], end[kept]), owner[kept]


class DeviceSide(Struct, frozen=True):
    """What a device-side rule sees: the frame of all gaps, the device and what all devices share."""

    frame: LaunchFrame
    device: DeviceTimeline
    activity: DeviceActivity
    waits: EventWaits


class Explained(Struct, frozen=True):
    """The result of a device-side rule: all remaining time of the gaps in `whole`, and the time covered by `slices` in
    gaps whose next operation belongs to a process. `label` is a code into `labels` for each gap, or -1."""

    whole: BoolArray
    label: IntArray
    labels: list[EvidenceLabel]
    slices: list[tuple[int, Intervals]]


def frame_of(
    gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity, calibration: Calibration, waits: EventWaits
) -> LaunchFrame:
    """The case and the borders of each gap."""
    calls = activity.api_calls.rows
    call = np.where(gaps.target >= 0, device.launch[gaps.target], np.int32(-1))
    has_call = call >= 0
    nothing = np.zeros(len(gaps), dtype=np.int64)
    api_start = np.where(has_call, calls.start[call], 0) if len(calls) else nothing
    api_end = np.where(has_call, calls.end[call], 0) if len(calls) else nothing
    held = activity.host_functions.just_before(device.stream_code[gaps.next], gaps.opened, gaps.closed)
    case = _cases(gaps, device, activity, calibration, call, api_start, api_end, held)
    return LaunchFrame(
        gaps=gaps,
        case=case,
        call=call,
        whole_call=Intervals(api_start, api_end),
        event_wait=waits.explains & _host_known(case),
        held=held,
        latency_ns=calibration.latency_limit_ns,
    )


def _host_known(case: IntArray) -> BoolArray:
    known: BoolArray = case <= LaunchCase.ISSUED
    return known


def _cases(
    gaps: Gaps,
    device: DeviceTimeline,
    activity: DeviceActivity,
    calibration: Calibration,
    call: IntArray,
    api_start: IntArray,
    api_end: IntArray,
    held: BoolArray,
) -> IntArray:
    has_call = call >= 0
    issued = has_call & (api_end <= gaps.opened)
    case = np.select(
        [issued, has_call & (api_start <= gaps.opened), has_call],
        [LaunchCase.ISSUED, LaunchCase.ISSUING, LaunchCase.LATE],
        LaunchCase.UNKNOWN,
    )
    early = ~has_call & launched_before_capture(gaps, device, activity)
    case[early] = LaunchCase.BEFORE_CAPTURE
    case[issued & ~held & same_graph_launch(gaps, device)] = LaunchCase.INTRA_GRAPH
    within_floor = gaps.closed - gaps.opened <= calibration.floor_ns
    case[(issued | ~has_call) & within_floor] = LaunchCase.DISPATCH
    migrates = device.operations.migration[gaps.next]
    case[migrates & (issued | early)] = LaunchCase.UNIFIED_MEMORY
    return case.astype(np.int8)


def same_graph_launch(gaps: Gaps, device: DeviceTimeline) -> BoolArray:
    """True where the operations on both sides of a gap are nodes of one graph launch."""
    operations = device.operations
    node = (operations.graph_node[gaps.next] > 0) & (operations.graph_node[gaps.previous] > 0)
    same: BoolArray = device.launch[gaps.previous] == device.launch[gaps.next]
    return node & same & (device.launch[gaps.next] >= 0)


def launched_before_capture(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity) -> BoolArray:
    """True where the operation's correlation id is below the first that its process recorded."""
    if len(gaps) == 0:
        return np.zeros(0, dtype=np.bool_)
    target = np.maximum(gaps.target, 0)
    correlation, process = device.operations.correlation[target], device.operations.process[target]
    owners, owner = distinct(process)
    lowest = np.array([activity.first_correlation.get(each, 0) for each in owners.tolist()], dtype=np.int64)
    early: BoolArray = (correlation > 0) & (correlation < lowest[owner])
    return early & (gaps.target >= 0)
