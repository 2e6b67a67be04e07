"""Other CUDA calls of the launching thread."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of


def evidence(evidence: HostEvidence) -> list[Layer]:
    """All other outermost CUDA calls; cuBLAS and cuDNN calls take what the CUDA calls inside them left."""
    return [layer_of(evidence.calls()), layer_of(evidence.host.libraries, "inside a library call")]


CAUSE = Cause(
    id="cuda_api",
    title="Other CUDA API call",
    meaning="The launching thread was inside another CUDA call: launches of other work, queries, event records, or a library call.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUBLAS_EVENTS", "CUDNN_EVENTS"),
    advice=(
        "See which call it is in the evidence; cache what it asks for (attributes, occupancy, pointers), and take it out of the step.",
    ),
    color="#ea580c",
    picture="""
device  [==A==)...............................[==next==)
thread         [cudaEventRecord][cudaFuncGet.][launch]
""",
    host=evidence,
)
