"""Arbitrary pipelines: stages of threads and processes hand on pieces until the main thread trains on them.

stage 0  [does what the seed has]-- pipe, condition or semaphore -->
stage 1  [waits .................][does ...]-- ... -->
T        [waits ...........................................][step]
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US
from tests.simulator.scenarios.registry import WAKING_UP
from tests.simulator.scenarios.waits import STEPS, steps_after
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body, Process

LINKS = (("write", "read"), ("pthread_cond_signal", "pthread_cond_wait"), ("sem_post", "sem_wait"))
"""How a piece is handed on, and waited for."""


class Pipeline:
    """One to three stages; some load data, one may share its core with a greedy thread; neighbours do as they like."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"pipeline {seed}")
        self.simulation = Simulation()
        self.simulation.latency = lambda: self.chance.randint(*WAKING_UP)
        self.simulation.returning = lambda: self.chance.randint(1 * US, 6 * US)
        self.trainer = self.simulation.process()
        self.stages = self.chance.randint(1, 3)
        self.links = [self.chance.choice(LINKS) for _ in range(self.stages)]
        self.channels = [self.simulation.channel() for _ in range(self.stages)]

    def run(self) -> Simulation:
        greedy = self.chance.choice([None, None, *range(self.stages)])
        for stage in range(self.stages):
            process = self._process(stage)
            loads = "name" if self.chance.random() < 0.5 else ""
            name = "pt_data_worker" if loads else f"stage {stage}"
            thread = self.simulation.thread(process, self._stage(stage), name=name, loads=loads)
            if stage == greedy:
                self.simulation.thread(process, lambda t: t.compute(40 * MS, "spin"), name="greedy", share=thread)
        self.simulation.thread(self.trainer, steps_after(self.channels[-1], self.links[-1][1]))
        for number in range(self.chance.randint(0, 2)):
            self.simulation.thread(self.trainer, self._neighbour, name=f"neighbour {number}")
        return self.simulation.run()

    def _process(self, stage: int) -> Process:
        """Only what hands on through a pipe may be a process of its own."""
        writes = self.links[stage][0] == "write" and (stage == 0 or self.links[stage - 1][0] == "write")
        return self.simulation.process(gpus=[]) if writes and self.chance.random() < 0.6 else self.trainer

    def _stage(self, stage: int) -> Callable[[Thread], Body]:
        works = [self._work() for _ in range(self.chance.randint(1, 3))]

        def body(t: Thread) -> Body:
            for _ in range(STEPS):
                if stage:
                    yield from t.get(self.channels[stage - 1], self.links[stage - 1][1])
                for work in works:
                    yield from work(t)
                yield from t.put(self.channels[stage], self.links[stage][0])

        return body

    def _neighbour(self, t: Thread) -> Body:
        for _ in range(STEPS):
            yield from self._work()(t)

    def _work(self) -> Callable[[Thread], Body]:
        ns = self.chance.randint(300, 5_000) * US
        works: list[Callable[[Thread], Body]] = [
            lambda t: t.read_file(ns, "pread64"),
            lambda t: t.compute(ns, "transform"),
            lambda t: t.sleep(ns),
            lambda t: t.os_call("mmap64", ns // 4, "os_memory"),
        ]
        return self.chance.choices(works, weights=[4, 4, 1, 1])[0]


def pipeline(seed: int) -> Simulation:
    """Run the pipeline that belongs to a seed."""
    return Pipeline(seed).run()
