"""Steps of another batch or length of sequences: the same kernels with more threads are more work, not slower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import Comparison, WorkChange
from tests.comparison.programs import GEMM, LAYERS, NORM, RELU, Program
from tests.comparison.samples import beside, report_of

pytestmark = pytest.mark.slow

PLAIN = Program()


def compared(before: Program, after: Program) -> Comparison:
    return compare_reports([report_of(before)], [report_of(replace(after, seed=before.seed + 1))])


def threads(made: Comparison) -> WorkChange | None:
    assert made.job is not None
    return next((row for row in made.job.work if row.id == "threads"), None)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("items", [0.5, 2.0])
def test_another_batch_is_other_work(items: float, named: bool) -> None:
    before = replace(PLAIN, named=named)
    made = compared(before, replace(before, items=items))
    row = threads(made)
    assert row is not None
    assert row.differs
    assert row.after / row.before == pytest.approx(items, rel=0.01)
    assert made.verdict == "mixed"
    assert made.headline.startswith("Not the same work per step: threads of the same kernels ")
    assert made.headline.endswith("(the same per thread)")


def test_the_threads_of_a_step_are_those_of_its_launches() -> None:
    row = threads(compared(PLAIN, PLAIN))
    assert row is not None
    assert not row.differs
    assert (row.before, row.after) == pytest.approx([108 * 256 * 3 * LAYERS] * 2, rel=0.01)


@pytest.mark.parametrize("gemm", [0.8, 1.25])
def test_another_grid_of_one_kernel_is_tuning(gemm: float) -> None:
    """The matrix products take 70% of the time: their threads alone say nothing about the work."""
    made = compared(PLAIN, replace(PLAIN, threads=(GEMM,), gemm=gemm))
    row = threads(made)
    assert row is not None
    assert row.after > row.before
    assert not row.differs
    assert made.verdict == ("regressed" if gemm > 1 else "improved")


def test_slower_kernels_of_the_same_grids_are_a_regression() -> None:
    assert compared(PLAIN, replace(PLAIN, gemm=1.25)).verdict == "regressed"


def test_more_layers_are_not_counted_twice() -> None:
    """Kernels that run more often than before say so themselves."""
    made = compared(PLAIN, replace(PLAIN, layers=2 * LAYERS))
    assert threads(made) is None
    assert "kernels 18 → 36 (2.0×)" in made.sentence


def test_another_number_of_gpus_may_share_the_same_work() -> None:
    one, half = report_of(PLAIN), report_of(replace(PLAIN, seed=1, items=0.5))
    made = compare_reports([one], [beside([half, half])])
    assert threads(made) is None
    assert threads(compare_reports([beside([one, one])], [beside([half, half])])) is not None


def test_all_kernels_with_other_grids_in_the_same_time() -> None:
    made = compared(PLAIN, replace(PLAIN, threads=(GEMM, RELU, NORM)))
    row = threads(made)
    assert row is not None
    assert row.differs
    assert made.verdict == "same"
