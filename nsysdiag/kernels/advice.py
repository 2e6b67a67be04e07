"""What to do about kernels, by what they do: each advice only if the kernels that it is about take enough time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from nsysdiag import typed
from nsysdiag.causes.cause import PLAIN, Advice, words_of
from nsysdiag.events.gpus import Gpu
from nsysdiag.fields import Sentence
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.peaks import lacks_tensor_cores, product_peaks
from nsysdiag.typed import joined, say
from nsysdiag.units import format_bytes, format_count, format_ns, format_share

LEAST_FP32 = 0.3
"""The share of kernel time in single-precision matrix products from which tensor cores are advised: halving less saves
under a sixth."""
LEAST_FUSED, LEAST_ATTENTION, LEAST_GRAPHS = 0.1, 0.1, 0.1
"""The least share of a bottleneck that is named at all."""


def precision_advice(gpu: Gpu | None) -> Advice:
    """On matrix products in single precision: nothing for a GPU without tensor cores. Types of 16 bits alone if TF32 is
    no faster than FP32, or does not exist."""
    if gpu is not None and lacks_tensor_cores(gpu.name, gpu.limits.compute):
        return PLAIN
    peaks = None if gpu is None else product_peaks(gpu.name, gpu.limits.compute)
    words = words_of("kernels")
    return words.advice_for("tensor_cores" if peaks is None or peaks.has_faster_tf32 else "half_precision")


def kernel_advice(
    families: KernelFamilies,
    top: Sequence[TopKernel],
    frameworks: Iterable[str],
    gpu: Gpu | None = None,
    fused: float = 0.0,
) -> list[Sentence]:
    """What the kernels' time on this GPU suggests, by kind, and how to see what holds the first of the `top` kernels.
    `fused` is the share of elementwise kernels that a compiler has made of several."""
    made_with, words = tuple(frameworks), words_of("kernels")
    chosen = [
        found
        for found, share, least in (
            (words.advice_for("whole_graphs"), families.graphs, LEAST_GRAPHS),
            (precision_advice(gpu), families.products_fp32, LEAST_FP32),
            (words.advice_for("attention"), families.attention, LEAST_ATTENTION),
            (words.advice_for("fusion"), families.elementwise - fused, LEAST_FUSED),
        )
        if share >= least
    ]
    shown = {"rocprof": _by_rocprof, "ncu": _by_ncu}.get(profiler_of(top, made_with))
    profile = [shown(each) for each in top[:1]] if shown else []
    return [*(sentence for each in chosen for sentence in each.sentences(made_with)), *profile]


def profiler_of(top: Sequence[TopKernel], made_with: Collection[str]) -> str:
    """The program that profiles the first of these kernels: `ncu`, `rocprof`, or none of graphs."""
    return ("rocprof" if "rocm" in made_with else "ncu") if top and top[0].ncu else ""


_PLAIN = re.compile(r"[A-Za-z_]\w{0,79}")


def _by_ncu(kernel: TopKernel) -> Sentence:
    return say("Nsight Compute shows what limits the kernel{}: {}", _which(kernel), kernel.ncu)


def _by_rocprof(kernel: TopKernel) -> Sentence:
    """The command of ROCm, which runs kernels several times; names of Tensile are too long for a command line."""
    chosen = say("--kernel {} ", typed.kernel(kernel.short_name)) if _PLAIN.fullmatch(kernel.short_name) else ""
    command = say("rocprof-compute profile --name kernels {}-- PROGRAM", chosen)
    return say("ROCm Compute Profiler shows what limits the kernel: {}", command)


def _which(kernel: TopKernel) -> Sentence:
    """Of a template, whose instances have one name for Nsight Compute, the launch that is profiled."""
    if kernel.name == kernel.short_name:
        return ""
    return say(", launch {} of {}", format_count(kernel.ncu_skip + 1), typed.kernel(kernel.short_name))


def kernel_sentence(kernel: TopKernel) -> Sentence:
    """A kernel in one line: its share, how often and how long it ran, its shape, and how full the chip was."""
    said: list[Sentence] = [
        say(
            "{}: {} of the judged time, {} × {}",
            typed.kernel(kernel.name),
            format_share(kernel.share, 1),
            format_count(kernel.count),
            format_ns(kernel.mean_ns),
        )
    ]
    if kernel.blocks is not None and kernel.threads is not None:
        blocks = f"{format_count(kernel.blocks)} {'block' if kernel.blocks == 1 else 'blocks'}"
        shape = [f"{blocks} of {format_count(kernel.threads)} threads"]
        shape += [f"{kernel.registers} registers a thread"] if kernel.registers else []
        shape += [f"{format_bytes(kernel.shared_bytes)} of shared memory a block"] if kernel.shared_bytes else []
        said.append(", ".join(shape))
    if kernel.blocks_per_sm is not None and kernel.waves is not None:
        waves = f"{kernel.waves:.2g}" if kernel.waves < 10 else format_count(round(kernel.waves))
        # Blocks are those of the launch in the middle: with other sizes there are other numbers of waves.
        of_all = f" in the mean of {format_count(kernel.shapes)} launch shapes" if kernel.shapes > 1 else ""
        held = format_count(kernel.blocks_per_sm)
        said.append(f"an SM holds {held} at a time: {waves} {'wave' if waves == '1' else 'waves'}{of_all}")
    if kernel.sm_share is not None:
        said.append(f"{format_share(kernel.sm_share, 1)} of the SMs have work (estimate)")
    measured = (("SM", kernel.sm_active), ("DRAM", kernel.dram_active), ("tensor cores", kernel.tensor_active))
    known = [f"{what} {format_share(share, 1)}" for what, share in measured if share is not None]
    return joined("; ", [*said, *([f"measured: {', '.join(known)}"] if known else [])])
