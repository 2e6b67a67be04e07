"""Inside a graph: dependencies between the nodes of one launch."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, Lookalike, Variant
from nsysdiag.gaps.launch_frame import LaunchCase

CAUSE = Cause(
    id="intra_graph",
    title="Between nodes of one CUDA graph",
    meaning="The operations on both sides are nodes of the same graph launch: the dependency is in the graph.",
    side="gap",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(("Look for long dependency chains in the graph; independent branches can run side by side.",)),
    picture="""
device  [node 1)......[node 2)
thread [cudaGraphLaunch]         one launch for both
""",
    bottleneck="kernels",
    shade=0,
    sources=("cuda_graphs",),
    confirm=(
        "With --cuda-graph-trace=node both kernels carry the same graph launch: select one, and the same cudaGraphLaunch is highlighted for both.",
        "In the graph of the program, the second node depends on the first, or on a node that ended where the gap ends.",
    ),
    confused_with=(
        Lookalike("dispatch", "The gap between two kernels that were launched one by one."),
        Lookalike("graph_untraced", "There, the nodes are not in the trace at all."),
    ),
    variants=(Variant("other", "", "let independent branches of the graph run side by side"),),
    accepted=True,
    case=LaunchCase.INTRA_GRAPH,
)
