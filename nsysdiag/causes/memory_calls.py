"""Causes about memory: allocation by CUDA and by the operating system, and migrations of unified memory."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Cause, EvidenceRows, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, nested_calls
from nsysdiag.gaps.gaps import LaunchCase

MEMORY_ALLOCATION_CALLS = re.compile(
    r"(cuda|cu)(Malloc|Free|HostAlloc|HostRegister|HostUnregister|Ipc(Open|Close)MemHandle|MemPool(TrimTo|Create|Destroy)).*"
    r"|cuMem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|Host(Alloc|Register|Unregister)).*"
    r"|cuArray(3D)?(Create|Destroy)|cuMipmappedArray(Create|Destroy)"
)


def memory_allocation_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost calls that allocate, free, map or register memory."""
    return [layer_of(evidence.calls(MEMORY_ALLOCATION_CALLS))]


MEMORY_ALLOCATION = Cause(
    id="memory_allocation",
    title="Memory allocation",
    meaning="The launching thread was allocating, freeing, mapping or registering device or pinned memory; many of these calls wait for the device as well.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    bottleneck="memory",
    shade=1,
    rows=(EvidenceRows.CALL,),
    variants=(
        Variant(
            "pinned",
            "pinned host memory",
            "allocate pinned buffers once and reuse them",
            call=matching("Host(Alloc|Register|Unregister)|MallocHost|FreeHost"),
        ),
        Variant(
            "growth",
            "memory is mapped",
            "warm up with the largest sizes",
            call=matching("cuMem(Create|Map|SetAccess|AddressReserve|Unmap|Release)"),
        ),
        Variant("free", "memory is freed", "do not free in the step", call=matching("Free")),
        Variant("device", "", "reuse memory: a caching or stream-ordered allocator (cudaMallocAsync)"),
    ),
    host=memory_allocation_evidence,
    call=nested_calls(MEMORY_ALLOCATION_CALLS),
    call_order=30,
)


OS_MEMORY_CALLS = re.compile(
    r"_*(mmap(64)?|munmap|mremap|madvise|posix_madvise|s?brk|mprotect|pkey_mprotect|mlock(2|all)?|munlock(all)?|mbind|shm(at|dt|get|ctl)|shm_(open|unlink)|memfd_create|posix_fallocate(64)?)"
)


def os_memory_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """OS calls that map, unmap or protect memory."""
    return [layer_of(evidence.os_calls(OS_MEMORY_CALLS))]


OS_MEMORY = Cause(
    id="os_memory",
    title="OS memory calls",
    meaning="The launching thread was mapping, unmapping or protecting memory, often for large temporary buffers.",
    side="host",
    tables=("OSRT_API",),
    bottleneck="memory",
    shade=2,
    rows=(EvidenceRows.OS_CALL,),
    variants=(Variant("mapping", "", "reuse host buffers; let malloc keep its memory"),),
    host=os_memory_evidence,
)


UNIFIED_MEMORY = Cause(
    id="unified_memory",
    title="Unified-memory migration",
    meaning="The next operation is a page migration of unified memory in front of work that was already launched: the device waits for page-fault handling.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    bottleneck="memory",
    shade=0,
    variants=(Variant("other", "", "prefetch with cudaMemPrefetchAsync"),),
    accepted=True,
    case=LaunchCase.UNIFIED_MEMORY,
)
