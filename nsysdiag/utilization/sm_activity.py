"""How many of the SMs had work, over time: an estimate from the launch shapes of the kernels.

    stream 7   [---- 54 of 108 SMs ----)                      0.5
    stream 9          [---- 54 of 108 SMs ----)               0.5
    SMs        0.5    1.0              0.5                     concurrent kernels add up, to all SMs at most

The estimate tends to be too high: it assumes that concurrent kernels use different SMs, and that every SM of a full
wave works until the wave ends. It is too low if the blocks of the last wave are shorter than the others. A grid with a
full wave counts as at least half of the SMs; a lower value means grids with fewer blocks than SMs.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import FloatArray, IntArray, Intervals, intersect, union
from nsysdiag.arrays.loads import taken
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.kernels.residency import Residency
from nsysdiag.ledger.busy import WindowSplit
from nsysdiag.utilization.facts import SmEstimate

WHOLE = 1_000_000_000  # all SMs, in parts: whole numbers add up to the same in any order
NO_CHIP = (
    "TARGET_INFO_GPU lacks the number of SMs of this GPU and their limits; a capture with --gpu-metrics-devices=all "
    "measures SM activity"
)
NO_SHAPE = (
    "some kernel time has no launch shape that fits the GPU, as in graphs traced as a whole (--cuda-graph-trace=node "
    "records each kernel)"
)


class MeasuredSm(Struct, frozen=True):
    """The mean share of SMs with work inside the window, from GPU metrics."""

    active_share: float


def estimate(device: DeviceTimeline, split: WindowSplit, parts: Intervals, found: Residency | None) -> SmEstimate:
    """The SM activity of a device over its window, `parts`; `found` is the residency of each launch shape."""
    if split.window_ns == 0:
        return _estimate(split)
    if split.kernel_ns == 0:
        return _estimate(split, 0.0, 0.0, 0.0)
    if found is None:
        return _estimate(split, covered=0.0, missing=NO_CHIP)
    operations = device.operations
    kernel = (operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)
    rows = slice(None) if kernel.all() else np.flatnonzero(kernel)
    spans, shape = Intervals(operations.start[rows], operations.end[rows]), operations.shape[rows]
    active, resident = _weights(found.sm_share, shape), _weights(found.resident_share, shape)
    if np.all(active >= 0):
        ns, resident_ns = taken(spans, [active, np.maximum(resident, 0)], WHOLE, parts)
        return _estimate(split, ns, resident_ns if np.all(resident >= 0) else None, ns, 1.0)
    return _partly(spans, active, resident, split, parts)


def while_computing(device: DeviceTimeline, parts: Intervals, found: Residency | None) -> float | None:
    """The mean share of SMs with work while kernels ran that are no communication, as far as their shapes are known."""
    operations = device.operations
    computes = (operations.category == Category.KERNEL) & ~device.communication & (operations.shape >= 0)
    if found is None or not computes.any():
        return None
    active = _weights(found.sm_share, operations.shape[computes])
    known = active >= 0
    spans = Intervals(operations.start[computes][known], operations.end[computes][known])
    ran_ns = intersect(parts, union(spans)).total()
    (ns,) = taken(spans, [active[known]], WHOLE, parts)
    return min(round(ns / WHOLE / ran_ns, 6), 1.0) if ran_ns else None


def _weights(share: FloatArray, shape: IntArray) -> IntArray:
    """The share of each kernel in parts of WHOLE; -1 where it is not known."""
    known = np.where(np.isnan(share), -1, np.round(np.clip(np.nan_to_num(share), 0, 1) * WHOLE)).astype(np.int32)
    return np.append(known, np.int32(-1))[shape]


def _partly(spans: Intervals, active: IntArray, resident: IntArray, split: WindowSplit, parts: Intervals) -> SmEstimate:
    """What the kernels of known shape do at least, and at most if the others fill the GPU."""
    unknown = active < 0
    least, most = np.where(unknown, 0, active), np.where(unknown, WHOLE, active)
    ns, resident_ns, most_ns = taken(spans, [least, np.maximum(resident, 0), most], WHOLE, parts)
    covered_ns = intersect(parts, union(spans[~unknown])).total()
    if covered_ns == 0:
        return _estimate(split, covered=0.0, missing=NO_SHAPE)
    covered = round(covered_ns / split.kernel_ns, 6)
    held = resident_ns if np.all(resident[~unknown] >= 0) else None
    return _estimate(split, ns, held, most_ns, covered, NO_SHAPE)


def _estimate(
    split: WindowSplit,
    active: float | None = None,
    resident: float | None = None,
    most: float | None = None,
    covered: float | None = None,
    missing: str = "",
) -> SmEstimate:
    """From how long the SMs were taken, in ns of WHOLE, to shares of the window and of the time with kernels."""

    def share(taken_ns: float | None, of_ns: int) -> float | None:
        if taken_ns is None or of_ns == 0:
            return None
        return min(round(taken_ns / WHOLE / of_ns, 6), 1.0)

    return SmEstimate(
        sm_active_share=share(active, split.window_ns),
        resident_share=share(resident, split.window_ns),
        sm_active_running=share(active, split.kernel_ns),
        resident_running=share(resident, split.kernel_ns),
        sm_active_at_most=share(most, split.window_ns),
        covered_share=covered,
        missing=missing,
    )
