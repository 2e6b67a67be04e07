"""The launch call itself."""

from __future__ import annotations

from nsysdiag.causes import call_facts
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, FrameworkAdvice, Lookalike, Variant, matching
from nsysdiag.causes.evidence import Threshold
from nsysdiag.units import format_ns

CAUSE = Cause(
    id="launch_call",
    title="Long launch calls",
    meaning="The device was idle while the thread was inside the call that launches the next operation.",
    side="call",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(
        plain=(
            "Many small launches: run the sequence as a CUDA graph, or fuse kernels.",
            "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
        ),
        pytorch=FrameworkAdvice(
            (
                "Many small launches: use CUDA graphs, torch.compile(mode='reduce-overhead') or fused kernels.",
                "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
            ),
            source="torch_graphs",
            fix="launch less: CUDA graphs, torch.compile(mode='reduce-overhead')",
        ),
        jax=FrameworkAdvice(
            (
                "Many small launches: put the whole step under one jax.jit; XLA runs parts of it as CUDA graphs "
                "(--xla_gpu_enable_command_buffer).",
            ),
            source="jax_gpu",
            fix="launch less: one jax.jit for the whole step",
        ),
        tensorflow=FrameworkAdvice(
            ("Many small launches: one tf.function(jit_compile=True) for the whole step.",),
            source="tf_gpu",
            fix="launch less: tf.function(jit_compile=True)",
        ),
        cupy=FrameworkAdvice(
            ("Many small launches: cupy.fuse, or capture the sequence as a CUDA graph (Stream.begin_capture).",),
            source="cupy_speed",
            fix="launch less: cupy.fuse, CUDA graphs",
        ),
        openacc=FrameworkAdvice(
            (
                "Many small launches: add async to compute constructs, so that the host launches ahead; join neighbouring "
                "loops.",
            ),
            source="openacc",
            fix="launch ahead: async on compute constructs",
        ),
        openmp_target=FrameworkAdvice(
            (
                "Many small launches: add nowait to target constructs, so that the host launches ahead; join "
                "neighbouring loops.",
            ),
            source="openmp",
            fix="launch ahead: nowait on target constructs",
        ),
        julia=FrameworkAdvice(
            (
                "Many small launches: fuse broadcasts into one dotted expression, or capture the sequence as a "
                "graph (CUDA.@captured).",
            ),
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
        "In the CUDA API row, the cudaLaunchKernel or cudaGraphLaunch of the next operation takes far longer than the "
        "usual few µs. The GPU is idle during it.",
        "Compare with the median of the same call in the table of CUDA calls. A few long calls have another reason "
        "than calls that are all long.",
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
            Advice(
                (
                    "A graph launch takes time for each node: call cudaGraphUpload ahead of it, and use fewer, larger "
                    "nodes.",
                )
            ),
            call=matching(r"GraphLaunch"),
        ),
        Variant(
            "copy",
            "a copy or a set is issued",
            "copy from pinned memory; look at what holds the call",
            Advice(
                (
                    "The call that issues a copy takes long: the first one makes staging buffers, and pageable memory is "
                    "staged in the call. Pin the memory; copy once before the part that counts.",
                )
            ),
            call=matching(r"(cuda|cu)(Memcpy|Memset|MemPrefetch)\w*"),
        ),
        Variant(
            "first_use",
            "first use of a kernel",
            "run each kernel once during warm-up",
            Advice(
                (
                    "The first launch of a kernel took longer than later ones, probably to load its code. Run each "
                    "kernel once during warm-up; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                )
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
