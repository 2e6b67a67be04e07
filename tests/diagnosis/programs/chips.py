"""Kernels that leave the chip empty, and those that only look so by their grid."""

from __future__ import annotations

from tests.diagnosis.programs.registry import MS, US, Marks, program, read, solver
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.counters import Counters
from tests.simulator.host import Body

BUSY = {"compute": (0.95, 1.0), "idle": (0.0, 0.05)}
SMALL = r"(?i)work is small|kernels are small|small kernels"
EMPTY = r"(?i)chip (is )?(mostly )?empty|leaves? most of the (chip|GPU)|parallelism-bound"


def _one_after_another(sim: Simulation, marks: Marks, blocks: int, threads: int) -> None:
    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(60):
            yield from t.launch("integrate", 20 * MS, shape={"gridX": blocks, "blockX": threads})
            yield from t.synchronize()
            yield from t.compute(100 * US, "next_interval")
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read(
        "parallelism",
        lead=(95, 100),
        headline=("integrate", "block|SM|empty"),
        never=(NO_PYTORCH, SMALLER, SMALL),
    ),
    BUSY,
    quick=True,
)
def one_thread_for_long(sim: Simulation, marks: Marks) -> None:
    """kernel<<<1, 1>>> of 20 ms, again and again: the kernels are long, and the chip is empty.

    SM 0    [== k ==][== k ==][== k ==]
    SM 1 .. 107 ........................
    """
    _one_after_another(sim, marks, 1, 1)


@program(
    read("kernels", lead=(95, 100), headline=("integrate",), never=(NO_PYTORCH, SMALLER, SMALL, EMPTY)),
    BUSY,
)
def few_blocks_that_use_the_memory_fully(sim: Simulation, marks: Marks) -> None:
    """The grid is small, but the counters show the memory at 80%: the chip is not empty."""
    sim.counters = Counters(
        activity={
            "SMs Active [Throughput %]": {"integrate": 36},
            "DRAM Read Bandwidth [Throughput %]": {"integrate": 62},
            "DRAM Write Bandwidth [Throughput %]": {"integrate": 20},
            "Tensor Active [Throughput %]": {"integrate": 0},
        },
        clock=[(0, 1_410_000_000)],
        idle_clock=210_000_000,
        foreign={},
        period=1 * MS,
    )
    _one_after_another(sim, marks, 40, 1024)


@program(
    read("kernels", lead=(90, 100), headline=("partial",), never=(NO_PYTORCH, SMALLER, SMALL, EMPTY)),
    {"compute": (0.9, 1.0)},
)
def few_blocks_side_by_side(sim: Simulation, marks: Marks) -> None:
    """Each kernel has blocks for a quarter of the SMs; six of them run at the same time.

    stream 1  [== k ==]
    ...
    stream 6  [== k ==]
    """

    def main(t: Thread) -> Body:
        streams = [t.process.stream() for _ in range(6)]
        marks.begin(t)
        for _ in range(60):
            for stream in streams:
                yield from t.launch("partial", 5 * MS, stream, shape={"gridX": 30, "blockX": 1024})
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")


@program(
    read("kernels", lead=(85, 100), headline=("wide",), never=(NO_PYTORCH, SMALLER, SMALL, EMPTY)),
    {"compute": (0.9, 1.0)},
)
def a_small_kernel_beside_wide_ones(sim: Simulation, marks: Marks) -> None:
    """One kernel of one block takes a tenth of the time; the others fill the chip."""

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(80):
            yield from t.launch("wide", 9 * MS, shape={"gridX": 4096})
            yield from t.launch("last_sum", 1 * MS, shape={"gridX": 1})
            yield from t.synchronize()
        marks.end(t)

    sim.thread(solver(sim), main, name="solver")
