"""Memory of the operating system: mapping and unmapping."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Lookalike, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of

CALLS = re.compile(
    r"_*(mmap(64)?|munmap|mremap|madvise|posix_madvise|s?brk|mprotect|pkey_mprotect|mlock(2|all)?|munlock(all)?|mbind|shm(at|dt|get|ctl)|shm_(open|unlink)|memfd_create|posix_fallocate(64)?)"
)


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """OS calls that map, unmap or protect memory."""
    return [layer_of(evidence.os_calls(CALLS))]


CAUSE = Cause(
    id="os_memory",
    title="OS memory calls",
    meaning="The launching thread was mapping, unmapping or protecting memory, often for large temporary buffers.",
    side="host",
    tables=("OSRT_API",),
    advice=Advice(
        (
            "Reuse host buffers. A malloc that keeps memory instead of returning it to the system (jemalloc, tcmalloc, "
            "MALLOC_TRIM_THRESHOLD_) avoids the calls.",
        )
    ),
    picture="""
device  [==A==)..........[==next==)
thread         [munmap][launch]
""",
    bottleneck="memory",
    shade=2,
    sources=("nsight_osrt", "mallopt"),
    rows=(EvidenceRows.OS_CALL,),
    confirm=(
        "In the row of OS calls, mmap, munmap, madvise, brk or mprotect covers the gap. Large arrays are allocated and "
        "freed in each step.",
    ),
    confused_with=(
        Lookalike("memory_allocation", "CUDA calls for device or pinned memory; they call mmap inside."),
        Lookalike("host_compute", "Without --trace=osrt this time looks like host code."),
    ),
    variants=(
        Variant(
            "mapping",
            "",
            "reuse host buffers; let malloc keep its memory",
            Advice(
                (
                    "Large buffers are allocated and freed: reuse them, or let malloc keep them "
                    "(MALLOC_MMAP_THRESHOLD_, "
                    "MALLOC_TRIM_THRESHOLD_, MALLOC_ARENA_MAX; jemalloc or tcmalloc).",
                )
            ),
        ),
    ),
    host=evidence,
)
