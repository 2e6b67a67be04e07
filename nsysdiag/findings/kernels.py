"""Findings on compute: the kernels with most of the judged time, and those that leave most of the chip empty. Kinds of
kernels have a bound of what their fix saves.

Kernels that run one operator of a framework each can be fused with those next to them. Matrix products in single
precision run faster on tensor cores."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.account.filling import HALF, LEAST_ACTIVE
from nsysdiag.arrays.groups import group_totals
from nsysdiag.arrays.intervals import BoolArray, IntArray, Intervals, common_ns, contains, intersect, subtract, union
from nsysdiag.bottlenecks import FEW_KERNELS
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.operations import Category, LaunchShapes
from nsysdiag.fields import Sentence
from nsysdiag.findings.exposed import longest_operations
from nsysdiag.findings.facts import Evidence, EvidenceRow, Finding, Named
from nsysdiag.findings.phase_work import JudgedTime
from nsysdiag.findings.rules import KERNELS, PARALLELISM, SINGLE_PRECISION, UNFUSED, FindingRule
from nsysdiag.findings.spot_facts import FindingContext
from nsysdiag.kernels.advice import (
    LEAST_FP32,
    kernel_advice,
    kernel_sentence,
    precision_advice,
    profiler_of,
)
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.kernels.kernels import GRAPHS, kernel_share, kinds_in, runs_in, top_kernels
from nsysdiag.kernels.kinds import (
    FUSED,
    ONE_OPERATOR,
    KernelFamily,
    KernelKind,
    family_of,
    is_one_operator,
    kernel_families,
)
from nsysdiag.kernels.names import SINGLE, NamedKernels, Tells, named_kernels, operation_names
from nsysdiag.names import readable
from nsysdiag.peaks import lacks_tensor_cores, product_peaks
from nsysdiag.report import DeviceReport
from nsysdiag.time.table import TimeTable
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Strings


NEARLY_ALL = 0.9
"""Share of the finding's time: below it, a kernel is only the longest of several."""
MOST_KERNELS, MOST_LOOKED_AT, LONGEST_TITLE = 3, 20, 60
"""Kernels or kinds of them that a text names, of the MOST_LOOKED_AT with most time. A kernel's name of more than
LONGEST_TITLE characters is shown in its short form, and cut. Round numbers: nothing depends on them closely."""
LEAST = 0.01
"""Share of the time of kernels and graphs: a smaller kernel is not named."""
UNSEEN = 0.5
"""Confidence of kernel time in graphs recorded as a whole: how much of it their kernels run is not in the trace."""
WITHOUT_KERNELS = "CUDA graphs recorded without kernels"
OVERLAP, OVERLAPS = 0.02, "kernels of several streams overlap, so shares add up to more"
"""From so much of the time on, more than it, shares need a word."""
NOT_SEEN = "the kernels inside are not in the trace"
GRAPHS_OCCUPY = "CUDA graphs, recorded as a whole, occupy the GPU"
SEE_GRAPHS = "capture the kernels in the graphs: --cuda-graph-trace=node"


class KernelWork(Struct, frozen=True):
    """What the kernels of the judged time do: those with most time, all of them by kind of work, and what those with
    most time are; communication is none. Graphs that were recorded as a whole are one of them."""

    top: list[TopKernel]
    families: KernelFamilies
    kinds: list[KernelKind]

    @classmethod
    def of(
        cls,
        device: DeviceTimeline,
        judged: JudgedTime,
        found: TimeTable,
        shapes: LaunchShapes,
        strings: Strings,
        metrics: GpuMetrics | None,
    ) -> KernelWork:
        """Of the kernels that run in the judged time. The time of kinds is without the paging of unified memory inside
        kernels."""
        inside = runs_in(device, judged.parts) & ~device.communication
        measured = () if metrics is None else tuple(metrics.kernels)
        top = top_kernels(device, judged.parts, judged.account_ns, shapes, strings, measured, MOST_LOOKED_AT)
        families = kernel_families(device, inside, strings)
        least = LEAST * families.total_ns
        computing = union(*(found.work_of(rule.bottleneck) for rule in (KERNELS, PARALLELISM)))
        kinds = kinds_in(device, intersect(judged.parts, computing), judged.account_ns, strings, MOST_LOOKED_AT)
        return cls([kernel for kernel in top if kernel.total_ns >= least], families, kinds)


