"""From the analysed device to its timeline: levels of detail, the lanes of streams and threads, exact windows."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from nsysdiag.activity.device import DeviceActivity
from nsysdiag.activity.identity import IntArray
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.lanes.causes import cause_source
from nsysdiag.analysis.lanes.exact import exact_parts
from nsysdiag.analysis.lanes.packing import NameTable, lane_of
from nsysdiag.analysis.lanes.people import described, threads_of
from nsysdiag.analysis.lanes.source import Source, rows_in
from nsysdiag.analysis.lanes.streams import stream_sources
from nsysdiag.analysis.lanes.threads import thread_sources
from nsysdiag.analysis.roots.search import RootSearch
from nsysdiag.model import DeviceReport, Finding
from nsysdiag.model_timeline import TimelineLane, TimelineLevels
from nsysdiag.timeline.intervals import Intervals
from nsysdiag.timeline.pyramid import bucket_edges

LANE_FINEST, LANE_COARSEST = 11, 9
ROOM, ROOM_NARROWED = 60_000, 120_000
"""Rows of operations, and as many of threads, over all devices: about 10 bytes each in a report."""
LEAST_ROOM, NVTX_SHARE, NAME_ROOM = 1_000, 36, 1_500_000
MOST_SIGNATURES = 20


def with_lanes(
    levels: TimelineLevels,
    context: GapContext,
    launching: IntArray,
    report: DeviceReport,
    findings: list[Finding],
    activity: DeviceActivity,
    search: RootSearch,
    *,
    narrowed: bool,
) -> TimelineLevels:
    """`levels` with the lanes of streams and threads. `launching` are the lanes of the threads that launched."""
    low, high = levels.start_ns, levels.end_ns
    room = max((ROOM_NARROWED if narrowed else ROOM) // max(len(activity.devices), 1), LEAST_ROOM)
    wanted = _wanted(report, findings)
    threads = threads_of(context, launching, report.gaps)
    operations = stream_sources(context.device, context.strings, low, high)
    host = _host(context, search, threads.launching, threads.waking, low, high)
    exact_operations = exact_parts(operations, wanted, low, high, room)
    exact_host = exact_parts(host, wanted, low, high, room)
    names = NameTable(NAME_ROOM // max(len(activity.devices), 1))
    edges = bucket_edges(low, high, LANE_FINEST)
    lanes = [lane_of(each, _rows(each, exact_operations), names, low, edges, LANE_COARSEST) for each in operations]
    lanes += _causes(context, report, names, low, edges, room)
    for each in host:
        rows = _rows(each, exact_host)
        rows = _with_longest(each, rows, room // NVTX_SHARE) if each.kind == "nvtx" else rows
        lanes.append(lane_of(each, rows, names, low, edges, LANE_COARSEST))
    return structs.replace(
        levels,
        names=names.packed(),
        threads=described(threads, context.thread_names),
        threads_left_out=threads.left_out,
        lanes=lanes,
        exact_operations=_pairs(exact_operations),
        exact_host=_pairs(exact_host),
    )


def _wanted(report: DeviceReport, findings: list[Finding]) -> Intervals:
    """The gaps that matter most first: those that stand for findings, for the costliest groups, then the longest."""
    rows = sorted(report.signatures, key=lambda row: (-row.total_ns, row.id))
    named = {finding.signature for finding in findings if finding.device == report.key}
    rows = [*(row for row in rows if row.id in named), *rows[:MOST_SIGNATURES]]
    pairs = [(row.representative_start_ns, row.representative_start_ns + row.max_ns) for row in rows]
    pairs += [(gap.start_ns, gap.end_ns) for gap in report.gaps]
    return Intervals.of(list(dict.fromkeys(pairs)))


def _host(
    context: GapContext, search: RootSearch, launching: list[int], waking: list[int], low: int, high: int
) -> list[Source]:
    sources = [
        source
        for place, thread in enumerate(launching)
        for source in thread_sources(search.launching.host, context.ranges, thread, place, low, high)
    ]
    if not waking:
        return sources
    host = search.world.view(np.array(waking, dtype=np.int64)).host
    for place, thread in enumerate(waking, start=len(launching)):
        sources += thread_sources(host, context.ranges, thread, place, low, high)
    return sources


def _causes(
    context: GapContext, report: DeviceReport, names: NameTable, low: int, edges: IntArray, room: int
) -> list[TimelineLane]:
    starts = np.array([gap.start_ns for gap in report.gaps], dtype=np.int64)
    starts = np.append(starts, [row.representative_start_ns for row in report.signatures]).astype(np.int64)
    gaps = np.flatnonzero(np.isin(context.frame.gaps.start, starts))
    source = cause_source(context.slices, gaps, len(context.frame.gaps), room // 3)
    return [] if source is None else [lane_of(source, np.arange(len(source.start)), names, low, edges, LANE_COARSEST)]


def _rows(source: Source, parts: Intervals) -> IntArray:
    return rows_in(source.start, source.end, source.reach, parts)


def _with_longest(source: Source, rows: IntArray, most: int) -> IntArray:
    """`rows` and the longest `most` of all."""
    longest = np.argsort(source.start - source.end, kind="stable")[:most]
    return np.union1d(rows, longest)


def _pairs(parts: Intervals) -> list[tuple[int, int]]:
    return list(zip(parts.start.tolist(), parts.end.tolist(), strict=True))
