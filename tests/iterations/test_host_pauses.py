"""A queue that is full hides what the host does between its steps from the device, and not from the thread's calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from tests.diagnosis.programs.registry import US, solver
from tests.iterations.test_varied import QUICK, steps_of
from tests.simulator import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.phases.facts import PhaseSteps
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

SWEEPS = 240


def _steps(folder: Path, pauses: set[int], pause: int = 60 * US, *, input_of_each: bool = False) -> PhaseSteps:
    """Those of sweeps of two kernels through a short queue; the host pauses before some of them."""
    simulation = Simulation(1)
    process = solver(simulation)
    process.null.limit = 16

    def main(t: Thread) -> Body:
        for sweep in range(SWEEPS):
            if sweep in pauses:
                yield from t.compute(pause, "prepare")
            if input_of_each:
                yield from t.copy("HtoD", 4096, 2 * US)
            yield from t.launch("red", 50 * US)
            yield from t.launch("black", 30 * US)
        yield from t.synchronize()

    simulation.thread(process, main)
    steps = steps_of(analyze(simulation.run().write(folder / "trace.sqlite"), QUICK))
    assert steps is not None
    return steps


@pytest.mark.parametrize("each", [2, 3, 10])
def test_pauses_at_one_distance_may_begin_the_steps(each: int, tmp_path: Path) -> None:
    steps = _steps(tmp_path, set(range(0, SWEEPS, each)))
    assert not steps.certain
    assert steps.group == each


@pytest.mark.parametrize(
    ("pauses", "pause", "input_of_each"),
    [
        ({7, 31, 58, 60, 133, 190, 221}, 60 * US, False),  # at no distance
        (set(range(0, SWEEPS, 10)), 4 * US, False),  # no longer than between any calls
        (set(range(60, 120, 10)), 60 * US, False),  # in a part of the time
        (set(range(0, SWEEPS, 10)), 60 * US, True),  # as a log: each sweep takes input
        ({0, 120}, 60 * US, False),  # too few
    ],
)
def test_other_pauses_doubt_no_step(pauses: set[int], pause: int, input_of_each: bool, tmp_path: Path) -> None:
    steps = _steps(tmp_path, pauses, pause, input_of_each=input_of_each)
    assert steps.certain
    assert abs(steps.count - SWEEPS) <= 1
