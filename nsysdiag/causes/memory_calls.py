"""Causes about memory: allocation by CUDA and by the operating system, and migrations of unified memory."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Cause, EvidenceRows, Lookalike, Variant, advice, matching, words
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, nested_calls
from nsysdiag.gaps.launch_frame import LaunchCase

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
    advice=advice(
        "Allocate once, before the loop, and reuse; or use the stream-ordered allocator (cudaMallocAsync, with a release threshold on its pool, cudaMemPoolAttrReleaseThreshold).",
        pytorch=words(
            "The caching allocator should serve the step: churn comes from fragmentation. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer varying shapes, no empty_cache() in the step.",
            source="allocator",
        ),
        jax=words(
            "Let JAX allocate its pool at start (XLA_PYTHON_CLIENT_PREALLOCATE, on by default). XLA_PYTHON_CLIENT_ALLOCATOR=platform allocates each time.",
            source="jax_memory",
            fix="let JAX allocate its pool at start",
        ),
        tensorflow=words(
            "Let the pool be allocated at start: no memory growth (tf.config.experimental.set_memory_growth), or TF_GPU_ALLOCATOR=cuda_malloc_async.",
            source="tf_gpu",
            fix="let TensorFlow allocate its pool at start",
        ),
        cupy=words(
            "Keep CuPy's memory pools: no free_all_blocks() in the step, no set_allocator(None); or MemoryAsyncPool.",
            source="cupy_memory",
            fix="keep CuPy's memory pools",
        ),
        openacc=words(
            "Allocate once: enter data create before the loop and exit data after it, so that data clauses find arrays present.",
            source="openacc",
            fix="allocate once: enter data create before the loop",
        ),
        openmp_target=words(
            "Allocate once: target enter data map(alloc: ...) before the loop and exit data after it, so that map clauses find arrays present.",
            source="openmp",
            fix="allocate once: target enter data before the loop",
        ),
        julia=words(
            "Allocate once and write into existing arrays (.=, mul!): CUDA.jl's pool reuses memory, but GC and CUDA.reclaim() in the step cost time; CUDA.unsafe_free! returns memory early.",
            source="julia",
            fix="write into existing arrays",
        ),
    ),
    picture="""
device  [==A==)..............[==next==)
thread         [cudaMalloc][launch]
""",
    bottleneck="memory",
    shade=1,
    sources=("malloc_async",),
    rows=(EvidenceRows.CALL,),
    confirm=(
        "In the CUDA API row, a cudaMalloc, cudaFree, cudaHostAlloc, cudaHostRegister or cuMemMap covers the gap. cudaFree often waits for the whole device first.",
        "With PyTorch, calls of cudaMalloc after the first steps mean that the caching allocator has no block that fits.",
    ),
    confused_with=(
        Lookalike(
            "context_init",
            "The first CUDA call of a process creates the context, often inside a cudaMalloc or cudaFree(0).",
        ),
        Lookalike("os_memory", "mmap and munmap of the program itself, in the row of OS calls."),
        Lookalike(
            "sync",
            "cudaFree may wait for the device and then looks like a synchronization. The gap disappears when nothing is freed.",
        ),
    ),
    variants=(
        Variant(
            "pinned",
            "pinned host memory",
            "allocate pinned buffers once and reuse them",
            advice(
                "Pinning is slow and stops the device: allocate pinned buffers once and reuse them.",
                pytorch=words(
                    "Pinning is slow and stops the device: allocate pinned buffers once (the caching host allocator keeps them; no pin_memory() in the step).",
                    source="pinned_memory",
                ),
                cupy=words(
                    "Pinning is slow and stops the device: cupyx.empty_pinned once, and keep the pinned memory pool.",
                    source="cupy_memory",
                ),
                mpi=words(
                    "Pinning is slow and stops the device: allocate pinned buffers once. Inside MPI calls, the library registers its own buffers: reuse the same message buffers, and send once before the loop.",
                    source="mpi_cuda",
                ),
            ),
            call=matching(r"Host(Alloc|Register|Unregister)|MallocHost|FreeHost"),
        ),
        Variant(
            "growth",
            "memory is mapped",
            "warm up with the largest sizes",
            advice(
                "An allocator maps more memory as it grows: warm up with the largest sizes, or reserve once.",
                pytorch=words(
                    "The allocator grows its segments: warm up with the largest shapes, or reserve once (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets a segment grow instead of making new ones).",
                    source="allocator",
                ),
            ),
            call=matching(r"cuMem(Create|Map|SetAccess|AddressReserve|Unmap|Release)"),
        ),
        Variant(
            "free",
            "memory is freed",
            "do not free in the step",
            advice(
                "cudaFree waits for the device: keep the buffer and reuse it, free after the loop, or use cudaFreeAsync, which does not wait.",
                pytorch=words(
                    "cudaFree waits for the device: no empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True or backend:cudaMallocAsync avoids frees for lack of memory.",
                    source="allocator",
                ),
                cupy=words(
                    "cudaFree waits for the device: no free_all_blocks() in the step; or MemoryAsyncPool.",
                    source="cupy_memory",
                ),
            ),
            call=matching(r"Free"),
        ),
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
    advice=advice(
        "Reuse host buffers. A malloc that keeps memory instead of returning it to the system (jemalloc, tcmalloc, MALLOC_TRIM_THRESHOLD_) avoids the calls."
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
        "In the row of OS calls, mmap, munmap, madvise, brk or mprotect covers the gap. Large arrays are allocated and freed in each step.",
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
            advice(
                "Large buffers are allocated and freed: reuse them, or let malloc keep them (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, MALLOC_ARENA_MAX; jemalloc or tcmalloc)."
            ),
        ),
    ),
    host=os_memory_evidence,
)


UNIFIED_MEMORY = Cause(
    id="unified_memory",
    title="Unified-memory migration",
    meaning="The next operation is a page migration of unified memory in front of work that was already launched: the device waits for page-fault handling.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=advice(
        "Prefetch with cudaMemPrefetchAsync before the kernel that touches the pages, and after the host's last touch.",
        "Advise the preferred location with cudaMemAdvise, or use explicit copies from pinned memory.",
        openacc=words(
            "Arrays are in managed memory: use data regions with separate memory (nvc: -gpu=mem:separate), or prefetch with cudaMemPrefetchAsync before the loops that touch them.",
            source="openacc",
        ),
        openmp_target=words(
            "Arrays are in managed memory. Map them in a target data region with separate memory (nvc: -gpu=mem:separate), or prefetch with cudaMemPrefetchAsync before the target regions that touch them.",
            source="openmp",
        ),
        julia=words(
            "Arrays are in unified memory: allocate device memory (CuArray{T,N,CUDA.DeviceMemory}), or call CUDA.prefetch before the kernels that touch them.",
            source="julia",
        ),
    ),
    picture="""
device  [==A==).....[migration)[==B==)
thread [B]                       B was launched long ago
""",
    bottleneck="memory",
    shade=0,
    sources=("unified_memory",),
    confirm=(
        'The GPU row shows a "Memcpy HtoD (Unified memory)" right before the next kernel. The rows of page faults have entries if they were captured (--cuda-um-gpu-page-faults=true).',
    ),
    confused_with=(
        Lookalike("blocking_copy", "A copy that the program asked for has a cudaMemcpy call; a migration has none."),
        Lookalike("device_stall", "Without rows of migrations the same wait has no cause in the trace."),
    ),
    variants=(Variant("other", "", "prefetch with cudaMemPrefetchAsync"),),
    accepted=True,
    case=LaunchCase.UNIFIED_MEMORY,
)
