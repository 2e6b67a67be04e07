"""What a GPU can do at most, as published: NVLink, the interface to the host, and arithmetic, by the name of the GPU.

Rates are bytes or floating-point operations a second, in one direction and without structured sparsity. They are of
NVIDIA's datasheets, by the names of the GPUs. The bandwidth of a GPU's own memory is in most traces.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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


def link_of(name: str) -> float | None:
    """What NVLink of a GPU carries each way in bytes a second; None if it is not known."""
    return next((rate for pattern, rate in LINKS if re.search(pattern, name)), None)


def switch_adds(name: str) -> bool:
    """Whether the NVLink switches of such a GPU can add up what they carry."""
    return re.search(IN_SWITCH, name) is not None


def host_link_of(name: str) -> Peak | None:
    """What the interface of a GPU to its host carries each way; None if it is not known. The slot may be slower."""
    generation = next((number for pattern, number in _TO_HOST if re.search(pattern, name)), None)
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
    return next((rate for pattern, rate in _MEMORY if re.search(pattern, name)), None)


# What is computed at most in TFLOP/s, by tensor cores if these can do it: fp32 never, fp64 from the A100 on.

PRECISIONS = ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32", "fp64")
_DENSE: tuple[tuple[str, dict[str, float]], ...] = (
    (r"V100.*SXM", {"fp16": 125, "fp32": 15.7, "fp64": 7.8}),
    (r"V100.*PCI", {"fp16": 112, "fp32": 14, "fp64": 7}),
    (r"T4\b", {"fp16": 65, "fp32": 8.1}),
    (r"A100|A800", {"bf16": 312, "fp16": 312, "tf32": 156, "fp32": 19.5, "fp64": 19.5}),
    (r"A30\b", {"bf16": 165, "fp16": 165, "tf32": 82, "fp32": 10.3}),
    (r"A40\b", {"bf16": 149.7, "fp16": 149.7, "tf32": 74.8, "fp32": 37.4}),
    (r"A10\b", {"bf16": 125, "fp16": 125, "tf32": 62.5, "fp32": 31.2}),
    (r"L40S", {"fp8": 733, "bf16": 362, "fp16": 362, "tf32": 183, "fp32": 91.6}),
    (r"L4\b", {"fp8": 242.5, "bf16": 121, "fp16": 121, "tf32": 60, "fp32": 30.3}),
    (r"H20\b", {"fp8": 296, "bf16": 148, "fp16": 148, "tf32": 74, "fp32": 44}),
    (r"H100 NVL", {"fp8": 1671, "bf16": 835, "fp16": 835, "tf32": 417, "fp32": 60, "fp64": 60}),
    (r"H100 PCIe", {"fp8": 1513, "bf16": 756, "fp16": 756, "tf32": 378, "fp32": 51, "fp64": 51}),
    (r"H200 NVL", {"fp8": 1671, "bf16": 836, "fp16": 836, "tf32": 418, "fp32": 60, "fp64": 60}),
    (r"H800\b", {"fp8": 1979, "bf16": 989, "fp16": 989, "tf32": 494, "fp32": 67}),
    (r"(H100|H200|GH200)\b", {"fp8": 1979, "bf16": 989, "fp16": 989, "tf32": 494, "fp32": 67, "fp64": 67}),
    (r"\bB200\b", {"fp4": 9000, "fp8": 4500, "bf16": 2250, "fp16": 2250, "tf32": 1120, "fp32": 75}),
    (r"\bGB200\b", {"fp4": 10000, "fp8": 5000, "bf16": 2500, "fp16": 2500, "tf32": 1250, "fp32": 80}),
)


def dense_peak(name: str, precision: str) -> float | None:
    """Floating-point operations a second of a GPU in one of PRECISIONS, without sparsity; None if it is not
    known."""
    known = next((peaks for pattern, peaks in _DENSE if re.search(pattern, name)), {})
    return known[precision] * 1e12 if precision in known else None
