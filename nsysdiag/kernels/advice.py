"""What to do about kernels, by what they do: each advice only if the kernels that it is about take enough time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.causes.cause import PLAIN, Advice, words_of
from nsysdiag.events.gpus import Gpu
from nsysdiag.fields import Sentence
from nsysdiag.kernels.facts import KernelFamilies, TopKernel
from nsysdiag.typed import joined, say
from nsysdiag.units import format_bytes, format_count, format_ns, format_share

# How much faster tensor cores multiply matrices than single precision does, by the published peak rates of a GPU.
#
# Rates are dense TFLOPS of NVIDIA's datasheets and architecture whitepapers: Volta (2017), Turing (2018), Ampere GA100
# and GA102 (2020), Hopper and Ada (2022), Blackwell (2024, 2025). The pages of the products have them, too.
# If these give rates with sparsity, half of them. Types of 16 bits are FP16 and BF16 with sums in FP32; for Turing
# with sums in FP16, as its whitepaper has it. A row stands for the GPUs of a family that have the same ratios.

FIRST_WITH_TENSOR_CORES = (7, 0)
_WITHOUT = re.compile(r"\bGTX|\bTITAN X|\b[KMP]\d+\b|\bGP100\b|\bT\d{3,4}\b|\bMX\d", re.IGNORECASE)
"""Names of GPUs without tensor cores: those before Volta, and the small ones of Turing."""


class Peaks(Struct, frozen=True):
    """Peak rates of matrix products: of FP32 without tensor cores, of TF32 (0: the GPU has none) and of types of 16
    bits with them."""

    fp32: float
    tf32: float
    half: float

    @property
    def ratio(self) -> float:
        """How many times as fast the fastest of these types is."""
        return max(self.tf32, self.half) / self.fp32

    @property
    def has_faster_tf32(self) -> bool:
        """Whether TF32 is faster than FP32: on GeForce GPUs since Ampere it is not."""
        return self.tf32 > self.fp32

    @property
    def words(self) -> str:
        """`16-bit types 16 times, TF32 8.0 times`."""
        tf32 = f", TF32 {self.tf32 / self.fp32:.2g} times" if self.has_faster_tf32 else ""
        return f"16-bit types {self.half / self.fp32:.2g} times{tf32}"


_TURING, _GA100, _ADA_GEFORCE = Peaks(16.3, 0, 130.5), Peaks(19.5, 156, 312), Peaks(82.6, 82.6, 165.2)
_VOLTA, _GA102, _AD102 = Peaks(15.7, 0, 125), Peaks(37.4, 74.8, 149.7), Peaks(91.6, 183, 362)
_HOPPER, _BLACKWELL, _RTX_PRO = Peaks(67, 494.7, 989.4), Peaks(75, 1_125, 2_250), Peaks(126, 251.9, 503.8)
_BY_NAME = (
    (r"V100|TITAN V\b", _VOLTA),
    (r"\bT4G?\b|(Quadro|TITAN) RTX", _TURING),
    (r"\bA(100|800)(?!\d)", _GA100),
    (r"\bA30\b", Peaks(10.3, 82, 165)),
    (r"\bA10G\b", Peaks(35, 35, 70)),
    (r"\bA(2|10|16|40)\b|RTX A\d{3,4}", _GA102),
    (r"\bL(20|40)\b", Peaks(90.5, 90.5, 181)),
    (r"\bL(2|4|40S)\b|RTX \d{4} .*\bAda\b", _AD102),
    (r"RTX PRO \d", _RTX_PRO),
    (r"RTX 20\d0", Peaks(13.4, 0, 107.6)),
    (r"RTX 30\d0", Peaks(35.6, 35.6, 71)),
    (r"RTX 40\d0", _ADA_GEFORCE),
    (r"RTX 50\d0", Peaks(104.8, 104.8, 209.5)),
    (r"\bH20\b", Peaks(44, 74, 148)),
    (r"H[12]00|H800", _HOPPER),
    (r"B[123]00", _BLACKWELL),
)
_BY_CAPABILITY = {
    (7, 0): _VOLTA,
    (7, 5): _TURING,
    (8, 0): _GA100,
    (8, 6): _GA102,
    (8, 9): _AD102,
    (9, 0): _HOPPER,
    (10, 0): _BLACKWELL,
    (10, 3): _BLACKWELL,
    (12, 0): _RTX_PRO,
}
"""For other names the GPU of the compute capability with the largest ratio, as a bound may be too large."""


def peaks_of(gpu: Gpu) -> Peaks | None:
    """The rates of a GPU; None if they are not known, or it has no tensor cores."""
    if lacks_tensor_cores(gpu):
        return None
    named = (peaks for pattern, peaks in _BY_NAME if re.search(pattern, gpu.name, re.IGNORECASE))
    return next(named, _BY_CAPABILITY.get(gpu.limits.compute))


def lacks_tensor_cores(gpu: Gpu) -> bool:
    """Whether the GPU is known to have none."""
    return (0, 0) < gpu.limits.compute < FIRST_WITH_TENSOR_CORES or _WITHOUT.search(gpu.name) is not None


LEAST_FP32 = 0.3
"""The share of kernel time in single-precision matrix products from which tensor cores are advised: halving less saves
under a sixth."""
LEAST_FUSED, LEAST_ATTENTION, LEAST_GRAPHS = 0.1, 0.1, 0.1
"""The least share of a bottleneck that is named at all."""


def precision_advice(gpu: Gpu | None) -> Advice:
    """On matrix products in single precision: nothing for a GPU without tensor cores. Types of 16 bits alone if TF32 is
    no faster than FP32, or does not exist."""
    if gpu is not None and lacks_tensor_cores(gpu):
        return PLAIN
    peaks = None if gpu is None else peaks_of(gpu)
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
        said.append(
            f"an SM holds {format_count(kernel.blocks_per_sm)} at a time: {waves} {'wave' if waves == '1' else 'waves'}"
        )
    if kernel.sm_share is not None:
        said.append(f"{format_share(kernel.sm_share, 1)} of the SMs have work (estimate)")
    measured = (("SM", kernel.sm_active), ("DRAM", kernel.dram_active), ("tensor cores", kernel.tensor_active))
    known = [f"{what} {format_share(share, 1)}" for what, share in measured if share is not None]
    return joined("; ", [*said, *([f"measured: {', '.join(known)}"] if known else [])])
