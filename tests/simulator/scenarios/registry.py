"""Named scenarios: a short script, a picture or sentence of what happens, and what is captured of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulator.capture import EVERYTHING, Capture
from tests.simulator.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Scenario:
    """`expected`: the cause the scenario is about; `tolerated` ones may take a share though they are not true."""

    name: str
    picture: str
    expected: str
    build: Callable[[Simulation], None]
    gpus: int
    capture: Capture
    tolerated: frozenset[str]

    def run(self) -> Simulation:
        simulation = Simulation(self.gpus)
        simulation.capture = self.capture
        self.build(simulation)
        return simulation.run()


SCENARIOS: dict[str, Scenario] = {}


def register(
    expected: str, *, gpus: int = 1, capture: Capture = EVERYTHING, tolerated: tuple[str, ...] = ()
) -> Callable[[Callable[[Simulation], None]], Callable[[Simulation], None]]:
    """Make a scenario of a function that scripts a simulation; its docstring is the picture."""

    def add(build: Callable[[Simulation], None]) -> Callable[[Simulation], None]:
        name = build.__name__
        SCENARIOS[name] = Scenario(name, build.__doc__ or "", expected, build, gpus, capture, frozenset(tolerated))
        return build

    return add
