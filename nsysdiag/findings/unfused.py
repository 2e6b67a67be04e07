"""Findings on kernels of one kind, with a bound of what their fix saves.

Kernels that run one operator of a framework each can be fused with those next to them. Matrix products in single
precision run faster on tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from msgspec import Struct

from nsysdiag import typed
from nsysdiag.arrays.groups import group_totals
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, contains, intersect, subtract, union
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category
from nsysdiag.fields import Sentence
from nsysdiag.findings.exposed import longest_operations
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.rules import SINGLE_PRECISION, UNFUSED, FindingRule, severity
from nsysdiag.findings.text import FindingContext
from nsysdiag.kernels.advice import LEAST_FP32, lacks_tensor_cores, peaks_of, precision_advice
from nsysdiag.kernels.kernels import kernel_share
from nsysdiag.kernels.kinds import KernelFamily, by_name, family_of, is_one_operator
from nsysdiag.kernels.names import operation_names
from nsysdiag.report import DeviceReport
from nsysdiag.typed import say
from nsysdiag.units import format_count, format_ns, format_share

MOST_NAMED = 4
LEAST_UNFUSED = 0.05
"""The share of the compute time in single operators alone from which fusing them is worth advice."""


class KernelRuns(Struct, frozen=True):
    """Kernels that directly follow one another on a stream: `followers` come after another one. `whole_ns` is the time
    of the runs of two or more, with the gaps inside; `rest_ns` is that of their kernels without the longest of each."""

    followers: int
    whole_ns: int
    rest_ns: int

    @classmethod
    def of(cls, device: DeviceTimeline, mine: BoolArray) -> KernelRuns:
        """Of the operations `mine`; any other on the stream ends a run.

        ```
        stream 7  [product][cast][add ][norm][product][cast]
                           |--- a run ------|         |--| another, of one
        ```
        """
        operations = device.operations
        order = np.lexsort((operations.start, operations.stream, operations.process))
        order = order[device.running[order]]
        inside = mine[order]
        begins = np.append(True, (np.diff(operations.stream[order]) != 0) | (np.diff(operations.process[order]) != 0))
        begins = begins[: len(order)] | ~np.append(False, inside[:-1])[: len(order)]
        run = np.cumsum(begins & inside)[inside]
        start, end = operations.start[order][inside], operations.end[order][inside]
        longest, last = np.zeros((2, int(run.max(initial=0)) + 1), dtype=np.int64)
        np.maximum.at(longest, run, end - start)
        np.maximum.at(last, run, end)
        runs, first, count = np.unique(run, return_index=True, return_counts=True)
        several = count > 1
        whole = (last[runs] - start[first])[several].sum()
        return cls(len(run) - len(runs), int(whole), int((end - start).sum() - longest.sum()))


def unfused_findings(device: DeviceReport, context: FindingContext) -> list[Finding]:
    """One, where such kernels alone take the least share of the compute time that is worth advice."""
    mine = _mine(context, is_one_operator)
    alone = _alone(context, mine, LEAST_UNFUSED)
    if not alone:
        return []
    runs, count = KernelRuns.of(context.gaps.device, mine), int(np.count_nonzero(mine))
    evidence: list[Sentence] = [
        f"{format_count(runs.followers)} of {format_count(count)} directly follow another one on their stream",
        f"bound: all of that, as fused kernels read and write less; {format_ns(runs.rest_ns)} of it if each sequence "
        "takes as long as its longest kernel",
    ]
    chain: list[Sentence] = [f"{format_count(count)} single-operator kernels run for {format_ns(alone)}", UNFUSED.fix]
    advice = UNFUSED.advice.sentences(context.frameworks)
    return [_finding(device, context, UNFUSED, mine, alone, runs.whole_ns, evidence, chain, advice)]


def single_precision_findings(device: DeviceReport, context: FindingContext) -> list[Finding]:
    """One finding, where matrix products without tensor cores take enough of the compute time to be worth advice, and
    the GPU may have tensor cores. Its bound is that of the GPU's peak rates; none where these are unknown."""
    gpu = context.gaps.device.gpu
    mine = _mine(context, lambda name, short: family_of(name, short) == KernelFamily.PRODUCTS_FP32)
    alone = 0 if lacks_tensor_cores(gpu) else _alone(context, mine, LEAST_FP32)
    if not alone:
        return []
    peaks, count = peaks_of(gpu), int(np.count_nonzero(mine))
    saved = int(alone * (1 - 1 / peaks.ratio)) if peaks else 0
    with_tf32 = context.judged.share(int(alone * (1 - peaks.fp32 / peaks.tf32))) if peaks and peaks.tf32 else 0.0
    tf32 = f"; with TF32 it is {format_share(with_tf32, 1)}" if peaks and peaks.has_faster_tf32 else ""
    bound = (
        f"The bound is by published peak rates, {peaks.words} that of FP32 on this GPU{tf32}. It is reached only if "
        "memory does not limit these kernels."
        if peaks
        else "No bound is given, as the peak rates of this GPU are not known."
    )
    chain: list[Sentence] = [
        f"{format_count(count)} matrix products in FP32 run for {format_ns(alone)}",
        SINGLE_PRECISION.fix,
    ]
    advice = (*precision_advice(gpu).sentences(context.frameworks), bound)
    return [_finding(device, context, SINGLE_PRECISION, mine, alone, saved, [], chain, advice)]


