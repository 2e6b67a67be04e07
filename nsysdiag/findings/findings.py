"""Findings: where each cause costs most, ranked by its exclusive time.

Lost times are exclusive: each nanosecond of idle time belongs to one cause and one place. So the lost times of a
device's causes add up to at most its idle time. Exposed copies and communication are busy time, counted separately.
Findings that point at the time of others have no lost time.

Pages of unified memory that move alone, and the idle time between them, are one problem:

```
gpu    [page]..[page]..[page]..[==kernel==)
         busy, idle, busy, idle
```"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.arrays.intervals import IntArray, Intervals, intersect, union
from nsysdiag.arrays.spill import laid
from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECKS, BottleneckId, promised
from nsysdiag.causes import BLOCKING_COPY, CAUSES, EVENT_WAIT, memory_calls
from nsysdiag.causes.cause import Advice
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.events.identity import joint
from nsysdiag.fields import Sentence
from nsysdiag.findings.attribution import Shares
from nsysdiag.findings.exposed import exposed_findings, mostly_pageable
from nsysdiag.findings.facts import Finding, Named
from nsysdiag.findings.hotspots import Hotspot, behind_waits, spot_of, spots_of
from nsysdiag.findings.rules import EXPOSED_COPY, OTHER_GPU, PAGING, severity, wait_id
from nsysdiag.findings.spot_facts import FindingContext
from nsysdiag.findings.text import told_of
from nsysdiag.kernels.kernels import runs_in
from nsysdiag.memory.copies import is_pageable, longest_kind
from nsysdiag.memory.facts import MigrationRow
from nsysdiag.phases.facts import BehindWait
from nsysdiag.report import DeviceReport
from nsysdiag.time.table import TimeTable
from nsysdiag.typed import say
from nsysdiag.units import format_bytes, format_ns

PREFETCH = "user prefetch"
TO_GPU, TO_HOST = "HtoD", "DtoH"
PREFETCHED = "Prefetched pages of unified memory move while no kernel runs"
EARLIER = (
    "Prefetch earlier, on a stream of its own: cudaMemPrefetchAsync while kernels run that do not need these pages. "
    "Prefetch only what the next kernels touch.",
    "If data stays on the device, allocate it there: cudaMalloc and explicit copies.",
)
TWICE = "Pages are prefetched to the GPU ({}), but the host uses them again before the kernels do, so they move twice. "


def pages_as_one(found: list[Finding], device: DeviceReport, context: FindingContext) -> list[Finding]:
    """The findings with those on migrations joined: of idle time between them, and of the time in which they run."""
    paging = next((each for each in found if each.cause == PAGING.id), None)
    if paging is None:
        return found
    between = [
        each for each in found if each.cause == memory_calls.UNIFIED_MEMORY.id and each.bottleneck == PAGING.bottleneck
    ]
    rows = device.unified_memory.rows if device.unified_memory else []
    one = _advised(_joined(paging, between, context), rows)
    return [one if each is paging else each for each in found if each not in between]


def _joined(paging: Finding, between: list[Finding], context: FindingContext) -> Finding:
    if not between:
        return paging
    nvtx = between[0].nvtx if len(between) == 1 else []
    return replace(_together(paging, between, context), nvtx=nvtx, signature=between[0].signature)


def _together(first: Finding, others: list[Finding], context: FindingContext) -> Finding:
    """The first finding with the figures and the evidence of all: their times add up."""
    every = (first, *others)
    lost = sum(each.lost_ns for each in every)
    return replace(
        first,
        lost_ns=lost,
        lost_share=round(min(context.judged.share(lost), 1.0), 6),
        ceiling_ns=sum(each.ceiling_ns for each in every),
        share=round(min(sum(each.share for each in every), 1.0), 6),
        evidence=[text for each in every for text in each.evidence],
        measured=[fact for each in every for fact in each.measured],
        gaps=sum(each.gaps for each in every),
        rows=[row for each in every for row in each.rows][: context.thresholds.rows],
    )


def _advised(paging: Finding, rows: list[MigrationRow]) -> Finding:
    """With the title and advice that fit if the program prefetches, or with what became of that."""
    prefetched = [row for row in rows if row.cause == PREFETCH]
    ns, total = (sum(row.total_ns for row in each) for each in (prefetched, rows))
    if 2 * ns > total:
        return replace(paging, title=PREFETCHED, advice=list(EARLIER))
    size = sum(row.bytes for row in prefetched if row.direction == TO_GPU)
    back, again = (
        sum(row.bytes for row in rows if row.direction == way and row.cause != PREFETCH) for way in (TO_HOST, TO_GPU)
    )
    if not size or 2 * min(back, again) < size:
        return paging
    first, *others = paging.advice
    return replace(paging, advice=[say("{}{}", TWICE.format(format_bytes(size)), first), *others])


# Findings on the time in which a GPU waits for another one.


def waits_for_others(device: DeviceReport, context: FindingContext, shares: Shares, gpus: list[str]) -> list[Finding]:
    """Findings on a device's waits for others: one for each other device and its bottleneck, from the smallest share of
    the judged time on. `shares` are these waits, `gpus` the keys of all GPUs by number."""
    least = max(context.thresholds.smallest * context.judged.ns, 1)
    pair = joint(shares.other, shares.bottleneck, len(BOTTLENECK_IDS))
    found = []
    for each in distinct_values(pair).tolist():
        number, bottleneck = divmod(each, len(BOTTLENECK_IDS))
        mine = shares.take(pair == each)
        if int(mine.lost.sum()) >= least:
            found.append(_finding(device, context, mine, gpus[number], BOTTLENECK_IDS[bottleneck]))
    return found


def _finding(
    device: DeviceReport, context: FindingContext, shares: Shares, other: str, bottleneck: BottleneckId
) -> Finding:
    spot, judged = _spot(shares, bottleneck), context.judged
    told = told_of(device, context, shares, spot).finding
    what = f"{BOTTLENECKS[bottleneck].running}{other}"
    advice, fix = _advice(spot)
    return replace(
        OTHER_GPU.finding(device.key, judged.share(spot.counted_ns), context.thresholds),
        id=wait_id(bottleneck, other),
        severity=severity(judged.share(spot.lost_ns), context.thresholds),
        title=f"Waiting for {what}",
        lost_ns=spot.lost_ns,
        lost_share=round(judged.share(spot.lost_ns), 6),
        ceiling_ns=spot.lost_ns if promised(bottleneck) else 0,
        confidence=told.confidence,
        nvtx=told.nvtx,
        evidence=told.evidence,
        measured=told.measured,
        advice=list(advice.plain),
        signature=told.signature,
        call=told.call,
        gaps=told.gaps,
        chain=[*told.chain[:-1], fix],
        rows=told.rows,
        bottleneck=bottleneck,
        summary=f"{device.key} waits for {what}",
    )


def _advice(spot: Hotspot) -> tuple[Advice, str]:
    """What to do, and its short form. If events order the GPUs already, that advice is left out."""
    if spot.bottleneck not in KERNELS:
        return OTHER_GPU.words.advice_for("see_the_other"), "see what that GPU does"
    if spot.cause == EVENT_WAIT:
        return OTHER_GPU.words.advice_for("divide_evenly"), "divide the work evenly"
    return OTHER_GPU.advice, OTHER_GPU.fix


def _spot(shares: Shares, bottleneck: BottleneckId) -> Hotspot:
    """All of it, described by the cause with most of its time."""
    cause = int(np.argmax(np.bincount(shares.cause, weights=shares.lost)))
    return spot_of(shares, (list(CAUSES)[cause], bottleneck), np.arange(len(shares)))


# Copies of pageable memory: that they run alone, and that the GPU idles while their calls stage them, is one problem.
#
# ```
# gpu     ...[= copy =]...[==kernel==)
# thread  [ cudaMemcpy   ][launch]
#         <-> <------> <->
#        idle  exposed  idle
# ```

PAGEABLE = "pageable"
"""The variant of blocking copies."""


def copies_as_one(
    idle: list[Finding], kinds: list[str], exposed: list[Finding], context: FindingContext, work: TimeTable
) -> list[Finding]:
    """The findings on `idle` time, with their variants `kinds`, and on `exposed` work. If copies are mostly pageable,
    the findings on exposed copies and on calls that copy such memory are joined, unless several places have such
    calls."""
    calls = [each for each, kind in zip(idle, kinds, strict=True) if (each.cause, kind) == (BLOCKING_COPY, PAGEABLE)]
    copies = [each for each in exposed if each.cause == EXPOSED_COPY.id]
    if not copies or len(calls) != 1 or not mostly_pageable(context, work):
        return [*idle, *exposed]
    others = [each for each in (*idle, *exposed) if each not in (calls[0], copies[0])]
    return [*others, _as_one(copies[0], calls[0], context, work)]


def _as_one(copies: Finding, calls: Finding, context: FindingContext, work: TimeTable) -> Finding:
    """The finding on exposed copies with the time of both: one is busy time, the other idle time. It has the advice of
    the larger. Asynchronous copies free the thread for the time of the calls, and overlap with compute."""
    judged = context.judged
    device, exposed = context.gaps.device, intersect(judged.parts, work.work_of("copies"))
    pageable = np.flatnonzero(is_pageable(device) & runs_in(device, judged.parts))
    larger, inside = copies if copies.lost_ns > calls.lost_ns else calls, _in_calls(context, pageable)
    of_kind = _in_calls(context, longest_kind(device, pageable, exposed)) / max(inside, 1)
    named = [replace(each, share=round(each.share + of_kind * calls.share, 6)) for each in copies.named]
    both = _together(copies, [calls], context)
    return replace(
        both,
        title=say("{} and their blocking calls{}", EXPOSED_COPY.title, _kind(named, copies.share + calls.share)),
        ceiling_ns=max(copies.ceiling_ns, min(both.ceiling_ns, inside)),
        confidence=min(copies.confidence, calls.confidence),
        nvtx=calls.nvtx,
        evidence=[*both.evidence, f"bound: threads are in these calls for {format_ns(inside)}"],
        advice=larger.advice,
        signature=calls.signature,
        call=calls.call,
        chain=[*copies.chain[:-1], *calls.chain[:-1], larger.chain[-1]],
        named=named,
    )


def _kind(named: list[Named], share: float) -> Sentence:
    """`, mostly memcpy HtoD from pageable`, if these are more than half of `share`."""
    return say(", mostly {}", named[0].short) if named and 2 * named[0].share > share else ""


def _in_calls(context: FindingContext, copies: IntArray) -> int:
    """How much of the judged time threads are in the calls that launched these copies, in ns."""
    calls, launched = context.sightings.evidence.host.api_calls.rows, context.gaps.device.launch[copies]
    launched = launched[launched >= 0]
    return context.judged.inside(union(Intervals(calls.start[launched], calls.end[launched])))


class IdleFindings(Struct, frozen=True):
    """The findings on time in which a device waited, or worked exposed, and what threads did `behind` its waits."""

    found: list[Finding]
    behind: list[BehindWait]


def findings_of(
    device: DeviceReport,
    context: FindingContext,
    shares: Shares,
    work: TimeTable,
    gpus: list[str],
    background: Background,
) -> IdleFindings:
    """The findings of one device: every cause and exposed work that takes, or may bring, at least 1% of the judged
    time. `gpus` are all of the trace."""
    judged, thresholds = context.judged, context.thresholds
    if judged.ns == 0:
        return IdleFindings([], [])
    exposed = background.begin(exposed_findings, device, context, work)
    own = shares.take(shares.other < 0)
    spots = spots_of(own, judged.ns, thresholds)
    spots = [*spots[: thresholds.most], *[spot for spot in spots[thresholds.most :] if spot.behind]]
    told = background.each(lambda spot: told_of(device, context, laid(own.take(spot.rows)), spot), [*spots])
    found = [each.finding for each in told]
    behind = behind_waits(own, spots, found)
    found = copies_as_one(found, [each.kind for each in told], exposed.result(), context, work)
    found = pages_as_one(found, device, context)
    return IdleFindings([*found, *waits_for_others(device, context, shares.take(shares.other >= 0), gpus)], behind)
