"""The gaps of one device: maximal idle intervals, each with the operation before it and the one that ends it; and the
dispatch floor and the launch latency that the trace shows."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from operator import attrgetter

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.constant import constant, taken
from nsysdiag.arrays.distinct import distinct
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, pieces, rows_from, sorted_times, stretches
from nsysdiag.events.calls import CallRows, issue_times, times_of
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.event_waits import NO_PRODUCER, UNKNOWN_PRODUCER
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import Rows, picked, previous_on_stream


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
    behind = (np.flatnonzero(spans.start[1:] > reach[:-1]) + 1).astype(np.int32)
    whole = Intervals(reach[behind - 1], spans.start[behind])
    gap, inside, whole = _inside(whole, parts)
    before, behind = behind[gap] - 1, behind[gap]
    following = rows[behind]
    return Gaps(
        start=inside.start,
        end=inside.end,
        opened=whole.start,
        closed=whole.end,
        previous=rows[_first_to_reach(reach)[before]],
        next=following,
        target=_launched(device, rows, behind, following),
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


def _launched(device: DeviceTimeline, rows: IntArray, behind: IntArray, following: IntArray) -> IntArray:
    """The first of the `rows` from each index `behind` on that is not a migration; -1 for none. That is the row
    `following` there if none is."""
    migration = device.operations.migration
    if not migration.any():
        return following
    launched = np.flatnonzero(~migration[rows])
    return np.append(rows[launched], np.int32(-1))[np.searchsorted(launched, behind, side="left")]


# The dispatch floor and the launch latency of a device, learned from its trace.

DEFAULT_NS = 5_000
"""The dispatch floor and the launch latency, in ns, of a trace with too few cases of its own. It is above what traces
showed: 95% of such gaps of an H100 took at most 2.8 µs, and latencies were 1.2 to 3.2 µs."""
FLOOR_SAMPLES, FLOOR_PERCENTILE, FLOOR_LOWEST_NS, FLOOR_HIGHEST_NS = 200, 95, 2_000, 10_000
"""Gaps between queued operations that calibrate the floor, the percentile of them that it is, and its limits in ns. A
higher floor calls longer gaps dispatch, instead of asking for their cause. An H100 had a median of 1.3 µs and a 95th
percentile of 2.8 µs."""
LATENCY_SAMPLES, LATENCY_PERCENTILE = 20, 25
"""Launches to an idle device that calibrate the latency, and the percentile of their delays that it is. A median
calibrates itself on the stalls that it should expose: on a Jetson it was 350 µs."""
LATENCY_FACTOR, LATENCY_LOWEST_NS, LATENCY_HIGHEST_NS = 3, 20_000, 100_000
"""How many latencies a launch may take to reach an idle device, and the limits of that in ns. Longer waits have another
cause: without limits, launch latency took 14% to 50% of the idle time of three traces."""


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
    rows = picked(device.running)
    before, launch = previous_on_stream(device.stream_code[rows]), device.launch[rows]
    later = picked((before >= 0) & (launch >= 0))
    ended = device.operations.end[rows][picked(before[later])]
    gap = device.operations.start[rows][later] - ended
    issued = calls.end.take(launch[later]) <= ended
    gap = gap[issued & (gap > 0)]
    if len(gap) < FLOOR_SAMPLES:
        return None
    return int(np.clip(np.percentile(gap, FLOOR_PERCENTILE), FLOOR_LOWEST_NS, FLOOR_HIGHEST_NS))


def _latency(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity, waits_present: BoolArray) -> int | None:
    """The lower quartile of start - api_end over kernels that found the device idle and waited for no event."""
    calls = activity.api_calls.rows
    operations, following = device.operations, picked(gaps.next)
    columns = (device.launch, operations.category, operations.graph_node)
    launch, category, node = (taken(each, following) for each in columns)
    kernel = (category == Category.KERNEL) & (node <= 0)
    chosen = np.flatnonzero(kernel & (launch >= 0) & ~waits_present)
    chosen = chosen[calls.start[launch[chosen]] >= gaps.opened[chosen]] if len(chosen) else chosen
    if len(chosen) < LATENCY_SAMPLES:
        return None
    delay = taken(operations.start, taken(gaps.next, chosen)) - taken(calls.end, taken(launch, chosen))
    return int(np.percentile(np.maximum(delay, 0), LATENCY_PERCENTILE))


# Waits for another stream.


SLACK_NS = 50_000
"""How long, in ns, before a gap opens or after it closes the work that a stream waited for may end. Clocks of two
devices differ by less; if larger, unrelated work explains gaps."""
WAITS_FOR_COMPUTE, WAITS_FOR_COMMUNICATION = (
    EvidenceLabel("waits for compute"),
    EvidenceLabel("waits for communication"),
)
WAITS_FOR_COPY, OTHER_DEVICE = EvidenceLabel("waits for a copy"), EvidenceLabel("waits for another device")
LABELS = [WAITS_FOR_COMPUTE, WAITS_FOR_COMMUNICATION, WAITS_FOR_COPY, OTHER_DEVICE, EvidenceLabel("producer unknown")]
_COMPUTE, _COMMUNICATION, _COPY, _OTHER_DEVICE, _UNKNOWN = range(5)


class EventWaits(Struct, frozen=True):
    """For each gap: whether the next operation waited for an event, whether that explains the gap, and what was waited
    for (an index into LABELS, -1 for unexplained). `other` is the number of the other device whose work that was, -1
    for none. `unseen`: some wait was for an event of which the trace does not show what it was recorded behind."""

    present: BoolArray
    explains: BoolArray
    label: IntArray
    other: IntArray
    unseen: BoolArray

    @property
    def known(self) -> BoolArray:
        """True where the trace shows what was waited for. Otherwise the launch may have been on its way as well."""
        return self.explains & (self.label != _UNKNOWN)


def event_waits(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity) -> EventWaits:
    """Looks at the waits issued to the next operation's stream after its previous operation and before itself.

    ```
    stream 7    [==producer==)
    stream 9    wait............[==next op==)
                |--- gap on an idle device --|   the producer ends no earlier than 50 µs before the gap opens
    ```
    """
    waits, count = activity.waits, len(gaps)
    if len(waits) == 0 or count == 0:
        never, unknown = constant(np.zeros(1, dtype=np.bool_), count), constant(np.full(1, -1, dtype=np.int32), count)
        return EventWaits(never, never, unknown, unknown, never)
    nothing, unknown = np.zeros(count, dtype=np.bool_), np.full(count, -1, dtype=np.int32)
    result = EventWaits(nothing, nothing.copy(), unknown, unknown.copy(), nothing.copy())
    gap, wait = _waits_before(gaps, device, activity)
    result.present[gap] = True
    producer = waits.producer[wait]
    known = producer >= 0
    row = np.maximum(producer, 0)
    end = activity.operations.end[row]
    target = gaps.target[gap]
    api_start = activity.api_calls.rows.start[device.launch[target]]
    holds = known & (end > api_start) & (end >= gaps.opened[gap] - SLACK_NS)
    # What was still running when the operation began was not waited for; clocks of devices differ a little.
    holds &= end <= gaps.closed[gap] + SLACK_NS
    unsure = np.flatnonzero(producer == UNKNOWN_PRODUCER)
    result.unseen[gap[unsure]] = True
    holds[unsure] = _may_have_waited(gaps, gap[unsure], waits.issued[wait[unsure]], device, activity)
    holds &= producer != NO_PRODUCER
    label = np.where(known, _producer_labels(activity, device, row), _UNKNOWN)
    # The producer that ended last is the one that was waited for: written last, it stays.
    order = np.argsort(np.where(known, end, -1)[holds], kind="stable")
    result.explains[gap[holds]] = True
    result.label[gap[holds][order]] = label[holds][order]
    other = np.where(label == _OTHER_DEVICE, activity.device[row], -1)
    result.other[gap[holds][order]] = other[holds][order]
    return result


def _may_have_waited(
    gaps: Gaps, gap: IntArray, asked: IntArray, device: DeviceTimeline, activity: DeviceActivity
) -> BoolArray:
    """For waits whose producer is unknown, `asked` at some time before these gaps: whether something ended that a wait
    may have been for. That is the operation before the gap, if it is on another stream, was launched before the wait
    and ended after the next launch. Or it is work of another device. Without it, the wait explains nothing: fewer
    rows must not make a cause more specific."""
    issued = issue_times(device.launch, activity.api_calls.rows, device.operations.start)
    target, previous = gaps.target[gap], gaps.previous[gap]
    api_start = activity.api_calls.rows.start[device.launch[target]]
    here = (device.stream_code[previous] != device.stream_code[target]) & (issued[previous] < asked)
    ended = sorted_times(activity.operations.end[activity.device != device.number])
    last = np.append(ended, -1)[np.searchsorted(ended, gaps.closed[gap] + SLACK_NS, side="right") - 1]
    elsewhere = (last > api_start) & (last >= gaps.opened[gap] - SLACK_NS)
    return (here & (gaps.opened[gap] > api_start)) | elsewhere


def _waits_before(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity) -> tuple[IntArray, IntArray]:
    """All pairs of a gap and a wait issued between its next operation and the one before that on its stream."""
    waits = activity.waits
    issued = issue_times(device.launch, activity.api_calls.rows, device.operations.start)
    before = previous_on_stream(device.stream_code)
    candidates = np.flatnonzero((gaps.target >= 0) & (device.launch[gaps.target] >= 0))
    target = gaps.target[candidates]
    earlier = before[target]
    low = np.where(earlier >= 0, issued[earlier], np.iinfo(np.int64).min)
    times, rank = distinct(waits.issued)
    stride = len(times) + 1
    position = waits.stream * stride + rank
    stream = device.stream_code[target] * stride
    first = np.searchsorted(position, stream + np.searchsorted(times, low, side="right"), side="left")
    behind = np.searchsorted(position, stream + np.searchsorted(times, issued[target], side="left"), side="left")
    count = np.maximum(behind - first, 0)
    gap = np.repeat(candidates, count)
    wait = rows_from(first, count)
    return gap, wait


def _producer_labels(activity: DeviceActivity, device: DeviceTimeline, row: IntArray) -> IntArray:
    operations = activity.operations
    computes = np.isin(operations.category[row], (Category.KERNEL, Category.GRAPH))
    here = activity.device[row] == device.number
    return np.select(
        [~here, activity.communication[row], computes], [_OTHER_DEVICE, _COMMUNICATION, _COMPUTE], default=_COPY
    )


# The launch of the next operation in each gap: the borders between host, call, latency and device time.


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
    """For each gap its case, the row of the launching call among `calls` (-1: none), and whether its operation waited
    for an event, or for a host function (`held`). `latency_ns` is how long a launch may take after its call. The times
    of the call, and the borders inside [opened, closed), are computed from these on each access:

    ```
    opened      call_start       call_end        settled          closed
    |-- host side --|-- call's part --|-- latency --|-- device side --|
    ```
    """

    gaps: Gaps
    case: IntArray
    call: IntArray
    calls: CallRows
    event_wait: BoolArray
    held: BoolArray
    latency_ns: int

    def take(self, rows: IntArray | slice) -> LaunchFrame:
        """That of some of the gaps."""
        columns = self.case, self.call, self.event_wait, self.held
        case, call, waits, held = (taken(each, rows) for each in columns)
        return LaunchFrame(self.gaps.take(rows), case, call, self.calls, waits, held, self.latency_ns)

    @property
    def host_known(self) -> BoolArray:
        """Does the launch tell when the host was done?"""
        return _host_known(self.case)

    @property
    def issue_start(self) -> IntArray:
        """The start of the whole call in ns, 0 for none."""
        return issue_times(self.call, self.calls, 0)

    @property
    def issue_end(self) -> IntArray:
        """The end of the whole call in ns, 0 for none."""
        return times_of(self.call, self.calls.end, 0)

    @property
    def call_start(self) -> IntArray:
        """The beginning of the call's part; the opening of the gap where nothing is known of the host."""
        return self._inside(self.issue_start)

    @property
    def call_end(self) -> IntArray:
        """The end of the call's part."""
        return self._inside(self.issue_end)

    @property
    def settled(self) -> IntArray:
        """The end of the latency."""
        # A malformed end near the largest number must not wrap around.
        return self._inside(np.minimum(self.issue_end, self.gaps.closed) + self.latency_ns)

    def _inside(self, times: IntArray) -> IntArray:
        opened = self.gaps.opened
        return np.where(self.host_known, np.clip(times, opened, self.gaps.closed), opened)

    def region(self, low: Border, high: Border, chosen: BoolArray) -> tuple[Intervals, IntArray]:
        """From border `low` to border `high` of the chosen gaps, cut to the parts inside the window, and whose each
        piece is."""
        parts = [self.take(part)._cut(low, high, chosen[part], part.start) for part in stretches(len(chosen))]
        owners = [np.empty(0, dtype=np.int32), *(owner for _, owner in parts)]
        return Intervals.concatenate(spans for spans, _ in parts), np.concatenate(owners)

    def _cut(self, low: Border, high: Border, chosen: BoolArray, first: int) -> tuple[Intervals, IntArray]:
        """Of a stretch of gaps, the first of which has the number `first`."""
        some = self.take(picked(chosen))
        start, end = some.gaps.start, some.gaps.end
        start = start if low is OPENED else np.maximum(low(some), start)
        end = end if high is CLOSED else np.minimum(high(some), end)
        kept = picked(end > start)
        number = (np.flatnonzero(chosen) + first).astype(np.int32)
        return Intervals(taken(start, kept), taken(end, kept)), taken(number, kept)


