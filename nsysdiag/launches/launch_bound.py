"""Launch-bound phases: stretches in which the queue of a device drains repeatedly because launches are slower than
work."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
from msgspec.structs import replace

from nsysdiag.arrays.groups import medians
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, rows_from
from nsysdiag.causes import CAUSES, FALLBACK, HOST_CODE, LAUNCH_LATENCY, PLACE, QUEUE_FULL, places
from nsysdiag.causes.cause import Cause
from nsysdiag.config.settings import Thresholds
from nsysdiag.events.calls import CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.nvtx import path_codes
from nsysdiag.events.rows import Rows
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.gaps.gaps import Gaps
from nsysdiag.gaps.launch_frame import LaunchCase, LaunchFrame
from nsysdiag.launches.facts import LaunchBound, LaunchBoundPhase
from nsysdiag.ledger.ledger import Ledger, Slices

MOST = 20


class LaunchBoundPhases(Rows, frozen=True):
    """Launch-bound phases in order of time: the rows of their first and last gap and operation among those of the
    device; and the ns of the operations of the median launch."""

    first_gap: IntArray
    last_gap: IntArray
    first_op: IntArray
    last_op: IntArray
    launches: IntArray
    work: IntArray


def find_launch_bound(
    device: DeviceTimeline, calls: CallRows, frame: LaunchFrame, ledger: Ledger, parts: Intervals, limits: Thresholds
) -> LaunchBoundPhases:
    """The phases inside the window `parts`."""
    found = _candidates(device, frame, ledger, parts, limits)
    if len(found) == 0:
        return found
    owner, begin, work = _launches(device, calls, found)
    found = replace(found, work=medians(owner, work, len(found)))
    later, interval = _intervals(owner, begin)
    count = np.bincount(later, minlength=len(found))
    slower = np.bincount(later, weights=interval > found.work[later], minlength=len(found))
    # The median, the lower of two, exceeds the work where so few intervals do not: cheaper than the median itself.
    return found.take(count - slower <= (count - 1) // 2)


def _candidates(
    device: DeviceTimeline, frame: LaunchFrame, ledger: Ledger, parts: Intervals, limits: Thresholds
) -> LaunchBoundPhases:
    """Stretches with enough launches, whatever their medians."""
    gaps = frame.gaps
    there = np.isin(frame.case, (LaunchCase.DISPATCH, LaunchCase.INTRA_GRAPH))
    short = _short_of_launches(frame, ledger, limits.launch_bound_gap_ns) & ~there
    rows = np.flatnonzero(short)
    ends_stretch = np.cumsum(~short & ~there)[rows]
    part = np.searchsorted(parts.start, gaps.start[rows], side="right")
    number = np.cumsum(_begins(device.launch))[gaps.next[rows]]
    joined = ~_begins(ends_stretch) & ~_begins(part) & (np.diff(number, prepend=0) - 1 <= limits.launch_bound_run)
    begin = np.flatnonzero(~joined)
    end = np.append(begin[1:], len(rows))[: len(begin)] - 1
    first, last = rows[begin], rows[end]
    launches = number[end] - number[begin] + 1
    nothing = np.zeros(len(first), dtype=np.int64)
    found = LaunchBoundPhases(first, last, gaps.next[first], gaps.next[last], launches, nothing)
    return found.take(launches >= limits.launch_bound_launches)


def _comes_slowly(cause: Cause) -> bool:
    """Is this what a host does that launches one thing after the other, only too slowly?"""
    launching = cause.bottleneck == "launch" and not cause.accepted
    return (launching and cause.id != QUEUE_FULL) or cause.id in (HOST_CODE, FALLBACK)


def _short_of_launches(frame: LaunchFrame, ledger: Ledger, longest: int) -> BoolArray:
    """The gaps, of `longest` ns at most, that are there because the host launched too slowly."""
    gaps = frame.gaps
    launching = np.isin(ledger.dominant, places(_comes_slowly))
    issued = frame.case == LaunchCase.ISSUED
    on_its_way = ledger.dominant == PLACE[LAUNCH_LATENCY]
    late = (frame.case == LaunchCase.LATE) | (frame.case == LaunchCase.ISSUING) | (issued & on_its_way)
    result: BoolArray = late & launching & (gaps.closed - gaps.opened <= longest)
    return result


def _begins(values: IntArray | BoolArray) -> BoolArray:
    """True where a value differs from the one before it."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _launches(device: DeviceTimeline, calls: CallRows, found: LaunchBoundPhases) -> tuple[IntArray, IntArray, IntArray]:
    """For each launch of all stretches: its stretch, the start of its call, and the ns that its operations take."""
    count = found.last_op - found.first_op + 1
    owner = np.repeat(np.arange(len(found)), count)
    rows = rows_from(found.first_op, count)
    launch = device.launch[rows]
    known = launch >= 0
    if not known.all():
        rows, owner, launch = rows[known], owner[known], launch[known]
    first = np.flatnonzero(_begins(launch) | _begins(owner))
    work = np.add.reduceat(device.operations.end[rows] - device.operations.start[rows], first)
    return owner[first], calls.start[launch[first]], work


