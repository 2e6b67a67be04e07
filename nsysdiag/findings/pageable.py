"""Copies of pageable memory: that they run alone, and that the GPU idles while their calls stage them, is one problem.

```
gpu     ...[= copy =]...[==kernel==)
thread  [ cudaMemcpy   ][launch]
        <-> <------> <->
       idle  exposed  idle
```
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from nsysdiag.account.bottlenecks import Bottlenecks
from nsysdiag.arrays.intervals import IntArray, Intervals, intersect, union
from nsysdiag.causes import BLOCKING_COPY
from nsysdiag.copies.copies import longest_kind
from nsysdiag.copies.rates import is_pageable
from nsysdiag.findings.exposed import mostly_pageable
from nsysdiag.findings.rules import EXPOSED_COPY
from nsysdiag.findings.text import FindingContext
from nsysdiag.kernels.kernels import runs_in
from nsysdiag.report import Finding, Named
from nsysdiag.units import format_ns

PAGEABLE = "pageable"
"""The variant of blocking copies."""


def copies_as_one(
    idle: list[Finding], kinds: list[str], exposed: list[Finding], context: FindingContext, work: Bottlenecks
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


def _as_one(copies: Finding, calls: Finding, context: FindingContext, work: Bottlenecks) -> Finding:
    """The finding on exposed copies with the time of both: one is busy time, the other idle time. It has the advice of
    the larger. Asynchronous copies free the thread for the time of the calls, and overlap with compute."""
    judged, lost = context.judged, copies.lost_ns + calls.lost_ns
    device, exposed = context.gaps.device, intersect(judged.parts, work.work_of("copies"))
    pageable = np.flatnonzero(is_pageable(device) & runs_in(device, judged.parts))
    larger, inside = copies if copies.lost_ns > calls.lost_ns else calls, _in_calls(context, pageable)
    of_kind = _in_calls(context, longest_kind(device, pageable, exposed)) / max(inside, 1)
    named = [replace(each, share=round(each.share + of_kind * calls.share, 6)) for each in copies.named]
    return replace(
        copies,
        title=f"{EXPOSED_COPY.title} and their blocking calls{_kind(copies, named, copies.share + calls.share)}",
        lost_ns=lost,
        lost_share=round(judged.share(lost), 6),
        ceiling_ns=max(copies.ceiling_ns, min(copies.ceiling_ns + calls.ceiling_ns, inside)),
        share=round(min(copies.share + calls.share, 1.0), 6),
        confidence=min(copies.confidence, calls.confidence),
        nvtx=calls.nvtx,
        evidence=[*copies.evidence, *calls.evidence, f"bound: threads are in these calls for {format_ns(inside)}"],
        advice=larger.advice,
        signature=calls.signature,
        call=calls.call,
        gaps=calls.gaps,
        chain=[*copies.chain[:-1], *calls.chain[:-1], larger.chain[-1]],
        rows=[*copies.rows, *calls.rows][: context.thresholds.rows],
        named=named,
    )


def _kind(copies: Finding, named: list[Named], share: float) -> str:
    """`, mostly memcpy HtoD from pageable`, where these are more than half of `share`."""
    own = copies.title.removeprefix(EXPOSED_COPY.title)
    return own if named and 2 * named[0].share > share else ""


def _in_calls(context: FindingContext, copies: IntArray) -> int:
    """How much of the judged time threads are in the calls that launched these copies, in ns."""
    calls, launched = context.sightings.evidence.host.api_calls.rows, context.gaps.device.launch[copies]
    launched = launched[launched >= 0]
    return context.judged.inside(union(Intervals(calls.start[launched], calls.end[launched])))
