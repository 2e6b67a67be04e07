"""Matrix products in FP32 without tensor cores: what these would save at most on this GPU, and when nothing is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from nsysdiag.diagnosis.savings import saved_share
from nsysdiag.findings.facts import first_of
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding
    from nsysdiag.report import Report

SGEMM, CONVOLUTION, ADD = (
    "ampere_sgemm_128x64_tn",
    "ampere_scudnn_128x64_relu_medium_nn_v1",
    "vectorized_elementwise_kernel",
)
BF16, OWN = "ampere_bf16_s16816gemm_bf16", "stencil"
STEPS, STEP = 20, 1_000_000
A100 = "NVIDIA A100-SXM4-80GB"


def report_of(
    tmp_path: Path, *step: tuple[str, int], gpu: str | None = A100, compute: tuple[int, int] = (0, 0)
) -> Report:
    """That of a program whose steps run these kernels, one right after another, on this GPU."""
    trace = TraceBuilder()
    if gpu is not None:
        limits = {"computeMajor": compute[0], "computeMinor": compute[1]} if any(compute) else None
        trace.gpu(name=gpu, limits=limits)
    for number in range(STEPS):
        at = 1_000_000 + number * STEP
        for name, length in step:
            trace.kernel(at, at + length, name=name, launch=(at - 900, at - 800))
            at += length
    return analyze(trace.write(tmp_path / "t.sqlite"))


def found(report: Report) -> list[Finding]:
    return [each for each in report.findings if each.cause == "single_precision"]


@pytest.mark.sampled(quick=7)
@pytest.mark.parametrize(
    ("gpu", "compute", "ratio", "tf32"),
    [
        (A100, (8, 0), 16, True),
        ("NVIDIA A100 80GB PCIe", (0, 0), 16, True),
        ("NVIDIA H100 80GB HBM3", (9, 0), 989.4 / 67, True),
        ("NVIDIA GH200 120GB", (9, 0), 989.4 / 67, True),
        ("NVIDIA B200", (10, 0), 30, True),
        ("NVIDIA L4", (8, 9), 121 / 30.3, True),
        ("NVIDIA RTX 6000 Ada Generation", (8, 9), 362 / 91.6, True),
        ("NVIDIA RTX A6000", (8, 6), 149.7 / 37.4, True),
        ("NVIDIA GeForce RTX 3080", (8, 6), 71 / 35.6, False),
        ("NVIDIA GeForce RTX 4090", (8, 9), 2, False),
        ("Tesla V100-SXM2-16GB", (0, 0), 125 / 15.7, False),
        ("Tesla T4", (7, 5), 65 / 8.1, False),
        ("Quadro RTX 6000", (7, 5), 130.5 / 16.3, False),
        ("Engineering sample", (9, 0), 989.4 / 67, True),
    ],
)
def test_the_bound_is_the_ratio_of_peak_rates(
    gpu: str, compute: tuple[int, int], ratio: float, tf32: bool, tmp_path: Path
) -> None:
    (one,) = found(report_of(tmp_path, (SGEMM, 500_000), (OWN, 450_000), gpu=gpu, compute=compute))
    assert one.share == pytest.approx(0.5, abs=0.01)
    assert one.saves is not None
    assert saved_share(one) == pytest.approx(0.5 * (1 - 1 / ratio), abs=0.015)
    assert one.saves.low_ns == 0
    assert ("TF32 (" in one.advice[0]) == tf32
    assert "only if memory does not limit" in one.advice[1]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("gpu", "compute"),
    [
        ("Tesla P100-PCIE-16GB", (6, 0)),
        ("Tesla K80", (0, 0)),
        ("NVIDIA GeForce GTX 1660 Ti", (7, 5)),
        ("NVIDIA T1000", (7, 5)),
        ("Unknown board", (6, 1)),
    ],
)
def test_no_word_of_tensor_cores_on_gpus_without(gpu: str, compute: tuple[int, int], tmp_path: Path) -> None:
    report = report_of(tmp_path, (SGEMM, 900_000), gpu=gpu, compute=compute)
    assert found(report) == []
    assert not any("TF32" in text or "half precision" in text for each in report.findings for text in each.advice)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("gpu", "compute"), [(None, (0, 0)), ("Orin (nvgpu)", (8, 7)), ("Some GPU", (0, 0))])
def test_an_unknown_gpu_has_no_bound_and_says_so(gpu: str | None, compute: tuple[int, int], tmp_path: Path) -> None:
    (one,) = found(report_of(tmp_path, (SGEMM, 900_000), gpu=gpu, compute=compute))
    assert (one.saves, one.ceiling_ns) == (None, 0)
    assert any("the peak rates of this GPU are not known" in text for text in one.advice)


def test_it_leads_before_advice_that_saves_less(tmp_path: Path) -> None:
    """Of a millisecond a step 510 µs are products; 280 in a row of elementwise kernels, of which fusing saves 140."""
    report = report_of(tmp_path, (SGEMM, 510_000), (ADD, 140_000), (ADD, 140_000), (OWN, 100_000))
    assert report.diagnosis is not None
    first = first_of(report.diagnosis, report.findings)
    assert first is not None
    assert first.cause == "single_precision"
    assert [each.cause for each in report.findings][:2] == ["single_precision", "unfused"]
    assert "FP32 GEMM (cuBLAS, no tensor cores) 51." in report.diagnosis.headline


def test_on_a_gpu_with_a_small_ratio_fusing_may_lead(tmp_path: Path) -> None:
    steps = ((SGEMM, 310_000), (ADD, 200_000), (ADD, 200_000), (ADD, 200_000))
    report = report_of(tmp_path, *steps, gpu="NVIDIA GeForce RTX 4090")
    assert [each.cause for each in report.findings][:2] == ["unfused", "single_precision"]


def test_convolutions_count(tmp_path: Path) -> None:
    report = report_of(tmp_path, (CONVOLUTION, 400_000), (OWN, 500_000))
    (one,) = found(report)
    assert one.share == pytest.approx(0.4, abs=0.01)
    assert "FP32 convolution (cuDNN, no tensor cores)" in report.diagnosis.headline


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    "step",
    [((BF16, 900_000),), ((SGEMM, 200_000), (OWN, 700_000)), ((OWN, 900_000),), (("dgemm_kernel", 900_000),)],
)
def test_few_or_other_products_are_no_finding(step: tuple[tuple[str, int], ...], tmp_path: Path) -> None:
    assert found(report_of(tmp_path, *step)) == []


def test_the_advice_stands_once(tmp_path: Path) -> None:
    report = report_of(tmp_path, (SGEMM, 900_000))
    kernels = next(each for each in report.findings if each.cause == "kernels")
    assert kernels.advice[0] == "Matrix products: see “FP32 matrix products without tensor cores”."
