"""Graph building: a CUDA graph is captured, instantiated, updated or uploaded."""

from __future__ import annotations

import re

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import Intervals, nearest_before
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of, nested_calls, plain_layer
from nsysdiag.causes.ids import GRAPH_BUILD

CALLS = re.compile(
    r"(cuda|cu)Graph(Instantiate|Upload|Create|Clone|Add\w*Node|AddDependencies|Exec\w*(Update|SetParams)|KernelNodeSetParams)\w*"
)
BEGIN = re.compile(r"(cuda|cu)StreamBeginCapture\w*")
END = re.compile(r"(cuda|cu)StreamEndCapture")
CAPTURE = EvidenceLabel("capture")


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Stream captures from begin to end, each as one interval, and outermost calls that build or change a graph."""
    return [_captures(evidence), layer_of(evidence.calls(CALLS))]


def _captures(evidence: HostEvidence) -> EvidenceLayer:
    """Each end of a capture with the last begin before it on the same thread."""
    begin, end = evidence.calls(BEGIN), evidence.calls(END)
    before = nearest_before(begin.spans.start, end.spans.start)
    stride = evidence.host.axis.stride
    paired = before >= 0
    paired &= begin.spans.start[before] // stride == end.spans.start // stride if len(begin) else False
    spans = Intervals(begin.spans.start[before[paired]], end.spans.end[paired])
    return plain_layer(spans, "stream capture", CAPTURE)


CAUSE = Cause(
    id=GRAPH_BUILD,
    title="CUDA graph building",
    meaning="The launching thread was capturing, instantiating, updating or uploading a CUDA graph.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME",),
    advice=Advice(
        plain=(
            "Build graphs once and replay them; update parameters in place instead of instantiating again.",
            "Varying sizes force new captures: pad to a few sizes.",
        ),
        pytorch=FrameworkAdvice(
            (
                "Capture once per shape and replay. Varying shapes force new captures "
                "(torch.compile(mode='reduce-overhead') captures each shape separately): pad to a few sizes, or mark "
                "dimensions dynamic.",
            ),
            source="torch_graphs",
        ),
    ),
    picture="""
device  [==A==).......................[==graph==)
thread         [capture][instantiate][launch]
""",
    bottleneck="startup",
    shade=2,
    sources=("cuda_graphs",),
    rows=(EvidenceRows.CALL,),
    confirm=(
        "In the CUDA API row, cudaStreamBeginCapture to cudaStreamEndCapture, cudaGraphInstantiate, cudaGraphExecUpdate or cudaGraphUpload covers the gap. In a steady loop it should come once.",
    ),
    confused_with=(
        Lookalike("launch_call", "cudaGraphLaunch itself: launching is not building."),
        Lookalike("module_load", "The first instantiation may load code."),
    ),
    variants=(
        Variant(
            "capture",
            "a graph is captured",
            "capture once for each shape and replay",
            Advice(("Capture once for each shape, before the loop; pad varying shapes to a few sizes.",)),
            labels=(CAPTURE,),
        ),
        Variant(
            "instantiate",
            "a graph is instantiated",
            "update the graph in place: cudaGraphExecUpdate",
            Advice(
                (
                    "Instantiate once and use cudaGraphExecUpdate where only parameters change; cudaGraphUpload ahead of the launch.",
                )
            ),
            call=matching(r"Instantiate"),
        ),
        Variant("other", "", "build graphs once and replay them"),
    ),
    host=evidence,
    call=nested_calls(CALLS),
    call_order=70,
)
