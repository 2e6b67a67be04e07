"""Queued work not started: the operation was launched, and the device did not start it."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Advice, Cause, Lookalike, Variant
from nsysdiag.causes.evidence import LATENCY_LIMIT
from nsysdiag.events.operations import Category
from nsysdiag.gaps.launch_frame import DeviceSide, Explained

BETWEEN_COPIES = EvidenceLabel("between queued copies")


def explain(side: DeviceSide) -> Explained:
    """All that is left on the device side."""
    gaps, category = side.frame.gaps, side.device.operations.category
    copies = (category[gaps.previous] == Category.MEMCPY) & (category[gaps.next] == Category.MEMCPY)
    return Explained(np.ones(len(gaps), dtype=np.bool_), np.where(copies, 0, -1), [BETWEEN_COPIES], [])


CAUSE = Cause(
    id="device_stall",
    title="Queued work not started",
    meaning="The operation had been launched long before, nothing in the trace held it back, and the device did not "
    "start it.",
    side="device",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    advice=Advice(
        ("Look for what the trace lacks: dependencies through untraced events, other processes, power states.",)
    ),
    picture="""
device  [==A==)..............[==next==)
thread [launch]                          long ago
""",
    bottleneck="unknown",
    shade=4,
    sources=("asynchronous",),
    thresholds=(LATENCY_LIMIT,),
    confirm=(
        "The launch call returned long before, nothing else runs on the GPU, and no event or barrier is in the trace. Look for what the capture lacks: --cuda-event-trace=true, --gpuctxsw=true, page faults of unified memory.",
    ),
    confused_with=(
        Lookalike("stream_wait", "With rows of events this becomes a wait for another stream."),
        Lookalike("gpu_context_switch", "With rows of context switches this becomes another process."),
        Lookalike("unified_memory", "With page faults captured this becomes a migration."),
    ),
    variants=(
        Variant(
            "copies",
            "between queued copies",
            "merge small copies",
            Advice(
                ("Between queued copies this is set-up time, about 30 µs each: merge small copies into larger ones.",)
            ),
            labels=(BETWEEN_COPIES,),
        ),
        Variant("other", "", "look for dependencies that were not traced"),
    ),
    accepted=True,
    device=explain,
)
