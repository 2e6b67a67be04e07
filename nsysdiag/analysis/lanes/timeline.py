"""From the analysed device to its timeline: levels of detail, the lanes of its streams, the slices of its gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import structs

from nsysdiag.activity.device import DeviceActivity
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.lanes.causes import cause_source
from nsysdiag.analysis.lanes.fitting import Room, fitted, rows_of
from nsysdiag.analysis.lanes.packing import NameTable, Packing, exact_size
from nsysdiag.analysis.lanes.people import Threads, threads_of
from nsysdiag.analysis.lanes.streams import stream_sources
from nsysdiag.model import DeviceReport, Finding
from nsysdiag.model_timeline import TimelineLevels
from nsysdiag.timeline.intervals import IntArray, Intervals

ROWS, ROWS_NARROWED, LEAST_ROWS = 60_000, 120_000, 1_000
"""Rows of operations, and as many of threads, over all devices."""
BYTES, BYTES_NARROWED, FOR_OPERATIONS = 450_000, 900_000, 2 / 3
"""Room for all exact rows in a report, over all devices, and the part of it that operations may take."""
NAME_ROOM = 1_500_000
"""Characters of names over all devices."""
CAUSE_SLICES = 3
"""What part of the rows slices of gaps by cause may take."""
MOST_SIGNATURES = 20


@dataclass(frozen=True, slots=True)
class DeviceLanes:
    """A timeline that has no lanes of threads yet, and what these are made of: the `threads`, the gaps that matter most
    in this order, the names so far, the room that is left."""

    key: str
    levels: TimelineLevels
    threads: Threads
    wanted: Intervals
    names: NameTable
    room: Room


def with_lanes(
    levels: TimelineLevels,
    context: GapContext,
    launching: IntArray,
    report: DeviceReport,
    findings: list[Finding],
    activity: DeviceActivity,
    *,
    narrowed: bool,
) -> DeviceLanes:
    """`levels` with the lanes of streams and causes. `launching` are the lanes of the threads that launched."""
    devices = max(len(activity.devices), 1)
    rows = max((ROWS_NARROWED if narrowed else ROWS) // devices, LEAST_ROWS)
    size = (BYTES_NARROWED if narrowed else BYTES) // devices
    low, high = levels.start_ns, levels.end_ns
    wanted = _wanted(report, findings)
    packing = Packing.over(NameTable(NAME_ROOM // devices), low, high)
    causes = cause_source(context.slices, _described(context, report), len(context.frame.gaps), rows // CAUSE_SLICES)
    slices = [] if causes is None else [packing.lane(causes, np.arange(len(causes.start)))]
    room = Room(rows, int(size * FOR_OPERATIONS) - exact_size(slices))
    streams = stream_sources(context.device, context.strings, low, high)
    found = fitted(packing, streams, wanted, room, lambda source, parts, _rows: rows_of(source, parts))
    lanes = [*found.lanes, *slices]
    return DeviceLanes(
        key=report.key,
        levels=structs.replace(levels, lanes=lanes, exact_operations=found.exact),
        threads=threads_of(context, launching, report.gaps),
        wanted=wanted,
        names=found.names,
        room=Room(rows, size - exact_size(lanes)),
    )


def _wanted(report: DeviceReport, findings: list[Finding]) -> Intervals:
    """The gaps that matter most first: those that stand for findings, for the costliest groups, then the longest."""
    rows = sorted(report.signatures, key=lambda row: (-row.total_ns, row.id))
    named = {finding.signature for finding in findings if finding.device == report.key}
    rows = [*(row for row in rows if row.id in named), *rows[:MOST_SIGNATURES]]
    pairs = [(row.representative_start_ns, row.representative_start_ns + row.max_ns) for row in rows]
    pairs += [(gap.start_ns, gap.end_ns) for gap in report.gaps]
    return Intervals.of(list(dict.fromkeys(pairs)))


def _described(context: GapContext, report: DeviceReport) -> IntArray:
    """The gaps that the report describes or that stand for a group."""
    starts = [gap.start_ns for gap in report.gaps] + [row.representative_start_ns for row in report.signatures]
    return np.flatnonzero(np.isin(context.frame.gaps.start, np.array(starts, dtype=np.int64)))
