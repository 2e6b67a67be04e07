"""Other CUDA calls of the launching thread."""

from __future__ import annotations

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, Variant, matching
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of

IN_LIBRARY = EvidenceLabel("inside a library call")


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """All other outermost CUDA calls; cuBLAS and cuDNN calls take what the CUDA calls inside them left."""
    return [layer_of(evidence.calls()), layer_of(evidence.host.libraries, IN_LIBRARY)]


CAUSE = Cause(
    id="cuda_api",
    title="Other CUDA calls before the launch",
    meaning="The launching thread was inside another CUDA call: launches of other work, queries, event records, or a library call.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "CUBLAS_EVENTS", "CUDNN_EVENTS"),
    advice=Advice(
        (
            "The evidence names the call. Cache what it returns (attributes, occupancy, pointers), and move it out of "
            "the step.",
        )
    ),
    picture="""
device  [==A==)...............................[==next==)
thread         [cudaEventRecord][cudaFuncGet.][launch]
""",
    bottleneck="launch",
    shade=2,
    sources=("asynchronous",),
    rows=(EvidenceRows.CALL,),
    confirm=(
        "The CUDA API row is filled with short calls between two launches: cudaEventRecord, cudaStreamWaitEvent, cudaFuncGetAttributes, cuBLAS or cuDNN calls, launches of other streams.",
        "Sort the calls by name in the CUDA API summary: the one with the most calls is the one to remove.",
    ),
    confused_with=(
        Lookalike("host_compute", "Time between the calls, in the program's own code."),
        Lookalike("launch_call", "The call that launches the very next operation."),
    ),
    variants=(
        Variant(
            "launches",
            "launches of other work",
            "launch less: CUDA graphs, fused kernels",
            Advice(
                plain=(
                    "The thread was launching work on other streams or devices, which did not end this gap. Use one "
                    "thread per GPU, or fewer launches (CUDA graphs, fused kernels).",
                ),
                pytorch=FrameworkAdvice(
                    (
                        "The thread was launching work on other streams or devices, which did not end this gap. Use "
                        "one process per GPU, or fewer launches (CUDA graphs, torch.compile(mode='reduce-overhead')).",
                    ),
                    source="torch_graphs",
                ),
            ),
            call=matching(r"Launch|MemcpyAsync|MemsetAsync|Memcpy|Memset"),
        ),
        Variant(
            "properties",
            "device properties are queried",
            "query once and keep the result",
            Advice(
                ("Query once and keep the result; cudaDeviceGetAttribute is far cheaper than cudaGetDeviceProperties.",)
            ),
            call=matching(
                r"GetDeviceProperties|GetAttribute|FuncGetAttributes|Occupancy|PointerGetAttributes|MemGetInfo"
            ),
        ),
        Variant("other", "", "move the call out of the step, or cache its result"),
    ),
    host=evidence,
    names_call=True,
)
