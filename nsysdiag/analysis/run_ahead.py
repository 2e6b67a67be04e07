"""How far the host runs ahead of a device: the operations that were launched and have not finished."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsysdiag.activity.calls import CallRows
from nsysdiag.activity.device import DeviceTimeline
from nsysdiag.analysis.packing import packed
from nsysdiag.model import Collapses, RunAhead
from nsysdiag.timeline.intervals import IntArray, Intervals
from nsysdiag.timeline.steps import open_in_buckets

BUCKETS = 250
PERCENTILES = (5, 25, 50, 75, 95)
MOST_COLLAPSES = 20
LONGEST_NS = 1 << 53  # 104 days: sums of times are exact as floats up to here


@dataclass(frozen=True, slots=True)
class Outstanding:
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
    """The operations of a device but migrations, which nobody launches; those without a launch row from their start."""
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


def run_ahead(work: Outstanding, parts: Intervals, collapses: list[Collapses]) -> RunAhead | None:
    """The depth over the time of `parts`, a set; None where there is no such time, or more of it than can be real."""
    low, high = (int(parts.start[0]), int(parts.end[-1])) if len(parts) else (0, 0)
    if not 0 < high - low < LONGEST_NS:
        return None
    series, ns = open_in_buckets(work.issued, work.ended, parts, BUCKETS)
    reached = np.cumsum(ns)
    observed = int(reached[-1])
    p5, p25, p50, p75, p95 = (int(np.searchsorted(100 * reached, rank * observed)) for rank in PERCENTILES)
    return RunAhead(
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
        collapse_count=sum(each.count for each in collapses),
        collapse_idle_ns=sum(each.idle_ns for each in collapses),
        collapses=collapses[:MOST_COLLAPSES],
    )


def _packed(values: npt.NDArray[np.generic]) -> str:
    return packed(values.astype("<i8"))
