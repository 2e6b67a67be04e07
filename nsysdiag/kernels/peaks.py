"""How much faster tensor cores multiply matrices than single precision does, by the published peak rates of a GPU.

Rates are dense TFLOPS of NVIDIA's datasheets and architecture whitepapers: Volta (2017), Turing (2018), Ampere GA100
and GA102 (2020), Hopper and Ada (2022), Blackwell (2024, 2025). The pages of the products have them, too.
Where these give rates with sparsity, half of them. Types of 16 bits are FP16 and BF16 with sums in FP32; for Turing
with sums in FP16, as its whitepaper has it. A row stands for the GPUs of a family that have the same ratios.
"""

from __future__ import annotations

import re

from msgspec import Struct

from nsysdiag.events.gpus import Gpu

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
