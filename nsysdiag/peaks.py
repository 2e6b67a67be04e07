"""What a GPU can do at most, as published: NVLink, the interface to the host, and arithmetic, by the name of the GPU.

Rates are bytes or floating-point operations a second, in one direction and without structured sparsity. They are of
NVIDIA's datasheets, by the names of the GPUs. The bandwidth of a GPU's own memory is in most traces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

Value = TypeVar("Value")

# What links carry. Datasheets give the sum of both directions of NVLink.

LINKS = (
    (r"V100.*SXM", 150e9),
    (r"A100.*SXM", 300e9),
    (r"A800.*SXM", 200e9),
    (r"H800", 200e9),
    (r"H100 (NVL|PCIe)", 300e9),
    (r"(H100|H200|GH200|H20)\b", 450e9),
    (r"\bG?B[123]00\b", 900e9),
)
"""What NVLink carries each way at most: half of the rates of the datasheets."""
IN_SWITCH = r"(H100|H200|GH200|H20|H800)\b(?! (NVL|PCIe))|\bG?B[123]00\b"
"""GPUs whose NVLink switches add up and multiply what they carry (NVLink SHARP)."""
PCIE_BYTES_PER_SECOND = {1: 4.0e9, 2: 8.0e9, 3: 15.754e9, 4: 31.508e9, 5: 63.015e9, 6: 128e9}
"""What 16 lanes carry one way at most, by generation: encoding counted, packets not."""
_TO_HOST = (
    (r"GH200", 0),
    (r"V100|P100|P40|P4\b|T4\b|TITAN|Quadro RTX|RTX 20\d\d", 3),
    (r"A100|A800|A10\b|A10G|A16|A30|A40|A[3-6]000|L4\b|L40|L20\b|RTX [34]0\d\d|RTX \w* ?\d000 Ada", 4),
    (r"H100|H200|H800|H20\b|RTX 50\d\d|RTX PRO", 5),
)
_CHIP_TO_CHIP = 450e9
"""NVLink-C2C of a GH200, each way."""


class Peak(NamedTuple):
    """A published rate, and of what it is."""

    rate: float
    what: str


def _of(table: Iterable[tuple[str, Value]], name: str) -> Value | None:
    """The value of the first pattern that the name of a GPU fits."""
    return next((value for pattern, value in table if re.search(pattern, name, re.IGNORECASE)), None)


def link_of(name: str) -> float | None:
    """What NVLink of a GPU carries each way in bytes a second; None if it is not known."""
    return _of(LINKS, name)


def switch_adds(name: str) -> bool:
    """Whether the NVLink switches of such a GPU can add up what they carry."""
    return re.search(IN_SWITCH, name) is not None


def host_link_of(name: str) -> Peak | None:
    """What the interface of a GPU to its host carries each way; None if it is not known. The slot may be slower."""
    generation = _of(_TO_HOST, name)
    if generation is None:
        return None
    if not generation:
        return Peak(_CHIP_TO_CHIP, "NVLink-C2C")
    return Peak(PCIE_BYTES_PER_SECOND[generation], f"PCIe gen {generation}, 16 lanes")


def peer_link_of(name: str) -> Peak | None:
    """What the link between two such GPUs carries each way at most."""
    link = link_of(name)
    return host_link_of(name) if link is None else Peak(link, "NVLink")


_MEMORY = (
    (r"V100", 900e9),
    (r"T4\b", 320e9),
    (r"A100.*80GB", 2039e9),
    (r"A100.*40GB", 1555e9),
    (r"A40\b", 696e9),
    (r"A30\b", 933e9),
    (r"A10\b", 600e9),
    (r"L4\b", 300e9),
    (r"L40S", 864e9),
    (r"H100 PCIe", 2039e9),
    (r"H100 NVL", 3938e9),
    (r"(?<!G)H100\b", 3352e9),
    (r"(?<!G)H200\b", 4917e9),
    (r"\bG?B200\b", 8000e9),
)


def memory_of(name: str) -> float | None:
    """What the memory of a GPU reads and writes in bytes a second, if a trace does not tell; None if it is not
    known."""
    return _of(_MEMORY, name)


# What is computed at most in TFLOP/s, by tensor cores if these can do it: fp32 never, fp64 from the A100 on.
#
# Dense rates of NVIDIA's datasheets and architecture whitepapers: Volta (2017), Turing (2018), Ampere GA100 and GA102
# (2020), Hopper and Ada (2022), Blackwell (2024, 2025). If these give rates with sparsity, half of them. If both
# have a rate, it is the whitepaper's, which has more digits. Types of 16 bits are with sums in FP32; for Turing with
# sums in FP16, as its whitepaper has it.

PRECISIONS = ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32", "fp64")
Rates = dict[str, float]
_HOPPER: Rates = {"fp8": 1978.9, "bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 67}
_A100: Rates = {"bf16": 312, "fp16": 312, "tf32": 156, "fp32": 19.5, "fp64": 19.5}
_A40: Rates = {"bf16": 149.7, "fp16": 149.7, "tf32": 74.8, "fp32": 37.4}
_L40S: Rates = {"fp8": 733, "bf16": 362, "fp16": 362, "tf32": 183, "fp32": 91.6}
_B200: Rates = {"fp4": 9000, "fp8": 4500, "bf16": 2250, "fp16": 2250, "tf32": 1125, "fp32": 75}
_V100: Rates = {"fp16": 125, "fp32": 15.7, "fp64": 7.8}
_DENSE: tuple[tuple[str, Rates], ...] = (
    (r"V100.*SXM", _V100),
    (r"V100.*PCI", {"fp16": 112, "fp32": 14, "fp64": 7}),
    (r"T4\b", {"fp16": 65, "fp32": 8.1}),
    (r"A[18]00(?!\d)", _A100),
    (r"A30\b", {"bf16": 165, "fp16": 165, "tf32": 82, "fp32": 10.3}),
    (r"A40\b", _A40),
    (r"A10\b", {"bf16": 125, "fp16": 125, "tf32": 62.5, "fp32": 31.2}),
    (r"L40S", _L40S),
    (r"L4\b", {"fp8": 242.5, "bf16": 121, "fp16": 121, "tf32": 60, "fp32": 30.3}),
    (r"H20\b", {"fp8": 296, "bf16": 148, "fp16": 148, "tf32": 74, "fp32": 44}),
    (r"H100 NVL", {"fp8": 1671, "bf16": 835, "fp16": 835, "tf32": 417, "fp32": 60, "fp64": 60}),
    (r"H100 PCIe", {"fp8": 1513, "bf16": 756, "fp16": 756, "tf32": 378, "fp32": 51, "fp64": 51}),
    (r"H200 NVL", {"fp8": 1671, "bf16": 836, "fp16": 836, "tf32": 418, "fp32": 60, "fp64": 60}),
    (r"H800\b", _HOPPER),
    (r"(H100|H200|GH200)\b", _HOPPER | {"fp64": 67}),
    (r"\bB200\b", _B200),
    (r"\bGB200\b", {"fp4": 10000, "fp8": 5000, "bf16": 2500, "fp16": 2500, "tf32": 1250, "fp32": 80}),
)
_QUADRO_RTX: Rates = {"fp16": 130.5, "fp32": 16.3}
_RTX_PRO: Rates = {"fp16": 503.8, "tf32": 251.9, "fp32": 126}
_FAMILIES: tuple[tuple[str, Rates], ...] = (
    (r"V100|TITAN V\b", _V100),
    (r"\bT4G\b|(Quadro|TITAN) RTX", _QUADRO_RTX),
    (r"\bA10G\b", {"fp16": 70, "tf32": 35, "fp32": 35}),
    (r"\bA(2|16)\b|RTX A\d{3,4}", _A40),
    (r"\bL(20|40)\b", {"fp16": 181, "tf32": 90.5, "fp32": 90.5}),
    (r"\bL2\b|RTX \d{4} .*\bAda\b", _L40S),
    (r"RTX PRO \d", _RTX_PRO),
    (r"RTX 20\d0", {"fp16": 107.6, "fp32": 13.4}),
    (r"RTX 30\d0", {"fp16": 71, "tf32": 35.6, "fp32": 35.6}),
    (r"RTX 40\d0", {"fp16": 165.2, "tf32": 82.6, "fp32": 82.6}),
    (r"RTX 50\d0", {"fp16": 209.5, "tf32": 104.8, "fp32": 104.8}),
    (r"H[12]00|H800", _HOPPER),
    (r"B[13]00", _B200),
)
"""GPUs that have the ratios of these rates, though not each of them these rates."""
_BY_CAPABILITY: dict[tuple[int, int], Rates] = {
    (7, 0): _V100,
    (7, 5): _QUADRO_RTX,
    (8, 0): _A100,
    (8, 6): _A40,
    (8, 9): _L40S,
    (9, 0): _HOPPER,
    (10, 0): _B200,
    (10, 3): _B200,
    (12, 0): _RTX_PRO,
}
"""For other names the GPU of the compute capability with the largest ratio, as a bound may be too large."""


def dense_peak(name: str, precision: str) -> float | None:
    """Floating-point operations a second of a GPU in one of PRECISIONS, without sparsity; None if it is not
    known."""
    known = _of(_DENSE, name) or {}
    return known[precision] * 1e12 if precision in known else None


# How much faster tensor cores multiply matrices than single precision does.

FIRST_WITH_TENSOR_CORES = (7, 0)
_WITHOUT = re.compile(r"\bGTX|\bTITAN X|\b[KMP]\d+\b|\bGP100\b|\bT\d{3,4}\b|\bMX\d", re.IGNORECASE)
"""Names of GPUs without tensor cores: those before Volta, and the small ones of Turing."""


class ProductPeaks(NamedTuple):
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


def product_peaks(name: str, compute: tuple[int, int]) -> ProductPeaks | None:
    """The rates of a GPU by its name, or its compute capability; None if they are not known, or it has no tensor
    cores."""
    if lacks_tensor_cores(name, compute):
        return None
    rates = _of((*_DENSE, *_FAMILIES), name) or _BY_CAPABILITY.get(compute)
    return None if rates is None else ProductPeaks(rates["fp32"], rates.get("tf32", 0), rates["fp16"])


def lacks_tensor_cores(name: str, compute: tuple[int, int]) -> bool:
    """Whether the GPU is known to have none."""
    return (0, 0) < compute < FIRST_WITH_TENSOR_CORES or _WITHOUT.search(name) is not None
