"""Findings on busy time that is not compute: copies and communication that nothing hides."""

from __future__ import annotations

import numpy as np

from nsysdiag import typed
from nsysdiag.account.bottlenecks import CODE, Bottlenecks
from nsysdiag.arrays.groups import group_totals, longest
from nsysdiag.arrays.intervals import BoolArray, contains, pieces
from nsysdiag.causes.advice import Advice, Words
from nsysdiag.copies.copies import top_copies
from nsysdiag.copies.facts import TopCopy
from nsysdiag.events.operations import Category
from nsysdiag.findings.rules import EXPOSED_COMM, EXPOSED_COPY, EXPOSED_MPI, FEWER_BYTES, PAGING, FindingRule, severity
from nsysdiag.findings.text import FindingContext
from nsysdiag.kernels.kinds import SHOWN, NamedTime, collective_of, kinds_of
from nsysdiag.kernels.operation_names import operation_names
from nsysdiag.report import CopyRow, DeviceReport, EvidenceRow, Finding
from nsysdiag.units import format_bytes, format_count, format_ns, format_transfer

MOST_EVIDENCE = 4
DEVICE = "device"
DWARFS = 2
"""Copies that take more than this many times the compute are too many, not too early."""
SETS = Advice(
    plain=(
        "Set less memory: kernels that write all of a buffer need no memset before them; set a flag, not the buffer.",
    ),
    pytorch=Words(
        ("Memory sets of gradients: optimizer.zero_grad(set_to_none=True) avoids them.",),
        source="tuning_guide",
        fix="set less memory: zero_grad(set_to_none=True)",
    ),
)
PINNING = Advice(
    plain=("Most of it is pageable memory: pin it (cudaHostAlloc, cudaHostRegister) and copy with cudaMemcpyAsync.",),
    pytorch=Words(
        ("Most of it is pageable memory: pin it (pin_memory=True), copy with non_blocking=True.",),
        source="pinned_memory",
    ),
    cupy=Words(("Most of it is pageable memory: allocate it with cupyx.empty_pinned.",), source="cupy_memory"),
    openacc=Words(
        ("Most of it is pageable memory: pin it (nvc -gpu=pinned, or -gpu=mem:separate:pinnedalloc).",),
        source="openacc",
    ),
)
SHORT = {SETS: "set less memory", PINNING: "pin the host memory and copy on a separate stream"}
"""The short forms that end a causal chain."""


def exposed_findings(device: DeviceReport, context: FindingContext, mpi_ns: int, work: Bottlenecks) -> list[Finding]:
    """Findings on exposed copies, exposed communication, idle time inside MPI calls (`mpi_ns`) and paging. Each takes
    at least the smallest share of the judged time. Overlap hides at most the compute time."""
    judged, timeline = context.judged, context.gaps.device
    operations = timeline.operations
    copies = (operations.category == Category.MEMCPY) | (operations.category == Category.MEMSET)
    parts = (
        (EXPOSED_COPY, judged.inside(work.work_of("copies")), copies),
        (EXPOSED_COMM, judged.exposed_comm_ns, timeline.communication),
        (EXPOSED_MPI, mpi_ns, np.zeros(len(operations), dtype=np.bool_)),
        (PAGING, judged.inside(work.work_of("memory")), operations.migration),
    )
    least = max(context.thresholds.smallest * judged.ns, 1)
    return [_finding(device, context, rule, ns, mine, work) for rule, ns, mine in parts if ns >= least]


def _finding(
    device: DeviceReport, context: FindingContext, rule: FindingRule, ns: int, mine: BoolArray, work: Bottlenecks
) -> Finding:
    judged = context.judged
    rows = longest_operations(context, mine) if rule is not EXPOSED_MPI else _mpi_calls(context, work)
    largest = _largest(context) if rule is EXPOSED_COPY else None
    collective = _collective(context) if rule is EXPOSED_COMM else ""
    mostly = f"mostly {_which(largest)}" if largest is not None else collective
    too_many = rule is EXPOSED_COPY and ns > DWARFS * judged.compute_ns
    advice, fix = _fewer(device, context.frameworks) if too_many else _advice(device, rule, context.frameworks)
    what = typed.kernel(rows[0].name) if rows and rule is not EXPOSED_MPI else None
    doing = "move pages" if rule is PAGING else "run alone"
    running = f"{what} and similar ones {doing} on {device.key}" if what else rule.meaning
    effect = "kernels wait" if rule is PAGING else "no kernel runs"
    return Finding(
        id=f"f-{rule.id}",
        cause=rule.id,
        device=device.key,
        severity=severity(judged.share(ns), context.thresholds),
        title=f"{rule.title}, {mostly}" if mostly else rule.title,
        lost_ns=ns,
        lost_share=round(judged.share(ns), 6),
        # Overlap hides as much as there is compute; fewer bytes, of paging or of copies that dwarf it, save all of it.
        ceiling_ns=ns if too_many or rule is PAGING else min(ns, judged.compute_ns),
        confidence=1.0,
        nvtx=[],
        evidence=_evidence(device, rule),
        advice=advice,
        call=what if rule is not EXPOSED_MPI else _first_mpi(device),
        chain=[running, f"{effect} for {format_ns(ns)}", fix],
        rows=rows,
        devices=[device.key],
        bottleneck=rule.bottleneck,
        share=round(judged.share(ns), 6),
        summary=_copied(largest) if largest is not None else collective,
    )


def _largest(context: FindingContext) -> TopCopy | None:
    """The copies of one kind that take most of the judged time."""
    device = context.gaps.device
    top = top_copies(device, contains(context.judged.parts, device.operations.start), 1)
    return top[0] if top else None


