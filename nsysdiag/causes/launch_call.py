"""The launch call itself."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause, Rows
from nsysdiag.causes.variant import Variant, matching

CAUSE = Cause(
    id="launch_call",
    title="Inside the launch call",
    meaning="The device was idle while the thread was inside the call that launches the next operation.",
    side="call",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=(
        "Many small launches: use CUDA graphs, torch.compile(mode='reduce-overhead') or fused kernels.",
        "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
    ),
    color="#d16d24",
    picture="""
device  [==A==)........[==next==)
thread          [launch  ]
""",
    family="launch",
    sources=("asynchronous", "cuda_graphs", "torch_graphs"),
    rows=(Rows.LAUNCH,),
    variants=(
        Variant(
            "graph",
            "a graph is launched",
            "cudaGraphUpload ahead of the launch; fewer nodes",
            (
                "The launch of a whole graph takes the time of its nodes: cudaGraphUpload ahead of it, fewer and larger nodes.",
            ),
            call=matching(r"GraphLaunch"),
        ),
        Variant("other", "", "launch less: CUDA graphs, torch.compile(mode='reduce-overhead')"),
    ),
    opening="{thread} is inside {call}",
)
