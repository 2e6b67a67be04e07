"""Causes between operations that were launched in time: dispatch, nodes of a graph, stalls, other processes."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Cause, Variant
from nsysdiag.causes.evidence import LATENCY_LIMIT, Threshold
from nsysdiag.events.gpus import slices_of_others
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import distinct_values
from nsysdiag.gaps import gaps
from nsysdiag.gaps.launch_frame import DeviceSide, Explained, LaunchCase
from nsysdiag.units import format_ns

DISPATCH = Cause(
    id="dispatch",
    title="Dispatch between queued operations",
    meaning="The next operation was already queued and started within the dispatch floor: the time that the hardware needs between two operations.",
    side="gap",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    bottleneck="launch",
    shade=0,
    thresholds=(
        Threshold(
            "floor",
            format_ns(gaps.DEFAULT_NS),
            "default dispatch floor, used if the trace has too few cases to calibrate it",
        ),
        Threshold("floor_samples", str(gaps.FLOOR_SAMPLES), "gaps between queued operations needed to calibrate it"),
        Threshold("floor_percentile", f"{gaps.FLOOR_PERCENTILE}%", "percentile of those gaps that is the floor"),
        Threshold(
            "floor_range",
            f"{format_ns(gaps.FLOOR_LOWEST_NS)} to {format_ns(gaps.FLOOR_HIGHEST_NS)}",
            "bounds of the calibrated floor",
        ),
    ),
    variants=(Variant("other", "", "fewer, larger kernels, or a CUDA graph"),),
    accepted=True,
    case=LaunchCase.DISPATCH,
)


INTRA_GRAPH = Cause(
    id="intra_graph",
    title="Between nodes of one CUDA graph",
    meaning="The operations on both sides are nodes of the same graph launch: the dependency is in the graph.",
    side="gap",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    bottleneck="kernels",
    shade=0,
    variants=(Variant("other", "", "let independent branches of the graph run side by side"),),
    accepted=True,
    case=LaunchCase.INTRA_GRAPH,
)


BETWEEN_COPIES, UNSEEN_EVENT = EvidenceLabel("between queued copies"), EvidenceLabel("waits for an event")


def device_stall_explained(side: DeviceSide) -> Explained:
    """All that is left on the device side."""
    gaps, category = side.frame.gaps, side.device.operations.category
    copies = (category[gaps.previous] == Category.MEMCPY) & (category[gaps.next] == Category.MEMCPY)
    label = np.select([side.waits.unseen, copies], [1, 0], -1)
    return Explained(np.ones(len(gaps), dtype=np.bool_), label, [BETWEEN_COPIES, UNSEEN_EVENT], [])


DEVICE_STALL = Cause(
    id="device_stall",
    title="Queued work not started",
    meaning="The operation had been launched long before, nothing in the trace held it back, and the device did not start it.",
    side="device",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    bottleneck="unknown",
    shade=4,
    thresholds=(LATENCY_LIMIT,),
    variants=(
        Variant("copies", "between queued copies", "merge small copies", labels=(BETWEEN_COPIES,)),
        Variant(
            "event",
            "its stream waits for an event whose record is not in the trace",
            "trace what records the event",
            labels=(UNSEEN_EVENT,),
        ),
        Variant("other", "", "look for dependencies that were not traced"),
    ),
    accepted=True,
    device=device_stall_explained,
)


def gpu_context_switch_explained(side: DeviceSide) -> Explained:
    """The overlap with time slices of other processes."""
    count = len(side.frame.gaps)
    owners = distinct_values(side.device.operations.process[side.frame.gaps.next]).tolist()
    slices = [
        (owner, slices_of_others(side.activity.time_slices, side.device.gpu_id, owner))
        for owner in owners
        if len(side.activity.time_slices)
    ]
    return Explained(np.zeros(count, dtype=np.bool_), np.full(count, -1, dtype=np.int64), [], slices)


GPU_CONTEXT_SWITCH = Cause(
    id="gpu_context_switch",
    title="Another process had the GPU",
    meaning="The operation was launched, and the GPU was in the time slice of another process.",
    side="device",
    tables=("GPU_CONTEXT_SWITCH_EVENTS",),
    bottleneck="other_process",
    shade=0,
    thresholds=(LATENCY_LIMIT,),
    variants=(Variant("other", "", "share the GPU with MPS or MIG, or use another"),),
    accepted=True,
    device=gpu_context_switch_explained,
)
