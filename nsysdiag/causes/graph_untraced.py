"""Untraced graphs: launches that left no trace of what they ran."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Advice, Cause, Lookalike, Variant

NODES_MISSING = EvidenceLabel("nodes missing")
"""The label of a launch of which some nodes are in the trace."""

CAUSE = Cause(
    id="graph_untraced",
    title="Untraced CUDA graph",
    meaning="A graph was launched, but the trace holds neither its kernels nor a graph row. Or it lacks nodes that other "
    "launches of the graph have. The device was probably busy.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
    advice=Advice(
        ("Capture again with --cuda-graph-trace=node (exact) or =graph, with a version that writes graph rows.",)
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
            Advice(
                (
                    "Capture again for a shorter time, or fewer kinds of events, so that no rows are dropped. What the "
                    "GPU did between the nodes in the trace is unknown.",
                )
            ),
            labels=(NODES_MISSING,),
        ),
        Variant(
            "other",
            "",
            "capture again with --cuda-graph-trace=node",
            Advice(("Capture again with --cuda-graph-trace=node: then each kernel of a graph is in the trace.",)),
        ),
    ),
    unresolved=True,
    resolved_by=("cuda-graphs",),
)
