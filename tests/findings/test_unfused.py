"""Kernels of single operators: what fusing those in a row may save, and when nothing is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from nsysdiag.diagnosis.savings import saved_share
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding

ADD, CAST, PRODUCT = "vectorized_elementwise_kernel", "unrolled_elementwise_kernel", "ampere_bf16_s16816gemm_bf16"
FUSED = "triton_poi_fused_add_mul_17"
STEPS, STEP = 20, 1_000_000


def found(tmp_path: Path, *step: tuple[str, int], stream: int = 7) -> list[Finding]:
    """Those of a program whose steps run these kernels, one right after another; `stream` is that of all but the
    products."""
    trace = TraceBuilder()
    for number in range(STEPS):
        at = 1_000_000 + number * STEP
        for name, length in step:
            on = 7 if name == PRODUCT else stream
            trace.kernel(at, at + length, name=name, launch=(at - 900, at - 800), stream=on)
            at += length
    report = analyze(trace.write(tmp_path / "t.sqlite"))
    return [each for each in report.findings if each.cause == "unfused"]


def test_those_in_a_row_may_take_no_time_of_their_own(tmp_path: Path) -> None:
    """Of a millisecond a step, 200, 100 and 100 µs stand in a row: as long as the longest, half of that is saved. One
    that stands alone saves nothing."""
    row = ((ADD, 200_000), (CAST, 100_000), (ADD, 100_000))
    (one,) = found(tmp_path, (PRODUCT, 300_000), *row, (PRODUCT, 200_000), (CAST, 100_000))
    assert one.share == pytest.approx(0.5, abs=0.01)
    assert saved_share(one) == pytest.approx(0.4, abs=0.01)
    assert one.evidence[1].endswith("; 4.00 ms of it if each sequence takes as long as its longest kernel")
    assert one.evidence[0] == "40 of 80 directly follow another one on their stream"
    assert (one.bottleneck, one.lost_ns) == ("kernels", 0)


def test_a_lone_one_promises_nothing(tmp_path: Path) -> None:
    (one,) = found(tmp_path, (PRODUCT, 500_000), (ADD, 500_000))
    assert (one.saves, one.share > 0.45) == (None, True)


def test_products_that_take_nine_tenths_do_not_hide_them(tmp_path: Path) -> None:
    """An inference in single precision: fusing is a second thing to do, beside faster products."""
    layer = ((PRODUCT, 456_000), (ADD, 24_000), (CAST, 10_000), (ADD, 10_000))
    (one,) = found(tmp_path, *layer, *layer)
    assert one.share == pytest.approx(0.088, abs=0.001)
    assert saved_share(one) == pytest.approx(0.088, abs=0.001)


@pytest.mark.parametrize(
    "step",
    [((PRODUCT, 960_000), (ADD, 20_000), (CAST, 20_000)), ((PRODUCT, 500_000), (FUSED, 500_000))],
)
def test_few_or_fused_ones_are_no_finding(tmp_path: Path, step: tuple[tuple[str, int], ...]) -> None:
    assert found(tmp_path, *step) == []


def test_another_stream_is_another_row(tmp_path: Path) -> None:
    """The product between them runs on another stream: on theirs they follow one another."""
    (one,) = found(tmp_path, (ADD, 200_000), (PRODUCT, 500_000), (CAST, 300_000), stream=9)
    assert one.evidence[0] == "39 of 40 directly follow another one on their stream"
