"""Pages of unified memory: that they move alone, and that the GPU idles between them, is one problem.

```
gpu    [page]..[page]..[page]..[==kernel==)
         busy, idle, busy, idle
```
"""

from __future__ import annotations

from msgspec.structs import replace

from nsysdiag.causes import memory_calls
from nsysdiag.findings.rules import PAGING
from nsysdiag.findings.text import FindingContext
from nsysdiag.memory.facts import MigrationRow
from nsysdiag.report import DeviceReport, Finding
from nsysdiag.typed import say
from nsysdiag.units import format_bytes

PREFETCH = "user prefetch"
TO_GPU, TO_HOST = "HtoD", "DtoH"
PREFETCHED = "Prefetched pages of unified memory move while no kernel runs"
EARLIER = (
    "Prefetch earlier, on a stream of its own: cudaMemPrefetchAsync while kernels run that do not need these pages. "
    "Prefetch only what the next kernels touch.",
    "Where data stays on the device, allocate it there: cudaMalloc and explicit copies.",
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
    lost, judged = sum(each.lost_ns for each in (paging, *between)), context.judged
    return replace(
        paging,
        lost_ns=lost,
        lost_share=round(min(judged.share(lost), 1.0), 6),
        ceiling_ns=sum(each.ceiling_ns for each in (paging, *between)),
        share=round(min(sum(each.share for each in (paging, *between)), 1.0), 6),
        nvtx=between[0].nvtx if len(between) == 1 else [],
        evidence=[*paging.evidence, *(text for each in between for text in each.evidence)],
        gaps=sum(each.gaps for each in between),
        signature=between[0].signature,
        rows=[*paging.rows, *(row for each in between for row in each.rows)][: context.thresholds.rows],
    )


def _advised(paging: Finding, rows: list[MigrationRow]) -> Finding:
    """With the title and advice that fit where the program prefetches, or with what became of that."""
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
