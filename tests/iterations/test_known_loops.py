"""Programs made by chance: what is called a step is one of theirs, or all levels are named."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.iterations.known_loops import Verdict, judged
from tests.iterations.known_loops.known import FAMILIES, VARIANTS, Known, programs
from tests.iterations.known_loops.phases import working_pauses

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.arrays.intervals import IntArray
    from nsysdiag.phases.facts import PhaseSteps
    from nsysdiag.report import Report

QUICK = Settings(replay=False, timeline=False)
SOME = [Known(f"{name}_{at % VARIANTS}", *FAMILIES[name], at % VARIANTS) for at, name in enumerate(FAMILIES) if at % 2]
MOST_UNKNOWN = 0.1
"""Of all programs: a report that never tells is right as well, and of no use."""


def held_against(known: Known, folder: Path) -> tuple[Report, Verdict]:
    simulation, truth = known.run()
    report = analyze(simulation.write(folder / f"{known.name}.sqlite"), QUICK)
    return report, judged(report, truth, known.levels)


def steps_of(name: str, seed: int, folder: Path) -> tuple[PhaseSteps, dict[str, IntArray]]:
    """The steps of the longest judged phase, and the true loops."""
    simulation, truth = Known(name, *FAMILIES[name], seed).run()
    report = analyze(simulation.write(folder / f"{name}{seed}.sqlite"), QUICK)
    found = [(phase.end_ns - phase.start_ns, phase.steps) for phase in report.phases if phase.judged and phase.steps]
    return max(found, key=lambda each: each[0])[1], truth


def named(known: Known) -> str:
    return known.name


@pytest.mark.sampled(quick=16, normal=5)
@pytest.mark.parametrize("known", SOME, ids=named)
def test_no_other_loop_is_called_the_step(known: Known, tmp_path: Path) -> None:
    report, verdict = held_against(known, tmp_path)
    assert not verdict.confidently_wrong
    assert working_pauses(report) == []
    assert report.findings[0].cause != "slow_iterations"


@pytest.mark.thorough
def test_all_programs(tmp_path: Path) -> None:
    every = programs()
    told = {each.name: held_against(each, tmp_path)[1] for each in every}
    count = Counter(told.values())
    assert [name for name, verdict in told.items() if verdict.confidently_wrong] == []
    assert count[Verdict.UNKNOWN] <= MOST_UNKNOWN * len(every)


class TestLevels:
    """What a reader sees of programs whose levels are alike."""

    @pytest.mark.thorough
    def test_the_step_of_a_server_is_a_request(self, tmp_path: Path) -> None:
        """Layers in tokens in requests, each of any number, and kernels of the same names in all."""
        steps, true = steps_of("server_of_shared_kernels", 2, tmp_path)
        assert abs(steps.count - len(true["request"])) <= 2
        assert steps.count < len(true["token"]) < len(true["layer"])

    def test_lists_of_neighbours_may_be_of_a_step_or_of_each_nth(self, tmp_path: Path) -> None:
        steps, _ = steps_of("neighbour_lists", 1, tmp_path)
        assert steps.words.startswith("22 steps of 7 parts (or the parts are steps: see --step), median ")

    @pytest.mark.slow
    def test_an_evaluation_is_no_step(self, tmp_path: Path) -> None:
        steps, true = steps_of("evaluation", 4, tmp_path)
        assert len(true["step"]) - 1 <= steps.count <= len(true["step"])
        assert steps.certain

    @pytest.mark.slow
    def test_a_longer_loop_has_two_repeats_at_least(self, tmp_path: Path) -> None:
        for seed in range(VARIANTS):
            steps, _ = steps_of("adaptive_particles", seed, tmp_path)
            assert steps.group != 1
