"""Arithmetic per second by the operations of a step that the user gives."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nsysdiag.document.one_line import command_of
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import BY_NAME
from nsysdiag.kernels.facts import FamilyTime
from nsysdiag.messages import UsageError
from nsysdiag.report import Report
from nsysdiag.utilization.facts import FlopRate
from nsysdiag.utilization.utilization import parse_flops, precision_of, with_flops
from tests.output import samples

MS = 1_000_000
A100 = "NVIDIA A100-SXM4-80GB"


def families(**ns: int) -> list[FamilyTime]:
    """`BF16_matrix_products_(tensor_cores)=7` is a family with that time."""
    return [
        FamilyTime(
            family=name.replace("_", " "), count=1, total_ns=each, share=0.5, names=1, step_count=None, step_ns=None,
            kernels=[],
        )
        for name, each in ns.items()
    ]  # fmt: skip


def report(step: int = 500 * MS, gpu: str = A100, **products: int) -> Report:
    made = samples.one_device()
    iterations = replace(samples.iterations(), p50_ns=step)
    device = replace(made.devices[0], name=gpu, iterations=iterations, kernel_families=families(**products))
    return replace(made, devices=[device])


def rate(made: Report, given: str) -> FlopRate:
    found = with_flops(made, given).devices[0].utilization.flops
    assert found is not None
    return found


def test_the_share_of_the_peak() -> None:
    """0.078 PFLOP in half a second are 156 TFLOP/s, half of what an A100 can do in BF16."""
    found = rate(report(BF16_matrix_products=90, norms_and_softmax=50), "7.8e13")
    assert (found.flops_per_second, found.peak_flops_per_second, found.share) == (156e12, 312e12, 0.5)
    assert found.sentence == (
        "The given operations in a step of 500 ms are 156 TFLOP/s: 50.0% of 312 TFLOP/s, the published dense peak in "
        "BF16."
    )


def test_a_given_precision_counts() -> None:
    found = rate(report(BF16_matrix_products=90), "3.9e13:TF32")
    assert (found.precision, found.share) == ("tf32", 0.5)


def test_more_than_the_peak_is_refused() -> None:
    found = rate(report(BF16_matrix_products=90), "1.8e14")
    assert (found.refused, found.flops_per_second, found.share) == (True, None, None)
    assert "360 TFLOP/s, more than 312 TFLOP/s" in found.sentence
    assert "no share is given" in found.sentence


@pytest.mark.parametrize(
    ("products", "precision"),
    [
        ({"BF16_matrix_products": 50, "FP16_matrix_products": 50}, "bf16"),
        ({"BF16_matrix_products": 90, "FP32_matrix_products": 10}, "bf16"),
        ({"BF16_matrix_products": 80, "FP32_matrix_products": 20}, None),
        ({"BF16_matrix_products": 50, "matrix_products": 50}, None),
        ({"attention": 50}, None),
    ],
)
def test_the_precision_of_nearly_all_products(products: dict[str, int], precision: str | None) -> None:
    found = precision_of(families(**products), A100)
    assert found == precision or {found, precision} == {"bf16", "fp16"}


def test_without_a_precision_or_a_peak_there_is_no_share() -> None:
    unknown = rate(report(), "7.8e13")
    assert (unknown.share, unknown.flops_per_second) == (None, 156e12)
    assert "precision is not known" in unknown.sentence
    other = rate(report(gpu="Some GPU"), "7.8e13:bf16")
    assert other.share is None
    assert "peak of this GPU in BF16 is not known" in other.sentence


def test_without_steps_it_is_refused() -> None:
    made = report()
    layers = replace(made.devices[0], iterations=None)
    with pytest.raises(UsageError, match="no whole steps were found"):
        with_flops(replace(made, devices=[layers]), "1e12")
    assert with_flops(made, None) is made


@pytest.mark.parametrize("text", ["", "0", "-1e12", "nan", "1e99", "fast", "1e12:int3", "1e12:", "1e12:bf16:x", "inf"])
def test_what_is_no_number_of_operations(text: str) -> None:
    with pytest.raises(UsageError):
        parse_flops(text)


@pytest.mark.parametrize("name", ["txt", "md", "html"])
def test_every_format_says_it(name: str) -> None:
    made = with_flops(report(BF16_matrix_products=90), "7.8e13")
    text = " ".join(FORMATS[name].render(made, RenderOptions()).decode().split())
    assert "50.0% of 312 TFLOP/s" in text
    assert "flop_share" in BY_NAME["utilization"].header


def test_the_command_has_it() -> None:
    made = replace(samples.one_device(), settings={"flops_per_step": "1e12:bf16"})
    assert "--flops-per-step 1e12:bf16" in command_of(made)
