"""What threads did as lanes: NVTX ranges by depth, CUDA calls, OS calls, time off the CPU."""

from __future__ import annotations

import numpy as np

from nsysdiag.activity.host import HostActivity
from nsysdiag.activity.lane import Lane
from nsysdiag.activity.nvtx import NvtxRanges
from nsysdiag.analysis.lanes.source import Source, codes_of, reach_of
from nsysdiag.timeline.intervals import BoolArray, Intervals
from nsysdiag.timeline.nesting import levels

MOST_DEPTH = 6


def thread_sources(
    host: HostActivity, ranges: NvtxRanges, thread: int, place: int, low: int, high: int
) -> list[Source]:
    """All lanes of one thread (globalTid) over [low, high), those without rows left out; `place` is its number."""
    rank = int(host.axis.rank(np.array([thread]))[0])
    found = [*_nvtx(ranges, thread, place, low, high)]
    if rank >= 0:
        lanes = {"api": host.api, "os": host.os_calls}
        found += [_calls(host, lane, kind, rank, place, low, high) for kind, lane in lanes.items()]
        found.append(_off_cpu(host, rank, place, low, high))
    return [source for source in found if len(source.start)]


def _calls(host: HostActivity, lane: Lane, kind: str, rank: int, place: int, low: int, high: int) -> Source:
    """The outermost calls of the thread. They are picked in one go: there may be millions."""
    base = rank * host.axis.stride
    first, behind = np.searchsorted(lane.spans.start, (base, base + host.axis.stride))
    mine = slice(int(first), int(behind))
    spans = lane.spans[mine]
    shift = host.axis.origin - base
    kept = np.flatnonzero(lane.outermost[mine] & _inside(spans, low - shift, high - shift))
    start, end = spans.start[kept] + shift, spans.end[kept] + shift
    named = codes_of(lane.shown[mine][kept], lane.shown_names)
    return Source(kind, "", place, 0, start, end, reach_of(end), named)


def _off_cpu(host: HostActivity, rank: int, place: int, low: int, high: int) -> Source:
    base, out = rank * host.axis.stride, host.scheduling.out
    shift = host.axis.origin - base
    mine = (out.start >= base) & (out.start < base + host.axis.stride) & _inside(out, low - shift, high - shift)
    start, end = out.start[mine] + shift, out.end[mine] + shift
    order = np.argsort(start, kind="stable")
    return Source("off_cpu", "", place, 0, start[order], end[order], reach_of(end[order]), None)


def _nvtx(ranges: NvtxRanges, thread: int, place: int, low: int, high: int) -> list[Source]:
    """A lane for each depth; an open range ends with the timeline."""
    rows = ranges.rows.take(ranges.rows.thread == thread)
    kept = _inside(Intervals(rows.start, rows.end), low, high)
    rows = rows.take(kept)
    rows = rows.take(np.lexsort((rows.name, ~rows.end, rows.start)))
    # By their own ends: cut at the end of the timeline, an inner range may look as long as its outer one.
    depth = levels(Intervals(rows.start, rows.end), MOST_DEPTH + 1)
    result = []
    for level in range(int(min(depth.max(), MOST_DEPTH - 1)) + 1 if len(depth) else 0):
        mine = rows.take(depth == level)
        end = np.minimum(mine.end, high)
        named = codes_of(mine.name, ranges.names)
        result.append(Source("nvtx", "", place, level, mine.start, end, reach_of(end), named, shares=False))
    return result


def _inside(spans: Intervals, low: int, high: int) -> BoolArray:
    """True for what is not empty and touches [low, high)."""
    inside: BoolArray = (spans.end > spans.start) & (spans.end > low) & (spans.start < high)
    return inside
