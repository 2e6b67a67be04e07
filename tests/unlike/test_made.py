"""Where repeats begin in programs made by chance."""

from __future__ import annotations

import pytest

from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.unlike import CLASSES
from tests.unlike.made import Loops, _of_thread

OF_SEVERAL = ("two_processes_on_one_gpu", "a_pipeline_over_two_gpus", "a_convoy_of_launching_threads")


class Counting(Loops):
    """Holds each count against one of all operations."""

    def step(self, t: Thread, level: str = "step") -> None:
        super().step(t, level)
        assert self.begun[level][-1] == (t, len(_of_thread(t)))


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_a_repeat_begins_behind_all_that_its_thread_has_launched(name: str) -> None:
    kind, loops = CLASSES[name], Counting()
    simulation = Simulation(kind.gpus)
    kind.build(simulation, loops, kind.made(0))
    simulation.run()
    assert len({count for begun in loops.begun.values() for _, count in begun}) > 10
