"""Findings on compute: the kernels that take most of the judged time, and those that leave most of the chip empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.account.bottlenecks import Bottlenecks
from nsysdiag.account.filling import HALF, LEAST_ACTIVE
from nsysdiag.arrays.intervals import contains
from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.events.device import DeviceTimeline
from nsysdiag.events.launch_shapes import LaunchShapes
from nsysdiag.events.operations import Category
from nsysdiag.findings.exposed import longest_operations
from nsysdiag.findings.judged import JudgedTime
from nsysdiag.findings.rules import KERNELS, PARALLELISM, FindingRule, severity
from nsysdiag.findings.text import FindingContext
from nsysdiag.kernels.advice import kernel_advice, kernel_sentence
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.kernels.families import kernel_families
from nsysdiag.kernels.kernels import top_kernels
from nsysdiag.report import DeviceReport, EvidenceRow, Finding
from nsysdiag.units import format_ns, format_share

if TYPE_CHECKING:
    from nsysdiag.trace.strings import Strings

NEARLY_ALL = 0.9
"""Share of the kernel time: below it, a kernel is only the longest of several."""
MOST_KERNELS, MOST_LOOKED_AT, LONGEST_TITLE = 3, 20, 60
LEAST = 0.01
"""Share of the kernel time: a smaller kernel is not named."""


class KernelWork(Struct, frozen=True):
    """What the kernels of the judged time do: those with most time, and all of them by kind; communication is none."""

    top: list[TopKernel]
    families: KernelFamilies

    @classmethod
    def of(
        cls,
        device: DeviceTimeline,
        judged: JudgedTime,
        shapes: LaunchShapes,
        strings: Strings,
        metrics: GpuMetrics | None,
    ) -> KernelWork:
        """Of the kernels that begin in the judged time."""
        inside = contains(judged.parts, device.operations.start) & ~device.communication
        measured = () if metrics is None else tuple(metrics.kernels)
        top = top_kernels(device, inside, shapes, strings, measured, MOST_LOOKED_AT)
        top = [kernel for kernel in top if kernel.share >= LEAST]
        return cls(top, kernel_families(device, inside, strings))


def kernel_findings(
    device: DeviceReport, context: FindingContext, found: Bottlenecks, work: KernelWork
) -> list[Finding]:
    """The finding on compute, from the smallest share of the judged time on. Idle time inside graphs counts to the same
    bottleneck, and is a finding of its cause."""
    judged, frameworks, thresholds = context.judged, context.frameworks, context.thresholds
    least = max(thresholds.smallest * judged.ns, 1)
    hollow = [kernel for kernel in work.top if _leaves_room(kernel)]
    said = (
        (KERNELS, work.top, kernel_advice(work.families, work.top, frameworks) or list(KERNELS.advice.plain)),
        (PARALLELISM, hollow, list(PARALLELISM.advice.sentences(frameworks))),
    )
    return [
        _finding(device, context, rule, ns, top[:MOST_KERNELS], advice)
        for rule, top, advice in said
        if (ns := judged.inside(found.work_of(rule.bottleneck))) >= least
    ]


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
    advice: list[str],
) -> Finding:
    judged, thresholds = context.judged, context.thresholds
    most = typed.kernel(top[0].short_name) if top else None
    return Finding(
        id=f"f-{rule.id}",
        cause=rule.id,
        device=device.key,
        severity=severity(judged.share(ns), thresholds),
        title=_title(rule, top),
        lost_ns=0,
        lost_share=0.0,
        ceiling_ns=0,
        confidence=1.0,
        nvtx=[],
        evidence=[kernel_sentence(kernel) for kernel in top],
        advice=advice,
        call=most,
        chain=[f"{most or 'kernels'} and others run for {format_ns(ns)}", rule.fix],
        rows=_rows(context),
        devices=[device.key],
        bottleneck=rule.bottleneck,
        share=round(judged.share(ns), 6),
        summary=", ".join(f"{_short(kernel)} {format_share(kernel.share * ns, judged.ns)}" for kernel in top),
    )


def _title(rule: FindingRule, top: list[TopKernel]) -> str:
    """With the kernel that takes all of the time, or the longest of several, whose share is another one."""
    if not top:
        return rule.title
    return f"{rule.title}{':' if top[0].share >= NEARLY_ALL else ' of several kernels; longest:'} {_short(top[0])}"


def _rows(context: FindingContext) -> list[EvidenceRow]:
    """The longest kernels."""
    timeline = context.gaps.device
    computes = (timeline.operations.category != Category.MEMCPY) & (timeline.operations.category != Category.MEMSET)
    return longest_operations(context, computes & ~timeline.communication)


def _short(kernel: TopKernel) -> str:
    return typed.kernel(kernel.name if len(kernel.name) <= LONGEST_TITLE else kernel.short_name)
