"""Programs compared whose difference is known: another start, or another amount of work in a step of the same name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nsysdiag import Report, Settings, analyze
from nsysdiag.comparison.compare import compare_reports
from tests.diagnosis.programs.registry import MS, US, busy_step, solver, start_up
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body

pytestmark = pytest.mark.slow
TWICE = r"(twice|two times|2(\.0)? ?(times|×)|\+100 ?%|double)"
WORK = r"(work|kernels|launches|operations)"
MORE_WORK = rf"(?i){TWICE}[^.]{{0,60}}{WORK}|{WORK}[^.]{{0,60}}{TWICE}"


def _report(folder: Path, name: str, main: Callable[[Thread], Body]) -> Report:
    simulation = Simulation()
    sim_process = solver(simulation)
    simulation.thread(sim_process, main, name="solver")
    simulation.run().write(folder / f"{name}.sqlite")
    return analyze(folder / f"{name}.sqlite", Settings(timeline=False))


def _steps(
    *, start: int = 20 * MS, kernels: int = 6, each: int = 500 * US, ranges: bool = True
) -> Callable[[Thread], Body]:
    def main(t: Thread) -> Body:
        yield from start_up(t, start)
        for number in range(60):
            if ranges:
                t.push("step")
            # Lengths differ a little from step to step, as in every program.
            yield from busy_step(t, kernels=kernels, each=each, host=(150 + 7 * (number * 37 % 11)) * US)
            if ranges:
                t.pop()

    return main


@pytest.mark.parametrize("ranges", [True, False])
def test_another_start_is_no_regression(ranges: bool, tmp_path: Path) -> None:
    before = _report(tmp_path, "before", _steps(start=20 * MS, ranges=ranges))
    after = _report(tmp_path, "after", _steps(start=2_000 * MS, ranges=ranges))
    assert compare_reports([before], [after]).verdict == "same"


def test_twice_the_work_in_a_step_is_said_and_no_regression(tmp_path: Path) -> None:
    before, after = _report(tmp_path, "before", _steps()), _report(tmp_path, "after", _steps(kernels=12))
    made = compare_reports([before], [after])
    assert made.verdict != "regressed"
    assert re.search(MORE_WORK, made.sentence), made.sentence


def test_the_same_work_that_takes_twice_as_long_is_a_regression(tmp_path: Path) -> None:
    before, after = _report(tmp_path, "before", _steps()), _report(tmp_path, "after", _steps(each=1 * MS))
    made = compare_reports([before], [after])
    assert made.verdict == "regressed"
    assert not re.search(MORE_WORK, made.sentence), made.sentence
