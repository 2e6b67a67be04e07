"""What to do about kernels, by what they do: each advice only where the kernels that it is about take enough time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nsysdiag import typed
from nsysdiag.causes.advice import PLAIN, Advice, Words
from nsysdiag.events.gpus import Gpu
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.kernels.peaks import lacks_tensor_cores, peaks_of
from nsysdiag.units import format_bytes, format_count, format_ns, format_share

_SKIPPED = re.compile(r"--launch-skip (\d+)")
LEAST_FP32 = 0.3
"""The share of kernel time in single-precision matrix products from which tensor cores are advised: halving less saves
under a sixth."""
LEAST_FUSED, LEAST_ATTENTION, LEAST_GRAPHS = 0.1, 0.1, 0.1
"""The least share of a bottleneck that is named at all."""

REDUCED_PRECISION = Advice(
    plain=(
        "Matrix products run in single precision without tensor cores: allow TF32 (CUBLAS_COMPUTE_32F_FAST_TF32, or "
        "cublasSetMathMode(CUBLAS_TF32_TENSOR_OP_MATH)) or use half precision, where its accuracy is enough.",
    ),
    pytorch=Words(
        (
            "Matrix products run in single precision without tensor cores: torch.set_float32_matmul_precision('high') "
            "allows TF32, torch.autocast uses bf16.",
        ),
        source="tuning_guide",
    ),
    jax=Words(
        (
            "Matrix products run in single precision without tensor cores: "
            "jax_default_matmul_precision='tensorfloat32', or bf16 arrays.",
        ),
        source="jax_gpu",
    ),
    tensorflow=Words(
        (
            "Matrix products run in single precision without tensor cores: "
            "tf.config.experimental.enable_tensor_float_32_execution(True), or Keras mixed precision.",
        ),
        source="tf_gpu",
    ),
    cupy=Words(
        ("Matrix products run in single precision without tensor cores: CUPY_TF32=1, or half precision.",),
        source="cupy_speed",
    ),
)
HALF_PRECISION = Advice(
    plain=(
        "Matrix products run in single precision without tensor cores: use half precision (FP16, or BF16 where the GPU "
        "has it), where its accuracy is enough. TF32 is no faster on this GPU.",
    ),
    pytorch=Words(
        (
            "Matrix products run in single precision without tensor cores: use torch.autocast with torch.float16 (or "
            "bfloat16, where the GPU has it). TF32 is no faster on this GPU.",
        ),
        source="tuning_guide",
    ),
    jax=Words(
        (
            "Matrix products run in single precision without tensor cores: use arrays in float16 or bfloat16. TF32 is "
            "no faster on this GPU.",
        ),
        source="jax_gpu",
    ),
    tensorflow=Words(
        (
            "Matrix products run in single precision without tensor cores: use Keras mixed precision. TF32 is no "
            "faster on this GPU.",
        ),
        source="tf_gpu",
    ),
)
"""For GPUs on which TF32 is no faster than FP32, or does not exist."""
ATTENTION = Advice(
    plain=(
        "Attention takes much of the time: check whether a newer kernel for this GPU exists (cuDNN, FlashAttention).",
    ),
    pytorch=Words(
        (
            "Attention takes much of the time: check whether another backend of scaled_dot_product_attention is faster "
            "on this GPU (torch.nn.attention.sdpa_kernel: cuDNN, FlashAttention).",
        ),
        source="tuning_guide",
    ),
    jax=Words(
        (
            "Attention takes much of the time: check whether jax.nn.dot_product_attention(implementation='cudnn') is "
            "faster on this GPU.",
        ),
        source="jax_gpu",
    ),
)
FUSION = Advice(
    plain=(
        "Fuse elementwise kernels that use the same data: memory bandwidth usually limits them, and each reads and "
        "writes all of it.",
    ),
    pytorch=Words(
        ("Fuse elementwise kernels with torch.compile or fused operators: memory bandwidth usually limits them.",),
        source="tuning_guide",
    ),
    jax=Words(
        ("Fuse elementwise kernels with one jax.jit around them: memory bandwidth usually limits them.",),
        source="jax_gpu",
    ),
    tensorflow=Words(
        (
            "Fuse elementwise kernels with tf.function(jit_compile=True) around them: memory bandwidth usually limits "
            "them.",
        ),
        source="tf_gpu",
    ),
    cupy=Words(
        ("Fuse elementwise kernels with cupy.fuse or an ElementwiseKernel: memory bandwidth usually limits them.",),
        source="cupy_speed",
    ),
)
WHOLE_GRAPHS = Advice(
    (
        "The trace holds these CUDA graphs as a whole, without their kernels: capture with --cuda-graph-trace=node to "
        "see which kernels take the time.",
    )
)
KERNEL_ADVICE = (WHOLE_GRAPHS, REDUCED_PRECISION, HALF_PRECISION, ATTENTION, FUSION)


def precision_advice(gpu: Gpu | None) -> Advice:
    """On matrix products in single precision: nothing for a GPU without tensor cores."""
    if gpu is not None and lacks_tensor_cores(gpu):
        return PLAIN
    peaks = None if gpu is None else peaks_of(gpu)
    return REDUCED_PRECISION if peaks is None or peaks.has_faster_tf32 else HALF_PRECISION


def kernel_advice(
    families: KernelFamilies, top: Sequence[TopKernel], frameworks: Iterable[str], gpu: Gpu | None = None
) -> list[str]:
    """What the kernels' time on this GPU suggests, by kind, and how to see what holds the first of the `top`
    kernels."""
    made_with = tuple(frameworks)
    chosen = [
        advice
        for advice, share, least in (
            (WHOLE_GRAPHS, families.graphs, LEAST_GRAPHS),
            (precision_advice(gpu), families.products_fp32, LEAST_FP32),
            (ATTENTION, families.attention, LEAST_ATTENTION),
            (FUSION, families.elementwise, LEAST_FUSED),
        )
        if share >= least
    ]
    profile = [f"Nsight Compute shows what limits the kernel{_which(each)}: {each.ncu}" for each in top[:1] if each.ncu]
    return [sentence for advice in chosen for sentence in advice.sentences(made_with)] + profile


def _which(kernel: TopKernel) -> str:
    """Of a template, whose instances have one name for Nsight Compute, the launch that is profiled."""
    launch = _SKIPPED.search(kernel.ncu)
    if launch is None or kernel.name == kernel.short_name:
        return ""
    return f", launch {format_count(int(launch[1]) + 1)} of {typed.kernel(kernel.short_name)}"


def kernel_sentence(kernel: TopKernel) -> str:
    """A kernel in one line: its share, how often and how long it ran, its shape, and how full the chip was."""
    said = [
        f"{typed.kernel(kernel.name)}: {format_share(kernel.share, 1)} of the judged time, "
        f"{format_count(kernel.count)} × {format_ns(kernel.mean_ns)}"
    ]
    if kernel.blocks is not None and kernel.threads is not None:
        blocks = f"{format_count(kernel.blocks)} {'block' if kernel.blocks == 1 else 'blocks'}"
        shape = [f"{blocks} of {format_count(kernel.threads)} threads"]
        shape += [f"{kernel.registers} registers a thread"] if kernel.registers else []
        shape += [f"{format_bytes(kernel.shared_bytes)} of shared memory a block"] if kernel.shared_bytes else []
        said.append(", ".join(shape))
    if kernel.blocks_per_sm is not None and kernel.waves is not None:
        waves = f"{kernel.waves:.2g}" if kernel.waves < 10 else format_count(round(kernel.waves))
        said.append(
            f"an SM holds {format_count(kernel.blocks_per_sm)} at a time: {waves} {'wave' if waves == '1' else 'waves'}"
        )
    if kernel.sm_share is not None:
        said.append(f"{format_share(kernel.sm_share, 1)} of the SMs have work (estimate)")
    measured = (("SM", kernel.sm_active), ("DRAM", kernel.dram_active), ("tensor cores", kernel.tensor_active))
    known = [f"{what} {format_share(share, 1)}" for what, share in measured if share is not None]
    return "; ".join([*said, *([f"measured: {', '.join(known)}"] if known else [])])
