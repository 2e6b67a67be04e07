"""Dispatch: the small step from one queued operation to the next."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause

CAUSE = Cause(
    id="dispatch",
    title="Dispatch between queued operations",
    meaning="The next operation was already launched and started within the dispatch floor: what the hardware needs from one operation to the next.",
    side="gap",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=(
        "Fewer, larger kernels: fuse element-wise operations (torch.compile, custom fusion), or run the step as a CUDA graph.",
    ),
    color="#94a3b8",
    picture="""
device  [==A==)|floor|[==B==)
thread [B]                       B was launched before A ended
""",
    accepted=True,
)
