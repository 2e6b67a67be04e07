"""Memory allocation: device or pinned memory is requested or freed."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Cause, Rows
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of
from nsysdiag.causes.variant import Variant, matching

CALLS = re.compile(
    r"(cuda|cu)(Malloc|Free|HostAlloc|HostRegister|HostUnregister|Ipc(Open|Close)MemHandle|MemPool(TrimTo|Create|Destroy)).*"
    r"|cuMem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|Host(Alloc|Register|Unregister)).*"
    r"|cuArray(3D)?(Create|Destroy)|cuMipmappedArray(Create|Destroy)"
)


def evidence(evidence: HostEvidence) -> list[Layer]:
    """Outermost calls that allocate, free, map or register memory."""
    return [layer_of(evidence.calls(CALLS))]


def nested_evidence(evidence: HostEvidence) -> list[Layer]:
    """Such calls inside another call."""
    return [layer_of(evidence.calls(CALLS, nested=True))]


CAUSE = Cause(
    id="memory_allocation",
    title="Memory allocation",
    meaning="The launching thread was allocating, freeing, mapping or registering device or pinned memory; many of these calls wait for the device as well.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    advice=(
        "Allocate once and reuse, or use a caching or stream-ordered allocator (cudaMallocAsync, PyTorch's caching allocator).",
        "In PyTorch, churn comes from fragmentation: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer varying shapes, no empty_cache() in the step.",
    ),
    color="#d57c98",
    picture="""
device  [==A==)..............[==next==)
thread         [cudaMalloc][launch]
""",
    family="memory",
    sources=("malloc_async", "allocator"),
    rows=(Rows.CALL,),
    variants=(
        Variant(
            "pinned",
            "pinned host memory",
            "allocate pinned buffers once and reuse them",
            (
                "Pinning is slow and stops the device: allocate pinned buffers once (PyTorch keeps them in its caching host "
                "allocator; no pin_memory() in the step).",
            ),
            call=matching(r"Host(Alloc|Register|Unregister)|MallocHost|FreeHost"),
        ),
        Variant(
            "growth",
            "memory is mapped",
            "warm up with the largest shapes",
            (
                "The allocator grows its segments: warm up with the largest shapes, or reserve once (PyTorch: "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets a segment grow instead of making new ones).",
            ),
            call=matching(r"cuMem(Create|Map|SetAccess|AddressReserve|Unmap|Release)"),
        ),
        Variant(
            "free",
            "memory is freed",
            "do not free in the step",
            (
                "cudaFree waits for the device: no empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                "or backend:cudaMallocAsync keeps memory from being freed for want of room.",
            ),
            call=matching(r"Free"),
        ),
        Variant("device", "", "reuse memory: a caching or stream-ordered allocator (cudaMallocAsync)"),
    ),
    host=evidence,
    call=nested_evidence,
    call_order=30,
)