def _collective(context: FindingContext) -> str:
    """`mostly NCCL SendRecv (ncclDevKernel_SendRecv)`: the collectives with over half of the time of all that begin in
    the judged time; empty where none has."""
    device = context.gaps.device
    rows = np.flatnonzero(device.communication & contains(context.judged.parts, device.operations.start))
    code, names = operation_names(device, rows, context.gaps.strings)
    totals = group_totals(code, device.operations.end[rows] - device.operations.start[rows])
    pairs = zip(totals.code.tolist(), totals.total.tolist(), strict=True)
    kinds = kinds_of(NamedTime(collective_of(names[each]), names[each], total) for each, total in pairs)
    if not kinds or 2 * kinds[0].ns <= sum(each.ns for each in kinds):
        return ""
    name = typed.kernel(kinds[0].longest, SHOWN)
    return f"mostly {f'{kinds[0].kind} ({name})' if kinds[0].kind else name}"


def mostly_pageable(context: FindingContext) -> bool:
    """Whether the copies with most of the judged time are from or to pageable memory."""
    largest = _largest(context)
    return largest is not None and "pageable" in (largest.src, largest.dst)


def _copied(kind: TopCopy) -> str:
    """`8 × memcpy DtoH to pageable memory, 246 MB in the judged time, at 4.53 GB/s`."""
    rate = f", at {format_transfer(kind.bytes_per_second)}/s" if kind.bytes_per_second else ""
    return f"{format_count(kind.count)} × {_which(kind)}, {format_transfer(kind.bytes)} in the judged time{rate}"


def _which(copies: CopyRow | TopCopy) -> str:
    """`memcpy HtoD from pageable`, as far as it is known; that an end is the device, the operation says."""
    ends = (("from", copies.src), ("to", copies.dst))
    return " ".join([copies.operation, *(f"{word} {kind}" for word, kind in ends if kind and kind != DEVICE)])


def _first_mpi(device: DeviceReport) -> str | None:
    return typed.api(device.communication.mpi[0].name) if device.communication.mpi else None


def _mpi_calls(context: FindingContext, work: Bottlenecks) -> list[EvidenceRow]:
    """The MPI calls in which the device was idle for longest, in the judged time."""
    mine = (work.code == CODE["communication"]) & (work.slice >= 0) & (work.other < 0)
    piece, idle = pieces(context.judged.parts, work.spans[mine])
    return context.sightings.mpi_calls(idle, work.slice[mine][piece], context.thresholds.rows)


def longest_operations(context: FindingContext, mine: BoolArray) -> list[EvidenceRow]:
    """The longest operations of the kind inside the judged time; how much of each is exposed is not known."""
    device = context.gaps.device
    operations = device.operations
    chosen = np.flatnonzero(mine & device.running & contains(context.judged.parts, operations.start))
    length = operations.end[chosen] - operations.start[chosen]
    order = longest(length, operations.start[chosen], context.thresholds.rows)
    return [context.sightings.operation(int(chosen[at]), int(length[at])) for at in order.tolist()]


def _evidence(device: DeviceReport, rule: FindingRule) -> list[str]:
    if rule is EXPOSED_COMM:
        return [
            f"{typed.kernel(row.short_name)}: {format_count(row.count)} kernels, {format_ns(row.total_ns)} in all"
            for row in device.communication.kernels[:MOST_EVIDENCE]
        ]
    if rule is EXPOSED_MPI:
        return [
            f"{typed.api(row.name)}: {format_count(row.count)} calls, the GPU idle {format_ns(row.idle_ns)} inside them"
            for row in device.communication.mpi[:MOST_EVIDENCE]
        ]
    if rule is PAGING:
        moved = device.unified_memory.rows if device.unified_memory else []
        return [
            f"{row.direction}, {row.cause}: {format_count(row.count)} migrations, {format_bytes(row.bytes)}"
            for row in moved[:MOST_EVIDENCE]
        ]
    return [
        f"{_which(row)}: {format_count(row.count)}, {format_ns(row.total_ns)} in all"
        for row in device.copies.rows[:MOST_EVIDENCE]
    ]


def _advice(device: DeviceReport, rule: FindingRule, frameworks: tuple[str, ...]) -> tuple[list[str], str]:
    """What to do, by the copies that take most time, and its short form."""
    words = rule.advice.words(frameworks)
    general = [*rule.advice.sentences(frameworks)]
    largest = device.copies.rows[0] if device.copies.rows else None
    special = _special(largest) if rule is EXPOSED_COPY and largest is not None else None
    if special is None:
        return general, (words.fix if words is not None else "") or rule.fix
    first = special.words(frameworks)
    if first is None:
        return [*special.plain, *general], SHORT[special]
    return [*first.sentences, *general], first.fix or SHORT[special]


def _fewer(device: DeviceReport, frameworks: tuple[str, ...]) -> tuple[list[str], str]:
    """What to do where copies dwarf compute, and its short form: first a better rate, which is the smaller change, then
    fewer bytes."""
    words = FEWER_BYTES.words(frameworks)
    special = _special(device.copies.rows[0]) if device.copies.rows else None
    if special is SETS:
        return [*SETS.sentences(frameworks)], SHORT[SETS]
    faster = special.sentences(frameworks) if special is not None else ()
    fix = ("pin the host memory; " if faster else "") + ((words.fix if words else "") or "copy fewer bytes")
    return [" ".join([*faster, *FEWER_BYTES.sentences(frameworks)])], fix


def _special(row: CopyRow) -> Advice | None:
    """The first advice for copies of this kind."""
    if row.operation.startswith("memset"):
        return SETS
    return PINNING if "pageable" in (row.src, row.dst) else None
