"""The launch call itself."""

from __future__ import annotations

from nsysdiag.causes.cause import Cause

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
    color="#f97316",
    picture="""
device  [==A==)........[==next==)
thread          [launch  ]
""",
)
