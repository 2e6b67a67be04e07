"""From the analysed device to its timeline: levels of detail, the lanes of streams and threads, exact windows."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from nsysdiag.activity.device import DeviceActivity
from nsysdiag.activity.identity import IntArray
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.lanes.causes import cause_source
from nsysdiag.analysis.lanes.exact import exact_parts
from nsysdiag.analysis.lanes.packing import NameTable, Packing
from nsysdiag.analysis.lanes.people import Threads, described, threads_of
from nsysdiag.analysis.lanes.source import Source, rows_in
from nsysdiag.analysis.lanes.streams import stream_sources
from nsysdiag.analysis.lanes.threads import thread_sources
from nsysdiag.analysis.roots.search import RootSearch
from nsysdiag.model import DeviceReport, Finding
from nsysdiag.model_timeline import TimelineLevels
from nsysdiag.timeline.intervals import Intervals
from nsysdiag.timeline.pyramid import bucket_edges

LANE_FINEST, LANE_COARSEST = 11, 9
ROOM, ROOM_NARROWED, LEAST_ROOM = 60_000, 120_000, 1_000
"""Rows of operations, and as many of threads, over all devices: under 10 bytes each in a report."""
NAME_ROOM = 1_500_000
"""Characters of names over all devices."""
LONGEST_RANGES, CAUSE_SLICES = 36, 3
"""What part of the room the longest NVTX ranges of a depth may take, and the slices of gaps by cause."""
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
    devices = max(len(activity.devices), 1)
    room = max((ROOM_NARROWED if narrowed else ROOM) // devices, LEAST_ROOM)
    wanted = _wanted(report, findings)
    threads = threads_of(context, launching, report.gaps)
    operations = stream_sources(context.device, context.strings, low, high)
    host = _host(context, search, threads, low, high)
    exact_operations = exact_parts(operations, wanted, low, high, room)
    exact_host = exact_parts(host, wanted, low, high, room)
    packing = Packing(NameTable(NAME_ROOM // devices), low, bucket_edges(low, high, LANE_FINEST), LANE_COARSEST)
    lanes = [packing.lane(source, _rows(source, exact_operations)) for source in operations]
    lanes += [packing.lane(source, np.arange(len(source.start))) for source in _causes(context, report, room)]
    lanes += [packing.lane(source, _host_rows(source, exact_host, room)) for source in host]
    return structs.replace(
        levels,
        names=packing.names.packed(),
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


def _host(context: GapContext, search: RootSearch, threads: Threads, low: int, high: int) -> list[Source]:
    sources = [
        source
        for place, thread in enumerate(threads.launching)
        for source in thread_sources(search.launching.host, context.ranges, thread, place, low, high)
    ]
    if not threads.waking:
        return sources
    host = search.world.view(np.array(threads.waking, dtype=np.int64)).host
    for place, thread in enumerate(threads.waking, start=len(threads.launching)):
        sources += thread_sources(host, context.ranges, thread, place, low, high)
    return sources


def _causes(context: GapContext, report: DeviceReport, room: int) -> list[Source]:
    """The slices of the gaps that the report describes or that stand for a group."""
    starts = [gap.start_ns for gap in report.gaps] + [row.representative_start_ns for row in report.signatures]
    gaps = np.flatnonzero(np.isin(context.frame.gaps.start, np.array(starts, dtype=np.int64)))
    source = cause_source(context.slices, gaps, len(context.frame.gaps), room // CAUSE_SLICES)
    return [] if source is None else [source]


def _host_rows(source: Source, parts: Intervals, room: int) -> IntArray:
    """The rows in the parts; of NVTX ranges the longest as well, wherever they are."""
    rows = _rows(source, parts)
    if source.kind != "nvtx":
        return rows
    longest = np.argsort(source.start - source.end, kind="stable")[: room // LONGEST_RANGES]
    return np.union1d(rows, longest)


def _rows(source: Source, parts: Intervals) -> IntArray:
    return rows_in(source.start, source.end, source.reach, parts)


def _pairs(parts: Intervals) -> list[tuple[int, int]]:
    return list(zip(parts.start.tolist(), parts.end.tolist(), strict=True))
