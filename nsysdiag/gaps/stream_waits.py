"""Which gaps a cudaStreamWaitEvent explains: the next operation had to wait for another stream."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import BoolArray, IntArray, rows_from
from nsysdiag.arrays.nesting import constant
from nsysdiag.events.calls import issue_times
from nsysdiag.events.device import DeviceActivity, DeviceTimeline
from nsysdiag.events.event_waits import NO_PRODUCER, UNKNOWN_PRODUCER
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct, previous_on_stream
from nsysdiag.gaps.gaps import Gaps

SLACK_NS = 50_000
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
        result: BoolArray = self.explains & (self.label != _UNKNOWN)
        return result


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
    ended = np.sort(activity.operations.end[activity.device != device.number])
    last = np.append(ended, -1)[np.searchsorted(ended, gaps.closed[gap] + SLACK_NS, side="right") - 1]
    elsewhere = (last > api_start) & (last >= gaps.opened[gap] - SLACK_NS)
    result: BoolArray = (here & (gaps.opened[gap] > api_start)) | elsewhere
    return result


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
