"""How far the host runs ahead of a device, and the calls in which its lead was lost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.buckets import open_in_buckets
from nsysdiag.arrays.groups import group_durations
from nsysdiag.arrays.intervals import IntArray, Intervals, nearest_before
from nsysdiag.causes import FALLBACK, IN_LAUNCH_CALL
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.calls import ApiCalls, CallRows
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.rows import ThreadAxis
from nsysdiag.fields import Sentence
from nsysdiag.gaps.launch_frame import LaunchCase, LaunchFrame
from nsysdiag.launches.facts import QueueDepth, QueueDrains
from nsysdiag.ledger.ledger import packed

BUCKETS = 250
PERCENTILES = (5, 25, 50, 75, 95)
MOST_DRAINS = 20
NO_EVIDENCE = "no evidence"
LONGEST_NS = 1 << 53  # 104 days: sums of times are exact as floats up to here


class Outstanding(Struct, frozen=True):
    """When operations of a device began to count, and when they ended: each sorted by itself.

    ```
    thread   [launch]            [launch of a copy that blocks]
    device           ...[==op==)              ...[==copy==)
    counts           [--------)  [------------------------)
    ```

    From the end of the call: only then the host is free to do the next thing. Where an operation starts before its call
    returns, it was in the queue while the call still ran, and counts from its beginning.
    """

    issued: IntArray
    ended: IntArray


def outstanding(device: DeviceTimeline, calls: CallRows) -> Outstanding:
    """The operations of a device but migrations, which have no launch; those without a launch row from their start."""
    operations, launch = device.operations, device.launch
    start, end = operations.start, operations.end
    issued = start
    if len(calls):
        called, returned = calls.start[launch], calls.end[launch]
        issued = np.where(launch >= 0, np.where(returned <= start, returned, np.minimum(called, start)), start)
    counted = ~operations.migration
    if not counted.all():
        issued, end = issued[counted], end[counted]
    return Outstanding(np.sort(issued, kind="stable"), np.sort(end, kind="stable"))


def queue_depth(work: Outstanding, parts: Intervals, drains: list[QueueDrains]) -> QueueDepth | None:
    """The depth over the time of `parts`, a set; None if it is empty, or impossibly long."""
    low, high = (int(parts.start[0]), int(parts.end[-1])) if len(parts) else (0, 0)
    if not 0 < high - low < LONGEST_NS:
        return None
    series, ns = open_in_buckets(work.issued, work.ended, parts, BUCKETS)
    reached = np.cumsum(ns)
    observed = int(reached[-1])
    p5, p25, p50, p75, p95 = (int(np.searchsorted(100 * reached, rank * observed)) for rank in PERCENTILES)
    return QueueDepth(
        observed_ns=observed,
        empty_ns=int(ns[0]),
        mean=round(float(ns @ np.arange(len(ns), dtype=np.float64)) / observed, 3),
        p5=p5,
        p25=p25,
        p50=p50,
        p75=p75,
        p95=p95,
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
    idle = group_durations(code, (gaps.end - gaps.start)[gap])
    depths = group_durations(code, depth)
    median = dict(zip(depths.code.tolist(), depths.median.tolist(), strict=True))
    known = list(words)
    return [
        QueueDrains(cause=cause, call=call, is_call=is_call, count=count, idle_ns=ns, median_depth=median[each])
        for each, count, ns in zip(idle.code.tolist(), idle.count.tolist(), idle.total.tolist(), strict=True)
        for cause, call, is_call in (known[each],)
    ]


def _dry(frame: LaunchFrame, work: Outstanding, least: int) -> tuple[IntArray, IntArray]:
    """The gaps that open with nothing outstanding, and how many operations were at the last launch before: `least` or
    more."""
    late = (frame.case == LaunchCase.LATE) | (frame.case == LaunchCase.ISSUING)
    # Where a border of the window cut the beginning off, the queue drained outside of it.
    gap = np.flatnonzero(late & (frame.gaps.start == frame.gaps.opened))
    opened = frame.gaps.opened[gap]
    issued = np.searchsorted(work.issued, opened, side="right")
    gap, opened, issued = (each[issued >= least] for each in (gap, opened, issued))
    last = work.issued[issued - 1]
    # Of n operations issued all have ended if the n-th end has come; `least` of them had not if the end that many
    # places before the last had not: cheaper than to count.
    deep = (work.ended[issued - 1] <= opened) & (work.ended[issued - least] > last)
    depth = issued[deep] - np.searchsorted(work.ended, last[deep], side="right")
    return gap[deep], depth.astype(np.int64)


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
