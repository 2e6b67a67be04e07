"""Time in which kernels left most of the chip empty, by launch shapes or GPU counters. Also time in which the GPU
worked for another program."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.intervals import (
    BoolArray,
    FloatArray,
    IntArray,
    Intervals,
    coverage,
    intersect,
    is_set,
    subtract,
    union,
)
from nsysdiag.counters.counters import Measured
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.kernels.shapes import Residency
from nsysdiag.ledger.busy import WindowSplit

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
    """The compute time in which most SMs had no work, as a set: by counters where sampled, else by launch shapes. None
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
    if coverage(compute, union(spans[known])).sum() < LEAST_KNOWN * compute.total():
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
    share = np.append(found.sm_share, np.nan)[operations.shape]
    known = computes & ~np.isnan(share)
    spans = Intervals(operations.start, operations.end)
    compute = split.parts[0]
    if coverage(compute, union(spans[known])).sum() < LEAST_KNOWN * compute.total():
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
