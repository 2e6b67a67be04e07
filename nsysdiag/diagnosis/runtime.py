"""What it costs to launch, and the kernels themselves: the last two things to look at."""

from __future__ import annotations

import re

from nsysdiag import typed
from nsysdiag.causes.cause import Loss
from nsysdiag.diagnosis.facts import TriageKind
from nsysdiag.diagnosis.feed import LEAST_NAMED, lost_in_all
from nsysdiag.diagnosis.inputs import Given
from nsysdiag.report import KernelRow
from nsysdiag.units import format_count, format_ns, format_share

FEW_TENSOR = 0.10
# Matrix products on the plain units in single precision, as cuBLAS and CUTLASS name them.
SINGLE_PRECISION = re.compile(r"sgemm|simt_s|_f32f32_f32f32_f32|fp32", re.IGNORECASE)
TENSOR = re.compile(r"tf32|tensorop|[hs](884|1688|16816)|bf16|f16|fp16", re.IGNORECASE)


def is_single_precision(kernel: str) -> bool:
    """Whether a kernel is named for a matrix product in single precision without tensor cores."""
    return SINGLE_PRECISION.search(kernel) is not None and TENSOR.search(kernel) is None


def runtime(given: Given) -> TriageKind:
    """Idle time between launches that come too slowly, and in calls that prepare them."""
    launching, preparing = given.lost_ns(Loss.LAUNCHING), given.lost_ns(Loss.PREPARING)
    between = given.between_launches_ns
    share = given.share(launching + between + preparing)
    holds = share >= given.limits.runtime
    parts = {
        Loss.LAUNCHING.value: launching,
        "host code between launches that come too slowly": between,
        Loss.PREPARING.value: preparing,
    }
    said = lost_in_all(given, parts)
    return TriageKind(
        id="runtime",
        title="Runtime overhead: launches and CUDA calls",
        holds=holds,
        share=round(share, 6),
        evidence=[*(said or ["Launching takes next to no time of the device."]), *_launches(given)],
        advice=_advice(given, launching + between, preparing) if holds else [],
    )


def _launches(given: Given) -> list[str]:
    """How often work is launched, beside how long it runs, and whether graphs are used."""
    launch = given.launch
    said = []
    if launch.median_interval_ns is not None and launch.median_kernel_ns is not None:
        interval, kernel = format_ns(launch.median_interval_ns), format_ns(launch.median_kernel_ns)
        said.append(f"A launch comes every {interval} in the median; the median kernel runs {kernel}.")
    graphs = launch.graphs.launches if launch.graphs else 0
    said.append(f"{format_count(graphs)} launches of CUDA graphs, {format_count(launch.calls)} launching calls in all.")
    return said


def _advice(given: Given, launching: int, preparing: int) -> list[str]:
    advice = []
    if given.share(launching) >= LEAST_NAMED:
        advice.append(
            "Launch less: CUDA graphs, torch.compile(mode='reduce-overhead'), fused kernels and optimizers, larger "
            "batches."
        )
    if given.share(preparing) >= LEAST_NAMED:
        advice.append("Prepare before the loop: warm up all shapes, keep memory and graphs, load code early.")
    return advice


def kernels(given: Given) -> TriageKind:
    """Whether the device computes for most of the time: then its kernels decide."""
    share = given.share(given.split.compute_ns)
    holds = share >= given.limits.kernels
    rows = [row for row in given.kernels if not row.communication]
    return TriageKind(
        id="kernels",
        title="The kernels themselves",
        holds=holds,
        share=round(share, 6),
        evidence=[f"Kernels compute {format_share(share, 1)} of the time.", *_largest(rows), *_precision(given, rows)],
        advice=_kernel_advice(given, rows) if holds else [],
    )


def _largest(rows: list[KernelRow]) -> list[str]:
    total = sum(row.total_ns for row in rows)
    if not total:
        return []
    first = max(rows, key=lambda row: (row.total_ns, row.name))
    return [f"{format_share(first.total_ns, total)} of the kernels' time is in {typed.kernel(first.short_name)}."]


def _single_share(rows: list[KernelRow]) -> float:
    """The share of the kernels' time in single-precision matrix products, by name."""
    total = sum(row.total_ns for row in rows)
    single = sum(row.total_ns for row in rows if is_single_precision(row.name))
    return single / total if total else 0.0


def _precision(given: Given, rows: list[KernelRow]) -> list[str]:
    said = []
    if share := _single_share(rows):
        said.append(
            f"{format_share(share, 1)} of it is in matrix products named for single precision without tensor cores."
        )
    if given.tensor_active is not None:
        said.append(
            f"The tensor cores are active {format_share(given.tensor_active, 1)} of the time in which kernels run."
        )
    return said


def _kernel_advice(given: Given, rows: list[KernelRow]) -> list[str]:
    advice = []
    if _single_share(rows) >= LEAST_NAMED or (given.tensor_active is not None and given.tensor_active < FEW_TENSOR):
        advice.append(
            "Mixed precision: torch.autocast with bf16, or TF32 (torch.set_float32_matmul_precision('high')), puts "
            "matrix products on the tensor cores."
        )
    advice.append(
        "Look at the largest kernels one by one with Nsight Compute; fused attention, channels_last, torch.compile."
    )
    return advice
