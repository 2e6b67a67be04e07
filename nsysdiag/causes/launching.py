"""Causes in and after the launch: the call itself, its way to the device, and a queue that is full."""

from __future__ import annotations

from nsysdiag.causes import call_facts
from nsysdiag.causes.cause import Cause, EvidenceRows, Lookalike, Variant, advice, matching, words
from nsysdiag.causes.evidence import LATENCY_LIMIT, EvidenceLayer, HostEvidence, Threshold, described
from nsysdiag.gaps import gaps
from nsysdiag.trace.enums import OverheadType
from nsysdiag.units import format_ns

LAUNCH_CALL = Cause(
    id="launch_call",
    title="Long launch calls",
    busy_title="Launch calls",
    meaning="The device was idle while the thread was inside the call that launches the next operation.",
    side="call",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=advice(
        "Many small launches: run the sequence as a CUDA graph, or fuse kernels.",
        "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
        pytorch=words(
            "Many small launches: use CUDA graphs, torch.compile(mode='reduce-overhead') or fused kernels.",
            "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
            source="torch_graphs",
            fix="launch less: CUDA graphs, torch.compile(mode='reduce-overhead')",
        ),
        vllm=words(
            "Many small launches: let CUDA graphs run the model (no --enforce-eager), captured for batches as large as those served.",
            source="vllm_async",
            fix="launch less: CUDA graphs, no --enforce-eager",
        ),
        sglang=words(
            "Many small launches: let CUDA graphs run the decode steps (no --disable-cuda-graph), up to the largest batch served (--cuda-graph-max-bs).",
            source="sglang_overlap",
            fix="launch less: CUDA graphs, --cuda-graph-max-bs",
        ),
        tensorrt_llm=words(
            "Many small launches: let CUDA graphs run the decode steps (cuda_graph_config). Its max_batch_size is the largest batch served, and enable_padding serves sizes in between.",
            source="trtllm_graphs",
            fix="launch less: cuda_graph_config with max_batch_size and enable_padding",
        ),
        jax=words(
            "Many small launches: put the whole step under one jax.jit; XLA runs parts of it as CUDA graphs (--xla_gpu_enable_command_buffer).",
            source="jax_gpu",
            fix="launch less: one jax.jit for the whole step",
        ),
        tensorflow=words(
            "Many small launches: one tf.function(jit_compile=True) for the whole step.",
            source="tf_gpu",
            fix="launch less: tf.function(jit_compile=True)",
        ),
        cupy=words(
            "Many small launches: cupy.fuse, or capture the sequence as a CUDA graph (Stream.begin_capture).",
            source="cupy_speed",
            fix="launch less: cupy.fuse, CUDA graphs",
        ),
        openacc=words(
            "Many small launches: add async to compute constructs, so that the host launches ahead; join neighbouring loops.",
            source="openacc",
            fix="launch ahead: async on compute constructs",
        ),
        openmp_target=words(
            "Many small launches: add nowait to target constructs, so that the host launches ahead; join neighbouring loops.",
            source="openmp",
            fix="launch ahead: nowait on target constructs",
        ),
        julia=words(
            "Many small launches: fuse broadcasts into one dotted expression, or capture the sequence as a graph (CUDA.@captured).",
            source="julia",
            fix="launch less: fused broadcasts, CUDA.@captured",
        ),
    ),
    picture="""
device  [==A==)........[==next==)
thread          [launch  ]
""",
    bottleneck="launch",
    shade=3,
    sources=("asynchronous", "cuda_graphs"),
    rows=(EvidenceRows.LAUNCH,),
    confirm=(
        "In the CUDA API row, the cudaLaunchKernel or cudaGraphLaunch of the next operation takes far longer than the usual few µs. The GPU is idle during it.",
        "Compare with the median of the same call in the table of CUDA calls. A few long calls have another reason than calls that are all long.",
    ),
    confused_with=(
        Lookalike("module_load", "There, it is the first launch of a kernel, which loads its code."),
        Lookalike("queue_full", "There, the launch waits because the queue is full: the GPU is busy."),
        Lookalike("launch_latency", "There, the call has already returned."),
    ),
    variants=(
        Variant(
            "graph",
            "a graph is launched",
            "cudaGraphUpload ahead of the launch; fewer nodes",
            advice(
                "A graph launch takes time for each node: call cudaGraphUpload ahead of it, and use fewer, larger nodes."
            ),
            call=matching(r"GraphLaunch"),
        ),
        Variant(
            "copy",
            "a copy or a set is issued",
            "copy from pinned memory; look at what holds the call",
            advice(
                "The call that issues a copy takes long: the first one makes staging buffers, and pageable memory is staged in the call. Pin the memory; copy once before the part that counts."
            ),
            call=matching(r"(cuda|cu)(Memcpy|Memset|MemPrefetch)\w*"),
        ),
        Variant(
            "first_use",
            "first use of a kernel",
            "run each kernel once during warm-up",
            advice(
                "The first launch of a kernel took longer than later ones, probably to load its code. Run each kernel once during warm-up; CUDA_MODULE_LOADING=EAGER moves the cost to the start."
            ),
            labels=(call_facts.FIRST_USE,),
            bottleneck="startup",
        ),
        Variant("other", "", "launch less: CUDA graphs, fused kernels"),
    ),
    thresholds=(
        Threshold(
            "first", format_ns(call_facts.FIRST_NS), "a first launch longer than this may load code, and is labelled so"
        ),
    ),
    opening="{thread} is inside {call}",
    names_call=True,
)


