"""Launch latency: from the end of the launch call to the device."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause

CAUSE = Cause(
    id="launch_latency",
    title="Launch latency",
    meaning="The launch call had returned and the operation was on its way to an idle device, for no longer than such a launch may take.",
    side="call",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=(
        "Launch earlier: queue work ahead instead of waiting for results, so that launches overlap with running kernels.",
        "Put the sequence into a CUDA graph: one launch for many kernels.",
    ),
    color="#f59e0b",
    picture="""
device  ............|.L.|[==next==)
thread     [launch]
""",
)
