"""A device's timeline in levels of detail: how much of each moment was compute, communication, copies or idle."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.buckets import bucket_coverage, bucket_edges, coarser
from nsysdiag.arrays.intervals import IntArray, Intervals, union
from nsysdiag.causes import CAUSES
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.iterations.window import AnalysisWindow
from nsysdiag.ledger.ledger import Ledger
from nsysdiag.timeline.facts import TimelineLevel, TimelineLevels
from nsysdiag.timeline.packing import FULL, encoded, share_bytes

FINEST, COARSEST = 14, 9
MANY_DEVICES = 16


def finest_level(devices: int) -> int:
    """The exponent of the finest level: fewer buckets where many devices share one report."""
    return max(FINEST - max((devices // MANY_DEVICES).bit_length(), 0), COARSEST)


def overview(
    device: DeviceTimeline, window: AnalysisWindow, gaps: Gaps, ledger: Ledger, finest: int
) -> TimelineLevels | None:
    """Lanes in 2^finest buckets and fewer, from first to last operation or over a narrowed window; None where nothing
    ran."""
    operations = device.operations
    if not device.running.any():
        return None
    low, high = int(operations.start[device.running].min()), int(operations.end[device.running].max())
    if window.narrowed and len(window.parts):
        low, high = int(window.parts.start[0]), int(window.parts.end[-1])
    edges = bucket_edges(low, high, finest)
    lanes = {name: coarser(bucket_coverage(spans, edges), COARSEST) for name, spans in _lanes(device, gaps).items()}
    idle = Intervals(gaps.start, gaps.end)
    by_cause = {
        number: coarser(bucket_coverage(idle[ledger.dominant == number], edges), COARSEST)
        for number in np.flatnonzero(np.bincount(ledger.dominant, minlength=len(CAUSES))).tolist()
    }
    sizes = coarser(np.diff(edges), COARSEST)
    levels = [
        TimelineLevel(
            buckets=len(size),
            **{name: share_bytes(lane[depth], size) for name, lane in lanes.items()},
            cause=_leading({number: lane[depth] for number, lane in by_cause.items()}, len(size)),
        )
        for depth, size in enumerate(sizes)
    ]
    return TimelineLevels(start_ns=low, end_ns=high, cause_ids=list(CAUSES), levels=levels)


def _lanes(device: DeviceTimeline, gaps: Gaps) -> dict[str, Intervals]:
    operations = device.operations
    spans = Intervals(operations.start, operations.end)
    kernels = (operations.category == Category.KERNEL) | (operations.category == Category.GRAPH)
    return {
        "compute": union(spans[kernels & ~device.communication]),
        "communication": union(spans[device.communication]),
        "copies": union(spans[~kernels]),
        "idle": Intervals(gaps.start, gaps.end),
    }


def _leading(by_cause: dict[int, IntArray], buckets: int) -> str:
    best, leading = np.zeros(buckets, dtype=np.int64), np.full(buckets, FULL, dtype=np.int64)
    for number, ns in by_cause.items():
        leading = np.where(ns > best, number, leading)
        best = np.maximum(best, ns)
    return encoded(leading.astype("<u1").tobytes())
