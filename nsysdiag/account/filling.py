"""Time in which kernels left most of the chip empty, by launch shapes or GPU counters. Also time in which the GPU
worked for another program."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.claim import Owned, claim
from nsysdiag.arrays.constant import constant, taken
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    common_ns,
    coverage,
    intersect,
    is_set,
    place_in,
    subtract,
    union,
)
from nsysdiag.causes import EVENT_WAIT, PLACE, SYNCHRONIZATION
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.counters.counters import Measured
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import Rows, ThreadAxis
from nsysdiag.gaps.gaps import OTHER_DEVICE
from nsysdiag.kernels.limits import Residency
from nsysdiag.ledger.ledger import LayerRows, Slices, WindowSplit
from nsysdiag.time.table import TimeTable

HALF = 0.5
"""Kernels that reach this share of the SMs between them, or of a throughput, are not too few."""
LEAST_KNOWN = 0.5
"""The share of the kernel time that must have a shape or a counter."""
LEAST_ACTIVE = 0.3
"""Below this measured share of SMs with work most of the chip is empty. Between it and HALF, sampling and the
blocks of an unfinished wave make the share uncertain."""
THROUGHPUTS = ("tensor_active", "dram_read", "dram_write")


def hollow_time(
    device: DeviceTimeline, split: WindowSplit, found: Residency | None, measured: Measured | None
) -> Intervals | None:
    """The compute time in which most SMs had no work, as a set: by counters if sampled, else by launch shapes. None
    if less than half of the kernel time has either."""
    by_counters = None if measured is None else _by_counters(split, measured)
    return by_counters if by_counters is not None else _by_shapes(device, split, found)


def _by_counters(split: WindowSplit, measured: Measured) -> Intervals | None:
    active = measured.series.get("sm_active")
    if active is None:
        return None
    known = ~np.isnan(active.value)
    compute = split.parts[0]
    spans = active.grid.spans
    if common_ns(compute, union(spans[known])) < LEAST_KNOWN * compute.total():
        return None
    hollow = intersect(compute, union(spans[known & (active.value < LEAST_ACTIVE)]))
    return subtract(hollow, _at_work(measured))


def _at_work(measured: Measured) -> Intervals:
    """The samples in which a throughput was high."""
    series = [measured.series[name] for name in THROUGHPUTS if name in measured.series]
    return union(Intervals.empty(), *(each.grid.spans[np.nan_to_num(each.value) >= HALF] for each in series))


def _by_shapes(device: DeviceTimeline, split: WindowSplit, found: Residency | None) -> Intervals | None:
    """
    ```
    stream 7   [-- 20% of the SMs ---)        [-- all of them --)
    stream 9           [-- 40% ---)      [- 10% --)
    hollow     [-------)          [--)   [----)
    ```
    """
    if found is None:
        return None
    operations = device.operations
    computes = (operations.category == Category.KERNEL) & ~device.communication
    graphs = operations.category == Category.GRAPH
    share = taken(np.append(found.sm_share, np.nan), operations.shape)
    known = computes & ~np.isnan(share)
    spans = Intervals(operations.start, operations.end)
    compute, unknown = split.parts[0], (computes | graphs) & ~known
    if unknown.any() and common_ns(compute, union(spans[known])) < LEAST_KNOWN * compute.total():
        return None
    small = known & (share < HALF)
    others = union(spans[(computes | graphs) & ~small])
    return intersect(compute, subtract(_below(spans[small], share[small]), others))


def _below(spans: Intervals, share: FloatArray) -> Intervals:
    """The time in which at least one of the spans is open and their shares add up to less than HALF."""
    if is_set(spans):
        return union(spans)
    weight = np.maximum(np.round(share * (1 << 30)).astype(np.int64), 1)
    times = np.concatenate((spans.end, spans.start))
    order = np.argsort(times, kind="stable")
    level = np.cumsum(np.concatenate((-weight, weight))[order])
    times = times[order]
    low: BoolArray = (level > 0) & (level < HALF * (1 << 30))
    nothing: IntArray = np.empty(0, dtype=np.int64)
    return union(Intervals(times[:-1][low[:-1]], times[1:][low[:-1]]) if len(times) else Intervals(nothing, nothing))


def foreign_time(gaps: Intervals, measured: Measured | None, least: float) -> Intervals:
    """The idle time in which GPU counters show at least the share `least` of SMs active, as a set. This is work of
    another program, as nothing of this trace ran. Only samples wholly inside one of the `gaps` count."""
    active = None if measured is None else measured.series.get("sm_active")
    if active is None:
        return Intervals.empty()
    spans = active.grid.spans[np.nan_to_num(active.value) >= least]
    return union(spans[coverage(gaps, spans) == spans.end - spans.start])


# Idle time of a device that waits for another one, charged to what that one did meanwhile.


def waited_for(
    slices: Slices, lane: IntArray, calls: Iterable[list[EvidenceLayer]], producer: IntArray, axis: ThreadAxis
) -> IntArray:
    """The number of the other device that each slice waited for, -1 for none. `lane` is the thread that launched after
    each gap; `calls` are synchronizations, on the thread axis. `producer` is, for each gap, the other device whose
    event held its next operation."""
    rows = slices.rows
    if OTHER_DEVICE not in slices.labels:
        return constant(np.full(1, -1, dtype=np.int16), len(rows))
    found = np.full(len(rows), -1, dtype=np.int16)
    labelled = rows.label == slices.labels.index(OTHER_DEVICE)
    held = np.flatnonzero(labelled & (rows.cause == PLACE[EVENT_WAIT]))
    found[held] = producer[rows.gap[held]]
    called = np.flatnonzero(labelled & (rows.cause == PLACE[SYNCHRONIZATION]) & (taken(lane, rows.gap) >= 0))
    at = axis.position(lane[rows.gap[called]], rows.start[called])
    for layers in calls:
        found[called] = np.maximum(found[called], _device_at(at, layers))
    return found


def _device_at(position: IntArray, layers: list[EvidenceLayer]) -> IntArray:
    """The device that the calls around these positions waited for, -1 where there is none."""
    known = [each for each in layers if each.device is not None]
    rows = LayerRows.of(known)
    device = np.array([*(each.device for each in known), -1], dtype=np.int16)
    return device[np.append(rows.layer, -1)[place_in(rows.spans, position)]]


def followed(number: int, every: dict[int, TimeTable]) -> TimeTable:
    """The time of the device `number`, with waits for other devices charged to what these did. `other` is then the
    device that was waited for last. `every` holds the time of each device before this step.

    ```
    gpu 0       [==kernel===)[copy)[latency][==kernel
    gpu 1       [waits for gpu 0 ............)[==kernel
    charged to  [kernels    )[copies)[launch)[kernels
    ```

    If the other device waits for a third one, the wait is followed to that one, with at most one step per device.
    Devices that wait for each other remain waits. So do waits outside the other device's operations, and waits for a
    device that is not in `every`.
    """
    mine = every[number]
    if not (mine.other >= 0).any():
        return mine
    whole = _Charged(mine.spans.start, mine.spans.end, np.arange(len(mine)), mine.bottleneck, mine.other)
    found, left = [whole.take(whole.other < 0)], whole.take(whole.other >= 0)
    for _ in range(len(every)):
        further = [left.take(slice(0))]
        for device in distinct_values(left.other).tolist():
            asked, its = left.take(left.other == device), every.get(device)
            if its is None:
                found.append(asked)
                continue
            claimed, outside, source = claim(Owned(Intervals(asked.start, asked.end), asked.row), its.spans)
            code, other = its.bottleneck[source], its.other[source]
            waits = other >= 0
            answer = _Charged.of(
                claimed, np.where(waits, mine.bottleneck[claimed.owner], code), np.where(waits, other, device)
            )
            found += [answer.take(~waits), _Charged.of(outside, mine.bottleneck[outside.owner], -1)]
            further.append(answer.take(waits))
        left = _Charged.in_order(further)
    every_piece = _Charged.in_order([*found, replace(left, other=np.full(len(left), -1))])
    return replace(
        mine,
        spans=Intervals(every_piece.start, every_piece.end),
        state=mine.state[every_piece.row],
        bottleneck=every_piece.bottleneck.astype(np.int8),
        slice=mine.slice[every_piece.row],
        other=every_piece.other.astype(np.int16),
    )


class _Charged(Rows, frozen=True):
    """Parts of the rows of a device's time, with the bottleneck of each. `other` is the number of the device that is
    waited for, or was; -1 for none."""

    start: IntArray
    end: IntArray
    row: IntArray
    bottleneck: IntArray
    other: IntArray

    @classmethod
    def of(cls, parts: Owned, bottleneck: IntArray, other: IntArray | int) -> _Charged:
        """These parts of rows."""
        return cls(parts.spans.start, parts.spans.end, parts.owner, bottleneck, np.broadcast_to(other, len(parts)))

    @classmethod
    def in_order(cls, parts: list[_Charged]) -> _Charged:
        """All of them in order of time."""
        every = cls.concatenate(parts)
        return every.take(np.argsort(every.start, kind="stable"))
