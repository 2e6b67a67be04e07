"""The bubbles of a device for the report: totals, and those that cost most with their place in the program."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import numpy as np

from nsysdiag.activity.calls import CallRows
from nsysdiag.activity.nvtx import NvtxRanges, path_codes
from nsysdiag.analysis.bubbles import Stretches, causes_of, idle_of, median_intervals
from nsysdiag.analysis.details import GapContext
from nsysdiag.analysis.gap_keys import normal_range
from nsysdiag.model import Bubble, Bubbles
from nsysdiag.timeline.intervals import IntArray

MOST = 20


def bubble_report(found: Stretches, context: GapContext, calls: CallRows) -> Bubbles | None:
    """All of them as one record, None where there are none."""
    if len(found) == 0:
        return None
    gaps = context.frame.gaps
    idle = idle_of(found, gaps)
    span = gaps.end[found.last_gap] - gaps.start[found.first_gap]
    top = np.lexsort((gaps.start[found.first_gap], -idle))[:MOST]
    paths = _paths(found.take(top), context, calls)
    interval = median_intervals(context.device, calls, found.take(top))
    return Bubbles(
        count=len(found),
        launches=int(found.launches.sum()),
        span_ns=int(span.sum()),
        busy_ns=int((span - idle).sum()),
        idle_ns=int(idle.sum()),
        causes=causes_of(found, len(gaps), context.slices),
        rows=[
            Bubble(
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


def _paths(top: Stretches, context: GapContext, calls: CallRows) -> list[list[str]]:
    """For each bubble the ranges around both its first and its last launch; numbers in which they differ are `#`."""
    call = context.device.launch[np.concatenate((top.first_op, top.last_op))]
    time, rank = calls.start[call], context.axis.rank(calls.thread[call])
    code, paths = path_codes(_open_at(context.ranges, time), context.axis, rank, time)
    first, last = code[: len(top)].tolist(), code[len(top) :].tolist()
    return [_common(paths[one], paths[other]) for one, other in zip(first, last, strict=True)]


def _open_at(ranges: NvtxRanges, times: IntArray) -> NvtxRanges:
    """Only the ranges that are open at one of a few times: a trace may hold a million others."""
    ordered = np.sort(times)
    rows = ranges.rows
    covers = np.searchsorted(ordered, rows.start) < np.searchsorted(ordered, rows.end)
    return replace(ranges, rows=rows.take(covers))


def _common(one: list[str], other: list[str]) -> list[str]:
    pairs = takewhile(lambda pair: normal_range(pair[0]) == normal_range(pair[1]), zip(one, other, strict=False))
    return [name if name == second else normal_range(name) for name, second in pairs]
