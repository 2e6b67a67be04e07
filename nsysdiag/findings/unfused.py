"""A finding on kernels that run one operator of a framework each: what fusing those in a row may save."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.groups import group_totals
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, intersect, subtract, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.findings.exposed import longest_operations
from nsysdiag.findings.rules import UNFUSED, severity
from nsysdiag.findings.text import FindingContext
from nsysdiag.kernels.advice import LEAST_FUSED
from nsysdiag.kernels.families import by_name, is_one_operator
from nsysdiag.kernels.kernels import kernel_share
from nsysdiag.kernels.operation_names import operation_names
from nsysdiag.report import DeviceReport, Finding
from nsysdiag.units import format_count, format_ns, format_share

MOST_NAMED = 4


class Runs(Struct, frozen=True):
    """Kernels that directly follow one another on a stream: `followers` come after another one, and `rest_ns` is the
    time of the runs without the longest kernel of each."""

    followers: int
    rest_ns: int

    @classmethod
    def of(cls, device: DeviceTimeline, mine: BoolArray) -> Runs:
        """Of the operations `mine`; any other on the stream ends a run.

        ```
        stream 7  [product][cast][add ][norm][product][cast]
                           |--- a run ------|         |--| another
        ```
        """
        operations = device.operations
        order = np.lexsort((operations.start, operations.stream, operations.process))
        order = order[device.running[order]]
        inside = mine[order]
        begins = np.append(True, (np.diff(operations.stream[order]) != 0) | (np.diff(operations.process[order]) != 0))
        begins = begins[: len(order)] | ~np.append(False, inside[:-1])[: len(order)]
        run = np.cumsum(begins & inside)[inside]
        length = (operations.end - operations.start)[order][inside]
        longest = np.zeros(int(run.max(initial=0)) + 1, dtype=np.int64)
        np.maximum.at(longest, run, length)
        return cls(len(run) - len(np.unique(run)), int(length.sum() - longest.sum()))


def unfused_findings(device: DeviceReport, context: FindingContext) -> list[Finding]:
    """One, where such kernels alone take the least share of the compute time that is worth advice."""
    judged, timeline = context.judged, context.gaps.device
    mine = _mine(context)
    spans = Intervals(timeline.operations.start, timeline.operations.end)
    compute = (timeline.operations.category == Category.KERNEL) & timeline.running
    alone = intersect(subtract(union(spans[mine]), union(spans[compute & ~mine])), judged.parts).total()
    if not alone or alone < max(LEAST_FUSED * judged.compute_ns, context.thresholds.smallest * judged.ns):
        return []
    runs = Runs.of(timeline, mine)
    rows, count = np.flatnonzero(mine), int(np.count_nonzero(mine))
    return [
        Finding(
            id=f"f-{UNFUSED.id}",
            cause=UNFUSED.id,
            device=device.key,
            severity=severity(judged.share(alone), context.thresholds),
            title=UNFUSED.title,
            lost_ns=0,
            lost_share=0.0,
            ceiling_ns=min(runs.rest_ns, alone),
            confidence=1.0,
            nvtx=[],
            evidence=[
                f"{format_count(runs.followers)} of {format_count(count)} directly follow another one on their stream",
                "bound: once fused, a sequence takes as long as its longest kernel",
                *_named(context, rows),
            ],
            advice=list(UNFUSED.advice.sentences(context.frameworks)),
            chain=[f"{format_count(count)} single-operator kernels run for {format_ns(alone)}", UNFUSED.fix],
            rows=longest_operations(context, mine),
            devices=[device.key],
            bottleneck=UNFUSED.bottleneck,
            share=round(judged.share(alone), 6),
        )
    ]


def _mine(context: FindingContext) -> BoolArray:
    """The kernels of single operators that begin in the judged time."""
    device = context.gaps.device
    operations = device.operations
    kernels = (operations.category == Category.KERNEL) & device.running & ~device.communication
    rows: IntArray = np.flatnonzero(kernels & contains(context.judged.parts, operations.start))
    mine = np.zeros(len(operations), dtype=np.bool_)
    mine[rows] = by_name(device, rows, context.gaps.strings, is_one_operator) > 0
    return mine


def _named(context: FindingContext, rows: IntArray) -> list[str]:
    """The names with most time."""
    device = context.gaps.device
    length, judged = device.operations.end[rows] - device.operations.start[rows], context.judged
    code, names = operation_names(device, rows, context.gaps.strings)
    groups = group_totals(code, length)
    return [
        f"{typed.kernel(names[each])}: "
        f"{format_share(kernel_share(device, rows[code == each], judged.parts, judged.account_ns), 1)}, "
        f"{format_ns(total)} in all"
        for each, total in zip(groups.code[:MOST_NAMED].tolist(), groups.total[:MOST_NAMED].tolist(), strict=True)
    ]
