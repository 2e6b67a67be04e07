"""The traces behind the gallery: real hosts with a computed GPU, scenarios of the tests, and two jobs of its own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.functions import bundled_trace
from tests.comparison.programs import Program
from tests.diagnosis.programs import chips, devices, launching, starts
from tests.diagnosis.programs.registry import PROGRAMS
from tests.grafting import graft
from tests.simulator import Simulation
from tests.simulator.engine import MS, US
from tests.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
REGISTERED = (chips, devices, launching, starts)
"""Modules that fill `PROGRAMS`."""
STARTS = (0, 3, 1, 7, 2, 9, 5, 4)
"""When the session of each rank begins, in ms before the job."""
CLOCK_ERRORS = (0, 150, -80, 40, -200, 90, 10, -30)
"""By how much the clock of each rank's machine is off, in µs."""

one_loader = Program(workers=1, seed=1)
five_loaders = Program(workers=5, seed=3)


def demo(path: Path) -> None:
    """The bundled trace."""
    path.write_bytes(gzip.decompress(bundled_trace()))


def fixture(name: str, path: Path) -> None:
    """A trace of tests/fixtures."""
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.sqlite.gz").read_bytes()))


def real_host(name: str, path: Path) -> None:
    """A capture of tests/fixtures, with the rows of the GPU that its program computed."""
    fixture(f"real_host_{name}", path)
    graft(path, json.loads((FIXTURES / f"real_host_{name}.json").read_text(encoding="utf-8")))


def program(name: str, path: Path) -> None:
    """A program of the tests of the diagnosis."""
    simulation, _ = PROGRAMS[name].run()
    simulation.write(path, PROGRAMS[name].capture)


def ranks(folder: Path) -> list[Path]:
    """Eight ranks, each captured on its own."""
    scenario = SCENARIOS["slow_rank"]
    began = [each * MS for each in STARTS]
    errors = [each * US for each in CLOCK_ERRORS]
    return scenario.run().write_each(folder, began, scenario.capture, clock_errors=errors)


def synchronized(path: Path) -> None:
    """A training that waits for the GPU after every kernel, as a debugging aid that was left in.

    T    [Python][l][sync ][Python][l][sync ]
    gpu            [k ]...............[k ]
    """

    def main(t: Thread) -> Body:
        yield from t.launch("distribution_elementwise_grid_stride_kernel", 90 * US)
        for step in range(30):
            t.push(f"step {step}")
            yield from t.copy("HtoD", 1 << 20, 45 * US)
            for name, ns in [("ampere_sgemm_128x64_tn", 32 * US), ("vectorized_elementwise_kernel", 9 * US)] * 24:
                yield from t.compute(24 * US)
                yield from t.launch(name, ns)
                yield from t.synchronize(cost=10 * US)
            t.pop()

    simulation = Simulation()
    simulation.thread(simulation.process(), main)
    simulation.run().write(path)


def shared_gpu(path: Path) -> None:
    """A training on a GPU that works for another process for 3 ms of every 5.

    slices   [ training ][ the other's ][ training ][ the other's ]
    gpu      [k][k][k][k].................[k][k][k][k]
    """

    def main(t: Thread) -> Body:
        for step in range(30):
            t.push(f"step {step}")
            for _ in range(16):
                yield from t.launch("ampere_sgemm_128x64_tn", 250 * US)
            yield from t.synchronize()
            t.pop()

    simulation = Simulation()
    training, other = simulation.process(), simulation.process()
    simulation.gpus[0].slices = [(start * MS, (start + 3) * MS, other) for start in range(2, 600, 5)]
    simulation.thread(training, main)
    simulation.run().write(path)