LAUNCH_LATENCY = Cause(
    id="launch_latency",
    title="Launch latency",
    meaning="The launch call had returned, and the operation was on its way to an idle device, within the usual launch latency.",
    side="call",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=advice(
        "Launch earlier: queue work ahead instead of waiting for results, so that launches overlap with running kernels.",
        "Put the sequence into a CUDA graph: one launch for many kernels.",
        openacc=words(
            "Launch earlier: add async to compute constructs and updates, so that the host queues work ahead instead of waiting for each.",
            source="openacc",
            fix="launch ahead: async on compute constructs",
        ),
        openmp_target=words(
            "Launch earlier: add nowait to target constructs and updates, so that the host queues work ahead instead of waiting for each.",
            source="openmp",
            fix="launch ahead: nowait on target constructs",
        ),
    ),
    picture="""
device  ............|.L.|[==next==)
thread     [launch]
""",
    bottleneck="launch",
    shade=4,
    sources=("asynchronous", "cuda_graphs"),
    thresholds=(
        Threshold(
            "latency",
            format_ns(gaps.DEFAULT_NS),
            "default launch latency, used if the trace has too few cases to calibrate it",
        ),
        Threshold("latency_samples", str(gaps.LATENCY_SAMPLES), "launches to an idle device needed to calibrate it"),
        Threshold(
            "latency_percentile", f"{gaps.LATENCY_PERCENTILE}%", "percentile of their delays that is the latency"
        ),
        LATENCY_LIMIT,
    ),
    rows=(EvidenceRows.LAUNCH,),
    confirm=(
        "The launch call has returned, the GPU is idle, and the kernel starts some µs later. It is as long for each launch to an idle GPU.",
        "Many gaps of this kind mean that nothing is queued: the host launches one kernel at a time.",
    ),
    confused_with=(
        Lookalike("dispatch", "There, the operation was queued behind a running one."),
        Lookalike("device_stall", "The same, but longer than three times the latency of this trace."),
        Lookalike("launch_call", "The time inside the call itself."),
    ),
    variants=(Variant("other", "", "launch ahead, so that launches overlap with kernels"),),
    opening="launches of {thread} find the device idle",
)


def queue_full_evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Command-buffer-full rows of the thread."""
    overhead = evidence.host.overhead
    return [described(overhead.take(overhead.kind == OverheadType.COMMAND_BUFFER_FULL))]


queue_full_nested_evidence = queue_full_evidence


QUEUE_FULL = Cause(
    id="queue_full",
    title="Launch queue full",
    meaning="The launch queue of a device was full, so the launching thread had to wait: the host is ahead, not late.",
    side="host",
    tables=("CUPTI_ACTIVITY_KIND_OVERHEAD",),
    advice=advice(
        "The host is ahead: this costs nothing on a device that is busy. A thread that feeds several GPUs should use one thread or process for each."
    ),
    picture="""
device 0 [==A==)..................[==next==)
device 1 [==========================)
thread     [launch to 1, buffer full][launch]
""",
    bottleneck="launch",
    shade=1,
    sources=("overhead",),
    rows=(EvidenceRows.OVERHEAD,),
    confirm=(
        'A launch call lasts as long as kernels of another device or stream, and CUPTI reports "Command buffer full". The thread is thousands of launches ahead of one device while another one is idle.',
    ),
    confused_with=(
        Lookalike("launch_call", "A launch call that is slow with an empty queue."),
        Lookalike("sync", "Both wait for the device; here, the program did not ask for it."),
    ),
    variants=(Variant("other", "", "one launching thread for each GPU"),),
    host=queue_full_evidence,
    call=queue_full_nested_evidence,
    call_order=90,
)