Border = Callable[[LaunchFrame], IntArray]
"""One of the borders inside each gap."""
OPENED: Border = attrgetter("gaps.opened")
CALL_START: Border = attrgetter("call_start")
CALL_END: Border = attrgetter("call_end")
SETTLED: Border = attrgetter("settled")
CLOSED: Border = attrgetter("gaps.closed")


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
    api_start, api_end = (times_of(call, side, 0) for side in (calls.start, calls.end))
    held = activity.host_functions.just_before(device.stream_code[gaps.next], gaps.opened, gaps.closed)
    case = _cases(gaps, device, activity, calibration, call, api_start, api_end, held)
    return LaunchFrame(
        gaps=gaps,
        case=case,
        call=call,
        calls=calls,
        event_wait=waits.explains & _host_known(case),
        held=held,
        latency_ns=calibration.latency_limit_ns,
    )


def _host_known(case: IntArray) -> BoolArray:
    return case <= LaunchCase.ISSUED


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
    begun = np.where(api_start <= gaps.opened, np.int8(LaunchCase.ISSUING), np.int8(LaunchCase.LATE))
    case: IntArray = np.where(issued, np.int8(LaunchCase.ISSUED), begun)
    case[~has_call] = LaunchCase.UNKNOWN
    early = ~has_call
    if early.any():
        early &= launched_before_capture(gaps, device, activity)
    case[early] = LaunchCase.BEFORE_CAPTURE
    case[issued & ~held & same_graph_launch(gaps, device)] = LaunchCase.INTRA_GRAPH
    within_floor = gaps.closed - gaps.opened <= calibration.floor_ns
    case[(issued | ~has_call) & within_floor] = LaunchCase.DISPATCH
    migrates = device.operations.migration
    if migrates.any():
        case[migrates[gaps.next] & (issued | early)] = LaunchCase.UNIFIED_MEMORY
    return case


def same_graph_launch(gaps: Gaps, device: DeviceTimeline) -> BoolArray:
    """True where the operations on both sides of a gap are nodes of one graph launch."""
    node, launch = device.operations.graph_node, device.launch
    following = taken(launch, gaps.next)
    nodes = (taken(node, gaps.next) > 0) & (taken(node, gaps.previous) > 0)
    return nodes & (taken(launch, gaps.previous) == following) & (following >= 0)


def launched_before_capture(gaps: Gaps, device: DeviceTimeline, activity: DeviceActivity) -> BoolArray:
    """True where the operation's correlation id is below the first that its process recorded."""
    target = np.maximum(gaps.target, 0)
    correlation, process = device.operations.correlation[target], device.operations.process[target]
    owners, owner = distinct(process)
    lowest = np.array([activity.first_correlation.get(each, 0) for each in owners.tolist()], dtype=np.int64)
    early: BoolArray = (correlation > 0) & (correlation < lowest[owner])
    return early & (gaps.target >= 0)