def _intervals(owner: IntArray, begin: IntArray) -> tuple[IntArray, IntArray]:
    """The times between launches that follow each other, by stretch; `owner` is sorted."""
    if len(begin) == 0:
        return owner, begin
    low, step = int(begin.min()), owner[1:] == owner[:-1]
    length = int(begin.max()) - low + 1
    if length * (int(owner[-1]) + 1) < 1 << 62:
        # Each stretch on a time axis of its own: one sort, and of what is nearly sorted.
        ordered = np.sort(owner * length + (begin - low), kind="stable")
    else:
        ordered = begin[np.lexsort((begin, owner))]
    return owner[1:][step], (ordered[1:] - ordered[:-1])[step]


def idle_of(found: LaunchBoundPhases, gaps: Gaps) -> IntArray:
    """The idle ns of each phase: all gaps from its first to its last."""
    before = np.concatenate(([0], np.cumsum(gaps.end - gaps.start)))
    idle: IntArray = before[found.last_gap + 1] - before[found.first_gap]
    return idle


def causes_of(found: LaunchBoundPhases, gap_count: int, slices: Slices) -> dict[str, int]:
    """The idle ns of all phases by cause, in order of precedence."""
    edges = np.zeros(gap_count + 1, dtype=np.int64)
    edges[found.first_gap] += 1
    edges[found.last_gap + 1] -= 1
    inside = np.cumsum(edges[:-1])[slices.rows.gap] > 0
    ns = np.bincount(slices.rows.cause[inside], weights=slices.lengths(inside), minlength=len(CAUSES))
    return {cause: int(ns[number]) for number, cause in enumerate(CAUSES) if ns[number]}


def launch_bound_report(found: LaunchBoundPhases, context: GapContext, calls: CallRows) -> LaunchBound | None:
    """All phases as one record; None without any."""
    if len(found) == 0:
        return None
    gaps = context.frame.gaps
    idle = idle_of(found, gaps)
    span = gaps.end[found.last_gap] - gaps.start[found.first_gap]
    top = np.lexsort((gaps.start[found.first_gap], -idle))[:MOST]
    shown = found.take(top)
    paths = _paths(shown, context, calls)
    owner, begin, _work = _launches(context.device, calls, shown)
    interval = medians(*_intervals(owner, begin), len(shown))
    return LaunchBound(
        count=len(found),
        launches=int(found.launches.sum()),
        span_ns=int(span.sum()),
        busy_ns=int((span - idle).sum()),
        idle_ns=int(idle.sum()),
        causes=causes_of(found, len(gaps), context.slices),
        rows=[
            LaunchBoundPhase(
                start_ns=int(gaps.start[found.first_gap[row]]),
                end_ns=int(gaps.end[found.last_gap[row]]),
                launches=int(found.launches[row]),
                busy_ns=int(span[row] - idle[row]),
                idle_ns=int(idle[row]),
                median_interval_ns=int(interval[at]),
                median_work_ns=int(found.work[row]),
                nvtx=paths[at],
            )
            for at, row in enumerate(top.tolist())
        ],
    )


def _paths(top: LaunchBoundPhases, context: GapContext, calls: CallRows) -> list[list[str]]:
    """For each phase the ranges around both its first and its last launch; numbers in which they differ are `#`."""
    call = context.device.launch[np.concatenate((top.first_op, top.last_op))]
    time, rank = calls.start[call], context.axis.lane(calls.thread[call])
    # Only the ranges that are open at one of these few times: a trace may hold a million others.
    ordered, rows = np.sort(time), context.ranges.rows
    covers = np.searchsorted(ordered, rows.start) < np.searchsorted(ordered, rows.end)
    ranges = replace(context.ranges, rows=rows.take(covers))
    code, paths = path_codes(ranges, context.axis, rank, time)
    first, last = code[: len(top)].tolist(), code[len(top) :].tolist()
    return [_common(paths[one], paths[other]) for one, other in zip(first, last, strict=True)]


def _common(one: list[str], other: list[str]) -> list[str]:
    pairs = takewhile(lambda pair: normal_range(pair[0]) == normal_range(pair[1]), zip(one, other, strict=False))
    return [name if name == second else normal_range(name) for name, second in pairs]
