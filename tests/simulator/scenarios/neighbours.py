"""Threads that share a CPU with others: all the time, from half way on, once, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body
    from tests.simulator.simulation import Simulation

STEPS, STEP = 200, 1_500 * US


def steps(sim: Simulation) -> Thread:
    """A thread that computes, launches and synchronizes, step by step, 1.5 ms each while it is alone on its core."""
    process = sim.process(name="/usr/bin/trainer")

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.compute(1 * MS)
            yield from t.launch("gemm", 400 * US)
            yield from t.synchronize(process.null)

    return sim.thread(process, main, name="trainer")


def neighbour(sim: Simulation, beside: Thread, start: int, ns: int) -> Thread:
    """A thread of another process that computes on the same core from `start` on."""
    other = sim.process(gpus=[], name="/usr/bin/compressor")
    return sim.thread(other, lambda t: t.compute(ns), name="gzip", start=start, share=beside)
