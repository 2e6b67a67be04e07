"""Unified memory: pages move before work that was already launched."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, FrameworkAdvice, Lookalike, Variant
from nsysdiag.gaps.launch_frame import LaunchCase

CAUSE = Cause(
    id="unified_memory",
    title="Unified-memory migration",
    meaning="The next operation is a page migration of unified memory in front of work that was already launched: the device waits for page-fault handling.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(
        plain=(
            "Prefetch with cudaMemPrefetchAsync before the kernel that touches the pages, and after the host's last touch.",
            "Advise the preferred location with cudaMemAdvise, or use explicit copies from pinned memory.",
        ),
        openacc=FrameworkAdvice(
            (
                "Arrays are in managed memory: use data regions with separate memory (nvc: -gpu=mem:separate), or prefetch "
                "with cudaMemPrefetchAsync before the loops that touch them.",
            ),
            source="openacc",
        ),
        openmp_target=FrameworkAdvice(
            (
                "Arrays are in managed memory. Map them in a target data region with separate memory (nvc: "
                "-gpu=mem:separate), or prefetch with cudaMemPrefetchAsync before the target regions that touch "
                "them.",
            ),
            source="openmp",
        ),
        julia=FrameworkAdvice(
            (
                "Arrays are in unified memory: allocate device memory (CuArray{T,N,CUDA.DeviceMemory}), or call "
                "CUDA.prefetch before the kernels that touch them.",
            ),
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
