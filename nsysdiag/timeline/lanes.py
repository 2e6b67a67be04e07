"""Lanes of a device's timeline: its busiest streams, the causes in its longest gaps, and what threads did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.arrays.groups import longest
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, ascending
from nsysdiag.arrays.nesting import levels
from nsysdiag.events.axis import NamedRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.host import HostActivity
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import picked
from nsysdiag.kernels.names import operation_names
from nsysdiag.ledger.ledger import Slices
from nsysdiag.timeline.facts import OFF_CPU
from nsysdiag.timeline.packing import LaneSource, codes_of, reach_of

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


def cause_source(slices: Slices, gaps: IntArray, count: int, most: int) -> LaneSource | None:
    """The slices of the chosen `gaps` out of `count`, the longest `most` of them; None where there are none."""
    wanted = np.zeros(count, dtype=np.bool_)
    wanted[gaps] = True
    rows = np.flatnonzero(wanted[slices.rows.gap] & (slices.ns > 0))
    rows = rows[np.sort(longest(slices.lengths(rows), rows, most))]
    rows = rows[np.argsort(slices.rows.start[rows], kind="stable")]
    if len(rows) == 0:
        return None
    start, end, text = slices.rows.start[rows], slices.rows.end[rows], slices.rows.text[rows]
    return LaneSource(
        kind="causes",
        label="",
        thread=None,
        depth=0,
        start=start,
        end=end,
        reach=reach_of(end),
        named=codes_of(text + 1, ["", *slices.texts]),
        kinds=slices.rows.cause[rows],
        shares=False,
    )


MOST_STREAMS = 8
COMPUTE, COMMUNICATION, COPIES = range(3)


def work_kinds(device: DeviceTimeline) -> IntArray:
    """For each operation whether it is compute, communication or a copy (or memory set)."""
    category = device.operations.category
    kernels = (category == Category.KERNEL) | (category == Category.GRAPH)
    return np.where(device.communication, COMMUNICATION, np.where(kernels, COMPUTE, COPIES))


def stream_sources(device: DeviceTimeline, strings: Strings, low: int, high: int) -> list[LaneSource]:
    """A lane for each of the busiest streams, and one for all the others together."""
    operations = device.operations
    rows = np.flatnonzero(device.running & (operations.end > low) & (operations.start < high))
    if len(rows) == 0:
        return []
    code = device.stream_code[rows]
    busy = np.bincount(code, (operations.end - operations.start)[rows])
    ranked = np.argsort(-busy, kind="stable")
    ranked = ranked[busy[ranked] > 0]
    shown = ranked[: MOST_STREAMS if len(ranked) <= MOST_STREAMS else MOST_STREAMS - 1]
    kinds = work_kinds(device)
    sources = []
    for stream in np.sort(shown).tolist():
        mine = rows[code == stream]
        label = f"stream {int(operations.stream[mine[0]])}"
        sources.append(_source(device, strings, mine, label, kinds))
    if len(ranked) > len(shown):
        others = rows[~np.isin(code, shown)]
        sources.append(_source(device, strings, others, f"{len(ranked) - len(shown)} other streams", kinds))
    return sources


def _source(device: DeviceTimeline, strings: Strings, rows: IntArray, label: str, kinds: IntArray) -> LaneSource:
    end = device.operations.end[rows]
    return LaneSource(
        kind="stream",
        label=label,
        thread=None,
        depth=0,
        start=device.operations.start[rows],
        end=end,
        reach=reach_of(end),
        named=lambda chosen: operation_names(device, rows[chosen], strings),
        kinds=kinds[rows],
    )


MOST_DEPTH = 6


def thread_sources(
    host: HostActivity, ranges: NvtxRanges, thread: int, place: int, low: int, high: int
) -> list[LaneSource]:
    """All lanes of one thread (globalTid) over [low, high), those without rows left out; `place` is its number."""
    rank = int(host.axis.lane(np.array([thread]))[0])
    found = [*_nvtx(ranges, thread, place, low, high)]
    if rank >= 0:
        lanes = {"api": host.api, "os": host.os_calls}
        found += [_calls(host, lane, kind, rank, place, low, high) for kind, lane in lanes.items()]
        found.append(_off_cpu(host, rank, place, low, high))
    return [source for source in found if len(source.start)]


def _calls(host: HostActivity, lane: NamedRows, kind: str, rank: int, place: int, low: int, high: int) -> LaneSource:
    """The outermost calls of the thread. They are picked in one go: there may be millions."""
    base = rank * host.axis.stride
    first, behind = np.searchsorted(lane.spans.start, (base, base + host.axis.stride))
    mine = slice(int(first), int(behind))
    spans = lane.spans[mine]
    shift = host.axis.origin - base
    kept = picked(lane.outermost[mine] & _inside(spans, low - shift, high - shift))
    start, end = spans.start[kept] + shift, spans.end[kept] + shift
    named = codes_of(lane.shown[mine][kept], lane.shown_names)
    return LaneSource(kind, "", place, 0, start, end, reach_of(end), named)


def _off_cpu(host: HostActivity, rank: int, place: int, low: int, high: int) -> LaneSource:
    base, out = rank * host.axis.stride, host.scheduling.out
    shift = host.axis.origin - base
    mine = picked((out.start >= base) & (out.start < base + host.axis.stride) & _inside(out, low - shift, high - shift))
    start, end = out.start[mine] + shift, out.end[mine] + shift
    if not ascending(start):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    return LaneSource(OFF_CPU, "", place, 0, start, end, reach_of(end), None)


def _nvtx(ranges: NvtxRanges, thread: int, place: int, low: int, high: int) -> list[LaneSource]:
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
        result.append(LaneSource("nvtx", "", place, level, mine.start, end, reach_of(end), named, shares=False))
    return result


def _inside(spans: Intervals, low: int, high: int) -> BoolArray:
    """True for what is not empty and touches [low, high)."""
    inside: BoolArray = (spans.end > spans.start) & (spans.end > low) & (spans.start < high)
    return inside