def kernel_findings(device: DeviceReport, context: FindingContext, found: TimeTable, work: KernelWork) -> list[Finding]:
    """The finding on compute, from the smallest share of the judged time on. Idle time inside graphs is charged to the
    same bottleneck, and is a finding of its cause."""
    judged, frameworks, thresholds = context.judged, context.frameworks, context.thresholds
    least, gpu = max(thresholds.smallest * judged.ns, 1), context.gaps.device.gpu
    hollow = [kernel for kernel in work.top if _leaves_room(kernel)]
    fused = sum(each.ns for each in work.kinds if each.kind == FUSED) / max(work.families.total_ns, 1)
    advice = kernel_advice(work.families, work.top, frameworks, gpu, fused)
    said: tuple[tuple[FindingRule, list[TopKernel], list[Sentence]], ...] = (
        (KERNELS, work.top, advice or list(KERNELS.advice.plain)),
        (PARALLELISM, hollow, list(PARALLELISM.advice.sentences(frameworks))),
    )
    time = {rule.id: judged.inside(found.work_of(rule.bottleneck)) for rule in (KERNELS, PARALLELISM)}
    few = _few(time, judged.account_ns)
    return [
        _finding(device, context, rule, ns, top[:MOST_KERNELS], advice, work.families.graphs, _named(work, top))
        for rule, top, advice in said
        if (ns := few.get(rule.id, time[rule.id])) >= least
    ]


def _few(time: dict[str, int], whole_ns: int) -> dict[str, int]:
    """The larger part of the kernels' time has all of it, and the smaller one none, if that is too small to be
    shown."""
    small, large = sorted(time, key=lambda name: time[name])
    return {large: sum(time.values()), small: 0} if time[small] < FEW_KERNELS * whole_ns else {}


def _named(work: KernelWork, top: list[TopKernel]) -> list[Named]:
    """The kinds of kernels, those with most time first: of all kernels and graphs, or of the `top` ones if those are
    a part."""
    kinds = work.kinds if top is work.top else [KernelKind.alone(each) for each in top if each.short_name != GRAPHS]
    said = [(each.ns, Named(text=each.text, share=each.share, which=each.which)) for each in kinds]
    graphs = [each for each in top if each.short_name == GRAPHS]
    said += [(each.total_ns, Named(text=_short(each), share=each.share, graphs=each.count)) for each in graphs]
    return [named for _, named in sorted(said, key=lambda pair: -pair[0])]


def kinds_in_words(named: list[Named], share: float) -> Sentence:
    """The first few kinds of kernels, of which all take a `share` of the time, each with its own:
    `attention (FlashAttention forward) 45.7% (flash_fwd_kernel), elementwise 27.2% (17 different kernels …)`. Of graphs
    that take nearly all of the time only how many there are. Kinds that add up to more say that they overlap."""
    graphs = [each for each in named if each.graphs]
    rest = [each for each in named[:MOST_KERNELS] if each.share >= LEAST * share]
    said: list[Sentence] = [
        say("{} {}{}", each.text, format_share(each.share, 1), each.which and say(" ({})", each.which)) for each in rest
    ]
    if graphs and graphs[0].share >= NEARLY_ALL * share:
        said = [_launches(graphs[0].graphs)]
    unseen = sum(each.share for each in graphs) > HALF * share
    overlap = len(said) > 1 and sum(each.share for each in rest) > (1 + OVERLAP) * share
    return joined("; ", filter(None, (joined(", ", said), OVERLAPS if overlap else "", NOT_SEEN if unseen else "")))


def _takes(top: list[TopKernel], least: float) -> bool:
    """Whether graphs that were recorded as a whole lead, with this share of the time."""
    return bool(top) and top[0].short_name == GRAPHS and top[0].share >= least


def _leaves_room(kernel: TopKernel) -> bool:
    if kernel.sm_active is not None:
        return kernel.sm_active < LEAST_ACTIVE
    return kernel.sm_share is not None and kernel.sm_share < HALF


def _finding(
    device: DeviceReport,
    context: FindingContext,
    rule: FindingRule,
    ns: int,
    top: list[TopKernel],
    advice: list[Sentence],
    unseen: float,
    named: list[Named],
) -> Finding:
    """`unseen` is the share of graphs that were recorded as a whole."""
    judged = context.judged
    most = _short(top[0]) if top else None
    return replace(
        rule.finding(device.key, judged.share(ns), context.thresholds),
        title=_title(rule, top, ns / judged.account_ns),
        confidence=round(1 - UNSEEN * unseen, 4),
        evidence=[kernel_sentence(kernel) for kernel in top],
        measured=[Evidence("kernel", typed.kernel(each.name), each.count, each.total_ns) for each in top],
        shown_by=profiler_of(top, context.frameworks) if rule is KERNELS else "",
        advice=advice,
        call=most,
        chain=[
            _running(context, top, most, ns),
            SEE_GRAPHS if top and top[0].short_name == GRAPHS else rule.advice.fix(context.frameworks) or rule.fix,
        ],
        rows=_rows(context),
        summary=kinds_in_words(named, ns / judged.account_ns),
        named=[replace(each, share=round(judged.share(int(each.share * judged.account_ns)), 6)) for each in named],
    )


def _running(context: FindingContext, top: list[TopKernel], most: Sentence | None, ns: int) -> Sentence:
    """How long the kernels run, by the one that takes most of it; they wait for pages besides that, in some traces."""
    if _takes(top, NEARLY_ALL * ns / context.judged.account_ns):
        return say("{} occupy the GPU for {}", _short(top[0]), format_ns(ns))
    alone = bool(top) and top[0].share * context.judged.account_ns >= NEARLY_ALL * ns
    waiting = ", without the time in which pages move" if len(context.time.work_of("memory")) else ""
    return say("{} {} for {}{}", most or "kernels", "runs" if alone else "and others run", format_ns(ns), waiting)


