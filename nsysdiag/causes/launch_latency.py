"""Launch latency: from the end of the launch call to the device."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, Variant
from nsysdiag.causes.evidence import LATENCY_LIMIT, Threshold
from nsysdiag.gaps import gaps
from nsysdiag.units import format_ns

CAUSE = Cause(
    id="launch_latency",
    title="Launch latency",
    meaning="The launch call had returned, and the operation was on its way to an idle device, within the usual launch "
    "latency.",
    side="call",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(
        plain=(
            "Launch earlier: queue work ahead instead of waiting for results, so that launches overlap with running kernels.",
            "Put the sequence into a CUDA graph: one launch for many kernels.",
        ),
        openacc=FrameworkAdvice(
            (
                "Launch earlier: add async to compute constructs and updates, so that the host queues work ahead instead of "
                "waiting for each.",
            ),
            source="openacc",
            fix="launch ahead: async on compute constructs",
        ),
        openmp_target=FrameworkAdvice(
            (
                "Launch earlier: add nowait to target constructs and updates, so that the host queues work ahead "
                "instead of waiting for each.",
            ),
            source="openmp",
            fix="launch ahead: nowait on target constructs",
        ),
    ),
    picture="""
device  ............|.L.|[==next==)
thread     [launch]
""",
    bottleneck="launch",
    shade=4,
    sources=("asynchronous", "cuda_graphs"),
    thresholds=(
        Threshold(
            "latency",
            format_ns(gaps.DEFAULT_NS),
            "default launch latency, used where the trace has too few cases to calibrate it",
        ),
        Threshold(
            "latency_samples",
            str(gaps.LATENCY_SAMPLES),
            "launches to an idle device needed to calibrate it",
        ),
        Threshold(
            "latency_percentile",
            f"{gaps.LATENCY_PERCENTILE}%",
            "percentile of their delays that is the latency",
        ),
        LATENCY_LIMIT,
    ),
    rows=(EvidenceRows.LAUNCH,),
    confirm=(
        "The launch call has returned, the GPU is idle, and the kernel starts some µs later. It is as long for each launch to an idle GPU.",
        "Many gaps of this kind mean that nothing is queued: the host launches one kernel at a time.",
    ),
    confused_with=(
        Lookalike("dispatch", "There, the operation was queued behind a running one."),
        Lookalike("device_stall", "The same, but longer than three times the latency of this trace."),
        Lookalike("launch_call", "The time inside the call itself."),
    ),
    variants=(Variant("other", "", "launch ahead, so that launches overlap with kernels"),),
    opening="launches of {thread} find the device idle",
)
