"""Causes in and after the launch: the call itself, its way to the device, and a queue that is full."""

from __future__ import annotations

from nsysdiag.causes import call_facts
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant, matching
from nsysdiag.causes.evidence import LATENCY_LIMIT, EvidenceLayer, HostEvidence, Threshold, described
from nsysdiag.gaps import gaps
from nsysdiag.trace.enums import OverheadType
from nsysdiag.units import format_ns

LAUNCH_CALL = Cause(
    id="launch_call",
    title="Long launch calls",
    busy_title="Launch calls",
    meaning="The device was idle while the thread was inside the call that launches the next operation.",
    side="call",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    bottleneck="launch",
    shade=3,
    rows=(EvidenceRows.LAUNCH,),
    variants=(
        Variant(
            "graph",
            "a graph is launched",
            "cudaGraphUpload ahead of the launch; fewer nodes",
            call=matching("GraphLaunch"),
        ),
        Variant(
            "copy",
            "a copy or a set is issued",
            "copy from pinned memory; look at what holds the call",
            call=matching("(cuda|cu)(Memcpy|Memset|MemPrefetch)\\w*"),
        ),
        Variant(
            "first_use",
            "first use of a kernel",
            "run each kernel once during warm-up",
            labels=(call_facts.FIRST_USE,),
            bottleneck="startup",
        ),
        Variant("other", "", "launch less: CUDA graphs, fused kernels"),
    ),
    thresholds=(
        Threshold(
            "first", format_ns(call_facts.FIRST_NS), "a first launch longer than this may load code, and is labelled so"
        ),
    ),
    opening="{thread} is inside {call}",
    names_call=True,
)


LAUNCH_LATENCY = Cause(
    id="launch_latency",
    title="Launch latency",
    meaning="The launch call had returned, and the operation was on its way to an idle device, within the usual launch latency.",
    side="call",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    bottleneck="launch",
    shade=4,
    thresholds=(
        Threshold(
            "latency",
            format_ns(gaps.DEFAULT_NS),
            "default launch latency, used if the trace has too few cases to calibrate it",
        ),
        Threshold("latency_samples", str(gaps.LATENCY_SAMPLES), "launches to an idle device needed to calibrate it"),
        Threshold(
            "latency_percentile", f"{gaps.LATENCY_PERCENTILE}%", "percentile of their delays that is the latency"
        ),
        LATENCY_LIMIT,
    ),
    rows=(EvidenceRows.LAUNCH,),
    variants=(Variant("other", "", "launch ahead, so that launches overlap with kernels"),),
    opening="launches of {thread} find the device idle",
)


def queue_full_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Command-buffer-full rows of the thread."""
    overhead = evidence.host.overhead
    return [described(overhead.take(overhead.kind == OverheadType.COMMAND_BUFFER_FULL))]


queue_full_nested_evidence = queue_full_evidence


QUEUE_FULL = Cause(
    id="queue_full",
    title="Launch queue full",
    meaning="The launch queue of a device was full, so the launching thread had to wait: the host is ahead, not late.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_OVERHEAD",),
    bottleneck="launch",
    shade=1,
    rows=(EvidenceRows.OVERHEAD,),
    variants=(Variant("other", "", "one launching thread for each GPU"),),
    host=queue_full_evidence,
    call=queue_full_nested_evidence,
    call_order=90,
)
