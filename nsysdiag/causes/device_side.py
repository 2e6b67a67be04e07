"""Causes between operations that were launched in time: dispatch, nodes of a graph, stalls, other processes, events that
order streams, host functions, and the barrier of the legacy default stream."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.causes import blocking_copy, sync
from nsysdiag.causes.cause import Cause, Variant
from nsysdiag.causes.evidence import LATENCY_LIMIT, EvidenceLayer, HostEvidence, Threshold, plain_layer
from nsysdiag.events.event_waits import HOST_FUNCTIONS, SLACK_NS
from nsysdiag.events.gpus import slices_of_others
from nsysdiag.events.operations import Category
from nsysdiag.events.rows import NamedRows
from nsysdiag.gaps import gaps
from nsysdiag.gaps.gaps import (
    LABELS,
    OTHER_DEVICE,
    WAITS_FOR_COMMUNICATION,
    WAITS_FOR_COPY,
    DeviceSide,
    Explained,
    LaunchCase,
)
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


def stream_wait_explained(side: DeviceSide) -> Explained:
    """All that is left of a gap whose next operation waited for an event that explains it."""
    return Explained(side.frame.event_wait, side.waits.label, LABELS, [])


STREAM_WAIT = Cause(
    id="stream_wait",
    title="Waiting for another stream",
    meaning="The operation was launched, but cudaStreamWaitEvent held its stream until an operation of another stream was done.",
    side="device",
    tables=("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
    bottleneck="sync",
    shade=1,
    thresholds=(
        Threshold("slack", format_ns(gaps.SLACK_NS), "the producer may end this long before the gap begins"),
        LATENCY_LIMIT,
    ),
    variants=(
        Variant(
            "communication",
            "for communication",
            "start it earlier, in smaller buckets",
            labels=(WAITS_FOR_COMMUNICATION,),
        ),
        Variant("copy", "for a copy", "start the copy earlier, on a stream of its own", labels=(WAITS_FOR_COPY,)),
        Variant("device", "for another device", "balance the work of the devices", labels=(OTHER_DEVICE,)),
        Variant("other", "", "record the event right after the producer"),
    ),
    accepted=True,
    device=stream_wait_explained,
)


def held_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Synchronization calls and blocking copies while a host function runs in the stream that they wait for."""
    return [_held(evidence, evidence.calls(sync.CALLS)), *held_copies(evidence)]


def held_copies(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Blocking copies alone, which launch what they wait for."""
    copies = evidence.calls(blocking_copy.COPIES)
    return [_held(evidence, copies.take(blocking_copy.is_blocking(evidence, copies)))]


def _held(evidence: HostEvidence, calls: NamedRows) -> EvidenceLayer:
    held = evidence.facts.held
    call_at = np.full(int(max(calls.row.max(initial=-1), held.row.max(initial=-1))) + 1, -1, dtype=np.int64)
    call_at[calls.row] = np.arange(len(calls))
    found = np.flatnonzero(call_at[held.row] >= 0) if len(call_at) else np.empty(0, dtype=np.int64)
    axis = evidence.host.axis
    lane = calls.spans.start[call_at[held.row[found]]] // axis.stride
    return plain_layer(axis.place(lane, held.spans[found]), "waits for a stream in which a host function runs")


def held_explained(side: DeviceSide) -> Explained:
    """All that is left of a gap whose next operation is behind a host function of its stream."""
    return Explained(side.frame.held, np.full(len(side.frame.gaps), -1, dtype=np.int64), [], [])


HOST_FUNCTION = Cause(
    id="host_function",
    title="Waiting for a host function",
    meaning="The operation was launched, but a host function before it in its stream had not returned: cudaLaunchHostFunc, or a host node of a CUDA graph.",
    side="device",
    tables=(HOST_FUNCTIONS,),
    bottleneck="sync",
    thresholds=(
        Threshold("slack", format_ns(SLACK_NS), "the function may end this long before the next operation begins"),
    ),
    variants=(Variant("other", "", "return at once from the host function"),),
    accepted=True,
    host=held_evidence,
    call=held_copies,
    call_order=55,
    device=held_explained,
)


def stream_barrier_explained(side: DeviceSide) -> Explained:
    """Gaps between two streams of one context of which one is its legacy default stream; streams that were made
    non-blocking take no part."""
    gaps, streams = side.frame.gaps, side.activity.streams
    operations, code = side.device.operations, side.device.stream_code
    before, after = code[gaps.previous], code[gaps.next]
    same_context = operations.context[gaps.previous] == operations.context[gaps.next]
    same_context &= operations.process[gaps.previous] == operations.process[gaps.next]
    one_is_null = streams.null[before] | streams.null[after]
    blocking = ~(streams.non_blocking[before] | streams.non_blocking[after])
    known = (operations.stream[gaps.previous] >= 0) & (operations.stream[gaps.next] >= 0)
    whole = known & (before != after) & same_context & one_is_null & blocking
    return Explained(whole, np.full(len(gaps), -1, dtype=np.int64), [], [])


STREAM_BARRIER = Cause(
    id="stream_barrier",
    title="Barrier of the default stream",
    meaning="The operations run on different streams, one of them the legacy default stream. It waits for all blocking streams, and they wait for it.",
    side="device",
    tables=("TARGET_INFO_CUDA_STREAM",),
    bottleneck="sync",
    shade=2,
    thresholds=(LATENCY_LIMIT,),
    variants=(Variant("other", "", "use explicit non-blocking streams"),),
    accepted=True,
    device=stream_barrier_explained,
)
