"""Dispatch: the small step from one queued operation to the next."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, FrameworkAdvice, Lookalike, Variant
from nsysdiag.causes.evidence import Threshold
from nsysdiag.gaps import gaps
from nsysdiag.gaps.launch_frame import LaunchCase
from nsysdiag.units import format_ns

CAUSE = Cause(
    id="dispatch",
    title="Dispatch between queued operations",
    meaning="The next operation was already queued and started within the dispatch floor: the time that the hardware "
    "needs between two operations.",
    side="gap",
    before_each=True,
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    advice=Advice(
        plain=("Fewer, larger kernels: fuse kernels that work on the same data, or run the step as a CUDA graph.",),
        pytorch=FrameworkAdvice(
            (
                "Fewer, larger kernels: fuse element-wise operations (torch.compile, custom kernels), or run the step as a "
                "CUDA graph (torch.compile(mode='reduce-overhead'), torch.cuda.graph).",
            ),
            source="torch_graphs",
        ),
        jax=FrameworkAdvice(
            ("Fewer, larger kernels: put the whole step under one jax.jit, so that XLA can fuse it.",), source="jax_gpu"
        ),
        tensorflow=FrameworkAdvice(
            (
                "Fewer, larger kernels: put the whole step into one tf.function(jit_compile=True), so that XLA can fuse it.",
            ),
            source="tf_gpu",
        ),
        cupy=FrameworkAdvice(
            ("Fewer, larger kernels: cupy.fuse or an ElementwiseKernel for chains of element-wise operations.",),
            source="cupy_speed",
        ),
        openacc=FrameworkAdvice(
            ("Fewer, larger kernels: join neighbouring parallel loops into one, collapse nested ones.",),
            source="openacc",
        ),
        openmp_target=FrameworkAdvice(
            ("Fewer, larger kernels: join neighbouring target loops into one, collapse nested ones.",),
            source="openmp",
        ),
        julia=FrameworkAdvice(
            ("Fewer, larger kernels: fuse broadcasts (one dotted expression, @.), or write one kernel for the chain.",),
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
            "default dispatch floor, used where the trace has too few cases to calibrate it",
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
