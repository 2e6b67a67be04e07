"""Unknown launch: an operation without an API call."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, Lookalike, Variant
from nsysdiag.gaps.launch_frame import LaunchCase

CAUSE = Cause(
    id="launch_unknown",
    title="Launch not in the trace",
    meaning="The next operation has no API call in the trace, so it is unknown whether the host was late.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(
        ("Capture again with --trace=cuda for all processes of the run, so that each operation has its launch.",)
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
