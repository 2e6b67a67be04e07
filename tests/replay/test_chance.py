"""Predictions of programs made by chance, against the repaired programs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.levels import examples
from tests.replay.pairs.chance import KERNELS, KINDS, REPAIRS, actions, of_helper, pairs
from tests.replay.pairs.pair import Pair
from tests.replay.pairs.prediction import Outcome, predicted

SEEDS = range(examples(150))
MOST_ERROR = 0.01
"""Of a step. Of 2,773 repairs of the first 1,000 programs none was refused, no truth was further outside of the bounds,
and no prediction was further off than 1.2%."""


def outcome(pair: Pair) -> Outcome:
    """What is true and predicted."""
    with TemporaryDirectory() as folder:
        return predicted(pair, Path(folder))


@pytest.mark.slow
def test_repairs_of_programs_made_by_chance() -> None:
    """No prediction is refused, none promises what the repair does not bring."""
    found = [outcome(pair) for seed in SEEDS for pair in pairs(seed)]
    assert len(found) > len(SEEDS)
    assert [each for each in found if each.refused or not each.inside(MOST_ERROR)] == []


def test_chance_makes_everything() -> None:
    """Each kind of action and of repair; each program has all kernels, and is the same for the same seed."""
    programs = [actions(seed) for seed in range(60)]
    assert {each.kind for program in programs for each in program} == KINDS.keys()
    assert all({each.name for each in program} >= set(KERNELS) for program in programs)
    assert {pair.name.split(": ")[1] for seed in range(60) for pair in pairs(seed)} == REPAIRS.keys()
    assert programs == [actions(seed) for seed in range(60)]
    helped = [of_helper(seed, len(program)) for seed, program in enumerate(programs)]
    assert [bool(each) for each in helped] == [False, True] * 30
    assert all(
        0 <= each.start < each.stop <= len(program) for each, program in zip(helped, programs, strict=True) if each
    )