def _finding(
    device: DeviceReport,
    context: FindingContext,
    rule: FindingRule,
    mine: BoolArray,
    alone: int,
    saved: int,
    evidence: list[Sentence],
    chain: list[Sentence],
    advice: Iterable[str],
) -> Finding:
    judged = context.judged
    return Finding(
        id=f"f-{rule.id}",
        cause=rule.id,
        device=device.key,
        severity=severity(judged.share(alone), context.thresholds),
        title=rule.title,
        lost_ns=0,
        lost_share=0.0,
        ceiling_ns=min(saved, alone),
        confidence=1.0,
        nvtx=[],
        evidence=[*evidence, *_named(context, np.flatnonzero(mine))],
        advice=list(advice),
        chain=chain,
        rows=longest_operations(context, mine),
        devices=[device.key],
        bottleneck=rule.bottleneck,
        share=round(judged.share(alone), 6),
    )


def _alone(context: FindingContext, mine: BoolArray, least: float) -> int:
    """The judged time in which the kernels `mine` run, and no others; 0 below the `least` share of the compute time."""
    judged, timeline = context.judged, context.gaps.device
    spans = Intervals(timeline.operations.start, timeline.operations.end)
    compute = (timeline.operations.category == Category.KERNEL) & timeline.running
    alone = intersect(subtract(union(spans[mine]), union(spans[compute & ~mine])), judged.parts).total()
    return alone if alone >= max(least * judged.compute_ns, context.thresholds.smallest * judged.ns) else 0


def _mine(context: FindingContext, tell: Callable[[str, str], int]) -> BoolArray:
    """The kernels that begin in the judged time, and of which `tell` is true, by full and short name."""
    device = context.gaps.device
    operations = device.operations
    kernels = (operations.category == Category.KERNEL) & device.running & ~device.communication
    rows: IntArray = np.flatnonzero(kernels & contains(context.judged.parts, operations.start))
    mine = np.zeros(len(operations), dtype=np.bool_)
    mine[rows] = by_name(device, rows, context.gaps.strings, tell) > 0
    return mine


def _named(context: FindingContext, rows: IntArray) -> list[Sentence]:
    """The names with most time."""
    device = context.gaps.device
    length, judged = device.operations.end[rows] - device.operations.start[rows], context.judged
    code, names = operation_names(device, rows, context.gaps.strings)
    groups = group_totals(code, length)
    return [
        say(
            "{}: {}, {} in all",
            typed.kernel(names[each]),
            format_share(kernel_share(device, rows[code == each], judged.parts, judged.account_ns), 1),
            format_ns(total),
        )
        for each, total in zip(groups.code[:MOST_NAMED].tolist(), groups.total[:MOST_NAMED].tolist(), strict=True)
    ]
