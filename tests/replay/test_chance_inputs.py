"""Predictions of programs made by chance that wait for input, against the fixed programs."""

from __future__ import annotations

import pytest

from tests.levels import examples
from tests.replay.pairs.chance_inputs import SOURCES, fixes, made, pairs
from tests.replay.test_chance import MOST_ERROR, outcomes

SEEDS = range(examples(60))
"""Of 604 fixes of 129 programs no truth was outside of its bounds by more than 1% of a step."""
QUICK = (20, 24, 35, 58, 1025)
"""A stage behind workers, of whose waits it is mostly not known who ends them; workers that wait for the step, that
keep a pace in turns; that read requests from a pipe, and then a file; and four of which each ends some of the waits for
a pipe."""


@pytest.mark.thorough
def test_some_programs_that_wait_for_input() -> None:
    """The trace shows only some of what they wait for."""
    found = [each for seed in QUICK for each in outcomes(pairs(seed))]
    assert sum(not each.refused for each in found) > 0.7 * len(found)
    assert [each for each in found if not each.refused and not each.inside(MOST_ERROR)] == []


@pytest.mark.slow
def test_fixes_of_programs_that_wait_for_input() -> None:
    """No prediction promises what the fix does not bring; few are refused."""
    found = [each for seed in SEEDS for each in outcomes(pairs(seed))]
    made = [each for each in found if not each.refused]
    assert len(made) > 0.9 * len(found) > len(SEEDS)
    assert [each for each in made if not each.inside(MOST_ERROR)] == []


def test_chance_makes_every_source() -> None:
    """Each source of input, and each fix; each program is the same for the same seed."""
    programs = [made(seed) for seed in range(60)]
    assert {each.source for each in programs} == SOURCES.keys()
    assert {name for each in programs for name in fixes(each)} == {
        *("kernel", "host", "sleep", "sync", "workers", "ready", "decode", "read", "unseen")
    }
    assert programs == [made(seed) for seed in range(60)]
    assert {each.recorded for each in programs} == {each.shared for each in programs} == {False, True}
