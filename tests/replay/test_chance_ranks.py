"""Predictions of programs on several GPUs made by chance, against the fixed programs."""

from __future__ import annotations

import pytest

from tests.levels import examples
from tests.replay.pairs.chance_ranks import ACTS, FIXES, LATE, OWN, WAYS, Job, job, needs, pairs
from tests.replay.test_chance import outcomes

SEEDS, QUICK = range(examples(20)), (42, 47, 78, 84, 117)
MOST_ERROR = 0.01
"""Of a step. Of 386 fixes of the first 120 programs none was refused, and no truth was further outside."""


def outside(seed: int) -> list[object]:
    """The fixes of a program of which the prediction is refused, or promises what they do not bring."""
    found = outcomes(pairs(seed))
    assert found
    return [each for each in found if each.refused or not each.inside(MOST_ERROR)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_fixes_of_programs_made_by_chance(seed: int) -> None:
    assert outside(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", QUICK)
def test_some_of_them(seed: int) -> None:
    """They exchange messages of MPI, of four ranks in a row, and groups of sends and receives. Late ranks have steps of
    their own."""
    assert outside(seed) == []


def test_chance_makes_everything() -> None:
    """Each kind of action, reason to be late and fix; and the same program for the same seed."""
    jobs = [job(seed) for seed in range(120)]
    kinds = {each.kind for one in jobs for each in one.actions}
    assert kinds == {*OWN, *(kind for way in WAYS.values() for kind in way), "join"}
    assert kinds < ACTS.keys()
    assert {one.why for one in jobs} == {"", *LATE}
    assert all(any(needs(one, what) for one in jobs) for what in FIXES)
    assert jobs == [job(seed) for seed in range(120)]


def test_ranks_are_two_to_four() -> None:
    jobs: list[Job] = [job(seed) for seed in range(60)]
    assert {each.gpus for each in jobs} == {2, 3, 4}
    assert all(-1 <= each.late < each.gpus for each in jobs)
