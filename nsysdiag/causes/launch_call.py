"""The launch call itself."""

from __future__ import annotations

from nsysdiag.causes import call_facts
from nsysdiag.causes.advice import Advice, Words
from nsysdiag.causes.cause import Cause, Lookalike, Rows
from nsysdiag.causes.threshold import Threshold
from nsysdiag.causes.variant import Variant, matching
from nsysdiag.units import format_ns

FIRST_USE = "first launch of this kernel"

CAUSE = Cause(
    id="launch_call",
    title="Inside the launch call",
    meaning="The device was idle while the thread was inside the call that launches the next operation.",
    side="call",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(
        plain=(
            "Many small launches: run the sequence as a CUDA graph, or fuse kernels.",
            "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
        ),
        pytorch=Words(
            (
                "Many small launches: use CUDA graphs, torch.compile(mode='reduce-overhead') or fused kernels.",
                "Check what makes the call slow: many arguments, locks in the driver, several threads launching at once.",
            ),
            source="torch_graphs",
            fix="launch less: CUDA graphs, torch.compile(mode='reduce-overhead')",
        ),
        jax=Words(
            (
                "Many small launches: put the whole step under one jax.jit; XLA runs parts of it as CUDA graphs "
                "(--xla_gpu_enable_command_buffer).",
            ),
            source="jax_gpu",
            fix="launch less: one jax.jit for the whole step",
        ),
        tensorflow=Words(
            ("Many small launches: one tf.function(jit_compile=True) for the whole step.",),
            source="tf_gpu",
            fix="launch less: tf.function(jit_compile=True)",
        ),
        cupy=Words(
            ("Many small launches: cupy.fuse, or capture the sequence as a CUDA graph (Stream.begin_capture).",),
            source="cupy_speed",
            fix="launch less: cupy.fuse, CUDA graphs",
        ),
        openacc=Words(
            (
                "Many small launches: add async to compute constructs, so that the host launches ahead; join neighbouring "
                "loops.",
            ),
            source="openacc",
            fix="launch ahead: async on compute constructs",
        ),
    ),
    color="#d16d24",
    picture="""
device  [==A==)........[==next==)
thread          [launch  ]
""",
    family="launch",
    sources=("asynchronous", "cuda_graphs"),
    rows=(Rows.LAUNCH,),
    confirm=(
        "In the CUDA API row, the cudaLaunchKernel or cudaGraphLaunch of the next operation lasts far longer than usual (some µs), and the GPU is idle during it.",
        "Compare with the median of the same call in the table of CUDA calls. A few long ones are something else than all of them.",
    ),
    confused_with=(
        Lookalike("module_load", "The first launch of a kernel, with its code."),
        Lookalike("queue_full", "A launch that waits, since the queue is full: the GPU is busy then."),
        Lookalike("launch_latency", "What comes after the call has returned."),
    ),
    variants=(
        Variant(
            "graph",
            "a graph is launched",
            "cudaGraphUpload ahead of the launch; fewer nodes",
            Advice(
                (
                    "The launch of a whole graph takes the time of its nodes: cudaGraphUpload ahead of it, fewer and larger nodes.",
                )
            ),
            call=matching(r"GraphLaunch"),
        ),
        Variant(
            "first_use",
            "first use of a kernel",
            "run each kernel once before the part that counts",
            Advice(
                (
                    "The first launch of a kernel took longer than launches do, which is what loading its code looks like: run "
                    "each kernel once before the part that counts; CUDA_MODULE_LOADING=EAGER moves the cost to the start.",
                )
            ),
            label=matching(FIRST_USE),
            family="startup",
        ),
        Variant("other", "", "launch less: CUDA graphs, fused kernels"),
    ),
    thresholds=(
        Threshold("first", format_ns(call_facts.FIRST_NS), "a longer first launch may load code, and is labelled so"),
    ),
    opening="{thread} is inside {call}",
)
