"""What threads did as lanes: NVTX ranges by depth, CUDA calls, OS calls, time off the CPU."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.host import HostActivity
from nsysdiag.activity.identity import IntArray
from nsysdiag.activity.lane import Lane
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.analysis.lanes.source import Source, codes_of, reach_of
from nsysdiag.timeline.intervals import Intervals
from nsysdiag.timeline.nesting import levels

MOST_DEPTH = 6


def thread_sources(
    host: HostActivity, ranges: NvtxRanges, thread: int, place: int, low: int, high: int
) -> list[Source]:
    """All lanes of one thread (globalTid) over [low, high), those without rows left out; `place` is its number."""
    rank = int(host.axis.rank(np.array([thread]))[0])
    found = [*_nvtx(ranges, thread, place, low, high)]
    if rank >= 0:
        api = host.api.take(_of_lane(host, host.api.spans, rank))
        calls = {"api": api.take(api.outermost), "os": host.os_calls.take(_of_lane(host, host.os_calls.spans, rank))}
        found += [_calls(host, lane, kind, rank, place, low, high) for kind, lane in calls.items()]
        found.append(_off_cpu(host, rank, place, low, high))
    return [source for source in found if len(source.start)]


def _of_lane(host: HostActivity, spans: Intervals, rank: int) -> IntArray:
    """The rows on a thread's part of the axis; `spans` is sorted by start."""
    base = rank * host.axis.stride
    first, behind = np.searchsorted(spans.start, (base, base + host.axis.stride))
    return np.arange(first, behind, dtype=np.int64)


def _times(host: HostActivity, spans: Intervals, rank: int) -> Intervals:
    shift = host.axis.origin - rank * host.axis.stride
    return Intervals(spans.start + shift, spans.end + shift)


def _calls(host: HostActivity, lane: Lane, kind: str, rank: int, place: int, low: int, high: int) -> Source:
    spans = _times(host, lane.spans, rank)
    kept = _within(spans, low, high)
    spans, shown = spans[kept], lane.shown[kept]
    return Source(
        kind, "", place, 0, spans.start, spans.end, reach_of(spans.end), codes_of(shown, list(lane.shown_names))
    )


def _off_cpu(host: HostActivity, rank: int, place: int, low: int, high: int) -> Source:
    base, out = rank * host.axis.stride, host.scheduling.out
    spans = _times(host, out[(out.start >= base) & (out.start < base + host.axis.stride)], rank)
    spans = spans[_within(spans, low, high)]
    spans = spans[np.argsort(spans.start, kind="stable")]
    return Source("off_cpu", "", place, 0, spans.start, spans.end, reach_of(spans.end), None)


def _nvtx(ranges: NvtxRanges, thread: int, place: int, low: int, high: int) -> list[Source]:
    """A lane for each depth; an open range ends with the timeline."""
    rows = ranges.rows.take(ranges.rows.thread == thread)
    spans = Intervals(rows.start, np.minimum(rows.end, high))
    kept = _within(spans, low, high)
    spans, name = spans[kept], rows.name[kept]
    order = np.lexsort((name, -spans.end, spans.start))
    spans, name = spans[order], name[order]
    depth = levels(spans, MOST_DEPTH + 1)
    result = []
    for level in range(int(min(depth.max(), MOST_DEPTH - 1)) + 1 if len(depth) else 0):
        mine = spans[depth == level]
        named = codes_of(name[depth == level], ranges.names)
        result.append(Source("nvtx", "", place, level, mine.start, mine.end, reach_of(mine.end), named, shares=False))
    return result


def _within(spans: Intervals, low: int, high: int) -> IntArray:
    return np.flatnonzero((spans.end > spans.start) & (spans.end > low) & (spans.start < high))
