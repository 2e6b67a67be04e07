"""Causes between operations that were launched in time: dispatch, nodes of a graph, stalls, other processes."""

from __future__ import annotations

import numpy as np

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Cause, Lookalike, Variant, advice, words
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
    advice=advice(
        "Fewer, larger kernels: fuse kernels that work on the same data, or run the step as a CUDA graph.",
        pytorch=words(
            "Fewer, larger kernels: fuse element-wise operations (torch.compile, custom kernels), or run the step as a CUDA graph (torch.compile(mode='reduce-overhead'), torch.cuda.graph).",
            source="torch_graphs",
        ),
        jax=words(
            "Fewer, larger kernels: put the whole step under one jax.jit, so that XLA can fuse it.", source="jax_gpu"
        ),
        tensorflow=words(
            "Fewer, larger kernels: put the whole step into one tf.function(jit_compile=True), so that XLA can fuse it.",
            source="tf_gpu",
        ),
        cupy=words(
            "Fewer, larger kernels: cupy.fuse or an ElementwiseKernel for chains of element-wise operations.",
            source="cupy_speed",
        ),
        openacc=words(
            "Fewer, larger kernels: join neighbouring parallel loops into one, collapse nested ones.", source="openacc"
        ),
        openmp_target=words(
            "Fewer, larger kernels: join neighbouring target loops into one, collapse nested ones.", source="openmp"
        ),
        julia=words(
            "Fewer, larger kernels: fuse broadcasts (one dotted expression, @.), or write one kernel for the chain.",
            source="julia",
        ),
    ),
    picture="""
device  [==A==)|floor|[==B==)
thread [B]                       B was launched before A ended
""",
    bottleneck="launch",
    shade=0,
    sources=("asynchronous", "cuda_graphs"),
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
    confirm=(
        "Zoom in until the gap is a few µs long. The CUDA API row shows that the call of the next kernel had returned before the kernel before it ended.",
        "The report gives the dispatch floor that it calibrated from this trace. A gap below it is normal for the hardware.",
    ),
    confused_with=(
        Lookalike(
            "launch_latency",
            "There the GPU was idle when the launch call returned; here the next operation was already queued.",
        ),
        Lookalike("device_stall", "The same picture, but longer than the floor."),
        Lookalike("intra_graph", "There both operations belong to one graph launch."),
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
    advice=advice("Look for long dependency chains in the graph; independent branches can run side by side."),
    picture="""
device  [node 1)......[node 2)
thread [cudaGraphLaunch]         one launch for both
""",
    bottleneck="kernels",
    shade=0,
    sources=("cuda_graphs",),
    confirm=(
        "With --cuda-graph-trace=node both kernels carry the same graph launch: select one, and the same cudaGraphLaunch is highlighted for both.",
        "In the graph of the program, the second node depends on the first, or on a node that ended where the gap ends.",
    ),
    confused_with=(
        Lookalike("dispatch", "The gap between two kernels that were launched one by one."),
        Lookalike("graph_untraced", "There, the nodes are not in the trace at all."),
    ),
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
    advice=advice(
        "Look for what the trace lacks: dependencies through untraced events, other processes, power states."
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
            advice("Between queued copies this is set-up time, about 30 µs each: merge small copies into larger ones."),
            labels=(BETWEEN_COPIES,),
        ),
        Variant(
            "event",
            "its stream waits for an event whose record is not in the trace",
            "trace what records the event",
            advice(
                "The stream waits for an event (cudaStreamWaitEvent). Trace events (--cuda-event-trace=true), and all "
                "processes of the job in one capture: one that is not in this trace may record it."
            ),
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
    advice=advice("Two processes share this GPU: use MPS, MIG or another GPU."),
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
    device=gpu_context_switch_explained,
)
