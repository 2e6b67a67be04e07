"""How far the host runs ahead of a device, and the calls in which its lead was lost.

In launch-bound phases the queue of a device drains repeatedly, because launches are slower than work."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.arrays.buckets import open_in_buckets
from nsysdiag.arrays.constant import taken
from nsysdiag.arrays.groups import group_totals, medians, sum_of_each
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, nearest_before, rows_from, stretches
from nsysdiag.causes import CAUSES, FALLBACK, HOST_CODE, IN_LAUNCH_CALL, LAUNCH_LATENCY, PLACE, QUEUE_FULL, places
from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.config.settings import Thresholds
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.rows import Rows, ThreadAxis
from nsysdiag.fields import Sentence
from nsysdiag.gap_groups.details import GapContext
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.gaps.gaps import Gaps, LaunchCase, LaunchFrame
from nsysdiag.launches.facts import LaunchBound, LaunchBoundPhase, QueueDepth, QueueDrains
from nsysdiag.ledger.ledger import Ledger, Slices, packed
from nsysdiag.record import records

BUCKETS = 250
"""Buckets of the queue depth over time in a report. More make a report larger, fewer hide short changes. A round
number: nothing depends on it closely."""
PERCENTILES = (5, 25, 50, 75, 95)
"""Percentiles of the queue depth in a report: each is a field of QueueDepth."""
MOST_DRAINS = 20
"""Calls and kinds of host code at which the queue drained, in a report, those with most idle time; sums are over all. A
round number: nothing depends on it closely."""
NO_EVIDENCE = "no evidence"
LONGEST_NS = 1 << 53
"""A window so long (104 days) has no queue depth: up to here sums of times are exact as floats."""


class Outstanding(Struct, frozen=True):
    """When operations of a device began to count, and when they ended: each sorted by itself.

    ```
    thread   [launch]            [launch of a copy that blocks]
    device           ...[==op==)              ...[==copy==)
    counts           [--------)  [------------------------)
    ```

    From the end of the call: only then the host is free to do the next thing. If an operation starts before its call
    returns, it was in the queue while the call still ran, and counts from its beginning.
    """

    issued: IntArray
    ended: IntArray


def outstanding(device: DeviceTimeline, calls: CallRows) -> Outstanding:
    """The operations of a device but migrations, which have no launch; those without a launch row from their start."""
    operations = device.operations
    issued, ended = operations.start.copy(), operations.end.copy()
    for part in stretches(len(issued) if len(calls) else 0):
        start, launch = operations.start[part], device.launch[part]
        called, returned = taken(calls.start, launch), taken(calls.end, launch)
        moment = np.where(returned <= start, returned, np.minimum(called, start))
        np.copyto(issued[part], moment, where=launch >= 0)
    counted = ~operations.migration
    if not counted.all():
        issued, ended = issued[counted], ended[counted]
    issued.sort(kind="stable")
    ended.sort(kind="stable")
    return Outstanding(issued, ended)


def queue_depth(work: Outstanding, parts: Intervals, drains: list[QueueDrains]) -> QueueDepth | None:
    """The depth over the time of `parts`, a set; None if it is empty, or impossibly long."""
    low, high = (int(parts.start[0]), int(parts.end[-1])) if len(parts) else (0, 0)
    if not 0 < high - low < LONGEST_NS:
        return None
    series, ns = open_in_buckets(work.issued, work.ended, parts, BUCKETS)
    reached = np.cumsum(ns)
    observed = int(reached[-1])
    at_ranks: dict[str, Any] = {
        f"p{each}": int(np.searchsorted(100 * reached, each * observed)) for each in PERCENTILES
    }
    return QueueDepth(
        observed_ns=observed,
        empty_ns=int(ns[0]),
        mean=round(float(ns @ np.arange(len(ns), dtype=np.float64)) / observed, 3),
        **at_ranks,
        max=len(ns) - 1,
        start_ns=low,
        end_ns=high,
        buckets=len(series.mean),
        lowest=_packed(series.lowest),
        mean_thousandths=_packed(np.round(1000 * series.mean)),
        highest=_packed(series.highest),
        drain_count=sum(each.count for each in drains),
        drain_idle_ns=sum(each.idle_ns for each in drains),
        drains=drains[:MOST_DRAINS],
    )


def _packed(values: npt.NDArray[np.generic]) -> str:
    return packed(values.astype("<i8"))


def find_drains(
    frame: LaunchFrame,
    work: Outstanding,
    lane: IntArray,
    axis: ThreadAxis,
    layers: dict[str, list[EvidenceLayer]],
    calls: ApiCalls,
    least: int,
) -> list[QueueDrains]:
    """The drains from at least `least` outstanding operations, by what the thread was in, most idle time first.

    ```
    thread   [l][l][l][l][sync .............][l]
    device       [==)[==)[==)[==)............[==)
    depth     1 2  2 3  2  1     0
                      ^ last launch: 3       ^ gap
    ```

    The thread is the one that launched what came next. `layers` are the evidence of every host-side cause, in order of
    precedence.
    """
    gap, depth = _dry(frame, work, max(least, 1))
    if len(gap) == 0:
        return []
    gaps = frame.gaps
    words: dict[tuple[str, Sentence, bool], int] = {}
    code = _activity(axis.position(lane[gap], gaps.opened[gap]), layers, words)
    issuing = frame.case[gap] == LaunchCase.ISSUING
    names = np.array(
        [words.setdefault((IN_LAUNCH_CALL, typed.api(name), True), len(words)) for name in calls.names], dtype=np.int64
    )
    code[issuing] = names[calls.rows.name[frame.call[gap[issuing]]]]
    code[code < 0] = words.setdefault((FALLBACK, NO_EVIDENCE, False), len(words))
    idle = group_totals(code, (gaps.end - gaps.start)[gap])
    known = list(words)
    causes, called, are_calls = zip(*(known[each] for each in idle.code.tolist()), strict=True)
    return records(
        QueueDrains,
        cause=causes,
        call=called,
        is_call=are_calls,
        count=idle.count,
        idle_ns=idle.total,
        median_depth=medians(code, depth, len(known))[idle.code],
    )


def _dry(frame: LaunchFrame, work: Outstanding, least: int) -> tuple[IntArray, IntArray]:
    """The gaps that open with nothing outstanding, and how many operations were at the last launch before: `least` or
    more."""
    late = (frame.case == LaunchCase.LATE) | (frame.case == LaunchCase.ISSUING)
    # If a border of the window cut the beginning off, the queue drained outside of it.
    every = np.flatnonzero(late & (frame.gaps.start == frame.gaps.opened)).astype(np.int32)
    found = [(every[:0], np.empty(0, dtype=np.int64))]
    for part in stretches(len(every)):
        issued = np.searchsorted(work.issued, frame.gaps.opened[every[part]], side="right")
        gap, issued = every[part][issued >= least], issued[issued >= least]
        opened = frame.gaps.opened[gap]
        last = work.issued[issued - 1]
        # Of n operations issued all have ended if the n-th end has come; `least` of them had not if the end that many
        # places before the last had not: cheaper than to count.
        deep = (work.ended[issued - 1] <= opened) & (work.ended[issued - least] > last)
        found.append((gap[deep], issued[deep] - np.searchsorted(work.ended, last[deep], side="right")))
    gaps, depths = (np.concatenate(each) for each in zip(*found, strict=True))
    return gaps, depths


def _activity(
    position: IntArray, layers: dict[str, list[EvidenceLayer]], words: dict[tuple[str, Sentence, bool], int]
) -> IntArray:
    """For each position on the thread axis the code in `words` of the first layer that covers it, -1 for none."""
    code = np.full(len(position), -1, dtype=np.int64)
    for cause, parts in layers.items():
        for layer in parts:
            if len(layer) == 0:
                continue
            at = nearest_before(layer.spans.start, position)
            inside = (code < 0) & (at >= 0) & (layer.spans.end[at] > position)
            names = [words.setdefault((cause, name, layer.are_calls), len(words)) for name in layer.names]
            code[inside] = np.array(names, dtype=np.int64)[layer.name[at[inside]]]
    return code


# Launch-bound phases: stretches in which the queue of a device drains repeatedly because launches are slower than
# work.

MOST = 20
"""Launch-bound phases with rows in a report, those with most idle time. More make reports larger. A round number:
nothing depends on it closely."""


class LaunchBoundPhases(Rows, frozen=True):
    """Launch-bound phases in order of time: the rows of their first and last gap and operation among those of the
    device; and the ns of the operations of the median launch."""

    first_gap: IntArray
    last_gap: IntArray
    first_op: IntArray
    last_op: IntArray
    launches: IntArray
    work: IntArray


def find_launch_bound(context: GapContext, calls: CallRows, parts: Intervals, limits: Thresholds) -> LaunchBoundPhases:
    """The phases inside the window `parts`."""
    found = _candidates(context, parts, limits)
    if len(found) == 0:
        return found
    owner, begin, work = _launches(context.device, calls, found)
    found = replace(found, work=medians(owner, work, len(found)))
    later, interval = _intervals(owner, begin)
    count = np.bincount(later, minlength=len(found))
    slower = np.bincount(later, weights=interval > found.work[later], minlength=len(found))
    # The median, the lower of two, exceeds the work if so few intervals do not: cheaper than the median itself.
    return found.take(count - slower <= (count - 1) // 2)


def _candidates(context: GapContext, parts: Intervals, limits: Thresholds) -> LaunchBoundPhases:
    """Stretches with enough launches, whatever their medians."""
    frame, gaps, device = context.frame, context.frame.gaps, context.device
    there = np.isin(frame.case, (LaunchCase.DISPATCH, LaunchCase.INTRA_GRAPH))
    short = _short_of_launches(frame, context.ledger, limits.launch_bound_gap_ns) & ~there
    rows = np.flatnonzero(short)
    ends_stretch = np.cumsum(~short & ~there, dtype=np.int32)[rows]
    part = np.searchsorted(parts.start, gaps.start[rows], side="right")
    number = np.cumsum(_begins(device.launch), dtype=np.int32)[gaps.next[rows]]
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
    return late & launching & (gaps.closed - gaps.opened <= longest)


def _begins(values: IntArray | BoolArray) -> BoolArray:
    """True if a value differs from the one before it."""
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
    work = np.add.reduceat(taken(device.operations.end, rows) - taken(device.operations.start, rows), first)
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
    return before[found.last_gap + 1] - before[found.first_gap]


def causes_of(found: LaunchBoundPhases, gap_count: int, slices: Slices) -> dict[str, int]:
    """The idle ns of all phases by cause, in order of precedence."""
    edges = np.zeros(gap_count + 1, dtype=np.int64)
    edges[found.first_gap] += 1
    edges[found.last_gap + 1] -= 1
    inside = (np.cumsum(edges[:-1]) > 0).take(slices.rows.gap)
    ns = sum_of_each(slices.rows.cause, np.where(inside, slices.ns, 0), len(CAUSES))
    return {cause: int(ns[number]) for number, cause in enumerate(CAUSES) if ns[number]}


def launch_bound_report(
    context: GapContext, calls: CallRows, parts: Intervals, limits: Thresholds
) -> LaunchBound | None:
    """All phases inside the window `parts` as one record; None without any."""
    gaps, found = context.frame.gaps, find_launch_bound(context, calls, parts, limits)
    if len(found) == 0:
        return None
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
        rows=records(
            LaunchBoundPhase,
            start_ns=gaps.start[shown.first_gap],
            end_ns=gaps.end[shown.last_gap],
            launches=shown.launches,
            busy_ns=(span - idle)[top],
            idle_ns=idle[top],
            median_interval_ns=interval,
            median_work_ns=shown.work,
            nvtx=paths,
        ),
    )


def _paths(top: LaunchBoundPhases, context: GapContext, calls: CallRows) -> list[list[str]]:
    """For each phase the ranges around both its first and its last launch; numbers in which they differ are `#`."""
    call = context.device.launch[np.concatenate((top.first_op, top.last_op))]
    time, rank = calls.start[call], context.axis.lane(calls.thread[call])
    code, paths = context.ranges.path_codes(rank, time)
    first, last = code[: len(top)].tolist(), code[len(top) :].tolist()
    return [_common(paths[one], paths[other]) for one, other in zip(first, last, strict=True)]


def _common(one: list[str], other: list[str]) -> list[str]:
    pairs = takewhile(lambda pair: normal_range(pair[0]) == normal_range(pair[1]), zip(one, other, strict=False))
    return [name if name == second else normal_range(name) for name, second in pairs]
