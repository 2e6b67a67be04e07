"""Named scenarios: a short script, a picture or sentence of what happens, and what is captured of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulator.capture import EVERYTHING, Capture
from tests.simulator.engine import US
from tests.simulator.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Scenario:
    """`expected`: the cause the scenario is about; `tolerated` ones may take a share though they are not true.

    `root` is the cause where its waits lead; findings of the causes `findings` must be made, of `forbidden` ones not.
    `not_yet`: what the analysis still gets wrong about it.
    """

    name: str
    picture: str
    expected: str
    build: Callable[[Simulation], None]
    gpus: int
    capture: Capture
    tolerated: frozenset[str]
    root: str = ""
    findings: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    latency: tuple[int, int] | None = None
    not_yet: str = ""

    def run(self) -> Simulation:
        simulation = Simulation(self.gpus)
        simulation.capture = self.capture
        if self.latency is not None:
            chance = random.Random(self.name)
            least, most = self.latency
            simulation.latency = lambda: chance.randint(least, most)
            simulation.returning = lambda: chance.randint(1 * US, 6 * US)
        self.build(simulation)
        return simulation.run()


WAKING_UP = (13 * US, 70 * US)
"""From a wake call to the CPU, as real captures have it; the scenarios without it have a constant."""

SCENARIOS: dict[str, Scenario] = {}


def register(
    expected: str,
    *,
    gpus: int = 1,
    capture: Capture = EVERYTHING,
    tolerated: tuple[str, ...] = (),
    root: str = "",
    findings: tuple[str, ...] = (),
    forbidden: tuple[str, ...] = (),
    latency: tuple[int, int] | None = None,
    not_yet: str = "",
) -> Callable[[Callable[[Simulation], None]], Callable[[Simulation], None]]:
    """Make a scenario of a function that scripts a simulation; its docstring is the picture."""

    def add(build: Callable[[Simulation], None]) -> Callable[[Simulation], None]:
        name = build.__name__
        SCENARIOS[name] = Scenario(
            name=name,
            picture=build.__doc__ or "",
            expected=expected,
            build=build,
            gpus=gpus,
            capture=capture,
            tolerated=frozenset(tolerated),
            root=root,
            findings=frozenset(findings),
            forbidden=frozenset(forbidden),
            latency=latency,
            not_yet=not_yet,
        )
        return build

    return add
