"""Predictions of programs made by chance of kinds that others have not."""

from __future__ import annotations

import pytest

from tests.levels import examples
from tests.replay.pairs import chance_unlike
from tests.replay.test_chance import MOST_ERROR, outcomes

SEEN = {
    "posts and works on": (31,),
    "host functions": (0, 5),
    "missed times": (0, 2, 8),
    "naps": (2, 3, 18),
    "answers and writes": (2, 6),
    "joins": (11,),
    "asks once": (6, 9),
}
"""Programs whose fixes were refused, or outside of their bounds, before there were rules for their kinds."""
ABLE = [(kind, seed) for kind, seeds in SEEN.items() for seed in seeds]


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize(("kind", "seed"), ABLE)
def test_fixes_are_inside_their_bounds(kind: str, seed: int) -> None:
    found = outcomes(chance_unlike.pairs(kind, seed))
    assert found
    assert [each for each in found if each.refused or not each.inside(MOST_ERROR)] == []


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["host functions", "missed times", "naps", "asks once"])
def test_fixes_of_many_are_inside_their_bounds(kind: str) -> None:
    found = [each for seed in range(examples(30)) for each in outcomes(chance_unlike.pairs(kind, seed))]
    assert [each for each in found if each.refused or not each.inside(MOST_ERROR)] == []


@pytest.mark.slow
def test_host_functions_with_rows_are_predicted_alike() -> None:
    """Their rows say what their launches let one know."""
    pairs = chance_unlike.pairs("host functions", 0)
    recorded = chance_unlike.pairs("host functions", 0, schema="3.28.1")
    without, with_rows = outcomes(pairs), outcomes(recorded)
    assert [each.predicted for each in with_rows] == pytest.approx([each.predicted for each in without], abs=0.01)
    assert all(each.inside(MOST_ERROR) for each in with_rows)
