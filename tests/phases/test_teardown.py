"""The end of a job: what is a part of its last step is no phase that repeats, and no end while one GPU goes on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from tests.diagnosis.programs import PROGRAMS
from tests.iterations.programs import kernels
from tests.shared import Shared
from tests.simulator.engine import MS, US
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.iterations.programs import Script
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body


@pytest.mark.slow
def test_a_last_collective_is_no_steady_phase(shared: Shared) -> None:
    """It has the name of a kernel of each step, and is one of several."""
    simulation, _ = PROGRAMS["slow_exchange_of_equal_ranks"].run()
    report = shared.report(shared.file("last-collective.sqlite", simulation.write))
    assert [phase.name for phase in report.phases] == ["start-up", "steady", "teardown"]


def steps_on(gpu: int, chance: random.Random) -> Script:
    """Steps of a GPU of its own, of any number and length."""
    count, read, host = chance.randint(15, 80), chance.random() < 0.6, chance.choice([4, 200, 900])
    names = [(f"gpu{gpu}_{each}", chance.randint(50, 1500)) for each in range(chance.randint(2, 5))]

    def script(t: Thread) -> Body:
        stream = t.process.stream()
        for _ in range(count):
            yield from t.copy("HtoD", 1 << 20, 60 * US, stream)
            for _ in range(chance.randint(1, 4)):
                yield from kernels(t, *names, stream=stream, host=host)
            yield from t.blocking_copy("DtoH", 4, 2 * US, stream) if read else t.synchronize(stream)

    return script


@pytest.mark.sampled(quick=20, normal=10)
@pytest.mark.parametrize("seed", range(100, 140))
def test_one_gpu_of_several_that_works_makes_no_pause(seed: int, tmp_path: Path) -> None:
    """The others end earlier, or begin later."""
    chance, simulation = random.Random(seed), Simulation(2 + seed % 2)
    for gpu in range(2 + seed % 2):
        simulation.thread(simulation.process([gpu]), steps_on(gpu, chance), start=chance.choice([0, 20]) * MS)
    report = analyze(simulation.run().write(tmp_path / "trace.sqlite"), Settings(replay=False, timeline=False))
    step = max(each.steps.median_ns for each in report.phases if each.steps is not None)
    for phase in report.phases:
        length = phase.end_ns - phase.start_ns
        works = max(each.compute_ns for each in phase.devices) > 0.5 * length
        assert phase.name == "steady" or not works or length < 2 * step
    assert "unused" not in str(report.diagnosis.headline)
