"""Causes of what the trace does not show: waits in untraced calls, unknown launches, untraced graphs, and the rest."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import union
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, plain_layer
from nsysdiag.gaps.launch_frame import LaunchCase


def blocked_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Unexplained time scheduled out. It does not prove contention: the CPU may have been idle."""
    return [plain_layer(union(evidence.host.scheduling.out), "scheduled out; no OS call was traced")]


BLOCKED = Cause(
    id="blocked",
    title="Blocked in an untraced call",
    meaning="The launching thread was scheduled out, waiting in a call that was not captured.",
    side="host",
    tables=("SCHED_EVENTS",),
    bottleneck="unknown",
    shade=2,
    rows=(EvidenceRows.SCHEDULING,),
    variants=(Variant("other", "", "capture again with --trace=osrt"),),
    host=blocked_evidence,
    unresolved=True,
    opening="{thread} is scheduled out, in no traced call",
    resolved_by=("os-runtime",),
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


UNCOVERED = Cause(
    id="uncovered",
    title="Unexplained idle time",
    busy_title="Unexplained time of the host",
    meaning="The trace does not show what the launching thread did here.",
    side="host",
    tables=(),
    bottleneck="unknown",
    shade=3,
    variants=(Variant("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    unresolved=True,
    opening="it is unknown what {thread} did",
    resolved_by=("os-runtime", "scheduling", "cpu-samples"),
)
