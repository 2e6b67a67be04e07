"""A program of random size whose loops are known: where each repeat of each level begins on the device."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from nsysdiag.arrays.intervals import IntArray
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

VARIANTS = 6
"""Programs of each family."""


@dataclass
class Loops:
    """The levels of a program in its own words: `begin` marks where a repeat of one begins. `chance` decides about its
    size, `named` whether it has NVTX ranges, `waits` whether the host waits for the device in each step."""

    thread: Thread
    chance: random.Random
    named: bool
    waits: bool
    marks: dict[str, list[int]] = field(default_factory=dict)

    def begin(self, level: str) -> None:
        """A repeat of `level` begins with the next operation."""
        self.marks.setdefault(level, []).append(len(self.thread.process.contexts[0].gpu.ops))

    def push(self, name: str) -> None:
        """A range, in a program that has such."""
        if self.named:
            self.thread.push(name)

    def pop(self) -> None:
        """The end of that."""
        if self.named:
            self.thread.pop()

    def size(self, low: int, high: int) -> int:
        """A random number."""
        return self.chance.randint(low, high)


Script = Callable[["Thread", Loops], "Body"]


@dataclass(frozen=True)
class Known:
    """A program: `levels` are the names of its loops that may be called its steps, the outermost first; `inner` are
    loops that must not."""

    name: str
    script: Script
    levels: tuple[str, ...]
    seed: int

    def run(self) -> tuple[Simulation, dict[str, IntArray]]:
        """The simulation, and the start in ns of each repeat on the device by level."""
        chance = random.Random(self.seed)
        simulation = Simulation()
        loops: list[Loops] = []

        def body(t: Thread) -> Body:
            loops.append(Loops(t, chance, named=self.seed % 3 == 0, waits=self.seed % 2 == 0))
            yield from self.script(t, loops[0])

        simulation.thread(simulation.process(), body)
        simulation.run()
        start = np.array([op.start for op in simulation.gpus[0].ops], np.int64)
        marks = {level: np.array(at, np.int64) for level, at in loops[0].marks.items()}
        return simulation, {level: np.sort(start[at[at < len(start)]]) for level, at in marks.items()}


FAMILIES: dict[str, tuple[Script, tuple[str, ...]]] = {}


def family(*levels: str) -> Callable[[Script], Script]:
    """Programs of one script; `levels` are those that may be called steps, the outermost first."""

    def add(script: Script) -> Script:
        FAMILIES[script.__name__] = script, levels
        return script

    return add


def programs(seeds: range = range(VARIANTS)) -> list[Known]:
    """Those of all families."""
    return [
        Known(f"{name}_{seed}", script, levels, seed) for name, (script, levels) in FAMILIES.items() for seed in seeds
    ]
