"""GPU context switch: the device belonged to another process."""

from __future__ import annotations

import numpy as np

from nsysdiag.causes.cause import Advice, Cause, Lookalike, Variant
from nsysdiag.causes.evidence import LATENCY_LIMIT
from nsysdiag.events.gpus import slices_of_others
from nsysdiag.events.rows import distinct_values
from nsysdiag.gaps.launch_frame import DeviceSide, Explained


def explain(side: DeviceSide) -> Explained:
    """The overlap with time slices of other processes."""
    count = len(side.frame.gaps)
    owners = distinct_values(side.device.operations.process[side.frame.gaps.next]).tolist()
    slices = [
        (owner, slices_of_others(side.activity.time_slices, side.device.gpu_id, owner))
        for owner in owners
        if len(side.activity.time_slices)
    ]
    return Explained(np.zeros(count, dtype=np.bool_), np.full(count, -1, dtype=np.int64), [], slices)


CAUSE = Cause(
    id="gpu_context_switch",
    title="Another process had the GPU",
    meaning="The operation was launched, and the GPU was in the time slice of another process.",
    side="device",
    tables=("GPU_CONTEXT_SWITCH_EVENTS",),
    advice=Advice(("Two processes share this GPU: use MPS, MIG or another GPU.",)),
    picture="""
process 1  [==A==)              [==next==)
process 2         [time slice)
""",
    bottleneck="other_process",
    shade=0,
    sources=("mps", "nsight_cli"),
    thresholds=(LATENCY_LIMIT,),
    confirm=(
        "With --gpuctxsw=true the row of GPU context switches shows a time slice of another process in the gap. Without it, GPU counters that are busy in the gaps say the same.",
        "nvidia-smi lists the processes on the GPU. With MPS or MIG they share it without time slices.",
    ),
    confused_with=(
        Lookalike("device_stall", "The same without rows of context switches."),
        Lookalike("off_cpu", "There, another thread had the CPU."),
    ),
    variants=(Variant("other", "", "share the GPU with MPS or MIG, or use another"),),
    accepted=True,
    device=explain,
)