def _title(rule: FindingRule, top: list[TopKernel], share: float) -> Sentence:
    """With the kernel that takes all of the time, which has this share, or the longest of several."""
    if not top:
        return rule.title
    if _takes(top, NEARLY_ALL * share):
        return f"{GRAPHS_OCCUPY}: {_launches(top[0].count)}"
    if top[0].share >= NEARLY_ALL * share:
        return say("{}: {}", rule.title, _short(top[0]))
    return say("{} of several kernels; longest: {}", rule.title, _short(top[0]))


def _rows(context: FindingContext) -> list[EvidenceRow]:
    """The longest kernels."""
    timeline = context.gaps.device
    computes = (timeline.operations.category != Category.MEMCPY) & (timeline.operations.category != Category.MEMSET)
    return longest_operations(context, computes & ~timeline.communication)


def _short(kernel: TopKernel) -> Sentence:
    if kernel.short_name == GRAPHS:
        return f"{_launches(kernel.count)} of {WITHOUT_KERNELS}"
    return typed.kernel(
        readable(kernel.name if len(kernel.name) <= LONGEST_TITLE else kernel.short_name), LONGEST_TITLE
    )


def _launches(count: int) -> str:
    return f"{format_count(count)} launch{'es' if count > 1 else ''}"


# Kernels of one kind, with a bound of what their fix saves.


MOST_NAMED = 4
"""Names of kernels with most time that are evidence of a finding on kernels of one kind. A round number: nothing
depends on it closely."""
LEAST_UNFUSED = 0.05
"""The share of the compute time in single operators alone from which fusing them is worth advice."""


class JudgedKernels(Struct, frozen=True):
    """The kernels that begin in the judged time, with their names: the `rows` of so many operations (`count`)."""

    rows: IntArray
    names: NamedKernels
    count: int

    @classmethod
    def of(cls, context: FindingContext) -> JudgedKernels:
        """Those of a device; communication is none."""
        device = context.gaps.device
        operations = device.operations
        kernels = (operations.category == Category.KERNEL) & device.running & ~device.communication
        rows = np.flatnonzero(kernels & contains(context.judged.parts, operations.start))
        return cls(rows, named_kernels(device, rows, context.gaps.strings), len(operations))

    def of_kind(self, tell: Tells, pattern: re.Pattern[str]) -> BoolArray:
        """The operations of which `tell` is true, by full and short name. One of these matches the pattern."""
        mine = np.zeros(self.count, dtype=np.bool_)
        mine[self.rows] = self.names.told(tell, [pattern]) > 0
        return mine


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


def unfused_findings(device: DeviceReport, context: FindingContext, kernels: JudgedKernels) -> list[Finding]:
    """One, if such kernels alone take the least share of the compute time that is worth advice."""
    mine = kernels.of_kind(is_one_operator, ONE_OPERATOR)
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
    return [_of_kind(device, context, UNFUSED, mine, alone, runs.whole_ns, evidence, chain, advice)]


def single_precision_findings(device: DeviceReport, context: FindingContext, kernels: JudgedKernels) -> list[Finding]:
    """One finding, if matrix products without tensor cores take enough of the compute time to be worth advice, and
    the GPU may have tensor cores. Its bound is that of the GPU's peak rates; none if these are unknown."""
    gpu = context.gaps.device.gpu
    mine = kernels.of_kind(lambda name, short: family_of(name, short) == KernelFamily.PRODUCTS_FP32, SINGLE)
    alone = 0 if lacks_tensor_cores(gpu.name, gpu.limits.compute) else _alone(context, mine, LEAST_FP32)
    if not alone:
        return []
    peaks, count = product_peaks(gpu.name, gpu.limits.compute), int(np.count_nonzero(mine))
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
    return [_of_kind(device, context, SINGLE_PRECISION, mine, alone, saved, [], chain, advice)]


def _of_kind(
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
    return replace(
        rule.finding(device.key, context.judged.share(alone), context.thresholds),
        ceiling_ns=min(saved, alone),
        evidence=[*evidence, *_longest_names(context, np.flatnonzero(mine))],
        advice=list(advice),
        chain=chain,
        rows=longest_operations(context, mine),
    )


def _alone(context: FindingContext, mine: BoolArray, least: float) -> int:
    """The judged time in which the kernels `mine` run, and no others; 0 below the `least` share of the compute time."""
    judged, timeline = context.judged, context.gaps.device
    spans = Intervals(timeline.operations.start, timeline.operations.end)
    compute = (timeline.operations.category == Category.KERNEL) & timeline.running
    alone = common_ns(subtract(union(spans[mine]), union(spans[compute & ~mine])), judged.parts)
    return alone if alone >= max(least * judged.compute_ns, context.thresholds.smallest * judged.ns) else 0


def _longest_names(context: FindingContext, rows: IntArray) -> list[Sentence]:
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
