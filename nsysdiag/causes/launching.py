"""Causes in and after the launch: the call itself, its way to the device, a queue that is full, and launches that the
trace does not show in full."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant, matching
from nsysdiag.causes.evidence import (
    FIRST_NS,
    FIRST_USE,
    LATENCY_LIMIT,
    EvidenceLayer,
    HostEvidence,
    Threshold,
    described,
)
from nsysdiag.gaps import gaps
from nsysdiag.gaps.gaps import LaunchCase
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
            labels=(FIRST_USE,),
            bottleneck="startup",
        ),
        Variant("other", "", "launch less: CUDA graphs, fused kernels"),
    ),
    thresholds=(
        Threshold("first", format_ns(FIRST_NS), "a first launch longer than this may load code, and is labelled so"),
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


LAUNCH_UNKNOWN = Cause(
    id="launch_unknown",
    title="Launch not in the trace",
    meaning="The next operation has no API call in the trace, so it is unknown whether the host was late.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    bottleneck="unknown",
    shade=1,
    variants=(Variant("other", "", "capture again with --trace=cuda for all processes"),),
    unresolved=True,
    resolved_by=("cuda-api",),
    case=LaunchCase.UNKNOWN,
)


NODES_MISSING = EvidenceLabel("nodes missing")
"""The label of a launch of which some nodes are in the trace."""

GRAPH_UNTRACED = Cause(
    id="graph_untraced",
    title="Untraced CUDA graph",
    meaning="A graph was launched, but the trace holds neither its kernels nor a graph row. Or it lacks nodes that other launches of the graph have. The device was probably busy.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
    bottleneck="unknown",
    shade=0,
    variants=(
        Variant(
            "dropped",
            "nodes that other launches of the graph have are not in the trace",
            "capture a shorter time, so that no rows are dropped",
            labels=(NODES_MISSING,),
        ),
        Variant("other", "", "capture again with --cuda-graph-trace=node"),
    ),
    unresolved=True,
    resolved_by=("cuda-graphs",),
)
