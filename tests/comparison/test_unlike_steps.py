"""Steps with more or fewer layers: another amount of work, whether anything names the steps or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import Comparison
from tests.comparison.programs import LAYERS, Program
from tests.comparison.samples import only, report_of
from tests.simulator.engine import US

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("analyzed_once")]

UNNAMED = Program(named=False)
SYNC = replace(UNNAMED, sync=True, tail=500 * US)
NAMED = Program()
BARE = replace(UNNAMED, inputs=False)


def compared(before: Program, after: Program) -> Comparison:
    return compare_reports([report_of(before)], [report_of(replace(after, seed=before.seed + 1))])


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize("layers", [4, 9, 12])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (UNNAMED, UNNAMED),
        (SYNC, SYNC),
        (replace(SYNC, inputs=False), replace(SYNC, inputs=False)),
        (NAMED, NAMED),
        (NAMED, replace(NAMED, word="iteration")),
        (NAMED, UNNAMED),
        (replace(NAMED, inputs=False, sync=True), replace(SYNC, inputs=False, tail=2 * US)),
    ],
    ids=["unnamed", "synchronized", "without inputs", "named", "other words", "named, then not", "synchronized alone"],
)
def test_more_layers_are_more_work(before: Program, after: Program, layers: int) -> None:
    made = compared(before, replace(after, layers=layers))
    assert made.verdict == "mixed"
    assert f"kernels {3 * LAYERS} → {3 * layers} " in made.headline
    assert only(made).unit.scale == pytest.approx(1.0)


@pytest.mark.sampled(normal=4)
@pytest.mark.parametrize("after", [replace(BARE, layers=9), replace(BARE, steps=50), replace(BARE, steps=50, layers=9)])
@pytest.mark.parametrize("before", [BARE, replace(BARE, steps=60), replace(BARE, named=True)])
def test_what_may_be_more_steps_or_larger_ones_has_no_verdict(before: Program, after: Program) -> None:
    """Nothing but layers repeats in the traces."""
    made = compared(before, after)
    assert made.verdict == "unknown"
    assert made.headline.startswith("Parts of steps")


@pytest.mark.parametrize("program", [UNNAMED, SYNC, NAMED])
def test_more_steps_are_no_more_work(program: Program) -> None:
    made = compared(program, replace(program, steps=50))
    assert made.verdict == "same"
    assert not any(row.differs for row in only(made).work)
