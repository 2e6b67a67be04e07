"""Causes of what the trace does not show: waits in untraced calls, unknown launches, untraced graphs, and the rest."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import union
from nsysdiag.causes.cause import Cause, EvidenceRows, Lookalike, Variant, advice
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
    advice=advice("Capture again with --trace=osrt: the trace then names the call."),
    picture="""
device  [==A==)......................[==next==)
thread         |scheduled out|[launch]
CPU            |     idle    |
""",
    bottleneck="unknown",
    shade=2,
    sources=("nsight_sampling", "nsight_osrt"),
    rows=(EvidenceRows.SCHEDULING,),
    confirm=(
        "The row of thread states shows the thread blocked, its CPU idle, and no OS call. CPython's waits with a time limit, futex calls of static binaries and page faults of mapped files look like this.",
        "The call chain of the CPU sample before the wait often names the function. Trace OS calls (--trace=osrt) if they are not in the trace.",
    ),
    confused_with=(
        Lookalike("off_cpu", "There, another thread had the CPU."),
        Lookalike("lock_wait", "A wait in a call that was traced."),
        Lookalike("uncovered", "Without scheduling events, it is unknown whether the thread waited at all."),
    ),
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
    advice=advice(
        "Capture again with --trace=cuda for all processes of the run, so that each operation has its launch."
    ),
    picture="""
device  [==A==)..........[==B==)
thread   ?                       no call has B's correlation id
""",
    bottleneck="unknown",
    shade=1,
    sources=("nsight_cli", "activity"),
    confirm=(
        "Select the next kernel: no CUDA API call is highlighted with it. Often the capture began after the launch, or events were dropped; the diagnostics summary of Nsight Systems says so.",
    ),
    confused_with=(
        Lookalike("uncovered", "There, the launch is known, but not what the thread did before it."),
        Lookalike("graph_untraced", "There, the launch is in the trace, but the kernels are not."),
    ),
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
    advice=advice(
        "Capture again with --cuda-graph-trace=node (exact) or =graph, with a version that writes graph rows."
    ),
    picture="""
device  [==A==)  ? ? ? ? ? ?  [==B==)
thread     [cudaGraphLaunch]   [sync]    neither kernels nor GRAPH_TRACE
""",
    bottleneck="unknown",
    shade=0,
    sources=("nsight_cli", "activity"),
    confirm=(
        "The CUDA API row has cudaGraphLaunch calls, and below them the GPU row is empty. Capture again with --cuda-graph-trace=node.",
    ),
    confused_with=(
        Lookalike(
            "uncovered", "There, nothing was launched; here, a graph was launched, and the trace lacks its kernels."
        ),
        Lookalike(
            "sync", "The thread often waits for the graph in a synchronization: the GPU was busy then, not idle."
        ),
    ),
    variants=(
        Variant(
            "dropped",
            "nodes that other launches of the graph have are not in the trace",
            "capture a shorter time, so that no rows are dropped",
            advice(
                "Capture again for a shorter time, or fewer kinds of events, so that no rows are dropped. What the GPU did between the nodes in the trace is unknown."
            ),
            labels=(NODES_MISSING,),
        ),
        Variant(
            "other",
            "",
            "capture again with --cuda-graph-trace=node",
            advice("Capture again with --cuda-graph-trace=node: then each kernel of a graph is in the trace."),
        ),
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
    advice=advice("Capture again with --trace=osrt, --cpuctxsw and --sample: they show what the thread did."),
    picture="""
device  [==A==)......................[==next==)
thread             ?  ?  ?  ?  [launch]
""",
    bottleneck="unknown",
    shade=3,
    sources=("nsight_cli",),
    confirm=(
        "The launching thread has no row of any kind there. `nsysdiag info TRACE` says which kinds of evidence the capture lacks, and the report ends with the command that captures them.",
    ),
    confused_with=(
        Lookalike(
            "host_compute", "The most frequent case. With --cpuctxsw and --sample it becomes host code or a wait."
        ),
        Lookalike("blocked", "With scheduling events alone, a wait becomes this."),
    ),
    variants=(Variant("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    unresolved=True,
    opening="it is unknown what {thread} did",
    resolved_by=("os-runtime", "scheduling", "cpu-samples"),
)
